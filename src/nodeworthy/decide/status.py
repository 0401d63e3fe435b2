"""The one word for each node: scheduler state, marks and findings → serving, suspect, out, failed or unknown.

The scheduler's own flags come first, because they say what is so; findings can only make a serving node suspect.
What is not known is said: no scheduler answer, a node the scheduler does not list, telemetry that ought to be there
and is not.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from nodeworthy.decide.marks import MARKED_FLAGS, MarkView
from nodeworthy.model.finding import Finding, Severity, Verdict
from nodeworthy.model.hold import Owner, OwnerKind
from nodeworthy.model.scheduler import BaseState, SchedulerNode
from nodeworthy.model.status import NodeState, NodeStatus

SCHEDULER = Owner(OwnerKind.SCHEDULER, "slurm")
NO_SCHEDULER = "no scheduler is configured"
NOT_LISTED = "the scheduler does not list this node"
ADVERSE = frozenset({Severity.ERROR, Severity.FATAL})
POWER_FLAGS = frozenset({"POWERED_DOWN", "POWERING_DOWN", "POWER_DOWN", "POWERING_UP", "POWER_UP"})


def statuses(
    names: Iterable[str],
    nodes: Mapping[str, SchedulerNode],
    marks: Mapping[str, MarkView],
    findings: Iterable[Finding],
    blind: Mapping[str, str],
    no_scheduler: str,
) -> dict[str, NodeStatus]:
    """A status for every name. `no_scheduler` says why no node is listed, empty where the scheduler answers."""
    by_node: dict[str, list[Finding]] = defaultdict(list)
    for finding in findings:
        if finding.component.owner_node is not None:
            by_node[finding.component.owner_node].append(finding)
    return {
        name: status_of(
            name, nodes.get(name), marks.get(name), by_node.get(name, ()), blind.get(name, ""), no_scheduler
        )
        for name in names
    }


def dated(
    words: Mapping[str, NodeStatus],
    shown: Mapping[str, NodeStatus],
    told: Mapping[str, NodeStatus],
    now: float,
    *,
    first: bool,
) -> dict[str, NodeStatus]:
    """The statuses with `since` for those that no mark and no finding dates.

    A state that goes on keeps its beginning, over a restart (`told`) and over a time without sight too; one that
    is new begins now. In the first turn nobody knows for how long it has been so.
    """
    return {name: _dated(status, shown.get(name), told.get(name), now, first) for name, status in words.items()}


def _dated(
    status: NodeStatus, shown: NodeStatus | None, told: NodeStatus | None, now: float, first: bool
) -> NodeStatus:
    if status.since is not None:
        return status
    if told is not None and told.state is status.state:
        return replace(status, since=told.since)
    if first or shown is None:
        return status
    return replace(status, since=shown.since if shown.state is status.state else now)


def status_of(
    name: str,
    node: SchedulerNode | None,
    mark: MarkView | None,
    findings: Sequence[Finding],
    blind: str = "",
    no_scheduler: str = "",
) -> NodeStatus:
    """`node` is None where the scheduler does not list it, or does not answer (`no_scheduler` says why).
    `blind` says why its telemetry is not seen."""
    adverse = [f for f in findings if f.verdict is Verdict.TRUE and f.severity in ADVERSE]
    if no_scheduler == NO_SCHEDULER:
        told = "whether it takes work is not known: no scheduler is configured"
        return _suspect(name, adverse) if adverse else NodeStatus(name, NodeState.UNKNOWN, told)
    if no_scheduler:
        return NodeStatus(name, NodeState.UNKNOWN, no_scheduler, next="mend the way to the scheduler first")
    if node is None:
        return NodeStatus(name, NodeState.UNKNOWN, NOT_LISTED, next="compare its name in the fleet file with Slurm's")
    state, reason, owner = _by_scheduler(node, mark)
    if state is not NodeState.SERVING:
        since = node.mark.at if node.mark and _by_mark(node) else None
        return NodeStatus(name, state, reason, owner, since, _next(state, owner, node))
    if adverse:
        return _suspect(name, adverse)
    if blind:
        hint = "see why it is not seen: its exporter, the way to it, or the node itself; nothing is held against it"
        return NodeStatus(name, NodeState.UNKNOWN, blind, next=hint)
    leftover = "find out whether its reason is left over, or the node should be out" if mark and mark.reason else ""
    return NodeStatus(name, NodeState.SERVING, "", next=leftover)


def _suspect(name: str, adverse: Sequence[Finding]) -> NodeStatus:
    worst = min(adverse, key=lambda f: (f.severity is not Severity.FATAL, f.since, f.key))
    last_known = f" (last known: {worst.unknown.value} now)" if worst.unknown else ""
    return NodeStatus(name, NodeState.SUSPECT, worst.summary + last_known, None, worst.since, worst.action)


def still_dark(before: Mapping[str, NodeStatus]) -> dict[str, str]:
    """The nodes that were unknown stay so, with this reason: for while telemetry that was lost when we stopped has
    not been tried since the start."""
    return {n: "it has not been looked at since the start" for n, s in before.items() if s.state is NodeState.UNKNOWN}


def _by_mark(node: SchedulerNode) -> bool:
    """Whether the state is the one that the reason was written for, so that the mark's time is its beginning."""
    return not MARKED_FLAGS.isdisjoint(node.flags) or node.base in (BaseState.DOWN, BaseState.ERROR)


def _by_scheduler(node: SchedulerNode, mark: MarkView | None) -> tuple[NodeState, str, Owner | None]:
    text = node.mark.reason if node.mark else ""
    owner = mark.owner if mark else None
    if node.base is BaseState.UNKNOWN or node.base is BaseState.FUTURE:
        return NodeState.UNKNOWN, f"the scheduler says {node.state}: it has not registered yet", SCHEDULER
    if node.has("INVALID_REG"):
        return NodeState.FAILED, text or "it registers less than the scheduler's configuration says", owner or SCHEDULER
    if node.has("REBOOT_ISSUED") or node.has("REBOOT_REQUESTED"):
        done = "issued" if node.has("REBOOT_ISSUED") else "requested"
        return NodeState.OUT, f"reboot {done}: {text}" if text else f"reboot {done}", owner
    if node.base in (BaseState.DOWN, BaseState.ERROR):
        return NodeState.FAILED, text or "down, no reason given", owner or SCHEDULER
    if node.has("NOT_RESPONDING"):
        return NodeState.FAILED, text or "its slurmd does not answer", SCHEDULER
    if node.has("DRAIN") or node.has("FAIL"):
        word = "draining" if node.draining else "drained" if node.has("DRAIN") else "set to fail"
        return NodeState.OUT, text or f"{word}, no reason given", owner
    if node.has("MAINTENANCE") or node.has("RESERVED"):
        what = "maintenance reservation" if node.has("MAINTENANCE") else "reservation"
        return (
            NodeState.OUT,
            f"{what} {node.reservation or ''}".rstrip(),
            Owner(OwnerKind.RESERVATION, node.reservation or ""),
        )
    if not POWER_FLAGS.isdisjoint(node.flags):
        return (
            NodeState.OUT,
            "power saving: " + ", ".join(sorted(POWER_FLAGS & node.flags)).lower().replace("_", " "),
            SCHEDULER,
        )
    return NodeState.SERVING, "", None


def _next(state: NodeState, owner: Owner | None, node: SchedulerNode) -> str:
    if state is NodeState.UNKNOWN:
        return "look at its console: it may not have booted, or its slurmd may not run"
    if node.has("REBOOT_ISSUED"):
        return "wait for its boot; Slurm calls it down when ResumeTimeout is over"
    if node.has("REBOOT_REQUESTED"):
        return "nothing for now: Slurm reboots it when its jobs have ended"
    if state is NodeState.OUT and owner == SCHEDULER and not POWER_FLAGS.isdisjoint(node.flags):
        return "nothing: Slurm starts it when a job needs it"
    return "find out who asked for it" if owner is None else _ask(owner, node)


def _ask(owner: Owner, node: SchedulerNode) -> str:
    """What to do about a mark, by whose it is."""
    match owner.kind:
        case OwnerKind.PERSON:
            return f"ask {owner.name}; only they or a colleague should lift it"
        case OwnerKind.SCHEDULER if node.has("DRAIN") or node.has("INVALID_REG"):
            return "mend the cause that the reason names, then resume it; Slurm does not by itself"
        case OwnerKind.SCHEDULER:
            return "see whether the machine runs (console, BMC) and its slurmd on it"
        case OwnerKind.HEALTH_PROGRAM:
            return f"see what {owner.name or 'the health program'} found"
        case OwnerKind.NODEWORTHY:
            return "see the hold"
        case OwnerKind.RESERVATION:
            return f"see whose it is and when it ends: scontrol show reservation {owner.name}".rstrip()
        case OwnerKind.SOMEONE:
            return "the slot says root, which proves nobody: ask around before you resume it"
