"""Single values as Slurm prints them: nulls, numbers, times, GRES.

Slurm has many words for "nothing" and they are all null here. A value that is present but unreadable is
null, too: unknown, not wrong. Whoever needs a value to understand an answer says so itself (`Garbled`).
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache

NULLS = frozenset({"", "(null)", "None", "NONE", "Unknown", "UNKNOWN", "N/A", "n/a", "n/s", "none", "NULL"})

MAX_TIME = 4_294_967_279.0
"""The year 2106. Slurm's NO_VAL (2³² − 2) and INFINITE (2³² − 1) lie beyond, in 32 and in 64 bits."""

_SUFFIX = {"": 1, "K": 1024, "M": 1024**2, "G": 1024**3, "T": 1024**4, "P": 1024**5}
_COUNT = re.compile(r"(\d{1,15})([KMGTP]?)$")
_DETAIL = re.compile(r"\((?:S|IDX|CNT)[^()]*\)$")
_OUTER_COMMA = re.compile(r",(?![^()]*\))")


def text(value: str | None) -> str | None:
    """The text, or None for any of Slurm's words for nothing."""
    return None if value is None or value in NULLS else value


@lru_cache(maxsize=4096)
def names(value: str | None) -> tuple[str, ...]:
    """A comma-separated list."""
    known = text(value)
    return () if known is None else tuple(part for part in known.split(",") if part and part not in NULLS)


def number(value: str | None) -> int | None:
    """A whole number of at most 18 digits."""
    if value is None or not value.isascii() or not value.isdigit() or len(value) > 18:
        return None
    return int(value)


def time(value: str | None) -> float | None:
    """POSIX seconds of a Slurm time.

    Asked for with `SLURM_TIME_FORMAT=%s` it is a number. The standard format (`2026-11-30T10:17:04`) is the
    local time of the machine where the client ran, so it is read in this machine's zone."""
    if value is None or value in NULLS:
        return None
    if value.isascii() and value.isdigit():
        seconds = float(value) if len(value) < 18 else math.inf
        return seconds if 0 < seconds <= MAX_TIME else None
    return _standard_time(value)


@lru_cache(maxsize=65536)
def _standard_time(value: str) -> float | None:
    if len(value) > 32:
        return None
    try:
        return datetime.fromisoformat(value).astimezone().timestamp()
    except (ValueError, OverflowError, OSError):
        return None


@dataclass(frozen=True, slots=True)
class Gpus:
    """GPUs of a GRES text: how many, and their type (several are joined with a comma)."""

    count: int | None
    type: str | None


@lru_cache(maxsize=4096)
def gpus(value: str | None) -> Gpus:
    """GPUs in `Gres=` or `GresUsed=`: `gpu:h100:8(S:0-1)`, `gpu:8`, `gpu:(null):0(IDX:N/A)`, `gpu:a:1,nic:2`.

    No GRES at all (`(null)`) is a count of zero, because that is what Slurm has configured; a missing field
    is unknown. Each MIG instance that is configured as a GRES of its own counts as one."""
    if value is None or value in ("N/A", "n/a"):
        return Gpus(None, None)
    if value in NULLS:
        return Gpus(0, None)
    total, types = 0, []
    for part in _OUTER_COMMA.split(value):
        kind, *rest = _DETAIL.sub("", part.strip()).replace("(null)", "").removeprefix("gres:").split(":")
        if kind not in ("gpu", "gres/gpu"):
            continue
        count = 1
        if rest and (found := _COUNT.match(rest[-1])):
            count = int(found[1]) * _SUFFIX[found[2]]
            rest.pop()
        elif rest and any(character.isdigit() for character in rest[-1]) and len(rest) > 1:
            return Gpus(None, None)  # a count that cannot be read is unknown, not one
        total += count
        if rest and rest[0] and rest[0] not in types:
            types.append(rest[0])
    return Gpus(total, ",".join(types) or None)


@lru_cache(maxsize=4096)
def tres_gpus(value: str | None) -> int | None:
    """GPUs in a TRES text such as `cpu=4,mem=64G,gres/gpu=2,gres/gpu:h100=2`; None where it names none."""
    found = re.search(r"(?:^|,)gres/gpu=(\d{1,15})(?:,|$)", value or "")
    return int(found[1]) if found else None
