"""How `serve` is put together: names, budgets, who may write, and when retention may remove."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from nodeworthy.adapters.clock import SystemClock
from nodeworthy.model.record import Outcome
from nodeworthy.observe.observers import HARD_LIMIT_S, Observers
from nodeworthy.record.store import SqlStore, open_store
from nodeworthy.wiring import sources
from nodeworthy.wiring.serve import _Site
from nodeworthy.wiring.settings import Exporters, Logs, Prometheus, Settings, Slurm
from tests.pictures import START, xid


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
