"""From what exists to a declared fleet: nodes as some source lists them become classes, names and domains.

Nodes that are alike are one class, named after what it has: `h100x8-64c-2t` is eight H100, 64 processors, two
TiB. Memory is rounded for the name and for the likeness, because machines of one delivery differ by what
their firmware keeps back; the class then expects the least of its nodes. What a source does not say stays
unsaid: Slurm knows leaves and blocks, it does not know racks.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from nodeworthy.model.fleet import Fleet, Names, Node, NodeClass
from nodeworthy.model.scheduler import BaseState, SchedulerNode, SchedulerSnapshot


@dataclass(frozen=True, slots=True)
class Listed:
    """A node as a source lists it. None and empty: the source does not say."""

    name: str
    node_class: str = ""
    gpus: int | None = None
    gpu_type: str = ""
    cpus: int | None = None
    memory_mb: int | None = None
    sockets: int | None = None
    serial: str = ""
    names: Names = field(default_factory=Names)
    domains: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)

    def has(self) -> tuple[object, ...]:
        """What makes nodes alike."""
        return (self.gpus or 0, self.gpu_type, self.cpus, self.sockets, memory_word(self.memory_mb))


@dataclass(frozen=True, slots=True)
class Imported:
    """A fleet made from a source, and sentences about what could not be taken over."""

    fleet: Fleet
    notes: tuple[str, ...] = ()


def memory_word(memory_mb: int | None) -> str:
    """Memory as it is sold, in words: the next quarter step of a power of two (512, 640, 768, 896, 1024 …).

    What an operating system sees, and more so what a scheduler is told, is some percent less than what is
    built in: 2,000,000 MiB is a machine of two TiB. One percent above a step still is that step.

    >>> memory_word(515000), memory_word(2000000), memory_word(1546000), memory_word(None)
    ('512g', '2t', '1536g', '')
    """
    if memory_mb is None:
        return ""
    gib = memory_mb / 1024
    if gib < 1:
        return f"{memory_mb}m"
    step = max(1.0, 2.0 ** (math.floor(math.log2(gib)) - 2))
    rounded = math.ceil(gib / 1.01 / step) * int(step)
    return f"{rounded // 1024}t" if rounded % 1024 == 0 else f"{rounded}g"


def class_name(listed: Listed) -> str:
    """The name of a class made from what its nodes have."""
    gpus = f"{listed.gpu_type or 'gpu'}x{listed.gpus}" if listed.gpus else "cpu"
    parts = [gpus, f"{listed.cpus}c" if listed.cpus else "", memory_word(listed.memory_mb)]
    return "-".join(part for part in parts if part)


def fleet_from(name: str, listed: Sequence[Listed], classes: Mapping[str, NodeClass] | None = None) -> Fleet:
    """A fleet of listed nodes. A node that fits one of the given `classes` goes there, others make their own."""
    made = dict(classes or {})
    groups: dict[tuple[object, ...], list[Listed]] = {}
    for node in listed:
        groups.setdefault((node.node_class, *node.has()) if not node.node_class else (node.node_class,), []).append(
            node
        )
    nodes: dict[str, Node] = {}
    for members in groups.values():
        found = members[0].node_class or _fitting(members[0], made) or _free_name(members[0], made)
        if found not in made:
            made[found] = _class_of(found, members)
        for node in members:
            nodes[node.name] = Node(node.name, found, node.serial, node.names, node.domains, node.labels)
    used = {node.node_class for node in nodes.values()} | set(classes or {})
    order = {node.name: nodes[node.name] for node in listed}
    return Fleet(name, {k: v for k, v in made.items() if k in used}, order)


def _class_of(name: str, members: Sequence[Listed]) -> NodeClass:
    """The least that all members have; what some do not say is not expected."""

    def least(values: Iterable[int | None]) -> int | None:
        known = list(values)
        return None if None in known else min(v for v in known if v is not None)

    return NodeClass(
        name,
        gpus=least(m.gpus for m in members) or 0,
        gpu_type=members[0].gpu_type if members[0].gpus else "",
        cpus=least(m.cpus for m in members),
        memory_mb=least(m.memory_mb for m in members),
        sockets=least(m.sockets for m in members),
    )


def differences(listed: Listed, declared: NodeClass) -> list[str]:
    """What a node has that its class does not say, in words. Only what both say is compared."""
    found = []
    pairs = [
        ("gpus", listed.gpus, declared.gpus),
        ("gpu_type", listed.gpu_type if listed.gpus else "", declared.gpu_type),
        ("cpus", listed.cpus, declared.cpus),
        ("sockets", listed.sockets, declared.sockets),
    ]
    for key, has, says in pairs:
        if has not in (None, "") and says not in (None, "") and has != says:
            found.append(f"{key} {says} → {has}")
    has_memory, says_memory = listed.memory_mb, declared.memory_mb
    if has_memory and says_memory and memory_word(has_memory) != memory_word(says_memory):
        found.append(f"memory_mb {says_memory} → {has_memory}")
    return found


def _fitting(listed: Listed, classes: Mapping[str, NodeClass]) -> str | None:
    fits = [c.name for c in classes.values() if (c.gpus or 0) == (listed.gpus or 0) and not differences(listed, c)]
    return fits[0] if len(fits) == 1 else None


def _free_name(listed: Listed, taken: Mapping[str, NodeClass]) -> str:
    """The class's name; where kinds differ in more than the name tells, sockets and then a number tell them apart."""
    name = class_name(listed)
    if name in taken and listed.sockets:
        name = f"{name}-{listed.sockets}s"
    number, free = 2, name
    while free in taken:
        free, number = f"{name}-{number}", number + 1
    return free


def from_scheduler(snapshot: SchedulerSnapshot, classes: Mapping[str, NodeClass] | None = None) -> Imported:
    """The fleet that a scheduler knows: every node it has, except those that are only planned (FUTURE)."""
    listed, notes = list_scheduler(snapshot)
    return Imported(fleet_from(snapshot.cluster, listed, classes), notes)


def list_scheduler(snapshot: SchedulerSnapshot) -> tuple[list[Listed], tuple[str, ...]]:
    """The scheduler's nodes as listed nodes, with notes on what was left out."""
    notes = list(snapshot.problems)
    domains, doubtful = _domains(snapshot)
    notes += doubtful
    planned = [n.name for n in snapshot.nodes.values() if n.base is BaseState.FUTURE]
    if planned:
        notes.append(f"{len(planned)} FUTURE nodes are left out: they do not exist yet")
    present = [n for n in snapshot.nodes.values() if n.base is not BaseState.FUTURE]
    hostnames = Counter(n.hostname for n in present)
    addresses = Counter(n.address for n in present)
    listed = []
    for node in present:
        also = []
        if node.hostname and node.hostname != node.name and hostnames[node.hostname] == 1:
            also.append(node.hostname)
        address = node.address
        exporter = list(also)
        if address and address not in (node.name, node.hostname) and addresses[address] == 1:
            exporter.append(address)
        listed.append(
            Listed(
                node.name,
                gpus=node.gpus or 0,
                gpu_type=_gpu_type(node),
                cpus=node.cpus,
                memory_mb=node.memory_mb,
                sockets=node.sockets,
                names=Names({snapshot.cluster: node.name}, tuple(also), tuple(exporter)),
                domains=domains.get(node.name, {}),
                labels={"cloud": "yes"} if node.has("CLOUD") else {},
            )
        )
    return listed, tuple(notes)


def _gpu_type(node: SchedulerNode) -> str:
    return node.gpu_type or "" if node.gpus else ""


def _domains(snapshot: SchedulerSnapshot) -> tuple[dict[str, dict[str, str]], list[str]]:
    """Node → leaf and block, from the lowest level of the scheduler's topology.

    A node under two leaves at once (two trees, or a mistake) gets none: which one counts is not known.
    """
    found: dict[str, dict[str, str]] = {}
    twice: set[tuple[str, str]] = set()
    for unit in snapshot.topology:
        kind = {"switch": "leaf", "block": "block"}.get(unit.kind)
        if kind is None or unit.level != 0:
            continue
        for name in unit.nodes:
            if found.setdefault(name, {}).setdefault(kind, unit.name) != unit.name:
                twice.add((name, kind))
    for name, kind in twice:
        del found[name][kind]
    notes = [f"{name} is in more than one {kind}: its {kind} is left unknown" for name, kind in sorted(twice)]
    return found, notes
