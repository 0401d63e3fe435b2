"""What differs between the declared fleet and what a source lists now, and the fleet with that taken over.

Only what the source says is compared: a source that knows no racks moves nothing, a source that lists one
cluster misses no node of another. A node is matched by its name in the source's cluster, then by its serial
(so a renamed node is renamed and not replaced), then by its own name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from nodeworthy.decide.fleet_import import Listed, differences, fleet_from
from nodeworthy.errors import BadRequest
from nodeworthy.model.fleet import Fleet, Names, Node


@dataclass(frozen=True, slots=True)
class Change:
    """One difference. `kind`: added | gone | renamed | class | moved | serial | names. `was`, `now`: in words."""

    node: str
    kind: str
    was: str = ""
    now: str = ""


def match(declared: Fleet, listed: Sequence[Listed], cluster: str = "") -> dict[str, str]:
    """Listed name → declared node. No declared node is matched twice."""
    by_scheduler = {n.names.scheduler[cluster]: n.name for n in declared.nodes.values() if cluster in n.names.scheduler}
    by_serial = {n.serial: n.name for n in declared.nodes.values() if n.serial}

    def by_own_name(node: Listed) -> str | None:
        """Unless that name is declared for a node of another cluster, or for another asset than the one listed."""
        same = declared.nodes.get(node.name)
        if same is None or _elsewhere(same, cluster):
            return None
        other_asset = same.serial and node.serial and same.serial != node.serial and node.serial in by_serial
        return None if other_asset else same.name

    found: dict[str, str] = {}
    taken: set[str] = set()
    for lookup in (lambda node: by_scheduler.get(node.name), lambda node: by_serial.get(node.serial), by_own_name):
        for node in listed:
            name = lookup(node)
            if name and node.name not in found and name not in taken:
                found[node.name] = name
                taken.add(name)
    return found


def _elsewhere(node: Node, cluster: str) -> bool:
    """Whether a node is of other clusters only."""
    return bool(cluster and node.names.scheduler and cluster not in node.names.scheduler)


def compare(declared: Fleet, listed: Sequence[Listed], cluster: str = "") -> tuple[Change, ...]:
    """Every difference, by node."""
    matched = match(declared, listed, cluster)
    changes: list[Change] = []
    for node in listed:
        name = matched.get(node.name)
        if name is None:
            changes.append(Change(node.name, "added", now=node.node_class or "new"))
        else:
            changes += _changes(declared, declared.nodes[name], node, cluster)
    present = set(matched.values())
    for known in declared.nodes.values():
        if known.name not in present and not _elsewhere(known, cluster):
            changes.append(Change(known.name, "gone", was=known.node_class))
    return tuple(sorted(changes, key=lambda c: (c.node, c.kind)))


def _changes(declared: Fleet, known: Node, node: Listed, cluster: str) -> list[Change]:
    found: list[Change] = []
    called = known.names.scheduler.get(cluster, known.name)
    if node.name != called:
        found.append(Change(known.name, "renamed", called, node.name))
    if _class_changed(declared, known, node):
        words = "; ".join(differences(node, declared.classes[known.node_class]))
        found.append(Change(known.name, "class", known.node_class, node.node_class or words))
    for kind, domain in node.domains.items():
        if known.domains.get(kind) != domain:
            found.append(Change(known.name, "moved", f"{kind} {known.domains.get(kind, '?')}", f"{kind} {domain}"))
    if node.serial and node.serial != known.serial:
        found.append(Change(known.name, "serial", known.serial, node.serial))
    merged = _names(known, node)
    if merged != known.names:
        found.append(Change(known.name, "names", _words(known.names), _words(merged)))
    return found


def _class_changed(declared: Fleet, known: Node, node: Listed) -> bool:
    if node.node_class:
        return node.node_class != known.node_class
    return bool(differences(node, declared.classes[known.node_class]))


def _names(known: Node, node: Listed) -> Names:
    """What is declared, with what the source says; a source that is silent about a name takes none away."""
    mine, theirs = known.names, node.names
    scheduler = {**mine.scheduler, **theirs.scheduler}
    if not mine.scheduler and set(theirs.scheduler.values()) <= {known.name}:
        scheduler = {}  # without a word in the fleet file, every cluster knows the node by its own name
    return Names(
        scheduler,
        mine.syslog + tuple(n for n in theirs.syslog if n not in mine.syslog),
        mine.exporter + tuple(n for n in theirs.exporter if n not in mine.exporter),
        theirs.bmc or mine.bmc,
    )


def _words(names: Names) -> str:
    parts = [f"{cluster}:{name}" for cluster, name in sorted(names.scheduler.items())]
    return " ".join([*parts, *names.syslog, *names.exporter, *([names.bmc] if names.bmc else [])])


def merge(declared: Fleet, listed: Sequence[Listed], cluster: str = "", prune: bool = False) -> Fleet:
    """The declared fleet with a source's differences taken over. Nodes that are gone stay, unless `prune`:
    a node that a source has lost should be seen as unknown, not be forgotten.

    A new node whose name another cluster's node bears is called CLUSTER-NAME. Raises BadRequest where a node that
    is gone would have to share its name with another asset.
    """
    matched = match(declared, listed, cluster)
    fresh = fleet_from(declared.name, listed, declared.classes)
    gone = {c.node for c in compare(declared, listed, cluster) if c.kind == "gone"}
    listed_as: Mapping[str, Listed] = {matched[node.name]: node for node in listed if node.name in matched}
    nodes: dict[str, Node] = {}
    for known in declared.nodes.values():
        node = listed_as.get(known.name)
        made = known
        if node is not None:
            made = _merged(declared, known, node, cluster, fresh.nodes[node.name].node_class)
        elif prune and known.name in gone:
            continue
        if made.name in nodes:
            raise _two_assets(made.name)
        nodes[made.name] = made
    for node in listed:
        if node.name not in matched:
            name = node.name
            if name in nodes and cluster and _elsewhere(nodes[name], cluster):
                name = f"{cluster}-{name}"
            if name in nodes:
                raise _two_assets(name)
            nodes[name] = replace(fresh.nodes[node.name], name=name)
    return Fleet(declared.name, {**declared.classes, **fresh.classes}, nodes)


def _two_assets(name: str) -> BadRequest:
    return BadRequest(
        f"{name} would be the name of two nodes: one that is declared and not listed now, and one that is listed",
        hint="rename the declared one in the fleet file, or drop the nodes that are gone with --prune",
    )


def _merged(declared: Fleet, known: Node, node: Listed, cluster: str, node_class: str) -> Node:
    return replace(
        known,
        name=known.name if cluster in known.names.scheduler else node.name,
        node_class=node_class if _class_changed(declared, known, node) else known.node_class,
        serial=node.serial or known.serial,
        names=_names(known, node),
        domains={**known.domains, **node.domains},
        labels={**known.labels, **node.labels},
    )
