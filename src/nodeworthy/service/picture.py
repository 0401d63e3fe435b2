"""The picture: all that is known and decided after one turn, immutable, replaced as a whole.

The turn makes a new picture from the last one; the views read it from any thread; `changes` says what is new in it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from nodeworthy.decide.marks import MarkView
from nodeworthy.decide.policy import Policy
from nodeworthy.judge.events import EventState
from nodeworthy.judge.judge import JudgeState, Unknown
from nodeworthy.model.catalogue import Catalogue
from nodeworthy.model.finding import Finding, Incident
from nodeworthy.model.fleet import Fleet
from nodeworthy.model.hold import Hold
from nodeworthy.model.identity import Resolver
from nodeworthy.model.record import NodeState as Transition
from nodeworthy.model.scheduler import Job
from nodeworthy.model.status import NodeStatus
from nodeworthy.observe.snapshot import Seen


@dataclass(frozen=True, slots=True)
class World:
    """What the site declares: it changes seldom, and by people."""

    fleet: Fleet
    catalogue: Catalogue
    policy: Policy
    resolver: Resolver
    cluster: str = ""


@dataclass(frozen=True, slots=True)
class Picture:
    """`findings` and `holds` by finding key, `marks`, `statuses`, `transitions` and `jobs` by node."""

    number: int
    at: float
    seen: Seen
    world: World
    judged: JudgeState
    events: EventState
    findings: Mapping[str, Finding]
    unknown: tuple[Unknown, ...]
    incidents: tuple[Incident, ...]
    holds: Mapping[str, Hold]
    marks: Mapping[str, MarkView]
    statuses: Mapping[str, NodeStatus]
    transitions: Mapping[str, Transition]
    jobs: Mapping[str, tuple[Job, ...]] = field(default_factory=dict)
