"""Who said it: from the labels of series to the components of declared nodes.

Rules, each because the field got it wrong at some time:

- A GPU is `(node, gpu label)`. Labels of the workload (pod, container) do not make another GPU.
- A row of a MIG instance (`GPU_I_ID`), a link or a switch is not a row of the whole GPU.
- `Hostname` and `instance` (or the target that was asked) must not name two different nodes. If they do,
  the row is nobody's: a guess would blame the wrong node.
- Two UUIDs at one index: the newer series is the GPU that is there now; if none is newer, nobody's.
- One UUID at two places: at least one of them lies (two targets that reach one exporter); nobody's.

A name that the fleet does not declare is listed, never guessed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from nodeworthy.model.fact import GPU, NIC, NODE
from nodeworthy.observe.samples import Ints, Place, Samples

Resolve = Callable[[str], str | None]
Key = tuple[str, str]  # node, index

# labels that make a row say something of a part of a GPU or of another device
_PARTS = ("GPU_I_ID", "nvlink", "nvswitch", "cpucore", "vgpu")


@dataclass(slots=True)
class Components:
    """`keys[kind]` are the components seen; `of_place[kind]` gives each place its position there, -1 for none."""

    keys: dict[str, list[Key]] = field(default_factory=dict)
    of_place: dict[str, Ints] = field(default_factory=dict)
    doubtful: dict[str, set[int]] = field(default_factory=lambda: defaultdict(set))
    unknown_names: tuple[str, ...] = ()
    problems: list[str] = field(default_factory=list)


def find_components(samples: Samples, resolve: Resolve) -> Components:
    """Give each place its node, GPU and device."""
    found = Components()
    nodes = _nodes(samples.places, resolve, found)
    for kind in (NODE, GPU, NIC):
        index: dict[Key, int] = {}
        positions = np.full(len(samples.places), -1, dtype=np.int64)
        for number, (place, node) in enumerate(zip(samples.places, nodes, strict=True)):
            part = None if node is None else _index(kind, place.labels)
            if node is not None and part is not None:
                positions[number] = index.setdefault((node, part), len(index))
        found.keys[kind], found.of_place[kind] = list(index), positions
    _check_uuids(samples, found)
    return found


def _index(kind: str, labels: Mapping[str, str]) -> str | None:
    """The component's index within its node, or None if these labels are of no such component."""
    if kind == NODE:
        return ""
    if kind == NIC:
        device, port = labels.get("device"), labels.get("port")
        if not device or "gpu" in labels:
            return None
        return device if port in (None, "", "1") else f"{device}:{port}"
    if any(labels.get(part) for part in _PARTS):
        return None
    return labels.get("gpu") or None


def _nodes(places: Sequence[Place], resolve: Resolve, found: Components) -> list[str | None]:
    """The node of each place."""
    answers: dict[tuple[str, str], str | None] = {}
    unknown: set[str] = set()
    torn: list[str] = []
    nodes = []
    for place in places:
        says, asked = place.labels.get("Hostname", ""), place.target or place.labels.get("instance", "")
        if (says, asked) not in answers:
            by_says, by_asked = _resolve(says, resolve), _resolve(asked, resolve)
            if by_says and by_asked and by_says != by_asked:
                torn.append(f"{asked} (is {by_asked}) says it is {says}")
                answers[says, asked] = None
            else:
                answers[says, asked] = by_says or by_asked
                if not (by_says or by_asked):
                    unknown.add(says or _host(asked) or asked or "(no name)")
        nodes.append(answers[says, asked])
    if torn:
        found.problems.append(f"{len(torn)} sources name two nodes at once and were not used: {some(sorted(torn))}")
    found.unknown_names = tuple(sorted(unknown))
    return nodes


def _resolve(name: str, resolve: Resolve) -> str | None:
    """A node by a name that may carry a port."""
    return (resolve(name) or resolve(_host(name))) if name else None


def _host(name: str) -> str:
    """The host of `n3:9400` or `[fd00::3]:9400`; the name itself where there is no port."""
    host, colon, port = name.rpartition(":")
    return host.strip("[]") if colon and host and port.isdigit() else name


def _check_uuids(samples: Samples, found: Components) -> None:
    """Take out rows of a GPU that has left its slot; doubt a GPU that seems to be in two slots."""
    positions = found.of_place[GPU]
    newest = np.full(len(samples.places), -np.inf)
    np.maximum.at(newest, samples.place, samples.at)
    slots: dict[int, dict[str, float]] = defaultdict(dict)
    for number, place in enumerate(samples.places):
        uuid = place.labels.get("UUID", "")
        if uuid and positions[number] >= 0:
            seen = slots[int(positions[number])]
            seen[uuid] = max(seen.get(uuid, -np.inf), float(newest[number]))
    present: dict[int, str] = {}
    homes: dict[str, list[int]] = defaultdict(list)
    swapped, torn = [], []
    for slot, seen in slots.items():
        latest = max(seen.values())
        now = [uuid for uuid, at in seen.items() if at == latest]
        if len(now) > 1:
            found.doubtful[GPU].add(slot)
            torn.append(slot)
        elif len(seen) > 1:
            present[slot] = now[0]
            swapped.append(slot)
        for uuid in now:
            homes[uuid].append(slot)
    twice = {slot for uuid, places in homes.items() if len(places) > 1 for slot in places}
    found.doubtful[GPU] |= twice
    for number, place in enumerate(samples.places):
        slot = int(positions[number])
        if slot in present and place.labels.get("UUID", present[slot]) != present[slot]:
            positions[number] = -1
    for slots_, text in (
        (torn, "GPUs have two UUIDs at one index and were not used"),
        (swapped, "GPUs have an older series of another UUID, which was dropped"),
        (sorted(twice), "GPUs share a UUID with another and were not used"),
    ):
        if slots_:
            found.problems.append(f"{len(slots_)} {text}: {some([name_of(found.keys[GPU][s], GPU) for s in slots_])}")


def name_of(key: Key, kind: str) -> str:
    return key[0] if kind == NODE else f"{key[0]}/{kind}{key[1]}"


def some(names: Sequence[str], limit: int = 3) -> str:
    """The first few names, and how many more there are."""
    more = len(names) - limit
    return ", ".join(names[:limit]) + (f" and {more} more" if more > 0 else "")
