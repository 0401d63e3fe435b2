"""Every parser, whatever it is given: a value or a clear error of its own, never another exception, never an endless wait.

The campaign of 100,000 inputs for each: `python -m benchmarks.properties`.
"""

from __future__ import annotations

import time
from operator import attrgetter

import pytest
from hypothesis import given

from tests.properties.inputs import FILLERS, Cut, Other, Wound, damage, damaged, fewer, huge
from tests.properties.parsers import PARSERS, Parser

SECONDS = 10
"""A million characters take a second or two; what takes longer grows faster than its input."""


NAMED = attrgetter("name")


def survives(parser: Parser, answer: str) -> object:
    """The value, or the error with a sentence; anything else fails the test."""
    try:
        return parser.read(answer)
    except parser.errors as error:
        assert 0 < len(str(error)) < 5_000, parser.name
        return error
    except Exception as error:
        error.add_note(f"parser: {parser.name}")
        raise


@pytest.mark.parametrize("parser", PARSERS, ids=NAMED)
def test_good_input(parser: Parser) -> None:
    """The inputs that are damaged below are read when whole."""
    assert parser.read(parser.good)


@given(damage)
def test_damaged_input(by: list[Wound | Cut | Other]) -> None:
    """Good inputs cut, doubled, overwritten, with NUL and numbers of many digits; any text; any bytes; for every parser."""
    for parser in PARSERS:
        if not parser.slow:
            survives(parser, damaged(parser.good, by))


@pytest.mark.parametrize("parser", [p for p in PARSERS if p.slow], ids=NAMED)
@fewer(10)
@given(by=damage)
def test_damaged_input_of_slow_parsers(parser: Parser, by: list[Wound | Cut | Other]) -> None:
    """The same for those whose one input takes milliseconds."""
    survives(parser, damaged(parser.good, by))


@pytest.mark.parametrize("parser", PARSERS, ids=NAMED)
def test_a_million_characters(parser: Parser) -> None:
    """On one line, alone and inside a good input: the time grows with the length, and no pattern is a trap."""
    for filler in FILLERS:
        for answer in huge(parser.good, filler):
            start = time.process_time()
            survives(parser, answer)
            assert time.process_time() - start < SECONDS, filler


NESTED = ["[" * 100_000, "{" * 100_000, '{"a":' * 100_000, "a = " + "[" * 100_000, "a = " + "{a=" * 50_000,
          "a = " + "9" * 5_000, "a = 1" + "e9" * 9, "a" + ".a" * 20_000 + " = 1", "[a" + ".a" * 20_000 + "]",
          "a = 2026-99-99", "not " * 50_000 + "a", "(" * 50_000 + "a" + ")" * 50_000]  # fmt: skip


@pytest.mark.parametrize("parser", PARSERS, ids=NAMED)
def test_deeply_nested(parser: Parser) -> None:
    """A hundred thousand brackets, keys of twenty thousand parts, numbers of thousands of digits."""
    for answer in NESTED:
        start = time.process_time()
        survives(parser, answer)
        assert time.process_time() - start < SECONDS, answer[:20]
