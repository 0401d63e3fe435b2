"""What jobs say of nodes: who was busy, whose jobs a lost node killed, and where jobs die fast.

**Black holes.** A broken node that fails jobs at once gets the next job at once, and so eats a queue. One user's
broken array looks alike, so jobs are not counted one by one. The unit is *one user on one node on one day*; it is
*hit* when at least half of that user's single-node jobs there failed within FAST_S. A hit is expected as often as the
same user is hit on other nodes (shrunk towards the fleet's rate with the weight of PRIOR_UNITS units), so a user
whose jobs fail everywhere explains his own hits. A node is named when

- at least MIN_USERS different users were hit on it, with at least MIN_JOBS fast failures,
- the sum of hits over a day, or over the window, exceeds its expectation with a Poisson tail below
  ALPHA / (number of node-days, or of nodes, looked at) (Bonferroni), and
- Wilson's lower bound of its hit share is above the share of its peers.

Jobs on several nodes blame no single node here. A fast failure is FAILED, NODE_FAIL or BOOT_FAIL; jobs that a person
cancelled, that ran out of time or memory, or were preempted say nothing of the node.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import polars as pl

from nodeworthy.reports.audit.hostlists import expand
from nodeworthy.reports.audit.inputs import Window
from nodeworthy.reports.audit.reliability import poisson_excess, share

FAST_S = 120
"""Two minutes: longer than a prolog, a container pull from a warm cache and an import, shorter than any useful work.
73 % of failed tasks fail in their first ten minutes anyway (Alibaba Aegis, NSDI 2025), so a longer limit
would mostly count programs' own errors."""
PRIOR_UNITS = 5.0
MIN_USERS = 3
MIN_JOBS = 5
ALPHA = 0.01
FAST_STATES = ("FAILED", "NODE_FAIL", "BOOT_FAIL", "LAUNCH_FAILED")
LOST_WORK_CAP_S = 1800
"""Work lost with a killed job: min(run time, 30 min) x GPUs, the estimator of arXiv:2410.21680 (hourly checkpoints)."""
CHUNK = 200_000


@dataclass(frozen=True, slots=True)
class BlackHole:
    """A node on which jobs of several users died fast. `day` is set when one day alone shows it."""

    node: str
    users: int
    fast_failures: int
    jobs: int
    hits: int
    units: int
    expected: float
    p: float
    day: int | None
    last: int


def busy_until(
    jobs: pl.DataFrame | None, events: pl.DataFrame, window: Window, busy_now: Collection[str]
) -> pl.DataFrame:
    """For each drain event, when the last job that ran at its start ended: `node, start, busy_until`.

    A job without an end runs only where the scheduler says that the node is busy now (`busy_now`): accounting keeps
    jobs that it lost sight of as running for ever.
    Lists are unfolded chunk by chunk and cut to the drained nodes at once, so memory stays bounded."""
    empty = pl.DataFrame(schema={"node": pl.String, "start": pl.Int64, "busy_until": pl.Int64})
    drains = events.filter(pl.col("kind").is_in(["drain", "fail"])).select("node", "start").unique()
    if jobs is None or drains.is_empty():
        return empty
    names = drains.select("node").unique()
    ran = jobs.lazy().filter(pl.col("start").is_not_null() & (pl.col("width") > 0)).select("nodelist", "start", "end")
    lists = ran.select(pl.col("nodelist").unique()).collect(engine="streaming")["nodelist"]
    found = [empty]
    for first in range(0, len(lists), CHUNK):
        members = expand(lists[first : first + CHUNK]).join(names, on="node", how="semi")
        if members.is_empty():
            continue
        intervals = (
            ran.join(members.lazy().with_columns(pl.col("nodelist").cast(jobs.schema["nodelist"])), on="nodelist")
            .select(
                "node",
                pl.col("start").alias("job_start"),
                pl.when(pl.col("end").is_null() & pl.col("node").is_in(list(busy_now)))
                .then(window.until)
                .otherwise(pl.col("end"))
                .alias("job_end"),
            )
            .collect(engine="streaming")
        )
        found.append(_running_at(drains, intervals.drop_nulls("job_end")))
    return pl.concat(found).group_by("node", "start").agg(pl.col("busy_until").max())


def _running_at(drains: pl.DataFrame, intervals: pl.DataFrame) -> pl.DataFrame:
    """The latest end among jobs that began at or before each drain. Ends are made cumulative so that one as-of
    join answers it."""
    ends = intervals.sort("node", "job_start").with_columns(
        pl.col("job_end").cum_max().over("node").alias("busy_until")
    )
    return (
        drains.sort("start")
        .join_asof(
            ends.select("node", "job_start", "busy_until").sort("job_start"),
            left_on="start", right_on="job_start", by="node", check_sortedness=False,
        )
        .filter(pl.col("busy_until") > pl.col("start"))
        .select("node", "start", "busy_until")
    )  # fmt: skip


def allocated_gpu_seconds(jobs: pl.DataFrame, window: Window) -> float | None:
    """GPU-seconds that jobs held inside the window; None where no job has a GPU count."""
    length = (
        pl.col("end").fill_null(window.until).clip(upper_bound=window.until)
        - pl.col("start").clip(lower_bound=window.since)
    ).clip(lower_bound=0)
    row = (
        jobs.lazy()
        .filter(pl.col("start").is_not_null())
        .select(
            (length * pl.col("gpus")).sum().cast(pl.Float64).alias("held"),
            pl.col("gpus").is_not_null().any().alias("known"),
        )
        .collect(engine="streaming")
        .row(0)
    )
    return float(row[0]) if row[1] else None


def attempts(jobs: pl.DataFrame, window: Window) -> int:
    """How many attempts of jobs ran in the window."""
    ran = (pl.col("start") < window.until) & (pl.col("end").is_null() | (pl.col("end") >= window.since))
    return int(jobs.lazy().select(ran.sum()).collect(engine="streaming").item())


def outcomes(jobs: pl.DataFrame, window: Window) -> pl.DataFrame:
    """`state, jobs, gpu_hours` of attempts that ended in the window, most GPU-hours first."""
    elapsed = (pl.col("end") - pl.col("start").clip(lower_bound=window.since)).clip(lower_bound=0)
    return (
        jobs.lazy()
        .filter(pl.col("end").is_between(window.since, window.until))
        .group_by(pl.col("state").cast(pl.String))
        .agg(pl.len().alias("jobs"), ((elapsed * pl.col("gpus")).sum() / 3600).cast(pl.Float64).alias("gpu_hours"))
        .sort("gpu_hours", "jobs", descending=True)
        .collect(engine="streaming")
    )


def killed_by_nodes(jobs: pl.DataFrame, window: Window) -> pl.DataFrame:
    """Attempts that ended in NODE_FAIL: `job, end, width, gpus, lost_work, node`. `node` is the one that accounting
    names, or the only one; null for a job of several nodes without `FailedNode` (before Slurm 23.02)."""
    lost = (pl.col("end") - pl.col("start")).clip(0, LOST_WORK_CAP_S) * pl.col("gpus")
    plain = ~pl.col("nodelist").cast(pl.String).str.contains(r"[\[\],]")
    named = pl.col("failed_node").is_not_null() & (pl.col("failed_node") != "")
    return (
        jobs.lazy()
        .filter((pl.col("state").cast(pl.String) == "NODE_FAIL") & pl.col("end").is_between(window.since, window.until))
        .select(
            "job",
            "end",
            "width",
            "gpus",
            lost.alias("lost_work"),
            pl.when(named)
            .then(pl.col("failed_node"))
            .when((pl.col("width") == 1) & plain)
            .then(pl.col("nodelist").cast(pl.String))
            .alias("node"),
        )
        .collect(engine="streaming")
    )


def black_holes(jobs: pl.DataFrame, window: Window) -> list[BlackHole]:
    """Nodes that eat jobs, worst first. See the module for the rule."""
    units = _units(jobs, window)
    if units.is_empty():
        return []
    units = _with_expectation(units)
    whole = _scored(units, ["node"])
    daily = _scored(units, ["node", "day"])
    peers = _mean(units["hit"])
    named: dict[str, BlackHole] = {}
    for frame, day in ((whole, False), (daily, True)):
        for row in frame.filter(pl.col("p") < ALPHA / frame.height).sort("p").iter_rows(named=True):
            low = share(int(row["hits"]), int(row["units"])).low or 0.0
            if row["users"] >= MIN_USERS and row["fast"] >= MIN_JOBS and low > peers and (
                row["node"] not in named
            ):  # fmt: skip
                named[row["node"]] = BlackHole(
                    node=row["node"], users=row["users"], fast_failures=row["fast"], jobs=row["jobs"],
                    hits=row["hits"], units=row["units"], expected=row["expected"], p=row["p"],
                    day=row["day"] * 86400 if day else None, last=row["last"],
                )  # fmt: skip
    return sorted(named.values(), key=lambda hole: (hole.p, -hole.fast_failures))


def _units(jobs: pl.DataFrame, window: Window) -> pl.DataFrame:
    fast = pl.col("state").cast(pl.String).is_in(FAST_STATES) & ((pl.col("end") - pl.col("start")) <= FAST_S)
    telling = pl.col("state").cast(pl.String).is_in([*FAST_STATES, "COMPLETED", "TIMEOUT", "OUT_OF_MEMORY"])
    return (
        jobs.lazy()
        .filter((pl.col("width") == 1) & pl.col("end").is_between(window.since, window.until) & telling)
        .filter(pl.col("start").is_not_null())
        .group_by(pl.col("nodelist").alias("node"), "user", (pl.col("end") // 86400).cast(pl.Int32).alias("day"))
        .agg(
            pl.len().cast(pl.Int32).alias("jobs"),
            fast.sum().cast(pl.Int32).alias("fast"),
            pl.col("end").filter(fast).max().alias("last"),
        )
        .with_columns((pl.col("fast") * 2 >= pl.col("jobs")).alias("hit"))
        .collect(engine="streaming")
    )


def _with_expectation(units: pl.DataFrame) -> pl.DataFrame:
    """`expected`: how likely this user's unit is hit, judged by his units on all other nodes."""
    base = _mean(units["hit"])
    here = units.group_by("node", "user").agg(pl.len().alias("n"), pl.col("hit").sum().alias("h"))
    here = here.with_columns(
        pl.col("n").sum().over("user").alias("all_n"), pl.col("h").sum().over("user").alias("all_h")
    ).with_columns(
        ((pl.col("all_h") - pl.col("h") + base * PRIOR_UNITS) / (pl.col("all_n") - pl.col("n") + PRIOR_UNITS)).alias(
            "expected"
        )
    )
    return units.join(here.select("node", "user", "expected"), on=["node", "user"], nulls_equal=True)


def _mean(flags: pl.Series) -> float:
    return int(flags.sum()) / max(1, len(flags))


def _scored(units: pl.DataFrame, keys: list[str]) -> pl.DataFrame:
    scored = units.group_by(keys).agg(
        pl.len().alias("units"),
        pl.col("hit").sum().alias("hits"),
        pl.col("expected").sum(),
        pl.col("user").filter("hit").n_unique().alias("users"),
        pl.col("jobs").sum(),
        pl.col("fast").sum(),
        pl.col("last").max(),
    )
    p = poisson_excess(scored["hits"].to_numpy(), scored["expected"].to_numpy())
    return scored.with_columns(pl.Series("p", p), pl.col("node").cast(pl.String))
