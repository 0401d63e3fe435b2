"""Reason texts → causes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nodeworthy.errors import BadFile
from nodeworthy.judge.reasons import Reasons, build
from nodeworthy.model.hold import OwnerKind
from nodeworthy.model.reason import NO_REASON, ReasonKind
from nodeworthy.wiring.reasons import shipped_reasons


@pytest.fixture(scope="module")
def reasons() -> Reasons:
    return shipped_reasons()


# Texts that slurmctld and slurmstepd themselves write (their strings in 22.05.8, 24.11.5 and 26.05.5).
OF_SLURM = {
    "Kill task failed": "kill-task-failed",
    "Not responding": "not-responding",
    "Node unexpectedly rebooted": "unexpected-reboot",
    "gres/gpu count reported lower than configured (7 < 8)": "gres-count",
    "gres/nic count reported lower than configured (0 < 1)": "gres-other",
    "Low RealMemory": "low-memory",
    "Low RealMemory (reported:63622 < 100.00% of configured:64000)": "low-memory",
    "Low socket*core*thread count, Low CPUs": "low-cpus",
    "Low TmpDisk": "low-tmpdisk",
    "Prolog error": "prolog-error",
    "Epilog error": "epilog-error",
    "batch job complete failure": "batch-failure",
    "Duplicate jobid": "duplicate-jobid",
    "SlurmdSpoolDir is full": "spool-full",
    "kernel update : reboot timed out": "reboot-timeout",
    "ResumeTimeout reached": "reboot-timeout",
    "Powered down after SuspendTimeout": "power-saving",
}
OF_OTHERS = {
    "GPU 3 fell off the bus [ops]": "gpu-lost",
    "Xid 79 on gpu 3": "gpu-lost",
    "ECC errors": "gpu-memory",
    "xid 63 row remap": "gpu-memory",
    "NVLink replay errors": "nvlink",
    "xid: 31": "gpu-other",
    "SLOW GPU": "gpu-other",
    "IB CQE completion error 12": "network",
    "firmware : reboot issued": "reboot",
    "Reboot ASAP : reboot complete": "reboot",
    "kernel update": "maintenance",
    "pulled for RMA": "repair",
    "dimm A3": "memory",
    "/scratch not mounted": "storage",
    "jdoe test": "test",
    "failing soon": "unclear",
    "asdf": "unclear",
}


@pytest.mark.parametrize(("text", "cause"), OF_SLURM.items())
def test_texts_of_slurm(reasons: Reasons, text: str, cause: str) -> None:
    """What only Slurm writes is owned by Slurm."""
    said = reasons.normalise(text)
    assert (said.cause, said.owner) == (cause, OwnerKind.SCHEDULER)


@pytest.mark.parametrize(("text", "cause"), OF_OTHERS.items())
def test_texts_of_others(reasons: Reasons, text: str, cause: str) -> None:
    """What anybody may write has a cause, and no owner follows from it."""
    said = reasons.normalise(text)
    assert (said.cause, said.owner) == (cause, None)


@pytest.mark.parametrize(
    ("text", "cause", "owner", "writer"),
    [
        ("NHC: Check check_nv_", "gpu-other", OwnerKind.HEALTH_PROGRAM, "NHC"),
        ("NHC: something odd", "health-check", OwnerKind.HEALTH_PROGRAM, "NHC"),
        (
            "NHC: Watchdog timer unable to terminate hung NHC process 7.",
            "check-timeout",
            OwnerKind.HEALTH_PROGRAM,
            "NHC",
        ),
        ("health: Xid 79 on GPU 5", "gpu-lost", OwnerKind.HEALTH_PROGRAM, "health check"),
        ("nw:xid79@n3 GPU 5 is lost", "gpu-lost", OwnerKind.NODEWORTHY, ""),
        ("[node_problem] ib_pkey", "network", OwnerKind.HEALTH_PROGRAM, "check runner"),
    ],
)
def test_signed_texts(reasons: Reasons, text: str, cause: str, owner: OwnerKind, writer: str) -> None:
    """A program that signs its reasons is named, and the rest of the text says the cause."""
    said = reasons.normalise(text)
    assert (said.cause, said.owner, said.writer) == (cause, owner, writer)


@pytest.mark.parametrize("text", [None, "", "  ", "none", "N/A", "reason unknown", "-"])
def test_no_reason(reasons: Reasons, text: str | None) -> None:
    """Nothing said is a cause of its own, of unknown kind."""
    assert reasons.normalise(text) == NO_REASON
    assert reasons.normalise(text).kind is ReasonKind.UNKNOWN


def test_sierra(reasons: Reasons, shared: Path) -> None:
    """The drain reasons of a very large site fall into four groups, whatever the host names inside."""
    folder = shared / "cases/sl-epilog-cuda-init-sierra"
    lines = (folder / "input.drain-reasons.txt").read_text().splitlines()
    said = {line.rsplit(": ", 1)[1].strip(): reasons.normalise(line.split('"')[1]) for line in lines if '"' in line}
    assert {node: cause.cause for node, cause in said.items()} == {
        "node2061": "gpu-other",
        "node1026": "network",
        "node1039": "gpu-other",
        "node1033": "cuda-init",
        "node1001": "cuda-init",
    }
    assert said["node1033"].owner is OwnerKind.HEALTH_PROGRAM
    assert json.loads((folder / "meta.json").read_text())["id"] == folder.name


@pytest.mark.parametrize(
    ("case", "file", "reason", "cause"),
    [
        ("sl-low-realmemory", "input.sinfo.txt", "Low RealMemory", "low-memory"),
        ("sl-prolog-error-missing-dir", "input.sinfo-R.txt", "Prolog error", "prolog-error"),
    ],
)
def test_cases(reasons: Reasons, shared: Path, case: str, file: str, reason: str, cause: str) -> None:
    """Reasons as `sinfo -R` showed them to people who asked for help."""
    lines = (shared / "cases" / case / file).read_text().splitlines()
    (line,) = (line for line in lines if line.startswith(reason))
    said = reasons.normalise(line[: line.index("  ")])
    assert (said.cause, said.owner) == (cause, OwnerKind.SCHEDULER)


def test_numbers_make_no_new_cause(reasons: Reasons) -> None:
    """A million reasons with a host name in each are few shapes: reading one more costs microseconds."""
    texts = [f"epilog: FAILED: node{i} Failed during cudaGetDeviceCount" for i in range(2000)]
    assert {reasons.normalise(text).cause for text in texts} == {"cuda-init"}
    assert reasons._by_shape.cache_info().currsize < 500


def test_every_cause_is_stable_and_sourced(reasons: Reasons) -> None:
    """Ids are unique words with hyphens, and every title is there to be read."""
    causes = reasons.causes()
    assert len({cause.cause for cause in causes}) == len(causes) > 30
    assert all(cause.cause.replace("-", "").isalnum() and cause.title for cause in causes)


def test_wrong_tables_are_named() -> None:
    """Each wrong entry is named with its place; nothing is skipped in silence."""
    good = {"id": "a", "title": "A", "kind": "fault", "pattern": "a", "source": "x"}
    table = {
        "writer": [{"pattern": "(", "owner": "scheduler", "name": ""}, {"pattern": "x", "owner": "king", "name": ""}],
        "cause": [good, good, good | {"id": "b", "kind": "odd"}, {"id": "c"}, good | {"id": "d", "source": ""}],
    }
    with pytest.raises(BadFile) as caught:
        build(table)
    assert [problem.field for problem in caught.value.problems] == ["writer 1", "writer 2", "b", "c", "d", "a"]
