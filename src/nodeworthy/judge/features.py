"""Window features: what a signal did over a stretch of time, as a column of the frame.

A window is kept as twelve buckets (and the one that fills now) per row, so it costs the same whether it is ten
minutes or a day long, and moves in steps of a twelfth. `Windows.update` takes each turn's frames in order;
after a restart the same method is fed the recorded history (`record.history`), and the windows are as before.

Counters become gains that survive resets. When a counter falls, what it shows now was gained since the
reset, unless the next sample is back at the old height: then it was a flicker (some exporters print 0 for "not
available") and nothing was gained. So a fall is counted one sample later, and a sample is what a source looked at
anew (`judge.looks`): a scrape that several turns read is one. A GPU whose UUID changed is another GPU
and starts clean. A gap longer than the window gains nothing: nobody knows when it happened.

A feature is unknown while its signal is unknown now, so silence never keeps an old window alive. An increase, a
maximum and a number of changes are known from the second sample on, for more history can only raise
them; a rate, a minimum and a mean need half of the window.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from nodeworthy.judge.frames import FUTURE_TOLERANCE_S, Frames, Table
from nodeworthy.judge.looks import looked
from nodeworthy.model.catalogue import Catalogue, Feature

FUNCTIONS: Final = ("increase", "rate", "rate_per_minute", "changes", "minimum", "maximum", "mean")
BUCKETS: Final = 12
COVERED: Final = 0.5  # share of the window that a rate, minimum or mean needs
_EARLY: Final = ("increase", "changes", "maximum")
_COUNTERS: Final = ("increase", "rate", "rate_per_minute")
_START: Final = {"minimum": np.inf, "maximum": -np.inf}
IDENTITY: Final = "gpu_uuid"

Numbers = NDArray[np.float64]
Buckets = NDArray[np.float32]
Rows = NDArray[np.int64]


@dataclass
class _Memory:
    """The last known value of a signal per row, and what a counter that fell must still show."""

    value: Numbers
    at: Numbers
    high: Numbers  # before the last fall
    held: Numbers  # since the fall; counted when the next sample confirms the reset

    @classmethod
    def empty(cls, rows: int) -> _Memory:
        return cls(*(np.full(rows, np.nan) for _ in range(4)))


@dataclass(frozen=True, slots=True)
class _Sample:
    """What was seen anew of a signal, NaN elsewhere: its value, when, since how long, and a counter's gain."""

    value: Numbers
    at: Numbers
    gap: Numbers
    gain: Numbers


@dataclass
class _Window:
    """The buckets of one feature: `what` by its function, `seconds` for which the signal was known."""

    feature: Feature
    what: Buckets
    seconds: Buckets
    slot: int | None = None

    @classmethod
    def empty(cls, feature: Feature, rows: int) -> _Window:
        start = _START.get(feature.function, 0.0)
        shape = (BUCKETS + 1, rows)
        return cls(feature, np.full(shape, start, np.float32), np.zeros(shape, np.float32))

    def turn(self, now: float) -> int:
        """The bucket of `now`, emptied if it is new."""
        slot = int(now // (self.feature.window_s / BUCKETS))
        if self.slot is not None and slot < self.slot:  # the clock was set back: what was just gained stays just gained
            for rows in (self.what, self.seconds):
                rows[:] = np.roll(rows, slot - self.slot, axis=0)
        elif self.slot is not None:
            for new in range(self.slot + 1, slot + 1)[-(BUCKETS + 1) :]:
                self.what[new % (BUCKETS + 1)] = _START.get(self.feature.function, 0.0)
                self.seconds[new % (BUCKETS + 1)] = 0.0
        self.slot = slot
        return slot % (BUCKETS + 1)

    def result(self) -> Numbers:
        function = self.feature.function
        seconds = self.seconds.sum(axis=0, dtype=np.float64)
        if function == "minimum":
            answer = self.what.min(axis=0).astype(np.float64)
        elif function == "maximum":
            answer = self.what.max(axis=0).astype(np.float64)
        else:
            answer = self.what.sum(axis=0, dtype=np.float64)
        with np.errstate(divide="ignore", invalid="ignore"):
            if function in ("rate", "mean"):
                answer = answer / seconds
            elif function == "rate_per_minute":
                answer = answer / seconds * 60.0
        needed = 0.0 if function in _EARLY else COVERED * self.feature.window_s
        return np.where((seconds > 0) & (seconds >= needed) & np.isfinite(answer), answer, np.nan)


@dataclass
class _Kind:
    keys: pl.DataFrame
    memory: dict[str, _Memory]
    windows: dict[str, _Window]
    identity: pl.Series | None = None


@dataclass
class Windows:
    """All windows of a catalogue. Deterministic: the same frames in the same order give the same features."""

    catalogue: Catalogue
    _kinds: dict[str, _Kind] = field(default_factory=dict)
    _revision: str = ""
    _at: float | None = None

    def signals(self) -> dict[str, tuple[str, ...]]:
        """Kind → the signals that features need: what a history must keep."""
        wanted: dict[str, dict[str, None]] = {}
        for feature in self.catalogue.features.values():
            wanted.setdefault(feature.kind, {})[feature.signal] = None
        return {kind: tuple(names) for kind, names in wanted.items()}

    def longest_s(self) -> float:
        """The longest window in seconds: how far back a history must be kept and replayed."""
        return max((f.window_s for f in self.catalogue.features.values()), default=0.0)

    def update(self, frames: Frames) -> Frames:
        """Take the values of one turn; the frames with a column per feature. What was not seen anew adds nothing."""
        if self._at is not None and frames.at < self._at:
            self._step_back(frames.at, self._at - frames.at)
        columns = {kind: self._update(kind, table, frames) for kind, table in frames.tables.items()}
        self._at = frames.at
        self._revision = frames.fleet_revision
        return frames.with_features({kind: frame for kind, frame in columns.items() if frame.width})

    def _step_back(self, now: float, by: float) -> None:
        """The clock was set back: nothing would be newer than the last samples until it is there again."""
        for kind in self._kinds.values():
            for memory in kind.memory.values():
                memory.at = np.where(memory.at > now + FUTURE_TOLERANCE_S, memory.at - by, memory.at)

    def _update(self, kind: str, table: Table, frames: Frames) -> pl.DataFrame:
        features = [f for f in self.catalogue.features.values() if f.kind == kind]
        if not features:
            return pl.DataFrame()
        known = self._rows(kind, table, features, frames.fleet_revision)
        _start_clean(known, table.frame)
        values = {name: _numbers(table.frame[name]) for name in known.memory}
        samples = {name: _sample(known.memory[name], table, name, value, frames.at) for name, value in values.items()}
        columns: list[pl.Series] = []
        for feature in features:
            window, before = known.windows[feature.id], known.memory[feature.signal].value
            _fill(window, frames.at, before, samples[feature.signal])
            answer = np.where(np.isnan(values[feature.signal]), np.nan, window.result())
            columns.append(pl.Series(feature.id, answer).fill_nan(None))
        for name, sample in samples.items():
            _remember(known.memory[name], sample)
        return pl.DataFrame(columns)

    def _rows(self, kind: str, table: Table, features: list[Feature], revision: str) -> _Kind:
        """The memory of a kind, its rows moved when the fleet changed."""
        known, rows = self._kinds.get(kind), table.frame.height
        if known is not None and revision == self._revision:
            return known
        keys = table.frame.select("node", "index")
        fresh = _Kind(
            keys,
            {f.signal: _Memory.empty(rows) for f in features},
            {f.id: _Window.empty(f, rows) for f in features},
        )
        if known is not None:
            _move(known, fresh)
        self._kinds[kind] = fresh
        return fresh


def _move(old: _Kind, new: _Kind) -> None:
    places = {key: row for row, key in enumerate(old.keys.iter_rows())}
    pairs = [(places[key], row) for row, key in enumerate(new.keys.iter_rows()) if key in places]
    source: Rows = np.array([p[0] for p in pairs], dtype=np.int64)
    target: Rows = np.array([p[1] for p in pairs], dtype=np.int64)
    for name, memory in new.memory.items():
        for part in ("value", "at", "high", "held"):
            getattr(memory, part)[target] = getattr(old.memory[name], part)[source]
    for name, window in new.windows.items():
        window.what[:, target] = old.windows[name].what[:, source]
        window.seconds[:, target] = old.windows[name].seconds[:, source]
        window.slot = old.windows[name].slot
    if old.identity is not None:
        moved: list[str | None] = [None] * new.keys.height
        for before, after in pairs:
            moved[after] = old.identity[before]
        new.identity = pl.Series(IDENTITY, moved, dtype=pl.String)


def _start_clean(known: _Kind, frame: pl.DataFrame) -> None:
    """Forget the past of a row whose GPU was replaced: faults follow the asset, not the slot (design law 10)."""
    if IDENTITY not in frame.columns:
        return
    now, before = frame[IDENTITY], known.identity
    known.identity = now if before is None else pl.select(pl.coalesce(pl.lit(now), pl.lit(before))).to_series()
    swapped = (now != before).fill_null(False).arg_true().to_numpy() if before is not None else ()
    if not len(swapped):
        return
    for memory in known.memory.values():
        for part in (memory.value, memory.at, memory.high, memory.held):
            part[swapped] = np.nan
    for window in known.windows.values():
        window.what[:, swapped] = _START.get(window.feature.function, 0.0)
        window.seconds[:, swapped] = 0.0


def _numbers(column: pl.Series) -> Numbers:
    """The column as float64, NaN for unknown."""
    return column.cast(pl.Float64).to_numpy().astype(np.float64, copy=False)


def _sample(memory: _Memory, table: Table, signal: str, value: Numbers, now: float) -> _Sample:
    """The values that were seen after the last ones, and what they are against those."""
    times = looked(table, signal)
    at = np.full(len(value), now) if times is None else times
    value = np.where(at <= memory.at, np.nan, value)
    return _Sample(value, at, at - memory.at, _gain(memory, value))


def _gain(memory: _Memory, value: Numbers) -> Numbers:
    """What a counter gained since its last known value; NaN where either is unknown."""
    gain = value - memory.value
    fell = gain < 0
    judged = ~fell & ~np.isnan(memory.held) & ~np.isnan(value)
    flicker = judged & (value >= memory.high)
    gain = np.where(flicker, value - memory.high, np.where(judged, gain + memory.held, gain))
    memory.high = np.where(fell, memory.value, np.where(judged, np.nan, memory.high))
    memory.held = np.where(fell, value, np.where(judged, np.nan, memory.held))
    return np.where(fell, 0.0, gain)


def _fill(window: _Window, now: float, before: Numbers, sample: _Sample) -> None:
    """Put one sample into the bucket of now."""
    slot = window.turn(now)
    function = window.feature.function
    value, gap = sample.value, sample.gap
    usable = ~np.isnan(value) & ~np.isnan(before) & (gap > 0) & (gap <= window.feature.window_s)
    what = window.what[slot]
    if function in _COUNTERS:
        what += np.where(usable, sample.gain, 0.0).astype(np.float32)
    elif function == "changes":
        what += (usable & (value != before)).astype(np.float32)
    elif function == "mean":
        what += np.where(usable, value * gap, 0.0).astype(np.float32)
    elif function == "minimum":
        np.fmin(what, value.astype(np.float32), out=what)
    else:
        np.fmax(what, value.astype(np.float32), out=what)
    window.seconds[slot] += np.where(usable, gap, 0.0).astype(np.float32)


def _remember(memory: _Memory, sample: _Sample) -> None:
    known = ~np.isnan(sample.value)
    memory.value = np.where(known, sample.value, memory.value)
    memory.at = np.where(known, sample.at, memory.at)
