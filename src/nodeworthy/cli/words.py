"""How things are said to people: ages, times, states as shape + word, colour on terminals only.

Unknown is `?`, never 0. Colour repeats what shape and word say already, and only on a terminal (NO_COLOR
and TERM=dumb are obeyed).
"""

from __future__ import annotations

import math
import os
import sys
import textwrap
import time
from collections.abc import Mapping, Sequence
from typing import Any

import click

from nodeworthy.model.duration import format_duration

UNKNOWN = "?"
_PROBLEM = 80
GLYPHS: Mapping[str, str] = {
    "serving": "●",
    "suspect": "▲",
    "out": "◐",
    "failed": "✗",
    "unknown": "?",
    "ok": "●",
    "warn": "▲",
    "fail": "✗",
    "late": "▲",
    "down": "✗",
    "never seen": "?",
    "info": "·",
    "warning": "▲",
    "error": "✗",
    "fatal": "✗",
    "true": "✗",
    "false": "●",
}
_COLOURS: Mapping[str, str] = {"✗": "red", "▲": "yellow", "◐": "blue", "?": "magenta"}


def now() -> float:
    """POSIX seconds on the client's clock (server and client share a machine)."""
    return time.time()


def colour_wanted() -> bool:
    """Whether the reader is a terminal that wants colour (https://no-color.org)."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def mark(word: str) -> str:
    """A state as shape and word: `✗ failed`."""
    return f"{GLYPHS.get(word, '·')} {word}"


def paint(text: str, word: str) -> str:
    """`text` in the colour of the state `word`; what is well has none."""
    colour = _COLOURS.get(GLYPHS.get(word, ""))
    return click.style(text, fg=colour) if colour and colour_wanted() else text


def bold(text: str) -> str:
    return click.style(text, bold=True) if colour_wanted() else text


def span(seconds: float | None) -> str:
    """A duration in at most two units, to the second: `6s`, `11m`, `3h20m`, `2d4h`."""
    return UNKNOWN if seconds is None else format_duration(math.floor(abs(seconds)))


def ago(at: float | None) -> str:
    """`3h20m ago`, or `in 40m` for a time to come."""
    if at is None:
        return UNKNOWN
    age = now() - at
    return f"in {span(age)}" if age <= -1 else f"{span(age)} ago"


def age(at: Any) -> str:
    """The age of a moment, for table columns."""
    return UNKNOWN if at is None else span(max(0.0, now() - float(at)))


def clock_time(at: float | None) -> str:
    """`09:41 UTC`, with the date where it is not today's."""
    if at is None:
        return UNKNOWN
    moment, today = time.gmtime(at), time.gmtime(now())
    same_day = moment[:3] == today[:3]
    return time.strftime("%H:%M UTC" if same_day else "%Y-%m-%d %H:%M UTC", moment)


def owner(value: Mapping[str, Any] | None) -> str:
    """Who owns a mark. `someone` is honest: the scheduler's slot proves nobody."""
    if value is None:
        return "nobody"
    kind, name = str(value["kind"]), str(value.get("name") or "")
    if kind == "person":
        return name or "a person"
    if kind == "someone":
        return f"someone (as {name})" if name else "someone"
    return f"{kind} {name}".strip()


def count(number: int, singular: str, plural: str = "") -> str:
    return f"{number:,} {singular if number == 1 else plural or singular + 's'}"


def sources_line(sources: Sequence[Mapping[str, Any]]) -> str:
    """`slurm ● ok 4s · dcgm ✗ down 12m: connection refused`; a long problem is cut (`doctor` tells all of it)."""
    parts = []
    for source in sources:
        text = textwrap.shorten(source.get("problem") or "", _PROBLEM, placeholder=" …")
        problem = f": {text}" if text and source["state"] != "ok" else ""
        parts.append(
            paint(f"{source['name']} {mark(source['state'])} {span(source['age_s'])}{problem}", source["state"])
        )
    return " · ".join(parts) if parts else "? no source has been read yet"
