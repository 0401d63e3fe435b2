"""The laws of a turn, on drawn stories of a small site: marks, boots, faults, lines, and sources that fall silent."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from hypothesis import given, settings
from hypothesis import strategies as st

from nodeworthy.model.finding import Finding
from nodeworthy.model.hold import HoldState, OwnerKind
from nodeworthy.model.scheduler import SchedulerNode
from nodeworthy.record.store import SqlStore, open_store
from nodeworthy.service.changes import changes
from nodeworthy.service.picture import Picture
from nodeworthy.service.turn import turn
from tests.pictures import BOOT, STEP, Site, node, story, telemetry, xid

NAMES = ("n1", "n2", "n3", "n4")
WORDS = (
    ("IDLE", (), None, None),
    ("ALLOCATED", (), None, None),
    ("IDLE", ("DRAIN",), "bad dimm", "alice"),
    ("IDLE", ("DRAIN",), "nw:h-123456 copied from somewhere", "alice"),
    ("MIXED", ("DRAIN",), "Kill task failed", "root"),
    ("DOWN", ("NOT_RESPONDING",), "Not responding", "slurm"),
    ("IDLE", ("DRAIN",), None, None),
)
subset = st.sets(st.sampled_from(NAMES))


@dataclass(frozen=True)
class Step:
    """One turn. `dark`: sources that do not answer in it."""

    states: tuple[int, ...]
    bad: frozenset[str]
    hidden: frozenset[str]
    lines: tuple[tuple[str, float, str], ...]  # node, seconds before now, code
    rebooted: frozenset[str]
    dark: frozenset[str]


steps = st.builds(
    Step,
    states=st.tuples(*(st.integers(0, len(WORDS) - 1) for _ in NAMES)),
    bad=subset.map(frozenset),
    hidden=subset.map(frozenset),
    lines=st.lists(
        st.tuples(
            st.sampled_from(NAMES), st.sampled_from([1.0, 200.0, 100_000.0]), st.sampled_from(["79", "48", "13"])
        ),
        max_size=2,
    ).map(tuple),
    rebooted=st.one_of(st.just(frozenset()), subset.map(frozenset)),
    dark=st.one_of(st.just(frozenset()), st.sets(st.sampled_from(["slurm", "dcgm", "kern.log"])).map(frozenset)),
)
stories = st.lists(steps, min_size=1, max_size=7)


class Told:
    """Plays a story: the boots that have happened so far, and each step as what the sources say."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.boots = dict.fromkeys(NAMES, BOOT)

    def play(self, step: Step, *, backwards: bool = False) -> Picture:
        at = self.site.now + STEP
        self.boots |= dict.fromkeys(step.rebooted, at - 5)
        nodes: list[SchedulerNode] | None = []
        for name, word in zip(NAMES, step.states, strict=True):
            base, flags, reason, user = WORDS[word]
            nodes.append(node(name, base, *flags, reason=reason, user=user, boot_at=self.boots[name]))
        names = [n for n in NAMES if n not in step.hidden]
        if backwards:
            nodes.reverse()
            names.reverse()
        batch = telemetry(names, at, step.bad)
        events = [xid(name, at - ago, code, read_at=at) for name, ago, code in step.lines]
        return self.site.turn(
            None if "slurm" in step.dark else nodes,
            None if "dcgm" in step.dark else batch,
            None if "kern.log" in step.dark else events,
        )


@contextmanager
def temporary() -> Iterator[SqlStore]:
    with tempfile.TemporaryDirectory() as folder:
        store = open_store(f"sqlite:///{folder}/record.db")
        try:
            yield store
        finally:
            store.close()


@given(stories)
@settings(max_examples=12, deadline=None)
def test_a_turn_is_a_function(told: list[Step]) -> None:
    """The same arguments give the same picture and the same outcome, and leave the picture before as it was."""
    site = Site()
    player = Told(site)
    for step in told[:-1]:
        player.play(step)
    before = site.picture
    assert before is not None
    was = story(before)

    after = player.play(told[-1])
    again = turn(site.world, before, after.seen, after.frames, site.now)

    assert story(again) == story(after)
    assert changes(before, again) == changes(before, after)
    assert story(before) == was


@given(stories)
@settings(max_examples=12, deadline=None)
def test_the_order_in_which_things_are_listed_does_not_matter(told: list[Step]) -> None:
    """Nodes and rows in the opposite order, and sources too, make the same picture."""
    one, other = Told(Site()), Told(Site())
    other.site.readings = dict(reversed(other.site.readings.items()))
    for step in told:
        assert story(one.play(step)) == story(other.play(step, backwards=True))


def _open(found: Picture) -> tuple[dict[str, Finding], dict[str, object], dict[str, object]]:
    holds = {h.key: (h.subject, h.effect, h.since, h.because) for h in found.holds.values() if h.ended is None}
    return dict(found.findings), holds, dict(found.transitions)


def _gist(findings: dict[str, Finding]) -> dict[str, object]:
    """What the record keeps of a finding; its evidence is of the time when it was kept."""
    return {k: (f.verdict, f.severity, f.since, f.summary, f.unknown) for k, f in findings.items()}


@given(stories)
@settings(max_examples=8, deadline=None)
def test_the_record_is_the_picture(told: list[Step]) -> None:
    """Applying the outcomes to an empty record gives the open findings, holds, states and boots of the last picture,
    and the ledger opens and closes each finding once."""
    with temporary() as store:
        site = Site(store=store)
        player = Told(site)
        for step in told:
            picture = player.play(step)
        memory = store.load()
        entries = store.entries(limit=10_000)

    findings, holds, states = _open(picture)
    assert _gist(dict(memory.findings)) == _gist(findings)
    assert {h.key: (h.subject, h.effect, h.since, h.because) for h in memory.holds.values()} == holds
    assert memory.states == states
    assert {b.node: b.at for b in memory.boots.values()} == picture.boots
    is_open: set[str] = set()
    for entry in entries:
        if entry.kind == "finding.opened":
            assert entry.cause not in is_open
            is_open.add(entry.cause)
        elif entry.kind == "finding.closed":
            is_open.remove(entry.cause)
    assert is_open == set(findings)
    assert [e.sequence for e in entries] == list(range(1, len(entries) + 1))


@given(stories, st.integers(0, 6))
@settings(max_examples=8, deadline=None)
def test_a_restart_loses_and_invents_nothing(told: list[Step], at: int) -> None:
    """After a restart and one silent turn the same findings and holds stand, since the same times and under the same
    keys, and nothing of what is known is told a second time."""
    with temporary() as store:
        site = Site(store=store)
        player = Told(site)
        for step in told[: at + 1]:
            before = player.play(step)
        # what depends on a second look (a scheduler's or source's own finding) is of the sources, not of nodes
        site.start()
        again = site.turn(None, None, (), step=1.0)

    def of_nodes(picture: Picture) -> dict[str, float]:
        return {k: f.since for k, f in picture.findings.items() if f.component.of_node}

    def holds(picture: Picture) -> dict[str, tuple[str, float]]:
        return {k: (h.key, h.since) for k, h in picture.holds.items() if h.state is not HoldState.LIFTED}

    assert of_nodes(again) == of_nodes(before)
    assert holds(again) == holds(before)
    assert again.boots == before.boots
    assert {n: s.state for n, s in again.told.items()} == {
        n: s.state for n, s in before.told.items() if s.state != "serving" or n in again.told
    }
    told_of = [e for e in site.outcomes[-1].entries if e.kind.startswith(("finding.opened", "hold.", "node."))]
    assert [e for e in told_of if not e.subject.startswith("source:")] == []


@given(stories, st.sampled_from(["slurm", "dcgm", "kern.log"]), st.integers(1, 12))
@settings(max_examples=12, deadline=None)
def test_blindness_accuses_nobody(told: list[Step], source: str, turns: int) -> None:
    """Whatever happened before, when a source falls silent no finding on a node opens and nothing new is held."""
    site = Site()
    player = Told(site)
    for step in told:
        before = player.play(step)
    quiet = replace(told[-1], lines=(), rebooted=frozenset(), dark=told[-1].dark | {source})
    for _ in range(turns):
        after = player.play(quiet)
        new = [f.key for f in after.findings.values() if f.component.of_node and f.key not in before.findings]
        assert new == []
        assert {h.key for h in after.holds.values()} <= {h.key for h in before.holds.values()}


@given(stories)
@settings(max_examples=12, deadline=None)
def test_what_always_holds(told: list[Step]) -> None:
    """Each declared node has one status; a person's mark is never ours; old lines never hold; holds have evidence."""
    player = Told(Site())
    for step in told:
        picture = player.play(step)
        assert list(picture.statuses) == list(NAMES)
        for name, word in zip(NAMES, step.states, strict=True):
            if "slurm" not in step.dark and WORDS[word][3] == "alice":
                assert (picture.marks[name].owner.kind, picture.marks[name].owner.name) == (OwnerKind.PERSON, "alice")
        for hold in picture.holds.values():
            assert hold.evidence, "nothing is held without evidence"
            assert hold.because
            if hold.because[0].startswith("xid") and hold.state is not HoldState.LIFTED:
                lines = [e.seen for e in hold.evidence if e.seen is not None]
                assert max(lines) >= picture.boots.get(hold.subject.node, BOOT) - 120.0
