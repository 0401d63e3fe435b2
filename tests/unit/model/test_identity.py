"""Who is who: each kind of name, each way in which names contradict."""

from __future__ import annotations

import time

import pytest

from nodeworthy.model.finding import Verdict
from nodeworthy.model.fleet import Fleet, Names, Node, NodeClass
from nodeworthy.model.identity import GpuSeen, NameKind, Observed, Resolver
from nodeworthy.model.names import host_and_port, pci_address, serial_number

EXPORTER, SYSLOG, SCHEDULER, BMC = NameKind.EXPORTER, NameKind.SYSLOG, NameKind.SCHEDULER, NameKind.BMC


def fleet(*nodes: Node) -> Fleet:
    return Fleet("f", {"c": NodeClass("c", 8)}, {node.name: node for node in nodes})


def seen(name: str, at: float = 100.0, source: str = "dcgm", **what: object) -> Observed:
    return Observed(source, at, EXPORTER, name, **what)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("0000:3b:00", "0000:3b:00.0"),
        ("00000000:3B:00.0", "0000:3b:00.0"),
        ("PCI:0000:3b:00", "0000:3b:00.0"),
        ("3b:00.0", "0000:3b:00.0"),
        ("10000:E1:00.1", "10000:e1:00.1"),
        ("3b", None),
        ("0000:3b:00.9", None),
        ("", None),
    ],
)
def test_pci_addresses_have_one_form(text: str, form: str | None) -> None:
    """Each way to write a PCI address comes to one form; what is none says so."""
    assert pci_address(text) == form


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("n1:9400", ("n1", "9400")),
        ("http://N1.x.org:9400/metrics", ("n1.x.org", "9400")),
        ("[fe80::1]:9400", ("fe80::1", "9400")),
        ("fe80::1", ("fe80::1", "")),
        ("n1.x.org.", ("n1.x.org", "")),
        ("10.0.0.1", ("10.0.0.1", "")),
    ],
)
def test_instances_are_host_and_port(text: str, parts: tuple[str, str]) -> None:
    """URLs, IPv6, trailing dots and capitals come to a host and a port."""
    assert host_and_port(text) == parts


@pytest.mark.parametrize("filler", ["To be filled by O.E.M.", "Not Specified", "0", "0000000", "[N/A]", "  ", "None"])
def test_fillers_are_no_serials(filler: str) -> None:
    """What firmware says when nobody wrote a serial names nothing."""
    assert serial_number(filler) == ""
    assert serial_number(" J100 ") == "J100"


def test_each_kind_of_name_leads_to_its_node() -> None:
    """NodeName, log host, exporter instance and label, BMC address and serial lead to one node, in any usual form."""
    node = Node("n1", "c", "S1", Names({"alps": "gpu1"}, ("log1",), ("10.0.0.1:9400",), "bmc1.oob"))
    resolver = Resolver(fleet(node, Node("n2", "c")))
    for kind, name in [
        (SCHEDULER, "gpu1"),
        (SYSLOG, "LOG1.x.org"),
        (SYSLOG, "n1"),
        (EXPORTER, "n1.x.org:9400"),
        (EXPORTER, "10.0.0.1:9400"),
        (EXPORTER, "http://n1:9100/metrics"),
        (BMC, "bmc1"),
        (NameKind.SERIAL, "S1"),
    ]:
        assert resolver.node(kind, name).node == "n1", (kind, name)
    for kind, name in [
        (SCHEDULER, "n1"),
        (EXPORTER, "10.0.0.2"),
        (EXPORTER, "10.0.0.1:9999"),
        (SYSLOG, "n10"),
        (BMC, "n1"),
        (SYSLOG, ""),
    ]:
        answer = resolver.node(kind, name)
        assert answer.node is None and answer.why, (kind, name)


def test_two_clusters_may_use_one_node_name() -> None:
    """One NodeName in two clusters is two nodes; without the cluster it is neither."""
    resolver = Resolver(fleet(Node("a1", "c", names=Names({"a": "n1"})), Node("b1", "c", names=Names({"b": "n1"}))))
    assert resolver.node(SCHEDULER, "n1", "a").node == "a1"
    assert resolver.node(SCHEDULER, "n1", "b").node == "b1"
    assert resolver.node(SCHEDULER, "n1").node is None
    assert "a1, b1" in resolver.node(SCHEDULER, "n1").why
    assert resolver.node(SCHEDULER, "n1", "c").node is None
    assert resolver.mapping(SCHEDULER, "a") == {"n1": "a1"}
    assert resolver.doubts() == ()


def test_short_and_full_names() -> None:
    """A short name fits a full one; two full names of one short name make the short one ambiguous."""
    resolver = Resolver(fleet(Node("n1.a.org", "c"), Node("n1.b.org", "c"), Node("n2", "c")))
    assert resolver.node(SYSLOG, "n1.a.org").node == "n1.a.org"
    assert resolver.node(SYSLOG, "n1").node is None
    assert resolver.node(SYSLOG, "n1.c.org").node is None
    assert resolver.node(SYSLOG, "n2.any.org").node == "n2"


def test_ports_tell_nodes_apart_where_both_have_one() -> None:
    """Nodes behind one host are told apart by port, and by nothing else."""
    one, two = Node("n1", "c", names=Names(exporter=("gw:1",))), Node("n2", "c", names=Names(exporter=("gw:2",)))
    resolver = Resolver(fleet(one, two))
    assert resolver.node(EXPORTER, "gw:1").node == "n1"
    assert resolver.node(EXPORTER, "gw:2").node == "n2"
    assert resolver.node(EXPORTER, "gw").node is None
    assert resolver.node(EXPORTER, "gw:3").node is None
    assert resolver.mapping(EXPORTER) == {"gw:1": "n1", "gw:2": "n2", "n1": "n1", "n2": "n2"}


def test_a_name_declared_twice_is_nobodys() -> None:
    """Two nodes that claim one name: it resolves to neither, and a finding blames neither."""
    resolver = Resolver(fleet(Node("n1", "c", names=Names(syslog=("x",))), Node("n2", "c", names=Names(syslog=("x",)))))
    assert resolver.node(SYSLOG, "x").node is None
    (doubt,) = resolver.doubts()
    assert (doubt.check, doubt.subject, doubt.nodes) == ("identity.conflict", "syslog:x", ("n1", "n2"))
    finding = doubt.finding(since=5.0)
    assert finding.verdict is Verdict.TRUE and finding.component.node == "" and finding.component.kind == "identity"
    assert finding.action == ""


def test_unknown_names_are_findings() -> None:
    """A name that no node has is a finding of its own kind, with the source."""
    resolver = Resolver(fleet(Node("n1", "c")), [seen("stranger", source="prometheus")])
    (doubt,) = resolver.doubts()
    assert (doubt.check, doubt.subject) == ("identity.unknown", "exporter:stranger")
    assert doubt.evidence[0].source == "prometheus"
    assert [d.subject for d in resolver.unknown(SYSLOG, ["n1", "n7", "n7"])] == ["syslog:n7"]


def test_an_observed_serial_is_learnt_and_a_second_is_a_conflict() -> None:
    """Where none is declared, one serial seen is the asset; two at one time are none; a much later one replaces it."""
    nodes = fleet(Node("n1", "c"))
    first, second = seen("n1", serial="S1"), seen("n1", source="redfish", serial="S2", at=130.0)
    assert Resolver(nodes, [first]).asset("n1").node == "S1"
    assert Resolver(nodes, [first]).node(NameKind.SERIAL, "S1").node == "n1"
    both = Resolver(nodes, [first, second])
    assert both.asset("n1").node is None and "S1, S2" in both.asset("n1").why
    assert [d.subject for d in both.doubts()] == ["asset:n1"]
    later = Resolver(nodes, [first, seen("n1", source="redfish", serial="S2", at=5000.0)])
    assert later.asset("n1").node == "S2" and later.doubts() == ()


def test_a_serial_on_two_nodes_is_of_neither() -> None:
    """One serial seen on two nodes at one time is the asset of neither."""
    resolver = Resolver(fleet(Node("n1", "c"), Node("n2", "c")), [seen("n1", serial="S1"), seen("n2", serial="S1")])
    assert resolver.asset("n1").node is None and resolver.asset("n2").node is None
    assert {d.subject for d in resolver.doubts()} == {"asset:n1", "asset:n2"}


def test_a_name_on_another_nodes_hardware_tells_nothing() -> None:
    """If what calls itself n1 has the serial declared for n2, its words are given to neither."""
    nodes = fleet(Node("n1", "c", "S1"), Node("n2", "c", "S2"))
    resolver = Resolver(nodes, [seen("n1:9400", serial="S2", gpus=(GpuSeen("GPU-1"),))])
    assert resolver.node(EXPORTER, "n1:9400").node is None
    assert "serial S2 is of n2" in resolver.node(EXPORTER, "n1").why
    assert resolver.node(SYSLOG, "n1").node == "n1"
    assert resolver.gpus("n1") == resolver.gpus("n2") == ()
    assert resolver.asset("n1").node is None
    assert "n1" not in resolver.mapping(EXPORTER)


def test_a_declared_serial_is_not_replaced() -> None:
    """A foreign serial on a declared asset is a conflict, and the node keeps its name."""
    resolver = Resolver(fleet(Node("n1", "c", "S1")), [seen("n1", serial="S9")])
    assert resolver.asset("n1").node is None
    assert "declared with serial S1" in resolver.asset("n1").why
    assert resolver.node(EXPORTER, "n1").node == "n1"


def test_a_renamed_node_keeps_its_asset() -> None:
    """The asset is the serial: with the new name in the fleet file, it is the same one."""
    before, after = fleet(Node("n1", "c", "S1")), fleet(Node("x1", "c", "S1"))
    assert Resolver(before).asset("n1") == Resolver(after).asset("x1")
    assert Resolver(after).node(NameKind.SERIAL, "S1").node == "x1"


def test_the_newest_boot_counts() -> None:
    """The present boot is the newest; a boot id on two nodes is of neither."""
    nodes = fleet(Node("n1", "c"), Node("n2", "c"))
    resolver = Resolver(nodes, [seen("n1", boot_id="B1"), seen("n1", 200.0, "slurm", boot_id="b2")])
    assert resolver.boot("n1").node == "b2"
    assert resolver.node(NameKind.BOOT, "B1").node == "n1"
    assert resolver.boot("n2").node is None and resolver.boot("n2").why
    cloned = Resolver(nodes, [seen("n1", boot_id="b"), seen("n2", boot_id="b")])
    assert cloned.boot("n1").node is None and cloned.node(NameKind.BOOT, "b").node is None


GPUS = tuple(GpuSeen(f"GPU-{k}", f"00000000:{k}B:00.0", k, f"165{k}") for k in range(1, 3))


def test_gpus_by_any_mark() -> None:
    """UUID, PCI address in any form and index lead to one GPU; marks that do not belong together lead to none."""
    resolver = Resolver(fleet(Node("n1", "c")), [seen("n1", gpus=GPUS)])
    expected = GpuSeen("GPU-1", "0000:1b:00.0", 1, "1651")
    for marks in (
        {"uuid": "gpu-1"},
        {"pci": "PCI:0000:1b:00"},
        {"index": 1},
        {"uuid": "GPU-1", "pci": "1b:00.0", "index": 1},
    ):
        assert resolver.gpu("n1", **marks).gpu == expected  # type: ignore[arg-type]
    for marks in ({"uuid": "GPU-1", "index": 2}, {"index": 7}, {"pci": "junk"}, {}):
        answer = resolver.gpu("n1", **marks)  # type: ignore[arg-type]
        assert answer.gpu is None and answer.why
    assert resolver.gpu("n2", index=1).gpu is None


def test_sources_complete_each_other() -> None:
    """One source's UUID and address join another's address and index."""
    one = seen("n1", gpus=(GpuSeen("GPU-1", "0000:1b:00"),))
    other = seen("n1", 110.0, "log", gpus=(GpuSeen(pci="PCI:0000:1b:00", index=4),))
    resolver = Resolver(fleet(Node("n1", "c")), [one, other])
    assert resolver.gpus("n1") == (GpuSeen("GPU-1", "0000:1b:00.0", 4),)


def test_a_swapped_gpu_starts_clean() -> None:
    """After a reboot with a new card in the slot, slot and index lead to the new one and the old one is gone."""
    old = seen("n1", 100.0, "log", boot_id="b1", gpus=(GpuSeen("GPU-old", "0000:1b:00", 0),))
    new = seen("n1", 400.0, boot_id="b2", gpus=(GpuSeen("GPU-new", "0000:1b:00", 0),))
    resolver = Resolver(fleet(Node("n1", "c")), [old, new])
    assert resolver.gpu("n1", pci="0000:1b:00").gpu == GpuSeen("GPU-new", "0000:1b:00.0", 0)
    assert resolver.gpu("n1", uuid="GPU-old").gpu is None
    assert resolver.doubts() == ()


def test_sources_that_count_differently_have_no_common_index() -> None:
    """Two sources that number the same cards differently: the index is in doubt, address and UUID are not."""
    one = seen("n1", gpus=(GpuSeen("GPU-1", "0000:1b:00", 0), GpuSeen("GPU-2", "0000:2b:00", 1)))
    other = seen("n1", source="smi", gpus=(GpuSeen("GPU-1", "0000:1b:00", 1), GpuSeen("GPU-2", "0000:2b:00", 0)))
    resolver = Resolver(fleet(Node("n1", "c")), [one, other])
    assert resolver.gpu("n1", index=0).gpu is None
    assert resolver.gpu("n1", pci="1b:00").gpu == GpuSeen("GPU-1", "0000:1b:00.0")
    assert {d.subject for d in resolver.doubts()} == {"gpu:n1/index:0", "gpu:n1/index:1"}


def test_a_gpu_in_two_nodes_at_one_time_is_in_neither() -> None:
    """One UUID in two nodes is in doubt in both, until one sighting is so much later that it was moved."""
    nodes = fleet(Node("n1", "c"), Node("n2", "c"))
    card = (GpuSeen("GPU-1", "0000:1b:00", 0),)
    at_once = Resolver(nodes, [seen("n1", 100.0, gpus=card), seen("n2", 160.0, gpus=card)])
    assert at_once.gpu("n1", uuid="GPU-1").gpu is None and at_once.gpu("n2", index=0).gpu is None
    assert "n1, n2" in at_once.gpu("n2", pci="1b:00").why
    moved = Resolver(nodes, [seen("n1", 100.0, gpus=card), seen("n2", 5000.0, gpus=card)])
    assert moved.gpu("n2", uuid="GPU-1").gpu is not None
    assert moved.gpu("n1", uuid="GPU-1").gpu is None and moved.doubts() == ()


def test_ten_thousand_nodes() -> None:
    """The names of 10,000 nodes are indexed, and mapped in bulk, in seconds even on a busy machine."""
    nodes = [Node(f"g{k:05d}", "c", f"S{k}", Names({"a": f"g{k:05d}"}, (f"g{k:05d}.x.org",))) for k in range(10_000)]
    start = time.perf_counter()
    resolver = Resolver(fleet(*nodes))
    mapping = resolver.mapping(SYSLOG)
    assert mapping["g00007.x.org"] == mapping["g00007"] == "g00007" and len(mapping) == 20_000
    assert time.perf_counter() - start < 5
