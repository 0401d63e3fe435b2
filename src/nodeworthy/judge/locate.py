"""Which GPU a log line speaks of: from the PCI address in the line to the GPU that was last seen there.

A GPU that fell off its bus is gone from telemetry at the moment its line is read, so the last known place counts;
a place is forgotten only when another GPU is seen in it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

import polars as pl

from nodeworthy.judge.frames import Frames
from nodeworthy.model.event import LogEvent
from nodeworthy.model.fact import GPU
from nodeworthy.model.names import pci_address

ADDRESS: Final = "gpu_pci_address"
EMPTY: Final = pl.DataFrame(schema={"node": pl.String, "index": pl.String, ADDRESS: pl.String})


def places(frames: Frames, before: pl.DataFrame) -> pl.DataFrame:
    """`node`, `index` and PCI address of every GPU: as seen now, else as last seen."""
    table = frames.tables.get(GPU)
    if table is None or ADDRESS not in table.frame.columns:
        return before
    now = table.frame.select("node", "index", ADDRESS)
    if now[ADDRESS].null_count() == now.height:
        return before
    if now[ADDRESS].null_count() == 0 or before.is_empty():
        return now.drop_nulls(ADDRESS)
    seen = now.drop_nulls(ADDRESS)
    unseen = now.filter(pl.col(ADDRESS).is_null()).select("node", "index")
    known = unseen.join(before, on=["node", "index"], maintain_order="left")
    # after a reboot without a GPU the others move up: what was at a place is forgotten when another is seen there
    return pl.concat([seen, known.join(seen, on=["node", ADDRESS], how="anti", maintain_order="left")])


def locate(events: Iterable[LogEvent], known: pl.DataFrame) -> tuple[LogEvent, ...]:
    """The events with their GPU's index, where it is known. An address that two GPUs had tells nothing."""
    found = tuple(events)
    nodes = {e.node for e in found if e.gpu is None and e.node is not None}
    if not nodes or known.is_empty():
        return found
    at: dict[tuple[str, str], list[int]] = {}
    for node, index, address in known.filter(pl.col("node").is_in(sorted(nodes))).iter_rows():
        place = pci_address(address)
        if place is not None and index.isdigit():
            at.setdefault((node, place), []).append(int(index))
    return tuple(_placed(event, at) for event in found)


def _placed(event: LogEvent, at: dict[tuple[str, str], list[int]]) -> LogEvent:
    address = pci_address(event.component)
    if event.gpu is not None or event.node is None or address is None:
        return event
    indexes = at.get((event.node, address), [])
    return replace(event, gpu=indexes[0]) if len(indexes) == 1 else event
