"""The one word for a node, and the next step it comes with."""

from __future__ import annotations

import pytest

from nodeworthy.decide.marks import classify
from nodeworthy.decide.status import status_of, still_dark
from nodeworthy.model.scheduler import BaseState, Mark, SchedulerNode
from nodeworthy.model.status import NodeState, NodeStatus
from nodeworthy.wiring.reasons import shipped_reasons

NORMALISE = shipped_reasons().normalise


def status(base: str, *flags: str, reason: str = "", user: str = "root", reservation: str | None = None) -> NodeStatus:
    mark = Mark(reason, user, 1000.0) if reason else None
    node = SchedulerNode("n1", BaseState(base), frozenset(flags), mark, reservation=reservation)
    return status_of("n1", node, classify(node, NORMALISE), (), "")


@pytest.mark.parametrize(
    ("found", "state", "reason", "owner", "next_step"),
    [
        (
            status("IDLE", "RESERVED", reservation="demo"),
            NodeState.OUT,
            "reservation demo",
            "reservation demo",
            "scontrol show reservation demo",
        ),
        (
            status("IDLE", "MAINTENANCE", "RESERVED", reservation="fw"),
            NodeState.OUT,
            "maintenance reservation fw",
            "reservation fw",
            "scontrol show reservation fw",
        ),
        (
            status("DOWN", "DRAIN", "REBOOT_ISSUED", reason="firmware : reboot issued"),
            NodeState.OUT,
            "firmware : reboot issued",
            "someone (as root)",
            "look at its console",
        ),
        (
            status("MIXED", "DRAIN", "REBOOT_REQUESTED", reason="kernel update"),
            NodeState.OUT,
            "reboot requested: kernel update",
            "someone (as root)",
            "once its jobs have ended",
        ),
        (
            status("DOWN", "NOT_RESPONDING", reason="Not responding", user="slurm"),
            NodeState.FAILED,
            "Not responding",
            "scheduler slurm",
            "look whether the machine is up",
        ),
        (
            status("IDLE", "DRAIN", "INVALID_REG", reason="gres/gpu count reported lower than configured (7 < 8)"),
            NodeState.FAILED,
            "gres/gpu count reported lower than configured (7 < 8)",
            "scheduler slurm",
            "see what is missing",
        ),
        (
            status("IDLE", "DRAIN", reason="bad dimm", user="alice"),
            NodeState.OUT,
            "bad dimm",
            "alice",
            "ask alice",
        ),
    ],
)
def test_status_says_whose_it_is_and_what_to_do_next(
    found: NodeStatus, state: NodeState, reason: str, owner: str, next_step: str
) -> None:
    """The scheduler's own flags decide the next step before the owner of the mark does."""
    assert (found.state, found.reason, str(found.owner)) == (state, reason, owner)
    assert next_step in found.next


def test_what_was_dark_stays_so_until_it_is_looked_at() -> None:
    """After a start a node that was unknown does not pass for seen before its telemetry was asked."""
    before = {"n1": NodeStatus("n1", NodeState.UNKNOWN, "dcgm: stale"), "n2": NodeStatus("n2", NodeState.SERVING, "")}
    assert set(still_dark(before)) == {"n1"}
