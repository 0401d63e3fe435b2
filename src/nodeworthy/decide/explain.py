"""Why a node is as it is, in sentences for a person who was woken up: the weightiest first.

Nothing is decided here; what was decided is put into words, with what was ruled out and what cannot be told.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from nodeworthy.decide.marks import REBOOT_FLAGS, MarkView
from nodeworthy.decide.would import intention
from nodeworthy.model.finding import Evidence, Finding, Incident, Verdict
from nodeworthy.model.hold import Hold, HoldState, OwnerKind
from nodeworthy.model.scheduler import Job, SchedulerNode
from nodeworthy.model.status import NodeState, NodeStatus


@dataclass(frozen=True, slots=True)
class Explanation:
    because: tuple[str, ...]
    evidence: tuple[Evidence, ...]
    rejected: tuple[str, ...]
    waiting_for: tuple[str, ...]
    clears: tuple[str, ...]
    next: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Case:
    """Everything that is known of one node. `answered_no`: titles of the checks that looked and found nothing."""

    status: NodeStatus
    node: SchedulerNode | None
    mark: MarkView | None
    jobs: Sequence[Job]
    findings: Sequence[Finding]
    holds: Sequence[Hold]
    incidents: Sequence[Incident]
    answered_no: Sequence[str]
    unanswered: int


def explain(case: Case) -> Explanation:
    adverse = [f for f in case.findings if f.verdict is Verdict.TRUE]
    holds = [h for h in case.holds if h.state is not HoldState.LIFTED]
    return Explanation(
        because=_unique([*_of_status(case), *_of_mark(case.mark), *(_of_finding(f) for f in adverse)]),
        evidence=tuple(e for f in adverse for e in f.evidence),
        rejected=_unique(_rejected(case)),
        waiting_for=_unique([*(h.waiting_for for h in holds), *_jobs_to_end(case)]),
        clears=_unique([*_clears_mark(case), *(f.clears for f in adverse)]),
        next=_unique(
            # work is kept off first: a power cycle before that would end jobs
            [*(intention(h, case.node).sentence for h in holds), case.status.next, *(f.action for f in adverse)]
        ),
    )


def _of_status(case: Case) -> Iterable[str]:
    if case.status.reason and case.status.state is not NodeState.SUSPECT:
        yield case.status.reason


def _of_mark(mark: MarkView | None) -> Iterable[str]:
    if mark is None:
        return
    if mark.title and mark.reason:
        yield f"the mark says: {mark.title} (written by {mark.owner})"
    yield from (f"contradiction: {text}" for text in mark.contradictory)
    yield from (f"orphaned? {text}" for text in mark.orphaned_because)


def _of_finding(finding: Finding) -> str:
    seen = f" (last known; cannot be seen now: {finding.unknown.value})" if finding.unknown else ""
    return f"{finding.component}: {finding.summary}{seen}"


def _rejected(case: Case) -> Iterable[str]:
    for incident in case.incidents:
        if incident.origin and case.status.node in incident.nodes:
            yield f"not this node itself, as far as can be told: {incident.origin} is suspected ({incident.key})"
    if case.answered_no:
        shown = ", ".join(case.answered_no[:6])
        more = f" and {len(case.answered_no) - 6} more" if len(case.answered_no) > 6 else ""
        yield f"looked and found nothing: {shown}{more}"
    if case.unanswered:
        yield f"not ruled out: {case.unanswered} checks have no answer (see unknown)"


def _jobs_to_end(case: Case) -> Iterable[str]:
    if case.node is not None and case.node.draining and case.jobs:
        ids = ", ".join(job.job_id for job in case.jobs[:5]) + (" …" if len(case.jobs) > 5 else "")
        noun = "job" if len(case.jobs) == 1 else "jobs"
        yield f"{len(case.jobs)} {noun} to end before it is empty: {ids}"


def _clears_mark(case: Case) -> Iterable[str]:
    if case.node is not None and case.node.reservation:
        yield f"reservation {case.node.reservation} ends or is deleted"
    if case.mark is None:
        return
    if case.node is not None and not case.node.flags.isdisjoint(REBOOT_FLAGS):
        yield "it comes back from its reboot, into the state that was asked for with it"
        return
    owner = case.mark.owner
    if case.mark.cause == "not-responding" and owner.kind is OwnerKind.SCHEDULER:
        yield "its slurmd answers again; as ReturnToService is set, it is back then or somebody resumes it"
        return
    match owner.kind:
        case OwnerKind.PERSON:
            yield f"{owner.name} lifts their mark; no machine will"
        case OwnerKind.SCHEDULER:
            yield "its cause is mended, then somebody resumes the node; Slurm does not by itself"
        case OwnerKind.HEALTH_PROGRAM:
            yield f"{owner.name or 'the health program'} passes again, if it clears its own marks; else somebody resumes it"
        case OwnerKind.NODEWORTHY:
            yield "the hold behind our mark is lifted"
        case OwnerKind.SOMEONE:
            yield "whoever wrote it resumes the node; the record says only root"


def _unique(sentences: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(s for s in sentences if s))
