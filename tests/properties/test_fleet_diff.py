"""Taking over a source's differences loses no asset and leaves no difference."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from nodeworthy.decide.fleet_diff import compare, merge
from nodeworthy.decide.fleet_import import Listed
from nodeworthy.errors import BadRequest
from nodeworthy.model.fleet import Fleet, Names, Node, NodeClass

CLASSES = {"c": NodeClass("c", 8, "h100"), "d": NodeClass("d", 4)}
NAME = st.sampled_from(["n1", "n2", "n3", "n4", "a-n1"])


@st.composite
def declared_fleets(draw: st.DrawFn) -> Fleet:
    nodes = {}
    serials = draw(st.permutations(["S1", "S2", "S3", "S4", "S5"]))
    claimed: set[tuple[str, str]] = set()
    for k, name in enumerate(draw(st.lists(NAME, max_size=4, unique=True))):
        scheduler = draw(st.dictionaries(st.sampled_from(["a", "b"]), NAME, max_size=2))
        scheduler = {c: n for c, n in scheduler.items() if (c, n) not in claimed}
        claimed |= set(scheduler.items())
        serial = serials[k] if draw(st.booleans()) else ""
        domains = draw(st.dictionaries(st.just("rack"), st.sampled_from(["r1", "r2"])))
        nodes[name] = Node(name, draw(st.sampled_from("cd")), serial, Names(scheduler), domains, {"was": name})
    return Fleet("f", CLASSES, nodes)


@st.composite
def listings(draw: st.DrawFn) -> tuple[list[Listed], str]:
    cluster = draw(st.sampled_from(["", "a", "b"]))
    serials = draw(st.permutations(["S1", "S2", "S3", "S4", "S5"]))
    listed = []
    for k, name in enumerate(draw(st.lists(NAME, max_size=4, unique=True))):
        serial = serials[k] if not cluster and draw(st.booleans()) else ""
        names = Names({cluster: name} if cluster else {})
        domains = draw(st.dictionaries(st.just("rack"), st.sampled_from(["r1", "r3"])))
        node_class = "" if cluster else draw(st.sampled_from(["c", "d", ""]))
        gpus = draw(st.sampled_from([8, 4, 7]))
        listed.append(Listed(name, node_class, gpus, "h100", serial=serial, names=names, domains=domains))
    return listed, cluster


@given(declared_fleets(), listings())
def test_merge_loses_nothing_and_settles_everything(declared: Fleet, listing: tuple[list[Listed], str]) -> None:
    """Every declared node is still there with its labels; a second comparison finds only what is gone."""
    listed, cluster = listing
    try:
        merged = merge(declared, listed, cluster)
    except BadRequest as error:
        assert "two nodes" in str(error)
        return
    assert {n.labels["was"] for n in merged.nodes.values() if n.labels} == set(declared.nodes)
    assert all(name == node.name for name, node in merged.nodes.items())
    serials = [n.serial for n in merged.nodes.values() if n.serial]
    assert len(serials) == len(set(serials))
    assert {c.kind for c in compare(merged, listed, cluster)} <= {"gone"}
