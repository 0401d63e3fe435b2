"""Whose mark it is, and whether it still makes sense."""

from __future__ import annotations

from pathlib import Path

import pytest

from nodeworthy.adapters.slurm import text
from nodeworthy.decide.marks import MarkView, classify
from nodeworthy.model.hold import OwnerKind
from nodeworthy.model.scheduler import BaseState, Mark, SchedulerNode
from nodeworthy.wiring.reasons import shipped_reasons

NORMALISE = shipped_reasons().normalise


def node(
    reason: str | None, user: str | None = "root", *flags: str, base: str = "IDLE", **more: float
) -> SchedulerNode:
    mark = None if reason is None else Mark(reason, user, 1000.0)
    return SchedulerNode("n1", BaseState(base), frozenset(flags), mark, **more)


def view(*args: str | None, **more: object) -> MarkView:
    found = classify(node(*args, **more), NORMALISE, now=4600.0)  # type: ignore[arg-type]
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("reason", "user", "kind", "name"),
    [
        ("Kill task failed", "root", OwnerKind.SCHEDULER, "slurm"),
        ("Not responding", "slurm", OwnerKind.SCHEDULER, "slurm"),
        ("NHC: check_fs_mount", "root", OwnerKind.HEALTH_PROGRAM, "NHC"),
        ("health: Xid 79", "root", OwnerKind.HEALTH_PROGRAM, "health check"),
        ("nw:xid79@n1 GPU 3 is lost", "root", OwnerKind.NODEWORTHY, ""),
        ("nw:xid79@n1 GPU 3 is lost", "nodeworthy", OwnerKind.NODEWORTHY, ""),
        ("looks odd", "jane", OwnerKind.PERSON, "jane"),
        ("Kill task failed", "jane", OwnerKind.PERSON, "jane"),
        ("NHC: copied text", "jane", OwnerKind.PERSON, "jane"),
        ("looks odd", "root", OwnerKind.SOMEONE, "root"),
        ("looks odd", None, OwnerKind.SOMEONE, ""),
    ],
)
def test_owner(reason: str, user: str | None, kind: OwnerKind, name: str) -> None:
    """Text and user together tell the owner; a person's mark stays a person's, and root proves nobody."""
    owner = view(reason, user, "DRAIN").owner
    assert (owner.kind, owner.name) == (kind, name)


def test_another_slurm_user() -> None:
    """A site whose Slurm runs under another name says so, and that name is then nobody either."""
    marked = node("Kill task failed", "svc-slurm", "DRAIN")
    users = frozenset({"root", "svc-slurm"})
    by_default, told = classify(marked, NORMALISE), classify(marked, NORMALISE, system_users=users)
    assert by_default is not None and by_default.owner.kind is OwnerKind.PERSON
    assert told is not None and told.owner.kind is OwnerKind.SCHEDULER


def test_no_mark() -> None:
    """A node in service without a reason has no mark."""
    assert classify(node(None), NORMALISE) is None
    assert classify(node(None, None, "RESERVED"), NORMALISE) is None


def test_age() -> None:
    """Age is told in seconds, and is unknown where the time of the mark is."""
    assert view("x", "root", "DRAIN").age_s == 3600.0
    undated = SchedulerNode("n1", BaseState.IDLE, frozenset({"DRAIN"}), Mark("x", None, None))
    found = classify(undated, NORMALISE, now=4600.0)
    assert found is not None and found.age_s is None


def test_drained_without_a_reason() -> None:
    """A drain that says nothing belongs to someone and may never be lifted."""
    found = view(None, None, "DRAIN")
    assert (found.owner.kind, found.cause, found.orphaned) == (OwnerKind.SOMEONE, "no-reason", True)


def test_registration_without_a_reason_is_slurms() -> None:
    """INVALID_REG is set by nobody but Slurm."""
    assert view(None, None, "DRAIN", "INVALID_REG").owner.kind is OwnerKind.SCHEDULER


def test_a_reboot_under_way() -> None:
    """While a reboot is wanted its cause is the reboot, unless the reason names a better one."""
    assert view("kernel update", "root", "DRAIN", "REBOOT_REQUESTED").cause == "maintenance"
    assert view("because I can", "root", "DRAIN", "REBOOT_REQUESTED").cause == "reboot"
    assert view("ECC errors", "root", "DRAIN", "REBOOT_REQUESTED").cause == "gpu-memory"


def test_contradictions() -> None:
    """Two statements that exclude each other are told, and nothing else is."""
    assert "in service" in view("ECC errors", "root").contradictory[0]
    assert "two causes" in view("ECC errors", "root", "DRAIN", "INVALID_REG").contradictory[0]
    low = "gres/gpu count reported lower than configured (7 < 8)"
    assert "registers enough" in view(low, "root", "DRAIN").contradictory[0]
    assert view(low, "root", "DRAIN", "INVALID_REG").contradictory == ()
    assert view("ECC errors", "root", "DRAIN").contradictory == ()
    assert view("Powered down", "root", "CLOUD", "POWERED_DOWN").contradictory == ()


def test_orphans() -> None:
    """A mark whose cause is gone is told as such: answers again, booted since, slurmd started since."""
    assert view("Not responding", "root", "DRAIN").orphaned_because == ("the node answers again",)
    assert not view("Not responding", "root", "NOT_RESPONDING", base="DOWN").orphaned
    assert view("kernel update", "root", "DRAIN", boot_at=2000.0).orphaned
    assert not view("kernel update", "root", "DRAIN", boot_at=500.0).orphaned
    assert not view("kernel update", "root", "DRAIN", "REBOOT_ISSUED", boot_at=2000.0).orphaned
    assert not view("ECC errors", "root", "DRAIN", boot_at=2000.0).orphaned


def test_case_gres_count(shared: Path) -> None:
    """A real node: its slurmd was started again 38 minutes after the mark, so the mark may be stale."""
    answer = (shared / "cases/sl-gres-count-0-of-8/input.scontrol-show-node.txt").read_text()
    (one,) = text.nodes(answer.rstrip("\n") + "\n").values()
    found = classify(one, NORMALISE)
    assert found is not None
    assert (found.cause, found.owner.kind) == ("gres-count", OwnerKind.SCHEDULER)
    assert (one.gpus, one.gpu_type) == (1, "nvidia-rtx-3090")
    assert found.orphaned and "started again" in found.orphaned_because[0]
    assert found.contradictory


@pytest.mark.parametrize("version", ["22.05", "24.11", "26.05"])
def test_samples(shared: Path, version: str) -> None:
    """On recorded answers of three versions each mark has the right owner and cause."""
    nodes = text.nodes((shared / f"samples/slurm/{version}/b-scontrol-nodes-oneliner.txt").read_text())
    found = {name: classify(one, NORMALISE) for name, one in nodes.items() if name.startswith("gpu")}
    told = {int(name[3:]): (mark.owner.kind.value, mark.cause) for name, mark in found.items() if mark}
    assert told == {
        5: ("scheduler", "not-responding"),
        6: ("someone", "gpu-lost"),
        7: ("someone", "gpu-memory"),
        10: ("someone", "reboot"),
        11: ("someone", "maintenance"),
        12: ("someone", "unclear"),
        13: ("someone", "nvlink"),
        14: ("scheduler", "gres-count"),
        15: ("someone", "repair"),
        16: ("health program", "gpu-lost"),
    }
