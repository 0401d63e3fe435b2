"""The one word for each node: scheduler state, marks and findings → serving, suspect, out, failed or unknown.

The scheduler's own flags come first, because they say what is so; findings can only make a serving node suspect.
What is not known is said: no scheduler answer, a node the scheduler does not list, telemetry that ought to be there
and is not.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from nodeworthy.decide.marks import MarkView
from nodeworthy.model.finding import Finding, Severity, Verdict
from nodeworthy.model.hold import Owner, OwnerKind
from nodeworthy.model.scheduler import BaseState, SchedulerNode
from nodeworthy.model.status import NodeState, NodeStatus

SCHEDULER = Owner(OwnerKind.SCHEDULER, "slurm")
ADVERSE = frozenset({Severity.ERROR, Severity.FATAL})
POWER_FLAGS = frozenset({"POWERED_DOWN", "POWERING_DOWN", "POWER_DOWN", "POWERING_UP", "POWER_UP"})

# what the scheduler itself says of a node tells more than whose mark it is; the first that is set counts
NEXT_BY_FLAG = {
    "REBOOT_ISSUED": "it should come back by itself; if it does not, look at its console",
    "REBOOT_REQUESTED": "it reboots once its jobs have ended",
    "INVALID_REG": "see what is missing on the node itself; when that is mended restart its slurmd, then resume it",
    "NOT_RESPONDING": "look whether the machine is up and its slurmd runs",
}


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
        by_node[finding.component.node].append(finding)
    return {
        name: status_of(
            name, nodes.get(name), marks.get(name), by_node.get(name, ()), no_scheduler or blind.get(name, "")
        )
        for name in names
    }


def still_dark(before: Mapping[str, NodeStatus]) -> dict[str, str]:
    """The nodes that were unknown stay so, with this reason, while telemetry has not been tried since a start."""
    return {n: "it has not been looked at since the start" for n, s in before.items() if s.state is NodeState.UNKNOWN}


def status_of(
    name: str,
    node: SchedulerNode | None,
    mark: MarkView | None,
    findings: Sequence[Finding],
    blind: str,
) -> NodeStatus:
    """`node` is None where the scheduler does not list it or does not answer; `blind` says what is not seen."""
    if node is None:
        return NodeStatus(
            name,
            NodeState.UNKNOWN,
            blind or "the scheduler does not list this node",
            next="check the name in the fleet file, or why the scheduler is silent",
        )
    state, reason, owner = _by_scheduler(node, mark)
    since = node.mark.at if node.mark and state is not NodeState.SERVING else None
    if state is not NodeState.SERVING:
        return NodeStatus(name, state, reason, owner, since, _next(node, state, owner))
    adverse = [f for f in findings if f.verdict is Verdict.TRUE and f.severity in ADVERSE]
    if adverse:
        worst = min(adverse, key=lambda f: (f.severity is not Severity.FATAL, f.since))
        return NodeStatus(name, NodeState.SUSPECT, worst.summary, None, worst.since, worst.action)
    if blind:
        return NodeStatus(name, NodeState.UNKNOWN, blind, next="mend the source; nothing is held against the node")
    return NodeStatus(name, NodeState.SERVING, "")


def _by_scheduler(node: SchedulerNode, mark: MarkView | None) -> tuple[NodeState, str, Owner | None]:
    text = node.mark.reason if node.mark else ""
    owner = mark.owner if mark else None
    if node.base is BaseState.UNKNOWN or node.base is BaseState.FUTURE:
        return NodeState.UNKNOWN, f"the scheduler says {node.state}: it has not registered yet", SCHEDULER
    if node.has("INVALID_REG"):
        return NodeState.FAILED, text or "it registers less than the scheduler's configuration says", owner or SCHEDULER
    if node.has("REBOOT_ISSUED") or node.has("REBOOT_REQUESTED"):
        done = "issued" if node.has("REBOOT_ISSUED") else "requested"
        said = text if text.endswith(f"reboot {done}") else f"reboot {done}: {text}"  # newer versions say so themselves
        return NodeState.OUT, said if text else f"reboot {done}", owner
    if node.base in (BaseState.DOWN, BaseState.ERROR):
        return NodeState.FAILED, text or "down, no reason given", owner or SCHEDULER
    if node.has("NOT_RESPONDING"):
        return NodeState.FAILED, text or "its slurmd does not answer", SCHEDULER
    if node.has("DRAIN") or node.has("FAIL"):
        word = "draining" if node.draining else "drained" if node.has("DRAIN") else "set to fail"
        return NodeState.OUT, text or f"{word}, no reason given", owner
    if node.has("MAINTENANCE") or node.has("RESERVED"):
        kind = "maintenance " if node.has("MAINTENANCE") else ""
        return NodeState.OUT, f"{kind}{_reservation(node)}", Owner(OwnerKind.PERSON, _reservation(node))
    if not POWER_FLAGS.isdisjoint(node.flags):
        return NodeState.OUT, "power saving: " + ", ".join(sorted(POWER_FLAGS & node.flags)).lower(), SCHEDULER
    return NodeState.SERVING, "", None


def _reservation(node: SchedulerNode) -> str:
    return f"reservation {node.reservation or ''}".rstrip()


def _next(node: SchedulerNode, state: NodeState, owner: Owner | None) -> str:
    if state is NodeState.UNKNOWN:
        return "look at it: it may not have booted"
    told = next((text for flag, text in NEXT_BY_FLAG.items() if node.has(flag)), "")
    if told:
        return told
    if owner is not None and owner.name == _reservation(node):
        return f"scontrol show reservation {node.reservation or ''}".rstrip() + " tells for whom and until when"
    if owner is None:
        return "find out whose mark it is"
    match owner.kind:
        case OwnerKind.PERSON:
            return f"ask {owner.name}; only they or a colleague should lift it"
        case OwnerKind.SCHEDULER:
            return "find the cause named in the reason, then resume it"
        case OwnerKind.HEALTH_PROGRAM:
            return f"see what {owner.name or 'the health program'} found"
        case OwnerKind.NODEWORTHY:
            return "see the hold"
        case OwnerKind.SOMEONE:
            return "the slot says root, which proves nobody: ask around before you resume it"
