"""Lemons are named on evidence of their own; shared and planned outages blame nobody."""

from __future__ import annotations

import pytest

from nodeworthy.reports.audit.report import build
from tests.unit.reports.audit_data import SINCE, event, events, fleet, given, job, jobs, node


def failing(name: str, times: int, reason: str = "Xid 79", kind: str = "drain") -> list[tuple[object, ...]]:
    return [event(name, 24 * (3 * k + 1), 24 * (3 * k + 1) + 4, kind, reason) for k in range(times)]


def test_a_node_that_keeps_failing_is_named_with_its_events() -> None:
    """Six failures of one node where seven peers have one: named, expected figure and events given."""
    audit = build(given(events(*failing("n1", 6), event("n2", 100, 101, "drain"))))
    assert [lemon.node for lemon in audit.lemons] == ["n1"]
    lemon = audit.lemons[0]
    assert lemon.failures == 6
    assert lemon.expected < 0.5
    assert lemon.score == pytest.approx(6 / lemon.expected)
    assert len(lemon.events) == 6
    assert lemon.in_service is True
    assert audit.needs_person[0].node == "n1"


def test_two_failures_are_no_pattern() -> None:
    """Fewer than three failures name nobody, however rare failures are."""
    assert build(given(events(*failing("n1", 2)))).lemons == ()


def test_where_all_fail_alike_nobody_is_a_lemon() -> None:
    """The peers' rate explains it."""
    rows = [row for k in range(1, 9) for row in failing(f"n{k}", 6)]
    rows = [(r[0], r[1] + 7000 * k, r[2] + 7000 * k, *r[3:]) for k, r in enumerate(rows)]  # type: ignore[operator]
    assert build(given(events(*rows))).lemons == ()


def test_planned_outages_make_no_lemon() -> None:
    """A node that is often maintained is well looked after."""
    assert build(given(events(*failing("n1", 8, "firmware update")))).lemons == ()


def test_an_outage_shared_by_many_nodes_blames_none_of_them() -> None:
    """A switch takes five nodes at once, six times; they are innocent."""
    rows = [
        event(f"n{k}", 24 * 3 * t + k / 3600, 24 * 3 * t + 5, "down", "Not responding") for k in range(1, 6) for t in range(1, 7)
    ]  # fmt: skip
    audit = build(given(events(*rows)))
    assert audit.lemons == ()
    assert audit.reliability.shared_outages == 30
    assert audit.totals.failures == 0


def test_killed_jobs_near_an_outage_are_not_counted_again() -> None:
    """Three outages and the three jobs that they killed are three failures, not six."""
    rows = failing("n1", 3, "Not responding", "down")
    killed = [job(k, "a", "NODE_FAIL", 24 * (3 * k + 1) - 1, 3600, "n1") for k in range(3)]
    audit = build(given(events(*rows), jobs(*killed), fleet(size=200)))
    assert [lemon.failures for lemon in audit.lemons] == [3]
    assert audit.lemons[0].jobs_killed == 3


def test_jobs_of_several_nodes_blame_only_the_node_that_accounting_names() -> None:
    """`FailedNode` decides; without it nobody is blamed and the report says so."""
    named = [job(k, "a", "NODE_FAIL", 24 * k, 3600, "n[1-4]", width=4, failed="n3") for k in range(1, 6)]
    unnamed = [job(9 + k, "a", "NODE_FAIL", 24 * k, 3600, "n[5-6]", width=2) for k in range(1, 6)]
    audit = build(given(events(), jobs(*named, *unnamed), fleet(size=100)))
    assert [lemon.node for lemon in audit.lemons] == ["n3"]
    assert any("without a named node" in gap.what for gap in audit.gaps)


def test_a_failure_soon_after_a_return_is_a_repeat() -> None:
    """Two of three returns fail again within seven days; a return in the last week is not judged yet."""
    rows = [event("n1", h, h + 5, "drain") for h in (0, 50, 100)] + [event("n1", 24 * 58, 24 * 58 + 1, "drain")]
    repeats = build(given(events(*rows))).repeats
    assert (repeats.returns, repeats.failed_again, repeats.same_cause) == (3, 2, 2)
    assert repeats.share.low is not None and repeats.share.low < 2 / 3 < (repeats.share.high or 0)


def test_a_lemon_that_is_out_asks_for_less_haste_than_one_in_service() -> None:
    """In service it harms jobs: it comes first."""
    rows = [*failing("n1", 8), *failing("n2", 6), event("n2", 24 * 50, 24 * 50 + 4, "drain")]
    nodes = fleet(node("n1", "IDLE", ["DRAIN"], "Xid 79", at=60 * 24 - 2), size=50)
    audit = build(given(events(*rows), None, nodes))
    assert [need.node for need in audit.needs_person] == ["n2", "n1"]
    assert [need.kind for need in audit.needs_person] == ["lemon", "out"]


def test_what_was_bad_long_ago_comes_last() -> None:
    """A lemon whose last failure is a month past may have been mended: a look, no haste."""
    old = [
        (row[0], int(str(row[1])) // 2 + SINCE // 2, int(str(row[2])) // 2 + SINCE // 2, *row[3:])
        for row in failing("n1", 8)
    ]
    audit = build(given(events(*old), None, fleet(size=50)))
    assert [lemon.node for lemon in audit.lemons] == ["n1"]
    assert [need.kind for need in audit.needs_person] == ["past"]
