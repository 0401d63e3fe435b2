"""What a metrics server adds to an audit. Whatever goes wrong there becomes a gap; the audit stands without it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime

import polars as pl

from nodeworthy.adapters.files.catalogue import load as load_catalogue
from nodeworthy.adapters.prometheus.history import History, HistoryLimits, PrometheusHistory
from nodeworthy.adapters.prometheus.node_hours import NodeHours, questions
from nodeworthy.decide.fleet_import import from_scheduler
from nodeworthy.errors import WorldError
from nodeworthy.model.fleet import Fleet, Node
from nodeworthy.model.identity import NameKind, Resolver
from nodeworthy.model.scheduler import SchedulerSnapshot
from nodeworthy.reports.audit.hostlists import expand
from nodeworthy.reports.audit.inputs import AuditInput, Gap, Telemetry
from nodeworthy.reports.audit.outages import node_frame

HOUR = 3600


def with_metrics(given: AuditInput, server: PrometheusHistory) -> tuple[AuditInput, bool]:
    """The audit's input with what the server knows; and whether the server failed in any part."""
    first, last = -(-given.window.since // HOUR), given.window.until // HOUR
    if last <= first:
        gap = Gap("the window holds no whole hour", "the metrics server was not asked")
        return replace(given, gaps=(*given.gaps, gap)), False
    resolver = resolver_of(given)
    signals = load_catalogue().signals
    fleet = node_frame(given.nodes)
    known = NodeHours(lambda name: resolver.node(NameKind.EXPORTER, name).node, fleet.select("node", "gpus"))
    keep = {"use": known.keep_use, "throttling": known.keep_throttling}
    groups = {name: (asked, keep[name]) for name, asked in questions(signals).items()}
    try:
        history = asyncio.run(server.read(groups, first, last, fleet.height or 1000))
    except WorldError as error:
        gap = Gap(f"metrics server {server.url}: {error}", "what allocated GPUs did is unknown")
        return replace(given, gaps=(*given.gaps, gap)), True
    said = [Gap(f"metrics server {server.url}: {p}", "what it did not answer is unknown") for p in history.problems]
    said += [Gap(f"metrics server {server.url}: {p}", "they are left out") for p in sorted(known.problems)]
    said += _odd(known, history)
    read, begun = _since_the_beginning(known.node_hours, history.read.get("use", set()))
    telemetry = Telemetry(known.node_hours, known.slowed, first, last, read)
    return replace(given, telemetry=telemetry, gaps=(*given.gaps, *said, *begun)), bool(history.problems)


def _since_the_beginning(rows: pl.DataFrame, read: set[int]) -> tuple[frozenset[int], list[Gap]]:
    """The hours that the server can know of. Before its first sample of any node it remembers nothing (Prometheus keeps
    15 days unless told otherwise), which is no node's silence."""
    begin = rows["hour"].min() if rows.height else None
    before = [hour for hour in read if isinstance(begin, int) and hour < begin]
    if not isinstance(begin, int) or not before:
        return frozenset(read), []
    at = datetime.fromtimestamp(begin * HOUR, UTC)
    what = f"the metrics server's memory of these nodes begins {at:%Y-%m-%d %H:%M} UTC"
    return frozenset(read.difference(before)), [
        Gap(what, f"what GPUs did in {len(before):,} hours before cannot be told")
    ]


def _odd(known: NodeHours, history: History) -> list[Gap]:
    """What the answers lack."""
    said: list[Gap] = []
    if known.unknown_names:
        names = sorted(known.unknown_names)
        said.append(Gap(f"telemetry of {len(names)} names that are no node ({_some(names)})", "it is left out"))
    rows = known.node_hours
    if rows.is_empty() and not history.problems:
        what = "the metrics server has no GPU telemetry of these nodes in this window"
        said.append(Gap(what, "what allocated GPUs did is unknown: is it the right server?"))
    mixed = rows.filter(pl.col("partitioned"))["node"].cast(pl.String).unique().sort().to_list()
    if mixed:
        effect = "Slurm counts parts of their GPUs, so what they did cannot be told"
        said.append(Gap(f"{len(mixed)} nodes have MIG instances ({_some(mixed)})", effect))
    if rows.height and not known.clocks_known and "throttling" in history.read:
        said.append(Gap("the metrics server has no clock event reasons", "slowed clocks are unknown"))
    return said


def limits(timeout_s: float) -> HistoryLimits:
    """All questions together may take as long as one Slurm command; one of them a minute."""
    return HistoryLimits(timeout_s=min(60.0, timeout_s), deadline_s=timeout_s)


def resolver_of(given: AuditInput) -> Resolver:
    """Names of exporters → nodes, by the rules of every other part. Without a fleet file the nodes are those that
    Slurm lists, as `fleet import slurm` names them; without that list, those that the records name."""
    if given.nodes is not None:
        listed = SchedulerSnapshot(given.cluster, "", given.window.until, dict(given.nodes))
        return Resolver(from_scheduler(listed).fleet)
    return Resolver(Fleet(given.cluster, {}, {name: Node(name, "") for name in _recorded(given)}))


def _recorded(given: AuditInput) -> set[str]:
    names = set(given.events["node"].drop_nulls().unique()) if given.events is not None else set()
    if given.jobs is not None:
        names |= set(expand(given.jobs["nodelist"].unique())["node"].unique())
    return {str(n) for n in names}


def _some(names: Iterable[str]) -> str:
    listed = list(names)
    return ", ".join(listed[:5]) + (", …" if len(listed) > 5 else "")
