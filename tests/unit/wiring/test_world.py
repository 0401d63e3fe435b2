"""After a start: what was known goes on, what is not known is said, and what changed meanwhile is told."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from nodeworthy.errors import NotKnown
from nodeworthy.model.record import Outcome
from nodeworthy.model.status import NodeState
from nodeworthy.record.store import SqlStore, open_store
from nodeworthy.wiring.config import load as load_settings
from nodeworthy.wiring.settings import Settings
from nodeworthy.wiring.world import NOT_READ_YET, first_picture, fleet_of, load_world, save_world
from tests.pictures import BOOT, START, STEP, Site, fleet, node, scheduler, telemetry, world, xid


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqlStore]:
    found = open_store(f"sqlite:///{tmp_path}/record.db")
    yield found
    found.close()


def one_turn(site: Site, *events: object) -> None:
    nodes = [
        node(n, "IDLE", *(("DRAIN",) if n == "n2" else ()), reason="x" if n == "n2" else None) for n in fleet().nodes
    ]
    site.turn(nodes, telemetry(fleet().nodes, site.now + STEP, ("n1",)), events)  # type: ignore[arg-type]


def test_a_first_start_knows_nothing(store: SqlStore) -> None:
    """Each declared node is unknown, with the reason; nothing is told yet."""
    picture = first_picture(world(), store.load(), store, START)

    assert list(picture.statuses) == list(fleet().nodes)
    assert {(s.state, s.reason, s.since) for s in picture.statuses.values()} == {
        (NodeState.UNKNOWN, NOT_READ_YET, None)
    }
    assert (picture.told, picture.boots, picture.lost, picture.revisions) == ({}, {}, frozenset(), {})


def test_what_was_known_goes_on(store: SqlStore) -> None:
    """Findings, holds, boots, states and the ledger's last words are there again."""
    site = Site(store=store)
    one_turn(site, xid("n3", START))
    before = site.picture
    assert before is not None
    picture = first_picture(site.world, store.load(), store, START + 100)

    assert {k: h.key for k, h in picture.holds.items()} == {k: h.key for k, h in before.holds.items()}
    assert {k for k, f in picture.findings.items() if f.component.of_node} == {
        k for k, f in before.findings.items() if f.component.of_node
    }
    assert picture.events == before.events
    assert (picture.boots, picture.transitions) == (before.boots, before.transitions)
    assert {n: (s.state, s.reason, s.since) for n, s in picture.told.items()} == {
        n: (s.state, s.reason, s.since) for n, s in before.told.items() if s.state is not NodeState.SERVING
    }


def test_an_open_finding_keeps_its_lines_however_old(store: SqlStore) -> None:
    """A node that has been up for longer than lines are kept otherwise still has its Xid."""
    site = Site(store=store)
    one_turn(site, xid("n3", START))
    late = first_picture(site.world, store.load(), store, START + 90 * 86400.0)

    assert late.events.heard == site.picture.events.heard  # type: ignore[union-attr]


def test_a_source_that_was_lost_is_told_back_only_when_it_answers(store: SqlStore) -> None:
    """A restart in the middle of an outage is neither its end nor another one."""
    site = Site(store=store)
    one_turn(site)
    for _ in range(4):
        site.turn(None, telemetry(fleet().nodes, site.now + STEP))
    site.start()
    told = []
    for _ in range(5):
        site.turn(None, telemetry(fleet().nodes, site.now + STEP))
        told += [kind for kind in site.kinds() if kind.startswith("source")]
    assert told == []
    one_turn(site)
    assert [kind for kind in site.kinds() if kind.startswith("source")] == ["source.back"]


def test_since_survives_a_restart(store: SqlStore) -> None:
    """A state that no mark dates keeps the beginning that we saw."""
    site = Site(store=store)
    one_turn(site)
    reserved = [node(n, "IDLE", "RESERVED", reservation="r") if n == "n1" else node(n) for n in fleet().nodes]
    site.turn(reserved)
    began = site.now
    site.start()
    picture = site.turn(reserved, step=500.0)

    assert (picture.statuses["n1"].state, picture.statuses["n1"].since) == (NodeState.OUT, began)
    assert picture.statuses["n3"].since is None, "nobody saw it begin"


def test_nodes_that_left_the_fleet_are_not_remembered(store: SqlStore) -> None:
    """The ledger still has their past; the present does not list them."""
    site = Site(store=store)
    one_turn(site)
    picture = first_picture(world(fleet(1)), store.load(), store, START + 100)

    assert list(picture.statuses) == ["n1"] and set(picture.told) <= {"n1"}


def test_what_changed_while_we_were_away_is_told(store: SqlStore) -> None:
    """The revisions that decisions rested on are kept, so the first turn after a change tells of it."""
    site = Site(store=store)
    one_turn(site)
    save_world(site.world, store, site.now)
    site.start()
    one_turn(site)
    assert [k for k in site.kinds() if k.endswith("revision")] == []

    save_world(site.world, store, site.now)
    site.world = world(fleet(5))
    site.start()
    one_turn(site)
    assert [k for k in site.kinds() if k.endswith("revision")] == ["fleet.revision"]


def test_a_fleet_file_that_lies_around_is_not_served(
    store: SqlStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Started in /tmp, `serve` must not take a tenant's ./fleet.toml; beside its configuration it does."""
    monkeypatch.delenv("NODEWORTHY_FLEET", raising=False)
    monkeypatch.setattr("nodeworthy.adapters.files.fleet.SYSTEM", tmp_path / "none.toml")
    text = '[classes.c]\ngpus = 8\n[[nodes]]\nnames = "evil1"\nclass = "c"\n'
    anywhere, ours = tmp_path / "tmp", tmp_path / "etc"
    for folder in (anywhere, ours):
        folder.mkdir()
    (anywhere / "fleet.toml").write_text(text)
    (ours / "fleet.toml").write_text(text.replace("evil1", "n1"))
    (ours / "nodeworthy.toml").write_text(f'state_dir = "{tmp_path}"\n')
    monkeypatch.chdir(anywhere)
    assert load_world(Settings(state_dir=tmp_path), store)[1] is False
    settings, _ = load_settings(ours / "nodeworthy.toml")
    assert list(load_world(settings, store)[0].fleet.nodes) == ["n1"]


def test_an_undeclared_fleet_is_the_last_that_slurm_listed(
    store: SqlStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a fleet file a start knows the nodes of before; the very first knows none."""
    monkeypatch.chdir(tmp_path)
    settings = Settings(state_dir=tmp_path)
    monkeypatch.setattr("nodeworthy.wiring.world.find_fleet", _no_fleet)
    first, declared = load_world(settings, store)
    assert (dict(first.fleet.nodes), declared) == ({}, False)

    listed = first.with_fleet(fleet_of(scheduler([node("n1"), node("n2")])))
    save_world(listed, store, START)
    again, _ = load_world(settings, store)
    assert again.fleet == listed.fleet and again.fleet.revision == listed.fleet.revision


def _no_fleet(_: object, **_here: bool) -> Path:
    raise NotKnown("there is no fleet file")


def test_boots_of_the_record_decide_over_old_lines(store: SqlStore) -> None:
    """A line from before the last known boot is no news after a restart, with the scheduler silent."""
    site = Site(store=store)
    one_turn(site)
    store.commit_turn(Outcome(at=START, events=(xid("n4", BOOT - 500),)))
    site.start()
    picture = site.turn(None, None, [xid("n4", BOOT - 300)])
    assert [h for h in picture.holds.values() if h.subject.node == "n4"] == []
