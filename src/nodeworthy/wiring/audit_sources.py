"""Where an audit's data come from: a live Slurm, or files. Every source that fails becomes a gap; the rest stands."""

from __future__ import annotations

import gzip
import pwd
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from nodeworthy.adapters.prometheus.history import PrometheusHistory
from nodeworthy.adapters.slurm import accounting, text
from nodeworthy.adapters.slurm.command import SlurmCommand
from nodeworthy.decide.fleet_import import Listed, fleet_from, from_scheduler
from nodeworthy.errors import BadFile, BadRequest, Problem, WorldError
from nodeworthy.model.duration import UNITS, parse_time
from nodeworthy.model.identity import NameKind, Resolver
from nodeworthy.model.scheduler import SchedulerNode, SchedulerSnapshot
from nodeworthy.reports.audit.inputs import AuditInput, Gap, KernelEvent, Window
from nodeworthy.wiring.audit_metrics import limits, with_metrics
from nodeworthy.wiring.reasons import shipped_reasons

Say = Callable[[str], None]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Request:
    """The options, checked. `since` and `until` are times as `parse_time` reads them: what `now` is there, and so
    where an age begins, is only known when the files have been read."""

    since: str
    until: str | None
    jobs: Path | None
    events: Path | None
    nodes: Path | None
    logs: tuple[Path, ...]
    zone: ZoneInfo | None
    cluster: str | None
    timeout_s: float
    metrics: PrometheusHistory | None = None

    @property
    def from_files(self) -> bool:
        return bool(self.jobs or self.events or self.nodes)

    @classmethod
    def parse(
        cls,
        *,
        since: object,
        until: object,
        jobs: object,
        events: object,
        nodes: object,
        logs: object,
        timezone: object,
        cluster: object,
        timeout: object,
        prometheus: object = None,
    ) -> Request:
        zone = _zone(str(timezone)) if timezone else None

        def path(value: object) -> Path | None:
            return Path(str(value)) if value else None

        return cls(
            since=_time(str(since)),
            until=_time(str(until)) if until else None,
            jobs=path(jobs),
            events=path(events),
            nodes=path(nodes),
            logs=tuple(Path(str(p)) for p in logs) if isinstance(logs, tuple) else (),
            zone=zone,
            cluster=str(cluster) if cluster else None,
            timeout_s=float(str(timeout)),
            metrics=PrometheusHistory(str(prometheus), limits(float(str(timeout)))) if prometheus else None,
        )


def _time(text_: str) -> str:
    """The text itself, once it is known to be a time. Raises BadRequest."""
    parse_time(text_, now=time.time())
    return text_


def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise BadRequest(f"no such time zone: {name!r}", hint="write it as Europe/Berlin or UTC") from error


def window(request: Request, latest: float) -> Window:
    """The period asked for, ending at `latest` unless `--until` says otherwise; `now` is its end."""
    until = latest if request.until is None else parse_time(request.until, now=latest)
    since = parse_time(request.since, now=until)
    if since >= until:
        raise BadRequest("the window ends before it begins", hint="--since must be before --until")
    return Window(int(since), int(until))


def gather(request: Request, say: Say) -> tuple[AuditInput, bool]:
    """Everything the audit needs; and whether a source failed that should have answered."""
    given, failed = (_from_files(request), False) if request.from_files else _from_slurm(request, say)
    if request.logs:
        say("reading logs …")
        kernel, gaps, broke = read_logs(request.logs, given, request.zone)
        given, failed = replace(given, kernel=kernel, gaps=(*given.gaps, *gaps)), failed or broke
    if request.metrics is not None:
        say("reading metrics …")
        given, broke = with_metrics(given, request.metrics)
        failed = failed or broke
    return given, failed


def read_logs(
    paths: tuple[Path, ...], given: AuditInput, zone: ZoneInfo | None
) -> tuple[tuple[KernelEvent, ...], list[Gap], bool]:
    """The trusted errors in kernel logs, by node."""
    from nodeworthy.adapters.files.literals import finder
    from nodeworthy.adapters.files.log_rules import load_grammar
    from nodeworthy.adapters.files.log_source import DAMAGED, local_zone, open_log, reference
    from nodeworthy_node.log.scan import Tally, events

    grammar, tally = load_grammar(), Tally()
    find = finder(grammar.literals)
    names = log_names(given)
    found: list[KernelEvent] = []
    unknown: Counter[str] = Counter()
    untimed = 0
    gaps: list[Gap] = []
    broke = False
    for path in paths:
        known = reference(str(path), given.window.until, zone or local_zone(), None)
        try:
            with open_log(str(path)) as stream:
                for event in events(stream, find, grammar, known, tally):
                    if not event.holds:
                        continue
                    # as the network knows it: by NodeName, NodeHostName or NodeAddr, short or full
                    node = names.node(NameKind.EXPORTER, event.host).node
                    if node is None:
                        unknown[event.host] += 1
                    elif event.time is None:
                        untimed += 1
                    else:
                        said = event.verdict
                        found.append(KernelEvent(event.time, node, said.kind, said.code, event.message[:300]))
        except DAMAGED as error:
            broke = True
            gaps.append(Gap(f"{path}: reading broke off: {error}", "later lines of this file are unknown"))
    if unknown:
        hosts = ", ".join(name or "(none)" for name, _ in unknown.most_common(5))
        gaps.append(
            Gap(f"{sum(unknown.values())} log errors are of hosts that are no node ({hosts})", "they are left out")
        )
    if untimed:
        gaps.append(Gap(f"{untimed} log errors have no time", "they are left out"))
    return tuple(found), gaps, broke


def log_names(given: AuditInput) -> Resolver:
    """Who is who in logs: the nodes as Slurm lists them; without a list, those that have events."""
    if given.nodes is None:
        seen = given.events["node"].unique().to_list() if given.events is not None else []
        return Resolver(fleet_from(given.cluster, [Listed(str(name)) for name in seen]))
    return Resolver(from_scheduler(SchedulerSnapshot(given.cluster, "", given.window.until, dict(given.nodes))).fleet)


def _from_files(request: Request) -> AuditInput:
    jobs = accounting.read_jobs(request.jobs, request.zone) if request.jobs else None
    events = accounting.read_events(request.events, request.zone) if request.events else None
    nodes = read_nodes(request.nodes) if request.nodes else None
    latest: list[float] = []
    for table in (jobs, events):
        for column in ("start", "end"):
            value = table.frame[column].max() if table is not None and table.frame.height else None
            if isinstance(value, int):
                latest.append(float(value))
    latest += [n.mark.at for n in (nodes or {}).values() if n.mark and n.mark.at]
    if not latest and request.until is None:
        raise BadRequest("the files hold no time at all", hint="say when they were made: --until 2026-11-30T12:00")
    # The last second counts; a time after today is a damaged one and must not move the window.
    period = window(request, 1 + max((t for t in latest if t < time.time() + UNITS["d"]), default=0.0))
    gaps = [*(jobs.gaps if jobs else ()), *(events.gaps if events else ())]
    for table, what in ((jobs, "jobs"), (events, "events")):
        if table is not None:
            gaps += accounting.records_begin(table.frame, period.since, period.until, what)
    return AuditInput(
        cluster=request.cluster or "Slurm (from files)",
        window=period,
        nodes=nodes,
        events=events.frame if events else None,
        jobs=jobs.frame if jobs else None,
        normalise=shipped_reasons().normalise,
        gaps=tuple(gaps),
    )


def read_nodes(path: Path) -> dict[str, SchedulerNode]:
    """A saved `scontrol -o show nodes`. Raises BadFile."""
    try:
        raw = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        return text.nodes(raw.decode("utf-8", errors="backslashreplace"))
    except (OSError, EOFError, WorldError) as error:
        raise BadFile(
            [Problem(str(path), None, "", f"is no list of nodes: {error}", "save `scontrol -o -d show nodes`")]
        ) from error


def _from_slurm(request: Request, say: Say) -> tuple[AuditInput, bool]:
    slurm = SlurmCommand(timeout_s=request.timeout_s)
    period = window(request, time.time())
    nodes = text.nodes(slurm.run_sync("scontrol", "-o", "-d", "show", "nodes"))
    config = text.config(slurm.run_sync("scontrol", "show", "config"))
    gaps: list[Gap] = []
    failed: list[str] = []

    def attempt(what: str, call: Callable[[], T]) -> T | None:
        try:
            return call()
        except WorldError as error:
            failed.append(what)
            gaps.append(Gap(f"{what}: {error}", "this part is unknown"))
            return None

    jobs = events = None
    if "slurmdbd" in config.get("AccountingStorageType", ""):
        database = attempt("accounting settings", lambda: accounting.database_settings(slurm)) or {}
        gaps += accounting.gaps_of_settings(config, database, period.since, period.until)
        say("reading events …")
        events = attempt("node events", lambda: accounting.fetch_events(slurm, period.since, period.until))
        say("reading jobs …")
        with tempfile.TemporaryDirectory(prefix="nodeworthy-audit-") as folder:
            spool = Path(folder) / "jobs.txt"
            jobs = attempt("jobs", lambda: accounting.fetch_jobs(slurm, period.since, period.until, spool))
    for table, what in ((jobs, "jobs"), (events, "events")):
        if table is not None:
            gaps += [*table.gaps, *accounting.records_begin(table.frame, period.since, period.until, what)]
    authors = {n.mark.user for n in nodes.values() if n.mark and n.mark.user}
    return AuditInput(
        cluster=config.get("ClusterName", "Slurm"),
        window=period,
        nodes=nodes,
        events=events.frame if events else None,
        jobs=jobs.frame if jobs else None,
        normalise=shipped_reasons().normalise,
        gaps=tuple(gaps),
        left_authors=accounting.left_authors(authors, _has_account),
    ), bool(failed)  # fmt: skip


def _has_account(name: str) -> bool:
    try:
        pwd.getpwnam(name)
    except KeyError:
        return False
    return True
