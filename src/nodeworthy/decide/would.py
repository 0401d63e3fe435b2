"""What a hold would become in the scheduler, said and not done.

Slurm has one reason slot per node (design law 3): a mark is written only into an empty slot or over our own, so a hold
on a node that somebody else drained stands beside that drain and writes nothing.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from nodeworthy.decide.marks import MarkView
from nodeworthy.model.hold import Effect, Hold, HoldState, OwnerKind
from nodeworthy.model.scheduler import SchedulerNode

PREFIX = "nw:"
OUT_FLAGS = frozenset({"DRAIN", "FAIL", "MAINTENANCE"})


@dataclass(frozen=True, slots=True)
class Intention:
    """`verb`: drain (a mark would be written) · hold (it stands, nothing is written) · wait (not yet)."""

    verb: str
    sentence: str


# the effects that a drain expresses; Slurm has no mark for the others
DRAINS = frozenset({Effect.NO_NEW_WORK, Effect.EVICT})


def mark_text(hold: Hold) -> str:
    """The text that our mark would carry: parseable, and readable in `sinfo -R`."""
    part = "" if hold.subject.kind == "node" else f"{hold.subject.kind}{hold.subject.index}"
    where = f" [{part}]" if part and part not in hold.reason else ""
    return f"{PREFIX}{hold.key} {hold.reason}{where}"


def intention(hold: Hold, node: SchedulerNode | None, mark: MarkView | None) -> Intention:
    """`node` and `mark` as the scheduler has them now; None where it does not list the node or is not seen."""
    if hold.state is HoldState.LIFTED:
        return Intention("hold", "it has ended")
    if hold.waiting_for:
        return Intention("wait", f"nothing yet: it waits for {hold.waiting_for}")
    if node is None:
        return Intention("hold", "nothing could be written: the scheduler is not seen, or does not list this node")
    if mark is not None and mark.owner.kind is OwnerKind.NODEWORTHY:
        return Intention("hold", "nothing would be written: a mark of ours is there already")
    if hold.effect not in DRAINS:
        return Intention(
            "hold", f"nothing would be written: a drain would keep all work off, and this asks for {hold.effect}"
        )
    if node.mark is not None:
        return Intention(
            "hold", f"nothing would be written: the node's one reason slot is taken ({node.mark.reason!r})"
        )
    if not OUT_FLAGS.isdisjoint(node.flags):
        return Intention("hold", "nothing would be written: new work is kept off it already")
    whole = "" if hold.subject.kind == "node" else f"; Slurm holds whole nodes, so all of {node.name} leaves"
    jobs = "; jobs there run on to their end" if node.busy else ""
    return Intention(
        "drain", f"scontrol update nodename={node.name} state=drain reason={shlex.quote(mark_text(hold))}{whole}{jobs}"
    )
