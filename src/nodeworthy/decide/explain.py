"""Why a node is as it is, in sentences for a person who was woken up: the weightiest first.

Nothing is decided here; what was decided is put into words, with what was ruled out and what cannot be told.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from nodeworthy.decide.marks import MarkView
from nodeworthy.decide.would import intention
from nodeworthy.model.finding import Evidence, Finding, Incident, Severity, Verdict
from nodeworthy.model.hold import Hold, HoldState, OwnerKind
from nodeworthy.model.reason import ReasonKind
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
    adverse = sorted((f for f in case.findings if f.verdict is Verdict.TRUE), key=_weight)
    holds = [h for h in case.holds if h.state is not HoldState.LIFTED]
    return Explanation(
        because=_unique(
            [*_of_status(case), *_of_mark(case.mark), *map(_of_finding, adverse), *_of_well(case, adverse)]
        ),
        evidence=tuple(e for f in adverse for e in f.evidence),
        rejected=_unique(_rejected(case)),
        waiting_for=_unique([*(h.waiting_for for h in holds), *_jobs_to_end(case)]),
        clears=_unique([*_clears_mark(case), *(f.clears for f in adverse)]),
        next=_unique(
            # new work is kept off first: a power cycle before that would end jobs that had just begun
            [
                *(f"in observe mode nothing is done; it would be: {_meant(case, h)}" for h in holds),
                case.status.next,
                *(f.action for f in adverse),
            ]
        ),
    )


def _weight(finding: Finding) -> tuple[int, float, str]:
    return -list(Severity).index(finding.severity), finding.since, finding.key


def _meant(case: Case, hold: Hold) -> str:
    return intention(hold, case.node, case.mark).sentence


def _of_status(case: Case) -> Iterable[str]:
    """The state as a sentence of its own; a finding's words come with the finding."""
    status = case.status
    if status.state is NodeState.SUSPECT:
        yield f"{status.node} takes new work, and something speaks against it"
    elif status.reason:
        yield f"{status.node} is {_word(case)}: {status.reason}"


def _word(case: Case) -> str:
    """The state in the words of the scheduler's users where there are such."""
    node = case.node
    if case.status.state is NodeState.OUT and node is not None and node.has("DRAIN"):
        return "draining" if node.draining else "drained"
    return case.status.state.value


def _of_well(case: Case, adverse: Sequence[Finding]) -> Iterable[str]:
    if case.status.state is NodeState.SERVING and not adverse:
        yield f"{case.status.node} takes new work, and nothing that was looked at speaks against it"


def _of_mark(mark: MarkView | None) -> Iterable[str]:
    if mark is None:
        return
    if not mark.reason:
        yield "its mark has no reason"
    elif mark.kind is ReasonKind.UNKNOWN:
        yield f"{mark.owner} wrote the mark; what for cannot be told from its text"
    else:
        yield f"{mark.owner} wrote the mark, which is read as: {mark.title}"
    yield from (f"the mark contradicts itself: {text}" for text in mark.contradictory)
    yield from (f"perhaps nobody is going to lift the mark: {text}" for text in mark.orphaned_because)


def _of_finding(finding: Finding) -> str:
    seen = f" (last known; cannot be seen now: {finding.unknown.value})" if finding.unknown else ""
    return f"{finding.component}: {finding.summary}{seen}"


def _rejected(case: Case) -> Iterable[str]:
    for incident in case.incidents:
        if incident.origin and case.status.node in incident.nodes:
            yield f"not this node itself, as far as can be told: {incident.origin} is suspected ({incident.key})"
    if case.answered_no:
        shown = "; ".join(case.answered_no[:6])
        more = f" and {len(case.answered_no) - 6} more" if len(case.answered_no) > 6 else ""
        yield f"looked at, and not so now: {shown}{more}"
    if case.unanswered:
        checks = "1 check has" if case.unanswered == 1 else f"{case.unanswered} checks have"
        yield f"not ruled out: {checks} no answer (see unknown)"


def _jobs_to_end(case: Case) -> Iterable[str]:
    if case.node is not None and case.node.draining and case.jobs:
        ids = ", ".join(job.job_id for job in case.jobs[:5]) + (" …" if len(case.jobs) > 5 else "")
        jobs = "1 job" if len(case.jobs) == 1 else f"{len(case.jobs)} jobs"
        yield f"{jobs} to end before it is empty: {ids}"


def _clears_mark(case: Case) -> Iterable[str]:
    if case.status.owner is not None and case.status.owner.kind is OwnerKind.RESERVATION:
        yield "the reservation ends, or is deleted by whoever made it"
    if case.mark is None or case.status.state is NodeState.UNKNOWN:
        return
    if case.status.state not in (NodeState.OUT, NodeState.FAILED):
        yield "the reason holds nothing off and goes with the next resume"
        return
    owner = case.mark.owner
    match owner.kind:
        case OwnerKind.PERSON:
            yield f"{owner.name} lifts their mark; no machine will"
        case OwnerKind.SCHEDULER if case.node is not None and case.node.flags & {"DRAIN", "INVALID_REG"}:
            yield "its cause is mended, then somebody resumes the node; Slurm does not by itself"
        case OwnerKind.SCHEDULER:
            yield "its slurmd registers again; whether Slurm then takes it back depends on ReturnToService"
        case OwnerKind.HEALTH_PROGRAM:
            yield f"{owner.name or 'the health program'} passes again, if it clears its own marks; else somebody resumes it"
        case OwnerKind.NODEWORTHY:
            yield "the hold behind our mark is lifted"
        case OwnerKind.SOMEONE:
            yield "whoever wrote it resumes the node; who that was is not recorded"


def _unique(sentences: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(s for s in sentences if s))
