"""Looks: when a value that stands now was really seen.

A value stays in the frame until it is too old (`max_age_s`), also when its source has died meanwhile, and a turn comes
more often than a scrape. So the time of a value is the time at which its source saw it, never the time of the turn:
what is read twice was seen once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import polars as pl
from numpy.typing import NDArray

from nodeworthy.judge.frames import Table
from nodeworthy.model.catalogue import Feature

Times = NDArray[np.float64]


def looked(table: Table, signal: str, rows: list[int] | None = None) -> Times | None:
    """When the value of a signal was seen, at all rows or at some; NaN where no source says one. None: not known at all,
    the frame names no source (a recorded sample)."""
    sources = table.suppliers.get(signal, ())
    if not sources:
        return None
    times: Times | None = None
    for source in reversed(sources):
        part = table.parts[source]
        values = part.values[signal]
        seen = _numbers(part.seen)
        seen = seen if rows is None else seen[rows]
        if values.null_count() == 0:
            times = seen
            continue
        known = (values if rows is None else values[rows]).is_not_null().to_numpy()
        times = np.where(known, seen, np.full(len(seen), np.nan) if times is None else times)
    return times


def last_looks(
    table: Table, names: Iterable[str], features: Mapping[str, Feature], rows: list[int], now: float
) -> list[float]:
    """When the answer of a condition with these inputs was looked at, a time per row and never after `now`.

    The input that was seen longest ago counts: an answer is as old as the oldest value that it rests on.
    """
    oldest = np.full(len(rows), now)
    for name in names:
        times = looked(table, features[name].signal if name in features else name, rows)
        if times is not None:
            oldest = np.fmin(oldest, times)
    return [float(t) for t in oldest]


def _numbers(column: pl.Series) -> Times:
    # a cast that changes nothing costs as much as all the rest
    column = column if column.dtype == pl.Float64 else column.cast(pl.Float64)
    return column.to_numpy()
