"""Durations and times as people write them: `90d`, `2h30m`, `now-1h`, `2026-03-01T12:00Z`.

One grammar for every command. A duration needs its units: a bare `90` is refused, because nobody can tell
whether it means seconds or days. A time without an offset is UTC, as all times that Nodeworthy prints are.

>>> parse_duration("2h30m")
9000.0
>>> format_duration(9000)
'2h30m'
>>> format_time(parse_time("2026-03-01T12:00+01:00", now=0))
'2026-03-01T11:00:00Z'
"""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime
from typing import Final

from nodeworthy.errors import BadRequest

UNITS: Final = {"w": 604800.0, "d": 86400.0, "h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
_HINT = "write durations as 90d, 2h30m, 1w, 45s or 250ms"
_TIME_HINT = "write times as 2026-03-01, 2026-03-01T12:30Z, @1772366400, now, now-1h, or 90d for 90 days ago"
_PART = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|[wdhms])", re.ASCII)
_LONGEST = 64  # characters; longer text is a mistake, not a duration
_FARTHEST = 253402300800.0  # the year 10000: beyond what ISO times can say


def parse_duration(text: str) -> float:
    """Seconds of a duration such as `90d`, `2h30m`, `1.5h`. Never negative; raises BadRequest."""
    rest = text.strip().lower()
    if not rest or len(rest) > _LONGEST:
        raise BadRequest(f"not a duration: {text[:_LONGEST]!r}", hint=_HINT)
    total, previous = 0.0, math.inf
    while rest:
        part = _PART.match(rest)
        if part is None:
            raise BadRequest(f"not a duration: {text!r}", hint=_HINT)
        unit = UNITS[part[2]]
        if unit >= previous:
            raise BadRequest(f"not a duration: {text!r}: units go from large to small, each once", hint=_HINT)
        total += float(part[1]) * unit
        previous, rest = unit, rest[part.end() :]
    return total


def format_duration(seconds: float) -> str:
    """The two largest units that say it, rounded down: `3d4h`, `2h30m`, `45s`, `0s`."""
    sign = "-" if seconds < 0 else ""
    left = abs(seconds)
    if 0 < left < 1:
        return f"{sign}{math.floor(left * 1000)}ms"
    sizes = [(unit, size) for unit, size in UNITS.items() if unit not in ("w", "ms")]
    for place, (unit, size) in enumerate(sizes):
        if left < size:
            continue
        text = f"{sign}{math.floor(left / size)}{unit}"
        if place + 1 < len(sizes):
            smaller, smaller_size = sizes[place + 1]
            count = math.floor(left % size / smaller_size)
            text += f"{count}{smaller}" if count else ""
        return text
    return "0s"


def parse_time(text: str, *, now: float) -> float:
    """POSIX seconds of a time: ISO 8601 (UTC unless it says otherwise), `@seconds`, `now`, `now-1h`,
    `now+1h`; a bare duration is that long ago, as `--since 90d` means. Raises BadRequest."""
    word = text.strip()
    if word.startswith("now"):
        rest = word[3:].strip()
        if not rest:
            return now
        if rest[0] in "+-":
            offset = parse_duration(rest[1:])
            return now - offset if rest[0] == "-" else now + offset
        raise BadRequest(f"not a time: {text[:_LONGEST]!r}", hint=_TIME_HINT)
    if _PART.match(word.lower()):
        return now - parse_duration(word)
    try:
        at = float(word[1:]) if word.startswith("@") else _iso(word)
    except (ValueError, OverflowError) as error:
        raise BadRequest(f"not a time: {text[:_LONGEST]!r}", hint=_TIME_HINT) from error
    if not 0 <= at < _FARTHEST:  # also refuses NaN
        raise BadRequest(f"a time out of range: {text[:_LONGEST]!r}", hint=_TIME_HINT)
    return at


def _iso(word: str) -> float:
    moment = datetime.fromisoformat(word)
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def format_time(at: float) -> str:
    """ISO 8601 in UTC, to the second: `2026-03-01T12:30:00Z`."""
    return datetime.fromtimestamp(math.floor(at), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
