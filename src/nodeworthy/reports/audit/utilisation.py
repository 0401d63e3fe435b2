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

from nodeworthy.reports.audit.allocation import HOUR, held_in
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
    counted = jobs is not None and bool(jobs["gpus"].is_not_null().any())
    capacity = fleet.select("node", "gpus")
    parts: list[pl.DataFrame] = []
    slow: list[pl.DataFrame] = []
    days: dict[int, list[float]] = {}
    outside = 0.0
    # Pieces end at midnights, so that each lies in one day.
    for first, last in _pieces(telemetry.first, telemetry.last):
        seen = telemetry.node_hours.filter(pl.col("hour").is_between(first, last - 1))
        read = pl.Series([h for h in range(first, last) if h in telemetry.read], dtype=pl.Int32)
        slow.append(_slowed(seen, lost, first, last))
        if jobs is None or not counted:
            continue
        held, total = held_in(jobs, first, last, busy_now, capacity)
        did = _did(held.filter(pl.col("hour").is_in(read.implode())), seen)
        sums = [float(did[part].sum()) for part in _PARTS]
        day = days.setdefault(first // 24 * 24 * HOUR, [0.0] * 5)
        for k, value in enumerate([*sums, max(0.0, total - sum(sums))]):
            day[k] += value
        outside += _outside(seen, held)
        parts.append(_by_node(did))
    throttled = pl.concat(slow) if slow else _slowed(telemetry.node_hours, lost, 0, 0)
    told = pl.concat(parts) if parts else None
    known = jobs is not None and not jobs.lazy().select(pl.col("gpus").is_null().any()).collect().item()
    return _result(telemetry, told, throttled, days, outside if known else None)


def _pieces(first: int, last: int) -> list[tuple[int, int]]:
    starts = [first, *range((first // LONGEST + 1) * LONGEST, last, LONGEST)] if last > first else []
    return list(zip(starts, [*starts[1:], last], strict=True)) if starts else []


def _did(held: pl.DataFrame, seen: pl.DataFrame) -> pl.DataFrame:
    """`held` with what became of it; rows on partitioned nodes are left out (untold)."""
    joined = held.join(seen, on=["node", "hour"], how="left").filter(~pl.col("partitioned").fill_null(False))
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


def _slowed(seen: pl.DataFrame, lost: pl.DataFrame, first: int, last: int) -> pl.DataFrame:
    """`node, looked, hours, first, last`: hours of a day with known clock reasons in which the node was in service."""
    out = (
        lost.filter((pl.col("start") < last * HOUR) & (pl.col("end") > first * HOUR))
        .select(
            "node",
            pl.int_ranges(
                pl.max_horizontal(pl.col("start") // HOUR, pl.lit(first)),
                pl.min_horizontal((pl.col("end") - 1) // HOUR + 1, pl.lit(last)),
            ).alias("hour"),
        )
        .explode("hour")
        .select("node", pl.col("hour").cast(pl.Int32))
        .unique()
    )
    known = seen.filter(pl.col("throttled").is_not_null()).join(out, on=["node", "hour"], how="anti")
    slow = pl.col("throttled") > 0
    return known.group_by("node").agg(
        pl.len().cast(pl.Int64).alias("looked"),
        pl.col("throttled").cast(pl.Float64).sum().alias("hours"),
        pl.col("hour").filter(slow).min().alias("first"),
        pl.col("hour").filter(slow).max().alias("last"),
    )


def _result(
    telemetry: Telemetry,
    told: pl.DataFrame | None,
    throttled: pl.DataFrame,
    days: dict[int, list[float]],
    outside: float | None,
) -> Utilisation:
    totals: list[float | None] = [None] * 5
    if told is not None:
        totals = [sum(day[k] for day in days.values()) for k in range(5)]
    slow = _whole(throttled, ["looked", "hours"]).filter(pl.col("hours") >= SLOW_LEAST)
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
        outside_gpu_hours=None if told is None else outside,
        held_node_hours=None if told is None else int(told["hours"].sum()),
        seen_node_hours=None if told is None else int(told["hours"].sum()) - int(told["dark_hours"].sum()),
        idle_of_nobody_gpu_hours=nobody,
        users=() if told is None else _users(told),
        throttled_node_hours=float(throttled["hours"].sum()) if throttled.height else None,
        troubles=(*(_gone(told) if told is not None else ()), *_rows(slow, "throttled", "hours")),
        dark_nodes=() if told is None else _dark(told),
        days=tuple(UseDay(start, *parts) for start, parts in sorted(days.items())),
    )


def _whole(daily: pl.DataFrame, sums: list[str]) -> pl.DataFrame:
    """Days of a node put together."""
    return daily.group_by("node").agg(pl.col(sums).sum(), pl.col("first").min(), pl.col("last").max())


def _rows(nodes: pl.DataFrame, kind: str, hours: str) -> list[NodeTrouble]:
    return [
        NodeTrouble(row["node"], kind, float(row[hours]), int(row["first"]) * HOUR, int(row["last"]) * HOUR)
        for row in nodes.sort([hours, "node"], descending=[True, False]).iter_rows(named=True)
    ]


def _gone(told: pl.DataFrame) -> list[NodeTrouble]:
    return _rows(_whole(told, ["gone"]).filter(pl.col("gone") >= GONE_LEAST), "gone", "gone")


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
