"""Kernel events next to outages: told, noticed, and noticed by nobody."""

from __future__ import annotations

from nodeworthy.reports.audit.inputs import KernelEvent
from nodeworthy.reports.audit.kernel import KernelEvidence
from nodeworthy.reports.audit.report import build
from tests.unit.reports.audit_data import SINCE, event, events, given


def said(node: str, hours: float, code: str = "79") -> KernelEvent:
    return KernelEvent(SINCE + hours * 3600, node, "xid", code, f"NVRM: Xid (PCI:0000:4e:00): {code}")


def found(*kernel: KernelEvent) -> KernelEvidence:
    outages = events(event("n1", 10, 20, "drain", "see me"), event("n2", 10, 20, "drain", "Xid 79"))
    result = build(given(outages, kernel=tuple(kernel))).kernel
    assert result is not None
    return result


def test_the_kernel_tells_what_the_mark_does_not() -> None:
    """Five minutes before a drain that says only `see me`; the other outage has a reason of its own."""
    k = found(said("n1", 9.92), said("n2", 9.92))
    assert (k.outages_with_event, k.told_by_kernel, k.unnoticed) == (2, 1, 0)
    assert [(r.node, r.told) for r in k.rows] == [("n1", True), ("n2", False)]


def test_an_event_that_took_nobody_out_comes_first() -> None:
    """n5 went on for days after its Xid: the first row."""
    k = found(said("n1", 9.9), said("n5", 30))
    assert k.unnoticed == 1
    assert (k.rows[0].node, k.rows[0].cause) == ("n5", None)


def test_repeats_within_an_hour_are_one_row() -> None:
    """A thousand lines of one code are one event with its count."""
    k = found(*(said("n5", 30 + n / 1000) for n in range(1000)), said("n5", 40))
    assert [r.times for r in k.rows] == [1, 1000]


def test_an_event_of_the_last_day_may_still_be_noticed() -> None:
    """Nothing is called unnoticed before its day is over."""
    assert found(said("n5", 24 * 60 - 2)).unnoticed == 0


def test_without_logs_there_is_no_section_and_no_zero() -> None:
    """Not given is not the same as nothing found."""
    assert build(given(events())).kernel is None
