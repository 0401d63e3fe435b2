"""What the kernel said near each outage: evidence that accounting lacks.

Only lines that came by kernel transport, that name an origin, and that are errors count (a tenant could forge the
rest). An event belongs to an outage of its node when it lies between 10 minutes before its beginning and 5 minutes
after it, the attribution window of arXiv:2410.21680, or inside the outage. Repeats of one code on one node within an
hour are one row.

Two answers matter: outages whose mark does not tell why, where the kernel does; and events that took nobody's node out.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import polars as pl

from nodeworthy.reports.audit.inputs import KernelEvent, Window

BEFORE_S = 600
AFTER_S = 300
REPEAT_S = 3600
UNNOTICED_S = 86400
"""A node that went on for a day after such an event was not taken out for it."""


@dataclass(frozen=True, slots=True)
class Noticed:
    """An event (with its repeats) and the outage it belongs to. `cause` is what the mark says; None: there was no
    outage within a day, so nobody took the node out."""

    node: str
    at: float
    kind: str
    code: str
    times: int
    message: str
    cause: str | None
    told: bool


@dataclass(frozen=True, slots=True)
class KernelEvidence:
    """`told_by_kernel`: outages whose mark does not tell why and whose kernel log does. `unnoticed`: events after which
    the node went on for a day or more."""

    events: int
    nodes: int
    outages_with_event: int
    told_by_kernel: int
    unnoticed: int
    rows: tuple[Noticed, ...]


def evidence(events: Iterable[KernelEvent], outages: pl.DataFrame, window: Window) -> KernelEvidence:
    """Kernel events of the window against its outages; newest first, unnoticed ones before the others."""
    inside = [e for e in events if window.since - BEFORE_S <= e.at < window.until]
    spans: dict[str, list[tuple[int, int, str, str, int]]] = {}
    for row in outages.iter_rows(named=True):
        spans.setdefault(row["node"], []).append((row["began"], row["end"], row["title"], row["reads"], row["outage"]))
    rows: list[Noticed] = []
    with_event: set[int] = set()
    told: set[int] = set()
    for event, times in _without_repeats(inside):
        near = _outage_of(event, spans.get(event.node, []))
        if near is not None:
            with_event.add(near[4])
            if near[3] == "unknown":
                told.add(near[4])
        rows.append(
            Noticed(
                event.node, event.at, event.kind, event.code, times, event.message,
                cause=None if near is None else near[2], told=near is not None and near[3] == "unknown",
            )
        )  # fmt: skip
    # An event of the last day may still be noticed.
    unnoticed = [r for r in rows if r.cause is None and r.at <= window.until - UNNOTICED_S]
    rest = [r for r in rows if r not in set(unnoticed)]
    ordered = sorted(unnoticed, key=lambda r: -r.at) + sorted(rest, key=lambda r: (not r.told, -r.at))
    return KernelEvidence(
        events=len(inside),
        nodes=len({e.node for e in inside}),
        outages_with_event=len(with_event),
        told_by_kernel=len(told),
        unnoticed=len(unnoticed),
        rows=tuple(ordered),
    )


def _without_repeats(events: list[KernelEvent]) -> list[tuple[KernelEvent, int]]:
    kept: dict[tuple[str, str, str], tuple[KernelEvent, int, float]] = {}
    found: list[tuple[KernelEvent, int]] = []
    for event in sorted(events, key=lambda e: e.at):
        key = (event.node, event.kind, event.code)
        first, times, last = kept.get(key, (event, 0, event.at))
        if event.at - last > REPEAT_S:
            found.append((first, times))
            first, times = event, 0
        kept[key] = (first, times + 1, event.at)
    return found + [(first, times) for first, times, _ in kept.values()]


def _outage_of(
    event: KernelEvent, spans: list[tuple[int, int, str, str, int]]
) -> tuple[int, int, str, str, int] | None:
    """The outage that the event lies in or just before; otherwise the next one within a day."""
    for span in spans:
        if span[0] - BEFORE_S <= event.at <= span[1] + AFTER_S:
            return span
    later = [span for span in spans if 0 <= span[0] - event.at <= UNNOTICED_S]
    return min(later, default=None)
