"""A picture's parts as views: the one place where the model's words become answers."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from nodeworthy.decide import people
from nodeworthy.decide.explain import Case
from nodeworthy.decide.marks import SYSTEM_USERS, owner_of
from nodeworthy.decide.would import intention
from nodeworthy.judge.answers import answered_no, gpus_seen, unanswered, unanswered_counts
from nodeworthy.judge.unknown import UnknownGroup
from nodeworthy.model.finding import Evidence, Finding, Incident, Trust, Verdict
from nodeworthy.model.fleet import Node
from nodeworthy.model.hold import Hold, HoldState, Owner, OwnerKind
from nodeworthy.model.ledger import Entry
from nodeworthy.model.nodeset import fold
from nodeworthy.model.record import Page, Transition
from nodeworthy.model.scheduler import Job, SchedulerNode
from nodeworthy.model.status import NodeState
from nodeworthy.observe.snapshot import SourceReading
from nodeworthy.service.picture import Picture
from nodeworthy.service.views import (
    EntryView,
    EvidenceView,
    FindingView,
    IncidentView,
    JobView,
    MarkView,
    NodeView,
    OwnerView,
    PersonAct,
    SchedulerView,
    SourceState,
    SourceView,
    UnknownView,
    WouldView,
)

History = Mapping[str, Sequence[Transition]]
Item = TypeVar("Item")


def all_pages(ask: Callable[[int], Page[Item]]) -> list[Item]:
    """Every item of a paged answer."""
    found: list[Item] = []
    after: int | None = 0
    while after is not None:
        page = ask(after)
        found += page.items
        after = page.next
    return found


def source(reading: SourceReading, now: float) -> SourceView:
    """One failed reading is no outage: what it said last still is the present until `limit_s` is over. The failure is
    told at once in `problem`."""
    age = reading.age(now)
    if reading.last_ok is None and not reading.problem:
        state = SourceState.LATE if reading.lost(now) else SourceState.NEVER
    elif reading.last_ok is None or reading.lost(now):
        state = SourceState.DOWN if reading.problem else SourceState.LATE
    else:
        state = SourceState.OK
    notes = "; ".join(reading.notes[:3]) + (f" and {len(reading.notes) - 3} more" if len(reading.notes) > 3 else "")
    return SourceView(
        reading.name, reading.kind, state, reading.last_ok, age, reading.interval_s, reading.problem or notes
    )


def evidence(item: Evidence) -> EvidenceView:
    return EvidenceView(item.what, item.value, item.source, item.seen)


def owner(item: Owner | None) -> OwnerView | None:
    return None if item is None else OwnerView(item.kind, item.name)


def entry(item: Entry) -> EntryView:
    return EntryView(item.sequence, item.at, item.kind, item.subject, item.summary, item.cause, item.actor, item.data)


def incident(item: Incident) -> IncidentView:
    return IncidentView(
        key=item.key,
        title=item.title,
        severity=item.severity,
        since=item.since,
        origin=item.origin,
        explanation=item.explanation,
        nodes=fold(item.nodes) if item.nodes else "",
        node_count=len(item.nodes),
        findings=item.findings,
    )


def incident_of(picture: Picture) -> dict[str, str]:
    return {key: i.key for i in picture.incidents for key in i.findings}


def finding(picture: Picture, item: Finding, incident_key: str | None) -> FindingView:
    check = picture.world.catalogue.checks.get(item.check)
    return FindingView(
        key=item.key,
        check=item.check,
        title=check.title if check else item.check,
        node=item.component.node,
        component=str(item.component),
        verdict=item.verdict,
        severity=item.severity,
        trust=item.trust,
        confidence=item.confidence,
        since=item.since,
        summary=item.summary,
        evidence=tuple(map(evidence, item.evidence)),
        unknown=item.unknown.value if item.unknown else None,
        action=item.action,
        proof=item.proof,
        clears=item.clears,
        rule_version=item.rule_version,
        incident=incident_key,
    )


def unknown_groups(groups: Iterable[UnknownGroup]) -> tuple[UnknownView, ...]:
    """Unknown answers by reason and source: one line each, however many checks and components."""
    merged: dict[tuple[str, str], list[UnknownGroup]] = defaultdict(list)
    for group in groups:
        merged[(group.reason.value, group.source)].append(group)
    return tuple(
        UnknownView(
            what=f"{source or 'no source'}: {sum(g.count for g in found)} answers of {len(found)} checks",
            reason=reason,
            detail=_some_nodes(found),
            checks=tuple(sorted(g.check for g in found)),
        )
        for (reason, source), found in sorted(merged.items(), key=lambda m: -sum(g.count for g in m[1]))
    )


def _some_nodes(groups: Sequence[UnknownGroup]) -> str:
    nodes = sorted({n for g in groups for n in g.nodes})
    return f"for example {fold(nodes[:8])}" if nodes else ""


@dataclass(frozen=True, slots=True)
class Index:
    """Counts by node, made once for a list."""

    findings: Mapping[str, int]
    unknown: Mapping[str, int]
    gpus_seen: Mapping[str, int]


def index(picture: Picture) -> Index:
    adverse = Counter(f.component.owner_node or "" for f in picture.findings.values() if f.verdict is Verdict.TRUE)
    return Index(
        adverse, unanswered_counts(picture.world.catalogue, picture.frames, picture.answers), gpus_seen(picture.frames)
    )


def has_labels(node: Node | None, labels: Mapping[str, str]) -> bool:
    if not labels:
        return True
    if node is None:
        return False
    own = {**node.labels, **node.domains, "class": node.node_class}
    return all(own.get(key) == value for key, value in labels.items())


def node(picture: Picture, counts: Index, name: str) -> NodeView:
    status = picture.statuses[name]
    declared = picture.world.fleet.nodes.get(name)
    node_class = picture.world.fleet.class_of(name)
    seen = picture.scheduler_node(name)
    scheduler = picture.seen.scheduler
    return NodeView(
        name=name,
        state=status.state,
        since=status.since,
        reason=status.reason,
        owner=owner(status.owner),
        next=status.next,
        node_class=declared.node_class if declared else "",
        scheduler_state=seen.state if seen else None,
        gpus=node_class.gpus if node_class else None,
        gpus_seen=counts.gpus_seen.get(name),
        jobs=len(picture.jobs.get(name, ())) if seen else None,
        findings=counts.findings.get(name, 0),
        unknown=counts.unknown.get(name, 0),
        last_seen=scheduler.taken_at if scheduler and seen else None,
        labels=dict(declared.labels) if declared else {},
        domains=dict(declared.domains) if declared else {},
    )


def case(picture: Picture, name: str) -> Case:
    """All that is known of one node, for `decide.explain`."""
    return Case(
        status=picture.statuses[name],
        node=picture.scheduler_node(name),
        mark=picture.marks.get(name),
        jobs=picture.jobs.get(name, ()),
        findings=[f for f in picture.findings.values() if f.component.owner_node == name],
        holds=[h for h in picture.holds.values() if h.subject.node == name],
        incidents=[i for i in picture.incidents if name in i.nodes],
        answered_no=[
            picture.world.catalogue.checks[c].title
            for c in answered_no(picture.world.catalogue, picture.frames, picture.answers, name)
        ],
        unanswered=len(unanswered(picture.world.catalogue, picture.frames, picture.answers, name)),
    )


def node_parts(picture: Picture, name: str, would_views: tuple[WouldView, ...]) -> dict[str, Any]:
    """The fields of `NodeAnswer`."""
    declared = picture.world.fleet.nodes.get(name)
    seen = picture.scheduler_node(name)
    by_finding = incident_of(picture)
    found = [f for f in picture.findings.values() if f.component.owner_node == name]
    return {
        "node": node(picture, index(picture), name),
        "serial": declared.serial if declared else "",
        "names": _names(declared),
        "scheduler": _scheduler(picture, seen),
        "marks": _marks(picture, name),
        "jobs": tuple(map(_job, picture.jobs.get(name, ()))),
        "findings": tuple(finding(picture, f, by_finding.get(f.key)) for f in found),
        "would": would_views,
        "incidents": tuple(i.key for i in picture.incidents if name in i.nodes),
        "unknown": _unknown_of(picture, name),
        "well": picture.statuses[name].state is NodeState.SERVING,
    }


def _unknown_of(picture: Picture, name: str) -> tuple[UnknownView, ...]:
    merged: dict[tuple[str, str], list[str]] = defaultdict(list)
    for missing in unanswered(picture.world.catalogue, picture.frames, picture.answers, name):
        merged[(missing.reason.value, missing.source)].append(missing.check)
    return tuple(
        UnknownView(what=f"{len(checks)} checks", reason=reason, detail=f"source {source}" if source else "",
                    checks=tuple(sorted(checks)))
        for (reason, source), checks in sorted(merged.items())
    )  # fmt: skip


def _names(declared: Node | None) -> dict[str, str]:
    if declared is None:
        return {}
    names = {f"slurm {cluster}".strip(): name for cluster, name in declared.names.scheduler.items()}
    names |= {"syslog": ",".join(declared.names.syslog)} if declared.names.syslog else {}
    names |= {"exporter": ",".join(declared.names.exporter)} if declared.names.exporter else {}
    return names | ({"bmc": declared.names.bmc} if declared.names.bmc else {})


def _scheduler(picture: Picture, seen: SchedulerNode | None) -> SchedulerView | None:
    scheduler = picture.seen.scheduler
    if seen is None or scheduler is None:
        return None
    mark = seen.mark
    return SchedulerView(
        cluster=scheduler.cluster,
        name=seen.name,
        state=seen.state,
        flags=tuple(sorted(seen.flags)),
        partitions=seen.partitions,
        reservation=seen.reservation,
        reason=mark.reason if mark else None,
        reason_user=mark.user if mark else None,
        reason_at=mark.at if mark else None,
        boot_at=seen.boot_at,
        version=seen.version,
        seen=scheduler.taken_at,
    )


def _marks(picture: Picture, name: str) -> tuple[MarkView, ...]:
    marks: list[MarkView] = []
    seen, mark = picture.scheduler_node(name), picture.marks.get(name)
    if mark is not None:
        what = "drain" if seen and seen.has("DRAIN") else (seen.state.lower() if seen else "mark")
        marks.append(MarkView(what, mark.reason, OwnerView(mark.owner.kind, mark.owner.name), mark.at))
    if seen and seen.reservation:
        marks.append(
            MarkView("reservation", seen.reservation, OwnerView(OwnerKind.RESERVATION, seen.reservation), None)
        )
    for hold in picture.holds.values():
        if hold.subject.node == name and hold.state is not HoldState.LIFTED:
            ours = OwnerView(hold.owner.kind, hold.owner.name)
            marks.append(MarkView(f"would hold ({hold.effect})", hold.reason, ours, hold.since, hold.clears))
    return tuple(marks)


def _job(job: Job) -> JobView:
    return JobView(job.job_id, job.name, job.user, job.state, fold(job.nodes) if job.nodes else "", len(job.nodes),
                   job.gpus, job.start_at, job.end_at)  # fmt: skip


def _trust(picture: Picture, hold: Hold) -> Trust:
    """How far the check behind a hold is believed; the least where it is not known any more."""
    found = picture.findings.get(hold.because[0]) if hold.because else None
    return found.trust if found else Trust.SHADOW


def would(picture: Picture, history: History, holds: Iterable[Hold]) -> tuple[WouldView, ...]:
    """Holds as what would have been done, each against what people did about that node."""
    normalise = picture.world.reasons.normalise
    scheduler = picture.seen.scheduler
    users = SYSTEM_USERS | (scheduler.daemon_users if scheduler else frozenset())

    def owner_then(transition: Transition) -> Owner:
        return owner_of(normalise(transition.reason), transition.user, transition.flags, users)

    views = []
    for hold in holds:
        name = hold.subject.node
        meant = intention(hold, picture.scheduler_node(name), picture.marks.get(name))
        acts = people.acts(history.get(name, ()), owner_then)
        compared = people.compare(hold.since, hold.ended, acts, picture.at)
        act = compared.act
        views.append(
            WouldView(
                key=hold.key,
                node=hold.subject.node,
                component=str(hold.subject),
                verb=meant.verb,
                effect=hold.effect,
                state=hold.state,
                reason=hold.reason,
                since=hold.since,
                trust=_trust(picture, hold),
                ended=hold.ended,
                evidence=tuple(map(evidence, hold.evidence)),
                because=hold.because,
                clears=hold.clears,
                waiting_for=hold.waiting_for,
                agreement=compared.agreement,
                people=PersonAct(act.what, act.who, act.at, act.text) if act else None,
                lead_s=compared.lead_s,
            )
        )
    return tuple(views)
