"""Lost hours: unions, attribution, work under a drain, and what is no outage."""

from __future__ import annotations

import pytest

from nodeworthy.model.scheduler import BaseState
from nodeworthy.reports.audit.outages import kind_of
from nodeworthy.reports.audit.report import Audit, build
from tests.unit.reports.audit_data import SINCE, event, events, fleet, given, job, jobs, node


def hours(audit: Audit) -> dict[str, float]:
    return {row.title: row.node_hours for row in audit.causes}


def test_overlapping_events_count_once_and_go_to_the_first_known_cause() -> None:
    """Two overlapping events are one outage of the length of their union, charged to the first cause that is known."""
    audit = build(given(events(event("n1", 10, 20, "drain", "?"), event("n1", 15, 30, "down", "Not responding"))))
    assert audit.totals.outages == 1
    assert hours(audit) == {"Node lost": pytest.approx(20)}
    assert audit.totals.lost_gpu_hours == pytest.approx(160)


def test_events_that_follow_at_once_are_one_outage() -> None:
    """A changed reason closes one event and opens the next: one outage, and the first cause keeps it."""
    audit = build(given(events(event("n1", 0, 5, "drain", "Xid 79"), event("n1", 5, 9, "drain", "firmware"))))
    assert (audit.totals.outages, hours(audit)) == (1, {"GPU fault": pytest.approx(9)})


def test_an_hour_of_service_between_makes_two_outages() -> None:
    """A node that was back for an hour was back."""
    audit = build(given(events(event("n1", 0, 5, "drain"), event("n1", 6, 9, "drain"))))
    assert audit.totals.outages == 2


def test_a_drain_under_a_running_job_is_lost_only_from_the_jobs_end() -> None:
    """While the job runs the node works; jobs on other nodes or after the drain do not matter."""
    table = jobs(
        job(1, "a", "COMPLETED", 5, 10 * 3600, "n[1-2]", width=2),
        job(2, "a", "COMPLETED", 5, 50 * 3600, "n3"),
    )
    audit = build(given(events(event("n1", 10, 30, "drain")), table))
    assert hours(audit) == {"GPU fault": pytest.approx(15)}


def test_a_down_node_is_lost_at_once_whatever_its_jobs_say() -> None:
    """A dead node does no work, although accounting ends its jobs later."""
    table = jobs(job(1, "a", "NODE_FAIL", 5, 10 * 3600, "n1"))
    audit = build(given(events(event("n1", 10, 30, "down", "Not responding")), table))
    assert hours(audit) == {"Node lost": pytest.approx(20)}


def test_a_job_that_never_ended_does_not_hide_a_loss() -> None:
    """Accounting keeps lost jobs as running for ever; only a node that is busy now has a running job."""
    table = jobs(job(1, "a", "RUNNING", 5, None, "n1"))
    drained = events(event("n1", 10, 30, "drain"))
    assert hours(build(given(drained, table))) == {"GPU fault": pytest.approx(20)}
    busy = fleet(node("n1", "MIXED"))
    assert hours(build(given(drained, table, busy))) == {"GPU fault": pytest.approx(0)}


def test_events_are_clipped_to_the_window() -> None:
    """Only the part inside the window is lost, and the report says that it began before."""
    audit = build(given(events(event("n1", -48, 12, "down", "Not responding"))))
    assert hours(audit) == {"Node lost": pytest.approx(12)}
    assert any("began before the window" in gap.what for gap in audit.gaps)


def test_powered_down_cloud_nodes_are_not_lost() -> None:
    """Power saving is not failing."""
    audit = build(given(events(event("n1", 0, 100, "powered", "Powered down"))))
    assert (audit.totals.outages, audit.totals.lost_gpu_hours) == (0, 0)


def test_an_open_event_of_a_node_that_serves_is_said_and_not_counted() -> None:
    """The scheduler's present state is the better witness; the length of the outage is not known."""
    audit = build(given(events(event("n1", 0, None, "down", "Not responding"))))
    assert audit.totals.lost_gpu_hours == 0
    assert any("never ended" in gap.what for gap in audit.gaps)


def test_a_node_out_now_without_an_event_is_lost_since_its_mark() -> None:
    """Events may be purged, or there may be no database: the mark has a time of its own."""
    nodes = fleet(node("n1", "IDLE", ["DRAIN"], "Xid 79", at=60 * 24 - 10))
    assert hours(build(given(None, None, nodes))) == {"GPU fault": pytest.approx(10)}


def test_a_node_that_is_no_longer_configured_has_unknown_gpu_hours() -> None:
    """Its node-hours count, its GPU-hours are unknown, and the report says how many."""
    audit = build(given(events(event("gone", 0, 10, "down", "Not responding"))))
    assert audit.causes[0].gpu_hours is None
    assert audit.causes[0].node_hours == pytest.approx(10)
    assert any("GPU count is not known" in gap.what for gap in audit.gaps)


def test_an_open_event_takes_no_ended_event_with_it() -> None:
    """Of a node that is gone the open event has no known end; one that began with it and ended still counts."""
    same_start = events(event("gone", 0, None, "down"), event("gone", 0, 10, "drain"))
    assert build(given(same_start)).totals.lost_node_hours == pytest.approx(10)


def test_the_days_add_up_to_the_total() -> None:
    """Every lost hour is on exactly one day, also over midnight."""
    audit = build(given(events(event("n1", 20, 75, "down", "Not responding"), event("n2", 0, 24, "drain"))))
    by_day = sum(h for d in audit.days for _, h in d.gpu_hours)
    assert by_day == pytest.approx(audit.totals.lost_gpu_hours)
    assert len(audit.days) == 60
    assert audit.days[0].start == SINCE


def test_lost_is_never_more_than_there_is() -> None:
    """Even when every node was out all the time, in many overlapping events."""
    rows = [event(f"n{k}", a, 9999, "down", "Not responding") for k in range(1, 9) for a in (-5, 0, 7)]
    audit = build(given(events(*rows)))
    assert audit.totals.lost_gpu_hours == pytest.approx(audit.totals.capacity_gpu_hours)


@pytest.mark.parametrize(
    ("base", "flags", "kind"),
    [
        ("DOWN", {"NOT_RESPONDING"}, "down"),
        ("IDLE", {"DRAIN", "INVALID_REG"}, "invalid"),
        ("DOWN", {"DRAIN", "REBOOT_ISSUED"}, "reboot"),
        ("IDLE", {"CLOUD", "POWERED_DOWN"}, "powered"),
        ("IDLE", {"CLOUD", "POWERED_DOWN", "DRAIN"}, "drain"),
        ("ALLOCATED", {"FAIL"}, "fail"),
        ("IDLE", {"MAINTENANCE", "RESERVED"}, "planned"),
        ("IDLE", {"RESERVED"}, "in-service"),
        ("IDLE", {"NOT_RESPONDING"}, "down"),
    ],
)
def test_kinds_of_states(base: str, flags: set[str], kind: str) -> None:
    """The more telling flag decides what kind of outage a state is."""
    assert kind_of(BaseState(base), frozenset(flags)) == kind
