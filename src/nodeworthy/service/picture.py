"""The picture: all that is known and decided after one turn, immutable, replaced as a whole.

The turn makes a new picture from the last one; the views read it from any thread; `changes` says what is new in it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

import polars as pl

from nodeworthy.decide.marks import MarkView
from nodeworthy.decide.policy import Policy
from nodeworthy.judge.events import BOOT_SLACK_S, EventState
from nodeworthy.judge.frames import Frames
from nodeworthy.judge.judge import JudgeState
from nodeworthy.judge.locate import EMPTY
from nodeworthy.judge.reasons import Reasons
from nodeworthy.judge.unknown import UnknownGroup
from nodeworthy.model.catalogue import Catalogue
from nodeworthy.model.fact import NODE
from nodeworthy.model.finding import Finding, Incident
from nodeworthy.model.fleet import Fleet
from nodeworthy.model.hold import Hold
from nodeworthy.model.identity import Resolver
from nodeworthy.model.record import Transition
from nodeworthy.model.scheduler import BaseState, Job, SchedulerNode, SchedulerSnapshot
from nodeworthy.model.status import NodeState, NodeStatus
from nodeworthy.observe.snapshot import Seen

# flags that come and go with every job say nothing of whether a node is fit
PASSING_FLAGS = frozenset({"COMPLETING", "PLANNED", "CLOUD", "DYNAMIC_NORM", "DYNAMIC_FUTURE", "BLOCKED"})
IN_SERVICE = frozenset({BaseState.IDLE, BaseState.ALLOCATED, BaseState.MIXED})

# Slurm computes the boot time from uptime and its clock at each registration, so it moves by a second or so
BOOT_JITTER_S = 10.0
BOOT_SIGNAL = "boot_time"
BOOT_AHEAD_S = 60.0  # a boot further in the future than clocks differ is a lie, and would make every line history


@dataclass(frozen=True, slots=True)
class World:
    """What the site declares: it changes seldom, and by people."""

    fleet: Fleet
    catalogue: Catalogue
    policy: Policy
    reasons: Reasons
    resolver: Resolver

    def with_fleet(self, fleet: Fleet) -> World:
        return replace(self, fleet=fleet, resolver=Resolver(fleet))


@dataclass(frozen=True, slots=True)
class Picture:
    """`findings` and `holds` by finding key; `marks`, `statuses`, `transitions`, `jobs` and `boots` by node.

    `told`, `lost` and `revisions` are what the ledger knows: the last word on each node, the sources that are out of
    sight, and the revision of what is declared. `boots` is when each node booted, as last known: a silent scheduler
    makes no old line new. `answers`: kind → a Boolean column per check, a row per component (null: unknown). `places`: where each GPU is.
    """

    number: int
    at: float
    seen: Seen
    world: World
    frames: Frames
    judged: JudgeState
    events: EventState
    places: pl.DataFrame = field(default_factory=EMPTY.clone)
    answers: Mapping[str, pl.DataFrame] = field(default_factory=dict)
    findings: Mapping[str, Finding] = field(default_factory=dict)
    unknown: tuple[UnknownGroup, ...] = ()
    incidents: tuple[Incident, ...] = ()
    holds: Mapping[str, Hold] = field(default_factory=dict)
    marks: Mapping[str, MarkView] = field(default_factory=dict)
    statuses: Mapping[str, NodeStatus] = field(default_factory=dict)
    transitions: Mapping[str, Transition] = field(default_factory=dict)
    jobs: Mapping[str, tuple[Job, ...]] = field(default_factory=dict)
    boots: Mapping[str, float] = field(default_factory=dict)
    told: Mapping[str, NodeStatus] = field(default_factory=dict)
    lost: frozenset[str] = frozenset()
    revisions: Mapping[str, str] = field(default_factory=dict)

    def scheduler_node(self, name: str) -> SchedulerNode | None:
        """The node as its scheduler sees it now; None where the scheduler is not seen or does not list it."""
        scheduler = self.seen.scheduler
        return None if scheduler is None else scheduler.nodes.get(name)


def jobs_by_node(scheduler: SchedulerSnapshot | None) -> dict[str, tuple[Job, ...]]:
    found: dict[str, list[Job]] = defaultdict(list)
    for job in scheduler.jobs if scheduler else ():
        for node in job.nodes:
            found[node].append(job)
    return {node: tuple(jobs) for node, jobs in found.items()}


def transition(name: str, node: SchedulerNode, at: float) -> Transition:
    """What is kept of a node's scheduler state: whether and why it is out, not which job came and went."""
    base = "UP" if node.base in IN_SERVICE else node.base.value
    flags = tuple(sorted(node.flags - PASSING_FLAGS))
    mark = node.mark
    return Transition(
        node=name,
        state="+".join([base, *flags]),
        flags=flags,
        at=at,
        reason=mark.reason if mark else None,
        user=mark.user if mark else None,
        reason_at=mark.at if mark else None,
    )


def transitions(
    scheduler: SchedulerSnapshot | None, before: Mapping[str, Transition], now: float
) -> dict[str, Transition]:
    """The last transition of every node; the one before where nothing changed or the scheduler is not seen."""
    after = dict(before)
    for name, node in (scheduler.nodes if scheduler else {}).items():
        new, old = transition(name, node, now), before.get(name)
        if old is None or (old.state, old.reason, old.user) != (new.state, new.reason, new.user):
            after[name] = new
    return after


def boots(
    scheduler: SchedulerSnapshot | None, frames: Frames, before: Mapping[str, float], now: float
) -> dict[str, float]:
    """When each node booted, as last known: the first report of a boot stands until one of another boot.

    The scheduler says it, and telemetry where the scheduler does not, or where it still says the boot before.
    """
    after = dict(before)
    for name, node in (scheduler.nodes if scheduler else {}).items():
        at, known = node.boot_at, before.get(name)
        if at is not None and at <= now + BOOT_AHEAD_S and (known is None or abs(at - known) > BOOT_JITTER_S):
            after[name] = at
    for name, at in _boots_seen(frames):
        known = after.get(name)
        # what two sources compute in two ways differs by more than what one says twice
        if at <= now + BOOT_AHEAD_S and (known is None or at > known + BOOT_SLACK_S):
            after[name] = at
    return after


def _boots_seen(frames: Frames) -> Iterable[tuple[str, float]]:
    table = frames.tables.get(NODE)
    if table is None or BOOT_SIGNAL not in table.frame.columns:
        return ()
    return table.frame.select("node", BOOT_SIGNAL).drop_nulls().iter_rows()


def told(words: Mapping[str, NodeStatus], before: Mapping[str, NodeStatus], *, blind: bool) -> Mapping[str, NodeStatus]:
    """What the ledger knows of each node after this turn.

    While a source that nodes are seen by is out of sight (`blind`) that is one entry, and not one for each node that became unknown by it.
    """
    if not blind:
        return words
    known = {n: before.get(n) if s.state is NodeState.UNKNOWN else s for n, s in words.items()}
    return {name: status for name, status in known.items() if status is not None}


def lost_sources(seen: Seen, before: frozenset[str], now: float) -> frozenset[str]:
    """The sources whose last word is no longer the present. One that was lost before us is so until it answers."""
    return frozenset(name for name, s in seen.sources.items() if s.gone(now) or (name in before and s.last_ok is None))


def revisions(world: World) -> dict[str, str]:
    return {"fleet": world.fleet.revision, "catalogue": world.catalogue.revision}
