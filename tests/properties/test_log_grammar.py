"""Whatever the bytes are: no exception, no lost neighbour, no trust that was not earned."""

from __future__ import annotations

import io
import random

from hypothesis import given
from hypothesis import strategies as st

from nodeworthy.adapters.files.literals import finder
from nodeworthy.adapters.files.log_rules import built_in, load_grammar
from nodeworthy_node.log import Event, Reference, parse
from nodeworthy_node.log.scan import Tally, events, find_one_by_one
from tests.properties.inputs import fewer

BEFORE = b"2026-11-30T17:30:00+00:00 n1 kernel: NVRM: Xid (PCI:0000:01:00): 79, before"
AFTER = b"2026-11-30T17:30:01+00:00 n2 kernel: NVRM: Xid (PCI:0000:02:00): 79, after"
GRAMMAR = load_grammar()
FIND = finder(GRAMMAR.literals)
SEEN = Reference(now=1796060423.0)

HEADS = [
    b"Nov 30 17:30:00 n3 kernel: ",
    b"Nov 30 17:30:00 n3 kernel: [12345.678901] ",
    b"Nov 30 17:30:00 n3 alice[7]: ",
    b"<4>1 2026-11-30T17:30:00Z n3 kernel - - - ",
    b"2026-11-30T17:30:00,123456+00:00 ",
    b"kern  :warn  : [   12.500000] ",
    b"[Mon Nov 30 17:30:00 2026] ",
    b"6,1234,56789,-;",
    b"   1 | 11/30/2026 | 17:30:00 | ",
    b'{"_TRANSPORT":"kernel","__REALTIME_TIMESTAMP":"1796059800000000","MESSAGE":"',
    b"",
]
EXAMPLES = [rule["example"].encode() for rule in built_in()["rules"]]


def classify(data: bytes) -> list[Event]:
    return list(events(io.BytesIO(data), FIND, GRAMMAR, SEEN, Tally()))


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """A real line that was cut, with bytes changed, doubled, or thrown in."""
    line = bytearray(draw(st.sampled_from(HEADS)) + draw(st.sampled_from(EXAMPLES)))
    for _ in range(draw(st.integers(0, 4))):
        place = draw(st.integers(0, len(line)))
        what = draw(st.integers(0, 4))
        if what == 0:
            line = line[:place]
        elif what == 1:
            line[place:place] = draw(st.binary(max_size=8))
        elif what == 2:
            line[place:place] = b"\0" * draw(st.integers(1, 50))
        elif what == 3:
            line[place:place] = line[: draw(st.integers(0, 40))]
        else:
            line[place:place] = draw(
                st.sampled_from([b"\r", b"(" * 50, b"[" * 50, b"\xff\xfe", b"9" * 400, b"%s", b"0x", b"{", b'"'])
            )
    return bytes(line).replace(b"\n", b" ")


@given(damaged())
def test_damaged_lines_cost_only_themselves(line: bytes) -> None:
    """Neighbours of a damaged line are classified as ever, and what it gives itself is well-formed."""
    found = classify(b"\n".join([BEFORE, line, AFTER]))
    assert found[0].message.endswith("before")
    assert found[-1].message.endswith("after")
    assert 2 <= len(found) <= 3
    for event in found:
        assert event.verdict.role in ("origin", "symptom", "application", "unknown")
        assert event.as_dict()["kind"]


@given(st.binary(max_size=400))
def test_any_bytes_can_be_parsed(raw: bytes) -> None:
    """Parsing and classifying any bytes raises nothing."""
    GRAMMAR.classify(parse(raw, SEEN))


@given(st.sampled_from(EXAMPLES), st.text(alphabet="abcxyz-_", min_size=1, max_size=12), st.binary(max_size=30))
def test_another_writer_is_never_trusted(example: bytes, program: str, noise: bytes) -> None:
    """Whatever a program writes through syslog, the event is not trusted and holds nothing."""
    if program == "kernel":
        return
    raw = b"Nov 30 17:30:00 n3 " + program.encode() + b": " + noise.replace(b"\n", b"") + example
    event = GRAMMAR.classify(parse(raw, SEEN))
    assert event is None or (not event.trusted and not event.holds)


@fewer(20)
@given(st.lists(st.one_of(damaged(), st.binary(max_size=60).map(lambda raw: raw.replace(b"\n", b" "))), max_size=40))
def test_both_finders_agree(lines: list[bytes]) -> None:
    """Hyperscan and the standard library find the same lines."""
    data = b"\n".join(lines)
    slow = find_one_by_one(GRAMMAR.literals)
    found = [list(events(io.BytesIO(data), find, GRAMMAR, SEEN, Tally())) for find in (FIND, slow)]
    assert found[0] == found[1]


def test_lines_of_a_million_characters() -> None:
    """Very long lines of all kinds of text neither raise nor take long, and their neighbours are there."""
    rng = random.Random(7)
    for fill in (
        b"x",
        b"\0",
        b"(",
        b"NVRM: Xid (PCI:",
        b"[1.1] ",
        b"a: ",
        b"0x1 ",
        b" | ",
        b"\xff",
        bytes(rng.randrange(11, 255) for _ in range(997)),
    ):
        for head in HEADS:
            line = (head + b"NVRM: Xid (PCI:0000:04:00): 145, " + fill * (1_000_000 // len(fill))).replace(b"\n", b" ")
            found = classify(b"\n".join([BEFORE, line, AFTER]))
            assert found[0].message.endswith("before")
            assert found[-1].message.endswith("after")
