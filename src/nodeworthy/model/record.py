"""What the record keeps beyond the words of others: transitions, positions, revisions, and one turn's outcome.

An `Outcome` is all that one turn has to say, and is committed whole or not at all; a `Memory` is what a
turn needs to know of all turns before it. Together they make a restart invisible: `load` after `commit`
gives what the next turn would have had in hand.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Generic, TypeVar

from nodeworthy.model.event import LogEvent
from nodeworthy.model.finding import Finding
from nodeworthy.model.hold import Hold
from nodeworthy.model.ledger import Entry

Item = TypeVar("Item")
Cursor = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Page(Generic[Item]):
    """Part of a long answer. `next`: give it as `after` to go on; None when this was all."""

    items: tuple[Item, ...]
    next: int | None = None


@dataclass(frozen=True, slots=True)
class Transition:
    """A node's scheduler state from `at` on, until the next one. Recorded only when something changed."""

    node: str
    state: str  # as the scheduler prints it, with flags
    flags: tuple[str, ...]
    at: float
    reason: str | None = None
    user: str | None = None
    reason_at: float | None = None


@dataclass(frozen=True, slots=True)
class Boot:
    """A boot of a node, as of when it was first seen."""

    node: str
    boot_id: str
    at: float


class SourceHealth(StrEnum):
    FINE = "fine"
    LOST = "lost"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class SourceState:
    """What is known of one source: how it is, since when, and when it last said anything (None: never)."""

    source: str
    health: SourceHealth
    since: float
    last_seen: float | None
    problems: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Revision:
    """Content of the fleet, policy or catalogue, under its digest, so that old decisions can be replayed."""

    kind: str
    digest: str
    at: float
    content: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Outcome:
    """All that one turn changes. `findings` and `holds` are those opened or changed (a hold with `ended` set
    ends); `closed` are keys of findings that ended at `at`. `cursors` are where `events` were read up to."""

    at: float
    entries: tuple[Entry, ...] = ()
    findings: tuple[Finding, ...] = ()
    closed: tuple[str, ...] = ()
    holds: tuple[Hold, ...] = ()
    states: tuple[Transition, ...] = ()
    boots: tuple[Boot, ...] = ()
    sources: tuple[SourceState, ...] = ()
    events: tuple[LogEvent, ...] = ()
    cursors: Mapping[str, Cursor] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Memory:
    """What a turn starts from: all that is open, and the last word on everything else."""

    findings: Mapping[str, Finding]
    holds: Mapping[str, Hold]
    states: Mapping[str, Transition]
    boots: Mapping[str, Boot]
    sources: Mapping[str, SourceState]
    cursors: Mapping[str, Cursor]
    sequence: int  # of the last ledger entry; 0 when there is none


@dataclass(frozen=True, slots=True)
class StoreInfo:
    """Size and contents of a store. `oldest` is the time of the oldest ledger entry."""

    url: str
    schema_revision: str
    size_bytes: int | None
    rows: Mapping[str, int]
    open_findings: int
    open_holds: int
    oldest: float | None
    sequence: int


@dataclass(frozen=True, slots=True)
class Pruned:
    """What a prune removed, by table, and up to which ledger sequence."""

    before: float
    removed: Mapping[str, int]
    ledger_from: int
