"""Debounce: when an answer becomes a finding and when a finding ends, one row of one check at a time.

Pure and small, so that it can be read against the table in `judge.judge`. Only rows that are not at rest have
a state. Time is counted only while the answer was known: an unknown stretch moves the start of whatever
was running (pending or clearing) forward by its length.
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

    `openings` are the times at which it became a finding within FLAP_WINDOW_S.
    """

    since: float | None = None
    active: bool = False
    clear_from: float | None = None
    blind_from: float | None = None
    openings: tuple[float, ...] = ()
    finding: Finding | None = None


def step(
    state: RowState | None, answer: Answer, for_s: float, clear_s: float, now: float, unseen_s: float = 0.0
) -> RowState | None:
    """The row's next state, or None for at rest. `unseen_s`: time since the last turn in which nobody looked."""
    if state is None:
        if not answer:
            return None
        state = RowState()
    state = _pass_blindness(state, answer, now, unseen_s)
    if answer is None:
        return _unknown(state, now)
    return _true(state, for_s, now) if answer else _false(state, clear_s, now)


def _pass_blindness(state: RowState, answer: Answer, now: float, unseen_s: float) -> RowState:
    """Move the running start forward by the time that was not seen, once something is seen again."""
    if answer is None:
        return state
    gap = max(now - state.blind_from if state.blind_from is not None else 0.0, unseen_s)
    if gap <= 0 and state.blind_from is None:
        return state
    pending = not state.active and state.since is not None
    return replace(
        state,
        blind_from=None,
        since=min(state.since + gap, now) if pending and state.since is not None else state.since,
        clear_from=min(state.clear_from + gap, now) if state.clear_from is not None else None,
    )


def _unknown(state: RowState, now: float) -> RowState | None:
    if not state.active and state.since is None:
        return _rest(state, now)
    blind_from = now if state.blind_from is None else state.blind_from
    if not state.active and now - blind_from > FORGET_PENDING_S:
        return _rest(state, now)
    return replace(state, blind_from=blind_from)


def _true(state: RowState, for_s: float, now: float) -> RowState:
    since = now if state.since is None else state.since
    if state.active:
        return replace(state, clear_from=None) if state.clear_from is not None else state
    if now - since < for_s:
        return replace(state, since=since)
    recent = tuple(t for t in state.openings if now - t < FLAP_WINDOW_S)
    return replace(state, since=since, active=True, clear_from=None, finding=None, openings=(*recent, now))


def _false(state: RowState, clear_s: float, now: float) -> RowState | None:
    if not state.active:
        return _rest(state, now)
    clear_from = now if state.clear_from is None else state.clear_from
    if now - clear_from >= clear_s:
        return _rest(state, now)
    return replace(state, clear_from=clear_from)


def _rest(state: RowState, now: float) -> RowState | None:
    """At rest; only recent openings are worth remembering."""
    recent = tuple(t for t in state.openings if now - t < FLAP_WINDOW_S)
    return RowState(openings=recent) if recent else None
