"""Text answers: free text cannot pose as fields, half an answer is not a smaller fleet."""

from __future__ import annotations

import pytest

from nodeworthy.adapters.slurm import text
from nodeworthy.errors import Garbled
from nodeworthy.model.scheduler import BaseState, Mark, Reservation

NODE = (
    "NodeName={name} Arch=x86_64 CoresPerSocket=32  CPUAlloc=4 CPUEfctv=64 CPUTot=64 CPULoad=1.00 "
    "AvailableFeatures=h100,ib ActiveFeatures=h100 Gres=gpu:h100:8(S:0-1) GresDrain=N/A "
    "GresUsed=gpu:h100:2(IDX:0-1) NodeAddr=10.0.0.1 NodeHostName=host1 Port=6818 Version=24.11.5 "
    "OS={os} RealMemory=2000000 AllocMem=0 FreeMem=1 Sockets=2 Boards=1 State={state} ThreadsPerCore=1 TmpDisk=0 "
    "Weight=1 Owner=N/A MCS_label=N/A Partitions=batch,low  BootTime=1796029385 SlurmdStartTime=1796033812 "
    "LastBusyTime=1796033815 ResumeAfterTime=None CfgTRES=cpu=64,mem=2000000M AllocTRES= CurrentWatts=0 AveWatts=0 {end}\n"
)


def node(end: str = "", state: str = "IDLE+DRAIN", name: str = "n1", os: str = "Linux 6 #1 SMP ") -> str:
    return NODE.format(name=name, os=os, state=state, end=end)


def test_a_node() -> None:
    """Every field of a node comes from its place."""
    found = text.nodes(node(" Reason=ECC errors [root@1796033824]"))["n1"]
    assert (found.base, found.flags) == (BaseState.IDLE, {"DRAIN"})
    assert found.drained and not found.draining
    assert found.mark == Mark("ECC errors", "root", 1796033824.0)
    assert (found.partitions, found.features) == (("batch", "low"), ("h100", "ib"))
    assert (found.cpus, found.memory_mb, found.sockets) == (64, 2000000, 2)
    assert (found.gpus, found.gpu_type, found.gpus_used) == (8, "h100", 2)
    assert (found.address, found.hostname, found.version) == ("10.0.0.1", "host1", "24.11.5")
    assert (found.boot_at, found.slurmd_start_at) == (1796029385.0, 1796033812.0)
    assert found.reservation is None


@pytest.mark.parametrize(
    ("end", "mark"),
    [
        (
            " Reason=a [b@1] c=d State=DOWN [ops] [root@1796060816]",
            Mark("a [b@1] c=d State=DOWN [ops]", "root", 1796060816),
        ),
        (" Reason=first [root@1796060816]        second line", Mark("first\nsecond line", "root", 1796060816)),
        (" Reason=x [root@1796060816] Comment=Reason=y [eve@17]", Mark("x", "root", 1796060816)),
        (" Reason=x [root@1796060816] Comment=c ReservationName=demo", Mark("x", "root", 1796060816)),
        (" Reason=no author or time", Mark("no author or time", None, None)),
        (" Reason=x [jane.doe@Unknown]", Mark("x", "jane.doe", None)),
        (" Comment=only a comment", None),
        (" Reason=(null)", None),
        ("", None),
    ],
)
def test_reasons(end: str, mark: Mark | None) -> None:
    """The reason ends at its author and time, whatever it contains and whatever follows."""
    assert text.nodes(node(end))["n1"].mark == mark


def test_free_text_poses_as_nothing() -> None:
    """Operating system, comment and reason may say State= without changing the state."""
    os = "Linux State=DOWN Gres=gpu:0 NodeAddr=9.9.9.9 "
    found = text.nodes(node(" Reason=State=ALLOCATED Version=1 [root@1796060816] Extra=RealMemory=1", os=os))["n1"]
    assert found.state == "IDLE+DRAIN"
    assert (found.gpus, found.memory_mb, found.version, found.address) == (8, 2000000, "24.11.5", "10.0.0.1")


def test_reservation_behind_free_text() -> None:
    """Newer versions print the reservation last, behind reason and comment."""
    found = text.nodes(node(" Reason=x [root@1796060816] Comment=c ReservationName=demo"))["n1"]
    assert found.reservation == "demo"


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "\n",
        "slurm_load_node error\n",
        node()[:-1],
        node()[:300],
        node() + node()[:200],
        node() + "NodeName=n2\n",
        node() + node(),
        node(state="FLYING"),
        "<html>504 Gateway Timeout</html>\n",
        "{}\n",
    ],
)
def test_half_an_answer_is_garbled(answer: str) -> None:
    """Cut, doubled, empty or foreign text is an error, never a smaller fleet."""
    with pytest.raises(Garbled):
        text.nodes(answer)


def test_long_form_reads_the_same() -> None:
    """Without -o the same keys come on several lines."""
    lines = node(" Reason=x [root@1796060816]").rstrip("\n").replace(" State=", "\n   State=")
    assert (
        text.nodes(lines.replace(" Reason=", "\n   Reason=") + "\n\n")["n1"]
        == text.nodes(node(" Reason=x [root@1796060816]"))["n1"]
    )


def test_partitions_and_reservations() -> None:
    """Node lists unfold, flags are a set, and nothing to tell is no partition or reservation."""
    partition = "PartitionName=batch Default=YES Nodes=n[1-3],gpu07 State=UP TotalNodes=4\n"
    assert text.partitions(partition)[0].nodes == ("gpu07", "n1", "n2", "n3")
    assert text.partitions(partition)[0].default
    reservation = (
        "ReservationName=service StartTime=1796033824 EndTime=1796037424 Duration=01:00:00 Nodes=n[1-2] NodeCnt=2 "
        "Flags=MAINT,IGNORE_JOBS Users=root,jane Groups=(null) State=ACTIVE BurstBuffer=(null)\n"
    )
    assert text.reservations(reservation) == (
        Reservation(
            "service", ("n1", "n2"), frozenset({"MAINT", "IGNORE_JOBS"}), ("root", "jane"), 1796033824, 1796037424, True
        ),
    )
    assert text.reservations("No reservations in the system\n") == ()
    for bad in ("", "ReservationName=x State=ACTIVE\n", reservation[:-1], "Nodes=n[1-\n"):
        with pytest.raises(Garbled):
            text.reservations(bad)


@pytest.mark.parametrize("bad", ["n[1-", "n[3-1]", "n[1-999999999]", "n[1-3]000000000", "n[]", "a b[1]", "[" * 9999])
def test_a_node_list_that_is_none(bad: str) -> None:
    """Brackets that do not close, or stand for more nodes than any Slurm has, are garbled; (null) is no node."""
    assert text.fold_out("(null)") == ()
    assert text.fold_out("r[1-2]n[01-02]") == ("r1n01", "r1n02", "r2n01", "r2n02")
    with pytest.raises(Garbled):
        text.fold_out(bad)


def test_topology() -> None:
    """Trees have levels from Slurm; blocks of blocks get theirs from their size."""
    tree = "SwitchName=leaf1 Level=0 LinkSpeed=1 Nodes=n[1-2]\nSwitchName=spine Level=1 LinkSpeed=1 Nodes=n[1-2] Switches=leaf1\n"
    leaf, spine = text.topology(tree)
    assert (leaf.kind, leaf.level, leaf.nodes) == ("switch", 0, ("n1", "n2"))
    assert (spine.level, spine.children) == (1, ("leaf1",))
    blocks = (
        "BlockName=b1 BlockIndex=0 Nodes=n[1-2] BlockSize=2\nBlockName=b2 BlockIndex=1 Nodes=n[3-4] BlockSize=2\n"
        "AggregatedBlock=b[1-2] BlockIndex=2 Nodes=n[1-4] BlockSize=4\n"
    )
    assert [(unit.name, unit.level) for unit in text.topology(blocks)] == [("b1", 0), ("b2", 0), ("b[1-2]", 1)]
    assert text.topology("") == ()
    with pytest.raises(Garbled):
        text.topology("scontrol: error\n")


def job(**changes: str) -> dict[str, str]:
    fields = dict.fromkeys(text.JOB_FIELDS, "N/A")
    fields |= {"JobArrayID": "7", "Name": "train", "UserName": "jane", "State": "RUNNING", "NodeList": "n[1-2]"}
    return fields | {"NumNodes": "2", "tres-per-node": "gres/gpu:8", "StartTime": "1796033824"} | changes


def printed(separator: str, *jobs: dict[str, str]) -> str:
    return "".join("".join(fields[key] + separator for key in text.JOB_FIELDS) + "\n" for fields in jobs)


def test_jobs() -> None:
    """A job's nodes unfold; its GPUs come from accounting, else from what it asked for, else they are unknown."""
    answer = printed(
        "xSEP",
        job(),
        job(JobArrayID="8_3", **{"tres-alloc": "cpu=1,gres/gpu=3,gres/gpu:h100=3"}),
        job(JobArrayID="9_[1-5%2]", NodeList="", **{"tres-per-node": "N/A"}),
        job(JobArrayID="10", **{"tres-per-node": "N/A", "tres-per-job": "gres/gpu:5"}),
    )
    jobs = text.jobs(answer, "xSEP")
    assert [(one.job_id, one.gpus) for one in jobs] == [("7", 16), ("8_3", 3), ("9_[1-5%2]", None), ("10", 5)]
    assert (jobs[0].nodes, jobs[0].user, jobs[0].start_at, jobs[0].end_at) == (("n1", "n2"), "jane", 1796033824.0, None)
    assert text.jobs("", "xSEP") == ()


def test_a_job_name_cannot_pose_as_a_job() -> None:
    """Line ends, separators of old formats and whole forged records stay part of the name."""
    evil = "a\n666|root|RUNNING|batch|n1\nJobId=666 JobName=x"
    jobs = text.jobs(printed("x91f3", job(Name=evil), job(JobArrayID="8")), "x91f3")
    assert [one.job_id for one in jobs] == ["7", "8"]
    assert jobs[0].name == evil


@pytest.mark.parametrize("cut", [1, 5, 20, 60])
def test_a_cut_job_list_is_garbled(cut: int) -> None:
    """A job list that ends in the middle is not a shorter job list."""
    with pytest.raises(Garbled):
        text.jobs(printed("xSEP", job(), job(JobArrayID="8"))[: -cut - 1], "xSEP")


def test_config_and_ping() -> None:
    """The controller's own words, or an error."""
    config = text.config(
        "Configuration data as of 1796060817\nClusterName             = lab\nSLURM_VERSION = 22.05.8\n"
    )
    assert (config["ClusterName"], config["SLURM_VERSION"]) == ("lab", "22.05.8")
    assert text.ping("Slurmctld(primary) at c1 is UP\nSlurmctld(backup) at c2 is DOWN\n") == {"c1": True, "c2": False}
    for bad in ("", "nonsense", "\0"):
        with pytest.raises(Garbled):
            text.config(bad)
        with pytest.raises(Garbled):
            text.ping(bad)
