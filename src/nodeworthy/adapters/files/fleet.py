"""Read `fleet.toml`: what there should be, as people wrote it. Its keys are in `fleet_schema`.

All that is wrong is told at once, each with its line, field and remedy; a file with anything wrong yields no
fleet at all, because half a fleet would make the other half's faults invisible.

Node groups say a name of each node in one text (`exporter = "{name}:9400"`, `bmc = "10.1.0.[1-16]"`): with
`{name}` it is a pattern, without it is a node set that pairs with the group's nodes in order.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from nodeworthy.adapters.files import fleet_schema as schema
from nodeworthy.adapters.files.positions import Path as Place
from nodeworthy.adapters.files.positions import line_of, positions
from nodeworthy.errors import BadFile, BadRequest, NotKnown, Problem
from nodeworthy.model.fleet import MOST_PARTS, Fleet, Names, Node, NodeClass
from nodeworthy.model.nodeset import unfold
from nodeworthy.model.toml_text import read_toml

ENVIRONMENT: Final = "NODEWORTHY_FLEET"
SYSTEM: Final = Path("/etc/nodeworthy/fleet.toml")
HERE: Final = Path("fleet.toml")
NODE_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*")
_ENOUGH: Final = 200  # problems shown; a file with more has one cause


def find_fleet(given: str | Path | None = None, *, here: bool = True) -> Path:
    """Where the fleet file is: as given, $NODEWORTHY_FLEET, ./fleet.toml, /etc/nodeworthy/fleet.toml.

    `here` false leaves out the working directory: what decides over a fleet must not depend on where somebody stood
    when it was started, least of all in a directory that others may write. Raises NotKnown.
    """
    if given:
        return Path(given)
    if named := os.environ.get(ENVIRONMENT):
        return Path(named)
    searched = (HERE, SYSTEM) if here else (SYSTEM,)
    for path in searched:
        if path.is_file():
            return path
    places = " and ".join(str(path) if path.is_absolute() else f"./{path}" for path in searched)
    raise NotKnown(
        f"there is no fleet file: looked for {places}",
        hint=f"nodeworthy fleet import slurm, or name the file with --fleet or ${ENVIRONMENT}",
    )


def load_fleet(path: str | Path) -> Fleet:
    """The fleet that a file declares. Raises BadFile with everything that is wrong in it, or BadRequest."""
    return parse_fleet(read_text(path), str(path))


def read_text(path: str | Path) -> str:
    """A text file as UTF-8 (a byte-order mark is dropped)."""
    try:
        return Path(path).read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        problem = Problem(str(path), None, "", f"not UTF-8 at byte {error.start}", "save the file as UTF-8")
        raise BadFile([problem]) from error
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise BadRequest(f"cannot read {path}: {reason}", hint="check the path and its permissions") from error


def parse_fleet(text: str, file: str = "fleet.toml") -> Fleet:
    """The fleet that a text declares; `file` is only for messages."""
    document = read_toml(text, file)
    reader = _Reader(document)
    fleet = reader.fleet()
    if reader.problems:
        places = positions(text, document)
        problems = [
            Problem(file, line_of(places, place), _field(place), message, remedy)
            for place, message, remedy in reader.problems
        ]
        raise BadFile(sorted(problems, key=lambda p: p.line or 0)[:_ENOUGH])
    return fleet


def read_groups(document: Mapping[str, Any]) -> Fleet:
    """What the groups of a document say by themselves, without what is said of single nodes."""
    return _Reader({key: value for key, value in document.items() if key != "node"}).fleet()


def spread(text: str, names: Sequence[str]) -> list[str]:
    """One value a node, from a pattern with {name} or from a node set that pairs with `names`."""
    if schema.NAME_SLOT in text:
        return [text.replace(schema.NAME_SLOT, name) for name in names]
    values = unfold(text)
    if len(values) != len(names):
        raise BadRequest(f"{text!r} stands for {len(values)} names, the group has {len(names)} nodes")
    return list(values)


def _field(place: Place) -> str:
    return ".".join(str(part) for part in place)


# so like a known expectation that it is a slip and not a site's own word (`nvlink` for `nvlinks`)
_MISSPELT = 0.85


class _Reader:
    """Walks a parsed document and keeps every problem with its place."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self.document = document
        self.problems: list[tuple[Place, str, str]] = []
        self.group_of: dict[str, Place] = {}

    def wrong(self, place: Place, message: str, remedy: str) -> None:
        self.problems.append((place, message, remedy))

    def table(self, value: object, keys: Sequence[schema.Key], place: Place, extra: bool = False) -> dict[str, Any]:
        """The entries of a table that are well; the others are told. `extra`: further keys are welcome."""
        if not isinstance(value, dict):
            self.wrong(place, "should be a table", "see docs/reference/fleet-file.md")
            return {}
        known = {key.name: key for key in keys}
        good: dict[str, Any] = {}
        for name, entry in value.items():
            key = known.get(name)
            if key is None and not extra:
                self.wrong((*place, name), f"unknown key {name!r}", nearest(name, known))
            elif not _fits(entry, key.types if key else (int, float, str, bool)):
                wanted = " or ".join(t.__name__ for t in (key.types if key else (int, float, str, bool)))
                self.wrong((*place, name), f"should be {wanted}, is {type(entry).__name__}", "correct the value")
            else:
                good[name] = entry
        for key in keys:
            if key.required and key.name not in value:
                self.wrong(place, f"{key.name!r} is missing", f"add it: {key.help}")
        return good

    def texts(self, value: object, place: Place) -> dict[str, str]:
        """A table of texts (labels, names by cluster)."""
        if not isinstance(value, dict):
            return {}
        for name, entry in value.items():
            if not isinstance(entry, str) or not entry:
                self.wrong((*place, name), "should be a text that is not empty", "put it in quotes")
        return {name: entry for name, entry in value.items() if isinstance(entry, str) and entry}

    def names(self, text: str, place: Place) -> tuple[str, ...]:
        """A node set unfolded, each name fit to be a host name."""
        try:
            names = unfold(text)
        except BadRequest as error:
            self.wrong(place, str(error), error.hint)
            return ()
        if not names:
            self.wrong(place, "names no node", "write a node set such as n[1-16]")
        for name in names:
            if not NODE_NAME.fullmatch(name):
                self.wrong(place, f"not a node name: {name!r}", "use letters, digits, dot, dash and underscore")
                return ()
        return names

    def fleet(self) -> Fleet:
        top = self.table(self.document, schema.TOP, ())
        classes = {name: self.node_class(name, table) for name, table in top.get("classes", {}).items()}
        nodes: dict[str, Node] = {}
        for index, group in enumerate(top.get("nodes", [])):
            for node in self.group(group, ("nodes", index), classes):
                if node.name in nodes:
                    line_hint = f"it is already in {_field(self.group_of[node.name])}"
                    self.wrong(("nodes", index, "names"), f"node {node.name!r} is declared twice", line_hint)
                    continue
                nodes[node.name] = node
                self.group_of[node.name] = ("nodes", index)
        domains = self.domains(top.get("domains", {}), nodes)
        alone = top.get("node", {})
        for name in alone:
            if name not in nodes:
                self.wrong(("node", name), f"node {name!r} is not in any [[nodes]]", nearest(name, nodes))
        made = {n: self.alone(node, alone.get(n), domains.get(n, {})) for n, node in nodes.items()}
        self.unique(made)
        return Fleet(top.get("name", "fleet"), classes, made)

    def node_class(self, name: str, value: object) -> NodeClass:
        place: Place = ("classes", name)
        table = self.table(value, schema.CLASS, place)
        for key in ("gpus", "cpus", "memory_mb", "sockets"):
            if key in table and table[key] < (0 if key == "gpus" else 1):
                self.wrong((*place, key), f"cannot be {table[key]}", "leave it out if it is not known")
        if table.get("gpus", 0) > MOST_PARTS:
            self.wrong((*place, "gpus"), f"{table['gpus']} GPUs in one node", "count the GPUs of one node, not of all")
        if table.get("gpu_type") and not table.get("gpus"):
            self.wrong((*place, "gpu_type"), "names a GPU type, but the class has no GPUs", "add gpus = 8, or drop it")
        expect = self.table(table.pop("expect", {}), schema.EXPECT, (*place, "expect"), extra=True)
        self.nics(expect.get("nics"), (*place, "expect", "nics"))
        taken = {key.name for key in schema.CLASS} | {"name"}
        for key in taken & expect.keys():
            self.wrong((*place, "expect", key), f"{key!r} is no free expectation", "move it up into the class")
        known = [key.name for key in schema.EXPECT]
        for key in expect.keys() - set(known):
            near = difflib.get_close_matches(key, known, n=1, cutoff=_MISSPELT)
            if near:
                self.wrong((*place, "expect", key), f"no check knows {key!r}", f"did you mean {near[0]!r}?")
        return NodeClass(name, expect=expect, **table)

    def nics(self, text: object, place: Place) -> None:
        """The ports of a class become rows of every turn, so they are unfolded here and not only there."""
        if not isinstance(text, str):
            return
        try:
            ports = unfold(text)
        except BadRequest as error:
            self.wrong(place, str(error), "write the ports of one node as a set, such as mlx5_[0-7]")
            return
        if len(ports) > MOST_PARTS:
            self.wrong(place, f"{len(ports):,} ports in one node", "count the ports of one node, not of all")

    def group(self, value: object, place: Place, classes: Mapping[str, NodeClass]) -> list[Node]:
        table = self.table(value, schema.GROUP, place)
        names = self.names(table["names"], (*place, "names")) if "names" in table else ()
        node_class = table.get("class", "")
        if "class" in table and node_class not in classes:
            self.wrong((*place, "class"), f"class {node_class!r} is not declared", nearest(node_class, classes))
        labels = self.texts(table.get("labels", {}), (*place, "labels"))

        def each(text: str, key: str) -> list[str]:
            try:
                return spread(text, names)
            except BadRequest as error:
                if names:
                    self.wrong((*place, key), str(error), 'use a pattern such as "{name}:9400", or as many names')
                return [""] * len(names)

        clusters = self.texts(table.get("scheduler", {}), (*place, "scheduler"))
        by_cluster = {cluster: each(text, "scheduler") for cluster, text in clusters.items()}
        lists = {
            key: [each(text, key) for text in self.listed(table.get(key, []), (*place, key))]
            for key in ("syslog", "exporter")
        }
        bmc = each(table["bmc"], "bmc") if "bmc" in table else [""] * len(names)
        return [
            Node(
                name,
                node_class,
                names=Names(
                    {cluster: values[k] for cluster, values in by_cluster.items()},
                    tuple(values[k] for values in lists["syslog"]),
                    tuple(values[k] for values in lists["exporter"]),
                    bmc[k],
                ),
                labels=labels,
            )
            for k, name in enumerate(names)
        ]

    def listed(self, value: object, place: Place) -> tuple[str, ...]:
        """A text or a list of texts."""
        items = value if isinstance(value, list) else [value]
        for item in items:
            if not isinstance(item, str) or not item:
                self.wrong(place, "should be a text, or a list of texts, none of them empty", "put it in quotes")
        return tuple(item for item in items if isinstance(item, str) and item)

    def alone(self, node: Node, value: object, domains: Mapping[str, str]) -> Node:
        """A node with what is said of it alone: a name replaces the group's, labels add to them."""
        if value is None:
            return Node(node.name, node.node_class, "", node.names, domains, node.labels)
        place: Place = ("node", node.name)
        table = self.table(value, schema.NODE, place)
        names = node.names
        own = {key: self.listed(table[key], (*place, key)) for key in ("syslog", "exporter") if key in table}
        scheduler = names.scheduler
        if "scheduler" in table:
            scheduler = self.texts(table["scheduler"], (*place, "scheduler"))
        labels = {**node.labels, **self.texts(table.get("labels", {}), (*place, "labels"))}
        made = Names(
            scheduler,
            own.get("syslog", names.syslog),
            own.get("exporter", names.exporter),
            table.get("bmc", names.bmc),
        )
        return Node(node.name, node.node_class, table.get("serial", ""), made, domains, labels)

    def domains(self, kinds: Mapping[str, Any], nodes: Mapping[str, Node]) -> dict[str, dict[str, str]]:
        """Node → kind → domain. A node is in one domain of a kind."""
        found: dict[str, dict[str, str]] = {}
        for kind, table in kinds.items():
            if not isinstance(table, dict):
                self.wrong(("domains", kind), "should be a table", f'write [domains.{kind}] and a line: r1 = "n[1-8]"')
                continue
            for key, value in table.items():
                place: Place = ("domains", kind, key)
                for domain, members in self.members(key, value, place):
                    for name in members:
                        mine = found.setdefault(name, {})
                        if name not in nodes:
                            self.wrong(place, f"node {name!r} is not in any [[nodes]]", nearest(name, nodes))
                        elif kind in mine and mine[kind] != domain:
                            self.wrong(place, f"node {name!r} is also in {kind} {mine[kind]!r}", "keep it in one")
                        mine.setdefault(kind, domain)
        return found

    def members(self, key: str, value: object, place: Place) -> Iterable[tuple[str, Sequence[str]]]:
        """The domains of one line. With `each`, a set of domains takes the nodes in order, so many each."""
        table: dict[str, Any] = {"nodes": value}
        if not isinstance(value, str):
            table = self.table(value, schema.DOMAIN, place)
        if "nodes" not in table:
            return
        nodes = self.names(table["nodes"], place)
        each = table.get("each")
        if each is None:
            yield key, nodes
            return
        domains = self.names(key, place)
        if each < 1 or len(domains) != -(-len(nodes) // max(each, 1)):
            self.wrong(
                place,
                f"{len(nodes)} nodes, {each} each, do not fill {len(domains)} domains",
                "make the counts agree, or write a line a domain",
            )
            return
        for k, domain in enumerate(domains):
            yield domain, nodes[k * each : (k + 1) * each]

    def unique(self, nodes: Mapping[str, Node]) -> None:
        """No serial, and no name in one cluster or of one BMC, is given to two nodes."""
        owners: dict[tuple[str, str, str], str] = {}
        for node in nodes.values():
            claims = [("serial", "", node.serial), ("bmc", "", node.names.bmc.lower())]
            claims += [("scheduler", cluster, name) for cluster, name in node.names.scheduler.items()]
            for kind, cluster, value in claims:
                if not value:
                    continue
                owner = owners.setdefault((kind, cluster, value), node.name)
                if owner != node.name:
                    where = f" in cluster {cluster!r}" if cluster else ""
                    place = self.said_at(kind, node.name, owner)
                    self.wrong(place, f"{value!r}{where} is of {owner} and of {node.name}", "one of them is wrong")

    def said_at(self, kind: str, *names: str) -> Place:
        """Where a name is given to one of these nodes: at a node alone, if there, else at the group."""
        alone = self.document.get("node", {})
        for name in names:
            if kind in alone.get(name, {}):
                return ("node", name, kind)
        return (*self.group_of[names[0]], kind)


def _fits(value: object, types: tuple[type, ...]) -> bool:
    if isinstance(value, bool):
        return bool in types
    return isinstance(value, types)


def nearest(name: str, known: Iterable[str]) -> str:
    """What was probably meant."""
    names = list(known)
    near = difflib.get_close_matches(name, names if len(names) <= 2000 else names[:2000], n=1)
    if near:
        return f"did you mean {near[0]!r}?"
    if names and len(names) <= 12:
        return f"known are {', '.join(sorted(names))}"
    return "declare it, or drop the line"
