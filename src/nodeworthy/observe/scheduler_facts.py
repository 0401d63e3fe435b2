"""What the scheduler says of the nodes' hardware, as telemetry like any other source's."""

from __future__ import annotations

from collections.abc import Iterable

import polars as pl

from nodeworthy.model.catalogue import Signal
from nodeworthy.model.fact import DTYPES, NODE
from nodeworthy.model.scheduler import SOURCE, SchedulerSnapshot
from nodeworthy.ports import TelemetryBatch


def facts_of(snapshot: SchedulerSnapshot, signals: Iterable[Signal]) -> TelemetryBatch:
    """One row a node; a signal's field `slurm:NAME` is the attribute NAME of
    `model.scheduler.SchedulerNode`, one of its `FIELDS`: the catalogue lets no other pass."""
    columns: dict[str, pl.Series] = {
        "node": pl.Series(list(snapshot.nodes), dtype=pl.String),
        "index": pl.repeat("", len(snapshot.nodes), dtype=pl.String, eager=True),
        "seen": pl.repeat(snapshot.taken_at, len(snapshot.nodes), dtype=pl.Float64, eager=True),
    }
    for signal in signals:
        field = next((f for f in signal.fields if f.source == SOURCE), None)
        if field is not None and signal.kind == NODE:
            values = [getattr(node, field.name) for node in snapshot.nodes.values()]
            columns[signal.id] = pl.Series(values, dtype=getattr(pl, DTYPES[signal.type]))
    return TelemetryBatch(SOURCE, snapshot.taken_at, {NODE: pl.DataFrame(columns)})
