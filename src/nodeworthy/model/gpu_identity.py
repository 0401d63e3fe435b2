"""Which GPU is where: UUID and serial ↔ PCI address ↔ index, per node, now.

A node's table is made of the present inventories of its sources (see `present`; of one boot only, for a card
changes with the power off). Entries with one UUID are one GPU, an entry without a UUID joins the one GPU that has
its address, or its index. A mark that two GPUs bear, or a second mark of its kind on one GPU, is in doubt: it
resolves to nothing, while the marks that agree still do. A UUID seen in two nodes is in doubt in both, unless one
sighting is so much later that the card has been moved.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from nodeworthy.model.finding import Evidence
from nodeworthy.model.names import gpu_uuid, pci_address, serial_number
from nodeworthy.model.sighting import MOVE_S, Doubt, GpuResolution, GpuSeen, Observed, conflict, present

Mark = tuple[str, str]  # ("pci", "0000:3b:00.0"), ("index", "0"), ("uuid", "GPU-…"), ("serial", "165…")


@dataclass
class _Card:
    """All that is said of one GPU of a node."""

    marks: dict[str, set[str]] = field(default_factory=dict)
    at: float = 0.0

    def add(self, marks: Iterable[Mark], at: float) -> None:
        for kind, value in marks:
            self.marks.setdefault(kind, set()).add(value)
        self.at = max(self.at, at)

    def settled(self) -> Iterator[Mark]:
        """The marks of which there is one of a kind."""
        for kind, values in self.marks.items():
            if len(values) == 1:
                yield kind, next(iter(values))


def _marks(gpu: GpuSeen) -> list[Mark]:
    marks = [("uuid", gpu_uuid(gpu.uuid)), ("pci", pci_address(gpu.pci) or ""), ("serial", serial_number(gpu.serial))]
    marks.append(("index", "" if gpu.index is None else str(gpu.index)))
    return [(kind, value) for kind, value in marks if value]


class GpuTable:
    """The GPUs of all nodes, from placed observations; `doubts` is what contradicts."""

    def __init__(self, placed: Iterable[tuple[str, Observed]]) -> None:
        inventories: dict[str, list[Observed]] = {}
        for node, seen in placed:
            if seen.gpus is not None:
                inventories.setdefault(node, []).append(seen)
        self.doubts: list[Doubt] = []
        self._reasons: dict[tuple[str, Mark], str] = {}  # node and mark → why it does not resolve
        cards = {node: _cards(_one_boot(present(seen))) for node, seen in inventories.items()}
        self._across_nodes(cards)
        for node, table in cards.items():
            self._within(node, table)
        self._gpus = {node: self._settled(node, table) for node, table in cards.items()}

    def gpus(self, node: str) -> tuple[GpuSeen, ...]:
        return self._gpus.get(node, ())

    def gpu(self, node: str, *, uuid: str, pci: str, index: int | None) -> GpuResolution:
        """The one GPU of `node` with all the given marks; see `Resolver.gpu`."""
        asked = GpuSeen(uuid, pci, index)
        wanted = _marks(asked)
        if pci and pci_address(pci) is None:
            return GpuResolution(None, f"not a PCI address: {pci!r}")
        if not wanted:
            return GpuResolution(None, "neither UUID nor PCI address nor index is given")
        for mark in wanted:
            if reason := self._reasons.get((node, mark)):
                return GpuResolution(None, reason)
        gpus = self.gpus(node)
        if not gpus:
            return GpuResolution(None, f"no GPU of {node!r} has been seen")
        found = [gpu for gpu in gpus if set(wanted) <= set(_marks(gpu))]
        if len(found) == 1:
            return GpuResolution(found[0])
        words = " and ".join(f"{kind} {value}" for kind, value in wanted)
        return GpuResolution(None, f"{'no GPU' if not found else f'{len(found)} GPUs'} of {node} with {words}")

    def _across_nodes(self, cards: dict[str, list[_Card]]) -> None:
        """A card is in one node. The later of two sightings holds if there was time to move it."""
        places: dict[Mark, list[tuple[str, _Card]]] = {}
        for node, table in cards.items():
            for card in table:
                for kind in ("uuid", "serial"):
                    for value in card.marks.get(kind, ()):
                        places.setdefault((kind, value), []).append((node, card))
        for (kind, value), seen in places.items():
            if len({node for node, _ in seen}) < 2:
                continue
            newest = max(card.at for _, card in seen)
            now = {node for node, card in seen if newest - card.at < MOVE_S}
            for node, card in seen:
                if node not in now and card in cards[node]:
                    cards[node].remove(card)
            if len(now) > 1:
                reason = f"GPU {kind} {value} is seen in {', '.join(sorted(now))} at one time"
                evidence = [
                    Evidence(f"GPU {kind}", f"{value} in {node}", "inventory", c.at) for node, c in seen if node in now
                ]
                self.doubts.append(conflict(f"gpu:{value}", reason, now, evidence))
                self._reasons.update({(node, (kind, value)): reason for node in now})

    def _within(self, node: str, table: list[_Card]) -> None:
        """Within a node every mark is of one GPU, and a GPU has one mark of a kind."""
        bearers: dict[Mark, int] = {}
        for card in table:
            for kind, values in card.marks.items():
                for value in values:
                    bearers[kind, value] = bearers.get((kind, value), 0) + 1
                    if len(values) > 1:
                        several = ", ".join(sorted(values))
                        self._disagree(node, (kind, value), f"one GPU of {node} is seen with {kind} {several}")
        for mark, count in bearers.items():
            if count > 1:
                self._disagree(node, mark, f"{count} GPUs of {node} are seen with {mark[0]} {mark[1]}")

    def _disagree(self, node: str, mark: Mark, reason: str) -> None:
        self._reasons.setdefault((node, mark), reason)
        self.doubts.append(conflict(f"gpu:{node}/{mark[0]}:{mark[1]}", reason, [node]))

    def _settled(self, node: str, table: list[_Card]) -> tuple[GpuSeen, ...]:
        """The GPUs with the marks that are not in doubt; a GPU whose UUID is in doubt is not known at all."""
        settled = []
        for card in table:
            doubtful = [self._reasons.get((node, ("uuid", uuid)), "") for uuid in card.marks.get("uuid", ())]
            if reason := next(filter(None, doubtful), ""):
                marks = [(kind, value) for kind, values in card.marks.items() for value in values]
                self._reasons.update({(node, mark): reason for mark in marks})
                continue
            known = dict(mark for mark in card.settled() if (node, mark) not in self._reasons)
            index = known.get("index")
            gpu = GpuSeen(
                known.get("uuid", ""), known.get("pci", ""), int(index) if index else None, known.get("serial", "")
            )
            if gpu != GpuSeen():
                settled.append(gpu)
        return tuple(sorted(settled, key=lambda g: (g.pci, g.index if g.index is not None else -1, g.uuid)))


def _one_boot(inventories: list[Observed]) -> list[Observed]:
    """Inventories of the newest boot that is told, and those that tell none."""
    told = [i for i in inventories if i.boot_id]
    if not told:
        return inventories
    newest = max(told, key=lambda i: i.at).boot_id
    return [i for i in inventories if i.boot_id in ("", newest)]


def _cards(inventories: list[Observed]) -> list[_Card]:
    """The GPUs of a node: by UUID first, then what has none by its address, then by its index."""
    cards: list[_Card] = []
    ordered = sorted(inventories, key=lambda i: (i.at, i.source))
    entries = [(dict(_marks(gpu)), seen.at) for seen in ordered for gpu in seen.gpus or ()]
    for kind in ("uuid", "pci", "index"):
        later = []
        for marks, at in entries:
            value = marks.get(kind)
            if value is None:
                later.append((marks, at))
                continue
            same = [card for card in cards if value in card.marks.get(kind, ())]
            card = same[0] if len(same) == 1 else _Card()
            if len(same) != 1:
                cards.append(card)
            card.add(marks.items(), at)
        entries = later
    return cards
