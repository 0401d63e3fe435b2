"""What the GPUs that Slurm gave to jobs really did: jobs against telemetry, by node and hour. Theory of operation:

For each node and hour jobs held `held` GPU-hours (see `allocation`), and telemetry (`inputs.NODE_HOURS`) says how many
GPUs it saw and for how much of the hour a kernel ran on them. Then

    covered = min(held, seen)      busy = min(busy, covered)      idle = covered - busy
    gone    = held - present, where GPUs are missing on a node that otherwise speaks
    dark    = the rest of held: nobody saw these GPUs in this hour

so busy + idle + gone + dark = held, hour by hour. What cannot be laid on a node and hour, or lies in hours that the
server did not answer for, or on nodes with MIG instances (whose parts Slurm counts as GPUs), is *untold*. Nothing that
was not seen is idle. An hour in which a GPU was seen at all stands for the whole hour. Where jobs held a part of a node,
its busy GPUs are taken to be theirs, so idle is a lower bound there.

*Busy* is DCGM's utilisation: the share of time in which at least one kernel ran on the GPU. It says nothing of how well
the GPU was used; gaps between kernels (loading data, waiting for another node) are idle.

Idle hours have an owner only where one user alone held GPUs of the node in that hour. An hour of slowed clocks counts
only while the node was in service. Everything goes day by day, so memory is that of a day.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import polars as pl

from nodeworthy.reports.audit.allocation import HELD, HOUR, held_in
from nodeworthy.reports.audit.inputs import Gap, Telemetry

LONGEST = 24
GONE_LEAST = 0.5
"""GPU-hours on a node, before its missing GPUs are worth a row: less is a restart of the exporter."""
SLOW_LEAST = 1.0
"""Hours of slowed clocks, before a node is worth a row: shorter ones are transients of load."""
_PARTS = ("busy", "idle", "gone", "dark")


@dataclass(frozen=True, slots=True)
class UserUse:
    """GPU-hours that telemetry saw, on nodes that the user had alone in that hour."""

    user: str
    seen_gpu_hours: float
    idle_gpu_hours: float


@dataclass(frozen=True, slots=True)
class NodeTrouble:
    """`kind`: gone (GPU-hours given to jobs on GPUs that the exporter did not see) or throttled (hours in service in
    which a GPU was slowed). `first`, `last`: hours in which it was so (POSIX seconds)."""

    node: str
    kind: str
    hours: float
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class DarkNode:
    """Node-hours in which jobs held GPUs, and those of them without telemetry."""

    node: str
    held_node_hours: int
    dark_node_hours: int


@dataclass(frozen=True, slots=True)
class UseDay:
    """GPU-hours held on one UTC day (`start`, POSIX seconds), by what they did."""

    start: int
    busy: float
    idle: float
    gone: float
    dark: float
    untold: float


@dataclass(frozen=True, slots=True)
class Utilisation:
    """In GPU-hours, of the whole hours inside the window. `allocated` = busy + idle + gone + dark + untold; all None
    where there is no job history with GPU counts. `outside`: busy beyond what jobs held; None where some jobs have no
    GPU count. `throttled_node_hours`: None where no server told clock event reasons."""

    hours_asked: int
    hours_read: int
    allocated_gpu_hours: float | None
    busy_gpu_hours: float | None
    idle_gpu_hours: float | None
    gone_gpu_hours: float | None
    dark_gpu_hours: float | None
    untold_gpu_hours: float | None
    outside_gpu_hours: float | None
    held_node_hours: int | None
    seen_node_hours: int | None
    idle_of_nobody_gpu_hours: float | None
    users: tuple[UserUse, ...]
    throttled_node_hours: float | None
    troubles: tuple[NodeTrouble, ...]
    dark_nodes: tuple[DarkNode, ...]
    days: tuple[UseDay, ...]


def utilisation(
    telemetry: Telemetry,
    jobs: pl.DataFrame | None,
    busy_now: Collection[str] | None,
    lost: pl.DataFrame,
    fleet: pl.DataFrame,
) -> Utilisation:
    """`lost`: `node, start, end` of outages; `fleet`: `node, gpus`. Never raises on odd data."""
    told, days, outside = None, dict[int, list[float]](), None
    if jobs is not None and jobs["gpus"].is_not_null().any():
        told, days, outside = _daily(telemetry, jobs, busy_now, fleet.select("node", "gpus"))
        if jobs["gpus"].null_count():
            outside = None
    slowed = None if telemetry.slowed is None else _in_service(telemetry.slowed, lost)
    return _result(telemetry, told, slowed, days, outside)


def _daily(
    telemetry: Telemetry, jobs: pl.DataFrame, busy_now: Collection[str] | None, capacity: pl.DataFrame
) -> tuple[pl.DataFrame, dict[int, list[float]], float | None]:
    """Rows per day, node and user; GPU-hours by day (start) as `_PARTS` and untold; GPU-hours outside of jobs."""
    parts = [_by_node(_did(pl.DataFrame(schema=HELD), telemetry.node_hours.clear().cast({"node": pl.String})))]
    days: dict[int, list[float]] = {}
    outside = 0.0
    ordered = telemetry.node_hours.sort("hour")
    # Pieces end at midnights, so that each lies in one day.
    for first, last in _pieces(telemetry.first, telemetry.last):
        begin, end = (int(ordered["hour"].search_sorted(h)) for h in (first, last))
        seen = ordered[begin:end].with_columns(pl.col("node").cast(pl.String))
        read = pl.Series([h for h in range(first, last) if h in telemetry.read], dtype=pl.Int32)
        held, total = held_in(jobs, first, last, busy_now, capacity)
        did = _did(held.filter(pl.col("hour").is_in(read.implode())), seen)
        sums = [float(did[part].sum()) for part in _PARTS]
        days[first // LONGEST * LONGEST * HOUR] = [*sums, max(0.0, total - sum(sums))]
        outside += _outside(seen, held)
        parts.append(_by_node(did))
    return pl.concat(parts), days, outside


def _pieces(first: int, last: int) -> list[tuple[int, int]]:
    starts = [first, *range((first // LONGEST + 1) * LONGEST, last, LONGEST)] if last > first else []
    return list(zip(starts, [*starts[1:], last], strict=True)) if starts else []


def _did(held: pl.DataFrame, seen: pl.DataFrame) -> pl.DataFrame:
    """`held` with what became of it; rows in doubt and on partitioned nodes are left out (untold)."""
    joined = held.join(seen, on=["node", "hour"], how="left").filter(
        ~pl.col("partitioned").fill_null(False) & ~pl.col("doubt")
    )
    number = [pl.col(c).cast(pl.Float64).fill_null(0.0) for c in ("busy", "seen", "present")]
    covered = pl.min_horizontal("held", "seen")
    missing = (pl.col("held") - pl.max_horizontal("present", "seen")).clip(lower_bound=0.0)
    return (
        joined.with_columns(*number)
        .with_columns(
            pl.min_horizontal("busy", covered).alias("busy"),
            covered.alias("covered"),
            pl.when(pl.col("present") > 0).then(missing).otherwise(0.0).alias("gone"),
        )
        .with_columns((pl.col("covered") - pl.col("busy")).alias("idle"))
        .with_columns((pl.col("held") - pl.col("covered") - pl.col("gone")).clip(lower_bound=0.0).alias("dark"))
    )


def _outside(seen: pl.DataFrame, held: pl.DataFrame) -> float:
    """GPU-hours in which kernels ran beyond what jobs held there."""
    joined = seen.filter(~pl.col("partitioned")).join(held, on=["node", "hour"], how="left")
    joined = joined.filter(~pl.col("doubt").fill_null(False))
    beyond = (pl.col("busy").cast(pl.Float64) - pl.col("held").fill_null(0.0)).clip(lower_bound=0.0)
    return float(joined.select(beyond.sum()).item())


def _by_node(did: pl.DataFrame) -> pl.DataFrame:
    """One row per node and user (null: several) of a day."""
    missing = pl.col("gone") > 0
    return did.group_by("node", "user").agg(
        *(pl.col(c).sum() for c in ("held", "covered", *_PARTS)),
        pl.len().cast(pl.Int64).alias("hours"),
        (pl.col("seen") <= 0).sum().cast(pl.Int64).alias("dark_hours"),
        pl.col("hour").filter(missing).min().alias("first"),
        pl.col("hour").filter(missing).max().alias("last"),
    )


def _in_service(slowed: pl.DataFrame, lost: pl.DataFrame) -> pl.DataFrame:
    """`node, hours, first, last`: slowed hours in which the node was not out."""
    named = slowed.with_columns(pl.col("node").cast(pl.String))
    out = (
        lost.join(named.select("node").unique(), on="node", how="semi")
        .select("node", pl.int_ranges(pl.col("start") // HOUR, (pl.col("end") - 1) // HOUR + 1).alias("hour"))
        .explode("hour")
        .select("node", pl.col("hour").cast(pl.Int32))
        .unique()
    )
    hours = named.join(out, on=["node", "hour"], how="anti").group_by("node")
    share = pl.col("share").cast(pl.Float64)
    return hours.agg(
        share.sum().alias("hours"), pl.col("hour").min().alias("first"), pl.col("hour").max().alias("last")
    )


def _result(
    telemetry: Telemetry,
    told: pl.DataFrame | None,
    slowed: pl.DataFrame | None,
    days: dict[int, list[float]],
    outside: float | None,
) -> Utilisation:
    totals: list[float | None] = [None] * 5
    if told is not None:
        totals = [sum(day[k] for day in days.values()) for k in range(5)]
    slow = [] if slowed is None else _rows(slowed.filter(pl.col("hours") >= SLOW_LEAST), "throttled", "hours")
    nobody = None if told is None else float(told.filter(pl.col("user").is_null())["idle"].sum())
    return Utilisation(
        hours_asked=telemetry.last - telemetry.first,
        hours_read=len(telemetry.read),
        allocated_gpu_hours=None if told is None else sum(t or 0.0 for t in totals),
        busy_gpu_hours=totals[0],
        idle_gpu_hours=totals[1],
        gone_gpu_hours=totals[2],
        dark_gpu_hours=totals[3],
        untold_gpu_hours=totals[4],
        outside_gpu_hours=outside,
        held_node_hours=None if told is None else int(told["hours"].sum()),
        seen_node_hours=None if told is None else int(told["hours"].sum()) - int(told["dark_hours"].sum()),
        idle_of_nobody_gpu_hours=nobody,
        users=() if told is None else _users(told),
        throttled_node_hours=None if slowed is None else float(slowed["hours"].sum()),
        troubles=(*(_gone(told) if told is not None else ()), *slow),
        dark_nodes=() if told is None else _dark(told),
        days=tuple(UseDay(start, *parts) for start, parts in sorted(days.items())),
    )


def _rows(nodes: pl.DataFrame, kind: str, hours: str) -> list[NodeTrouble]:
    return [
        NodeTrouble(row["node"], kind, float(row[hours]), int(row["first"]) * HOUR, int(row["last"]) * HOUR)
        for row in nodes.sort([hours, "node"], descending=[True, False]).iter_rows(named=True)
    ]


def _gone(told: pl.DataFrame) -> list[NodeTrouble]:
    nodes = told.group_by("node").agg(pl.col("gone").sum(), pl.col("first").min(), pl.col("last").max())
    return _rows(nodes.filter(pl.col("gone") >= GONE_LEAST), "gone", "gone")


def _users(told: pl.DataFrame) -> tuple[UserUse, ...]:
    rows = (
        told.drop_nulls("user")
        .group_by("user")
        .agg(pl.col("covered").sum(), pl.col("idle").sum())
        .filter(pl.col("covered") > 0)
        .sort(["idle", "user"], descending=[True, False])
    )
    return tuple(UserUse(str(u), float(c), float(i)) for u, c, i in rows.iter_rows())


def _dark(told: pl.DataFrame) -> tuple[DarkNode, ...]:
    rows = (
        told.group_by("node")
        .agg(pl.col("hours").sum(), pl.col("dark_hours").sum())
        .filter(pl.col("dark_hours") > 0)
        .sort(["dark_hours", "node"], descending=[True, False])
    )
    return tuple(DarkNode(str(n), int(h), int(d)) for n, h, d in rows.iter_rows())


def gaps(use: Utilisation, capacity_gpu_hours: float | None) -> list[Gap]:
    """What telemetry could not tell, and sums that cannot be. `capacity_gpu_hours` is of the hours asked for."""
    said: list[Gap] = []
    if use.hours_read < use.hours_asked:
        unread = use.hours_asked - use.hours_read
        said.append(
            Gap(
                f"{unread:,} of {use.hours_asked:,} hours were not read from the metrics server",
                "what GPUs did then cannot be told",
            )
        )
    if use.allocated_gpu_hours is None:
        said.append(
            Gap("no job history with GPU counts", "what allocated GPUs did is unknown; slowed clocks are known")
        )
        return said
    if use.held_node_hours and use.dark_nodes:
        dark = sum(n.dark_node_hours for n in use.dark_nodes)
        said.append(
            Gap(
                f"{dark:,} of {use.held_node_hours:,} allocated node-hours on {len(use.dark_nodes):,} nodes have no telemetry",
                "their GPUs are neither busy nor idle in this report",
            )
        )
    if use.untold_gpu_hours and use.untold_gpu_hours > 0.001 * use.allocated_gpu_hours:
        said.append(
            Gap(
                f"{use.untold_gpu_hours:,.0f} allocated GPU-hours cannot be laid on a node and an hour that was read",
                "jobs without an end or a readable node list, uneven jobs, MIG nodes, hours not read",
            )
        )
    if capacity_gpu_hours is not None and use.allocated_gpu_hours > capacity_gpu_hours * 1.001:
        said.append(
            Gap(
                f"jobs held {use.allocated_gpu_hours:,.0f} GPU-hours, more than the {capacity_gpu_hours:,.0f} there are",
                "what is beyond a node's GPUs counts as not to be told",
            )
        )
    return said
