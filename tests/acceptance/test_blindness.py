"""Acceptance 3: losing sight is never a fault of a node.

Sixteen nodes in two racks, declared in an imported fleet file; a catalogue that is stricter than the built-in one
(tests/acceptance/catalogue.py: no debounce at all). Each test blinds it in another way and gives the sight back.
Throughout, the adverse findings and the holds are those that stood before: one failed row remapping on n2
and a hot GPU on n12, both true.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
import tomlkit

from labs.exporter import CONNECTION_LIES, LIES
from tests.acceptance.catalogue import MAX_AGE_S, strict_layer
from tests.acceptance.conftest import Ground
from tests.acceptance.site import Site, await_true

pytestmark = [pytest.mark.slurm, pytest.mark.slow]

SEEN_S = 75.0
"""By then serve has noticed: a value's greatest age, a reading that hangs, and a few turns of a busy machine."""
RACK_1, RACK_2 = "n[1-8]", "n[9-16]"
IN_RACK_2 = frozenset(f"n{i}" for i in range(9, 17))
SUSPECT = frozenset({"n2"})
"""A node with an error stays suspect in the dark; a mere warning does not outweigh that nothing is seen."""
PRIOR = {"gpu-row-remap-failed@n2/gpu5", "gpu-hot@n12/gpu1"}

# what people read as the reason why a node is not seen; none where parts of it still are
REASON = {
    # no page at all is an old page at first
    **dict.fromkeys(("garbage", "html", "down", "error", "slow"), ("has not seen it lately", "does not answer")),
    **dict.fromkeys(("renamed", "empty", "stale"), ("has not seen it lately",)),
    "future": ("says times in the future",),
    **dict.fromkeys(("nan", "blank", "duplicate"), ("tells nothing that can be used",)),
    "half": (),
}


@dataclass
class Blinded:
    """The site, the lab it watches, and what stood against nodes while all was seen."""

    site: Site
    ground: Ground
    held: set[str]

    def lie(self, nodes: str, kind: str) -> None:
        self.ground.exporters.lab.lie(nodes, kind)

    def unknown(self) -> dict[str, str]:
        """Node → why it is unknown, of those that are."""
        items = self.site.get("/v1/nodes?limit=1000")["items"]
        return {n["name"]: n["reason"] for n in items if n["state"] == "unknown"}

    def no_new_accusation(self) -> None:
        assert set(self.site.adverse()) == PRIOR
        assert {h["component"] for h in self.site.get("/v1/would")["items"]} == self.held

    def await_sight(self) -> None:
        """Where every test begins, also after one that failed."""
        self.lie("n[1-16]", "none")
        await_true(
            "all is seen again",
            lambda: not self.unknown() and not self.site.blind_sources(),
            SEEN_S,
            says=lambda: (self.unknown(), self.site.blind_sources()),
        )
        self.no_new_accusation()
        assert {f["unknown"] for f in self.site.adverse().values()} == {None}


def fleet_file(site: Site, path: Path) -> None:
    """As a person makes it: imported from Slurm, then racks and what is known of the class written into it."""
    site.text("fleet", "import", "slurm", "--to", str(path))
    fleet = tomlkit.parse(path.read_text())
    domains = fleet.setdefault("domains", tomlkit.table())
    domains["rack"] = {"r1": RACK_1, "r2": RACK_2}
    for node_class in fleet["classes"].values():  # type: ignore[union-attr]
        node_class["expect"] = {"gpu_temperature_max": 85, "nics": "mlx5_[0-7]", "ecc": True, "persistence": True}
    path.write_text(tomlkit.dumps(fleet))
    site.text("fleet", "check", "--fleet", str(path))


@contextmanager
def two_true_faults(ground: Ground, site: Site) -> Iterator[Blinded]:
    """A serve that sees all, and the two faults that are there."""
    lab = ground.exporters.lab
    lab.set("n2", "5", "DCGM_FI_DEV_ROW_REMAP_FAILURE", 1)
    lab.set("n12", "1", "DCGM_FI_DEV_GPU_TEMP", 93)
    (site.directory / "strict.toml").write_text(strict_layer())
    fleet_file(site, site.directory / "fleet.toml")
    site.more = f'fleet = "{site.directory}/fleet.toml"\ncatalogue = ["{site.directory}/strict.toml"]'
    try:
        with site:
            await_true("the two faults are found", lambda: set(site.adverse()) == PRIOR, SEEN_S, says=site.adverse)
            held = {h["component"] for h in site.get("/v1/would")["items"]}
            assert held == {"n2/gpu5"}
            yield Blinded(site, ground, held)
    finally:
        lab.values.clear()
        lab.lie("n[1-16]", "none")


@pytest.fixture(scope="module")
def blinded(ground: Ground, place: Callable[[str], Path]) -> Iterator[Blinded]:
    site = Site(place("blind"), ground.lab, ground.exporters, environment=dict(ground.lab.env))
    with two_true_faults(ground, site) as blinded:
        yield blinded


def test_every_lie(ground: Ground, place: Callable[[str], Path]) -> None:
    """Thirteen nodes lie, each in its own way: each source is named once, its node is unknown with the reason, and
    nothing new is held against any node; when they tell the truth again, all is as before."""
    site = Site(place("lies"), ground.lab, ground.exporters, source_a_node=True, environment=dict(ground.lab.env))
    kinds = dict(zip(ground.lab.node_names, [*LIES, *CONNECTION_LIES], strict=False))
    assert len(kinds) == 13
    with two_true_faults(ground, site) as blinded:
        blinded.await_sight()
        for node, kind in kinds.items():
            blinded.lie(node, kind)
        dark = {node for node, kind in kinds.items() if REASON[kind]} - SUSPECT

        def noticed() -> bool:
            blinded.no_new_accusation()
            return set(site.blind_sources()) == {f"of-{n}" for n in kinds} and set(blinded.unknown()) == dark

        await_true("every lie is noticed", noticed, SEEN_S, says=lambda: (blinded.unknown(), [*site.blind_sources()]))
        for finding in site.blind_sources().values():
            assert "What depends on it is unknown." in finding["summary"] or "silent" in finding["summary"]
            assert "the nodes are not to blame" in finding["action"]
        for node, why in blinded.unknown().items():
            assert any(f"of-{node} {reason}" in why for reason in REASON[kinds[node]]), (kinds[node], why)
        assert all(f["unknown"] for f in site.adverse().values()), "true when it was last seen"
        time.sleep(MAX_AGE_S / 2)
        blinded.no_new_accusation()
        blinded.await_sight()


def test_one_rack_goes_dark(blinded: Blinded) -> None:
    """Half of the exporters do not answer: those nodes are unknown, the others are seen as before."""
    site = blinded.site
    blinded.await_sight()
    blinded.lie(RACK_2, "down")

    def noticed() -> bool:
        blinded.no_new_accusation()
        named = site.blind_sources()
        told = all("8 nodes: n[9-16]" in finding["summary"] for finding in named.values())
        return set(named) == {"dcgm", "node"} and told and set(blinded.unknown()) == IN_RACK_2

    await_true("the rack is dark", noticed, SEEN_S, says=lambda: (blinded.unknown(), site.blind_sources()))
    for finding in site.blind_sources().values():
        assert "does not see" in finding["summary"]
    (need,) = [n for n in site.ask("status")["needs"] if n["subject"] == "n[9-16]"]
    assert "no telemetry of it now: dcgm, node" in need["summary"], "eight dark nodes are one line"
    assert site.adverse()["gpu-hot@n12/gpu1"]["unknown"] == "stale"
    assert site.adverse()["gpu-row-remap-failed@n2/gpu5"]["unknown"] is None
    lines = site.run("node", "list", "-l", "rack=r2").stdout.splitlines()[1:]
    assert sum("no telemetry of it now" in line and "?/8" in line for line in lines) == 8
    blinded.await_sight()


def test_all_telemetry_stops(blinded: Blinded) -> None:
    """Every exporter is down: all nodes are unknown with the reason, in `status`, `node list` and `node explain`."""
    site = blinded.site
    blinded.await_sight()
    blinded.lie("n[1-16]", "down")
    everything = {f"n{i}" for i in range(1, 17)}

    def noticed() -> bool:
        blinded.no_new_accusation()
        unknown = blinded.unknown()
        told = all("does not answer" in why for why in unknown.values())
        needs = {n["subject"] for n in site.get("/v1/status")["needs"] if n["what"] == "source"}
        return set(unknown) == everything - SUSPECT and told and set(site.blind_sources()) == needs == {"dcgm", "node"}

    await_true("everything is dark", noticed, SEEN_S, says=lambda: (blinded.unknown(), site.blind_sources()))
    status = site.ask("status")
    assert status["by_state"]["unknown"] == 15
    assert {u["reason"] for u in status["unknown"]} >= {"source down"}
    read = site.text("node", "explain", "n7")
    for text in (
        "n7 is UNKNOWN",
        "no telemetry of it now",
        "dcgm, node does not answer",
        "nothing is held against it",
    ):
        assert text in read
    read = site.text("node", "explain", "n2")
    assert "last known; cannot be seen now" in read
    assert "row could not be remapped" in read
    assert "would hold" in read
    assert site.run("status").returncode == 3
    blinded.await_sight()
    kinds = [e["kind"] for e in site.entries("source:dcgm", ("finding.opened", "finding.closed"))]
    assert kinds[-2:] == ["finding.opened", "finding.closed"]


def test_frozen_controller(blinded: Blinded) -> None:
    """slurmctld answers nobody for half a minute: all nodes are unknown, none is accused, and all come back."""
    site, lab = blinded.site, blinded.ground.lab
    blinded.await_sight()
    pid = lab.processes.pid("slurmctld")
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)
    try:
        await_true("the controller is not seen", lambda: len(blinded.unknown()) == 16, 60, says=blinded.unknown)
        blinded.no_new_accusation()
        assert all("the scheduler is not seen" in why for why in blinded.unknown().values())
        assert set(site.blind_sources()) == {"slurm"}
        assert "scheduler slurm is silent" in site.blind_sources()["slurm"]["summary"]
        assert "the scheduler is not seen" in site.text("node", "explain", "n3")
    finally:
        os.kill(pid, signal.SIGCONT)
    await_true("the controller is seen again", lambda: not blinded.unknown(), 60, says=blinded.unknown)
    blinded.await_sight()


def test_blindness_over_a_restart(blinded: Blinded) -> None:
    """Killed while blind: the true findings stand on as last known, with their time, and the source's finding too."""
    site = blinded.site
    blinded.await_sight()
    blinded.lie("n[1-16]", "down")
    await_true("everything is dark", lambda: len(site.blind_sources()) == 2, SEEN_S, says=site.blind_sources)
    await_true("what was true is last known", lambda: all(f["unknown"] for f in site.adverse().values()), SEEN_S)
    before, named = site.adverse(), site.blind_sources()
    site.kill()
    site.start()
    assert len(blinded.unknown()) == 15, "not for a moment does it pass for seen"
    after = site.adverse()
    assert {k: f["since"] for k, f in after.items()} == {k: f["since"] for k, f in before.items()}
    assert all(f["unknown"] for f in after.values())
    assert {s: f["since"] for s, f in site.blind_sources().items()} == {s: f["since"] for s, f in named.items()}
    blinded.no_new_accusation()
    blinded.await_sight()
    time.sleep(MAX_AGE_S / 4)
    blinded.no_new_accusation()


def test_what_was_mended_ends(blinded: Blinded) -> None:
    """Sight back and the numbers well: the findings and the hold end, and the ledger says so. Nothing was written."""
    site = blinded.site
    blinded.await_sight()
    blinded.ground.exporters.lab.values.clear()
    await_true("the findings end", lambda: not site.adverse(), SEEN_S, says=site.adverse)
    assert site.get("/v1/would")["items"] == []
    assert [e["kind"] for e in site.entries("n2/gpu5")][-2:] == ["finding.closed", "hold.lifted"]
    assert site.nodes()["n2"]["state"] == "serving"
    assert blinded.ground.watched.written_by_others() == {}
