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
        seen, values = part.seen, part.values[signal]
        if rows is not None:
            seen, values = seen.gather(rows), values.gather(rows)
        if times is None and values.null_count() == 0:
            times = _numbers(seen)
            continue
        before = np.full(len(seen), np.nan) if times is None else times
        times = np.where(values.is_not_null().to_numpy(), _numbers(seen), before)
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
    return column.cast(pl.Float64).to_numpy().astype(np.float64, copy=False)
