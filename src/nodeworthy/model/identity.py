"""Who is who: names of machines and of GPUs, and the assets behind them.

An asset is a serial; a node is an asset with names: a NodeName in each cluster, a syslog host, exporter labels,
a BMC address, the id of its present boot. A GPU is a UUID that is at a PCI address, under an index, for a time.

Two things are known: what is *declared* (the fleet file) and what was *observed together* (`Observed`: one
source, at one time, saw this name with this serial, boot and these GPUs). Names come from the declaration
alone; observations add serials, boots and GPUs, and may contradict. The rule is: never guess. A name that two
nodes claim, or that is declared for one node and observed on the hardware of another, resolves to nothing,
with the reason; and each such thing is a `Doubt`, which becomes a finding about the identity, never about a
node. So no two assets can be merged: every answer has exactly one claimant.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from nodeworthy.model.finding import Evidence
from nodeworthy.model.fleet import Fleet, Node
from nodeworthy.model.gpu_identity import GpuTable
from nodeworthy.model.names import HostNames, serial_number
from nodeworthy.model.sighting import Doubt, GpuResolution, GpuSeen, NameKind, Observed, Resolution, conflict, present

__all__ = ["Doubt", "GpuResolution", "GpuSeen", "NameKind", "Observed", "Resolution", "Resolver"]

_HOST_KINDS = (NameKind.SYSLOG, NameKind.EXPORTER, NameKind.BMC)


@dataclass(frozen=True, slots=True)
class _Placed:
    """An observation and the node whose name it bears."""

    at: float
    node: str
    seen: Observed

    @property
    def evidence(self) -> Evidence:
        said = [
            f"serial {self.seen.serial}" if self.seen.serial else "",
            f"boot {self.seen.boot_id}" if self.seen.boot_id else "",
        ]
        what = f"{self.seen.kind.value} name {self.seen.name}"
        return Evidence(what, " ".join(t for t in said if t) or "seen", self.seen.source, self.at)


class Resolver:
    """Answers who is who, from one fleet and what was observed. Never changes; make it anew when either does.

    Of `observed` the latest word of a source about a name counts; an older one only tells that a machine has
    moved on to another name. So who keeps observations keeps the latest per source, name and serial.
    """

    def __init__(self, fleet: Fleet, observed: Iterable[Observed] = ()) -> None:
        self._fleet = fleet
        self._hosts = {kind: HostNames() for kind in _HOST_KINDS}
        self._scheduler: dict[str, dict[str, set[str]]] = {}  # NodeName → cluster ("" = any) → nodes
        self._serials: dict[str, set[str]] = {}
        self._boots: dict[str, set[str]] = {}
        self._contested: dict[tuple[NameKind, str], str] = {}  # kind and node → why its names of that kind tell nothing
        self._assets: dict[str, Resolution] = {}
        self._boot_of: dict[str, Resolution] = {}
        self._doubts: dict[str, Doubt] = {}
        for node in fleet.nodes.values():
            self._declare(node)
        self._check_declared()
        placed = self._place(observed)
        self._learn_serials(placed)
        self._learn_boots(placed)
        self._gpu_table = GpuTable((p.node, p.seen) for p in placed)
        for doubt in self._gpu_table.doubts:
            self._doubt(doubt)

    # the answers

    def node(self, kind: NameKind, name: str, cluster: str = "") -> Resolution:
        """The declared node that `kind` calls `name`. For the scheduler, `cluster` tells whose name it is."""
        if not name:
            return Resolution(None, "an empty name")
        nodes = self._claimants(kind, name, cluster)
        if len(nodes) == 1:
            node = next(iter(nodes))
            reason = self._contested.get((kind, node), "")
            return Resolution(None, reason) if reason else Resolution(node)
        where = f" in cluster {cluster!r}" if cluster else ""
        if not nodes:
            return Resolution(None, f"no declared node has the {kind.value} name {name!r}{where}")
        return Resolution(None, f"{kind.value} name {name!r}{where} may be any of {', '.join(sorted(nodes))}")

    def resolve(self, kind: NameKind, names: Iterable[str], cluster: str = "") -> dict[str, Resolution]:
        """`node` for many names at once."""
        return {name: self.node(kind, name, cluster) for name in set(names)}

    def mapping(self, kind: NameKind, cluster: str = "") -> dict[str, str]:
        """Every declared form of a name of this kind that is not in doubt → its node: for joins over frames.

        A name that is not here (another port, a longer domain) may still resolve by `node`; `resolve` the
        distinct names that a join leaves over.
        """
        tables: dict[NameKind, Iterable[str]] = {
            NameKind.SCHEDULER: self._scheduler,
            NameKind.SERIAL: self._serials,
            NameKind.BOOT: self._boots,
        }
        names: Iterable[str] = self._hosts[kind].known() if kind in self._hosts else [*tables[kind]]
        answers = ((name, self.node(kind, name, cluster).node) for name in names)
        return {name: node for name, node in answers if node is not None}

    def unknown(self, kind: NameKind, names: Iterable[str], cluster: str = "", source: str = "") -> list[Doubt]:
        """A doubt for each name that does not resolve: what an adapter met and could not place."""
        doubts = []
        for name, answer in sorted(self.resolve(kind, names, cluster).items()):
            if answer.node is None:
                check = "identity.conflict" if self._claimants(kind, name, cluster) else "identity.unknown"
                evidence = (Evidence(f"{kind.value} name", name, source or kind.value, None),)
                doubts.append(Doubt(check, f"{kind.value}:{name}", answer.why, evidence=evidence))
        return doubts

    def asset(self, node: str) -> Resolution:
        """The serial of a node (in `Resolution.node`), or None and why it is not known."""
        if node not in self._fleet.nodes:
            return Resolution(None, f"node {node!r} is not declared")
        return self._assets.get(node, Resolution(None, f"nobody has read the serial of {node}"))

    def boot(self, node: str) -> Resolution:
        """The id of a node's present boot (in `Resolution.node`), or None and why it is not known."""
        return self._boot_of.get(node, Resolution(None, f"nobody has read the boot id of {node}"))

    def gpu(self, node: str, *, uuid: str = "", pci: str = "", index: int | None = None) -> GpuResolution:
        """The one GPU now in `node` that has all the given marks. PCI addresses in any usual form."""
        return self._gpu_table.gpu(node, uuid=uuid, pci=pci, index=index)

    def gpus(self, node: str) -> tuple[GpuSeen, ...]:
        """The GPUs now known in a node, by PCI address; marks in doubt are left out of them."""
        return self._gpu_table.gpus(node)

    def doubts(self) -> tuple[Doubt, ...]:
        """All that contradicts or is unknown: between declarations, and between them and what was observed."""
        return tuple(self._doubts[subject] for subject in sorted(self._doubts))

    # declared names

    def _declare(self, node: Node) -> None:
        names = node.names
        for cluster, text in (names.scheduler or {"": node.name}).items():
            self._scheduler.setdefault(text, {}).setdefault(cluster, set()).add(node.name)
        for kind, texts in ((NameKind.SYSLOG, names.syslog), (NameKind.EXPORTER, names.exporter)):
            for text in (node.name, *texts):
                self._hosts[kind].claim(text, node.name)
        if names.bmc:
            self._hosts[NameKind.BMC].claim(names.bmc, node.name)
        if serial := serial_number(node.serial):
            self._serials.setdefault(serial, set()).add(node.name)

    def _claimants(self, kind: NameKind, name: str, cluster: str) -> set[str]:
        if kind is NameKind.SCHEDULER:
            clusters = self._scheduler.get(name, {})
            if not cluster:
                return set().union(*clusters.values())
            return clusters.get(cluster, set()) | clusters.get("", set())
        if kind is NameKind.SERIAL:
            return self._serials.get(serial_number(name), set())
        if kind is NameKind.BOOT:
            return self._boots.get(name.strip().lower(), set())
        return self._hosts[kind].claimants(name)

    def _check_declared(self) -> None:
        """Two nodes that claim one name are a contradiction in the fleet file itself."""
        shared: list[tuple[str, str, set[str]]] = []
        for kind, hosts in self._hosts.items():
            shared += [(kind.value, text, nodes) for text, nodes in hosts.shared()]
        shared += [("serial", serial, nodes) for serial, nodes in self._serials.items() if len(nodes) > 1]
        for name, clusters in self._scheduler.items():
            for cluster in clusters:
                nodes = clusters[cluster] | clusters.get("", set())
                if len(nodes) > 1:
                    shared.append(("scheduler", f"{cluster}/{name}" if cluster else name, nodes))
        for word, text, nodes in shared:
            several = ", ".join(sorted(nodes))
            self._doubt(conflict(f"{word}:{text}", f"{word} name {text!r} is declared for {several}", nodes))
        for serial, nodes in self._serials.items():
            for node in nodes:
                several = ", ".join(sorted(nodes))
                reason = f"serial {serial} is declared for {several}"
                self._assets[node] = Resolution(serial) if len(nodes) == 1 else Resolution(None, reason)

    def _doubt(self, doubt: Doubt) -> None:
        self._doubts.setdefault(doubt.subject, doubt)

    # what was observed

    def _place(self, observed: Iterable[Observed]) -> list[_Placed]:
        """Observations under names that are known and whose serial does not say that it is another machine."""
        placed: list[_Placed] = []
        words = list(observed)
        under = self._under(words)
        for seen in _latest(words):
            answer = self.node(seen.kind, seen.name, seen.cluster)
            if answer.node is None:
                for doubt in self.unknown(seen.kind, [seen.name], seen.cluster, seen.source):
                    self._doubt(doubt)
                continue
            owners = self._serials.get(serial_number(seen.serial), set())
            here = _Placed(seen.at, answer.node, seen)
            if owners and owners != {answer.node}:
                several = ", ".join(sorted(owners))
                reason = f"{seen.kind.value} name {seen.name!r} is of {answer.node}, but its serial {seen.serial} is of {several}"
                self._contested[seen.kind, answer.node] = reason
                nodes = {answer.node, *owners}
                self._doubt(conflict(f"{seen.kind.value}:{seen.name}", reason, nodes, [here.evidence]))
                for node in nodes:
                    self._assets[node] = Resolution(None, reason)
                continue
            placed.append(here)
        # a name may turn out to be contested by a later word than the one that was placed, and a word is past
        # once its machine has been seen under the name of another node
        return [
            p
            for p in placed
            if (p.seen.kind, p.node) not in self._contested
            and not any(at > p.at and node != p.node for at, node in under.get(serial_number(p.seen.serial), ()))
        ]

    def _under(self, observed: Iterable[Observed]) -> dict[str, list[tuple[float, str]]]:
        """Serial → when it was seen, under the name of which node."""
        under: dict[str, list[tuple[float, str]]] = {}
        for seen in observed:
            if serial := serial_number(seen.serial):
                node = self.node(seen.kind, seen.name, seen.cluster).node
                if node is not None:
                    under.setdefault(serial, []).append((seen.at, node))
        return under

    def _learn_serials(self, placed: Iterable[_Placed]) -> None:
        """A serial seen on a node is its asset if none is declared, one is seen now, and on no other node."""
        by_node: dict[str, list[_Placed]] = {}
        for p in placed:
            if serial_number(p.seen.serial):
                by_node.setdefault(p.node, []).append(p)
        now = {node: present(seen) for node, seen in by_node.items()}
        holders: dict[str, list[_Placed]] = {}
        for seen in now.values():
            for p in seen:
                holders.setdefault(serial_number(p.seen.serial), []).append(p)
        for node, seen in now.items():
            declared = serial_number(self._fleet.nodes[node].serial)
            serials = sorted({declared} - {""} | {serial_number(p.seen.serial) for p in seen})
            others = {p.node for serial in serials for p in present(holders.get(serial, ()))} - {node}
            if len(serials) > 1:
                known = f"is declared with serial {declared}, " if declared else ""
                reason = f"{node} {known}is seen with {', '.join(sorted(set(serials) - {declared}))}"
            elif others:
                reason = f"serial {serials[0]} is seen on {', '.join(sorted({node, *others}))}"
            elif not any(p.node == node for p in present(holders[serials[0]])):
                continue  # the machine has since been seen under another name
            else:
                if node not in self._assets:
                    self._assets[node] = Resolution(serials[0])
                    self._serials.setdefault(serials[0], set()).add(node)
                continue
            self._assets[node] = Resolution(None, reason)
            self._doubt(conflict(f"asset:{node}", reason, {node, *others}, [p.evidence for p in seen]))

    def _learn_boots(self, placed: Iterable[_Placed]) -> None:
        """The newest boot id seen on a node is its present one, unless another node has it too."""
        newest: dict[str, float] = {}
        at: dict[str, set[str]] = {}
        for p in placed:
            boot = p.seen.boot_id.strip().lower()
            if not boot:
                continue
            self._boots.setdefault(boot, set()).add(p.node)
            if p.at > newest.get(p.node, float("-inf")):
                newest[p.node], at[p.node] = p.at, set()
            if p.at == newest[p.node]:
                at[p.node].add(boot)
        for node, boots in at.items():
            shared = {other for boot in boots for other in self._boots[boot]}
            if len(boots) == 1 and len(shared) == 1:
                self._boot_of[node] = Resolution(next(iter(boots)))
                continue
            words = ", ".join(sorted(boots))
            reason = f"boot id {words} is seen on {', '.join(sorted(shared))}" if len(boots) == 1 else ""
            reason = reason or f"{node} is seen with several boot ids at one time: {words}"
            self._boot_of[node] = Resolution(None, reason)
            self._doubt(conflict(f"boot:{words}", reason, shared))


def _latest(observed: Iterable[Observed]) -> list[Observed]:
    """The latest word of each source about each name; words of the same instant all count."""
    kept: dict[tuple[object, ...], list[Observed]] = {}
    for seen in observed:
        says = (bool(seen.serial), bool(seen.boot_id), seen.gpus is not None)
        key = (seen.source, seen.kind, seen.name, seen.cluster, says)
        words = kept.setdefault(key, [])
        if not words or seen.at > words[0].at:
            kept[key] = [seen]
        elif seen.at == words[0].at:
            words.append(seen)
    return [seen for words in kept.values() for seen in words]
