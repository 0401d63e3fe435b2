"""Which nodes need a person first, why, and what to do: the top of the report.

Order: nodes that still take jobs and harm them (black holes, lemons in service), then marks that contradict
themselves, then marks that nobody will lift, then nodes out for a fault, then what was bad and may have been mended;
inside a class by GPU-hours lost. A node appears once, with all that is known against it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

import polars as pl

from nodeworthy.model.hold import OwnerKind
from nodeworthy.reports.audit.jobs import BlackHole
from nodeworthy.reports.audit.lemons import Lemon
from nodeworthy.reports.audit.present import OutNow

CLASSES = ("black-hole", "lemon", "contradictory", "orphaned", "out", "past")
RECENT_HOLE_S = 7 * 86400
RECENT_LEMON_S = 30 * 86400
"""What was seen last before that may have been mended since: worth a look, not worth haste."""


@dataclass(frozen=True, slots=True)
class NeedsPerson:
    """`why` is one sentence per finding; `next` is what to do first; `command` only reads."""

    node: str
    kind: str
    why: tuple[str, ...]
    next: str
    command: str
    lost_gpu_hours: float | None


NEXT = {
    "black-hole": "drain it, then look at the first seconds of the failed jobs there",
    "lemon": "take it out for a full test before it returns again",
    "contradictory": "find out which of the two is true, and correct the mark",
    "orphaned": "test it and return it, or write who has it and until when",
    "out": "name an owner and the next step",
    "past": "find out whether it was repaired since, and how",
}


def needs_person(
    out: tuple[OutNow, ...],
    lemons: tuple[Lemon, ...],
    holes: tuple[BlackHole, ...],
    fleet: pl.DataFrame,
    lost: Mapping[str, float],
    now: float,
) -> tuple[NeedsPerson, ...]:
    """All nodes that need a person, most urgent first."""
    out_names = {node.node for node in out}
    said: dict[str, list[tuple[str, str]]] = {}
    for hole in holes:
        recent = hole.last is not None and now - hole.last <= RECENT_HOLE_S
        where = "out" if hole.node in out_names else "black-hole" if recent else "past"
        said.setdefault(hole.node, []).append(
            (
                where,
                f"jobs of {hole.users} users died there within two minutes ({hole.fast_failures} jobs), last {_day(hole.last)}",
            )
        )
    for lemon in lemons:
        recent = now - max(e.at for e in lemon.events) <= RECENT_LEMON_S
        where = "out" if lemon.node in out_names else "lemon" if recent else "past"
        said.setdefault(lemon.node, []).append(
            (
                where,
                f"failed {lemon.failures} times, {lemon.score:.0f} x what its peers did, last {_day(max(e.at for e in lemon.events))}",
            )
        )
    for node in out:
        for kind, sentence in _of_out_node(node):
            said.setdefault(node.node, []).append((kind, sentence))
    known = set(fleet["node"]) | out_names
    rows = []
    for name, sentences in said.items():
        if known and name not in known:
            continue
        kind = min((k for k, _ in sentences), key=CLASSES.index)
        rows.append(
            NeedsPerson(
                node=name,
                kind=kind,
                why=tuple(text for _, text in sentences),
                next=NEXT[kind],
                command=f"scontrol show node {name}",
                lost_gpu_hours=lost.get(name),
            )
        )
    return tuple(sorted(rows, key=lambda r: (CLASSES.index(r.kind), -(r.lost_gpu_hours or 0.0), r.node)))


def _of_out_node(node: OutNow) -> list[tuple[str, str]]:
    age = "" if node.age_days is None else f" for {age_text(node.age_days)}"
    text = " ".join(node.reason.split())
    quoted = f": {text}" if text else ""
    whose = f" ({node.author})" if node.author and node.owner == OwnerKind.PERSON else ""
    odd = [("contradictory", sentence) for sentence in node.contradictory]
    odd += [("orphaned", sentence) for sentence in node.orphaned]
    if odd:
        kind = min((k for k, _ in odd), key=CLASSES.index)
        return [(kind, "; ".join(sentence for _, sentence in odd) + f" [out{age}{quoted}{whose}]")]
    if node.reads == "planned":
        return []
    return [("out", f"out{age}: {node.title}" + (f" [{text}{whose}]" if text else ""))]


def age_text(days: float) -> str:
    """`3 d`, `5 h`, `12 min`."""
    if days >= 1:
        return f"{days:.0f} d"
    if days * 24 >= 1:
        return f"{days * 24:.0f} h"
    return f"{days * 1440:.0f} min"


def _day(at: float | None) -> str:
    return "?" if at is None else f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d}"
