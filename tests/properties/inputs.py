"""What the world may hand to a parser. Theory of operation:

A parser is known by a good input, a way to read it, and the errors it may answer with. Its good input is damaged: cut,
doubled, overwritten, filled with NUL, brackets, numbers of many digits and other people's text, or replaced by any text or
bytes at all. How many inputs are tried is the Hypothesis profile's business (tests/conftest.py), here as in every property.
"""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import settings
from hypothesis import strategies as st

JUNK = [
    "", "\0", "\0" * 40, "\n", "\r", "\n\n[", "[", "]", "[[", "[1-", "n[0-999999999]", "=", ",", ",,", "|", ";", ":", "+",
    '"', "'", '"""', "{", "}", "{}", "(null)", "null", "nan", "-inf", " State=", "\\", "\\u0000", "\\xff", "\ufeff", "🙂", "é", "%s",
    "0x", "1e999", "-1", "9" * 18, "9" * 30, "9" * 400, "(" * 50, "[" * 50, " " * 50, "\x01", "\x85", "\u2028", "\ud800",
]  # fmt: skip
FILLERS = [
    "a", " ", "[", "{", "(", "=", ",", '"', "\\", ".a", "[1-", "n[1-2],", " x=", " [a@1]", "Reason=", "\0", "+", "|", "9",
    "\n ", "not ", "1+", "é", "{a=", '{"a":', "\x01", ":", "a;", "0x1 ", "-", "[1.1] ",
]  # fmt: skip
if settings().max_examples < 10_000:
    FILLERS = FILLERS[::4]


def fewer(times: int) -> settings:
    """For a property whose one input costs as much as `times` usual ones."""
    return settings(max_examples=max(5, settings().max_examples // times))


@dataclass(frozen=True)
class Wound:
    """At so many ten-thousandths of the input, so many characters are replaced (None: doubled)."""

    at: int
    length: int
    by: str | None

    def of(self, text: str) -> str:
        start = len(text) * self.at // 10_000
        end = start + self.length
        return text[:start] + (text[start:end] * 2 if self.by is None else self.by) + text[end:]


@dataclass(frozen=True)
class Cut:
    """Only so many ten-thousandths of the input arrive."""

    at: int

    def of(self, text: str) -> str:
        return text[: len(text) * self.at // 10_000]


@dataclass(frozen=True)
class Other:
    """Something else comes in the input's place."""

    text: str

    def of(self, _: str) -> str:
        return self.text


_place = st.integers(0, 10_000)
_wound = st.builds(Wound, _place, st.integers(0, 60), st.none() | st.sampled_from(JUNK) | st.text(max_size=20))
damage: st.SearchStrategy[list[Wound | Cut | Other]] = st.one_of(
    st.lists(st.one_of(_wound, _wound, _wound, st.builds(Cut, _place)), min_size=1, max_size=3),
    st.builds(Other, st.text(max_size=300)).map(lambda other: [other]),
    st.binary(max_size=300).map(lambda raw: [Other(raw.decode("utf-8", "surrogateescape"))]),
)
"""It fits any good input, so that one drawing serves every parser: drawing takes longer than most parsers take to read."""


def damaged(good: str, by: list[Wound | Cut | Other]) -> str:
    for one in by:
        good = one.of(good)
    return good


def huge(good: str, filler: str) -> list[str]:
    """A million characters on one line, alone and in the middle of the good input."""
    line = (filler * (1_000_000 // len(filler) + 1))[:1_000_000]
    half = len(good) // 2
    return [line, good[:half] + line + good[half:]]
