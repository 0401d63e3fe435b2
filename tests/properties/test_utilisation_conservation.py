"""Whatever jobs and telemetry say: GPU-hours are conserved, nothing unseen is idle, and nothing raises."""

from __future__ import annotations

import json
from dataclasses import replace

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nodeworthy.commands.audit_render.html import document
from nodeworthy.model.scheduler import SchedulerNode
from nodeworthy.reports.audit.inputs import NODE_HOURS, SLOWED, AuditInput, Telemetry, Window
from nodeworthy.reports.audit.report import build
from tests.unit.reports.audit_data import SINCE, event, events, fleet, job, jobs, node
from tests.unit.reports.audit_data import given as given_

DAYS = 4
FIRST, LAST = SINCE // 3600, SINCE // 3600 + DAYS * 24
WINDOW = Window(SINCE + 1800, SINCE + DAYS * 86400)
NODES = [f"n{k}" for k in range(1, 5)]
JOBS = st.lists(
    st.builds(
        lambda user, start, length, nodes, gpus: job(1, user, "COMPLETED", start, length, nodes, width=1, gpus=gpus),
        st.sampled_from(["a", "b", None]), st.floats(-50, 110), st.none() | st.floats(0, 2e5),
        st.sampled_from(["n1", "n2", "n[1-2]", "n[2-4]", "x[", "gone"]), st.none() | st.sampled_from([0.0, 1.0, 4.0, 8.0, 16.0]),
    ),
    max_size=12,
)  # fmt: skip
HOURS = st.lists(
    st.builds(
        lambda name, hour, present, seen, share, mig: (
            name, FIRST + hour, share * min(seen, present), min(seen, present), present, mig
        ),
        st.sampled_from([*NODES, "gone"]), st.integers(1, DAYS * 24 - 1), st.integers(0, 9), st.integers(0, 9), st.floats(0, 1),
        st.booleans(),
    ),
    max_size=60, unique_by=lambda row: (row[0], row[1]),
)  # fmt: skip


def audited(
    table: pl.DataFrame, said: list[tuple[object, ...]], read: range, nodes: dict[str, SchedulerNode]
) -> AuditInput:
    """Jobs and telemetry of four days; n1 was down for a day. The first half hour is no whole hour."""
    frame = pl.DataFrame(said, schema={**NODE_HOURS, "node": pl.String}, orient="row")
    frame = frame.with_columns(pl.col("node").cast(pl.Categorical))
    telemetry = Telemetry(frame, pl.DataFrame(schema=dict(SLOWED)), FIRST + 1, LAST, frozenset(read))
    given = given_(events(event("n1", 10, 30, "down")), table, nodes, telemetry=telemetry)
    return replace(given, window=WINDOW)


def held_by(ran: list[tuple[object, ...]]) -> float:
    """GPU-hours of the jobs inside the whole hours, one by one."""
    total = 0.0
    for _, _, _, start, end, _, _, gpus, _ in ran:
        stop = LAST * 3600 if end is None else min(int(str(end)), LAST * 3600)
        total += float(str(gpus or 0)) * max(0, stop - max(int(str(start)), (FIRST + 1) * 3600))
    return total / 3600


@given(JOBS, HOURS, st.integers(1, DAYS * 24), st.booleans())
@settings(max_examples=150, deadline=None)
def test_allocated_gpu_hours_are_conserved(
    ran: list[tuple[object, ...]], said: list[tuple[object, ...]], unread: int, known: bool
) -> None:
    """Busy, idle, gone, dark and untold are never negative and add up to what jobs held, which the rest of the audit
    counts alike; so do the days; a user's idle hours are within those seen."""
    table = jobs(*ran)
    nodes = fleet(node("n1", "MIXED"), size=4) if known else {}
    audit = build(audited(table, said, range(FIRST + unread, LAST), nodes))
    use = audit.utilisation
    assert use is not None
    assert "NaN" not in json.dumps(audit.document())
    if not table["gpus"].is_not_null().any():
        assert use.allocated_gpu_hours is None
        return
    parts = (use.busy_gpu_hours, use.idle_gpu_hours, use.gone_gpu_hours, use.dark_gpu_hours, use.untold_gpu_hours)
    assert all(part is not None and part >= -1e-6 for part in parts)
    assert sum(p or 0 for p in parts) == pytest.approx(held_by(ran), abs=1e-3)
    assert sum(d.busy + d.idle + d.gone + d.dark + d.untold for d in use.days) == pytest.approx(
        sum(p or 0 for p in parts)
    )
    owned = sum(u.idle_gpu_hours for u in use.users) + (use.idle_of_nobody_gpu_hours or 0)
    assert owned == pytest.approx(use.idle_gpu_hours, abs=1e-3)
    assert all(-1e-6 <= u.idle_gpu_hours <= u.seen_gpu_hours + 1e-6 for u in use.users)
    assert (use.busy_gpu_hours or 0) <= sum(float(str(row[2])) for row in said) + 1e-3
    assert (use.busy_gpu_hours or 0) + (use.idle_gpu_hours or 0) <= sum(int(str(row[3])) for row in said) + 1e-3
    assert 0 <= (use.seen_node_hours or 0) <= (use.held_node_hours or 0)
    if unread == DAYS * 24:
        assert parts[:4] == (0, 0, 0, 0)


@given(JOBS, HOURS)
@settings(max_examples=60, deadline=None)
def test_telemetry_that_vanishes_makes_nothing_idle_busy_or_gone(
    ran: list[tuple[object, ...]], said: list[tuple[object, ...]]
) -> None:
    """Half of the rows taken away: busy, idle and gone can only shrink, and what they lose is dark or untold."""
    table = jobs(*ran)
    if not table["gpus"].is_not_null().any():
        return
    found = []
    for rows in (said, said[::2]):
        use = build(audited(table, rows, range(FIRST + 1, LAST), fleet(size=4))).utilisation
        assert use is not None
        found.append(use)
    for part in ("busy_gpu_hours", "idle_gpu_hours", "gone_gpu_hours"):
        assert getattr(found[1], part) <= getattr(found[0], part) + 1e-6


def test_a_fleet_with_telemetry_is_drawn() -> None:
    """The page holds the picture and both sections."""
    said = [("n1", FIRST + 1, 4.0, 8, 8, False)]
    page = document(
        build(audited(jobs(job(1, "ann", "COMPLETED", 1, 3600, "n1")), said, range(FIRST + 1, LAST), fleet()))
    )
    assert 'id="use"' in page and 'id="devices"' in page
    assert "50.0 % ran a kernel, 50.0 % ran none." in page
