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
from dataclasses import dataclass
from typing import Protocol

from nodeworthy.decide.people import Agreement
from nodeworthy.model.finding import Severity, Verdict
from nodeworthy.model.status import NodeState
from nodeworthy.service.shown import (
    CheckState,
    CheckView,
    EntryView,
    EvidenceView,
    FindingView,
    IncidentView,
    JobView,
    LoopView,
    MarkView,
    NeedView,
    NodeView,
    OwnerView,
    PersonAct,
    SchedulerView,
    SourceState,
    SourceView,
    TurnView,
    UnknownView,
    WouldView,
)

__all__ = [  # the items are part of the interface: who uses `Views` finds all of it here
    "AboutAnswer",
    "Agreement",
    "Answer",
    "CheckState",
    "CheckView",
    "DoctorAnswer",
    "EntryView",
    "EvidenceView",
    "ExplainAnswer",
    "FindingAnswer",
    "FindingView",
    "FindingsAnswer",
    "HistoryAnswer",
    "IncidentAnswer",
    "IncidentView",
    "IncidentsAnswer",
    "JobView",
    "LedgerAnswer",
    "ListAnswer",
    "LoopView",
    "MarkView",
    "Names",
    "NeedView",
    "NodeAnswer",
    "NodeState",
    "NodeView",
    "NodesAnswer",
    "OwnerView",
    "PersonAct",
    "SchedulerView",
    "SourceState",
    "SourceView",
    "StatusAnswer",
    "TurnView",
    "UnknownView",
    "Views",
    "WouldAnswer",
    "WouldView",
]


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
