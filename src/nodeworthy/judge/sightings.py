"""GPUs that are seen where they cannot be: one UUID in two places, one address with two GPUs, sources that disagree.

A healthy fleet has none, so the look is over whole columns, and only the nodes in which it finds something become
sightings (`model.sighting`), of which `model.gpu_identity` says what contradicts. Most often two targets of the
exporters' list are one host: then one machine's faults would be held against another.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import polars as pl

from nodeworthy.judge.frames import Frames, Table
from nodeworthy.judge.locate import ADDRESS
from nodeworthy.model.fact import GPU, KEY_COLUMNS
from nodeworthy.model.gpu_identity import GpuTable
from nodeworthy.model.sighting import Doubt, GpuSeen, NameKind, Observed

UUID: Final = "gpu_uuid"
MOST_NODES: Final = 200  # so many nodes in doubt are looked at in one turn: more have one cause, which these show


def gpu_doubts(frames: Frames) -> list[Doubt]:
    """What contradicts of the GPUs' places now. Nothing on a fleet where all is in its place."""
    table = frames.tables.get(GPU)
    if table is None or not {UUID, ADDRESS} <= set(table.frame.columns):
        return []
    nodes = _suspicious(table)
    return GpuTable(_sightings(table, nodes, frames.at)).doubts if nodes else []


def _suspicious(table: Table) -> list[str]:
    frame, marks = table.frame, []
    if frame[UUID].null_count() < frame.height:
        marks.append(frame[UUID].is_duplicated() & frame[UUID].is_not_null())
    if frame[ADDRESS].null_count() < frame.height:
        # the text of both as one key: half the time of a struct of them
        place = frame.select(pl.concat_str("node", pl.lit(" "), ADDRESS)).to_series()
        marks.append(place.is_duplicated() & place.is_not_null())
    said = [table.parts[source].values[UUID] for source in table.suppliers.get(UUID, ())]
    marks += [(said[0] != other).fill_null(False) for other in said[1:]]
    odd = [frame["node"].filter(mark) for mark in marks if mark.any()]
    return pl.concat(odd).unique(maintain_order=True).head(MOST_NODES).to_list() if odd else []


def _sightings(table: Table, nodes: list[str], now: float) -> Iterator[tuple[str, Observed]]:
    """What each source sees in each of the nodes."""
    rows = table.frame["node"].is_in(nodes)
    for source in dict.fromkeys(s for name in (UUID, ADDRESS) for s in table.suppliers.get(name, ())):
        part = table.parts[source]
        given = [part.values[name] for name in (UUID, ADDRESS) if name in part.values.columns]
        seen = table.frame.select(KEY_COLUMNS).with_columns(*given, part.seen.alias("seen")).filter(rows)
        for (node,), own in seen.group_by("node", maintain_order=True):
            cards = tuple(
                GpuSeen(row.get(UUID) or "", row.get(ADDRESS) or "", int(row["index"]))
                for row in own.iter_rows(named=True)
                if row.get(UUID) or row.get(ADDRESS)
            )
            if cards:
                at = max(own["seen"].drop_nulls().to_list(), default=now)
                yield str(node), Observed(source, at, NameKind.EXPORTER, str(node), gpus=cards)
