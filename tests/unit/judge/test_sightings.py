"""GPUs that are seen where they cannot be are doubts about identity; a healthy fleet has none."""

from __future__ import annotations

import polars as pl
import pytest

from nodeworthy.judge.frames import build
from nodeworthy.judge.sightings import gpu_doubts
from nodeworthy.model.sighting import Doubt
from nodeworthy.ports import TelemetryBatch
from tests.pictures import START, Site, catalogue, fleet, node

WELL = {("n1", "0"): "GPU-a", ("n1", "1"): "GPU-b", ("n2", "0"): "GPU-c", ("n2", "1"): "GPU-d"}


def batch(
    uuids: dict[tuple[str, str], str | None], source: str = "dcgm", addresses: dict[tuple[str, str], str] | None = None
) -> TelemetryBatch:
    places = {key: f"00000000:{0x17 + int(key[1]):02X}:00.0" for key in uuids} | (addresses or {})
    rows = pl.DataFrame(
        {
            "node": [key[0] for key in uuids],
            "index": [key[1] for key in uuids],
            "seen": [START] * len(uuids),
            "gpu_uuid": list(uuids.values()),
            "gpu_pci_address": [places[key] for key in uuids],
        }
    )
    return TelemetryBatch(source, START, {"gpu": rows})


def doubts(*batches: TelemetryBatch) -> list[Doubt]:
    return gpu_doubts(build(fleet(), catalogue(), batches, START))


def test_a_fleet_in_which_all_is_in_its_place() -> None:
    """Neither one source, nor two that agree, nor none at all is a doubt."""
    assert doubts() == []
    assert doubts(batch(WELL)) == []
    assert doubts(batch(WELL), batch(WELL, "nodeworthy")) == []
    assert doubts(batch(dict.fromkeys(WELL, None))) == []


def test_one_gpu_in_two_nodes() -> None:
    """Two targets that are one host: each GPU that is in both nodes is a doubt that names both."""
    found = doubts(batch(WELL | {("n2", "0"): "GPU-a"}))
    assert [d.check for d in found] == ["identity.conflict"]
    assert found[0].nodes == ("n1", "n2")
    assert "GPU-a" in found[0].summary


@pytest.mark.parametrize(
    "batches",
    [
        (batch(WELL | {("n1", "1"): "GPU-a"}),),
        (batch(WELL, addresses={("n1", "1"): "00000000:17:00.0"}),),
        (batch(WELL), batch(WELL | {("n1", "0"): "GPU-b", ("n1", "1"): "GPU-a"}, "nodeworthy")),
    ],
    ids=["one UUID at two indexes", "one address at two indexes", "two sources count differently"],
)
def test_disagreement_within_a_node(batches: tuple[TelemetryBatch, ...]) -> None:
    """It names this node alone."""
    found = doubts(*batches)
    assert found
    assert {d.nodes for d in found} == {("n1",)}


def test_the_turn_says_it_and_blames_no_node() -> None:
    """A finding about the identity, since when it was seen first, and gone with its cause."""
    site = Site()
    odd = batch(WELL | {("n2", "0"): "GPU-a"})
    first = [f for f in site.turn([node("n1")], odd).findings.values() if f.check == "identity.conflict"]
    assert len(first) == 1
    assert first[0].component.node == ""
    again = [f for f in site.turn([node("n1")], odd).findings.values() if f.check == "identity.conflict"]
    assert [f.since for f in again] == [first[0].since]
    well = TelemetryBatch("dcgm", START + 60, batch(WELL).frames)
    assert not [f for f in site.turn([node("n1")], well).findings.values() if f.check == "identity.conflict"]
