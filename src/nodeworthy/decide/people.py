"""What people did, read from the scheduler's own record, and how it compares with what we would have done.

Slurm has one slot for reasons and writes root for everybody who used sudo, so a person's act is known by its kind
and time more surely than by name. A drain that the scheduler or a health program wrote is nobody's act.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from nodeworthy.model.record import NodeState as Transition

OUT_FLAGS = frozenset({"DRAIN", "FAIL", "DOWN"})


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


def acts(history: Sequence[Transition], foreign: Iterable[str] = ()) -> list[Act]:
    """The times a node was taken out or put back, oldest first. `foreign`: reasons that machines wrote.

    A mark says itself when it was made; that is believed as far as it falls between two of our looks.
    """
    machines = frozenset(foreign)
    found: list[Act] = []
    was_out = False
    looked_at = 0.0
    for transition in history:
        is_out = out(transition)
        if is_out and not was_out and transition.reason not in machines:
            at = transition.at if transition.reason_at is None else transition.reason_at
            at = min(max(at, looked_at), transition.at)
            found.append(Act("took out", transition.user or "someone", at, transition.reason or ""))
        elif was_out and not is_out:
            found.append(Act("put back", "someone", transition.at))
        was_out, looked_at = is_out, transition.at
    return found


def compare(since: float, ended: float | None, history: Sequence[Act], now: float) -> Comparison:
    """A would-hold against what people did about that node."""
    before = [a for a in history if a.at <= since]
    if before and before[-1].what == "took out":
        return Comparison(Agreement.BEFORE, before[-1], before[-1].at - since)
    during = [a for a in history if since < a.at <= (ended or now)]
    if not during:
        settled = (ended or now) - since >= PATIENCE_S
        return Comparison(Agreement.NOT if settled else Agreement.TOO_EARLY, None, None)
    first, last = during[0], during[-1]
    if last.what == "put back" and ended is None:
        return Comparison(Agreement.RESUMED, last, last.at - since)
    return Comparison(Agreement.AFTER, first, first.at - since)
