"""What people did, read from the scheduler's own record, and how it compares with what we would have done.

Slurm has one slot for reasons and writes root for everybody who used sudo, so a person's act is known by its kind
and time more surely than by name. A drain that the scheduler or a health program wrote is nobody's act.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from nodeworthy.model.hold import Owner, OwnerKind
from nodeworthy.model.record import Transition

OUT_FLAGS = frozenset({"DRAIN", "FAIL", "DOWN"})
NEEDS_RESUME = frozenset({"DRAIN", "FAIL"})
PEOPLE = frozenset({OwnerKind.PERSON, OwnerKind.SOMEONE})

OwnerOf = Callable[[Transition], Owner]


class Agreement(StrEnum):
    """What people did about a thing that we would have held."""

    BEFORE = "people did too, before us"
    AFTER = "people did too, after us"
    NOT = "people did not"
    RESUMED = "people put it back"
    TOO_EARLY = "too early to tell"


@dataclass(frozen=True, slots=True)
class Act:
    """A node taken out or put back. `who` is what the slot says; it proves nobody."""

    what: str  # took out | put back
    who: str
    at: float
    text: str = ""


@dataclass(frozen=True, slots=True)
class Comparison:
    """`lead_s`: how long before people we would have acted; negative is after them, None while nobody acted."""

    agreement: Agreement
    act: Act | None
    lead_s: float | None


PATIENCE_S = 3600.0  # our judgement: an hour without anybody acting is a "did not", earlier it is too early to tell


def out(transition: Transition) -> bool:
    return not OUT_FLAGS.isdisjoint(transition.state.split("+"))


def acts(history: Sequence[Transition], owner: OwnerOf) -> list[Act]:
    """The times at which people took a node out or put it back, oldest first.

    `owner` says whose a transition's mark is. A machine's drain is nobody's act, and becomes one when a person writes
    over it. A drain does not lift itself, so its end is somebody's act; a node that was down comes back on its own.
    """
    found: list[Act] = []
    previous: Transition | None = None
    by_people = drained = False
    for transition in history:
        whose = owner(transition) if out(transition) else None
        if whose is not None and whose.kind in PEOPLE and not by_people:
            found.append(Act("took out", str(whose), _written_at(transition, previous), transition.reason or ""))
        elif whose is None and (by_people or drained):
            found.append(Act("put back", "someone", transition.at))
        by_people = whose is not None and whose.kind in PEOPLE
        drained = whose is not None and not NEEDS_RESUME.isdisjoint(transition.state.split("+"))
        previous = transition
    return found


def _written_at(transition: Transition, previous: Transition | None) -> float:
    """When the mark was written, as the slot says; when we saw it, where the slot tells of an older mark."""
    written = transition.reason_at
    if written is None or written > transition.at or (previous is not None and written < previous.at):
        return transition.at
    return written


def compare(since: float, ended: float | None, history: Sequence[Act], now: float) -> Comparison:
    """A would-hold against what people did about that node. `lead_s` is None where they did not take it out."""
    until = now if ended is None else ended
    during = [a for a in history if since < a.at <= until]
    if during and during[-1].what == "put back" and ended is None:
        return Comparison(Agreement.RESUMED, during[-1], None)
    before = [a for a in history if a.at <= since]
    if before and before[-1].what == "took out":
        return Comparison(Agreement.BEFORE, before[-1], before[-1].at - since)
    took = next((a for a in during if a.what == "took out"), None)
    if took is not None:
        return Comparison(Agreement.AFTER, took, took.at - since)
    if during:
        return Comparison(Agreement.RESUMED, during[-1], None)
    return Comparison(Agreement.NOT if until - since >= PATIENCE_S else Agreement.TOO_EARLY, None, None)
