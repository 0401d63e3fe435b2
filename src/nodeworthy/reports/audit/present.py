"""Who is out now, whose mark it is, and which marks no longer make sense.

`decide.marks` reads a mark against the node's state. Added here is what takes an audit's view: age, authors who left,
texts that say well, texts about another node. Both *orphaned* and *contradictory* are reasons to look, never to lift.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from nodeworthy.decide.marks import classify
from nodeworthy.model.hold import OwnerKind
from nodeworthy.model.scheduler import SchedulerNode
from nodeworthy.reports.audit.inputs import AuditInput
from nodeworthy.reports.audit.outages import kind_of, out_now
from nodeworthy.reports.audit.reading import Reading, of_view

OLD_DAYS = 30
"""A choice, not a measurement: published tray swaps take hours (field ranges for GB200), parts take days, so after a month
somebody has forgotten the mark or waits for something that nobody tracks here."""
SAYS_WELL = re.compile(
    r"\b(fixed|resolved|repaired|ready to return|return(ed)? to service|all good|tests? pass(ed)?)\b", re.IGNORECASE
)


SAYS_NOT_YET = re.compile(r"\b(not|un|until|when|once|if|after)\b|\?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class OutNow:
    """A node that takes no new work. `busy`: jobs still run. `since` is when its mark was written; None: not known."""

    node: str
    gpus: int | None
    state: str
    kind: str
    cause: str
    title: str
    reads: str
    owner: str
    author: str | None
    reason: str
    since: float | None
    age_days: float | None
    busy: bool
    orphaned: tuple[str, ...]
    contradictory: tuple[str, ...]


def out_nodes(given: AuditInput) -> tuple[OutNow, ...]:
    """The nodes out now, oldest first; those of unknown age last."""
    rows = [_out(node, given) for node in (given.nodes or {}).values() if out_now(node)]
    return tuple(sorted(rows, key=lambda r: (r.since is None, r.since or 0.0, r.node)))


def _out(node: SchedulerNode, given: AuditInput) -> OutNow:
    view = classify(node, given.normalise, given.window.until)
    reading = of_view(view) if view else Reading("", "No mark", "unknown", "")
    reason, author = (view.reason, view.user) if view else ("", None)
    age = view.age_s / 86400 if view and view.age_s is not None else None
    orphaned = [*(view.orphaned_because if view else ()), *_forgotten(author, age, reading, given)]
    contradictory = [*(view.contradictory if view else ()), *_contradictory(node, reason, given.nodes or {})]
    return OutNow(
        node=node.name,
        gpus=node.gpus,
        state=node.state,
        kind=kind_of(node.base, node.flags),
        cause=reading.cause,
        title=reading.title,
        reads=reading.kind,
        owner=reading.owner,
        author=author,
        reason=reason,
        since=view.at if view else None,
        age_days=age,
        busy=node.busy,
        orphaned=tuple(orphaned),
        contradictory=tuple(contradictory),
    )


def _forgotten(author: str | None, age: float | None, reading: Reading, given: AuditInput) -> list[str]:
    said: list[str] = []
    if author is not None and author in given.left_authors:
        said.append(f"its author {author} no longer has an account")
    if reading.owner in (OwnerKind.PERSON, OwnerKind.SOMEONE) and age is not None and age > OLD_DAYS:
        said.append(f"somebody's mark, older than {OLD_DAYS} days")
    return said


def _contradictory(node: SchedulerNode, reason: str, nodes: Mapping[str, SchedulerNode]) -> list[str]:
    said: list[str] = []
    if SAYS_WELL.search(reason) and not SAYS_NOT_YET.search(reason):
        said.append("its reason says that it is well, and it is still out")
    if node.base.value == "DOWN" and (node.gpus_used or 0) > 0:
        said.append("it is down and its GPUs are still given to jobs")
    spoken_of = {word.strip(".:") for word in re.findall(r"[\w.:-]+", reason)} & nodes.keys()
    if spoken_of and node.name not in spoken_of:
        said.append(f"its reason speaks of another node ({min(spoken_of)})")
    return said


def stale_texts(given: AuditInput) -> tuple[tuple[str, str], ...]:
    """Nodes in service that still carry a reason: (node, text)."""
    return tuple(
        (n.name, n.mark.reason)
        for n in (given.nodes or {}).values()
        if n.mark is not None and n.mark.reason and not out_now(n) and not n.has("MAINTENANCE")
        and not n.has("POWERED_DOWN") and not n.has("POWERING_DOWN")
        and not n.has("REBOOT_REQUESTED")
    )  # fmt: skip
