"""One word for each node, whose doing it is, and since when."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeworthy.decide.marks import classify
from nodeworthy.decide.status import NOT_LISTED, dated, status_of, statuses
from nodeworthy.model.finding import ComponentRef, Finding, Severity, UnknownReason, Verdict
from nodeworthy.model.hold import OwnerKind
from nodeworthy.model.scheduler import BaseState, Mark, SchedulerNode
from nodeworthy.model.status import NodeState, NodeStatus
from nodeworthy.wiring.reasons import shipped_reasons
from tests.pictures import START, node

NORMALISE = shipped_reasons().normalise
FLAGS = ("DRAIN", "FAIL", "INVALID_REG", "NOT_RESPONDING", "RESERVED", "MAINTENANCE", "REBOOT_ISSUED", "POWERED_DOWN",
         "COMPLETING", "PLANNED")  # fmt: skip


def finding(check: str, severity: Severity, since: float = 5.0, **more: object) -> Finding:
    return Finding(check, ComponentRef("n1"), Verdict.TRUE, severity, 1.0, since, f"{check} is so", **more)  # type: ignore[arg-type]


def status(one: SchedulerNode | None, *findings: Finding, blind: str = "", no_scheduler: str = "") -> NodeStatus:
    mark = classify(one, NORMALISE) if one else None
    return status_of("n1", one, mark, findings, blind, no_scheduler)


@pytest.mark.parametrize("base", list(BaseState))
@pytest.mark.parametrize("flags", [(), *((f,) for f in FLAGS), *combinations(FLAGS[:8], 2)], ids="+".join)
def test_only_a_node_that_takes_work_serves(base: BaseState, flags: tuple[str, ...]) -> None:
    """Whatever keeps new work off makes it something else than serving, and something else than suspect."""
    keeps_off = set(flags) - {"COMPLETING", "PLANNED"}
    in_service = base in (BaseState.IDLE, BaseState.ALLOCATED, BaseState.MIXED) and not keeps_off
    for found in ((), (finding("gpu", Severity.FATAL),)):
        state = status(node("n1", base.value, *flags), *found).state
        assert (state in (NodeState.SERVING, NodeState.SUSPECT)) is in_service


def test_findings_make_a_serving_node_suspect() -> None:
    """The worst and oldest speaks; a warning does not make suspect; one that is only remembered says so."""
    found = (
        finding("w", Severity.WARNING, 1),
        finding("e", Severity.ERROR, 2),
        finding("f", Severity.FATAL, 9),
        finding("g", Severity.FATAL, 8),
    )
    said = status(node("n1"), *found)
    assert (said.state, said.reason, said.since) == (NodeState.SUSPECT, "g is so", 8)
    assert status(node("n1"), found[0]).state is NodeState.SERVING
    remembered = status(node("n1"), finding("e", Severity.ERROR, unknown=UnknownReason.STALE))
    assert remembered.reason == "e is so (last known: stale now)"


def test_what_is_not_known() -> None:
    """A silent scheduler, a node it does not list, a node whose telemetry is dark: each with its own reason and hint."""
    silent = status(None, no_scheduler="the scheduler is not seen: no route")
    strange = status(None, blind="no telemetry")
    dark = status(node("n1"), blind="no telemetry of it now")

    assert {s.state for s in (silent, strange, dark)} == {NodeState.UNKNOWN}
    assert (silent.reason, strange.reason) == ("the scheduler is not seen: no route", NOT_LISTED)
    assert dark.reason == "no telemetry of it now"
    assert len({s.next for s in (silent, strange, dark)}) == 3 and all(s.next for s in (silent, strange, dark))


def test_darkness_hides_no_mark_and_no_fault() -> None:
    """What is known of a node counts before what is not."""
    assert status(node("n1", "IDLE", "DRAIN", reason="x", user="alice"), blind="dark").state is NodeState.OUT
    assert status(node("n1"), finding("e", Severity.ERROR), blind="dark").state is NodeState.SUSPECT


def test_a_mark_dates_only_the_state_it_was_written_for() -> None:
    """A reservation over a leftover reason did not begin with that reason."""
    assert status(node("n1", "IDLE", "DRAIN", reason="x", at=7.0)).since == 7.0
    assert status(node("n1", "IDLE", "RESERVED", reason="x", at=7.0, reservation="r")).since is None


def test_a_reservation_is_no_person_to_ask() -> None:
    """Slurm's reservation tells who may use it, so its own page is what to look at."""
    said = status(node("n1", "IDLE", "MAINTENANCE", reservation="maint-7"))
    assert said.reason == "maintenance reservation maint-7"
    assert said.next == "see whose it is and when it ends: scontrol show reservation maint-7"


@given(
    st.sampled_from(list(BaseState)),
    st.sets(st.sampled_from(FLAGS)),
    st.sampled_from(["nw:h-123 x", "Kill task failed", "NHC: y", "z", ""]),
)
def test_a_persons_mark_is_never_ours(base: BaseState, flags: set[str], reason: str) -> None:
    """Whatever the text and the state: what a person's user id wrote is that person's."""
    marked = SchedulerNode("n1", base, frozenset(flags), Mark(reason, "alice", 1.0))
    view = classify(marked, NORMALISE)
    assert view is not None
    assert (view.owner.kind, view.owner.name) == (OwnerKind.PERSON, "alice")


def test_statuses_are_of_the_declared_nodes() -> None:
    """In their order; a node that only the scheduler knows has none."""
    said = statuses(["n2", "n1"], {"n1": node("n1"), "n9": node("n9")}, {}, (), {}, "")
    assert list(said) == ["n2", "n1"]


def word(state: NodeState, since: float | None = None) -> dict[str, NodeStatus]:
    return {"n1": NodeStatus("n1", state, "", since=since)}


def test_since() -> None:
    """What goes on keeps its beginning, what is new begins now, and in the first turn nobody knows."""
    out, serving = NodeState.OUT, NodeState.SERVING

    def since(now: dict, shown: dict, told: dict, first: bool = False) -> float | None:
        return dated(now, shown, told, START, first=first)["n1"].since

    assert since(word(out, 7.0), word(out, 3.0), word(out, 3.0)) == 7.0, "a mark dates it"
    assert since(word(out), word(out, 3.0), {}) == 3.0
    assert since(word(out), word(serving), word(serving)) == START
    assert since(word(out), word(NodeState.UNKNOWN, 5.0), word(out, 3.0)) == 3.0, "it was unseen for a while"
    assert since(word(out), word(NodeState.UNKNOWN), {}, first=True) is None
    assert since(word(out), word(NodeState.UNKNOWN), word(out, 3.0), first=True) == 3.0, "after a restart"
