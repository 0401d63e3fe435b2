"""What a mark of the past says: the same reading as for a mark of today (`decide.marks`), from an event alone.

One difference: a node that waits for repair or parts was taken out by choice but is broken, so here its hours are a
fault's.
"""

from __future__ import annotations

from dataclasses import dataclass

from nodeworthy.decide.marks import MarkView, Normalise, classify
from nodeworthy.model.scheduler import BaseState, Mark, SchedulerNode

FLAGS = {
    "drain": frozenset({"DRAIN"}),
    "fail": frozenset({"FAIL"}),
    "invalid": frozenset({"DRAIN", "INVALID_REG"}),
    "reboot": frozenset({"REBOOT_ISSUED"}),
}
BROKEN_ALTHOUGH_CHOSEN = frozenset({"repair"})


@dataclass(frozen=True, slots=True)
class Reading:
    """`cause` is a stable id, `title` what people read. `kind`: `fault` (something broke), `planned` (somebody chose
    it), `unknown` (the text does not tell). `owner`: an OwnerKind, in words."""

    cause: str
    title: str
    kind: str
    owner: str


def read_event(kind: str, reason: str, author: str | None, normalise: Normalise) -> Reading:
    """The reading of an event of this kind (`outages.kind_of`) with this text and author."""
    base = BaseState.DOWN if kind == "down" else BaseState.UNKNOWN
    flags = FLAGS.get(kind, frozenset())
    mark = Mark(reason, author, None) if reason or author else None
    view = classify(SchedulerNode("", base, flags, mark), normalise)
    if view is not None:
        return of_view(view)
    said = normalise(reason)
    return Reading(said.cause, said.title, said.kind.value, "")


def of_view(view: MarkView) -> Reading:
    """The reading of a mark that is there now."""
    kind = "fault" if view.cause in BROKEN_ALTHOUGH_CHOSEN else view.kind.value
    return Reading(view.cause, view.title, kind, view.owner.kind.value)
