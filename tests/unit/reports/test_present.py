"""Who is out now, and which marks make no sense any more."""

from __future__ import annotations

import pytest

from nodeworthy.model.scheduler import SchedulerNode
from nodeworthy.reports.audit.present import OutNow
from nodeworthy.reports.audit.report import build
from tests.unit.reports.audit_data import SINCE, fleet, given, node

NOW = 60 * 24


def one(n: SchedulerNode, **more: object) -> OutNow:
    (found,) = build(given(None, None, fleet(n), **more)).out_now
    return found


@pytest.mark.parametrize(
    ("marked", "sentence"),
    [
        (node("n1", "IDLE", ["DRAIN"], "Not responding", at=NOW - 5), "answers again"),
        (node("n1", "IDLE", ["DRAIN"], "gres/gpu count reported lower than configured (7 < 8)", at=NOW - 5, slurmd_at=SINCE + (NOW - 1) * 3600), "slurmd has started again"),
        (node("n1", "IDLE", ["DRAIN"], "reboot for kernel", at=NOW - 5, boot_at=SINCE + (NOW - 1) * 3600), "booted since"),
        (node("n1", "IDLE", ["DRAIN"], "none", at=NOW - 5), "nobody said why"),
        (node("n1", "IDLE", ["DRAIN"], "look at fans", at=NOW - 24 * 40), "older than 30 days"),
    ],
)  # fmt: skip
def test_orphaned_marks_are_told(marked: SchedulerNode, sentence: str) -> None:
    """Each way in which a mark can be orphaned is recognised and said."""
    assert sentence in "; ".join(one(marked).orphaned)


@pytest.mark.parametrize(
    "marked",
    [
        node("n1", "DOWN", ["NOT_RESPONDING"], "Not responding", at=NOW - 5),
        node(
            "n1", "IDLE", ["DRAIN", "INVALID_REG"], "gres/gpu count reported lower than configured (7 < 8)", at=NOW - 5
        ),
        node("n1", "IDLE", ["DRAIN"], "reboot for kernel", at=NOW - 5, boot_at=SINCE),
        node("n1", "IDLE", ["DRAIN"], "Xid 79 on GPU 3", at=NOW - 5),
    ],
)
def test_marks_whose_cause_still_holds_are_not_orphaned(marked: SchedulerNode) -> None:
    """A fresh mark whose cause is there is left alone."""
    found = one(marked)
    assert (found.orphaned, found.contradictory) == ((), ())


def test_an_author_without_an_account_orphans_a_mark() -> None:
    """Nobody is left to ask."""
    marked = node("n1", "IDLE", ["DRAIN"], "waiting for part", user="alice", at=NOW - 5)
    assert "alice no longer has an account" in "; ".join(one(marked, left_authors=frozenset({"alice"})).orphaned)


def test_contradictions_are_told() -> None:
    """A reason that says well, or speaks of another node, and a dead node with GPUs in use."""
    assert "says that it is well" in one(node("n1", "IDLE", ["DRAIN"], "fixed, ready to return")).contradictory[0]
    assert one(node("n1", "IDLE", ["DRAIN"], "not fixed yet")).contradictory == ()
    assert "another node (n2)" in one(node("n1", "IDLE", ["DRAIN"], "swap with n2: bad cable")).contradictory[0]
    assert "still given to jobs" in one(node("n1", "DOWN", [], "Xid 79", gpus_used=4)).contradictory[0]


def test_unknown_age_is_unknown() -> None:
    """A mark without a time has no age, and its loss is not counted but said."""
    audit = build(given(None, None, fleet(node("n1", "IDLE", ["DRAIN"], "Xid 79"))))
    assert audit.out_now[0].age_days is None
    assert any("nobody wrote since when" in gap.what for gap in audit.gaps)


def test_reserved_and_powered_down_nodes_are_not_out() -> None:
    """Planned use and power saving are not trouble."""
    nodes = fleet(node("n1", "IDLE", ["RESERVED", "MAINTENANCE"]), node("n2", "IDLE", ["CLOUD", "POWERED_DOWN"]))
    assert build(given(None, None, nodes)).out_now == ()


def test_without_the_present_state_nothing_is_claimed_about_it() -> None:
    """Unknown is said; no figure reads 0 that is not known."""
    from nodeworthy.reports.audit.inputs import AuditInput
    from tests.unit.reports.audit_data import WINDOW, event, events, normalise

    audit = build(AuditInput("x", WINDOW, None, events(event("n1", 0, 5, "down", "Not responding")), None, normalise))
    assert audit.totals.lost_gpu_hours is None
    assert audit.totals.nodes is None
    assert audit.totals.lost_node_hours == pytest.approx(5)
    assert any("present state" in gap.what for gap in audit.gaps)
    assert any("no job history" in gap.what for gap in audit.gaps)
