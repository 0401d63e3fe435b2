"""The Scheduler port on every real Slurm that is here, and on recorded answers of three versions."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from labs.slurm_lab import SlurmLab
from labs.slurm_states import PERSON, ExpectedNode
from nodeworthy.adapters.clock import SystemClock
from nodeworthy.adapters.slurm import answers, documents, text
from nodeworthy.adapters.slurm.scheduler import SlurmScheduler
from nodeworthy.decide.marks import classify
from nodeworthy.errors import Garbled, TimedOut, Unreachable
from nodeworthy.model.scheduler import SchedulerNode, SchedulerSnapshot
from nodeworthy.wiring.reasons import shipped_reasons
from tests.conftest import SLURM_VERSIONS, Labs, command_for

States = Callable[[str], tuple[SlurmLab, dict[str, ExpectedNode]]]
every_version = pytest.mark.parametrize("version", SLURM_VERSIONS)
SLACK_S = 2
"""Slurm rounds boot times differently from one reading to the next."""


def read(lab: SlurmLab, timeout_s: float = 60.0) -> SchedulerSnapshot:
    return asyncio.run(SlurmScheduler(command_for(lab, timeout_s), SystemClock()).read())


@pytest.fixture
def situation(slurm_states: States, version: str) -> tuple[SlurmLab, dict[str, ExpectedNode], SchedulerSnapshot]:
    lab, expected = slurm_states(version)
    return lab, expected, read(lab)


Situation = tuple[SlurmLab, dict[str, ExpectedNode], SchedulerSnapshot]


@pytest.mark.slurm
@every_version
class TestSixteenStates:
    """Sixteen nodes in sixteen states, made for real."""

    def test_states(self, situation: Situation, version: str) -> None:
        """Base state and flags of every node are those that Slurm has, no flag more and none less."""
        _, expected, snapshot = situation
        assert snapshot.version.startswith(version.replace(".0", ".0"))
        assert {name: node.state for name, node in snapshot.nodes.items()} == {
            name: node.state for name, node in expected.items()
        }
        assert snapshot.problems == ()

    def test_busy_words(self, situation: Situation, version: str) -> None:
        """Drained and draining are computed from base and flags."""
        nodes = situation[2].nodes
        assert {name for name, node in nodes.items() if node.draining} == {"n7", "n11"}
        assert {name for name, node in nodes.items() if node.drained} == {"n6", "n10", "n14", "n16"}

    def test_marks(self, situation: Situation, version: str) -> None:
        """Reason, author and time of every mark, and no mark where nobody made one."""
        lab, expected, snapshot = situation
        by_person = PERSON if lab.options.database else "root"
        now = time.time()
        for name, node in snapshot.nodes.items():
            assert (node.mark.reason if node.mark else None) == expected[name].reason, name
            if node.mark:
                assert node.mark.user == (by_person if name in ("n6", "n7") else "root"), name
                assert node.mark.at is not None and now - 1800 < node.mark.at <= now + 1, name

    def test_owner_and_cause(self, situation: Situation, version: str) -> None:
        """Whose mark it is and what it means, for every node."""
        _, expected, snapshot = situation
        found = {name: classify(node, shipped_reasons().normalise) for name, node in snapshot.nodes.items()}
        assert {n: (m.owner.kind.value, m.cause) if m else ("", "") for n, m in found.items()} == {
            name: (node.owner, node.cause) for name, node in expected.items()
        }

    def test_gpus(self, situation: Situation, version: str) -> None:
        """Every node has eight GPUs configured, and as many in use as its job took."""
        _, expected, snapshot = situation
        assert {(node.gpus, node.gpu_type) for node in snapshot.nodes.values()} == {(8, "h100")}
        assert {n: node.gpus_used for n, node in snapshot.nodes.items()} == {
            n: e.gpus_used for n, e in expected.items()
        }

    def test_hardware_and_boot(self, situation: Situation, version: str) -> None:
        """What is declared and when it booted: the reboot of a lab node that hangs leaves the old boot time."""
        for node in situation[2].nodes.values():
            assert (node.cpus, node.memory_mb, node.sockets) == (64, 2_000_000, 2)
            assert node.boot_at is not None and node.boot_at < time.time()
            assert node.slurmd_start_at is not None and node.slurmd_start_at <= time.time() + 1
            assert node.partitions == ("batch", "low", "high")

    def test_reservations(self, situation: Situation, version: str) -> None:
        """Two reservations are active, and each node knows its own."""
        snapshot = situation[2]
        found = {one.name: one for one in snapshot.reservations}
        assert set(found) == {"demo", "service"}
        assert all(one.active and one.users == ("root",) for one in found.values())
        assert (found["demo"].nodes, found["service"].nodes) == (("n8",), ("n9",))
        assert "MAINT" in found["service"].flags and "MAINT" not in found["demo"].flags
        assert {n: node.reservation for n, node in snapshot.nodes.items() if node.reservation} == {
            "n8": "demo",
            "n9": "service",
        }

    def test_topology_and_partitions(self, situation: Situation, version: str) -> None:
        """Four leaves of four below one spine; every partition has all nodes."""
        snapshot = situation[2]
        everybody = {f"n{i}" for i in range(1, 17)}
        leaves = [unit for unit in snapshot.topology if unit.level == 0]
        assert sorted(map(len, (leaf.nodes for leaf in leaves))) == [4, 4, 4, 4]
        assert set().union(*(leaf.nodes for leaf in leaves)) == everybody
        (spine,) = (unit for unit in snapshot.topology if unit.level == 1)
        assert set(spine.children) == {leaf.name for leaf in leaves}
        assert [(one.name, one.state, one.default) for one in snapshot.partitions] == [
            ("batch", "UP", True),
            ("low", "UP", False),
            ("high", "UP", False),
        ]
        assert all(set(one.nodes) == everybody for one in snapshot.partitions)

    def test_jobs(self, situation: Situation, version: str) -> None:
        """Running jobs with their nodes and GPUs; the job of the lost node waits to run again."""
        running = {one.name: (one.nodes, one.gpus) for one in situation[2].jobs if one.state == "RUNNING"}
        assert running == {
            "mixed": (("n2",), 2),
            "alloc": (("n3", "n4"), 16),
            "ondrain": (("n7",), 4),
            "onreboot": (("n11",), 1),
            "onfailing": (("n13",), 8),
        }
        (lost,) = (one for one in situation[2].jobs if one.name == "onlost")
        assert (lost.state, lost.nodes) == ("PENDING", ())

    def test_json_says_the_same(self, situation: Situation, version: str) -> None:
        """The JSON of this version and its text are read to the same nodes and jobs."""
        lab, _, snapshot = situation
        argv = ("sinfo", "--json") if version == "22.05" else ("scontrol", "--json", "show", "nodes")
        answer = command_for(lab).run_sync(*argv)
        assert (documents.version(answer) or "").startswith(version)
        assert comparable(answers.nodes(answer)) == comparable(snapshot.nodes)
        jobs = documents.jobs(command_for(lab).run_sync("squeue", "-a", "--json"))
        by_id = {one.job_id: one for one in jobs}
        for one in snapshot.jobs:
            if one.state == "RUNNING":
                assert by_id[one.job_id] == one

    def test_reading_writes_nothing(self, situation: Situation, version: str) -> None:
        """Counted at slurmctld: five readings are five readings and no write of any kind."""
        lab = situation[0]
        before, asked_before = lab.update_requests(), lab.requests()
        for _ in range(5):
            read(lab)
        assert lab.update_requests() == before
        assert lab.requests()["REQUEST_NODE_INFO"] >= asked_before["REQUEST_NODE_INFO"] + 5


def comparable(nodes: dict[str, SchedulerNode]) -> dict[str, dict[str, object]]:
    """Nodes without what 22.05's JSON lacks, boot times rounded to what Slurm itself keeps stable."""
    return {
        name: asdict(replace(node, reservation=None, boot_at=None, slurmd_start_at=None))
        for name, node in nodes.items()
    }


@pytest.mark.slurm
@every_version
def test_words_that_pose_as_something(slurm_lab: Labs, version: str) -> None:
    """Line ends, brackets and fields in reasons, comments and job names stay what they are."""
    lab = slurm_lab(version, use="words", nodes=3)
    reason = "a [b@1] c=d State=DOWN\nNodeName=evil State=IDLE"
    first, second, _ = lab.node_names
    lab.run("scontrol", "update", f"nodename={first}", "state=drain", f"reason={reason}", "comment=x Reason=y [z@17]")
    lab.submit("-J", "a\nJobId=666 State=RUNNING|x", "-w", second, "-n1", "--gres=gpu:1", "-t", "10")
    lab.await_state(second, "MIXED")
    snapshot = read(lab)
    assert list(snapshot.nodes) == lab.node_names
    mark = snapshot.nodes[first].mark
    assert mark is not None and (mark.reason, mark.user) == (reason, "root")
    assert snapshot.nodes[first].state == "IDLE+DRAIN"
    (job,) = snapshot.jobs
    assert (job.name, job.nodes, job.gpus) == ("a\nJobId=666 State=RUNNING|x", (second,), 1)


@pytest.mark.slurm
@every_version
def test_no_answer_is_an_error(slurm_lab: Labs, version: str) -> None:
    """A controller that hangs times out; one that is gone is unreachable; back again, it is read again."""
    lab = slurm_lab(version, use="dead", nodes=2, topology="none")
    assert read(lab).topology == ()
    pid = lab.processes.pid("slurmctld")
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)
    try:
        with pytest.raises((TimedOut, Unreachable)):
            read(lab, timeout_s=2)
    finally:
        os.kill(pid, signal.SIGCONT)
    lab.stop_controller()
    with pytest.raises((Unreachable, TimedOut)):
        read(lab, timeout_s=4)
    lab.start_controller()
    assert len(read(lab).nodes) == 2


@pytest.mark.slurm
@every_version
def test_a_lab_leaves_nothing_behind(slurm_roots: Callable[[str], Path | None], version: str) -> None:
    """Stopped in the middle of a reboot, a lab leaves no process that knows its folder."""
    database = shutil.which("mariadbd") is not None  # its end takes longer than the reboot
    with tempfile.TemporaryDirectory(prefix="nw-") as folder:
        with SlurmLab(f"{folder}/lab", root=slurm_roots(version), nodes=2, database=database).start() as lab:
            first, _ = lab.node_names
            lab.submit("-w", first, "-n1", "-t", "10")
            lab.await_state(first, "MIXED")
            lab.run("scontrol", "reboot", "ASAP", first)
            lab.await_state(first, r"MIXED\+.*REBOOT_REQUESTED.*")
            lab.run("scancel", "--state=running")
            lab.await_state(first, r".*REBOOT_ISSUED.*")
        time.sleep(3)  # a reboot takes a second in the lab
        known = str(lab.directory).encode()
        assert [path for path in Path("/proc").glob("[0-9]*/cmdline") if known in _content(path)] == []
        assert not lab.directory.exists()


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


@pytest.mark.slurm
@pytest.mark.parametrize("version", SLURM_VERSIONS[1:])
def test_blocks(slurm_lab: Labs, version: str) -> None:
    """A block topology has blocks, and blocks made of blocks one level up."""
    snapshot = read(slurm_lab(version, use="blocks", nodes=8, topology="block"))
    levels = [(unit.kind, unit.level, len(unit.nodes), len(unit.children)) for unit in snapshot.topology]
    assert levels == [("block", 0, 4, 0), ("block", 0, 4, 0), ("block", 1, 8, 2)]


@pytest.mark.parametrize("version", SLURM_VERSIONS)
@pytest.mark.parametrize("moment", ["a", "b"])
def test_recorded_answers(shared: Path, version: str, moment: str) -> None:
    """Recorded text in three forms and JSON all tell the same of twenty nodes, cloud nodes included."""
    folder = shared / "samples/slurm" / version
    one_line = text.nodes((folder / f"{moment}-scontrol-nodes-oneliner.txt").read_text())
    assert len(one_line) == 20
    assert one_line["cloud00003"].state == "IDLE+CLOUD+POWERED_DOWN"
    assert one_line["cloud00003"].boot_at is None
    assert text.nodes((folder / f"{moment}-scontrol-nodes.txt").read_text()) == one_line
    detailed = text.nodes((folder / f"{moment}-scontrol-nodes-d.txt").read_text())
    assert detailed["gpu00002"].gpus_used == 2
    json = folder / (f"{moment}-sinfo.json" if version == "22.05" else f"{moment}-scontrol-nodes.json")
    from_json = answers.nodes(json.read_text())
    assert comparable(from_json) == comparable(detailed)
    for name, node in from_json.items():
        if node.boot_at is not None:
            assert abs(node.boot_at - (detailed[name].boot_at or 0)) <= SLACK_S


@pytest.mark.parametrize("version", SLURM_VERSIONS)
def test_recorded_rest_answers(shared: Path, version: str) -> None:
    """Every REST version's list of nodes reads to the same states as the text of that moment."""
    folder = shared / "samples/slurm" / version
    for path in sorted(folder.glob("rest-v*-nodes.json")):
        nodes = answers.nodes(path.read_text())
        assert len(nodes) == 20, path.name
        assert nodes["gpu00014"].gpus == 8
        assert {one.base.value for one in nodes.values()} <= {"IDLE", "MIXED", "ALLOCATED", "DOWN"}


@pytest.mark.parametrize("version", SLURM_VERSIONS)
def test_recorded_others(shared: Path, version: str) -> None:
    """Partitions, reservations, topology, configuration and ping of three versions."""
    folder = shared / "samples/slurm" / version
    assert [len(one.nodes) for one in text.partitions((folder / "scontrol-partitions.txt").read_text())] == [20, 20, 20]
    reservations = text.reservations((folder / "scontrol-reservations.txt").read_text())
    assert [(one.name, one.active) for one in reservations] == [("demo", True), ("service", True), ("later", False)]
    assert reservations[2].nodes == ("gpu00001", "gpu00002", "gpu00003", "gpu00004")
    topology = text.topology((folder / "scontrol-topology.txt").read_text())
    assert [unit.level for unit in topology] == [0, 0, 0, 0, 0, 1]
    assert text.config((folder / "scontrol-config.txt").read_text())["ClusterName"] == "lab"
    assert text.ping((folder / "scontrol-ping.txt").read_text()) == {"vm": True}


def test_text_in_spite_of_json(shared: Path) -> None:
    """`scontrol --json show topology` prints text: read by what it is, not by what was asked for."""
    said = (shared / "samples/slurm/26.05/scontrol-topology.json").read_text()
    assert not documents.is_document(said)
    assert len(text.topology(said)) == 6


def test_grouped_sinfo_is_garbled(shared: Path) -> None:
    """`sinfo --json` since 23.02 is no list of nodes, and the error says what to ask instead."""
    with pytest.raises(Garbled) as caught:
        answers.nodes((shared / "samples/slurm/26.05/a-sinfo.json").read_text())
    assert "scontrol --json show nodes" in caught.value.hint
