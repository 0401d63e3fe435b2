"""What a hold would become in the scheduler, said and not done.

Slurm has one reason slot per node (design law 3): a mark is written only into an empty slot or over our own, so a hold
on a node that somebody else drained stands beside that drain and writes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

from nodeworthy.model.hold import Hold, HoldState
from nodeworthy.model.scheduler import SchedulerNode

PREFIX = "nw:"
OUT_FLAGS = frozenset({"DRAIN", "FAIL", "MAINTENANCE"})


@dataclass(frozen=True, slots=True)
class Intention:
    """`verb`: drain (a mark would be written) · hold (it stands, nothing is written) · wait (not yet)."""

    verb: str
    sentence: str


def mark_text(hold: Hold) -> str:
    """The text that our mark would carry: parseable, and readable in `sinfo -R`."""
    part = "" if hold.subject.kind == "node" else f"{hold.subject.kind}{hold.subject.index}"
    where = f" [{part}]" if part and part not in hold.reason else ""
    return f"{PREFIX}{hold.key} {hold.reason}{where}"


def intention(hold: Hold, node: SchedulerNode | None) -> Intention:
    if hold.state is HoldState.LIFTED:
        return Intention("hold", "it has ended")
    if hold.waiting_for:
        return Intention("wait", f"it waits for {hold.waiting_for}")
    if node is None:
        return Intention("hold", "the scheduler is not seen, so nothing could be written")
    if node.mark is not None and node.mark.reason.startswith(PREFIX):
        return Intention("hold", "our mark is there already")
    if not OUT_FLAGS.isdisjoint(node.flags) or node.mark is not None:
        said = f" ({node.mark.reason!r})" if node.mark else ""
        return Intention("hold", f"nothing would be written: the node's reason slot is taken{said}")
    whole = "" if hold.subject.kind == "node" else f"; Slurm holds whole nodes, so all of {node.name} leaves"
    jobs = "; jobs there run on to their end" if node.busy else ""
    return Intention(
        "drain", f"scontrol update nodename={node.name} state=drain reason={mark_text(hold)!r}{whole}{jobs}"
    )
