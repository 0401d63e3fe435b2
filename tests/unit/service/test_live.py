"""What a person is told of a node: every kind of mark and fault, in sentences, against pictures made by real turns."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from nodeworthy.decide.people import Agreement
from nodeworthy.errors import NotKnown
from nodeworthy.model.finding import Verdict
from nodeworthy.model.identity import NameKind
from nodeworthy.model.scheduler import SchedulerNode
from nodeworthy.model.status import NodeState
from nodeworthy.record.store import SqlStore, open_store
from nodeworthy.service import needs
from nodeworthy.service.engine import TurnHealth
from nodeworthy.service.live import LiveViews
from nodeworthy.service.picture import Picture
from nodeworthy.service.views import CheckState, ExplainAnswer, SourceState
from nodeworthy.wiring.selfchecks import all_of, store_check
from nodeworthy.wiring.settings import Settings
from tests.pictures import BOOT, START, STEP, Site, fleet, job, node, telemetry, world, xid


class Standing:
    """What the views need of an engine: a picture that stands."""

    interval_s = 10.0

    def __init__(self, site: Site) -> None:
        assert site.picture is not None
        self.picture: Picture = site.picture
        self.health = TurnHealth(site.picture.number, site.picture.at, 0.1)


class At:
    def __init__(self, now: float) -> None:
        self.at = now

    def now(self) -> float:
        return self.at


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    store = open_store(f"sqlite:///{tmp_path}/record.db")
    yield Site(store=store)
    store.close()


def views(site: Site) -> LiveViews:
    assert isinstance(site.store, SqlStore)
    return LiveViews(Standing(site), site.store, At(site.now), tuple)  # type: ignore[arg-type]


def nodes(site: Site, *changed: SchedulerNode) -> list[SchedulerNode]:
    return list({**{n: node(n) for n in site.world.fleet.nodes}, **{c.name: c for c in changed}}.values())


def seen(site: Site, *changed: SchedulerNode, bad: tuple[str, ...] = (), jobs: tuple = ()) -> ExplainAnswer:
    """One turn in which all sources answer, and what is said of n1 then."""
    site.turn(nodes(site, *changed), telemetry(site.world.fleet.nodes, site.now + STEP, bad), jobs=jobs)
    return views(site).explain("n1")


DRAIN = ("IDLE", "DRAIN")
CASES = {
    "a person's drain": (
        node("n1", *DRAIN, reason="bad dimm, ticket 12", user="alice"),
        NodeState.OUT,
        "n1 is drained: bad dimm, ticket 12",
        "alice wrote the mark, which is read as: Host memory",
        "alice lifts their mark; no machine will",
        "ask alice; only they or a colleague should lift it",
    ),
    "the scheduler's drain": (
        node("n1", *DRAIN, reason="Kill task failed"),
        NodeState.OUT,
        "n1 is drained: Kill task failed",
        "scheduler slurm wrote the mark, which is read as: A job's processes did not end",
        "its cause is mended, then somebody resumes the node; Slurm does not by itself",
        "mend the cause that the reason names, then resume it; Slurm does not by itself",
    ),
    "a health program": (
        node("n1", *DRAIN, reason="NHC: check_fs_mount: /data not mounted"),
        NodeState.OUT,
        "n1 is drained: NHC: check_fs_mount: /data not mounted",
        "health program NHC wrote the mark, which is read as: Disk, file system or mount",
        "NHC passes again, if it clears its own marks; else somebody resumes it",
        "see what NHC found",
    ),
    "someone": (
        node("n1", *DRAIN, reason="looks odd"),
        NodeState.OUT,
        "n1 is drained: looks odd",
        "someone (as root) wrote the mark; what for cannot be told from its text",
        "whoever wrote it resumes the node; who that was is not recorded",
        "the slot says root, which proves nobody: ask around before you resume it",
    ),
    "contradictory": (
        node("n1", reason="ECC errors"),
        NodeState.SERVING,
        "n1 takes new work, and nothing that was looked at speaks against it",
        "the mark contradicts itself: it carries a reason and yet is in service",
        "the reason holds nothing off and goes with the next resume",
        "find out whether its reason is left over, or the node should be out",
    ),
    "orphaned": (
        node("n1", *DRAIN, reason="kernel update", boot_at=START - 100),
        NodeState.OUT,
        "n1 is drained: kernel update",
        "perhaps nobody is going to lift the mark: it has booted since the mark that speaks of a reboot",
        "whoever wrote it resumes the node; who that was is not recorded",
        "the slot says root, which proves nobody: ask around before you resume it",
    ),
    "invalid registration": (
        node("n1", *DRAIN, "INVALID_REG", reason="gres/gpu count reported lower than configured (1 < 2)"),
        NodeState.FAILED,
        "n1 is failed: gres/gpu count reported lower than configured (1 < 2)",
        "scheduler slurm wrote the mark, which is read as: Fewer GPUs than configured",
        "its cause is mended, then somebody resumes the node; Slurm does not by itself",
        "mend the cause that the reason names, then resume it; Slurm does not by itself",
    ),
    "lost": (
        node("n1", "DOWN", "NOT_RESPONDING", reason="Not responding", user="slurm"),
        NodeState.FAILED,
        "n1 is failed: Not responding",
        "scheduler slurm wrote the mark, which is read as: Node did not answer",
        "its slurmd registers again; whether Slurm then takes it back depends on ReturnToService",
        "see whether the machine runs (console, BMC) and its slurmd on it",
    ),
    "reserved": (
        node("n1", "IDLE", "RESERVED", reservation="team_a"),
        NodeState.OUT,
        "n1 is out: reservation team_a",
        "n1 is out: reservation team_a",
        "the reservation ends, or is deleted by whoever made it",
        "see whose it is and when it ends: scontrol show reservation team_a",
    ),
    "powered down": (
        node("n1", "IDLE", "POWERED_DOWN", "CLOUD"),
        NodeState.OUT,
        "n1 is out: power saving: powered down",
        "n1 is out: power saving: powered down",
        "",
        "nothing: Slurm starts it when a job needs it",
    ),
    "not registered": (
        node("n1", "UNKNOWN"),
        NodeState.UNKNOWN,
        "n1 is unknown: the scheduler says UNKNOWN: it has not registered yet",
        "",
        "",
        "look at its console: it may not have booted, or its slurmd may not run",
    ),
    "a reboot": (
        node("n1", "IDLE", "DRAIN", "REBOOT_ISSUED", reason="kernel"),
        NodeState.OUT,
        "n1 is drained: reboot issued: kernel",
        "",
        "",
        "wait for its boot; Slurm calls it down when ResumeTimeout is over",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_explain_a_mark(site: Site, name: str) -> None:
    """The state, why, whose mark it is, what clears it and what to do next, each in words that say so."""
    marked, state, because, also, clears, then = CASES[name]
    said = seen(site, marked)

    assert said.node.state is state
    assert because in said.because
    assert not also or also in said.because
    assert not clears or clears in said.clears
    assert said.next[0] == then
    assert said.well is (state is NodeState.SERVING)


def test_explain_a_node_that_empties(site: Site) -> None:
    """A draining node waits for its jobs, which are named."""
    marked = node("n1", "MIXED", "DRAIN", reason="bad dimm", user="alice")
    said = seen(site, marked, jobs=(job("17", "n1"), job("18", "n1", "n2")))

    assert said.because[0] == "n1 is draining: bad dimm"
    assert said.waiting_for == ("2 jobs to end before it is empty: 17, 18",)
    assert [j.job_id for j in said.jobs] == ["17", "18"]


def test_explain_a_fault_that_would_be_held(site: Site) -> None:
    """A GPU that fails to remap: what it is, its evidence, and the very command, which is not run."""
    said = seen(site, bad=("n1",))

    assert said.node.state is NodeState.SUSPECT
    assert said.because[0] == "n1 takes new work, and something speaks against it"
    assert said.because[1].startswith("n1/gpu1: ")
    (hold,) = said.would
    assert (hold.component, hold.verb) == ("n1/gpu1", "drain")
    assert said.evidence and hold.evidence
    meant = said.next[0]
    assert meant.startswith("in observe mode nothing is done; it would be: scontrol update nodename=n1 state=drain")
    assert f"nw:{hold.key}" in meant and "all of n1 leaves" in meant
    assert any("not so now: " in line for line in said.rejected)
    assert not any("NVLinks" in line for line in said.rejected), "a check that does not apply rules nothing out"


def test_a_hold_beside_a_persons_drain_writes_nothing(site: Site) -> None:
    """The slot is taken, so the hold stands beside it; a text that only looks like ours is still the person's."""
    marked = node("n1", *DRAIN, reason="nw:h-000000 copied", user="alice")
    said = seen(site, marked, bad=("n1",))

    assert said.would[0].verb == "hold"
    assert any("the node's one reason slot is taken" in line for line in said.next)
    assert said.marks[0].owner is not None and said.marks[0].owner.name == "alice"


def test_a_node_that_slurm_does_not_list(site: Site) -> None:
    """It is unknown, by its name, and needs somebody once."""
    site.turn([node(n) for n in ("n2", "n3", "n4")], telemetry(site.world.fleet.nodes, site.now + STEP))
    said, status = views(site).explain("n1"), views(site).status()

    assert said.because == ("n1 is unknown: the scheduler does not list this node",)
    assert said.next[0] == "compare its name in the fleet file with Slurm's"
    assert said.scheduler is None and said.node.jobs is None and said.node.scheduler_state is None
    assert [(n.subject, n.summary) for n in status.needs] == [("n1", "unknown: the scheduler does not list this node")]
    assert not status.well


def test_a_node_that_the_fleet_does_not_list(site: Site) -> None:
    """Nobody declared it, so there is no such node; asking by name says what to do, a list names it as not known."""
    site.turn([*nodes(site), node("n9")], telemetry(site.world.fleet.nodes, site.now + STEP))

    with pytest.raises(NotKnown, match="no node n9") as said:
        views(site).explain("n9")
    assert "node list" in said.value.hint
    assert views(site).nodes(("n1", "n9"), {}, frozenset()).not_known == ("n9",)


def test_a_silent_scheduler_is_one_need(site: Site) -> None:
    """All nodes are unknown for one reason, one source needs somebody, and the ledger has one entry of it."""
    seen(site)
    for _ in range(4):
        site.turn(None, telemetry(site.world.fleet.nodes, site.now + STEP))
    status = views(site).status()

    assert status.by_state[NodeState.UNKNOWN] == status.nodes == 4
    assert [(n.what, n.subject) for n in status.needs] == [("source", "slurm")]
    entries = [e for outcome in site.outcomes[1:] for e in outcome.entries if not e.kind.startswith("finding.")]
    assert [e.kind for e in entries] == ["source.lost"]
    said = views(site).explain("n1")
    assert said.because == ("n1 is unknown: the scheduler is not seen: no route",)

    seen(site)
    assert site.kinds().count("source.back") == 1 and "node.state" not in site.kinds()


def test_a_node_that_telemetry_loses(site: Site) -> None:
    """It is unknown with the source and since when; its GPUs are not known, which is not none."""
    for _ in range(2):
        seen(site)
    for _ in range(12):
        site.turn(nodes(site), telemetry(["n2", "n3", "n4"], site.now + STEP))
    said = views(site).explain("n1")

    assert said.node.state is NodeState.UNKNOWN
    assert said.because[0] == "n1 is unknown: no telemetry of it now: dcgm has not seen it lately"
    assert said.node.since is not None and START < said.node.since < site.now
    assert said.node.gpus_seen is None and said.node.gpus == 2
    assert {n.name: n.gpus_seen for n in views(site).nodes(None, {}, frozenset()).items}["n2"] == 2
    assert said.node.unknown > 0
    (need,) = [n for n in views(site).status().needs if n.what == "source"]
    assert (need.subject, need.command) == ("dcgm", "nodeworthy doctor"), (
        "a source that answers and sees half is told of"
    )


def test_before_the_first_turn_nothing_is_claimed(site: Site) -> None:
    """Each declared node is there and unknown, whatever it was when we stopped."""
    seen(site, node("n1", *DRAIN, reason="bad dimm", user="alice"))
    site.start()
    status = views(site).status()

    assert status.as_of is None and not status.well
    assert status.by_state[NodeState.UNKNOWN] == status.nodes == 4
    assert views(site).explain("n1").because == ("n1 is unknown: nothing has been read since Nodeworthy started",)


def test_an_undeclared_fleet_is_not_an_empty_one() -> None:
    """Until a scheduler tells of nodes their number is not known."""
    with_nothing = Site(world=world(fleet(0)))
    status = LiveViews(Standing(with_nothing), None, At(START), tuple).status()  # type: ignore[arg-type]

    assert (status.nodes, status.gpus, dict(status.by_state), status.well) == (None, None, {}, False)


def test_status_counts_and_order(site: Site) -> None:
    """States add up to the fleet; needs go from the worst to the mildest."""
    said = seen(
        site,
        node("n1", "DOWN", "NOT_RESPONDING", reason="Not responding", user="slurm"),
        node("n2", reason="ECC errors"),
        bad=("n3",),
    )
    site.turn(nodes(site, *[]), telemetry(site.world.fleet.nodes, site.now + STEP, ("n3",)), [xid("n4", site.now)])
    status = views(site).status()

    assert said.node.state is NodeState.FAILED
    assert sum(status.by_state.values()) == status.nodes == 4
    order = ["fatal", "error", "warning", "info"]
    severities = [order.index(n.severity) for n in status.needs]
    assert severities == sorted(severities) and severities[0] == 0
    assert status.would == 2 and status.incidents == 2
    assert sum(status.findings.values()) == len(views(site).findings(None, {}, frozenset({Verdict.TRUE})).items)


def _hold_at(site: Site, *then: tuple[float, SchedulerNode]) -> Agreement:
    """n1 gets a bad GPU; then its scheduler states come one after another. What is said of what people did."""
    at = telemetry(site.world.fleet.nodes, site.now + STEP, ("n1",))
    site.turn(nodes(site), at)
    for step, state in then:
        site.turn(nodes(site, state), telemetry(site.world.fleet.nodes, site.now + step, ("n1",)), step=step)
    (item,) = views(site).would(("n1",), {}, None).items
    return item.agreement


def _alice(at: float) -> SchedulerNode:
    return node("n1", *DRAIN, reason="bad gpu", user="alice", at=at)


AGREEMENTS: dict[Agreement, Callable[[Site], Agreement]] = {
    Agreement.TOO_EARLY: lambda s: _hold_at(s),
    Agreement.NOT: lambda s: _hold_at(s, (3700.0, node("n1"))),
    Agreement.AFTER: lambda s: _hold_at(s, (100.0, _alice(START + 110))),
    Agreement.RESUMED: lambda s: _hold_at(s, (100.0, _alice(START + 110)), (100.0, node("n1"))),
}


@pytest.mark.parametrize("agreement", AGREEMENTS)
def test_would_against_people(site: Site, agreement: Agreement) -> None:
    """What people did about a node that we would have held."""
    assert AGREEMENTS[agreement](site) is agreement


def test_people_were_first(site: Site) -> None:
    """A node that alice took out before our evidence came: she was first, by that much."""
    seen(site, _alice(START - 100))
    seen(site, _alice(START - 100), bad=("n1",))
    (item,) = views(site).would(None, {}, None).items

    assert item.agreement is Agreement.BEFORE
    assert item.lead_s == pytest.approx(-100 - 2 * STEP)
    assert item.people is not None and item.people.who == "alice"


def test_would_remembers_what_ended(site: Site) -> None:
    """A hold that ended is in `would --since` with its end, and not in the present."""
    seen(site, bad=("n1",))
    seen(site)
    seen(site)

    assert views(site).would(None, {}, None).items == ()
    (past,) = views(site).would(None, {}, START).items
    assert past.ended == START + 2 * STEP
    assert views(site).would(None, {}, site.now).items == ()


def test_history_is_the_newest_of_the_node(site: Site) -> None:
    """Oldest first, cut from the old end, restricted to the node and the time."""
    for state in (node("n1"), _alice(START), node("n1"), _alice(START + 50), node("n1")):
        seen(site, state, node("n2", *DRAIN, reason="x"))
    everything = views(site).history("n1", None, 100).items

    assert len(everything) > 4 and {e.subject for e in everything} == {"n1"}
    assert [e.sequence for e in everything] == sorted(e.sequence for e in everything)
    assert views(site).history("n1", None, 2).items == everything[-2:]
    later = views(site).history("n1", START + 3 * STEP, 100).items
    assert later and all(e.at >= START + 3 * STEP for e in later)


def test_lists_by_names_labels_and_state(site: Site) -> None:
    """All restrictions hold together, in the order of the fleet."""
    seen(site, node("n3", *DRAIN, reason="x"))
    ask = views(site).nodes

    assert [n.name for n in ask(("n3", "n1"), {}, frozenset()).items] == ["n1", "n3"]
    assert [n.name for n in ask(None, {"leaf": "leaf1"}, frozenset({NodeState.OUT})).items] == ["n3"]
    assert ask(None, {"leaf": "leaf2"}, frozenset()).items == ()
    assert ask((), {}, frozenset()).items == ()


def test_ledger_from_the_end(site: Site) -> None:
    """A negative start takes the last ones, also of one subject; `last` is where to go on."""
    seen(site, node("n1", *DRAIN, reason="x"))
    seen(site, node("n2", *DRAIN, reason="y"))
    store = site.store
    assert store is not None
    last = store.sequence()

    assert [e.sequence for e in views(site).ledger(-2, 100).items] == [last - 1, last]
    (of_n1,) = views(site).ledger(-1, 100, "n1").items
    assert of_n1.subject == "n1" and views(site).ledger(-1, 100, "n1").last == of_n1.sequence
    assert views(site).ledger(last, 100).last == last


def test_a_source_is_down_when_its_last_word_is_old(site: Site) -> None:
    """One failed reading is told at once and is no outage; three missed rounds are one."""
    seen(site)
    site.turn(None, telemetry(site.world.fleet.nodes, site.now + STEP))
    first = {s.name: s for s in views(site).status().sources}["slurm"]
    assert (first.state, first.problem) == (SourceState.OK, "no route")

    for _ in range(3):
        site.turn(None, telemetry(site.world.fleet.nodes, site.now + STEP))
    assert {s.name: s.state for s in views(site).status().sources}["slurm"] is SourceState.DOWN
    hung = replace(site.readings["slurm"], problem="")
    assert site.picture is not None
    site.picture = replace(site.picture, seen=replace(site.picture.seen, sources={"slurm": hung}))
    assert views(site).status().sources[0].state is SourceState.LATE


def test_a_line_from_before_the_boot_is_history(site: Site) -> None:
    """Also while the scheduler, which knows the boot, is silent."""
    seen(site)
    for _ in range(4):
        site.turn(None, telemetry(site.world.fleet.nodes, site.now + STEP))
    site.turn(None, telemetry(site.world.fleet.nodes, site.now + STEP), [xid("n1", BOOT - 3600)])

    assert views(site).would(None, {}, None).items == ()


def test_strange_names_are_one_need() -> None:
    """A fleet file of another cluster makes each of Slurm's names a doubt: that is one thing to do."""
    met = Site()
    met.now += STEP
    strangers = met.world.resolver.unknown(NameKind.SCHEDULER, [f"x{i}" for i in range(60)], "c", "slurm")
    picture = met.judge(replace(met.seen([], None, ()), doubts=tuple(strangers)))

    found = needs.of(picture, (), TurnHealth(), ())
    (doubt,) = [need for need in found if need.what == "identity"]
    assert "and 49 more like it" in doubt.summary
    assert sum(need.what == "incident" for need in found) == 0


class Counting:
    """A store that counts what it is asked."""

    def __init__(self, store: SqlStore) -> None:
        self.store = store
        self.asked: list[str] = []

    def __getattr__(self, name: str) -> object:
        self.asked.append(name)
        return getattr(self.store, name)


def test_would_asks_the_record_once_for_all_nodes_and_pages(site: Site) -> None:
    """A hundred holds are one question, and the second page of an answer is none."""
    site.turn(
        nodes(site), telemetry(site.world.fleet.nodes, site.now + STEP), [xid(n, site.now) for n in ("n1", "n2", "n3")]
    )
    counting = Counting(site.store)  # type: ignore[arg-type]
    shown = LiveViews(Standing(site), counting, At(site.now), tuple)  # type: ignore[arg-type]
    first = shown.would(None, {}, 0.0)
    assert {item.node for item in first.items} == {"n1", "n2", "n3"}
    assert counting.asked == ["holds", "histories"]
    assert shown.would(None, {}, 0.0).items is first.items
    assert counting.asked == ["holds", "histories"]
    assert {item.node for item in shown.would(("n1",), {}, 0.0).items} == {"n1"}


def test_doctor_writes_nothing_and_counts_nothing(site: Site) -> None:
    """Looking at our health is a read, and a cheap one: that the record takes writes is told by the last commit."""
    site.turn(nodes(site), telemetry(site.world.fleet.nodes, site.now + STEP))
    counting = Counting(site.store)  # type: ignore[arg-type]
    checks = all_of(Settings(), counting, At(site.now), True)  # type: ignore[arg-type]
    found = {c.name: c for c in LiveViews(Standing(site), counting, At(site.now + 7), tuple, checks).doctor().items}  # type: ignore[arg-type]
    assert counting.asked == ["sequence"]
    assert found["store"].state is CheckState.OK
    assert "the last commit was 7 s ago" in found["turn"].sentence

    assert isinstance(site.store, SqlStore)
    site.store.close()
    gone = open_store("temporary:")
    gone.close()
    assert store_check(gone).state is CheckState.FAIL


def test_a_list_is_made_anew_for_the_next_picture(site: Site) -> None:
    """What is kept for the pages of a list belongs to one picture and one question."""
    site.turn(nodes(site), telemetry(site.world.fleet.nodes, site.now + STEP))
    standing = Standing(site)
    shown = LiveViews(standing, site.store, At(site.now), tuple)  # type: ignore[arg-type]
    before = shown.nodes(None, {}, frozenset()).items
    assert shown.nodes(None, {}, frozenset()).items is before
    assert [n.name for n in shown.nodes(("n1",), {}, frozenset()).items] == ["n1"]
    site.turn(nodes(site, node("n1", "DOWN")), telemetry(site.world.fleet.nodes, site.now + STEP))
    assert site.picture is not None
    standing.picture = site.picture
    after = {n.name: n.state for n in shown.nodes(None, {}, frozenset()).items}
    assert after["n1"] is NodeState.FAILED
    assert shown.findings(None, {}, frozenset()).items is shown.findings(None, {}, frozenset()).items
