"""The bounded history of signals, as Parquet segments: for windows after a restart, trends and looking back.

One row per component and sample, one column per signal that some feature needs; null also where the source has not
looked again since the sample before, for then there is no new sample. Samples gather in memory and are
written as a segment `KIND-START-END.parquet` every `segment_s`, to a temporary name first and then renamed, so a
segment is whole or not there. A crash loses at most the samples of one segment. Segments are removed when
they are older than `keep_s`, and the oldest ones when all together are larger than `keep_bytes`. A segment
that cannot be read is put aside in `problems` and never stops anything.

This is no time-series database: on a fleet that has one, Prometheus keeps the long history.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import polars as pl

from nodeworthy.judge.features import IDENTITY, Windows
from nodeworthy.judge.frames import Frames, Table
from nodeworthy.judge.looks import Times, looked
from nodeworthy.model.fact import KEY_COLUMNS

_NAME: Final = re.compile(r"([a-z]+)-(\d+)-(\d+)\.parquet")
# A sample is replayed when it is this share of its age away from the one before: recent windows get every sample,
# long ones fifty, and counters lose nothing by it because they are cumulative.
_SPACING: Final = 1 / 50
_UNREADABLE: Final = (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError)


@dataclass(frozen=True, slots=True)
class Segment:
    path: Path
    kind: str
    start: float
    end: float
    size: int


@dataclass
class History:
    """`signals`: kind → what to keep (`Windows.signals`). Times in seconds, `every_s` is the least time between samples."""

    folder: Path
    signals: Mapping[str, Sequence[str]]
    keep_s: float = 2 * 86400.0
    keep_bytes: int = 4 * 1024**3
    every_s: float = 30.0
    segment_s: float = 600.0
    problems: list[str] = field(default_factory=list)
    _waiting: dict[str, list[pl.DataFrame]] = field(default_factory=dict)
    _started: float | None = None
    _last: float | None = None
    _revision: str = ""
    _damaged: set[Path] = field(default_factory=set)
    _looked: dict[tuple[str, str], Times] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        for left_over in self.folder.glob("*.tmp"):
            left_over.unlink(missing_ok=True)

    def append(self, frames: Frames) -> None:
        """Keep one sample; writes a segment when it is time, and when the clock was set back. One too close is dropped."""
        if self._last is not None and abs(frames.at - self._last) < self.every_s:
            return
        if self._last is not None and frames.at < self._last:
            self.flush()
        if frames.fleet_revision != self._revision:
            self._revision, self._looked = frames.fleet_revision, {}
        self._last = frames.at
        self._started = frames.at if self._started is None else self._started
        for kind, names in self.signals.items():
            table = frames.tables.get(kind)
            if table is None or table.frame.is_empty():
                continue
            columns = [n for n in (*KEY_COLUMNS, IDENTITY) if n in table.frame.columns]
            new = [
                self._anew(kind, n, table) for n in dict.fromkeys(names) if n in table.frame.columns and n != IDENTITY
            ]
            sample = table.frame.select(columns).with_columns(*new, pl.lit(frames.at).alias("at"))
            self._waiting.setdefault(kind, []).append(sample)
        if frames.at - self._started >= self.segment_s:
            self.flush()
            self.prune(frames.at)

    def _anew(self, kind: str, signal: str, table: Table) -> pl.Series:
        """The values of a signal that were looked at since the last sample."""
        column, times = table.frame[signal], looked(table, signal)
        if times is None:
            return column
        before = self._looked.get((kind, signal))
        self._looked[kind, signal] = times
        again = None if before is None else times == before
        if again is None or not again.any():
            return column
        return pl.select(pl.when(pl.lit(pl.Series(~again))).then(pl.lit(column))).to_series().alias(signal)

    def flush(self) -> None:
        """Write what is in memory (also to be called at a clean stop)."""
        for kind, samples in self._waiting.items():
            frame = pl.concat(samples, how="diagonal_relaxed")
            start, end = int(samples[0]["at"][0]), int(samples[-1]["at"][0]) + 1
            self._write(frame, self.folder / f"{kind}-{start}-{end}.parquet")
        self._waiting, self._started = {}, None

    def drop(self) -> None:
        """Forget what is in memory: it cannot be written, and must not grow."""
        self._waiting, self._started = {}, None

    def _write(self, frame: pl.DataFrame, path: Path) -> None:
        temporary = path.with_suffix(".tmp")
        with temporary.open("wb") as file:
            frame.write_parquet(file, compression="zstd")
            file.flush()
            os.fsync(file.fileno())
        temporary.rename(path)

    def segments(self, kind: str | None = None) -> list[Segment]:
        """All segments, oldest first."""
        found: list[Segment] = []
        for path in self.folder.iterdir():
            match = _NAME.fullmatch(path.name)
            if match and kind in (None, match.group(1)):
                with contextlib.suppress(FileNotFoundError):  # pruned by another process meanwhile
                    size = path.stat().st_size
                    found.append(Segment(path, match.group(1), float(match.group(2)), float(match.group(3)), size))
        return sorted(found, key=lambda s: (s.start, s.kind))

    def prune(self, now: float) -> int:
        """Remove what is too old or too much; how many segments went."""
        segments, removed = self.segments(), 0
        total = sum(s.size for s in segments)
        for segment in segments:
            if segment.end >= now - self.keep_s and total <= self.keep_bytes:
                continue
            segment.path.unlink(missing_ok=True)
            total -= segment.size
            removed += 1
        return removed

    def scan(self, kind: str, since: float, until: float = float("inf")) -> pl.LazyFrame:
        """The samples of a kind in a stretch of time, lazily: `node`, `index`, `at`, and signals."""
        parts = [pl.scan_parquet(s.path) for s in self._readable(kind) if s.end >= since and s.start <= until]
        parts += [frame.lazy() for frame in self._waiting.get(kind, ())]
        if not parts:
            return pl.LazyFrame(schema={"node": pl.String, "index": pl.String, "at": pl.Float64})
        everything = pl.concat(parts, how="diagonal_relaxed")
        return everything.filter(pl.col("at").is_between(since, until))

    def _readable(self, kind: str) -> Iterator[Segment]:
        for segment in self.segments(kind):
            if segment.path in self._damaged:
                continue
            try:
                schema = pl.read_parquet_schema(segment.path)
            except _UNREADABLE as error:
                self._put_aside(segment, str(error))
                continue
            odd = [name for name, dtype in schema.items() if not self._expected(kind, name, dtype)]
            if odd:
                self._put_aside(segment, f"{', '.join(odd)} is of another type")
            elif {*KEY_COLUMNS, "at"} <= set(schema):
                yield segment

    def _expected(self, kind: str, name: str, dtype: pl.DataType) -> bool:
        if dtype == pl.Null:
            return True
        if name in (*KEY_COLUMNS, IDENTITY):
            return dtype == pl.String
        return name not in (*self.signals.get(kind, ()), "at") or dtype.is_numeric() or dtype == pl.Boolean

    def _put_aside(self, segment: Segment, why: str) -> None:
        self._damaged.add(segment.path)
        reason = (why.splitlines() or ["no reason given"])[0]
        self.problems.append(f"history segment {segment.path.name} cannot be read and is left out: {reason}")

    def _collect(self, kind: str, since: float, until: float, *columns: pl.Expr) -> pl.DataFrame:
        """What `scan` gives. Where a page is damaged, which only reading it shows, without its segment."""
        picked = columns or (pl.all(),)
        try:
            return self.scan(kind, since, until).select(picked).collect()
        except _UNREADABLE:
            for segment in [s for s in self._readable(kind) if s.end >= since and s.start <= until]:
                try:
                    pl.read_parquet(segment.path)
                except _UNREADABLE as error:
                    self._put_aside(segment, str(error))
            return self.scan(kind, since, until).select(picked).collect()

    def replay(self, windows: Windows, declared: Mapping[str, pl.DataFrame], fleet_revision: str, now: float) -> int:
        """Feed the recorded samples to empty windows, so that features go on as before a restart; how many samples.

        `declared`: kind → the declared rows (`judge.frames.declare`); samples of other components are left out.
        """
        since = now - windows.longest_s()
        times: set[float] = set()
        for kind in self.signals:
            times.update(self._collect(kind, since, now, pl.col("at").unique())["at"].to_list())
        chosen = _spaced(sorted(times), now)
        for at in chosen:
            tables = {kind: Table(self._sample(kind, at, rows, windows)) for kind, rows in declared.items()}
            windows.update(Frames(at, fleet_revision, tables))
        return len(chosen)

    def _sample(self, kind: str, at: float, rows: pl.DataFrame, windows: Windows) -> pl.DataFrame:
        keys = rows.select(KEY_COLUMNS)
        sample = self._collect(kind, at, at).unique(KEY_COLUMNS, keep="last", maintain_order=True)
        joined = keys.join(sample, on=KEY_COLUMNS, how="left", maintain_order="left")
        missing = [n for n in windows.signals().get(kind, ()) if n not in joined.columns]
        return joined.with_columns(pl.lit(None, dtype=pl.Float64).alias(n) for n in missing)


def _spaced(times: Sequence[float], now: float) -> list[float]:
    chosen: list[float] = []
    for at in times:
        if not chosen or at - chosen[-1] >= (now - at) * _SPACING:
            chosen.append(at)
    return chosen
