"""What the site declares, and the first picture after a start: the record's memory without any sight yet."""

from __future__ import annotations

from dataclasses import asdict

from nodeworthy.adapters.files.catalogue import load as load_catalogue
from nodeworthy.adapters.files.fleet import find_fleet, load_fleet
from nodeworthy.decide.fleet_import import from_scheduler
from nodeworthy.decide.policy import Policy
from nodeworthy.errors import NotKnown
from nodeworthy.judge.catalogue_check import LINES_KEPT
from nodeworthy.judge.events import EventState, judge_events
from nodeworthy.judge.frames import build
from nodeworthy.judge.judge import resume
from nodeworthy.model.fleet import Fleet, fleet_from_plain
from nodeworthy.model.identity import Resolver
from nodeworthy.model.record import Memory, Revision, SourceHealth
from nodeworthy.model.scheduler import SchedulerSnapshot
from nodeworthy.model.status import NodeState, NodeStatus
from nodeworthy.observe.snapshot import Seen
from nodeworthy.ports import Store
from nodeworthy.service.picture import Picture, World
from nodeworthy.wiring.reasons import shipped_reasons
from nodeworthy.wiring.settings import Settings

# Older lines are not taken up again after a restart, except those that an open finding rests on.
EVENTS_KEPT_S = 30 * 86400.0
EVENTS_A_PAGE = 10_000
LAST_FLEET = "last fleet"
LAST_CATALOGUE = "last catalogue"
LAST_POLICY = "last policy"
NOT_READ_YET = "nothing has been read since Nodeworthy started"
MOST_STATES = 100_000


def fleet_of(scheduler: SchedulerSnapshot) -> Fleet:
    """The fleet as the scheduler lists it, for a site that has not declared one."""
    return from_scheduler(scheduler).fleet


def load_world(settings: Settings, store: Store) -> tuple[World, bool]:
    """The world, and whether its fleet is declared (else it will be what the scheduler lists)."""
    try:
        fleet, declared = load_fleet(find_fleet(settings.fleet, here=False)), True
    except NotKnown:
        if settings.fleet is not None:
            raise
        fleet, declared = _last_listed(store), False
    policy = Policy(settings.policy.settle, settings.policy.shared_nodes, settings.policy.shared_share)
    catalogue = load_catalogue(settings.catalogue)
    world = World(fleet, catalogue, policy, shipped_reasons(), Resolver(fleet))
    return world, declared


def _last_listed(store: Store) -> Fleet:
    """The fleet that the scheduler listed when we last ran; empty where we never did."""
    digest = store.note(LAST_FLEET)
    if not isinstance(digest, str):
        return Fleet("", {}, {})
    try:
        return fleet_from_plain(store.revision("fleet", digest).content)
    except NotKnown:
        return Fleet("", {}, {})


def first_picture(world: World, memory: Memory, store: Store, now: float) -> Picture:
    """What was known when we stopped: open findings and holds, last states, and the events still in force.

    Boots are taken from the record, so that a line from before a node's last known boot is not taken for news. What
    the nodes are now nobody knows before the first reading; what the ledger said last is kept in `told`.
    """
    boots = {node: boot.at for node, boot in memory.boots.items()}
    events = EventState()
    after: int | None = 0
    checks = world.catalogue.checks
    by_lines = [f.since for f in memory.findings.values() if f.check in checks and checks[f.check].event is not None]
    since = min([now - EVENTS_KEPT_S, *by_lines])
    while after is not None:
        page = store.events(since=since, after=after, limit=EVENTS_A_PAGE, each=LINES_KEPT)
        events = judge_events(world.catalogue, page.items, events, now, boots=boots).state
        after = page.next
    frames = build(world.fleet, world.catalogue, (), now)
    return Picture(
        number=0,
        at=now,
        seen=Seen(None, (), (), {}, {}),
        world=world,
        frames=frames,
        judged=resume(world.catalogue, frames, memory.findings.values()),
        events=events,
        findings=memory.findings,
        holds={hold.because[0]: hold for hold in memory.holds.values() if hold.because},
        transitions=memory.states,
        statuses={name: NodeStatus(name, NodeState.UNKNOWN, NOT_READ_YET) for name in world.fleet.nodes},
        boots=boots,
        told=_last_statuses(store, world.fleet),
        lost=frozenset(s.source for s in memory.sources.values() if s.health is SourceHealth.LOST),
        revisions=_last_revisions(store),
    )


def _last_statuses(store: Store, fleet: Fleet) -> dict[str, NodeStatus]:
    """The last word of the ledger on each node that is still declared."""
    found: dict[str, NodeStatus] = {}
    for entry in store.entries(limit=MOST_STATES, kinds=("node.state",), newest=True):
        if entry.subject in fleet.nodes:
            since = entry.data.get("since")
            found[entry.subject] = NodeStatus(
                entry.subject,
                NodeState(str(entry.data["to"])),
                str(entry.data.get("reason", "")),
                since=since if isinstance(since, (int, float)) else None,
            )
    return found


def _last_revisions(store: Store) -> dict[str, str]:
    """What was declared when we last ran: a change while we were away is told in the first turn."""
    kept = {"fleet": store.note(LAST_FLEET), "catalogue": store.note(LAST_CATALOGUE)}
    return {kind: digest for kind, digest in kept.items() if isinstance(digest, str)}


def save_world(world: World, store: Store, now: float) -> None:
    """Keep the content of what decisions rest on, so that an old decision can be looked at again."""
    store.save_revision(Revision("fleet", world.fleet.revision, now, asdict(world.fleet)))
    store.save_revision(Revision("policy", world.policy.revision, now, asdict(world.policy)))
    store.set_note(LAST_FLEET, world.fleet.revision)
    store.set_note(LAST_CATALOGUE, world.catalogue.revision)
    store.set_note(LAST_POLICY, world.policy.revision)
