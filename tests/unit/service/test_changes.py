"""What the ledger is told: each thing once, with its cause, however often a value comes and goes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from nodeworthy.model.hold import HoldState
from nodeworthy.model.scheduler import SchedulerNode
from nodeworthy.service.changes import changes
from tests.pictures import START, STEP, Site, fleet, node, telemetry, world, xid


def play(site: Site, *changed: SchedulerNode, bad: tuple[str, ...] = (), hidden: tuple[str, ...] = ()) -> list[str]:
    """One turn in which all sources answer; what the ledger is told."""
    nodes = {**{n: node(n) for n in site.world.fleet.nodes}, **{c.name: c for c in changed}}
    names = [n for n in site.world.fleet.nodes if n not in hidden]
    site.turn(nodes.values(), telemetry(names, site.now + STEP, bad))
    return site.kinds()


def test_the_first_turn_tells_what_is_declared_and_what_is_odd() -> None:
    """Nodes in service are no news, and marks that were there before us are no acts."""
    told = play(Site(), node("n1", "IDLE", "DRAIN", reason="x", user="alice"))

    assert sorted(told) == ["catalogue.revision", "fleet.revision", "node.state"]


def test_a_turn_without_news_tells_nothing() -> None:
    """Turn after turn of the same is an empty ledger, and no rows are written."""
    site = Site()
    play(site, bad=("n1",))
    assert play(site, bad=("n1",)) == []
    outcome = site.outcomes[-1]
    assert (outcome.findings, outcome.holds, outcome.states, outcome.boots, outcome.sources) == ((), (), (), (), ())


def test_a_failing_source_is_written_once() -> None:
    """Its row changes when its health or its words do, not with every poll that fails."""
    site = Site()
    play(site)
    rows = []
    for _ in range(8):
        site.turn(None, telemetry(site.world.fleet.nodes, site.now + STEP))
        rows += [s.health.value for s in site.outcomes[-1].sources if s.source == "slurm"]
    assert rows == ["fine", "lost"]


def test_a_fault_is_told_with_its_cause_from_first_to_last() -> None:
    """Opened, held, lifted and closed, each once and each naming the finding."""
    site = Site()
    play(site)
    told = []
    for bad in (("n1",), ("n1",), (), ()):
        play(site, bad=bad)
        told += [(e.kind, e.cause) for e in site.outcomes[-1].entries if e.kind.startswith(("finding", "hold"))]
    key = "gpu-row-remap-failed@n1/gpu1"
    assert told == [("finding.opened", key), ("hold.would", key), ("finding.closed", key), ("hold.lifted", key)]


def test_a_fault_that_comes_again_is_another_hold() -> None:
    """Also in the turn right after the first one was lifted."""
    site = Site()
    play(site)
    for bad in (("n1",), (), ("n1",)):
        play(site, bad=bad)
    assert "hold.would" in site.kinds() and "finding.opened" in site.kinds()
    (hold,) = site.outcomes[-1].holds
    assert hold.state is HoldState.WOULD and hold.since == site.now


def test_a_value_that_comes_and_goes_is_no_news() -> None:
    """A finding whose input flickers is told of only when it stays out of sight; the hold stands all the time."""
    site = Site()
    play(site)
    play(site, bad=("n1",))
    told: list[str] = []
    for turn in range(40):
        # the row goes stale after 120 s without it, and is there again for one turn
        play(site, bad=("n1",), hidden=() if turn % 10 == 9 else ("n1",))
        told += of_n1(site)
    noise = [kind for kind in told if kind.startswith(("finding", "hold"))]
    assert noise == [], "unseen for less than a minute each time"

    for _ in range(15):
        play(site, hidden=("n1",))
        told += of_n1(site)
    assert [kind for kind in told if kind.startswith(("finding", "hold"))] == ["finding.unseen"]
    play(site, bad=("n1",))
    assert [kind for kind in of_n1(site) if kind.startswith(("finding", "hold"))] == ["finding.seen"]


def of_n1(site: Site) -> list[str]:
    """What the last turn told of n1 and its parts."""
    return [e.kind for e in site.outcomes[-1].entries if e.subject.partition("/")[0] == "n1"]


def test_who_marked_and_unmarked() -> None:
    """A mark, a mark over it, and its end, with whose it is; at the time that the slot says."""
    site = Site()
    play(site)
    steps = (
        node("n1", "IDLE", "DRAIN", reason="Kill task failed", at=START + 20),
        node("n1", "IDLE", "DRAIN", reason="alice has it", user="alice", at=START + 40),
        node("n1"),
    )
    marks = []
    for step in steps:
        play(site, step)
        found = [e for e in site.outcomes[-1].entries if e.subject == "n1" and "mark" in e.kind]
        assert [e.at for e in found] == [site.outcomes[-1].at] * len(found), "told when it was seen"
        marks += [(e.kind, e.actor, e.data.get("written_at")) for e in found]
    assert marks == [
        ("node.marked", "scheduler slurm", START + 20),
        ("node.marked", "alice", START + 40),
        ("node.unmarked", "someone", None),
    ]


def test_boots_are_kept_with_slack_for_a_clock_that_jitters() -> None:
    """Slurm's boot time moves by a second; a real boot is another row, and one in the future is none."""
    site = Site()
    play(site)
    boots = []
    for boot_at in (START - 86400.0, START - 86399.0, START - 86401.0, START + 1e6, START + 40):
        play(site, node("n1", boot_at=boot_at))
        boots += [b.at for b in site.outcomes[-1].boots]
    assert boots == [START + 40]
    assert {b.node for b in site.outcomes[0].boots} == set(site.world.fleet.nodes)


def test_a_boot_ends_what_its_log_said() -> None:
    """An Xid of the boot before is history from the moment the new boot is known."""
    site = Site()
    play(site)
    site.turn([node(n) for n in site.world.fleet.nodes], None, [xid("n1", site.now)])
    assert "hold.would" in site.kinds()
    site.now += 1000
    play(site, node("n1", boot_at=site.now))
    assert {"hold.lifted", "finding.closed"} <= set(site.kinds())


def test_a_clock_that_goes_back() -> None:
    """An hour earlier than the turn before: nothing opens on a node, nothing ends, and time goes on from there."""
    site = Site()
    play(site)
    play(site, bad=("n1",))
    site.now -= 3600
    told = play(site, bad=("n1",))
    assert [k for k in told if k.startswith(("finding.opened", "finding.closed", "hold"))] == []
    assert site.outcomes[-1].at == site.now


def test_a_new_fleet_is_told() -> None:
    """A node more is a revision of the fleet, with how many there are now."""
    site = Site()
    play(site)
    site.world = world(fleet(5))
    play(site)
    (entry,) = [e for e in site.outcomes[-1].entries if e.kind == "fleet.revision"]
    assert entry.summary.endswith("5 nodes declared")


def test_holds_are_compared_by_key() -> None:
    """Ten thousand holds that stand cost no search of each among all."""
    site = Site()
    play(site, bad=("n1",))
    before = site.picture
    assert before is not None
    (held,) = before.holds.values()
    many = {f"f{n}": replace(held, key=f"h-{n}", because=(f"f{n}",)) for n in range(10_000)}
    after = replace(before, holds=many)
    assert len(changes(before, after).holds) == 10_000
    assert changes(after, replace(after, number=after.number + 1)).holds == ()


@pytest.mark.parametrize("dark", ["slurm", "dcgm"])
def test_an_outage_is_one_entry(dark: str) -> None:
    """Losing a source and finding it again are two entries, not two a node."""
    site = Site()
    for _ in range(2):
        play(site)
    told: list[str] = []
    for turn in range(30):
        nodes = [node(n) for n in site.world.fleet.nodes]
        batch = telemetry(site.world.fleet.nodes, site.now + STEP)
        lost = 2 <= turn < 20
        site.turn(None if lost and dark == "slurm" else nodes, None if lost and dark == "dcgm" else batch)
        told += site.kinds()
    assert [kind for kind in told if not kind.startswith("finding")] == ["source.lost", "source.back"]
