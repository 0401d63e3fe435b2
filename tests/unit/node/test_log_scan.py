"""Reading streams: only the lines that matter, each once, whatever the bytes around them are."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator

import pytest

from nodeworthy.adapters.files.literals import with_hyperscan, with_re2
from nodeworthy.adapters.files.log_rules import load_grammar
from nodeworthy_node.log import Reference
from nodeworthy_node.log import scan as scan_module
from nodeworthy_node.log.scan import Find, Tally, blocks, events, find_one_by_one, lines_at

LITERALS = load_grammar().literals
FAULT = b"[1.5] NVRM: Xid (PCI:0000:04:00): 79, pid=%d, name=p, GPU has fallen off the bus."


@pytest.fixture(params=[with_hyperscan, with_re2, find_one_by_one], ids=["hyperscan", "re2", "standard"])
def find(request: pytest.FixtureRequest) -> Find:
    make: Callable[[tuple[str, ...]], Find] = request.param
    try:
        return make(LITERALS)
    except ImportError as error:
        pytest.skip(f"{error.name} is not installed")


def pids(data: bytes, find: Find, size: int | None = None) -> list[int]:
    stream = io.BytesIO(data)
    return [event.verdict.details["pid"] for event in events(stream, find, load_grammar(), Reference(), Tally())]


@pytest.mark.parametrize("end", [b"\n", b"\r\n"], ids=["lf", "crlf"])
def test_lines_between_others(find: Find, end: bytes) -> None:
    """Fault lines among others are found, each once, with either line end, the last one without an end."""
    data = end.join([b"quiet", FAULT % 1, b"", FAULT % 2, FAULT % 3, b"quiet", FAULT % 4])
    assert pids(data, find) == [1, 2, 3, 4]


def test_two_literals_in_a_line(find: Find) -> None:
    """A line with several literals is one event."""
    assert pids(FAULT % 1 + b" SXid : SXid fallen off the bus\n", find) == [1]


def test_block_borders(find: Find, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines that lie across the borders of blocks come whole, for every size of block."""
    data = b"".join(FAULT % number + b"\nquiet\n" for number in range(20))
    for size in (1, 7, 64, 100, 1000):
        monkeypatch.setattr(scan_module, "BLOCK", size)
        whole = b"".join(blocks(io.BytesIO(data), size))
        assert whole == data
        found = [raw for block in blocks(io.BytesIO(data), size) for _, raw in lines_at(block, find(block))]
        assert found == [FAULT % number for number in range(20)]


@pytest.mark.parametrize(
    "neighbour",
    [b"\0" * 1000, b"\xff\xfe" * 500, b"x" * 1_000_000, b"NVRM: Xid" * 100_000, b"\r\r\r", b"NVRM: Xid (PCI:"],
    ids=["nul", "not-utf8", "long", "long-with-literals", "cr", "cut"],
)
def test_neighbours_are_not_lost(find: Find, neighbour: bytes) -> None:
    """A bad line costs itself and nothing else."""
    data = b"\n".join([FAULT % 1, neighbour, FAULT % 2])
    grammar = load_grammar()
    found = list(events(io.BytesIO(data), find, grammar, Reference(), Tally()))
    codes = [event.verdict.details.get("pid") for event in found if event.verdict.code == "79"]
    assert codes == [1, 2]


def test_a_stream_without_line_ends_cannot_fill_the_memory(find: Find, monkeypatch: pytest.MonkeyPatch) -> None:
    """An endless line is cut, its rest is skipped, and what follows is read."""
    monkeypatch.setattr(scan_module, "LONGEST", 1000)
    data = FAULT % 1 + b"\n" + b"x" * 50_000 + FAULT % 9 + b"\n" + FAULT % 2 + b"\n"
    whole = list(blocks(io.BytesIO(data), 100))
    assert max(len(block) for block in whole) <= 1101
    assert b"x" * 2000 not in b"".join(whole)
    assert (FAULT % 2 + b"\n") in whole[-1] or (FAULT % 2 + b"\n") in b"".join(whole[-3:])


def test_a_pipe_is_not_waited_for(find: Find) -> None:
    """Whole lines come out before the stream ends."""

    class Pipe(io.RawIOBase):
        """Gives a piece at each read, like a pipe."""

        def __init__(self) -> None:
            self.pieces: Iterator[bytes] = iter([FAULT % 1 + b"\n" + (FAULT % 2)[:40], (FAULT % 2)[40:] + b"\n", b""])
            self.reads = 0

        def read1(self, _size: int) -> bytes:
            self.reads += 1
            return next(self.pieces)

    pipe = Pipe()
    stream = events(pipe, find, load_grammar(), Reference(), Tally())  # type: ignore[arg-type]
    assert next(stream).verdict.details["pid"] == 1
    assert pipe.reads == 1
    assert next(stream).verdict.details["pid"] == 2


def test_the_tally_counts_everything(find: Find) -> None:
    """What becomes no event is counted, by reason."""
    tally = Tally()
    data = b"\n".join(
        [FAULT % 1, b"NVRM: Xid (PCI:0000:04:00): 7", b"[1.5] usb: NVRM: Xid (PCI:0000:04:00): 79, x", b"quiet"]
    )
    assert len(list(events(io.BytesIO(data), find, load_grammar(), Reference(), tally))) == 2
    assert (tally.bytes, tally.candidates, tally.events, tally.undecoded, tally.passed_over) == (len(data), 3, 2, 1, 1)


def test_lines_without_a_head_can_be_vouched_for(find: Find) -> None:
    """Whoever knows that the stream is the kernel's own makes bare lines trusted, and no others."""
    data = b"NVRM: Xid (PCI:0000:04:00): 79, x\nNov 30 17:30:00 n3 alice: NVRM: Xid (PCI:0000:04:00): 79, x\n"
    found = list(events(io.BytesIO(data), find, load_grammar(), Reference(), Tally(), trusted=True))
    assert [event.trusted for event in found] == [True, False]
