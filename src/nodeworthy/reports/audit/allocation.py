"""Which node held how many GPUs for whom, hour by hour: from jobs, a piece of time after the other.

Accounting gives a job's GPUs in total and its nodes folded. They are laid on its nodes in equal parts, which is exact
for whole-node jobs and for `--gpus-per-node`. Where that cannot be, nothing is guessed: the hours are *untold*.

- A job whose GPUs do not divide evenly among its nodes leaves these node-hours in doubt. One whose node list cannot be
  read is on no node.
- A job without an end runs only where the scheduler says that the node is busy now (accounting keeps jobs that it lost
  sight of as running for ever).
- A node with more GPUs given to jobs than it has was not used as accounting says: that hour is in doubt.
"""

from __future__ import annotations

from collections.abc import Collection

import polars as pl

from nodeworthy.reports.audit.hostlists import expand

HOUR = 3600
SLACK = 1e-3
"""GPU-hours: rounding in the sum of many jobs of one hour."""
HELD = {"node": pl.String, "hour": pl.Int32, "held": pl.Float64, "user": pl.String, "doubt": pl.Boolean}


def held_in(
    jobs: pl.DataFrame, first: int, last: int, busy_now: Collection[str] | None, capacity: pl.DataFrame
) -> tuple[pl.DataFrame, float]:
    """(`node, hour, held, user, doubt`: GPU-hours per node and hour; GPU-hours of all jobs) for the hours `first` to
    `last`. `doubt`: what this node held then is not what the row says.

    `user` is null where several held GPUs of the node in that hour. `busy_now` None: not known, open jobs count.
    `capacity`: `node, gpus`, null where not known. What jobs held on no known node is in the total alone."""
    since, until = first * HOUR, last * HOUR
    ran = (
        jobs.lazy()
        .filter((pl.col("gpus") > 0) & (pl.col("start") < until) & (pl.col("end").is_null() | (pl.col("end") > since)))
        .select(
            pl.col("nodelist").cast(pl.String),
            pl.col("user").cast(pl.String),
            pl.col("gpus").cast(pl.Float64),
            pl.col("end").is_null().alias("open"),
            pl.col("start").clip(lower_bound=since),
            pl.col("end").fill_null(until).clip(upper_bound=until),
        )
        .filter(pl.col("end") > pl.col("start"))
        .collect(engine="streaming")
    )
    total = float((ran["gpus"] * (ran["end"] - ran["start"])).sum()) / HOUR
    members = expand(ran["nodelist"]).with_columns(pl.len().over("nodelist").alias("nodes"))
    placed = ran.join(members, on="nodelist").with_columns((pl.col("gpus") % pl.col("nodes") != 0).alias("uneven"))
    if busy_now is not None:
        placed = placed.filter(~pl.col("open") | pl.col("node").is_in(list(busy_now)))
    begin = pl.max_horizontal("start", pl.col("hour") * HOUR)
    end = pl.min_horizontal("end", (pl.col("hour") + 1) * HOUR)
    hours = (
        placed.with_columns(pl.int_ranges(pl.col("start") // HOUR, (pl.col("end") - 1) // HOUR + 1).alias("hour"))
        .explode("hour")
        .with_columns(((end - begin) * pl.col("gpus") / pl.col("nodes") / HOUR).alias("held"))
        .group_by("node", pl.col("hour").cast(pl.Int32))
        .agg(
            pl.col("held").sum(),
            pl.col("uneven").any(),
            pl.when((pl.col("user").n_unique() == 1) & pl.col("user").is_not_null().all())
            .then(pl.col("user").first())
            .alias("user"),
        )
    )
    beyond = (pl.col("held") > pl.col("gpus") + SLACK).fill_null(False)
    known = hours.join(capacity, on="node", how="left").with_columns((pl.col("uneven") | beyond).alias("doubt"))
    return known.select(list(HELD)).cast(HELD), total  # type: ignore[arg-type]
