"""The scheduler port: its pace, and what happens when a part of an answer is missing."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable

import pytest

from nodeworthy.adapters.slurm import text
from nodeworthy.adapters.slurm.command import SlurmCommand
from nodeworthy.adapters.slurm.scheduler import SlurmScheduler
from nodeworthy.errors import Garbled, Refused, TimedOut, Unreachable, WorldError

NODES = "".join(
    f"NodeName={name} CPUTot=64 Gres=gpu:8 RealMemory=1 State=IDLE Partitions=batch BootTime=1796029385\n"
    for name in ("n1", "n2")
)
ANSWERS = {
    "nodes": NODES,
    "partition": "PartitionName=batch Default=YES Nodes=n[1-2] State=UP\n",
    "reservation": "ReservationName=r Nodes=n2 State=ACTIVE Flags=MAINT Users=root\n",
    "config": "ClusterName = lab\nSLURM_VERSION = 22.05.8\n",
    "topology": "SwitchName=s Level=0 Nodes=n[1-2]\n",
    "squeue": "",
}


class VirtualClock:
    """Time that passes only when told to."""

    def __init__(self) -> None:
        self.at = 1000.0

    def now(self) -> float:
        return 1_796_000_000.0 + self.at

    def monotonic(self) -> float:
        return self.at

    async def sleep(self, seconds: float) -> None:
        self.at += seconds


class Controller:
    """Answers as the clients would, and counts."""

    def __init__(self, **answers: str | WorldError) -> None:
        self.answers = ANSWERS | answers
        self.asked: list[str] = []

    async def run(self, *argv: str) -> str:
        what = "squeue" if argv[0] == "squeue" else argv[-1]
        self.asked.append(what)
        await asyncio.sleep(0)
        found = self.answers[what]
        if isinstance(found, WorldError):
            raise found
        return found


@pytest.fixture
def ask(monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[SlurmScheduler, Controller, VirtualClock]]:
    def make(**answers: str | WorldError) -> tuple[SlurmScheduler, Controller, VirtualClock]:
        controller, clock = Controller(**answers), VirtualClock()
        monkeypatch.setattr(SlurmCommand, "run", lambda _, *argv: controller.run(*argv))
        return SlurmScheduler(SlurmCommand(), clock, 10.0, 300.0), controller, clock

    return make


def test_one_reading(ask: Callable[..., tuple[SlurmScheduler, Controller, VirtualClock]]) -> None:
    """A reading joins all answers; a node is told its reservation also where Slurm's node list does not."""
    scheduler, controller, clock = ask()
    snapshot = asyncio.run(scheduler.read())
    assert (snapshot.cluster, snapshot.version, snapshot.taken_at) == ("lab", "22.05.8", clock.now())
    assert [node.reservation for node in snapshot.nodes.values()] == [None, "r"]
    assert snapshot.topology[0].nodes == ("n1", "n2")
    assert snapshot.problems == ()
    assert controller.asked == ["nodes", "squeue", "partition", "reservation", "config", "topology"]


def test_never_faster_than_configured(ask: Callable[..., tuple[SlurmScheduler, Controller, VirtualClock]]) -> None:
    """Many who ask at once cause one reading; the next comes when the interval has passed."""
    scheduler, controller, clock = ask()

    async def crowd() -> None:
        first, *others = await asyncio.gather(*(scheduler.read() for _ in range(20)))
        assert all(other is first for other in others)
        clock.at += 9.9
        assert await scheduler.read() is first
        clock.at += 0.2
        assert await scheduler.read() is not first

    asyncio.run(crowd())
    assert controller.asked.count("nodes") == 2
    assert controller.asked.count("config") == 1, "what hardly changes was read again"


def test_failures_keep_the_pace(ask: Callable[..., tuple[SlurmScheduler, Controller, VirtualClock]]) -> None:
    """A dead controller is not asked more often than a live one, and is asked again in time."""
    scheduler, controller, clock = ask(nodes=Unreachable("down"))
    for _ in range(5):
        with pytest.raises(Unreachable, match="down"):
            asyncio.run(scheduler.read())
    assert controller.asked == ["nodes"]
    controller.answers["nodes"] = NODES
    clock.at += 10
    assert len(asyncio.run(scheduler.read()).nodes) == 2


@pytest.mark.parametrize("part", ["nodes", "squeue", "partition", "reservation"])
@pytest.mark.parametrize("answer", [Unreachable("gone"), "half an ans"])
def test_no_partial_fleet(
    ask: Callable[..., tuple[SlurmScheduler, Controller, VirtualClock]], part: str, answer: str | WorldError
) -> None:
    """If one essential part cannot be read there is no snapshot at all."""
    scheduler, _, _ = ask(**{part: answer})
    with pytest.raises((Unreachable, Garbled)):
        asyncio.run(scheduler.read())


def test_topology_may_be_missing(ask: Callable[..., tuple[SlurmScheduler, Controller, VirtualClock]]) -> None:
    """No topology is fine; one that cannot be read is said in words."""
    scheduler, _, _ = ask(topology=Refused("x: No topology information available"))
    assert asyncio.run(scheduler.read()).problems == ()
    scheduler, _, _ = ask(topology="nonsense\n")
    assert re.search("topology could not be read", asyncio.run(scheduler.read()).problems[0])


def test_hidden_nodes_are_said(ask: Callable[..., tuple[SlurmScheduler, Controller, VirtualClock]]) -> None:
    """Nodes that partitions name and the node list lacks are told, not invented."""
    scheduler, _, _ = ask(partition="PartitionName=batch Nodes=n[1-9] State=UP\n")
    snapshot = asyncio.run(scheduler.read())
    assert len(snapshot.nodes) == 2
    assert snapshot.problems == ("7 nodes of the partitions are not in the node list: n3, n4, n5 …",)


def test_job_separator_is_new_each_time(ask: Callable[..., tuple[SlurmScheduler, Controller, VirtualClock]]) -> None:
    """Nobody can put the separator of the next reading into a job name."""
    formats: list[str] = []
    scheduler, controller, clock = ask()
    inner = controller.run

    async def listening(*argv: str) -> str:
        if argv[0] == "squeue":
            formats.append(argv[-1])
        return await inner(*argv)

    controller.run = listening  # type: ignore[method-assign]
    for _ in range(3):
        asyncio.run(scheduler.read())
        clock.at += 10
    assert len(set(formats)) == 3
    assert all(form.startswith(f"{text.JOB_FIELDS[0]}:x") for form in formats)


def test_an_unreadable_topology_is_what_it_was(
    ask: Callable[..., tuple[SlurmScheduler, Controller, VirtualClock]],
) -> None:
    """A time-out of one question does not take a fleet's switches away."""
    scheduler, controller, clock = ask()
    before = asyncio.run(scheduler.read()).topology
    controller.answers["topology"] = TimedOut("no answer")
    clock.at += 3600

    after = asyncio.run(scheduler.read())

    assert before and after.topology == before
    assert "topology could not be read" in after.problems[0]


def test_the_daemons_users_are_told(ask: Callable[..., tuple[SlurmScheduler, Controller, VirtualClock]]) -> None:
    """What slurmctld writes as its own user is nobody's act, whatever that user is called."""
    scheduler, controller, _ = ask()
    controller.answers["config"] += "SlurmUser               = slurmadm(64030)\nSlurmdUser              = root(0)\n"

    assert asyncio.run(scheduler.read()).daemon_users == {"slurmadm", "root"}
