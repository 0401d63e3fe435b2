"""The audit as one value: frames in, `Audit` out. Pure: the clock, the files and Slurm are elsewhere.

Hours: *node-hours lost* are the union of a node's outages inside the window (see `outages`); *GPU-hours lost* are
those times the GPUs that the node has now. A node that is no longer configured has an unknown number of GPUs: its
node-hours count and its GPU-hours are unknown, and said to be. Powered-down cloud nodes and time under reservations
are not lost.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import polars as pl

from nodeworthy.reports.audit import jobs as job_tables
from nodeworthy.reports.audit.inputs import AuditInput, Gap, Window
from nodeworthy.reports.audit.jobs import BlackHole
from nodeworthy.reports.audit.kernel import KernelEvidence, evidence
from nodeworthy.reports.audit.lemons import Lemon, Repeats, failures, lemons, repeats
from nodeworthy.reports.audit.outages import events_in_window, node_frame, outages, read_reasons
from nodeworthy.reports.audit.people import NeedsPerson, needs_person
from nodeworthy.reports.audit.present import OutNow, out_nodes, stale_texts
from nodeworthy.reports.audit.reliability import (
    Estimate,
    mean_repair,
    median_repair,
    mtbf,
    rate_per_1000_node_days,
)
from nodeworthy.reports.audit.utilisation import Utilisation, utilisation
from nodeworthy.reports.audit.utilisation import gaps as use_gaps

SCHEMA = "nodeworthy.audit/1"
HOUR = 3600.0


@dataclass(frozen=True, slots=True)
class CauseRow:
    """What one cause took. `gpu_hours` is None where no node of it has a known number of GPUs."""

    cause: str
    title: str
    reads: str
    outages: int
    nodes: int
    node_hours: float
    gpu_hours: float | None
    still_out: int
    median_hours: float | None


@dataclass(frozen=True, slots=True)
class OwnerRow:
    owner: str
    outages: int
    node_hours: float
    out_now: int


@dataclass(frozen=True, slots=True)
class Totals:
    """`capacity_gpu_hours` = window x GPUs configured now. `history`: past outages are known; without it what is lost
    is what is lost now, a lower bound. None: not known."""

    nodes: int | None
    gpus: int | None
    gpu_nodes_unknown: int
    capacity_gpu_hours: float | None
    lost_gpu_hours: float | None
    lost_fault_gpu_hours: float | None
    lost_planned_gpu_hours: float | None
    lost_unknown_gpu_hours: float | None
    lost_node_hours: float | None
    history: bool
    node_hours_unknown_gpus: float
    allocated_gpu_hours: float | None
    outages: int
    failures: int
    jobs: int | None
    jobs_killed: int | None
    killed_gpu_hours: float | None


@dataclass(frozen=True, slots=True)
class Reliability:
    """Of a node of this fleet. MTBF in days, repair in hours. `shared_outages` blame no single node and are not in
    MTBF."""

    mtbf_days: Estimate
    per_1000_node_days: Estimate
    repair_median_hours: Estimate
    repair_mean_hours: Estimate
    shared_outages: int


@dataclass(frozen=True, slots=True)
class Day:
    """Lost GPU-hours of one UTC day (`start`, POSIX seconds) by cause title."""

    start: int
    gpu_hours: tuple[tuple[str, float], ...]


@dataclass(frozen=True, slots=True)
class Audit:
    cluster: str
    window: Window
    totals: Totals
    needs_person: tuple[NeedsPerson, ...]
    out_now: tuple[OutNow, ...]
    stale_texts: tuple[tuple[str, str], ...]
    causes: tuple[CauseRow, ...]
    owners: tuple[OwnerRow, ...]
    lemons: tuple[Lemon, ...]
    black_holes: tuple[BlackHole, ...]
    repeats: Repeats
    reliability: Reliability
    days: tuple[Day, ...]
    outcomes: tuple[tuple[str, int, float | None], ...]
    kernel: KernelEvidence | None
    utilisation: Utilisation | None
    gaps: tuple[Gap, ...]

    def document(self) -> dict[str, Any]:
        """As JSON (`nodeworthy.audit/1`): every field by its name; times in POSIX seconds; null is not known."""
        return asdict(self)


def build(given: AuditInput) -> Audit:
    """Make the audit. Never raises on odd data: what cannot be used is in `gaps`."""
    window = given.window
    fleet = node_frame(given.nodes)
    events, gaps = events_in_window(given.events, given.nodes, window)
    events = read_reasons(events, given.normalise)
    busy_now = {n.name for n in (given.nodes or {}).values() if n.busy}
    busy = job_tables.busy_until(given.jobs, events, window, busy_now)
    table, lost = outages(events, busy, fleet)
    kills = None if given.jobs is None else job_tables.killed_by_nodes(given.jobs, window)
    holes = () if given.jobs is None else tuple(job_tables.black_holes(given.jobs, window))
    found = lemons(table, kills, fleet, window)
    out = out_nodes(given)
    totals = _totals(given, table, kills, fleet)
    by_node = _lost_by_node(table, fleet)
    use = None
    if given.telemetry is not None:
        on_now = None if given.nodes is None else busy_now
        use = utilisation(given.telemetry, given.jobs, on_now, lost, fleet)
    return Audit(
        cluster=given.cluster,
        window=window,
        totals=totals,
        needs_person=needs_person(out, found, holes, fleet, by_node, window.until),
        out_now=out,
        stale_texts=stale_texts(given),
        causes=_causes(table),
        owners=_owners(table, out),
        lemons=found,
        black_holes=holes,
        repeats=repeats(table, window),
        reliability=_reliability(table, fleet, window),
        days=_days(table, lost, window),
        outcomes=() if given.jobs is None else tuple(
            (str(s), int(n), None if totals.allocated_gpu_hours is None else float(h))
            for s, n, h in job_tables.outcomes(given.jobs, window).iter_rows()
        ),
        kernel=None if given.kernel is None else evidence(given.kernel, table, window),
        utilisation=use,
        gaps=tuple([*given.gaps, *gaps, *_own_gaps(given, totals, table, kills), *_use_gaps(use, totals)]),
    )  # fmt: skip


def _use_gaps(use: Utilisation | None, totals: Totals) -> list[Gap]:
    if use is None:
        return []
    return use_gaps(use, None if totals.gpus is None else float(totals.gpus * use.hours_asked))


def _gpu_hours(table: pl.DataFrame) -> pl.DataFrame:
    return table.with_columns(
        (pl.col("lost") * pl.col("gpus") / HOUR).alias("gpu_h"), (pl.col("lost") / HOUR).alias("node_h")
    )


def _lost_by_node(table: pl.DataFrame, fleet: pl.DataFrame) -> dict[str, float]:
    """GPU-hours lost of every node with a known number of GPUs; 0 where it had no outage."""
    lost = table.group_by("node").agg(pl.col("lost").sum())
    hours = fleet.join(lost, on="node", how="left").select(
        "node", (pl.col("lost").fill_null(0) * pl.col("gpus") / HOUR).alias("hours")
    )
    return {str(node): float(h) for node, h in hours.drop_nulls().iter_rows()}


def _known_sum(column: str) -> pl.Expr:
    """A sum that is null, not 0, where nothing is known."""
    return pl.when(pl.col(column).is_not_null().any()).then(pl.col(column).sum())


def _totals(given: AuditInput, table: pl.DataFrame, kills: pl.DataFrame | None, fleet: pl.DataFrame) -> Totals:
    hours = _gpu_hours(table)
    known = given.nodes is not None and fleet["gpus"].is_not_null().any()
    gpus = int(fleet["gpus"].sum()) if known else None

    def lost(kind: str | None) -> float | None:
        rows = hours if kind is None else hours.filter(pl.col("reads") == kind)
        return float(rows["gpu_h"].sum()) if known else None

    held = None if given.jobs is None else job_tables.allocated_gpu_seconds(given.jobs, given.window)
    work = None if kills is None or not kills["lost_work"].is_not_null().any() else float(kills["lost_work"].sum())
    return Totals(
        nodes=None if given.nodes is None else fleet.height,
        gpus=gpus,
        gpu_nodes_unknown=int(fleet["gpus"].is_null().sum()),
        capacity_gpu_hours=None if gpus is None else gpus * given.window.seconds / HOUR,
        lost_gpu_hours=lost(None),
        lost_fault_gpu_hours=lost("fault"),
        lost_planned_gpu_hours=lost("planned"),
        lost_unknown_gpu_hours=lost("unknown"),
        lost_node_hours=None if given.events is None and given.nodes is None else float(hours["node_h"].sum()),
        history=given.events is not None,
        node_hours_unknown_gpus=float(hours.filter(pl.col("gpus").is_null())["node_h"].sum()),
        allocated_gpu_hours=None if held is None else held / HOUR,
        outages=table.height,
        failures=failures(table).height,
        jobs=None if given.jobs is None else job_tables.attempts(given.jobs, given.window),
        jobs_killed=None if kills is None else kills.height,
        killed_gpu_hours=None if work is None else work / HOUR,
    )


def _causes(table: pl.DataFrame) -> tuple[CauseRow, ...]:
    rows = (
        _gpu_hours(table)
        .group_by("cause", "title")
        .agg(
            pl.col("reads").mode().sort().first(),
            pl.len().alias("outages"),
            pl.col("node").n_unique().alias("nodes"),
            pl.col("node_h").sum().alias("node_hours"),
            _known_sum("gpu_h").alias("gpu_hours"),
            pl.col("open").sum().alias("still_out"),
            (pl.col("seconds").filter(~pl.col("open") & ~pl.col("clipped")).median() / HOUR).alias("median_hours"),
        )
        .sort("gpu_hours", "node_hours", "title", descending=[True, True, False], nulls_last=True)
    )
    return tuple(CauseRow(**row) for row in rows.iter_rows(named=True))


def _owners(table: pl.DataFrame, out: tuple[OutNow, ...]) -> tuple[OwnerRow, ...]:
    now: dict[str, int] = {}
    for node in out:
        now[node.owner] = now.get(node.owner, 0) + 1
    rows = table.group_by("owner").agg(pl.len().alias("outages"), (pl.col("lost").sum() / HOUR).alias("node_hours"))
    past = {str(o): (int(n), float(h)) for o, n, h in rows.iter_rows()}
    owners = sorted({*past, *now}, key=lambda o: -past.get(o, (0, 0.0))[1])
    return tuple(OwnerRow(o, *past.get(o, (0, 0.0)), now.get(o, 0)) for o in owners)


def _reliability(table: pl.DataFrame, fleet: pl.DataFrame, window: Window) -> Reliability:
    failed = failures(table)
    nodes = fleet.height or table["node"].n_unique()
    in_service = nodes * window.days - float(table["lost"].sum()) / 86400
    own = pl.col("seconds") / HOUR
    finished = failed.filter(~pl.col("open")).select(own).to_series().to_list()
    still = failed.filter(pl.col("open")).select(own).to_series().to_list()
    return Reliability(
        mtbf_days=mtbf(in_service, failed.height),
        per_1000_node_days=rate_per_1000_node_days(in_service, failed.height),
        repair_median_hours=median_repair(finished, still),
        repair_mean_hours=mean_repair(finished),
        shared_outages=table.filter(pl.col("shared")).height,
    )


def _days(table: pl.DataFrame, lost: pl.DataFrame, window: Window) -> tuple[Day, ...]:
    """Lost GPU-hours by day and cause: each interval is cut at midnights, so the days add up to the total."""
    day = 86400
    cut = (
        lost.join(table.select("outage", "title", "gpus"), on="outage")
        .with_columns(pl.int_ranges(pl.col("start") // day, (pl.col("end") - 1) // day + 1).alias("day"))
        .explode("day")
        .with_columns(
            pl.min_horizontal("end", (pl.col("day") + 1) * day) - pl.max_horizontal("start", pl.col("day") * day)
        )
        .group_by("day", "title")
        .agg((pl.col("end") * pl.col("gpus") / HOUR).sum().alias("hours"))
        .sort("day", "title")
    )
    found: dict[int, list[tuple[str, float]]] = {}
    for number, title, hours in cut.iter_rows():
        found.setdefault(int(number), []).append((str(title), float(hours or 0.0)))
    first, last = window.since // day, (window.until - 1) // day
    return tuple(Day(n * day, tuple(found.get(n, ()))) for n in range(first, last + 1))


def _own_gaps(given: AuditInput, totals: Totals, table: pl.DataFrame, kills: pl.DataFrame | None) -> list[Gap]:
    gaps: list[Gap] = []
    if given.nodes is None:
        gaps.append(Gap("the present state of the nodes is not known", "who is out now and all GPU-hours are unknown"))
    if given.events is None:
        gaps.append(
            Gap(
                "no event history (no slurmdbd, or no access to it)",
                "only nodes that are out now are known; finished outages, lemons, MTBF and MTTR are not",
            )
        )
    if given.jobs is None:
        gaps.append(
            Gap("no job history", "black holes and killed jobs are unknown; drains count as lost from their start")
        )
    elif totals.allocated_gpu_hours is None:
        gaps.append(
            Gap("no job has a GPU count (AccountingStorageTRES lacks gres/gpu)", "allocated GPU-hours are unknown")
        )
    if totals.node_hours_unknown_gpus:
        gaps.append(
            Gap(
                f"{totals.node_hours_unknown_gpus:,.0f} node-hours were lost on nodes whose GPU count is not known",
                "they are missing from the GPU-hours",
            )
        )
    clipped = table.filter(pl.col("clipped")).height
    if clipped:
        gaps.append(
            Gap(f"{clipped} outages began before the window", "only their part inside it counts; they are not in MTBF")
        )
    if kills is not None and kills["node"].null_count():
        gaps.append(
            Gap(
                f"{kills['node'].null_count()} jobs of several nodes ended in NODE_FAIL without a named node",
                "no node is blamed for them (accounting names it from Slurm 23.02)",
            )
        )
    return gaps + _conservation(totals)


def _conservation(totals: Totals) -> list[Gap]:
    """Sums that cannot be: said, never hidden."""
    if totals.capacity_gpu_hours is None or totals.lost_gpu_hours is None:
        return []
    used = totals.lost_gpu_hours + (totals.allocated_gpu_hours or 0.0)
    if used <= totals.capacity_gpu_hours * 1.001:
        return []
    return [
        Gap(
            f"lost and allocated GPU-hours add up to {used:,.0f}, more than the {totals.capacity_gpu_hours:,.0f} there are",
            "nodes left the fleet during the window, or accounting holds jobs that never ended",
        )
    ]
