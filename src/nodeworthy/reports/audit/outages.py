"""Periods in which nodes did no work, made from the scheduler's events. Theory of operation:

1. Each event has a *kind*, from its state. Powered-down cloud nodes and states that still take jobs are no outage and
   leave here.
2. The present state is the better witness: an open event of a node that now serves is closed as *unknown end* (it is
   not counted, and said); a node that is out now without an open event gets one, from the time of its mark.
3. Events of a node that overlap or follow each other within `JOIN_GAP_S` are one *outage*. Its cause is that of its
   first event whose cause is known, because later reasons overwrite earlier ones.
4. Lost time is the *union* of the events' intervals, so nothing counts twice. A drained node that still runs jobs
   works: its loss starts when the last job that ran at the drain's beginning has ended.
5. Outages of one cause that begin together on several nodes are *shared*: no single node is blamed for them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import polars as pl

from nodeworthy.decide.marks import Normalise
from nodeworthy.model.scheduler import BaseState, SchedulerNode
from nodeworthy.reports.audit.inputs import EVENTS, Gap, Window
from nodeworthy.reports.audit.reading import read_event

JOIN_GAP_S = 60
"""A node that was back for less than a minute was not back: slurmctld closes one event and opens the next within
seconds when a reason changes or a reboot starts."""

SHARED_SPAN_S = 120
SHARED_NODES = 5
"""Five nodes or more lost to one cause within two minutes of each other. A leaf switch or a power feed takes that
many at once, independent failures do not: at the highest published rate (6.5 per 1,000 node-days, arXiv:2410.21680)
1,000 nodes fail once in 3.7 hours."""

POWERED_FLAGS = frozenset({"POWERED_DOWN", "POWERING_DOWN", "POWERING_UP", "POWER_DOWN"})


def kind_of(base: BaseState, flags: frozenset[str]) -> str:
    """The kind of outage that a node state is; `powered` and `in-service` are none.

    >>> kind_of(BaseState.IDLE, frozenset({"DRAIN", "INVALID_REG"}))
    'invalid'
    >>> kind_of(BaseState.IDLE, frozenset({"CLOUD", "POWERED_DOWN"}))
    'powered'
    """
    if "REBOOT_ISSUED" in flags:
        return "reboot"
    if base in (BaseState.DOWN, BaseState.ERROR):
        return "down"
    if flags & POWERED_FLAGS and not flags & {"DRAIN", "FAIL"}:
        return "powered"
    if "NOT_RESPONDING" in flags:
        return "down"
    # INVALID_REG sets DRAIN too, and a reboot drains first: the more telling flag comes first.
    for flag, kind in _KINDS:
        if flag in flags:
            return kind
    return "in-service"


_KINDS = (
    ("INVALID_REG", "invalid"), ("REBOOT_REQUESTED", "reboot"), ("FAIL", "fail"), ("DRAIN", "drain"),
    ("MAINTENANCE", "planned"),
)  # fmt: skip
OUT_KINDS = ("down", "drain", "fail", "invalid", "reboot", "planned", "unknown")


def out_now(node: SchedulerNode) -> bool:
    """Whether the scheduler gives this node no new work for a reason other than power saving or a reservation. A
    reboot that was only asked for does not count: until the node drains it takes work."""
    kind = kind_of(node.base, node.flags)
    return kind in ("down", "drain", "fail", "invalid") or (
        kind == "reboot" and bool(node.flags & {"DRAIN", "REBOOT_ISSUED"})
    )


def node_frame(nodes: Mapping[str, SchedulerNode] | None) -> pl.DataFrame:
    """`node`, `gpus` (null: not known), `out` of the present fleet."""
    items: Iterable[SchedulerNode] = (nodes or {}).values()
    rows = [(n.name, n.gpus, out_now(n)) for n in items]
    return pl.DataFrame(rows, schema={"node": pl.String, "gpus": pl.Int32, "out": pl.Boolean}, orient="row")


def events_in_window(
    events: pl.DataFrame | None, nodes: Mapping[str, SchedulerNode] | None, window: Window
) -> tuple[pl.DataFrame, list[Gap]]:
    """The events that are outages, clipped to the window, reconciled with the present state.

    Columns of EVENTS plus `open` and `clipped` (it began before the window)."""
    gaps: list[Gap] = []
    table = events if events is not None else pl.DataFrame(schema=dict(EVENTS))
    table = table.filter((pl.col("node") != "") & pl.col("start").is_not_null() & pl.col("kind").is_in(OUT_KINDS))
    if nodes is not None:
        table, more = _reconcile(table, nodes, window)
        gaps += more
    late = pl.col("start") >= window.until
    over = pl.col("end").is_not_null() & (pl.col("end") <= window.since)
    return (
        table.filter(~late & ~over).with_columns(
            pl.col("end").is_null().alias("open"),
            (pl.col("start") < window.since).alias("clipped"),
            pl.col("start").alias("began"),
            pl.col("start").clip(lower_bound=window.since),
            pl.col("end").fill_null(window.until).clip(upper_bound=window.until),
        )
    ), gaps


def _reconcile(
    table: pl.DataFrame, nodes: Mapping[str, SchedulerNode], window: Window
) -> tuple[pl.DataFrame, list[Gap]]:
    gaps: list[Gap] = []
    fleet = node_frame(nodes)
    serving = fleet.filter(~pl.col("out"))["node"].implode()
    stale = pl.col("end").is_null() & pl.col("node").is_in(serving)
    left = table.filter(stale).height
    if left:
        gaps.append(
            Gap(
                f"{left} events never ended although their node serves now",
                "their length is not known, so they are not counted as lost",
            )
        )
        table = table.filter(~stale)
    gone = pl.col("end").is_null() & ~pl.col("node").is_in(fleet["node"].implode())
    vanished = table.filter(gone)["node"].n_unique()
    if vanished:
        gaps.append(
            Gap(
                f"{vanished} nodes with open events are no longer configured",
                "the time of their removal is not known, so these events are not counted as lost",
            )
        )
        table = table.filter(~gone)
    open_now = set(table.filter(pl.col("end").is_null())["node"])
    rows = [
        {
            "node": n.name, "start": _since(n, window), "end": None, "state": n.state,
            "reason": n.mark.reason if n.mark else "", "author": n.mark.user if n.mark else None, "kind": kind_of(n.base, n.flags),
        }
        for n in nodes.values()
        if out_now(n) and n.name not in open_now
    ]  # fmt: skip
    unmarked = sum(1 for r in rows if r["start"] is None)
    if unmarked:
        gaps.append(Gap(f"{unmarked} nodes are out now, nobody wrote since when", "their loss is not counted"))
    if rows:
        made = pl.DataFrame(rows, schema=dict(EVENTS)).filter(pl.col("start").is_not_null())
        table = pl.concat([table.select(list(EVENTS)), made])
    return table, gaps


def _since(node: SchedulerNode, window: Window) -> int | None:
    if node.mark is None or node.mark.at is None or node.mark.at > window.until:
        return None
    return int(node.mark.at)


def read_reasons(events: pl.DataFrame, normalise: Normalise) -> pl.DataFrame:
    """Adds `cause`, `title`, `reads`, `owner`; each distinct kind, text and author is read once."""
    keys = ["kind", "reason", "author"]
    rows = []
    for kind, reason, author in events.select(keys).unique().iter_rows():
        reading = read_event(kind, reason or "", author, normalise)
        rows.append((kind, reason, author, reading.cause, reading.title, reading.kind, reading.owner))
    schema = [*keys, "cause", "title", "reads", "owner"]
    table = pl.DataFrame(rows, schema=dict.fromkeys(schema, pl.String), orient="row")
    read = events.join(table, on=keys, how="left", nulls_equal=True)
    chosen = pl.col("kind").is_in(["reboot", "planned"]) & (pl.col("reads") != "fault")
    return read.with_columns(pl.when(chosen).then(pl.lit("planned")).otherwise(pl.col("reads")).alias("reads"))


def outages(events: pl.DataFrame, busy: pl.DataFrame, fleet: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Events to (outages, lost intervals).

    `busy`: `node`, `start` (of the event), `busy_until`. Outages have `node, start, end, open, clipped, cause, title,
    reads, owner, reason, author, then, seconds, lost, gpus, shared`; intervals have `node, outage, start, end`, do not
    overlap on a node, and their lengths add up to `lost`.
    """
    parts = events.sort("node", "start", "end").with_columns(
        pl.col("end").cum_max().shift(1).over("node").alias("reached")
    )
    new = pl.col("reached").is_null() | (pl.col("start") > pl.col("reached") + JOIN_GAP_S)
    parts = parts.with_columns(new.cast(pl.Int32).cum_sum().alias("outage"))
    table = _grouped(parts).join(fleet.select("node", "gpus"), on="node", how="left")
    lost = _lost_intervals(parts, busy)
    sums = lost.group_by("outage").agg((pl.col("end") - pl.col("start")).sum().alias("lost"))
    table = table.join(sums, on="outage", how="left").with_columns(pl.col("lost").fill_null(0))
    return _mark_shared(table), lost


def _grouped(parts: pl.DataFrame) -> pl.DataFrame:
    known = pl.col("reads") != "unknown"
    kept = ("cause", "title", "reads", "owner", "reason", "author")
    return (
        parts.group_by("outage", maintain_order=True)
        .agg(
            pl.col("node").first(),
            pl.col("start").min(),
            pl.col("began").min(),
            pl.col("end").max(),
            pl.col("open").any(),
            pl.col("clipped").first(),
            pl.col("kind").unique(maintain_order=True).alias("kinds"),
            pl.col("title").unique(maintain_order=True).alias("titles"),
            *(pl.coalesce(pl.col(c).filter(known).first(), pl.col(c).first()).alias(c) for c in kept),
        )
        .with_columns((pl.col("end") - pl.col("start")).alias("seconds"))
    )


def _lost_intervals(parts: pl.DataFrame, busy: pl.DataFrame) -> pl.DataFrame:
    """The union of the parts in which the node was empty; each instant belongs to the outage it lies in."""
    drains = pl.col("kind").is_in(["drain", "fail"])
    effective = (
        parts.join(busy, on=["node", "start"], how="left")
        .with_columns(
            pl.when(drains)
            .then(pl.max_horizontal("start", pl.coalesce("busy_until", "start")))
            .otherwise(pl.col("start"))
            .alias("start")
        )
        .filter(pl.col("end") > pl.col("start"))
        .sort("node", "start", "end")
    )
    reached = pl.col("end").cum_max().shift(1).over("node")
    return (
        effective.with_columns(pl.max_horizontal("start", pl.coalesce(reached, "start")).alias("start"))
        .filter(pl.col("end") > pl.col("start"))
        .select("node", "outage", "start", "end")
    )


def _mark_shared(table: pl.DataFrame) -> pl.DataFrame:
    """`shared`: this outage began within SHARED_SPAN_S of others of its cause, on at least SHARED_NODES nodes.

    Texts that we cannot read share a cause only where they are the same text."""
    cause = pl.when(pl.col("reads") == "unknown").then(pl.col("reason")).otherwise(pl.col("cause")).fill_null("")
    grouped = table.with_columns(cause.alias("same")).sort("same", "began")
    gap = (pl.col("began").diff() > SHARED_SPAN_S) | (pl.col("same") != pl.col("same").shift(1))
    grouped = grouped.with_columns(gap.fill_null(True).cast(pl.Int32).cum_sum().alias("burst"))
    together = pl.col("node").n_unique().over("burst") >= SHARED_NODES
    return grouped.with_columns(together.alias("shared")).drop("burst", "same").sort("start", "node")
