"""The engine: runs the turn whenever something arrived or its interval has passed, and commits what changed.

The turn is plain computation and may take seconds on a large fleet, so it runs in a worker thread while the observers
and the API go on. A turn is kept whole or not at all: if it or its commit fails, the picture stays, the log events it
had taken are given back, and the failure is shown in `doctor` and in the metrics.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from dataclasses import dataclass, replace

from nodeworthy.errors import NodeworthyError
from nodeworthy.model.fleet import Fleet
from nodeworthy.model.identity import Resolver
from nodeworthy.model.ledger import Entry
from nodeworthy.model.scheduler import SchedulerSnapshot
from nodeworthy.observe.snapshot import Seen, Snapshot
from nodeworthy.ports import Clock, Store
from nodeworthy.service.changes import changes
from nodeworthy.service.facts import Facts
from nodeworthy.service.names import Named, in_fleet_names
from nodeworthy.service.picture import Picture, World
from nodeworthy.service.turn import turn

log = logging.getLogger(__name__)

MIN_GAP_S = 0.1  # so that a storm of log lines is judged in handfuls and not line by line


@dataclass(frozen=True, slots=True)
class TurnHealth:
    """How the turns are doing. `failure` is the sentence of the last one that failed, empty after a good one.

    `number` and `at` are the last good one's, `took_s` is the last one's, good or not.
    """

    number: int = 0
    at: float | None = None
    took_s: float | None = None
    failure: str = ""


class Engine:
    """Owns the present picture. `picture` and `health` may be read from any thread."""

    def __init__(
        self,
        picture: Picture,
        facts: Facts,
        snapshot: Snapshot,
        store: Store,
        clock: Clock,
        interval_s: float,
        beat: Callable[[], None],
        keep_world: Callable[[World, float], None],
        fleet_of: Callable[[SchedulerSnapshot], Fleet] | None = None,
        on_turn: Callable[[Picture, TurnHealth], None] | None = None,
    ) -> None:
        self.picture = picture
        self.world: World = picture.world
        self.health = TurnHealth()
        self.interval_s = interval_s
        self._facts = facts
        self._snapshot = snapshot
        self._store = store
        self._clock = clock
        self._beat = beat
        self._fleet_of = fleet_of
        self._keep_world = keep_world
        self._on_turn = on_turn
        self._awake = asyncio.Event()
        self._named: tuple[SchedulerSnapshot, Resolver, Named] | None = None
        self._notes: list[Entry] = []

    def wake(self) -> None:
        """Take a turn soon: something arrived that should not wait."""
        self._awake.set()

    async def run(self) -> None:
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self.interval_s):
                    await self._awake.wait()
            self._awake.clear()
            await self.step()
            await self._clock.sleep(MIN_GAP_S)

    async def step(self) -> None:
        """One turn, from taking the snapshot to the commit."""
        seen = self._snapshot.take()
        started = self._clock.monotonic()
        try:
            picture = await asyncio.to_thread(self._turn_and_commit, seen, self._clock.now())
        except Exception as error:
            self._snapshot.put_back(seen.events)
            sentence = "; ".join(error.chain()) if isinstance(error, NodeworthyError) else repr(error)
            self.health = replace(self.health, failure=sentence, took_s=self._clock.monotonic() - started)
            log.exception("a turn failed; the last picture stands and its events will be read again")
        else:
            self.picture = picture
            self.health = TurnHealth(picture.number, picture.at, self._clock.monotonic() - started)
        self._beat()  # also after a failure, which is shown: ending us would not bring back a store that is away
        if self._on_turn is not None:
            self._on_turn(self.picture, self.health)

    def _turn_and_commit(self, seen: Seen, now: float) -> Picture:
        self.world = self._world_for(seen)
        seen = self._in_our_names(seen).current(now)
        frames = self._facts.frames(self.world, seen, now)
        after = turn(self.world, self.picture, seen, frames, now)
        with self._store.transaction():
            if after.world is not self.picture.world or not self.picture.number:
                self._keep_world(after.world, now)
            self._store.commit_turn(changes(self.picture, after))
            notes = tuple(self._notes)
            self._store.append(notes)
        del self._notes[: len(notes)]
        return after

    def _in_our_names(self, seen: Seen) -> Seen:
        """Names are resolved once for each reading and resolver, not once a turn."""
        if seen.scheduler is None:
            return seen
        if self._named is None or self._named[0] is not seen.scheduler or self._named[1] is not self.world.resolver:
            self._named = (seen.scheduler, self.world.resolver, in_fleet_names(seen.scheduler, self.world.resolver))
        named = self._named[2]
        return replace(seen, scheduler=named.snapshot, doubts=named.doubts)

    def _world_for(self, seen: Seen) -> World:
        """Without a fleet file the fleet is what the scheduler lists, and changes when that does."""
        if self._fleet_of is None or seen.scheduler is None:
            return self.world
        if self._named is not None and seen.scheduler is self._named[0]:
            return self.world
        fleet = self._fleet_of(seen.scheduler)
        if fleet.revision == self.world.fleet.revision:
            return self.world
        return self.world.with_fleet(fleet)

    def note(self, kind: str, subject: str, summary: str) -> None:
        """A ledger entry about ourselves, kept with the next turn that succeeds: whoever notes waits for no store."""
        self._notes.append(Entry(self._clock.now(), kind, subject, summary))
