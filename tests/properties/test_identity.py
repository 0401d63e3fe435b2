"""Identity: whatever is observed, in whatever order, two assets are never merged and nothing is guessed."""

from __future__ import annotations

import hypothesis.strategies as st
from hypothesis import given, settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from nodeworthy.model.fleet import Fleet, Names, Node, NodeClass
from nodeworthy.model.gpu_identity import GpuTable
from nodeworthy.model.identity import GpuSeen, NameKind, Observed, Resolver
from nodeworthy.model.names import gpu_uuid, host_and_port, pci_address, serial_number, short_name
from tests.properties.inputs import fewer

CLASS = {"c": NodeClass("c", 8)}
WORDS = ["n1", "n2", "n3", "n1.a.org", "n1.b.org", "N2", "n2:9400", "10.0.0.1", "10.0.0.2:9400", "gw:1", "gw:2", "gw"]
SERIALS = ["", "S1", "S2", "S3", "S4", "To be filled by O.E.M."]
GPUS = st.builds(
    GpuSeen,
    st.sampled_from(["", "GPU-1", "gpu-1", "GPU-2", "GPU-3"]),
    st.sampled_from(["", "0000:3b:00", "00000000:3B:00.0", "PCI:0000:86:00", "junk"]),
    st.sampled_from([None, 0, 1]),
    st.sampled_from(["", "165", "166"]),
)


@st.composite
def fleets(draw: st.DrawFn) -> Fleet:
    """Small fleets whose names get in each other's way. Serials are of one node each, as the fleet file demands."""
    nodes = {}
    serials = draw(st.permutations(["S1", "S2", "S3"]))
    for k, name in enumerate(draw(st.lists(st.sampled_from(["n1", "n2", "n3", "n1.a.org"]), min_size=1, unique=True))):
        some = st.lists(st.sampled_from(WORDS), max_size=2, unique=True).map(tuple)
        clusters = draw(st.dictionaries(st.sampled_from(["a", "b"]), st.sampled_from(["n1", "n2", "x"]), max_size=2))
        serial = serials[k] if k < 3 and draw(st.booleans()) else ""
        bmc = draw(st.sampled_from(["", "10.0.0.1", "10.0.0.2"]))
        nodes[name] = Node(name, "c", serial, Names(clusters, draw(some), draw(some), bmc))
    return Fleet("f", CLASS, nodes)


OBSERVED = st.builds(
    Observed,
    source=st.sampled_from(["dcgm", "slurm", "redfish"]),
    at=st.sampled_from([0.0, 1.0, 100.0, 700.0, 5000.0]),
    kind=st.sampled_from(NameKind),
    name=st.sampled_from([*WORDS, "x", "S1", "S4", "", "boot1"]),
    cluster=st.sampled_from(["", "a", "b"]),
    serial=st.sampled_from(SERIALS),
    boot_id=st.sampled_from(["", "boot1", "boot2"]),
    gpus=st.none() | st.lists(GPUS, max_size=3).map(tuple),
)


def check(fleet: Fleet, resolver: Resolver) -> None:
    """What holds of every resolver, however it came about."""
    owners = {node.serial: node.name for node in fleet.nodes.values() if node.serial}
    assets: dict[str, str] = {}
    for name, node in fleet.nodes.items():
        serial = resolver.asset(name).node
        if serial is not None:
            assert assets.setdefault(serial, name) == name, "two nodes are one asset"
            assert owners.get(serial, name) == name, "a declared asset went to another node"
            assert not node.serial or serial == node.serial, "a declared asset was replaced by an observed one"
            assert resolver.node(NameKind.SERIAL, serial).node in (name, None)
        else:
            assert resolver.asset(name).why
    for serial, owner in owners.items():
        assert resolver.node(NameKind.SERIAL, serial).node in (owner, None)
    for kind in NameKind:
        for name in WORDS:
            answer = resolver.node(kind, name)
            assert (answer.node is None) == bool(answer.why), "an answer is a node or a reason"
            assert answer.node is None or answer.node in fleet.nodes
        for name, node_name in resolver.mapping(kind).items():
            assert resolver.node(kind, name).node == node_name, "bulk and single answers differ"
    uuids = [(gpu.uuid, node) for node in fleet.nodes for gpu in resolver.gpus(node) if gpu.uuid]
    assert len({uuid for uuid, _ in uuids}) == len(uuids), "one GPU is in two places"
    for node in fleet.nodes:
        for gpu in resolver.gpus(node):
            if gpu.uuid:
                assert resolver.gpu(node, uuid=gpu.uuid).gpu == gpu
            for answer in (resolver.gpu(node, pci=gpu.pci) if gpu.pci else None, resolver.gpu(node, index=gpu.index)):
                assert answer is None or answer.gpu in (gpu, None), "a mark leads to another GPU"


@given(fleets(), st.lists(OBSERVED, max_size=8))
def test_never_merges(fleet: Fleet, observed: list[Observed]) -> None:
    """Whatever is observed, no two assets are merged and every answer is a node or a reason."""
    check(fleet, Resolver(fleet, observed))


@given(fleets(), st.lists(OBSERVED, max_size=6), st.randoms(use_true_random=False))
def test_order_does_not_matter(fleet: Fleet, observed: list[Observed], random: object) -> None:
    """The answers depend on what was observed and when, not on the order in which it was told."""
    shuffled = list(observed)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    one, other = Resolver(fleet, observed), Resolver(fleet, shuffled)
    for node in fleet.nodes:
        assert one.asset(node).node == other.asset(node).node
        assert one.boot(node).node == other.boot(node).node
        assert set(one.gpus(node)) == set(other.gpus(node))
    for kind in NameKind:
        assert one.mapping(kind) == other.mapping(kind)
    assert {d.subject for d in one.doubts()} == {d.subject for d in other.doubts()}


class Workshop(RuleBasedStateMachine):
    """People swap GPUs, move cards between nodes, rename nodes and reboot them; sources tell the truth, but late.

    The model is the true state. What the resolver says must be true, or unknown.
    """

    @initialize()
    def build(self) -> None:
        self.now = 1000.0
        self.assets = {"S1": "n1", "S2": "n2"}  # asset → its present name
        self.cards = {"S1": ["GPU-10", "GPU-11"], "S2": ["GPU-20", "GPU-21"]}
        self.boots = {"S1": 0, "S2": 0}
        self.spares = 0
        self.told: list[Observed] = []
        for asset in self.assets:
            self.look(asset)

    def look(self, asset: str) -> None:
        """A source reads a node as it is."""
        gpus = tuple(GpuSeen(uuid, f"0000:{slot:02x}:00", slot) for slot, uuid in enumerate(self.cards[asset]) if uuid)
        boot = f"{asset.lower()}-boot{self.boots[asset]}"
        self.told.append(Observed("dcgm", self.now, NameKind.EXPORTER, self.assets[asset], "", asset, boot, gpus))

    @rule(asset=st.sampled_from(["S1", "S2"]))
    def read(self, asset: str) -> None:
        self.now += 60
        self.look(asset)

    @rule(asset=st.sampled_from(["S1", "S2"]), slot=st.integers(0, 1))
    def swap_card(self, asset: str, slot: int) -> None:
        """A new card in the place of an old one; the node is off meanwhile."""
        self.spares += 1
        self.cards[asset][slot] = f"GPU-9{self.spares}"
        self.reboot(asset)

    @rule(slot=st.integers(0, 1))
    def exchange_cards(self, slot: int) -> None:
        """The cards of one slot change places between the nodes."""
        one, two = self.cards["S1"], self.cards["S2"]
        one[slot], two[slot] = two[slot], one[slot]
        self.reboot("S1")
        self.reboot("S2")

    @rule()
    def exchange_names(self) -> None:
        """The nodes change names, and the fleet file says so."""
        self.assets = {"S1": self.assets["S2"], "S2": self.assets["S1"]}

    @rule(asset=st.sampled_from(["S1", "S2"]))
    def reboot(self, asset: str) -> None:
        self.now += 900
        self.boots[asset] += 1
        self.look(asset)

    @invariant()
    def truth_or_unknown(self) -> None:
        fleet = Fleet("f", CLASS, {name: Node(name, "c", serial) for serial, name in self.assets.items()})
        resolver = Resolver(fleet, self.told)
        check(fleet, resolver)
        for serial, name in self.assets.items():
            assert resolver.asset(name).node in (serial, None)
            assert resolver.boot(name).node in (f"{serial.lower()}-boot{self.boots[serial]}", None)
            for slot, uuid in enumerate(self.cards[serial]):
                for answer in (resolver.gpu(name, index=slot), resolver.gpu(name, pci=f"PCI:0000:{slot:02x}:00")):
                    assert answer.gpu is None or answer.gpu.uuid == uuid, (
                        "the old card's identity is given to the new one"
                    )


TestWorkshop = Workshop.TestCase
TestWorkshop.settings = settings(fewer(5), stateful_step_count=20)


@given(st.text(max_size=40))
def test_any_text_has_a_form_or_none(text: str) -> None:
    """No text breaks the readers of names, and a form once found stays as it is."""
    address = pci_address(text)
    assert address is None or pci_address(address) == address
    host, _port = host_and_port(text)
    assert short_name(host) == short_name(short_name(host))
    assert gpu_uuid(gpu_uuid(text)) == gpu_uuid(text)
    assert serial_number(serial_number(text)) == serial_number(text)


@given(st.lists(st.tuples(st.just("n"), OBSERVED), max_size=4))
def test_gpu_table_doubts_name_their_nodes(placed: list[tuple[str, Observed]]) -> None:
    """Every contradiction about a GPU says in which nodes."""
    for doubt in GpuTable(placed).doubts:
        assert doubt.nodes == ("n",)
        assert doubt.check == "identity.conflict"
