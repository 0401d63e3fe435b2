"""How `serve` is put together: names, budgets, who may write, and when retention may remove."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from nodeworthy.adapters.clock import SystemClock
from nodeworthy.model.ledger import Entry
from nodeworthy.model.record import Outcome
from nodeworthy.observe.observers import HARD_LIMIT_S, Observers
from nodeworthy.record.store import SqlStore, open_store
from nodeworthy.service import engine as engine_module
from nodeworthy.service.engine import TurnHealth
from nodeworthy.wiring import sources
from nodeworthy.wiring.serve import _Site
from nodeworthy.wiring.settings import Exporters, Logs, Prometheus, Settings, Slurm
from tests.pictures import START, xid
from tests.record_samples import finding


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqlStore]:
    found = open_store(str(tmp_path / "record.db"))
    yield found
    found.close()


def settings(tmp_path: Path, **more: object) -> Settings:
    return Settings.model_validate({"state_dir": tmp_path, "slurm": Slurm(enabled=False), **more})


def test_no_loop_stalls_before_its_observer_gives_up(tmp_path: Path, store: SqlStore) -> None:
    """A source that hangs is cut off and said; the watchdog, which would end all of us, comes only after that."""
    given = settings(
        tmp_path,
        slurm=Slurm(timeout="1s"),
        exporters=[Exporters(name="dcgm", targets=("http://n1:9400/metrics",), interval="1s")],
        prometheus=[Prometheus(url="http://p:9090", interval="1s")],
        logs=[Logs(path=tmp_path / "kern.log")],
    )
    site = _Site(given, store)
    watches = [*site._watch_scheduler(_observers(site)).items(), *site._watch_others(_observers(site)).items()]
    for _, watch in watches:
        watch.close()
    budgets = {loop.name: loop.budget_s for loop in site.deadman.loops()}
    site.facts.close()
    assert {"slurm", "dcgm", "prometheus", str(tmp_path / "kern.log")} <= set(budgets)
    assert all(budgets[name] > HARD_LIMIT_S for name, _ in watches), budgets


def _observers(site: _Site) -> Observers:
    return Observers(site.snapshot, site.clock, site.engine.wake, site.deadman.beat)


@pytest.mark.parametrize("name", ["kernel", ""])
def test_lines_that_come_again_behind_a_kept_cursor_are_not_kept_twice(
    tmp_path: Path, store: SqlStore, name: str
) -> None:
    """The cursor is kept under the name that its events carry, so that a second delivery is known as one."""
    file = Logs(path=tmp_path / "kern.log", name=name)
    port = sources.log_file(file, lambda host: host, SystemClock(), None)
    assert port.source == file.called
    event = replace(xid("n3", START), source=port.source)
    outcome = Outcome(at=START, events=(event,), cursors={file.called: {"offset": 1}})
    store.commit_turn(outcome)
    store.commit_turn(outcome)
    assert store.events().items == (event,)


class Later:
    """A clock that is so far ahead, and counts its sleeps."""

    def __init__(self, ahead_s: float) -> None:
        self.ahead_s, self.slept = ahead_s, 0.0

    def now(self) -> float:
        return START + self.ahead_s + self.slept

    def monotonic(self) -> float:
        return 7.0 + self.slept

    async def sleep(self, seconds: float) -> None:
        self.slept += seconds
        await asyncio.sleep(0)


def cleaned(site: _Site, clock: Later, rounds: int, *, turned: bool = True) -> int:
    """How often retention cleaned up while the clock's loop went round so often."""
    site.clock, site.started = clock, clock.monotonic()  # type: ignore[assignment]
    site.engine.health = TurnHealth(1, START, 0.1) if turned else TurnHealth(failure="no")

    async def play() -> None:
        cleaning = asyncio.create_task(site._clean_up())
        until = clock.slept + (rounds - 0.5) * (site.settings.retention.every if turned else 1.0)
        while clock.slept < until:
            await asyncio.sleep(0.001)
        cleaning.cancel()

    asyncio.run(play())
    return len(site.store.entries(kinds=("store.pruned",)))


def test_retention_does_not_trust_a_clock_that_is_years_ahead(
    tmp_path: Path, store: SqlStore, caplog: pytest.LogCaptureFixture
) -> None:
    """Nothing is removed, it is said each round, and a clean-up by hand says that the clock is right."""
    old = finding(since=START, ended=START + 1)
    store.commit_turn(Outcome(START, entries=(Entry(START, "x", "n1", "was here"),), findings=(old,)))
    site = _Site(settings(tmp_path), store)
    years = Later(5 * 365 * 86400.0)
    assert cleaned(site, years, 2) == 0
    assert "if the clock is right" in caplog.text
    assert len(store.findings(open_only=False).items) == 1
    store.prune(START - 1, now=years.now())
    assert cleaned(site, years, 1) > 1
    assert len(store.findings(open_only=False).items) == 0
    site.facts.close()


def test_retention_waits_for_a_good_turn_and_then_works(tmp_path: Path, store: SqlStore) -> None:
    """With a plausible clock each round cleans up; before a turn has succeeded none does."""
    store.append([Entry(START, "x", "n1", "was here")])
    site = _Site(settings(tmp_path), store)
    assert cleaned(site, Later(3600.0), 3, turned=False) == 0
    assert cleaned(site, Later(3600.0), 3) >= 3
    site.facts.close()


def test_a_failed_turn_is_measured_by_itself(tmp_path: Path, store: SqlStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its own duration goes into the metrics, not that of the last good one."""
    site = _Site(settings(tmp_path), store)
    site.deadman.register("turn", 60.0)
    told: list[tuple[float, bool]] = []
    monkeypatch.setattr(site.metrics, "turn_made", lambda took_s, *, ok: told.append((took_s, ok)))
    asyncio.run(site.engine.step())

    def slow(*_: object) -> None:
        time.sleep(0.3)
        raise ZeroDivisionError

    monkeypatch.setattr(engine_module, "turn", slow)
    asyncio.run(site.engine.step())
    (_, good), (took, failed) = told
    assert (good, failed) == (True, False)
    assert took >= 0.3
    site.facts.close()
