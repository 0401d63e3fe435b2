"""Whatever turns do, the store says what a plain dictionary would, and the ledger replays to the same."""

from __future__ import annotations

import tempfile
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from nodeworthy.model.finding import Finding
from nodeworthy.model.hold import HoldState
from nodeworthy.model.ledger import Entry
from nodeworthy.model.record import Outcome
from nodeworthy.record.backup import back_up, restore
from nodeworthy.record.store import SqlStore, open_store
from tests.properties.inputs import fewer
from tests.record_samples import AT, event, finding, hold, state

NODES = [f"n{i}" for i in range(5)]
subset = st.sets(st.sampled_from(NODES))


@st.composite
def turns(draw: st.DrawFn) -> list[Outcome]:
    """Turns that open, change and close at will, with the entries that a turn writes of it."""
    is_open: dict[str, Finding] = {}
    made = []
    for number in range(draw(st.integers(1, 8))):
        at = AT + number * 60
        bad, changed, held, lifted = draw(subset), draw(subset), draw(subset), draw(subset)
        opened = [finding(n, since=at) for n in sorted(bad) if finding(n).key not in is_open]
        closed = [f for f in is_open.values() if f.component.node not in bad]
        worse = [replace(f, confidence=number / 10) for f in is_open.values() if f.component.node in bad & changed]
        entries = [_entry(at, "finding.closed", f) for f in closed] + [_entry(at, "finding.opened", f) for f in opened]
        for f in closed:
            del is_open[f.key]
        is_open |= {f.key: f for f in opened + worse}
        holds = [hold(n) for n in sorted(held)]
        holds += [hold(n, HoldState.LIFTED, ended=at) for n in sorted(lifted)]
        made.append(
            Outcome(
                at,
                entries=tuple(entries),
                findings=tuple(opened + worse),
                closed=tuple(f.key for f in closed),
                holds=tuple(holds),
                states=tuple(state(n, f"S{number}", at) for n in sorted(changed)),
                events=tuple(event(n, at) for n in sorted(bad)),
                cursors={"kern.log": {"offset": number}} if draw(st.booleans()) else {},
            )
        )
    return made


def _entry(at: float, kind: str, f: Finding) -> Entry:
    return Entry(at, kind, str(f.component), f.summary, data={"finding": f.key, "since": f.since})


def replayed(entries: list[Entry]) -> dict[object, object]:
    """Which findings are open, and since when, by the ledger alone."""
    is_open: dict[object, object] = {}
    for entry in entries:
        if entry.kind == "finding.opened":
            is_open[entry.data["finding"]] = entry.data["since"]
        else:
            assert is_open.pop(entry.data["finding"]) is not None
    return is_open


def check(store: SqlStore, outcomes: list[Outcome]) -> None:
    findings: dict[str, Finding] = {}
    states, cursors, closed_count = {}, {}, 0
    for outcome in outcomes:
        for key in outcome.closed:
            del findings[key]
            closed_count += 1
        findings |= {f.key: f for f in outcome.findings}
        states |= {s.node: s for s in outcome.states}
        cursors |= outcome.cursors
    memory = store.load()
    assert memory.findings == findings
    assert memory.states == states
    assert memory.cursors == cursors
    entries = store.entries()
    assert [e.sequence for e in entries] == list(range(1, memory.sequence + 1))
    assert replayed(entries) == {key: f.since for key, f in findings.items()}
    every = store.findings(open_only=False).items
    assert len(every) == len(findings) + closed_count
    assert all(f.ended is None or f.since < f.ended for f in every)


@fewer(20)
@given(turns())
def test_the_store_follows_its_turns_and_the_ledger_replays_to_it(outcomes: list[Outcome]) -> None:
    """After each turn, and after closing and opening again, and after backup and restore, it is the same record."""
    with tempfile.TemporaryDirectory() as folder:
        store = open_store(f"{folder}/record.db")
        for count, outcome in enumerate(outcomes, 1):
            store.commit_turn(outcome)
            check(store, outcomes[:count])
        store.close()
        again = open_store(f"{folder}/record.db", create=False)
        check(again, outcomes)
        from pathlib import Path

        back_up(again, Path(folder) / "b.gz", now=AT)
        again.close()
        restore(f"{folder}/other.db", Path(folder) / "b.gz")
        other = open_store(f"{folder}/other.db")
        check(other, outcomes)
        other.close()


@fewer(20)
@given(turns(), st.integers(-1, 9))
def test_prune_changes_nothing_that_a_turn_starts_from(outcomes: list[Outcome], step: int) -> None:
    """Whenever it is pruned, what is open and last known stays, and nothing young goes."""
    store = open_store("temporary:")
    try:
        for outcome in outcomes:
            store.commit_turn(outcome)
        memory, before = store.load(), AT + step * 60
        young = [e for e in store.entries() if e.at >= before]
        histories = {n: store.history(n, since=before).items for n in NODES}
        store.prune(before, now=AT + 1000)
        after = store.load()
        assert replace(after, sequence=0) == replace(memory, sequence=0)
        assert store.entries()[:-1] == young
        assert {n: store.history(n, since=before).items for n in NODES} == histories
    finally:
        store.close()
