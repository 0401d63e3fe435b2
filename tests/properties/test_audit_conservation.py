"""Whatever the records say: hours are conserved, nothing counts twice, and nothing raises."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeworthy.commands.audit_render.markdown import document
from nodeworthy.commands.audit_render.terminal import page
from nodeworthy.reports.audit.outages import OUT_KINDS
from nodeworthy.reports.audit.report import build
from tests.properties.inputs import fewer
from tests.unit.reports.audit_data import SINCE, UNTIL, event, events, fleet, job, jobs, node
from tests.unit.reports.audit_data import given as given_

NODES = st.sampled_from([f"n{k}" for k in range(1, 9)] + ["gone"])
HOURS = st.floats(-200, 1700)
EVENTS = st.lists(
    st.builds(
        lambda name, start, length, kind, reason: event(
            name, start, None if length is None else start + length, kind, reason
        ),
        NODES, HOURS, st.none() | st.floats(0, 900), st.sampled_from([*OUT_KINDS, "powered", "in-service"]),
        st.sampled_from(["xid 79", "Not responding", "firmware", "", "see me", "reboot"]),
    ),
    max_size=25,
)  # fmt: skip
JOBS = st.lists(
    st.builds(
        lambda number, user, state, start, length, nodes, gpus: job(
            number, user, state, start, length, nodes, width=2 if "[" in nodes else 1, gpus=gpus
        ),
        st.integers(1, 99), st.sampled_from("abcd"), st.sampled_from(["COMPLETED", "FAILED", "NODE_FAIL", "RUNNING"]), HOURS,
        st.none() | st.floats(0, 3e6), st.sampled_from(["n1", "n2", "n[1-2]", "n[3-4]", "x[", "None assigned"]),
        st.none() | st.sampled_from([0.0, 8.0]),
    ),
    max_size=25,
)  # fmt: skip
STATES = st.sampled_from(
    [("IDLE", ()), ("IDLE", ("DRAIN",)), ("DOWN", ("NOT_RESPONDING",)), ("MIXED", ("DRAIN",)), ("MIXED", ())]
)


@fewer(20)
@given(EVENTS, JOBS, STATES)
def test_hours_are_conserved(
    rows: list[tuple[object, ...]], ran: list[tuple[object, ...]], state: tuple[str, tuple[str, ...]]
) -> None:
    """Lost is at most window times GPUs; causes, kinds and days each add up to it; every renderer can draw it."""
    nodes = fleet(node("n1", state[0], state[1], "Xid 79", at=100))
    audit = build(given_(events(*rows), jobs(*ran), nodes))
    totals = audit.totals
    assert 0 <= totals.lost_gpu_hours <= totals.capacity_gpu_hours * (1 + 1e-9)
    assert sum(row.gpu_hours or 0 for row in audit.causes) == pytest.approx(totals.lost_gpu_hours, abs=1e-6)
    assert sum(h for d in audit.days for _, h in d.gpu_hours) == pytest.approx(totals.lost_gpu_hours, abs=1e-6)
    kinds = (totals.lost_fault_gpu_hours, totals.lost_planned_gpu_hours, totals.lost_unknown_gpu_hours)
    assert sum(kinds) == pytest.approx(totals.lost_gpu_hours, abs=1e-6)
    assert sum(row.node_hours for row in audit.causes) == pytest.approx(totals.lost_node_hours, abs=1e-6)
    assert "NaN" not in json.dumps(audit.document())
    assert page(audit, width=100, colour=False).count("\n") > 10
    assert document(audit).startswith("# Audit")


def union_hours(rows: list[tuple[object, ...]]) -> float:
    """The hours in which at least one event of a node ran, node by node, second by second edges: no cleverness."""
    total = 0
    for name in {str(row[0]) for row in rows}:
        spans = [(int(str(r[1])), int(str(r[2]))) for r in rows if r[0] == name and r[2] is not None]
        spans = [(max(a, SINCE), min(b, UNTIL)) for a, b in spans]
        edges = sorted({t for span in spans for t in span})
        for left, right in pairwise(edges):
            total += (right - left) * any(a <= left and right <= b for a, b in spans)
    return total / 3600


@fewer(10)
@given(EVENTS)
def test_lost_hours_are_the_union_of_the_events(rows: list[tuple[object, ...]]) -> None:
    """However events overlap, touch, repeat or leave the window: against a count edge by edge. (Open events of nodes that serve
    have no known end and are left out.)"""
    out = [row for row in rows if row[4] in OUT_KINDS]
    assert build(given_(events(*rows))).totals.lost_node_hours == pytest.approx(union_hours(out), abs=1e-9)
