"""Nodes that keep failing, and what happens after a return.

**Lemons.** Kokolis et al. (HPCA 2025, arXiv:2410.21680, section IV-A) call *lemons* nodes that repeatedly fail jobs
and yet pass checks and repair; of their signals accounting holds `out_count`, `multi_node_node_fails` and
`single_node_node_fails`. Their thresholds were set by hand and are not published, so a test takes their place:

- a *failure* is an outage that somebody or something marked as a fault, or in which the node was down, failed or
  invalid without any reason that we can read; or a job that ended in NODE_FAIL naming the node while no outage of it
  was near (10 min before to 5 min after, the paper's attribution window), so that nothing counts twice;
- planned outages and *shared* ones (see `outages`) blame no single node;
- expected failures = the pooled rate of all *other* nodes x this node's time in service;
- named are nodes with at least MIN_FAILURES failures whose Poisson tail survives Benjamini-Hochberg at Q: of the named
  nodes about one in a hundred may be innocent.

The score is observed / expected, and every event behind it is listed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
from scipy import stats

from nodeworthy.reports.audit.inputs import Window
from nodeworthy.reports.audit.reliability import Estimate, poisson_excess, share

MIN_FAILURES = 3
Q = 0.01
BEFORE_S = 600
AFTER_S = 300
RETURN_S = 7 * 86400
"""A node that fails again within seven days of its return has probably returned unrepaired: the longest job of the
published fleets lasts seven days (arXiv:2410.21680), so each returned node meets at most one job of any length before
that."""
EVENTS_SHOWN = 12


@dataclass(frozen=True, slots=True)
class Failure:
    at: int
    what: str
    seconds: int | None
    reason: str


@dataclass(frozen=True, slots=True)
class Lemon:
    """A node that failed more often than its peers can explain. `score` = failures / expected."""

    node: str
    failures: int
    expected: float
    score: float
    q: float
    causes: tuple[tuple[str, int], ...]
    jobs_killed: int
    lost_gpu_hours: float | None
    in_service: bool | None
    events: tuple[Failure, ...]


@dataclass(frozen=True, slots=True)
class Repeats:
    """How many returns were followed by another failure within `days`."""

    days: float
    returns: int
    failed_again: int
    same_cause: int
    share: Estimate
    by_cause: tuple[tuple[str, int, int], ...]  # cause title of the first outage, returns, failed again
    nodes: tuple[tuple[str, int], ...]


def failures(outages: pl.DataFrame) -> pl.DataFrame:
    """The outages that count as a failure of their own node."""
    broke = pl.col("kinds").list.eval(pl.element().is_in(["down", "fail", "invalid"])).list.any()
    fault = (pl.col("reads") == "fault") | ((pl.col("reads") == "unknown") & broke)
    return outages.filter(fault & ~pl.col("shared") & ~pl.col("clipped"))


def kills_outside(kills: pl.DataFrame, outages: pl.DataFrame) -> pl.DataFrame:
    """NODE_FAIL jobs whose node had no outage near their end: one row per node and end."""
    named = kills.filter(pl.col("node").is_not_null()).unique(["node", "end"]).with_row_index("kill")
    near = named.join(outages.select("node", pl.col("start"), pl.col("end").alias("out_end")), on="node").filter(
        (pl.col("end") >= pl.col("start") - AFTER_S) & (pl.col("end") <= pl.col("out_end") + BEFORE_S)
    )
    return named.join(near.select("kill"), on="kill", how="anti").drop("kill")


def lemons(outages: pl.DataFrame, kills: pl.DataFrame | None, fleet: pl.DataFrame, window: Window) -> tuple[Lemon, ...]:
    """Lemons, worst first. Without a list of nodes, the nodes that appear in the records are the fleet."""
    own = failures(outages).select(
        "node", pl.col("began").alias("at"), pl.col("title").alias("what"), "seconds", "reason"
    )
    if kills is not None and kills.height:
        extra = kills_outside(kills, outages).select(
            "node",
            pl.col("end").alias("at"),
            pl.lit("killed a job (NODE_FAIL)").alias("what"),
            pl.lit(None, pl.Int64).alias("seconds"),
            pl.lit("").alias("reason"),
        )
        own = pl.concat([own, extra], how="vertical_relaxed")
    if own.is_empty():
        return ()
    table = _tested(own, outages, fleet, window)
    named = table.filter((pl.col("failures") >= MIN_FAILURES) & (pl.col("q") < Q)).sort("q", "node")
    killed = dict(kills.drop_nulls("node").group_by("node").len().iter_rows()) if kills is not None else {}
    out = dict(fleet.select("node", "out").iter_rows())
    return tuple(_lemon(row, own, killed, out) for row in named.iter_rows(named=True))


def _tested(own: pl.DataFrame, outages: pl.DataFrame, fleet: pl.DataFrame, window: Window) -> pl.DataFrame:
    lost = outages.group_by("node").agg(
        pl.col("lost").sum(), (pl.col("lost") * pl.col("gpus")).sum().alias("lost_gpu_s"), pl.col("gpus").first()
    )
    counts = own.group_by("node").agg(pl.len().alias("failures"))
    nodes = pl.concat([fleet.select("node"), lost.select("node"), counts.select("node")]).unique()
    table = (
        nodes.join(counts, on="node", how="left")
        .join(lost, on="node", how="left")
        .with_columns(pl.col("failures").fill_null(0), pl.col("lost").fill_null(0))
        .with_columns((window.seconds - pl.col("lost")).clip(lower_bound=1).alias("exposure"))
    )
    k, t = table["failures"].to_numpy().astype(float), table["exposure"].to_numpy().astype(float)
    # Half a failure for the peers: where they had none, their rate is small, not zero.
    rate = (k.sum() - k + 0.5) / np.maximum(t.sum() - t, 1.0)
    p = poisson_excess(k, rate * t)
    q = np.asarray(stats.false_discovery_control(p, method="bh"))
    return table.with_columns(pl.Series("expected", rate * t), pl.Series("q", q))


def _lemon(row: dict[str, object], own: pl.DataFrame, killed: dict[str, int], out: dict[str, bool]) -> Lemon:
    node = str(row["node"])
    events = own.filter(pl.col("node") == node).sort("at", descending=True)
    causes = events.group_by("what").len().sort("len", "what", descending=[True, False])
    count, expected = int(str(row["failures"])), float(str(row["expected"]))
    gpu_seconds = row["lost_gpu_s"] if row["gpus"] is not None else None
    return Lemon(
        node=node,
        failures=count,
        expected=expected,
        score=count / expected,
        q=float(str(row["q"])),
        causes=tuple((str(a), int(b)) for a, b in causes.iter_rows()),
        jobs_killed=killed.get(node, 0),
        lost_gpu_hours=None if gpu_seconds is None else float(str(gpu_seconds)) / 3600,
        in_service=(not out[node]) if node in out else None,
        events=tuple(
            Failure(r["at"], r["what"], r["seconds"], r["reason"] or "")
            for r in events.head(EVENTS_SHOWN).iter_rows(named=True)
        ),
    )


def repeats(outages: pl.DataFrame, window: Window) -> Repeats:
    """Failures that came back. Returns in the last RETURN_S are not counted: their time is not up."""
    failed = failures(outages).sort("node", "start")
    table = failed.with_columns(
        pl.col("start").shift(-1).over("node").alias("again"),
        pl.col("cause").shift(-1).over("node").alias("again_cause"),
    ).filter(~pl.col("open") & (pl.col("end") <= window.until - RETURN_S))
    table = table.with_columns((pl.col("again") - pl.col("end") <= RETURN_S).fill_null(False).alias("repeat"))
    again = table.filter("repeat")
    by_cause = (
        table.group_by("title")
        .agg(pl.len().alias("returns"), pl.col("repeat").sum().alias("again"))
        .sort("again", "returns", "title", descending=[True, True, False])
    )
    nodes = again.group_by("node").len().sort("len", "node", descending=[True, False]).head(10)
    return Repeats(
        days=RETURN_S / 86400,
        returns=table.height,
        failed_again=again.height,
        same_cause=again.filter(pl.col("cause") == pl.col("again_cause")).height,
        share=share(again.height, table.height),
        by_cause=tuple((str(a), int(b), int(c)) for a, b, c in by_cause.iter_rows()),
        nodes=tuple((str(a), int(b)) for a, b in nodes.iter_rows()),
    )
