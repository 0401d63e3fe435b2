"""What every part of the report is written with: sections, and numbers as words."""

from __future__ import annotations

import time
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Section:
    """`right`: columns of numbers. `short`: rows on the terminal (all of them elsewhere)."""

    id: str
    title: str
    sentence: str
    headings: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    right: frozenset[int] = frozenset()
    short: int = 8


def number(value: float | None, digits: int | None = None) -> str:
    """With thousands separators; two significant digits below ten; `?` where not known."""
    if value is None:
        return "?"
    if digits is None and float(value).is_integer():
        digits = 0
    if digits is None:
        digits = 0 if abs(value) >= 100 or value == 0 else 1 if abs(value) >= 1 else 2
    return f"{value:,.{digits}f}"


def count(n: int, one: str, many: str = "") -> str:
    """`1 node`, `2 nodes`."""
    return f"{n:,} {one if n == 1 else many or one + 's'}"


def percent(part: float | None, whole: float | None) -> str:
    if part is None or not whole:
        return "?"
    if part == 0:
        return "0 %"
    return f"{100 * part / whole:.{2 if part / whole < 0.01 else 1}f} %"


def day(at: float) -> str:
    return time.strftime("%Y-%m-%d", time.gmtime(at))


def minute(at: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.gmtime(at))
