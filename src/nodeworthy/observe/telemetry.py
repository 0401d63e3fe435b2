"""What it means: samples become frames with a row per component and a column per signal of the catalogue.

Theory of operation. Samples are sorted by metric name once; each field of the catalogue then takes its slice
and writes it into the column of its signal, through the position of the component. All steps are on whole
slices. In order: labels that the field asks for, unit (`scale`), then per cell

- the newest of several series wins, and at equal times the field that the signal names first; two equally new
  series of one field that differ are unknown (*duplicates*);
- NaN, infinities, vendor sentinels, values out of range or of the wrong type are unknown;
- a value much older than the rest of its row is unknown (*stale*: Prometheus repeats the last value of a
  series for five minutes), and so is one from the future beside others from the present.

Every unknown that the source caused is counted in `problems` and listed with its reason in `unknown`.
Whether a row as a whole is stale, or from the future, is judged later from its `seen`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt
import polars as pl

from nodeworthy.judge.clean import BLANKS, clean
from nodeworthy.judge.frames import FUTURE_TOLERANCE_S
from nodeworthy.model.catalogue import Signal, SourceField
from nodeworthy.model.fact import KINDS, NODE
from nodeworthy.model.finding import UnknownReason
from nodeworthy.observe.components import Components, Resolve, find_components, name_of, some
from nodeworthy.observe.samples import Bools, Floats, Ints, Samples
from nodeworthy.ports import TelemetryBatch

EXPORTERS = frozenset({"dcgm", "node_exporter"})  # the sources of the catalogue that are metrics pages
_PART = "controller"  # node_edac_*_total: one series per memory controller


def exposed(signals: Iterable[Signal], exporters: Collection[str] = EXPORTERS) -> tuple[Signal, ...]:
    """The signals that metrics pages can give, each with only its fields of those `exporters`."""
    narrowed = (replace(s, fields=tuple(f for f in s.fields if f.source in exporters)) for s in signals)
    return tuple(s for s in narrowed if s.fields)


def names_of(signals: Iterable[Signal]) -> frozenset[str]:
    """Every metric name that the signals can be read from."""
    return frozenset(f.name for s in signals for f in s.fields)


def to_batch(
    samples: Samples,
    signals: Sequence[Signal],
    resolve: Resolve,
    *,
    source: str,
    at: float,
    problems: Sequence[str] = (),
    unknown_names: Sequence[str] = (),
) -> TelemetryBatch:
    """The samples as frames. `at` is the time of reading (seconds); `resolve` knows the declared names."""
    found = find_components(samples, resolve)
    reading = _Reading(samples, found, at)
    frames = {}
    for kind in KINDS:
        columns = [c for c in (reading.column(s) for s in signals if s.kind == kind) if c.present.any()]
        if columns:
            frames[kind] = reading.frame(kind, columns)
    return TelemetryBatch(
        source=source,
        at=at,
        frames=frames,
        problems=(*problems, *found.problems, *reading.problems()),
        unknown_names=tuple(sorted({*unknown_names, *found.unknown_names})),
        unknown=reading.unknown(),
    )


@dataclass(slots=True)
class _Column:
    """One signal of all components of its kind. `texts` gives the words of a string signal's codes."""

    signal: Signal
    value: Floats
    at: Floats
    present: Bools
    clash: Bools
    blank: Bools  # NaN, or the source's own mark for no value
    texts: dict[str, int] = field(default_factory=dict)

    @classmethod
    def empty(cls, signal: Signal, size: int) -> _Column:
        present, clash, blank = (np.zeros(size, dtype=np.bool_) for _ in range(3))
        return cls(signal, np.full(size, np.nan), np.full(size, -np.inf), present, clash, blank)


class _Reading:
    def __init__(self, samples: Samples, found: Components, at: float) -> None:
        self.samples, self.found, self.at = samples, found, at
        self.order = np.argsort(samples.name, kind="stable")
        self.codes = {name: code for code, name in enumerate(samples.names)}
        self.starts = np.searchsorted(samples.name[self.order], np.arange(len(samples.names) + 1))
        self.reasons: list[tuple[Signal, UnknownReason, str, Ints]] = []

    def column(self, signal: Signal) -> _Column:
        """Write the fields of a signal, the most preferred last, so that it stays."""
        size = len(self.found.keys[signal.kind])
        column = _Column.empty(signal, size)
        for source in reversed(signal.fields):
            if source.name in self.codes:
                self._write(column, source)
        return column

    def _write(self, column: _Column, source: SourceField) -> None:
        code = self.codes[source.name]
        rows = self.order[self.starts[code] : self.starts[code + 1]]
        target = self.found.of_place[column.signal.kind][self.samples.place[rows]]
        keep = target >= 0
        if source.labels:
            wanted = source.labels.items()
            keep &= self._of_places(rows, lambda labels: all(labels.get(k) == v for k, v in wanted)).astype(np.bool_)
        if source.value_label:
            keep &= self._of_places(rows, lambda labels: bool(labels.get(source.value_label))).astype(np.bool_)
        rows = rows[keep]
        if column.signal.counter and column.signal.kind == NODE:
            parts = self._of_places(rows, lambda labels: labels.get(_PART, ""))
            self._write_sum(column, source, [rows[parts == part] for part in np.unique(parts)])
        else:
            self._write_rows(column, source, rows)

    def _write_sum(self, column: _Column, source: SourceField, parts: Sequence[Ints]) -> None:
        """Add up a counter that a node keeps in parts (one series per memory controller)."""
        total = _Column.empty(column.signal, len(column.value))
        total.value[:] = 0.0
        for rows in parts:
            part = _Column.empty(column.signal, len(column.value))
            self._write_rows(part, source, rows)
            total.value += np.where(part.present, part.value, 0.0)
            np.maximum(total.at, part.at, out=total.at)
            total.present |= part.present
            total.clash |= part.clash
            total.blank |= part.blank
        for own, summed in (
            (column.value, total.value),
            (column.at, total.at),
            (column.present, total.present),
            (column.clash, total.clash),
            (column.blank, total.blank),
        ):
            own[total.present] = summed[total.present]

    def _write_rows(self, column: _Column, source: SourceField, rows: Ints) -> None:
        """Each component's newest sample. What a lesser field wrote goes, with its clashes, unless it is newer."""
        target, times = self.found.of_place[column.signal.kind][self.samples.place[rows]], self.samples.at[rows]
        fresh = times >= column.at[target]
        rows, target, times = rows[fresh], target[fresh], times[fresh]
        if len(times) and times.min() != times.max():
            by_time = np.argsort(times, kind="stable")
            rows, target, times = rows[by_time], target[by_time], times[by_time]
        values, blank = self._values(column, source, rows)
        column.value[target], column.at[target], column.present[target] = values, times, True
        column.blank[target] = blank
        kept = column.value[target]
        differs = (kept != values) & ~(np.isnan(kept) & np.isnan(values)) & (times == column.at[target])
        column.clash[target] = False
        column.clash[target[differs]] = True

    def _values(self, column: _Column, source: SourceField, rows: Ints) -> tuple[Floats, Bools]:
        """Values in the signal's unit, NaN for unknown; and which of those the source itself marked as no value."""
        signal = column.signal
        if source.value_label:
            said = pl.Series(self._of_places(rows, lambda labels: labels[source.value_label]).tolist(), dtype=pl.String)
            words = pl.select(clean(pl.lit(said), signal, source)).to_series().to_list()
            codes = [np.nan if w is None else column.texts.setdefault(w, len(column.texts)) for w in words]
            return np.array(codes, dtype=np.float64), np.ones(len(rows), dtype=np.bool_)
        raw = self.samples.value[rows]
        good = pl.select(clean(pl.lit(pl.Series(raw)), signal, source)).to_series()
        blank = np.isnan(raw)
        for low, high in BLANKS.get(source.source, ()):
            blank |= (raw >= low) & (raw <= high)
        for mark in signal.sentinels:
            blank |= raw == mark
        return good.cast(pl.Float64).fill_null(np.nan).to_numpy(), blank

    def _of_places(self, rows: Ints, ask: Callable[[Mapping[str, str]], object]) -> npt.NDArray[np.object_]:
        """What `ask` says of the labels of each sample; asked once per place."""
        places, inverse = np.unique(self.samples.place[rows], return_inverse=True)
        answers = np.array([ask(self.samples.places[p].labels) for p in places], dtype=np.object_)
        return answers[inverse]

    def frame(self, kind: str, columns: Sequence[_Column]) -> pl.DataFrame:
        """A row per component that said anything, cleaned."""
        seen, laggards = self._seen(columns)
        rows = np.flatnonzero(np.isfinite(seen))
        keys = [self.found.keys[kind][row] for row in rows]
        doubtful = np.zeros(len(seen), dtype=np.bool_)
        doubtful[list(self.found.doubtful[kind])] = True
        data: dict[str, pl.Series] = {
            "node": pl.Series([k[0] for k in keys], dtype=pl.String),
            "index": pl.Series([k[1] for k in keys], dtype=pl.String),
            "seen": pl.Series(seen[rows]),
        }
        for column, late in zip(columns, laggards, strict=True):
            good = self._clean(column, late, doubtful)
            data[column.signal.id] = _series(column, good, rows)
        return pl.DataFrame(data)

    def _seen(self, columns: Sequence[_Column]) -> tuple[Floats, list[tuple[Bools, Bools]]]:
        """When each row was last true, and per column the cells that are too (old, new) for their row."""
        latest_sane = self.at + FUTURE_TOLERANCE_S
        newest = np.full(len(columns[0].at), -np.inf)
        newest_sane = newest.copy()
        for column in columns:
            np.maximum(newest, column.at, out=newest)
            np.maximum(newest_sane, np.where(column.at <= latest_sane, column.at, -np.inf), out=newest_sane)
        seen = np.where(np.isfinite(newest_sane), newest_sane, newest)
        return seen, [
            (c.present & (c.at < seen - c.signal.max_age_s), c.present & (c.at > np.maximum(seen, latest_sane)))
            for c in columns
        ]

    def _clean(self, column: _Column, late: tuple[Bools, Bools], doubtful: Bools) -> Bools:
        """Which cells hold a value. The others that were present are noted with the first reason that fits."""
        nothing = np.isnan(column.value)
        bad = (
            (doubtful, UnknownReason.UNREADABLE, "of a GPU whose identity is in doubt"),
            (column.clash, UnknownReason.UNREADABLE, "duplicates that differ"),
            (late[0], UnknownReason.STALE, "older than the rest of the row"),
            (late[1], UnknownReason.FUTURE, "from the future"),
            (nothing & column.blank, UnknownReason.SENTINEL, "the source's mark for no value"),
            (nothing, UnknownReason.UNREADABLE, f"impossible for {_expected(column.signal)}"),
        )
        good = column.present.copy()
        for mask, reason, words in bad:
            hit = np.flatnonzero(good & mask)
            if len(hit):
                self.reasons.append((column.signal, reason, words, hit))
                good[hit] = False
        return good

    def problems(self) -> list[str]:
        said = []
        for signal, _, words, hit in self.reasons:
            keys = self.found.keys[signal.kind]
            named = some([name_of(keys[n], signal.kind) for n in hit[:4]])
            more = "" if len(hit) <= 4 else f" (of {len(hit)})"
            said.append(f"{signal.id}: {len(hit)} values not used, {words}: {named}{more}")
        return said

    def unknown(self) -> pl.DataFrame:
        """One row per cell that the source filled and we emptied, with the reason."""
        rows = []
        for signal, reason, _, hit in self.reasons:
            keys = self.found.keys[signal.kind]
            rows.append(
                pl.DataFrame(
                    {
                        "kind": [signal.kind] * len(hit),
                        "node": [keys[n][0] for n in hit],
                        "index": [keys[n][1] for n in hit],
                        "signal": [signal.id] * len(hit),
                        "reason": [reason.value] * len(hit),
                    }
                )
            )
        schema = dict.fromkeys(("kind", "node", "index", "signal", "reason"), pl.String)
        return pl.concat(rows) if rows else pl.DataFrame(schema=schema)


def _series(column: _Column, good: Bools, rows: Ints) -> pl.Series:
    """The cleaned column with its data type; null where there is no value."""
    keep, value = pl.Series(good[rows]), column.value[rows]
    kind = column.signal.type
    if kind == "str":
        words = [*column.texts, None]
        codes = np.where(good[rows], np.nan_to_num(value, nan=0.0), len(column.texts)).astype(np.int64)
        return pl.Series([words[c] for c in codes], dtype=pl.String)
    plain = pl.Series(np.where(good[rows], value, 0.0))
    if kind == "int":
        plain = plain.cast(pl.Int64)
    elif kind == "bool":
        plain = plain.cast(pl.Boolean)
    return plain.set(~keep, None)


def _expected(signal: Signal) -> str:
    """What a signal's values may be, in words."""
    low, high = signal.minimum, signal.maximum
    limits = (
        ""
        if low is None and high is None
        else f" of {'' if low is None else f'{low:g}'}..{'' if high is None else f'{high:g}'}"
    )
    return f"{signal.type}{limits}"
