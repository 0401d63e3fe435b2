"""When a line was written: from what the line says and a reference, never from a clock.

Log lines say little about time: the classic syslog form has no year and no zone, `dmesg` counts seconds
since boot. A `Reference` carries what is known from outside (a time that the line cannot be later than, the
zone of the writer, the boot time). What still cannot be known stays None, with the reason said.
"""

import re
from datetime import datetime, timedelta, timezone, tzinfo
from functools import lru_cache
from typing import NamedTuple, Optional

MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
# a line may be stamped a little after the reference: clocks differ, and a zone may be wrong by up to a day
SLACK_S = 86400.0
# the longest gap between two years that have a 29 February (1896 and 1904, 2096 and 2104)
LEAP_GAP_YEARS = 8

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_ZONE = re.compile(r"([+-])(\d\d):?(\d\d)$")


class Reference(NamedTuple):
    """What is known about a log from outside.

    `now`: POSIX seconds that no line is (much) later than: when the file was last written, or the present.
    `tz`: the zone of stamps that name none. `boot`: POSIX seconds at which the kernel's own counter was 0.
    """

    now: Optional[float] = None
    tz: tzinfo = timezone.utc
    boot: Optional[float] = None


class Stamp(NamedTuple):
    """A resolved time (POSIX seconds, UTC) or None, with the reason or the assumption in `note`."""

    at: Optional[float]
    note: str = ""


@lru_cache(maxsize=8192)
def _zoned(year: int, month: int, day: int, clock: str, zone: str, tz: tzinfo) -> Optional[float]:
    """Whole POSIX seconds; None where there is no such date or time. Lines come in bursts: hence the cache."""
    hour, minute, second = (int(part) for part in clock.split(":"))
    try:
        where = _offset(zone) if zone else tz
        # 60 is a leap second: count it as the first second of the next minute
        when = datetime(year, month, day, hour, minute, min(second, 59), tzinfo=where)
        return when.timestamp() + (1.0 if second == 60 else 0.0)
    except (ValueError, OverflowError):
        return None


def _offset(zone: str) -> tzinfo:
    found = _ZONE.match(zone)
    if found is None:
        return timezone.utc
    sign, hours, minutes = found.groups()
    offset = timedelta(hours=int(hours), minutes=int(minutes))
    return timezone(-offset if sign == "-" else offset)


def iso(date: str, clock: str, fraction: str, zone: str, reference: Reference) -> Stamp:
    """`2026-11-30`, `17:40:23`, `123456`, `Z` | `+0000` | `+00:00` | ``."""
    year, month, day = (int(part) for part in date.split("-"))
    at = _zoned(year, month, day, clock, zone, reference.tz)
    if at is None:
        return Stamp(None, "no such date or time")
    return Stamp(at + _fraction(fraction), "" if zone else "zone assumed")


def dated(month: str, day: str, clock: str, year: str, fraction: str, reference: Reference) -> Stamp:
    """`Aug`, `17`, `06:18:01` with or without a year. Without one: the latest year that is not after the reference."""
    stamp = _dated(month, day, clock, year, reference)
    return stamp if not fraction or stamp.at is None else Stamp(stamp.at + _fraction(fraction), stamp.note)


@lru_cache(maxsize=8192)
def _dated(month: str, day: str, clock: str, year: str, reference: Reference) -> Stamp:
    number = MONTHS.index(month) + 1
    if year:
        at = _zoned(int(year), number, int(day), clock, "", reference.tz)
        return Stamp(None, "no such date or time") if at is None else Stamp(at, "zone assumed")
    if reference.now is None:
        return Stamp(None, "the line has no year, and no reference time is given")
    newest = _year_of(reference.now + SLACK_S, reference.tz)
    for candidate in range(newest, newest - LEAP_GAP_YEARS - 1, -1):
        at = _zoned(candidate, number, int(day), clock, "", reference.tz)
        if at is not None and at <= reference.now + SLACK_S:
            return Stamp(at, "year and zone assumed")
    return Stamp(None, "no such date or time")


@lru_cache(maxsize=64)
def _year_of(at: float, tz: tzinfo) -> int:
    return datetime.fromtimestamp(at, tz).year


def since_boot(seconds: Optional[float], reference: Reference) -> Stamp:
    """The kernel's own counter. Without a boot time it orders lines, and says no more."""
    if seconds is None:
        return Stamp(None, "the time of the line cannot be read")
    if reference.boot is None:
        return Stamp(None, "seconds since an unknown boot")
    return Stamp(reference.boot + seconds)


def _fraction(digits: str) -> float:
    return float("0." + digits) if digits else 0.0


def iso_text(at: float) -> str:
    """POSIX seconds as `2026-11-30T17:40:23.123456Z`.

    >>> iso_text(0.5)
    '1970-01-01T00:00:00.500000Z'
    """
    micro = round(at * 1e6)
    return f"{_second_text(micro // 1_000_000)}.{micro % 1_000_000:06d}Z"


@lru_cache(maxsize=1024)
def _second_text(second: int) -> str:
    return (_EPOCH + timedelta(seconds=second)).strftime("%Y-%m-%dT%H:%M:%S")
