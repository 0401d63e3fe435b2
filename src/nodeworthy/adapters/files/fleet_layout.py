"""Lay a fleet out as few plain tables: what `fleet_write` then writes as TOML.

Nodes with the same class, labels and kinds of names become one group, names that follow a pattern become one
text, domains of equal size in order become one line; what fits no rule is said of the node alone. So 10,000
regular nodes are a few dozen lines. Nodes stay in the group in which somebody put them (`Old`).
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from nodeworthy.adapters.files.fleet import spread
from nodeworthy.adapters.files.fleet_schema import NAME_SLOT
from nodeworthy.errors import BadRequest
from nodeworthy.model.fleet import Fleet, Node, NodeClass
from nodeworthy.model.nodeset import fold, unfold
from nodeworthy.model.order import natural

Plain = dict[str, Any]
_LONG = 400  # characters: a longer node set is scattered, and reads better as lines of its own


@dataclass(frozen=True)
class Old:
    """How an old file arranged things: the group of each node, the node as the group alone says it, and the
    keys that are said of a node alone."""

    homes: Mapping[str, int] = field(default_factory=dict)
    base: Mapping[str, Node] = field(default_factory=dict)
    own: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


def layout(fleet: Fleet, old: Old | None = None) -> Plain:
    """The fleet as plain tables. Group i of an old file is entry i of `nodes`, or None where nothing is left."""
    old = old or Old()
    alone: dict[str, Plain] = {}
    shared: list[Node] = []
    for node in fleet.nodes.values():
        rest, own = _set_apart(node, old)
        shared.append(rest)
        if own:
            alone[node.name] = own
    latest = {_likeness(node): old.homes[node.name] for node in shared if node.name in old.homes}
    groups: dict[tuple[int, tuple[object, ...]], list[Node]] = {}
    for node in shared:
        likeness = _likeness(node)
        groups.setdefault((old.homes.get(node.name, latest.get(likeness, -1)), likeness), []).append(node)
    tables: list[tuple[int, int, Plain]] = []
    for (home, _), members in groups.items():
        table, said = _group(members)
        tables.append((home, len(members), table))
        for name, entry in said.items():
            alone.setdefault(name, {}).update(entry)
    plain: Plain = {
        "name": fleet.name,
        "classes": {name: _class(c) for name, c in fleet.classes.items()},
        "nodes": _placed(tables, old.homes),
        "domains": {kind: domain_lines(members) for kind, members in domains_of(fleet).items()},
        "node": alone,
    }
    return {key: value for key, value in plain.items() if value or key == "name"}


def _set_apart(node: Node, old: Old) -> tuple[Node, Plain]:
    """A node as its group says it, and what is said of it alone: its serial, and what was before."""
    own: Plain = {"serial": node.serial} if node.serial else {}
    base = old.base.get(node.name)
    said = old.own.get(node.name, {})
    if base is None:
        return node, own
    names, labels = node.names, node.labels
    for key in ("scheduler", "syslog", "exporter", "bmc"):
        value = getattr(names, key)
        if key in said and value and value != getattr(base.names, key):
            own[key] = said[key] if [said[key]] == list(value) else _plain(value)
            names = replace(names, **{key: getattr(base.names, key)})
    if "labels" in said and base.labels.keys() <= node.labels.keys():
        own["labels"] = {k: v for k, v in node.labels.items() if base.labels.get(k) != v}
        labels = base.labels
    return replace(node, names=names, labels=labels), own


def _placed(tables: Iterable[tuple[int, int, Plain]], homes: Mapping[str, int]) -> list[Any]:
    """Groups in the order of the old ones: of several that were one, the largest stays; None: nothing is left."""
    places: list[Plain | None] = [None] * (max(homes.values(), default=-1) + 1)
    new = []
    for home, _, table in sorted(tables, key=lambda t: -t[1]):
        if home >= 0 and places[home] is None:
            places[home] = table
        else:
            new.append(table)
    return places + sorted(new, key=lambda t: (t["class"], t["names"]))


def _class(node_class: NodeClass) -> Plain:
    entries: Plain = {"gpus": node_class.gpus or None, "gpu_type": node_class.gpu_type or None}
    entries |= {"cpus": node_class.cpus, "memory_mb": node_class.memory_mb, "sockets": node_class.sockets}
    entries["expect"] = dict(node_class.expect) or None
    return {key: value for key, value in entries.items() if value is not None}


def _likeness(node: Node) -> tuple[object, ...]:
    """Nodes that agree in this may share a group."""
    names = node.names
    return (
        node.node_class,
        tuple(sorted(node.labels.items())),
        tuple(sorted(names.scheduler)),
        len(names.syslog),
        len(names.exporter),
        bool(names.bmc),
    )


def _plain(value: Any) -> Any:
    """A node's names as TOML has them: one name of a list is a text."""
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, tuple):
        return value[0] if len(value) == 1 else list(value)
    return value


def _group(members: Sequence[Node]) -> tuple[Plain, dict[str, Plain]]:
    """One [[nodes]] table, and what must be said of single nodes because it follows no pattern."""
    by_name = {node.name: node for node in members}
    names = fold(by_name)
    order = unfold(names)
    if set(order) != set(by_name):
        raise BadRequest("a node's name cannot be written as a node set", hint="rename it: letters, digits, . - _")
    first = members[0]
    table: Plain = {"names": names, "class": first.node_class}
    if first.labels:
        table["labels"] = dict(sorted(first.labels.items()))
    own: dict[str, Plain] = {}

    def column(key: str, values: list[Any], text: Any) -> None:
        if text is not None:
            table[key] = text
        else:
            for name, value in zip(order, values, strict=True):
                own.setdefault(name, {})[key] = _plain(value)

    nodes = [by_name[name] for name in order]
    if first.names.scheduler:
        texts = {c: _pattern([n.names.scheduler[c] for n in nodes], order) for c in first.names.scheduler}
        column("scheduler", [n.names.scheduler for n in nodes], None if None in texts.values() else texts)
    for key in ("syslog", "exporter"):
        lists: list[tuple[str, ...]] = [getattr(n.names, key) for n in nodes]
        if lists[0]:
            found = [_pattern(list(values), order) for values in zip(*lists, strict=True)]
            text = None if None in found else found[0] if len(found) == 1 else found
            column(key, list(lists), text)
    if first.names.bmc:
        column("bmc", [n.names.bmc for n in nodes], _pattern([n.names.bmc for n in nodes], order))
    return table, own


def _pattern(values: list[str], names: Sequence[str]) -> str | None:
    """One text from which `spread` makes these values again, or None. A pattern with {name} is preferred."""

    def candidates() -> Iterator[str]:
        yield values[0].replace(names[0], NAME_SLOT)
        if len(set(values)) == len(values):
            yield fold(values)

    with contextlib.suppress(BadRequest):
        for text in candidates():
            if len(text) <= _LONG and _spreads(text, names, values):
                return text
    return None


def _spreads(text: str, names: Sequence[str], values: list[str]) -> bool:
    try:
        return spread(text, names) == values
    except BadRequest:
        return False


def domains_of(fleet: Fleet) -> dict[str, dict[str, list[str]]]:
    """Kind → domain → its nodes."""
    found: dict[str, dict[str, list[str]]] = {}
    for node in fleet.nodes.values():
        for kind, domain in node.domains.items():
            found.setdefault(kind, {}).setdefault(domain, []).append(node.name)
    return found


def domain_lines(members: Mapping[str, Sequence[str]]) -> Plain:
    """Domains as lines: runs of equal size whose nodes go on in order become one line."""
    lines: Plain = {}
    ordered = {domain: sorted(nodes, key=natural) for domain, nodes in members.items()}
    run: list[str] = []
    for domain in sorted(members, key=natural):
        if run and not _goes_on(run, domain, ordered):
            lines.update(_run_lines(run, ordered))
            run = []
        run.append(domain)
    return {**lines, **_run_lines(run, ordered)}


def _run_lines(run: Sequence[str], members: Mapping[str, Sequence[str]]) -> Plain:
    """A run of domains as one line, or as a line each where it is short or would not read back."""
    nodes = [name for domain in run for name in members[domain]]
    if len(run) >= 3:
        names, domains = fold(nodes), fold(run)
        if list(unfold(names)) == nodes and list(unfold(domains)) == list(run):
            return {domains: {"nodes": names, "each": len(members[run[0]])}}
    return {domain: fold(members[domain]) for domain in run}


_ONE_STEM = re.compile(r"[^,\[\]]*(\[\d+-\d+\][^,\[\]]*)+")


def _goes_on(run: Sequence[str], domain: str, members: Mapping[str, Sequence[str]]) -> bool:
    """Whether the next domain belongs to a run: same stem, same size (the last may be smaller), nodes in order.

    Only the seam is looked at, so that the cost does not grow with the run.
    """
    previous, each = run[-1], len(members[run[0]])
    if len(members[previous]) != each or len(members[domain]) > each:
        return False
    try:
        texts = (fold([previous, domain]), fold([*members[previous], *members[domain]]))
    except BadRequest:
        return False
    return all(_ONE_STEM.fullmatch(text) for text in texts)
