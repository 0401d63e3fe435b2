"""Ten thousand nodes of a real slurmctld (phantom nodes: a thousand names answered for by one slurmd)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

import pytest

from nodeworthy.adapters.clock import SystemClock
from nodeworthy.adapters.slurm import text
from nodeworthy.adapters.slurm.scheduler import SlurmScheduler
from tests.conftest import Labs, command_for

NODES = 10_000
LEAF = 100


def best_of(times: int, work: Callable[[], object]) -> float:
    """Least processor time of this process in seconds: what others do meanwhile is not ours."""
    found = []
    for _ in range(times):
        begun = time.process_time()
        work()
        found.append(time.process_time() - begun)
    return min(found)


@pytest.mark.slurm
@pytest.mark.slow
@pytest.mark.timeout(240)
def test_ten_thousand_nodes(slurm_lab: Labs, capsys: pytest.CaptureFixture[str]) -> None:
    """One reading of 10,000 nodes takes less than a second of our own time, and finds every node right."""
    lab = slurm_lab("22.05", use="scale", nodes=0, phantom=NODES, leaf=LEAF)
    lab.run("scontrol", "update", "nodename=ph[00001-00100]", "state=drain", "reason=NHC: check_fs_mount /scratch")
    lab.run(
        *[
            "scontrol",
            "create",
            "reservation",
            "reservationname=r",
            "starttime=now",
            "duration=60",
            "users=root",
            "nodes=ph00001",
        ]
    )
    snapshot = asyncio.run(SlurmScheduler(command_for(lab), SystemClock()).read())
    assert len(snapshot.nodes) == NODES
    assert sum(node.drained for node in snapshot.nodes.values()) == 100
    assert {node.gpus for node in snapshot.nodes.values()} == {8}
    assert sum(unit.level == 0 for unit in snapshot.topology) == NODES // LEAF
    assert snapshot.problems == ()

    answer = command_for(lab).run_sync("scontrol", "-o", "-d", "-a", "show", "nodes")
    parsing = best_of(5, lambda: text.nodes(answer))
    whole = best_of(3, lambda: asyncio.run(SlurmScheduler(command_for(lab), SystemClock()).read()))
    begun = time.perf_counter()
    asyncio.run(SlurmScheduler(command_for(lab), SystemClock()).read())
    with capsys.disabled():
        wall = time.perf_counter() - begun
        print(
            f"\n10,000 nodes: parse {parsing:.2f} s, a whole reading {whole:.2f} s of our own, {wall:.2f} s by the clock"
        )
    assert parsing < 0.5
    assert whole < 1.0
