"""Whole turns of a big fleet: `benchmarks.turn` at sizes that a test can afford, in processor time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from benchmarks.big_fleet import EVERY_S, GPUS, Site, batches, fleet, names, scheduler, site
from benchmarks.turn import HOT, TARGET_S
from labs.pages import Settings
from nodeworthy.adapters.clock import SystemClock
from nodeworthy.adapters.slurm.scheduler import SlurmScheduler
from nodeworthy.model.status import NodeState
from tests.conftest import Labs, command_for


def see(watched: Site, count: int, drained: Sequence[str] = (), settings: Settings | None = None) -> None:
    now = watched.clock.time + EVERY_S
    watched.see(scheduler(count, now, drained), batches(watched.signals, names(count), now, settings))


def turn(watched: Site) -> float:
    """Processor seconds of one turn: the machine may be busy with other things."""
    begun = time.process_time()
    watched.turn()
    return time.process_time() - begun


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_turns_of_ten_thousand_nodes(tmp_path: Path) -> None:
    """10,000 nodes of eight GPUs: quiet turns and a thousand changes stay far below the target, and are right."""
    count = 10_000
    with site(tmp_path, fleet(count)) as watched:
        see(watched, count)
        first = turn(watched)
        quiet = []
        for _ in range(3):
            see(watched, count)
            quiet.append(turn(watched))
        see(watched, count, drained=names(count)[:1000])
        changed = turn(watched)
        picture = watched.engine.picture
        assert len(picture.frames.tables["gpu"].frame) == count * GPUS
        assert sum(s.state is NodeState.OUT for s in picture.statuses.values()) == 1000
        assert len(watched.store.history(names(count)[0]).items) == 2
    assert min(quiet) < 0.5 * TARGET_S
    assert first < 2 * TARGET_S
    assert changed < TARGET_S


@pytest.mark.timeout(240)
def test_faults_everywhere_cost_in_proportion(tmp_path: Path) -> None:
    """Four times the nodes, all of them with a fault on every GPU, opening and ending, cost about four times as much."""
    spent = {}
    for count in (250, 1000):
        folder = tmp_path / str(count)
        folder.mkdir()
        with site(folder, fleet(count)) as watched:
            see(watched, count)
            turn(watched)
            see(watched, count, settings=HOT)
            opening = turn(watched)
            assert len(watched.engine.picture.findings) >= count * GPUS
            see(watched, count)
            watched.turn(after_s=4000.0)  # the fault is gone
            see(watched, count)
            closing = 0.0
            while watched.engine.picture.findings and closing < 60:
                watched.clock.time += 4000.0
                see(watched, count)
                closing += turn(watched)
            assert not watched.engine.picture.findings
            spent[count] = opening + closing
    assert spent[1000] < 9 * spent[250]  # a square would be sixteen


@pytest.mark.slurm
@pytest.mark.slow
@pytest.mark.timeout(300)
def test_turns_over_a_real_slurmctld(slurm_lab: Labs, tmp_path: Path) -> None:
    """2,000 phantom nodes of a real slurmctld, read by the real adapter, without a fleet file."""
    count = 2000
    lab = slurm_lab("22.05", use="turns", nodes=0, phantom=count, leaf=100)
    command = command_for(lab)
    with site(tmp_path, None) as watched:
        watched.clock.time = time.time()

        def read() -> None:
            watched.see(asyncio.run(SlurmScheduler(command, SystemClock()).read()))

        read()
        turn(watched)
        lab.run("scontrol", "update", "nodename=ph[00001-00200]", "state=drain", "reason=NHC: check_fs_mount /scratch")
        read()
        changed = turn(watched)
        statuses = watched.engine.picture.statuses
        assert len(statuses) == count
        assert sum(s.state is NodeState.OUT for s in statuses.values()) == 200
        read()
        quiet = turn(watched)
    assert changed < TARGET_S / 3
    assert quiet < TARGET_S / 5
