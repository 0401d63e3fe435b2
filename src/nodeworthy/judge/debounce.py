"""Debounce: when an answer becomes a finding and when a finding ends, one row of one check at a time.

Pure and small, so that it can be read against the table in `judge.judge`. Only rows that are not at rest have
a state. Time is counted between looks, not between turns: a value that is read again before its source looked again
says nothing new. And only while the answer was known: an unknown stretch, from the last look before it to the first
after it, moves the start of whatever was running (pending or clearing) forward by its length.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from nodeworthy.model.finding import Finding

Answer = bool | None

FORGET_PENDING_S: Final = 3600.0  # a pending row that stays unknown this long is forgotten: no state without an end
FLAP_WINDOW_S: Final = 3600.0  # openings are remembered this long, to tell flapping from a first time


@dataclass(frozen=True, slots=True)
class RowState:
    """`since`: first true without a gap. `clear_from`: first false of a finding. `blind_from`: first unknown.

    `looked` is when the answer that stands was seen. `openings` are the times at which it became a finding within
    FLAP_WINDOW_S. All are times of looks, but `blind_from` and `openings`: those are times of turns.
    """

    since: float | None = None
    active: bool = False
    clear_from: float | None = None
    blind_from: float | None = None
    looked: float | None = None
    openings: tuple[float, ...] = ()
    finding: Finding | None = None


def moves(state: RowState | None, answer: Answer) -> bool:
    """Whether time counts for the row now, so that it matters when it was looked at."""
    if answer is None:
        return False
    return not answer or state is None or not state.active or state.clear_from is not None


def step(
    state: RowState | None,
    answer: Answer,
    for_s: float,
    clear_s: float,
    now: float,
    looked: float,
    unseen_s: float = 0.0,
) -> RowState | None:
    """The row's next state, or None for at rest. `looked`: when the inputs of the answer were seen, never after `now`.
    `unseen_s`: time since the last turn in which nobody looked."""
    if state is None:
        if not answer:
            return None
        state = RowState()
    if answer is None:
        return _unknown(state, now)
    state = _pass_blindness(_pass_step_back(state, now, looked), looked, unseen_s)
    after = _true(state, for_s, now, looked) if answer else _false(state, clear_s, now, looked)
    running = after is not None and (not after.active or after.clear_from is not None)
    return replace(after, looked=looked) if after is not None and running and after.looked != looked else after


def _pass_step_back(state: RowState, now: float, looked: float) -> RowState:
    """Count anew what began after now: the clock was set back, and would stand still until it is there again."""
    pending = not state.active and state.since is not None and state.since > now
    clearing = state.clear_from is not None and state.clear_from > now
    if not (pending or clearing):
        return state
    return replace(
        state,
        since=looked if pending else state.since,
        clear_from=looked if clearing else state.clear_from,
        looked=looked,
    )


def _pass_blindness(state: RowState, looked: float, unseen_s: float) -> RowState:
    """Move the running start forward by the time that was not seen, once something is seen again."""
    gap = unseen_s
    if state.blind_from is not None:
        gap = max(gap, looked - (state.looked if state.looked is not None else state.blind_from))
    if gap <= 0 and state.blind_from is None:
        return state
    pending = not state.active and state.since is not None
    return replace(
        state,
        blind_from=None,
        since=min(state.since + gap, looked) if pending and state.since is not None else state.since,
        clear_from=min(state.clear_from + gap, looked) if state.clear_from is not None else None,
    )


def _unknown(state: RowState, now: float) -> RowState | None:
    if not state.active and state.since is None:
        return _rest(state, now)
    blind_from = now if state.blind_from is None else state.blind_from
    if not state.active and now - blind_from > FORGET_PENDING_S:
        return _rest(state, now)
    return replace(state, blind_from=blind_from)


def _true(state: RowState, for_s: float, now: float, looked: float) -> RowState:
    since = looked if state.since is None else state.since
    if state.active:
        return replace(state, clear_from=None) if state.clear_from is not None else state
    if looked - since < for_s:
        return replace(state, since=since)
    recent = tuple(t for t in state.openings if now - t < FLAP_WINDOW_S)
    return replace(state, since=since, active=True, clear_from=None, finding=None, openings=(*recent, now))


def _false(state: RowState, clear_s: float, now: float, looked: float) -> RowState | None:
    if not state.active:
        return _rest(state, now)
    clear_from = looked if state.clear_from is None else state.clear_from
    if looked - clear_from >= clear_s:
        return _rest(state, now)
    return replace(state, clear_from=clear_from)


def _rest(state: RowState, now: float) -> RowState | None:
    """At rest; only recent openings are worth remembering."""
    recent = tuple(t for t in state.openings if now - t < FLAP_WINDOW_S)
    return RowState(openings=recent) if recent else None
