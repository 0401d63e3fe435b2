"""The engine: a turn is kept whole or not at all, whatever fails, and nothing that was heard is lost."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from nodeworthy.errors import Refused
from nodeworthy.judge.features import Windows
from nodeworthy.model.record import Outcome
from nodeworthy.observe.snapshot import Snapshot, SourceReading
from nodeworthy.record.store import SqlStore, open_store
from nodeworthy.service import engine as engine_module
from nodeworthy.service.engine import Engine
from nodeworthy.service.facts import Facts
from nodeworthy.service.live import LiveViews
from nodeworthy.service.views import CheckState
from nodeworthy.wiring.world import first_picture, save_world
from tests.pictures import START, node, scheduler, world, xid


class Hand:
    """A clock that is set by hand; sleeping lets the others run."""

    def __init__(self) -> None:
        self.at = START

    def now(self) -> float:
        return self.at

    def monotonic(self) -> float:
        return self.at

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(0)


class Bench:
    """An engine on a real store, with what was seen set by hand."""

    def __init__(self, store: SqlStore) -> None:
        self.store, self.clock, self.snapshot = store, Hand(), Snapshot()
        self.world = world()
        self.turns = 0
        self.engine = Engine(
            picture=first_picture(self.world, store.load(), store, START),
            facts=Facts(Windows(self.world.catalogue)),
            snapshot=self.snapshot,
            store=store,
            clock=self.clock,
            interval_s=3600.0,
            beat=self._beat,
            keep_world=lambda kept, now: save_world(kept, store, now),
        )
        self.views = LiveViews(self.engine, store, self.clock, tuple)
        self.look()

    def _beat(self) -> None:
        self.turns += 1

    def look(self) -> None:
        now = self.clock.now()
        self.snapshot.scheduler = scheduler([node(n) for n in self.world.fleet.nodes], now)
        for name, kind in (("slurm", "scheduler"), ("kern.log", "log")):
            self.snapshot.sources[name] = SourceReading(name, kind, 30.0, START, last_ok=now, last_try=now)

    def hear(self, offset: int, **more: object) -> None:
        self.snapshot.events.append(xid("n3", self.clock.now() - 1, **more))  # type: ignore[arg-type]
        self.snapshot.cursors["kern.log"] = {"offset": offset}

    def step(self, seconds: float = 10.0) -> None:
        self.clock.at += seconds
        self.look()
        asyncio.run(self.engine.step())


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    store = open_store(f"sqlite:///{tmp_path}/record.db")
    yield Bench(store)
    store.close()


def test_a_good_turn(bench: Bench) -> None:
    """An Xid 79 becomes a hold, is recorded with its cursor, and the turn says how it went."""
    bench.hear(1)
    bench.step()

    assert [h.subject.node for h in bench.engine.picture.holds.values()] == ["n3"]
    assert bench.store.load().cursors["kern.log"] == {"offset": 1}
    assert (bench.engine.health.number, bench.engine.health.failure, bench.turns) == (1, "", 1)


def test_a_defect_of_ours_keeps_the_picture(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """The turn that fails changes nothing, is told everywhere, and the next one has all that was heard, in order."""
    bench.step()
    good = bench.engine.picture
    bench.hear(1)

    with monkeypatch.context() as broken:
        broken.setattr(engine_module, "turn", lambda *_: 1 / 0)
        bench.step()
    bench.hear(2, code="48")

    assert bench.engine.picture is good
    assert "ZeroDivisionError" in bench.engine.health.failure
    assert bench.turns == 2, "the loop lives: a watchdog that ends us would only take the last picture away"
    status = bench.views.status()
    assert not status.well
    assert status.needs[0].subject == "turn" and "the last turn failed" in status.needs[0].summary
    assert any(i.state is CheckState.FAIL and i.name == "turn" for i in bench.views.doctor().items)
    assert bench.store.load().cursors == {}

    bench.step()
    assert bench.engine.health.failure == ""
    assert [e.code for e in bench.store.events().items] == ["79", "48"]


class Full:
    """A store that refuses while it is full."""

    def __init__(self, store: SqlStore) -> None:
        self.store, self.full = store, True

    def __getattr__(self, name: str) -> object:
        return getattr(self.store, name)

    def commit_turn(self, outcome: Outcome) -> object:
        self.store.commit_turn(outcome)  # all of it is written, and then the commit fails
        if self.full:
            raise Refused("the store cannot be written: database or disk is full", hint="make room")
        return []


def test_a_full_disk_loses_nothing(bench: Bench) -> None:
    """What a failed commit had written is rolled back, and is written once when there is room again."""
    full = Full(bench.store)
    bench.engine._store = full  # type: ignore[assignment]
    bench.hear(1)
    bench.step()
    assert "disk is full" in bench.engine.health.failure
    assert bench.store.events().items == () and bench.store.sequence() == 0
    assert "disk is full" in bench.views.status().needs[0].summary

    full.full = False
    bench.step()
    assert bench.engine.health.failure == ""
    assert len(bench.store.events().items) == 1
    assert sum(e.kind == "finding.opened" for e in bench.store.entries()) == 1


def test_a_locked_store_is_waited_for_by_the_turn_alone(tmp_path: Path) -> None:
    """While another process holds the lock a turn fails in its time, and the next one has all."""
    store = open_store(f"sqlite:///{tmp_path}/record.db")
    bench = Bench(store)
    bench.hear(1)
    other = sqlite3.connect(tmp_path / "record.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")

    async def beside() -> int:
        turning = asyncio.create_task(bench.engine.step())
        ticks = 0
        while not turning.done():
            await asyncio.sleep(0.05)
            ticks += 1
            if ticks == 10:
                other.execute("ROLLBACK")
        return ticks

    assert asyncio.run(beside()) >= 10, "the event loop went on"
    other.close()
    if bench.engine.health.failure:  # it was not waited for long enough, which is allowed
        bench.step()
    assert len(store.events().items) == 1
    store.close()


def test_notes_wait_for_a_turn_that_succeeds(bench: Bench) -> None:
    """A note about ourselves is written once, with the time at which it was made, and never makes its author wait."""
    full = Full(bench.store)
    bench.engine._store = full  # type: ignore[assignment]
    bench.engine.note("loop.stalled", "slurm", "our loop slurm stalled")
    noted_at = bench.clock.now()
    bench.step()
    assert bench.store.sequence() == 0

    full.full = False
    bench.step()
    bench.step()
    (entry,) = bench.store.entries(kinds=["loop.stalled"])
    assert entry.at == noted_at


def test_wake_ups_coalesce_and_cancelling_ends_at_once(bench: Bench) -> None:
    """A thousand wake-ups while a turn is under way make one more turn; a cancelled engine is gone promptly."""

    async def storm() -> float:
        running = asyncio.create_task(bench.engine.run())
        for _ in range(1000):
            bench.engine.wake()
        while bench.turns < 1:
            await asyncio.sleep(0.01)
        for _ in range(1000):
            bench.engine.wake()
        await asyncio.sleep(1.0)
        started = time.monotonic()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        return time.monotonic() - started

    assert asyncio.run(storm()) < 1.0
    assert bench.turns == 2


def test_a_storm_of_lines_is_one_turn(bench: Bench) -> None:
    """A hundred thousand lines of one fault are one finding and one hold, within the time of some turns."""
    bench.step()
    line = xid("n3", bench.clock.now())
    bench.snapshot.events = [replace(line, at=line.at + n / 1e5) for n in range(100_000)]
    assert bench.snapshot.full
    bench.snapshot.cursors["kern.log"] = {"offset": 1}
    seen = bench.engine._in_our_names(bench.snapshot.take())
    started = time.monotonic()
    bench.clock.at += 10
    bench.look()
    frames = bench.engine._facts.frames(bench.world, seen, bench.clock.now())
    picture = engine_module.turn(bench.world, bench.engine.picture, seen, frames, bench.clock.now())
    took = time.monotonic() - started

    assert len(picture.findings) == 1 and "100000 times" in next(iter(picture.findings.values())).summary
    assert max(len(h.lines) for h in picture.events.heard.values()) < 100, "lines are not piled up"
    assert took < 20.0
    assert not bench.snapshot.full
