"""Frames: what is known now of every declared component, one columnar table per kind.

Rows come from the fleet file, never from what happens to answer: a GPU that vanished is a row of unknowns.
Columns are the signals and features of the catalogue, `class.*` for what is expected, and `seen.SOURCE`.

Several sources may give one signal. Within a source the newest row wins; between sources the one that the
signal names first in the catalogue wins, and another fills in only where the first is unknown. A value whose
row was seen longer ago than the signal's `max_age_s` (or, of a source that is asked more seldom, than it may take), or
in the future, is unknown. Why a row of a source
is unknown is kept per (source, row) as a small number (`State`), so that each check can say why it cannot tell.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import Final, Protocol

import polars as pl

from nodeworthy.errors import BadRequest
from nodeworthy.judge.clean import guard
from nodeworthy.model.catalogue import Catalogue, Signal
from nodeworthy.model.fact import DTYPES, GPU, KEY_COLUMNS, KINDS, NIC, NODE, class_column, seen_column
from nodeworthy.model.finding import UnknownReason
from nodeworthy.model.fleet import MOST_PARTS, Fleet, NodeClass
from nodeworthy.model.nodeset import unfold

# Clocks of hosts in one site differ by less than a second with any time service; a scrape may stamp at its end.
# Five seconds pass both; a stamp further ahead comes from a broken clock and says nothing of the age of the value.
FUTURE_TOLERANCE_S: Final = 5.0


SAMPLE: Final = 5  # names of nodes kept as examples of many, for people


class State(IntEnum):
    """What a source knows of a row now."""

    FRESH = 0
    NEVER_SEEN = 1
    STALE = 2
    FUTURE = 3
    SOURCE_DOWN = 4


REASONS: Final = {
    State.NEVER_SEEN: UnknownReason.NEVER_SEEN,
    State.STALE: UnknownReason.STALE,
    State.FUTURE: UnknownReason.FUTURE,
    State.SOURCE_DOWN: UnknownReason.SOURCE_DOWN,
}


class Reading(Protocol):
    """What one source said at one time (ports.TelemetryBatch)."""

    @property
    def source(self) -> str: ...
    @property
    def at(self) -> float: ...
    @property
    def frames(self) -> Mapping[str, pl.DataFrame]: ...
    @property
    def problems(self) -> tuple[str, ...]: ...
    @property
    def unknown_names(self) -> tuple[str, ...]: ...


@dataclass(frozen=True, slots=True)
class Loss:
    """`count` rows of a source that are unknown in one way, and the nodes of the first of them."""

    state: State
    count: int
    nodes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Part:
    """What one source gives to one kind: its values (stale ones removed), `seen` and `State` per row.

    `blind` is true where the state is not FRESH; `losses` counts those rows by state.
    """

    values: pl.DataFrame
    seen: pl.Series
    states: pl.Series
    blind: pl.Series
    losses: tuple[Loss, ...] = ()

    @property
    def all_fresh(self) -> bool:
        return not self.losses


@dataclass(frozen=True, slots=True)
class Table:
    """One kind. `suppliers`: signal → its sources, the preferred one first."""

    frame: pl.DataFrame
    parts: Mapping[str, Part] = field(default_factory=dict)
    suppliers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    features: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class SourceNote:
    """What a source said about itself: why it is down, what could not be used, names that nobody declared."""

    down: str = ""
    problems: tuple[str, ...] = ()
    unknown_names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Frames:
    """All kinds at one time, for one revision of the fleet."""

    at: float
    fleet_revision: str
    tables: Mapping[str, Table]
    notes: Mapping[str, SourceNote] = field(default_factory=dict)

    def with_features(self, columns: Mapping[str, pl.DataFrame]) -> Frames:
        """These frames with feature columns added; each frame must have the rows of its kind, in order."""
        tables = dict(self.tables)
        for kind, frame in columns.items():
            table = tables[kind]
            joined = table.frame.hstack(frame.get_columns())
            tables[kind] = replace(table, frame=joined, features=frozenset(frame.columns))
        return replace(self, tables=tables)


_declared: dict[str, dict[str, pl.DataFrame]] = {}


def declare(fleet: Fleet) -> dict[str, pl.DataFrame]:
    """Kind → the declared rows: key columns and `class.*`. Remembered for the last revision."""
    known = _declared.get(fleet.revision)
    if known is None:
        _declared.clear()
        known = _declared[fleet.revision] = {kind: _declare(fleet, kind) for kind in KINDS}
    return known


def _declare(fleet: Fleet, kind: str) -> pl.DataFrame:
    attributes = sorted({name for c in fleet.classes.values() for name in c.attributes()})
    indexes = {name: _indexes(c, kind) for name, c in fleet.classes.items()}
    nodes: list[str] = []
    index: list[str] = []
    classes: list[str | None] = []
    for node in fleet.nodes.values():
        own = indexes.get(node.node_class, ("",) if kind == NODE else ())
        nodes += [node.name] * len(own)
        index += own
        classes += [node.node_class] * len(own)
    rows = pl.DataFrame(
        {"node": nodes, "index": index, "_class": classes}, schema=dict.fromkeys(("node", "index", "_class"), pl.String)
    )
    expected = {name: [c.attributes().get(name) for c in fleet.classes.values()] for name in attributes}
    table = {"_class": list(fleet.classes)} | {class_column(n): v for n, v in expected.items()}
    by_class = pl.DataFrame({n: _column(v) for n, v in table.items()})
    if by_class.is_empty():
        return rows.drop("_class")
    return rows.join(by_class, on="_class", how="left", maintain_order="left").drop("_class")


def _column(values: Sequence[object]) -> pl.Series:
    """One expectation over all classes; where classes disagree on the type, numbers win and the rest is unknown."""
    kinds = {type(v) for v in values if v is not None}
    if not kinds or kinds == {str}:
        return pl.Series(values, dtype=pl.String)
    if kinds == {bool}:
        return pl.Series(values, dtype=pl.Boolean)
    numbers = [v if isinstance(v, (int, float)) and not isinstance(v, bool) else None for v in values]
    return pl.Series(numbers, dtype=pl.Float64)


def _indexes(node_class: NodeClass, kind: str) -> tuple[str, ...]:
    if kind == NODE:
        return ("",)
    if kind == GPU:
        return tuple(str(i) for i in range(node_class.gpus))
    nics = node_class.expect.get("nics")
    if kind != NIC or nics is None or isinstance(nics, bool):
        return ()
    if isinstance(nics, str):
        try:
            return unfold(nics)
        except BadRequest:  # the fleet file refuses it; a recorded fleet that has it must not stop the turn
            return ()
    return tuple(str(i) for i in range(int(nics))) if 0 <= nics <= MOST_PARTS else ()


def build(
    fleet: Fleet,
    catalogue: Catalogue,
    readings: Iterable[Reading],
    now: float,
    *,
    down: Mapping[str, str] | None = None,
    patience: Mapping[str, float] | None = None,
) -> Frames:
    """The frames at `now` from what the sources said, oldest reading first.

    `down`: source → why it could not be read this time. A source that is down and has no reading at all is
    still named, so that what depends on it is unknown for that reason. `patience`: source → for how many seconds its last
    word stands at least, because it is not asked more often.
    """
    by_source: dict[str, list[Reading]] = {name: [] for name in down or {}}
    for reading in readings:
        by_source.setdefault(reading.source, []).append(reading)
    tables = {
        kind: _table(rows, kind, catalogue, by_source, now, down or {}, patience or {})
        for kind, rows in declare(fleet).items()
    }
    notes = {
        source: SourceNote(
            (down or {}).get(source, ""),
            tuple(dict.fromkeys(p for r in given for p in r.problems)),
            tuple(dict.fromkeys(n for r in given for n in r.unknown_names)),
        )
        for source, given in by_source.items()
    }
    return Frames(now, fleet.revision, tables, notes)


@dataclass(frozen=True, slots=True)
class Latest:
    """The last that a source said of each component, made by `latest`."""

    source: str
    at: float
    frames: Mapping[str, pl.DataFrame]
    problems: tuple[str, ...]
    unknown_names: tuple[str, ...]


def latest(previous: Reading | None, new: Reading) -> Reading:
    """The new reading, and of components that it does not mention what was said before.

    So a rack that falls silent grows stale, which is something else than never seen. The new row of a component
    replaces the old one whole, also where its time stamp is odd: a stamp from the future must not win for ever.
    """
    if previous is None:
        return new
    frames = dict(previous.frames)
    for kind, frame in new.frames.items():
        before = _usable([frames[kind]]) if kind in frames else None
        now = _usable([frame])
        if before is None or before.is_empty() or _same_keys(now, before):
            frames[kind] = now
        else:
            silent = before.join(now.select(KEY_COLUMNS), on=KEY_COLUMNS, how="anti", maintain_order="left")
            frames[kind] = pl.concat([silent, now], how="diagonal_relaxed") if silent.height else now
    return Latest(new.source, new.at, frames, new.problems, new.unknown_names)


def _table(
    rows: pl.DataFrame,
    kind: str,
    catalogue: Catalogue,
    by_source: Mapping[str, Sequence[Reading]],
    now: float,
    down: Mapping[str, str],
    patience: Mapping[str, float],
) -> Table:
    signals = {s.id: s for s in catalogue.signals.values() if s.kind == kind}
    parts: dict[str, Part] = {}
    for source, readings in by_source.items():
        frames = [r.frames[kind] for r in readings if kind in r.frames]
        if frames or source in down:
            patient = _patient(signals, patience.get(source, 0.0))
            parts[source] = _part(rows, _usable(frames), patient, now, source in down)
    suppliers: dict[str, tuple[str, ...]] = {}
    columns: list[pl.Series] = []
    for name, signal in signals.items():
        sources = _by_priority(signal, [s for s, part in parts.items() if name in part.values.columns])
        if sources:
            suppliers[name] = sources
            columns.append(_first_known([parts[s].values[name] for s in sources]))
        else:
            columns.append(pl.Series(name, dtype=getattr(pl, DTYPES[signal.type])).clear(rows.height))
    seen = [part.seen.alias(seen_column(source)) for source, part in parts.items()]
    return Table(rows.hstack([*columns, *seen]), parts, suppliers)


def _patient(signals: Mapping[str, Signal], least_s: float) -> Mapping[str, Signal]:
    """The signals, none of which ages faster than that."""
    if all(s.max_age_s >= least_s for s in signals.values()):
        return signals
    return {name: replace(s, max_age_s=max(s.max_age_s, least_s)) for name, s in signals.items()}


def _by_priority(signal: Signal, sources: Sequence[str]) -> tuple[str, ...]:
    named = list(dict.fromkeys(f.source for f in signal.fields))
    return tuple(sorted(sources, key=lambda s: named.index(s) if s in named else len(named)))


def _first_known(columns: Sequence[pl.Series]) -> pl.Series:
    first = columns[0]
    if len(columns) == 1 or first.null_count() == 0:
        return first
    return pl.select(pl.coalesce([pl.lit(c) for c in columns])).to_series().alias(first.name)


def _usable(frames: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """One frame of a source with its key columns and `seen` in the right types; rows without a key are dropped."""
    good: list[pl.DataFrame] = []
    for frame in frames:
        if not {*KEY_COLUMNS, "seen"} <= set(frame.columns):
            continue
        good.append(
            frame.with_columns(
                pl.col("node").cast(pl.String),
                pl.col("index").cast(pl.String),
                pl.col("seen").cast(pl.Float64, strict=False),
            )
        )
    if not good:
        return pl.DataFrame(schema={"node": pl.String, "index": pl.String, "seen": pl.Float64})
    return good[0] if len(good) == 1 else pl.concat(good, how="diagonal_relaxed")


def _align(rows: pl.DataFrame, given: pl.DataFrame, now: float) -> pl.DataFrame:
    """The given values at the declared rows, in their order.

    Of several rows of one component the newest that is not ahead of time; one ahead of time only if alone.
    """
    if _same_keys(given, rows):
        return given
    sane = pl.col("seen") <= now + FUTURE_TOLERANCE_S
    newest = given.filter(pl.col("seen").is_finite()).sort([sane, "seen"], maintain_order=True)
    newest = newest.unique(KEY_COLUMNS, keep="last", maintain_order=True)
    return rows.select(KEY_COLUMNS).join(newest, on=KEY_COLUMNS, how="left", maintain_order="left")


def _same_keys(a: pl.DataFrame, b: pl.DataFrame) -> bool:
    return a.height == b.height and all((a[k] == b[k]).all(ignore_nulls=False) for k in KEY_COLUMNS)


def _part(rows: pl.DataFrame, given: pl.DataFrame, signals: Mapping[str, Signal], now: float, down: bool) -> Part:
    aligned = _align(rows, given, now)
    names = [n for n in aligned.columns if n in signals]
    ages = sorted({signals[n].max_age_s for n in names}) or [120.0]
    seen = aligned["seen"]
    states = _states(seen, now, ages[0], down)
    fresh = states.max() == State.FRESH
    columns = [guard(aligned[name], signals[name]) for name in names]
    if not fresh:
        good = {age: seen.is_between(now - age, now + FUTURE_TOLERANCE_S).fill_null(False) for age in ages}
        columns = [
            c if c.null_count() == len(c) else _only(c, good[signals[c.name].max_age_s]) for c in columns
        ]  # fmt: skip
    values = pl.DataFrame(columns) if columns else pl.DataFrame()
    return Part(values, seen, states, states != State.FRESH, () if fresh else _losses(states, rows["node"]))


def _losses(states: pl.Series, nodes: pl.Series) -> tuple[Loss, ...]:
    found: list[Loss] = []
    for state in REASONS:
        rows = (states == state).arg_true()
        if len(rows):
            found.append(Loss(state, len(rows), tuple(dict.fromkeys(nodes[row] for row in rows.head(SAMPLE)))))
    return tuple(found)


def _only(column: pl.Series, good: pl.Series) -> pl.Series:
    return pl.select(pl.when(pl.lit(good)).then(pl.lit(column))).to_series().alias(column.name)


def _states(seen: pl.Series, now: float, max_age: float, down: bool) -> pl.Series:
    low, high = seen.min(), seen.max()
    if (
        seen.null_count() == 0
        and seen.is_finite().all()
        and isinstance(low, float)
        and isinstance(high, float)
        and now - max_age <= low
        and high <= now + FUTURE_TOLERANCE_S
    ):
        return pl.repeat(int(State.FRESH), len(seen), dtype=pl.UInt8, eager=True)
    old = State.SOURCE_DOWN if down else State.STALE
    never = State.SOURCE_DOWN if down else State.NEVER_SEEN
    at = pl.lit(seen)
    code = (
        pl.when(at.is_null() | ~at.is_finite())
        .then(int(never))
        .when(at > now + FUTURE_TOLERANCE_S)
        .then(int(State.FUTURE))
        .when(at < now - max_age)
        .then(int(old))
        .otherwise(int(State.FRESH))
    )
    return pl.select(code.cast(pl.UInt8)).to_series().alias("state")
