"""The laws of the port `Store`, on every implementation."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from nodeworthy.errors import Garbled, NodeworthyError, NotAllowed, NotKnown
from nodeworthy.model.hold import HoldState
from nodeworthy.model.record import Boot, Outcome, Revision, SourceHealth, SourceState
from nodeworthy.record import migrations, tables
from nodeworthy.record.sole import sole
from nodeworthy.record.store import SqlStore, open_store
from tests.postgres import postgres_server, postgres_url  # noqa: F401  (fixtures)
from tests.record_samples import AT, entry, event, finding, hold, state, unknown_finding


@pytest.fixture(params=["sqlite", "temporary", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "postgresql":
        return str(request.getfixturevalue("postgres_url"))
    return "temporary:" if request.param == "temporary" else f"sqlite:///{tmp_path}/record.db"


@pytest.fixture
def store(url: str) -> Iterator[SqlStore]:
    opened = open_store(url)
    yield opened
    opened.close()


FULL = Outcome(
    at=AT,
    entries=(entry(), entry("source kern.log", "source.back", actor="alice")),
    findings=(finding(), unknown_finding()),
    holds=(hold(),),
    states=(state("n3"), state("n4", "IDLE")),
    boots=(Boot("n3", "5f0c", AT),),
    sources=(SourceState("kern.log", SourceHealth.FINE, AT - 60, AT, ("one line was cut",)),),
    events=(event(),),
    cursors={"kern.log": {"inode": 7, "offset": 4096, "path": "/var/log/kern.log"}},
)


def test_a_new_store_is_empty_and_says_so(store: SqlStore) -> None:
    """Nothing recorded reads as nothing, with sequence 0."""
    memory = store.load()
    assert (memory.findings, memory.holds, memory.states, memory.cursors) == ({}, {}, {}, {})
    assert memory.sequence == 0
    assert store.entries() == []
    assert store.info().oldest is None


def test_entries_get_sequences_from_one_and_come_back_as_given(store: SqlStore) -> None:
    """append returns the sequences; entries pages through them."""
    given = [entry(f"n{i}", data={"i": i, "deep": {"list": [1, None, True]}}) for i in range(7)]
    kept = store.append(given)
    assert [e.sequence for e in kept] == list(range(1, 8))
    assert [replace(e, sequence=0) for e in kept] == given
    assert store.entries() == kept
    assert store.entries(after=3, limit=2) == kept[3:5]
    assert store.entries(after=7) == []


def test_entries_are_found_by_node_and_kind(store: SqlStore) -> None:
    """A node's entries are those of the node and of its components, and no other node's."""
    store.append([entry("n1"), entry("n1/gpu0", "hold.would"), entry("n10"), entry("n1", "node.state")])
    assert [e.subject for e in store.entries(node="n1")] == ["n1", "n1/gpu0", "n1"]
    assert [e.sequence for e in store.entries(node="n1", kinds=["hold.would", "node.state"])] == [2, 4]


def test_the_newest_entries_come_in_order(store: SqlStore) -> None:
    """newest takes the end of the ledger, since takes those from a time on, and sequence is the last one's."""
    assert store.sequence() == 0
    store.append([entry(at=AT + i) for i in range(9)])
    assert [e.sequence for e in store.entries(limit=3, newest=True)] == [7, 8, 9]
    assert [e.sequence for e in store.entries(since=AT + 6)] == [7, 8, 9]
    assert store.sequence() == 9


def test_load_gives_what_the_turn_left(store: SqlStore) -> None:
    """Every word committed comes back equal, field by field."""
    store.commit_turn(FULL)
    memory = store.load()
    assert memory.findings == {f.key: f for f in FULL.findings}
    assert memory.holds == {h.key: h for h in FULL.holds}
    assert memory.states == {s.node: s for s in FULL.states}
    assert memory.boots == {"n3": FULL.boots[0]}
    assert memory.sources == {"kern.log": FULL.sources[0]}
    assert memory.cursors == FULL.cursors
    assert memory.sequence == 2
    assert store.events().items == FULL.events


def test_what_is_open_is_replaced_and_what_is_closed_is_kept(store: SqlStore) -> None:
    """A finding changes in place, ends at the turn's time, and opens again as a new row."""
    store.commit_turn(FULL)
    worse = finding(summary="worse", confidence=1.0)
    store.commit_turn(Outcome(AT + 1, findings=(worse,)))
    assert store.load().findings[worse.key] == worse
    store.commit_turn(Outcome(AT + 2, closed=(worse.key, "nothing@n9")))
    assert worse.key not in store.load().findings
    again = finding(since=AT + 3)
    store.commit_turn(Outcome(AT + 3, findings=(again,)))
    assert store.findings(node="n3").items == (again,)
    assert store.findings(node="n3", open_only=False).items == (replace(worse, ended=AT + 2), again)
    assert store.findings(node="n3", open_only=False, since=AT + 2).items == (replace(worse, ended=AT + 2), again)
    assert store.findings(node="n3", open_only=False, since=AT + 2.5).items == (again,)


def test_closed_and_opened_in_one_turn_is_a_new_finding(store: SqlStore) -> None:
    """Closing comes before opening, so a new boot's finding does not overwrite the old one's history."""
    store.commit_turn(FULL)
    new = finding(since=AT + 5, boot_id="77aa")
    store.commit_turn(Outcome(AT + 5, findings=(new,), closed=(new.key,)))
    assert [f.boot_id for f in store.findings(node="n3", open_only=False).items] == ["5f0c", "77aa"]


def test_holds_change_state_and_end(store: SqlStore) -> None:
    """A hold goes from would to lifted; once ended it is history."""
    store.commit_turn(FULL)
    store.commit_turn(Outcome(AT + 1, holds=(hold("n5", HoldState.WANTED),)))
    assert [h.subject.node for h in store.holds(states=[HoldState.WOULD]).items] == ["n3"]
    lifted = hold(state=HoldState.LIFTED, ended=AT + 9)
    store.commit_turn(Outcome(AT + 9, holds=(lifted,)))
    assert [h.subject.node for h in store.holds().items] == ["n5"]
    assert store.holds(node="n3", open_only=False, since=AT + 9).items == (lifted,)
    assert store.holds(node="n3", open_only=False, since=AT + 10).items == ()


def test_history_has_the_state_in_force_at_its_start(store: SqlStore) -> None:
    """Asked from a time on, history begins with what held at that time."""
    for step, text in enumerate(["IDLE", "IDLE+DRAIN", "DOWN", "IDLE"]):
        store.commit_turn(Outcome(AT + step * 10, states=(state("n1", text, AT + step * 10), state("n2", text, AT))))
    assert [s.state for s in store.history("n1").items] == ["IDLE", "IDLE+DRAIN", "DOWN", "IDLE"]
    assert [s.state for s in store.history("n1", since=AT + 15).items] == ["IDLE+DRAIN", "DOWN", "IDLE"]
    assert store.load().states["n1"].state == "IDLE"
    assert store.history("n9").items == ()


def test_histories_of_many_are_those_of_each(store: SqlStore) -> None:
    """One question for many nodes answers what a question for each would; nodes without a history are left out."""
    for step, text in enumerate(["IDLE", "IDLE+DRAIN", "DOWN", "IDLE"]):
        states = tuple(state(f"n{k}", text, AT + step * 10 + k) for k in range(1, 1201) if k % (step + 1) == 0)
        store.commit_turn(Outcome(AT + step * 10, states=states))
    names = [f"n{k}" for k in range(1, 1205)]
    for since in (0.0, AT + 15, AT + 10_000):
        many = store.histories(names, since=since)
        few = names[::97] + names[-5:]
        assert {n: tuple(many[n]) for n in few if n in many} == {
            n: page.items for n in few if (page := store.history(n, since=since)).items
        }
        assert "n1204" not in many
    assert store.histories([]) == {}


def test_pages_go_on_where_they_ended(store: SqlStore) -> None:
    """Following `next` gives everything once; the last page has none."""
    store.commit_turn(Outcome(AT, findings=tuple(finding(f"n{i}") for i in range(10))))
    seen, after = [], 0
    while True:
        page = store.findings(after=after, limit=4)
        seen += [f.component.node for f in page.items]
        if page.next is None:
            break
        after = page.next
    assert seen == [f"n{i}" for i in range(10)]
    assert store.findings(limit=10).next is None


def test_a_read_presented_twice_keeps_its_events_once(store: SqlStore) -> None:
    """The same outcome after a lost answer adds no event; a moved cursor does."""
    store.commit_turn(FULL)
    store.commit_turn(FULL)
    assert len(store.events().items) == 1
    moved = Outcome(AT, events=(event(),), cursors={"kern.log": {"inode": 7, "offset": 5000}})
    store.commit_turn(moved)
    assert len(store.events(node="n3").items) == 2
    assert store.events(since=AT + 1).items == ()


def test_a_boot_seen_again_is_not_a_new_boot(store: SqlStore) -> None:
    """A boot keeps the time at which it was first seen."""
    store.commit_turn(FULL)
    store.commit_turn(Outcome(AT + 9, boots=(Boot("n3", "5f0c", AT + 9),)))
    assert store.load().boots["n3"].at == AT
    store.commit_turn(Outcome(AT + 20, boots=(Boot("n3", "new", AT + 20),)))
    assert store.load().boots["n3"].boot_id == "new"


def test_a_failed_turn_leaves_nothing(store: SqlStore) -> None:
    """An outcome that the database refuses half-way changes nothing, and the next one gets the next number."""
    store.commit_turn(FULL)
    before = (store.load(), store.entries(), store.events())
    broken = replace(FULL, at=AT + 1, findings=(finding("n7"),), states=(replace(state(), at=None),))  # type: ignore[arg-type]
    with pytest.raises(NodeworthyError):
        store.commit_turn(broken)
    assert (store.load(), store.entries(), store.events()) == before
    assert store.append([entry()])[0].sequence == 3


def test_a_failed_call_in_a_transaction_that_goes_on_leaves_nothing(store: SqlStore) -> None:
    """A turn that fails inside an open transaction is undone alone; what came before and after it is kept."""
    broken = replace(FULL, states=(replace(state(), at=None),))  # type: ignore[arg-type]
    with store.transaction():
        store.append([entry("before")])
        with pytest.raises(NodeworthyError):
            store.commit_turn(broken)
        store.append([entry("after")])
    assert [(e.sequence, e.subject) for e in store.entries()] == [(1, "before"), (2, "after")]
    assert store.load().findings == {}


def test_a_transaction_groups_calls_and_rolls_back_whole(store: SqlStore) -> None:
    """Calls inside one transaction are kept together or not at all, and see each other."""
    with pytest.raises(RuntimeError), store.transaction():
        store.append([entry()])
        store.set_note("k", 1)
        assert store.note("k") == 1
        raise RuntimeError("stop")
    assert store.entries() == []
    assert store.note("k") is None
    with store.transaction(), store.transaction():
        store.append([entry()])
        store.commit_turn(FULL)
    assert [e.sequence for e in store.entries()] == [1, 2, 3]


def test_a_reader_sees_nothing_of_an_open_transaction_and_does_not_wait(store: SqlStore) -> None:
    """While a writer is in its transaction, others read the last committed state at once."""
    store.append([entry()])
    with store.transaction(), ThreadPoolExecutor(1) as other:
        store.append([entry()])
        started = time.monotonic()
        assert len(other.submit(store.entries).result(timeout=30)) == 1
        assert time.monotonic() - started < 5
    assert len(store.entries()) == 2


def test_sequences_follow_commit_order_under_many_writers(url: str, store: SqlStore) -> None:
    """A reader that follows the ledger by sequence while eight writers append misses nothing and sees no gap.

    Each writer dawdles between taking its numbers and committing: with a plain sequence a later number would
    be visible before an earlier one, and the follower would step over it.
    """
    writers, rounds = 8, 12
    other = store if url == "temporary:" else open_store(url)  # a second process would be the same to the database
    done = threading.Event()

    def write(me: int) -> None:
        mine = (store, other)[me % 2]
        for turn in range(rounds):
            with mine.transaction():
                mine.append([entry(f"w{me}", data={"turn": turn})] * (1 + me % 3))
                time.sleep(0.001 * ((me * 7 + turn) % 4))

    seen: list[int] = []

    def follow() -> None:
        while True:
            last_look = done.is_set()
            new = store.entries(after=seen[-1] if seen else 0, limit=10_000)
            seen.extend(e.sequence for e in new)
            if last_look:
                return
            time.sleep(0.002)

    with ThreadPoolExecutor(writers + 1) as pool:
        follower = pool.submit(follow)
        for job in [pool.submit(write, me) for me in range(writers)]:
            job.result(timeout=120)
        done.set()
        follower.result(timeout=120)
    total = sum((1 + me % 3) * rounds for me in range(writers))
    assert seen == list(range(1, total + 1))
    if other is not store:
        other.close()


def test_revisions_are_kept_by_their_digest(store: SqlStore) -> None:
    """A revision comes back by kind and digest, and its first time stays."""
    revision = Revision("fleet", "abc", AT, {"nodes": {"n1": {"rack": None}}})
    store.save_revision(revision)
    store.save_revision(replace(revision, at=AT + 5))
    assert store.revision("fleet", "abc") == revision
    with pytest.raises(NotKnown):
        store.revision("policy", "abc")


def test_hostile_text_is_kept_readable(store: SqlStore) -> None:
    """NUL, undecodable bytes, NaN and a megabyte of text are recorded, not refused, and the rest is as given."""
    nasty = "a\0b" + b"\xff\xfe".decode("utf-8", "surrogateescape") + "ü🙂'; DROP TABLE ledger; --"
    data = {nasty: [float("nan"), float("inf"), nasty, 2**60, {"x": {1, 2}}]}
    store.commit_turn(
        Outcome(
            AT,
            entries=(entry(nasty, summary="x" * 1_000_000, data=data),),
            events=(event(message=nasty, source=nasty),),
            findings=(finding(nasty, summary=nasty), finding(nasty, summary="again")),
            cursors={nasty: {"path": nasty}},
        )
    )
    clean = "a\ufffdb\ufffd\ufffdü🙂'; DROP TABLE ledger; --"
    (kept,) = store.entries()
    assert (kept.subject, len(kept.summary)) == (clean, 1_000_000)
    assert kept.data == {clean: [None, None, clean, 2**60, {"x": [1, 2]}]}
    assert store.events().items[0].message == clean
    assert [f.summary for f in store.findings().items] == ["again"]
    assert store.load().cursors == {clean: {"path": clean}}


def test_prune_takes_the_old_and_keeps_the_open(store: SqlStore) -> None:
    """Old closed things go; open things, the states in force and a ledger without gaps stay."""
    for day in range(10):
        at = AT + day * 86400
        store.commit_turn(
            Outcome(
                at,
                entries=(entry(at=at), entry("n4", at=at)),
                findings=(finding("n3", f"daily.{day}", at), finding("n4", "old", AT)),
                closed=(finding("n3", f"daily.{day - 1}").key,),
                holds=(hold("n3", HoldState.LIFTED, key=f"h{day}", ended=at), hold("n4")),
                states=(state("n3", f"S{day}", at), *([state("n4", "DOWN", at)] if day == 0 else [])),
                events=(event(at=at),),
                boots=(Boot("n3", f"b{day}", at),),
            )
        )
    memory = store.load()
    before, now = AT + 5 * 86400, AT + 10 * 86400
    pruned = store.prune(before, now=now)
    assert pruned.removed == {
        "ledger": 10,
        "findings": 4,
        "holds": 5,
        "node_states": 5,
        "events": 5,
        "boots": 5,
        "revisions": 0,
    }
    after = store.load()
    assert (after.findings, after.holds, after.states, after.boots) == (
        memory.findings,
        memory.holds,
        memory.states,
        memory.boots,
    )
    left = store.entries()
    assert [e.sequence for e in left] == list(range(11, 22))
    assert pruned.ledger_from == 11
    assert (left[-1].kind, left[-1].data["removed"]) == ("store.pruned", pruned.removed)
    assert [s.state for s in store.history("n3").items] == ["S5", "S6", "S7", "S8", "S9"]
    assert [s.state for s in store.history("n4").items] == ["DOWN"]
    assert store.findings(open_only=False, node="n3").items[0].ended == before
    assert not any(store.prune(before, now=now).removed.values())


def test_an_empty_ledger_after_a_prune_goes_on_counting(store: SqlStore) -> None:
    """Numbers are never used twice, even when all entries are gone."""
    store.append([entry(), entry()])
    assert store.prune(AT + 1, now=AT + 2).removed["ledger"] == 2
    assert [e.sequence for e in store.entries()] == [3]


def test_info_counts_what_is_there(store: SqlStore) -> None:
    """info names the schema, the rows, what is open and the oldest entry, and hides no size."""
    store.commit_turn(FULL)
    info = store.info()
    assert info.schema_revision == migrations.HEAD
    assert (info.rows["ledger"], info.rows["findings"], info.open_findings, info.open_holds) == (2, 2, 2, 1)
    assert info.oldest == AT
    assert info.size_bytes is not None and info.size_bytes > 10_000


def test_a_turn_of_ten_thousand_transitions_is_quick(store: SqlStore, url: str) -> None:
    """10,000 node transitions with findings and entries commit in one turn, well within a turn's time."""
    nodes = [f"n{i:05}" for i in range(10_000)]
    outcome = Outcome(
        AT,
        entries=tuple(entry(n, "node.state") for n in nodes),
        states=tuple(state(n) for n in nodes),
        findings=tuple(finding(n) for n in nodes),
    )
    started = time.monotonic()
    store.commit_turn(outcome)
    took = time.monotonic() - started
    assert len(store.load().findings) == 10_000
    assert took < 10, f"took {took:.1f} s"  # 0.7 s on an idle machine; tests share theirs


def test_a_row_that_makes_no_sense_is_garbled_not_skipped(store: SqlStore) -> None:
    """What another version or a hand wrote is an error that shows the row; it never reads as nothing."""
    store.commit_turn(FULL)
    with store.write() as connection:
        connection.execute(tables.findings.update().values(severity="catastrophic"))
    with pytest.raises(Garbled, match="catastrophic"):
        store.load()
    with pytest.raises(Garbled, match="catastrophic"):
        store.findings()


def test_several_may_open_a_new_store_at_once(url: str) -> None:
    """Of several that find no tables one makes them and the others wait."""
    with ThreadPoolExecutor(4) as pool:
        opened = [job.result(timeout=60) for job in [pool.submit(open_store, url) for _ in range(4)]]
    for store in opened:
        assert store.load().sequence == 0
        store.close()


def test_a_storm_is_kept_in_bounded_space(store: SqlStore) -> None:
    """Of lines that say the same in a minute the first are kept, over turns, and the last of them counts the others."""
    start = AT // 60 * 60
    for turn in range(5):
        lines = tuple(event(at=start + turn + n / 1000) for n in range(1000))
        store.commit_turn(Outcome(start + turn, events=lines))
    kept = store.events().items
    assert [line.at for line in kept] == [start + n / 1000 for n in range(20)]
    assert [line.more for line in kept] == [0] * 19 + [4980]
    others = (event(at=start, trusted=False), event(at=start, code="48"), event(at=start, gpu=3), event(at=start + 60))
    store.commit_turn(Outcome(start + 60, events=others))
    assert store.events().items == (*kept, *others), (
        "what says something else, and the next minute, have their own room"
    )


def test_the_newest_of_each_and_what_an_open_finding_began_with(store: SqlStore) -> None:
    """A start reads a bounded number of lines, however many were kept, and still knows since when a fault is there."""
    lines = [event(at=AT + 60 * n) for n in range(50)]
    began = finding(since=AT + 60 * 7)
    store.commit_turn(Outcome(AT, events=(*lines, event(at=AT, code="48")), findings=(began,)))
    found = store.events(since=AT, each=3)
    assert [(line.code, (line.at - AT) / 60) for line in found.items] == [
        ("79", 7), ("79", 47), ("79", 48), ("79", 49), ("48", 0),
    ]  # fmt: skip
    assert store.events(since=AT, each=3, limit=2).next is not None


def test_one_serves_a_store(url: str) -> None:
    """A second is refused until the first is gone; who only reads or backs up is not."""
    if url == "temporary:":
        with sole(url), sole(url):
            return  # each has its own
    with sole(url):
        with pytest.raises(NotAllowed, match="another `nodeworthy serve`"), sole(url):
            pass
        open_store(url).close()
    with sole(url):
        pass


def test_lines_under_an_open_finding_are_not_pruned(store: SqlStore) -> None:
    """A restart judges them again, however old they are; those of before it and of other nodes go."""
    day = 86400.0
    lines = (event(at=AT - day), event(at=AT), event(at=AT + day), event("n4", at=AT))
    store.commit_turn(Outcome(AT, events=lines, findings=(finding(since=AT),)))
    assert store.prune(AT + 50 * day, now=AT + 60 * day).removed["events"] == 2
    assert [line.at for line in store.events().items] == [AT, AT + day]
    store.commit_turn(Outcome(AT + 61 * day, closed=(finding().key,)))
    assert store.prune(AT + 50 * day, now=AT + 62 * day).removed["events"] == 2


def test_revisions_that_were_replaced_long_ago_are_pruned(store: SqlStore) -> None:
    """What was in force at the time that is kept stays, and what is present stays, however old."""
    for number, digest in enumerate(("a", "b", "c", "d")):
        store.save_revision(Revision("fleet", digest, AT + number, {"nodes": number}))
    store.save_revision(Revision("policy", "p", AT, {}))
    store.set_note("last fleet", "a")  # gone back to
    removed = store.prune(AT + 2.5, now=AT + 10).removed
    assert removed["revisions"] == 1
    assert [store.revision("fleet", digest).content["nodes"] for digest in "acd"] == [0, 2, 3]
    assert store.revision("policy", "p").content == {}
    with pytest.raises(NotKnown):
        store.revision("fleet", "b")
