"""What may be asked of a running Nodeworthy, and what it answers: the read interface of API, CLI and web.

Laws of every implementation of `Views`:
- It reads one immutable snapshot (and the store for history), changes nothing, and may be called from any
  thread. A list answer is complete; cutting into pages is the API's business.
- Every answer carries `as_of` (when the snapshot was judged) and the age of every source behind it.
- Times are POSIX seconds (UTC), durations seconds (`…_s`). None is "not known", never 0, never "fine".
- A thing that is asked for by name and not there raises `NotKnown` with a hint; a list that is filtered by
  names says in `not_known` which of them nobody has declared.
- Sentences are whole, for a person who was woken up: what, where, since when, what to do.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What every answer carries. `as_of` is None before the first turn."""

    as_of: float | None
    sources: tuple[SourceView, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ListAnswer(Answer):
    """A list. `total` and `next_cursor` are filled in by the API when it cuts the list into pages."""

    total: int | None = None
    next_cursor: str | None = None


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


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusAnswer(Answer):
    """`nodes` is None (and `by_state` empty) while no fleet is declared and no scheduler has told of one.
    `findings` counts those that are true, `findings_unknown` those without an answer. `needs` is sorted: the worst first. `well` is true only if nodes are known, nothing
    needs a person and no node is unknown."""

    fleet: str
    mode: str
    revision: str
    catalogue: str
    nodes: int | None
    gpus: int | None
    by_state: Mapping[NodeState, int]
    needs: tuple[NeedView, ...]
    would: int
    incidents: int
    findings: Mapping[Severity, int]
    findings_unknown: int
    unknown: tuple[UnknownView, ...]
    turn: TurnView
    well: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class NodesAnswer(ListAnswer):
    items: tuple[NodeView, ...]
    not_known: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeAnswer(Answer):
    """Everything of one node."""

    node: NodeView
    serial: str
    names: Mapping[str, str]  # system → what it calls the node
    scheduler: SchedulerView | None
    marks: tuple[MarkView, ...]
    jobs: tuple[JobView, ...]
    findings: tuple[FindingView, ...]
    would: tuple[WouldView, ...]
    incidents: tuple[str, ...]
    unknown: tuple[UnknownView, ...]
    well: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainAnswer(NodeAnswer):
    """The same with the reasoning: sentences, the weightiest first. `rejected`: what was looked at and is not it."""

    because: tuple[str, ...]
    evidence: tuple[EvidenceView, ...]
    rejected: tuple[str, ...]
    waiting_for: tuple[str, ...]
    clears: tuple[str, ...]
    next: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryAnswer(Answer):
    """Ledger entries of one node, oldest first."""

    node: str
    items: tuple[EntryView, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingsAnswer(ListAnswer):
    items: tuple[FindingView, ...]
    not_known: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingAnswer(Answer):
    finding: FindingView
    check_help: str
    check_source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class IncidentsAnswer(ListAnswer):
    items: tuple[IncidentView, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class IncidentAnswer(Answer):
    incident: IncidentView
    findings: tuple[FindingView, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class WouldAnswer(ListAnswer):
    """`agreement` counts the items by what people did about them."""

    items: tuple[WouldView, ...]
    agreement: Mapping[Agreement, int]
    since: float | None
    not_known: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerAnswer(Answer):
    """Entries in commit order. `last` is the sequence to go on from."""

    items: tuple[EntryView, ...]
    last: int


@dataclass(frozen=True, slots=True)
class CheckView:
    """A check of ourselves."""

    name: str
    state: CheckState
    sentence: str
    remedy: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DoctorAnswer(Answer):
    items: tuple[CheckView, ...]
    well: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class AboutAnswer(Answer):
    """Who answers. `now` is the server's clock, for a client that wants to know its skew."""

    version: str
    fleet: str
    mode: str
    started_at: float
    now: float


Names = tuple[str, ...] | None
"""Node names to restrict a list to; None is no restriction, () is nothing."""


class Views(Protocol):
    """The reads. Lists are restricted by all of the given filters together."""

    def about(self) -> AboutAnswer: ...

    def status(self) -> StatusAnswer: ...

    def nodes(self, names: Names, labels: Mapping[str, str], states: frozenset[NodeState]) -> NodesAnswer:
        """In fleet order. `labels` match the node's labels, domains (rack=r12) and `class`. No states: all."""
        ...

    def node(self, name: str) -> NodeAnswer: ...

    def explain(self, name: str) -> ExplainAnswer: ...

    def history(self, name: str, since: float | None, limit: int) -> HistoryAnswer:
        """The newest `limit` entries at or after `since`, oldest first."""
        ...

    def findings(self, names: Names, labels: Mapping[str, str], verdicts: frozenset[Verdict]) -> FindingsAnswer:
        """The present findings, worst first. No verdicts: those that are true or unknown."""
        ...

    def finding(self, key: str) -> FindingAnswer: ...

    def incidents(self) -> IncidentsAnswer: ...

    def incident(self, key: str) -> IncidentAnswer: ...

    def would(self, names: Names, labels: Mapping[str, str], since: float | None) -> WouldAnswer:
        """What would be held now, and what would have been since `since` (None: the present only)."""
        ...

    def ledger(self, after: int, limit: int, subject: str | None = None) -> LedgerAnswer:
        """Entries with a sequence greater than `after`, at most `limit`. A negative `after` counts from the end."""
        ...

    def doctor(self) -> DoctorAnswer: ...
