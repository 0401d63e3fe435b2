"""The things that answers are made of: a node, a finding, a mark, a source … as they are shown.

Frozen and serialisable; their laws (time, unknown, sentences) are those of `nodeworthy.service.views`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from nodeworthy.decide.people import Agreement
from nodeworthy.model.finding import Severity, Trust, Verdict
from nodeworthy.model.hold import Effect, HoldState, OwnerKind
from nodeworthy.model.status import NodeState


class SourceState(StrEnum):
    OK = "ok"
    LATE = "late"  # answered before, not within its interval
    DOWN = "down"  # does not answer, or answers what we cannot read
    NEVER = "never seen"  # has not answered since we started


class CheckState(StrEnum):
    OK = "ok"
    WARN = "warn"
    FAIL = "fail"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class SourceView:
    """A source we read. `age_s` is the time since its last good answer, None if there was none."""

    name: str
    kind: str  # scheduler | exporter | prometheus | log
    state: SourceState
    last_seen: float | None
    age_s: float | None
    interval_s: float | None
    problem: str = ""


@dataclass(frozen=True, slots=True)
class EvidenceView:
    what: str
    value: str
    source: str
    seen: float | None


@dataclass(frozen=True, slots=True)
class UnknownView:
    """Something that cannot be told, and why. `checks` are the checks that stay without an answer for it."""

    what: str
    reason: str  # a value of model.finding.UnknownReason
    detail: str = ""
    since: float | None = None
    checks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class OwnerView:
    kind: OwnerKind
    name: str = ""


@dataclass(frozen=True, slots=True)
class MarkView:
    """What keeps (or would keep) work off a node, and whose it is: a drain, a reservation, a would-hold.

    `clears` says who or what lifts it.
    """

    what: str
    reason: str
    owner: OwnerView
    since: float | None
    clears: str = ""


@dataclass(frozen=True, slots=True)
class SchedulerView:
    """A node as its scheduler sees it. `state` is verbatim with all flags, `flags` the flags alone."""

    cluster: str
    name: str
    state: str
    flags: tuple[str, ...]
    partitions: tuple[str, ...]
    reservation: str | None
    reason: str | None
    reason_user: str | None
    reason_at: float | None
    boot_at: float | None
    version: str | None
    seen: float | None


@dataclass(frozen=True, slots=True)
class JobView:
    job_id: str
    name: str
    user: str
    state: str
    nodes: str  # folded node set
    node_count: int
    gpus: int | None
    start_at: float | None
    end_at: float | None


@dataclass(frozen=True, slots=True)
class FindingView:
    key: str
    check: str
    title: str
    node: str
    component: str
    verdict: Verdict
    severity: Severity
    trust: Trust
    confidence: float
    since: float
    summary: str
    evidence: tuple[EvidenceView, ...] = ()
    unknown: str | None = None
    action: str = ""
    proof: str = ""
    clears: str = ""
    rule_version: str = ""
    incident: str | None = None


@dataclass(frozen=True, slots=True)
class PersonAct:
    """What a person did, as the scheduler recorded it. `what`: took out | put back. `who` is what its slot says,
    which proves nobody."""

    what: str
    who: str
    at: float
    text: str = ""


@dataclass(frozen=True, slots=True)
class WouldView:
    """A thing we would have done. `verb`: hold | drain | wait. `lead_s`: how long before people we would
    have acted (negative: after them), None while nobody acted."""

    key: str
    node: str
    component: str
    verb: str
    effect: Effect
    state: HoldState
    reason: str
    since: float
    trust: Trust = Trust.SHADOW
    ended: float | None = None
    evidence: tuple[EvidenceView, ...] = ()
    because: tuple[str, ...] = ()
    clears: str = ""
    waiting_for: str = ""
    agreement: Agreement = Agreement.TOO_EARLY
    people: PersonAct | None = None
    lead_s: float | None = None


@dataclass(frozen=True, slots=True)
class NodeView:
    """A line of `node list`. `gpus` is what the class declares, `gpus_seen` what is seen now."""

    name: str
    state: NodeState
    since: float | None
    reason: str
    owner: OwnerView | None
    next: str
    node_class: str = ""
    scheduler_state: str | None = None
    gpus: int | None = None
    gpus_seen: int | None = None
    jobs: int | None = None
    findings: int = 0
    unknown: int = 0
    last_seen: float | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    domains: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class IncidentView:
    key: str
    title: str
    severity: Severity
    since: float
    origin: str
    explanation: str
    nodes: str  # folded node set
    node_count: int
    findings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class EntryView:
    sequence: int
    at: float
    kind: str
    subject: str
    summary: str
    cause: str
    actor: str
    data: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LoopView:
    """A loop of ours. `age_s`: since its last beat; `stalled`: that is more than `budget_s`."""

    name: str
    age_s: float | None
    budget_s: float
    stalled: bool


@dataclass(frozen=True, slots=True)
class TurnView:
    """The health of the turn. All None before the first one."""

    number: int
    last_at: float | None
    took_s: float | None
    interval_s: float
    loops: tuple[LoopView, ...] = ()


@dataclass(frozen=True, slots=True)
class NeedView:
    """One line of "needs you": `what` is short (incident, node, source, check of ourselves), `subject` its name
    or node set, `command` what shows more."""

    severity: Severity
    what: str
    subject: str
    summary: str
    since: float | None
    command: str


@dataclass(frozen=True, slots=True)
class CheckView:
    """A check of ourselves."""

    name: str
    state: CheckState
    sentence: str
    remedy: str = ""
