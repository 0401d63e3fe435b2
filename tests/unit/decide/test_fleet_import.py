"""From what Slurm lists to classes, names and domains; and what differs later."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from nodeworthy.decide.fleet_diff import Change, compare, merge
from nodeworthy.decide.fleet_import import Listed, fleet_from, from_scheduler, list_scheduler, memory_word
from nodeworthy.errors import BadRequest
from nodeworthy.model.fleet import Fleet, Names, Node, NodeClass
from nodeworthy.model.scheduler import BaseState, SchedulerNode, SchedulerSnapshot, TopologyUnit


def node(name: str, **what: object) -> SchedulerNode:
    """An idle 8 × H100 node, but for what is said."""
    usual = {"cpus": 64, "memory_mb": 2_000_000, "sockets": 2, "gpus": 8, "gpu_type": "h100"}
    flags = what.pop("flags", frozenset())
    base = what.pop("base", BaseState.IDLE)
    return SchedulerNode(
        name, base, flags, hostname=what.pop("hostname", name), address=what.pop("address", name), **(usual | what)
    )  # type: ignore[arg-type]


def snapshot(*nodes: SchedulerNode, topology: tuple[TopologyUnit, ...] = ()) -> SchedulerSnapshot:
    return SchedulerSnapshot("alps", "24.11", 0.0, {n.name: n for n in nodes}, topology=topology)


TREE = (
    TopologyUnit("leaf1", "switch", 0, ("n1", "n2")),
    TopologyUnit("leaf2", "switch", 0, ("n3",)),
    TopologyUnit("spine", "switch", 1, ("n1", "n2", "n3"), ("leaf1", "leaf2")),
    TopologyUnit("b1", "block", 0, ("n1", "n2", "n3")),
    TopologyUnit("b1-b2", "block", 1, ("n1", "n2", "n3")),
)


@pytest.mark.parametrize(
    ("memory_mb", "word"),
    [
        (515_000, "512g"),
        (2_000_000, "2t"),
        (2_063_000, "2t"),
        (2_097_152, "2t"),
        (773_000, "768g"),
        (1_546_000, "1536g"),
        (15_900, "16g"),
        (1000, "1000m"),
        (None, ""),
    ],
)
def test_memory_words(memory_mb: int | None, word: str) -> None:
    """What the system sees comes to what was bought."""
    assert memory_word(memory_mb) == word


def test_classes_and_domains_from_slurm() -> None:
    """Alike nodes are one class that expects the least of them; the lowest switches are leaves, blocks are blocks."""
    made = from_scheduler(
        snapshot(node("n1"), node("n2", memory_mb=1_990_000), node("n3", gpus=None, gpu_type=None), topology=TREE)
    )
    assert made.notes == ()
    assert made.fleet.name == "alps"
    assert made.fleet.classes == {
        "h100x8-64c-2t": NodeClass("h100x8-64c-2t", 8, "h100", 64, 1_990_000, 2),
        "cpu-64c-2t": NodeClass("cpu-64c-2t", 0, "", 64, 2_000_000, 2),
    }
    assert made.fleet.nodes["n2"] == Node(
        "n2", "h100x8-64c-2t", names=Names({"alps": "n2"}), domains={"leaf": "leaf1", "block": "b1"}
    )
    assert made.fleet.nodes["n3"].domains == {"leaf": "leaf2", "block": "b1"}


def test_kinds_with_one_name_are_kept_apart() -> None:
    """Kinds that differ in what the name does not tell get names of their own."""
    fleet = from_scheduler(snapshot(node("n1"), node("n2", sockets=4))).fleet
    assert sorted(fleet.classes) == ["h100x8-64c-2t", "h100x8-64c-2t-4s"]


def test_names_that_slurm_knows() -> None:
    """Another host name or address is taken over if it is one node's alone."""
    fleet = from_scheduler(
        snapshot(
            node("n1", hostname="host1", address="10.0.0.1"),
            node("n2", hostname="localhost", address="127.0.0.1"),
            node("n3", hostname="localhost", address="127.0.0.1"),
        )
    ).fleet
    assert fleet.nodes["n1"].names == Names({"alps": "n1"}, ("host1",), ("host1", "10.0.0.1"))
    assert fleet.nodes["n2"].names == Names({"alps": "n2"})


def test_what_is_not_sure_is_said() -> None:
    """FUTURE nodes are left out, a node under two leaves gets none, and both are told; a cloud node is labelled."""
    two = (TopologyUnit("a", "switch", 0, ("n1",)), TopologyUnit("b", "switch", 0, ("n1",)))
    made = from_scheduler(
        snapshot(node("n1"), node("n2", base=BaseState.FUTURE), node("n3", flags=frozenset({"CLOUD"})), topology=two)
    )
    assert set(made.fleet.nodes) == {"n1", "n3"}
    assert made.fleet.nodes["n1"].domains == {}
    assert made.fleet.nodes["n3"].labels == {"cloud": "yes"}
    assert made.notes == (
        "n1 is in more than one leaf: its leaf is left unknown",
        "1 FUTURE nodes are left out: they do not exist yet",
    )


def test_nothing_changed() -> None:
    """What was just imported does not differ, whatever its classes are called afterwards."""
    seen = snapshot(node("n1"), node("n2"), topology=TREE)
    fleet = from_scheduler(seen).fleet
    renamed = Fleet(
        "ours",
        {"big": replace(fleet.classes["h100x8-64c-2t"], name="big", expect={"pcie_gen": 5})},
        {n.name: replace(n, node_class="big", domains={**n.domains, "rack": "r1"}) for n in fleet.nodes.values()},
    )
    listed, _ = list_scheduler(seen)
    assert compare(renamed, listed, "alps") == ()
    assert merge(renamed, listed, "alps") == renamed


def test_each_kind_of_change() -> None:
    """Added, gone, another class, moved; nodes of another cluster are not missed."""
    fleet = from_scheduler(snapshot(node("n1"), node("n2"), node("n3"), topology=TREE)).fleet
    other = Node("x1", "h100x8-64c-2t", names=Names({"other": "x1"}))
    fleet = Fleet("f", fleet.classes, {**fleet.nodes, "x1": other})
    moved = (replace(TREE[0], nodes=("n1",)), replace(TREE[1], nodes=("n2",)), TREE[3])
    listed, _ = list_scheduler(snapshot(node("n1", gpus=7), node("n2"), node("n4"), topology=moved))
    assert compare(fleet, listed, "alps") == (
        Change("n1", "class", "h100x8-64c-2t", "gpus 8 → 7"),
        Change("n2", "moved", "leaf leaf1", "leaf leaf2"),
        Change("n3", "gone", "h100x8-64c-2t"),
        Change("n4", "added", now="new"),
    )
    merged = merge(fleet, listed, "alps")
    assert set(merged.nodes) == {"n1", "n2", "n3", "n4", "x1"}
    assert merged.nodes["n1"].node_class == "h100x7-64c-2t"
    assert merged.nodes["n4"].node_class == "h100x8-64c-2t"
    assert merged.nodes["n2"].domains == {"leaf": "leaf2", "block": "b1"}
    assert set(merge(fleet, listed, "alps", prune=True).nodes) == {"n1", "n2", "n4", "x1"}
    assert [c.kind for c in compare(merged, listed, "alps")] == ["gone"]


def test_a_renamed_node_is_renamed_and_not_replaced() -> None:
    """A node known by its serial keeps what people said of it under its new name."""
    old = Fleet("f", {"c": NodeClass("c", 8)}, {"n1": Node("n1", "c", "S1", labels={"owner": "physics"})})
    listed = [Listed("x1", "c", serial="S1")]
    assert compare(old, listed) == (Change("n1", "renamed", "n1", "x1"),)
    assert merge(old, listed).nodes == {"x1": Node("x1", "c", "S1", labels={"owner": "physics"})}


def test_names_exchanged_between_two_assets() -> None:
    """Two nodes that changed names keep their serials and their labels."""
    old = fleet_from("f", [Listed("n1", "c", serial="S1", labels={"a": "1"}), Listed("n2", "c", serial="S2")])
    listed = [Listed("n2", "c", serial="S1"), Listed("n1", "c", serial="S2")]
    merged = merge(old, listed)
    assert {n.name: (n.serial, dict(n.labels)) for n in merged.nodes.values()} == {
        "n2": ("S1", {"a": "1"}),
        "n1": ("S2", {}),
    }


def test_a_new_serial_and_new_names_are_changes() -> None:
    """A chassis replaced under the same name, and a name learnt, are shown and taken over; nothing is taken away."""
    old = Fleet("f", {"c": NodeClass("c")}, {"n1": Node("n1", "c", "S1", Names(syslog=("l1",)))})
    listed = [Listed("n1", "c", serial="S9", names=Names(bmc="10.0.0.1"))]
    assert [c.kind for c in compare(old, listed)] == ["names", "serial"]
    assert merge(old, listed).nodes["n1"] == Node("n1", "c", "S9", Names(syslog=("l1",), bmc="10.0.0.1"))


def test_a_second_cluster_with_the_same_names() -> None:
    """The nodes of a second cluster are added beside those of the first, even under the same NodeNames."""
    first = from_scheduler(snapshot(node("n1"))).fleet
    listed, _ = list_scheduler(replace(snapshot(node("n1")), cluster="other"))
    merged = merge(first, listed, "other")
    assert {n.name: dict(n.names.scheduler) for n in merged.nodes.values()} == {
        "n1": {"alps": "n1"},
        "other-n1": {"other": "n1"},
    }
    assert compare(merged, listed, "other") == ()


def test_a_name_cannot_be_taken_from_a_node_that_is_gone() -> None:
    """A renamed node does not overwrite the declared node whose name it now bears."""
    old = fleet_from("f", [Listed("n1", "c", serial="S1"), Listed("n2", "c", serial="S2")])
    listed = [Listed("n1", "c", serial="S2")]
    with pytest.raises(BadRequest, match="n1 would be the name of two nodes"):
        merge(old, listed)
    assert {n.name: n.serial for n in merge(old, listed, prune=True).nodes.values()} == {"n1": "S2"}


def test_a_hand_made_file_needs_no_node_names() -> None:
    """Where the fleet file says nothing of NodeNames, Slurm's being the same is no difference."""
    old = Fleet("f", {"c": NodeClass("c", 8)}, {"n1": Node("n1", "c")})
    listed, _ = list_scheduler(snapshot(node("n1")))
    assert compare(old, listed, "alps") == ()
    assert merge(old, listed, "alps") == old


def test_ten_thousand_nodes() -> None:
    """10,000 nodes are imported, compared and merged in seconds, serials exchanged all through."""
    many = snapshot(*(node(f"n{k}") for k in range(10_000)))
    start = time.perf_counter()
    fleet = from_scheduler(many).fleet
    listed, _ = list_scheduler(many)
    assert compare(fleet, listed, "alps") == ()
    shifted = [Listed(f"n{k}", "h100x8-64c-2t", serial=f"S{(k + 1) % 10_000}") for k in range(10_000)]
    numbered = merge(fleet, [replace(n, serial=f"S{k}") for k, n in enumerate(shifted)])
    assert numbered.nodes["n7"].serial == "S7"
    assert merge(numbered, shifted).nodes["n6"].serial == "S7"
    assert time.perf_counter() - start < 10
