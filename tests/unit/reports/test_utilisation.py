"""What allocated GPUs did: jobs laid on nodes and hours, against telemetry that may lack, lie or say more."""

from __future__ import annotations

import polars as pl
import pytest

from nodeworthy.commands.audit_render.use_sections import devices, use, use_in_short
from nodeworthy.reports.audit.allocation import held_in
from nodeworthy.reports.audit.inputs import NODE_HOURS, SLOWED, Telemetry
from nodeworthy.reports.audit.report import build
from nodeworthy.reports.audit.utilisation import Utilisation, gaps
from tests.unit.reports.audit_data import SINCE, event, events, fleet, given, job, jobs, node

FIRST = SINCE // 3600
LAST = FIRST + 48
SIZES = pl.DataFrame({"node": [f"n{k}" for k in range(1, 9)], "gpus": [8] * 8})


def held(*rows: tuple[object, ...], busy_now: set[str] | None = None) -> tuple[dict[tuple[str, int], float], float]:
    """(node, hour after FIRST) → GPU-hours, of hours that are not in doubt; and the total."""
    frame, total = held_in(jobs(*rows), FIRST, LAST, busy_now, SIZES)
    frame = frame.filter(~pl.col("doubt"))
    return {
        (n, h - FIRST): pytest.approx(v, abs=1e-3) for n, h, v in frame.select("node", "hour", "held").rows()
    }, total


def saying(*rows: tuple[str, float, float, int, int], slowed: tuple[tuple[str, int, float], ...] = ()) -> Telemetry:
    """Rows of (node, hour after FIRST, busy, seen, present)."""
    table = pl.DataFrame(
        [(n, FIRST + int(h), b, s, p, False) for n, h, b, s, p in rows], schema={**NODE_HOURS, "node": pl.String}, orient="row"
    )  # fmt: skip
    slow = pl.DataFrame([(n, FIRST + h, v) for n, h, v in slowed], schema={**SLOWED, "node": pl.String}, orient="row")
    as_category = pl.col("node").cast(pl.Categorical)
    hours = frozenset(range(FIRST, LAST))
    return Telemetry(table.with_columns(as_category), slow.with_columns(as_category), FIRST, LAST, hours)


def found(telemetry: Telemetry, *ran: tuple[object, ...], **more: object) -> Utilisation:
    got = build(given(None, jobs(*ran), telemetry=telemetry, **more)).utilisation
    assert got is not None
    return got


def test_a_job_is_cut_at_hours_and_laid_on_its_nodes_in_equal_parts() -> None:
    """Sixteen GPUs on two nodes from half past to a quarter past."""
    hours, total = held(job(1, "a", "COMPLETED", 0.5, 2700, "n[1-2]", width=2, gpus=16))
    assert hours == {("n1", 0): 4, ("n1", 1): 2, ("n2", 0): 4, ("n2", 1): 2}
    assert total == pytest.approx(12)


def test_what_cannot_be_laid_on_a_node_is_in_the_total_alone() -> None:
    """Uneven, unreadable, without an end on a node that is not busy, and more GPUs than the node has."""
    rows = (
        job(1, "a", "COMPLETED", 0, 3600, "n[1-2]", width=2, gpus=3),
        job(2, "a", "COMPLETED", 0, 3600, "x[", gpus=8),
        job(3, "a", "RUNNING", 47, None, "n3", gpus=8),
        job(4, "a", "COMPLETED", 0, 3600, "n4", gpus=8),
        job(5, "b", "COMPLETED", 0, 3600, "n4", gpus=8),
    )
    hours, total = held(*rows, busy_now=set())
    assert hours == {}
    assert total == pytest.approx(3 + 8 + 8 + 16)
    assert held(rows[2], busy_now={"n3"})[0] == {("n3", 47): 8}


def test_busy_idle_gone_and_dark_of_one_hour_each() -> None:
    """Half busy; one of eight GPUs gone; two seen without a usable value; no word at all."""
    ran = [job(k, "a", "COMPLETED", 0, 3600, f"n{k}", gpus=8) for k in range(1, 5)]
    got = found(saying(("n1", 0, 4, 8, 8), ("n2", 0, 7, 7, 7), ("n3", 0, 6, 6, 8)), *ran)
    parts = (got.busy_gpu_hours, got.idle_gpu_hours, got.gone_gpu_hours, got.dark_gpu_hours, got.untold_gpu_hours)
    assert parts == pytest.approx((17, 4, 1, 10, 0))
    assert [(t.node, t.kind, t.hours, t.first) for t in got.troubles] == [("n2", "gone", 1.0, SINCE)]
    assert [(d.node, d.dark_node_hours) for d in got.dark_nodes] == [("n4", 1)]
    assert (got.held_node_hours, got.seen_node_hours) == (4, 3)


def test_kernels_outside_of_jobs_are_not_the_jobs() -> None:
    """A node that is busy beyond what jobs hold; hours in doubt are left out of that figure."""
    ran = [job(1, "a", "COMPLETED", 0, 3600, "n1", gpus=2), *(job(k, "a", "COMPLETED", 0, 3600, "n2") for k in (2, 3))]
    got = found(saying(("n1", 0, 5, 8, 8), ("n2", 0, 8, 8, 8), ("n3", 0, 1, 8, 8)), *ran)
    assert got.outside_gpu_hours == pytest.approx(3 + 1)
    assert (got.busy_gpu_hours, got.untold_gpu_hours) == pytest.approx((2, 16))
    unknown = found(saying(("n1", 0, 5, 8, 8)), *ran, job(9, "b", "COMPLETED", 0, 3600, "n1", gpus=None))
    assert unknown.outside_gpu_hours is None


def test_slowed_hours_count_only_in_service() -> None:
    """Two hours in service, one in an outage; less than an hour in all is no row."""
    slowed = (("n1", 1, 1.0), ("n1", 2, 1.0), ("n1", 5, 1.0), ("n2", 1, 0.5))
    table = events(event("n1", 5, 6, "down"))
    audit = build(given(table, None, telemetry=saying(slowed=slowed)))
    got = audit.utilisation
    assert got is not None
    assert [(t.node, t.kind, t.hours) for t in got.troubles] == [("n1", "throttled", 2.0)]
    assert got.throttled_node_hours == pytest.approx(2.5)
    assert got.allocated_gpu_hours is None
    assert "Not known" in use(got).sentence
    assert use_in_short(got) == ""


def test_hours_that_were_not_read_are_untold_and_said() -> None:
    """They are neither idle nor without telemetry."""
    telemetry = saying(("n1", 0, 8, 8, 8))
    short = Telemetry(telemetry.node_hours, None, FIRST, LAST, frozenset({FIRST}))
    got = found(short, job(1, "a", "COMPLETED", 0, 2 * 3600, "n1"))
    assert (got.busy_gpu_hours, got.dark_gpu_hours, got.untold_gpu_hours) == pytest.approx((8, 0, 8))
    said = [gap.what for gap in gaps(got, 1e6)]
    assert "47 of 48 hours were not read from the metrics server" in said
    assert "in the 1 of 48 hours that could be read" in use(got).sentence
    assert "slowed clocks are not known" in devices(got).sentence


def test_more_than_there_is_is_said() -> None:
    """Jobs that held more GPU-hours than the fleet has in that time."""
    ran = [job(k, "a", "COMPLETED", 0, 48 * 3600, "n1") for k in range(20)]
    audit = build(given(None, jobs(*ran), fleet(node("n1"), size=1), telemetry=saying()))
    assert any("more than the 384 there are" in gap.what for gap in audit.gaps)


def test_jobs_without_a_user_are_no_user_and_no_crash() -> None:
    """A user that accounting does not name owns nothing; the rest of the audit stands."""
    got = found(saying(("n1", 0, 0, 8, 8)), job(1, None, "COMPLETED", 0, 3600, "n1"))  # type: ignore[arg-type]
    assert got.users == ()
    assert got.idle_of_nobody_gpu_hours == pytest.approx(8)
