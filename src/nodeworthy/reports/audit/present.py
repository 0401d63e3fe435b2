"""Who is out now, whose mark it is, and which marks no longer make sense.

*Orphaned*: nobody will lift this mark by itself, because its cause is gone (the node answers again, its GPUs are counted again,
the reboot happened) or nobody owns it (no text, an author who no longer exists, or a person's mark older than
OLD_DAYS). *Contradictory*: what is said and what is so exclude each other. Both are reasons to look, never
to lift: the text may hide a second cause.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from nodeworthy.model.scheduler import SchedulerNode
from nodeworthy.reports.audit.inputs import AuditInput, Reading
from nodeworthy.reports.audit.outages import kind_now, out_now

OLD_DAYS = 30
"""Older than a month: longer than vendors' part replacements take (tray swaps take hours, parts days; facts of published
fleets), so somebody has forgotten it or it waits for something that nobody tracks here."""
EMPTY = frozenset({"", "none", "n/a", "-", ".", "reason unknown", "unknown"})
NOT_RESPONDING = re.compile(r"not responding|unexpectedly rebooted|no response", re.IGNORECASE)
INVALID = re.compile(r"count reported lower than configured|low (realmemory|cpus|sockets|tmpdisk)", re.IGNORECASE)
REBOOT = re.compile(r"\breboot", re.IGNORECASE)
SAYS_WELL = re.compile(
    r"\b(fixed|resolved|repaired|ready to return|return(ed)? to service|all good|tests? pass(ed)?)\b", re.IGNORECASE
)


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
    reason = node.mark.reason if node.mark else ""
    author = node.mark.user if node.mark else None
    at = node.mark.at if node.mark else None
    reading = given.read(reason, author)
    age = None if at is None else max(0.0, (given.window.until - at) / 86400)
    return OutNow(
        node=node.name,
        gpus=node.gpus,
        state=node.state,
        kind=kind_now(node),
        cause=reading.cause,
        title=reading.title,
        reads=reading.kind,
        owner=reading.owner,
        author=author,
        reason=reason,
        since=at,
        age_days=age,
        busy=node.busy,
        orphaned=tuple(_orphaned(node, reason, author, age, reading, given)),
        contradictory=tuple(_contradictory(node, reason, given.nodes or {})),
    )


def _orphaned(
    node: SchedulerNode, reason: str, author: str | None, age: float | None, reading: Reading, given: AuditInput
) -> list[str]:
    said: list[str] = []
    gone = (
        NOT_RESPONDING.search(reason) and not node.has("NOT_RESPONDING") and node.base.value not in ("DOWN", "UNKNOWN")
    )
    if gone:
        said.append("it answers again")
    if INVALID.search(reason) and not node.has("INVALID_REG"):
        said.append("the scheduler no longer finds its registration invalid")
    if _rebooted(node, reason):
        said.append("it has rebooted since")
    if reason.strip().lower() in EMPTY and node.has("DRAIN"):
        said.append("nobody wrote why")
    if author is not None and author in given.left_authors:
        said.append(f"its author {author} no longer has an account")
    if reading.owner == "person" and age is not None and age > OLD_DAYS:
        said.append(f"a person's mark older than {OLD_DAYS} days")
    return said


def _rebooted(node: SchedulerNode, reason: str) -> bool:
    at = node.mark.at if node.mark else None
    booted = node.boot_at is not None and at is not None and node.boot_at > at + 1
    return bool(REBOOT.search(reason)) and booted and not (node.has("REBOOT_ISSUED") or node.has("REBOOT_REQUESTED"))


def _contradictory(node: SchedulerNode, reason: str, nodes: Mapping[str, SchedulerNode]) -> list[str]:
    said: list[str] = []
    if SAYS_WELL.search(reason) and not re.search(
        r"\b(not|un)\s*(yet\s+)?(fixed|resolved|repaired)", reason, re.IGNORECASE
    ):
        said.append("its reason says that it is well, and it is still out")
    if node.base.value == "DOWN" and (node.gpus_used or 0) > 0:
        said.append("it is down and its GPUs are still given to jobs")
    if node.base.value == "DOWN" and node.has("DRAIN") and node.has("POWERED_DOWN"):
        said.append("it is drained, down and powered off: nobody can prove it")
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
