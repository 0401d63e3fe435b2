"""Doubts about names are findings of their own: they blame no node, and go on for as long as they last."""

from __future__ import annotations

from dataclasses import dataclass, replace

from nodeworthy.judge.identities import MOST, identity_findings
from nodeworthy.model.fleet import Fleet, Names, Node
from nodeworthy.model.identity import NameKind, Resolver
from tests.pictures import START


@dataclass(frozen=True)
class Speaker:
    name: str
    kind: str
    unknown_names: tuple[str, ...] = ()


FLEET = Fleet("f", {}, {"n1": Node("n1", "", names=Names(exporter=("gpu1",)))})
RESOLVER = Resolver(FLEET)


def test_a_strange_name_is_a_doubt_about_the_name() -> None:
    """Its source is evidence, no node is named, and it says since when."""
    (found,) = identity_findings(RESOLVER, (), [Speaker("dcgm", "exporter", ("gpu77",))], {}, START)

    assert not found.component.of_node and found.component.node == ""
    assert "gpu77" in str(found.component) and found.evidence[0].source == "dcgm"
    again = identity_findings(RESOLVER, (), [Speaker("dcgm", "exporter", ("gpu77",))], {found.key: found}, START + 60)
    assert again == [found]


def test_names_that_the_fleet_declares_are_no_doubt() -> None:
    """And sources of a kind that has no names say nothing."""
    speakers = [Speaker("dcgm", "exporter", ("gpu1",)), Speaker("odd", "clock", ("x",)), Speaker("kern.log", "log")]
    assert identity_findings(RESOLVER, (), speakers, {}, START) == []


def test_two_nodes_with_one_name_are_a_conflict() -> None:
    """The fleet file itself contradicts, with both nodes in words."""
    twice = Fleet("f", {}, {**FLEET.nodes, "n2": replace(FLEET.nodes["n1"], name="n2")})
    (found,) = identity_findings(Resolver(twice), (), (), {}, START)
    assert found.check == "identity.conflict" and "n1" in found.summary and "n2" in found.summary


def test_a_fleet_file_of_another_cluster_is_not_ten_thousand_findings() -> None:
    """What one source says is bounded, whoever reads it: the rest is on the source's own page."""
    names = tuple(f"x{i}" for i in range(10_000))
    met = RESOLVER.unknown(NameKind.SCHEDULER, names, "c", source="slurm")

    assert len(identity_findings(RESOLVER, (), [Speaker("dcgm", "exporter", names)], {}, START)) == MOST
    assert len(identity_findings(RESOLVER, met, (), {}, START)) <= MOST
