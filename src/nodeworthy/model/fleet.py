"""The declared fleet: what there should be. Expectations come from the class, never from a constant.

A `Fleet` is immutable and has a revision (a digest of its content). Partial knowledge is normal: a node
without a rack has an unknown rack, which is not "no shared domain".
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any

Expectation = float | int | str | bool

MOST_PARTS = 256  # GPUs or network ports in one node: more are a slip, and would be as many rows in every turn


@dataclass(frozen=True)
class NodeClass:
    """A kind of node. `expect` holds further expectations; all are seen by conditions as `class.NAME`."""

    name: str
    gpus: int = 0
    gpu_type: str = ""
    cpus: int | None = None
    memory_mb: int | None = None
    sockets: int | None = None
    expect: Mapping[str, Expectation] = field(default_factory=dict)

    def attributes(self) -> dict[str, Expectation | None]:
        """Name → value of everything this class expects."""
        return {
            "name": self.name,
            "gpus": self.gpus,
            "gpu_type": self.gpu_type or None,
            "cpus": self.cpus,
            "memory_mb": self.memory_mb,
            "sockets": self.sockets,
            **self.expect,
        }


@dataclass(frozen=True)
class Names:
    """What outside systems call a node. `scheduler` maps a cluster's name to its NodeName there."""

    scheduler: Mapping[str, str] = field(default_factory=dict)
    syslog: tuple[str, ...] = ()
    exporter: tuple[str, ...] = ()
    bmc: str = ""


@dataclass(frozen=True)
class Node:
    """A declared node. `serial` is the asset; empty where nobody has read it yet.

    `domains`: kind → name, for example rack → r12, leaf → leaf0003, feed → A, block → block01.
    """

    name: str
    node_class: str
    serial: str = ""
    names: Names = field(default_factory=Names)
    domains: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Fleet:
    name: str
    classes: Mapping[str, NodeClass]
    nodes: Mapping[str, Node]

    @cached_property
    def revision(self) -> str:
        text = json.dumps(asdict(self), sort_keys=True, separators=(",", ":"), default=str)
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    def class_of(self, node: str) -> NodeClass | None:
        declared = self.nodes.get(node)
        return self.classes.get(declared.node_class) if declared else None

    def domain(self, kind: str, name: str) -> tuple[str, ...]:
        """The nodes known to be in one failure domain."""
        return self._domains.get((kind, name), ())

    @cached_property
    def _domains(self) -> dict[tuple[str, str], tuple[str, ...]]:
        found: dict[tuple[str, str], list[str]] = {}
        for node in self.nodes.values():
            for domain in node.domains.items():
                found.setdefault(domain, []).append(node.name)
        return {domain: tuple(nodes) for domain, nodes in found.items()}


def fleet_from_plain(plain: Mapping[str, Any]) -> Fleet:
    """The fleet that `dataclasses.asdict` was taken of: as the record keeps old revisions."""
    classes = {name: NodeClass(**fields) for name, fields in plain["classes"].items()}
    nodes = {
        name: Node(**{**fields, "names": Names(**_tuples(fields["names"]))}) for name, fields in plain["nodes"].items()
    }
    return Fleet(plain["name"], classes, nodes)


def _tuples(names: Mapping[str, Any]) -> dict[str, Any]:
    return {key: tuple(value) if isinstance(value, list) else value for key, value in names.items()}
