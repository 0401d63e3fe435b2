"""Reading the answers of a turn by node: what was looked at and is not so, and what cannot be told.

A check that needs an expectation which the node's class does not declare does not apply there: that is neither "not
so" nor "cannot be told", and is left out of both.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

import polars as pl

from nodeworthy.judge.explain import names_of
from nodeworthy.judge.frames import REASONS, Frames, Part, State
from nodeworthy.judge.unknown import reason_at
from nodeworthy.model.catalogue import Catalogue
from nodeworthy.model.fact import CLASS_PREFIX, GPU, NODE
from nodeworthy.model.finding import UnknownReason

Answers = Mapping[str, pl.DataFrame]


@dataclass(frozen=True, slots=True)
class Unanswered:
    """A check without an answer for some component of a node, the first reason for it, and the source it lacks."""

    check: str
    reason: UnknownReason
    source: str


def _lacks(catalogue: Catalogue, check: str) -> tuple[str, ...]:
    """The expectations that a check needs."""
    return tuple(n for n in names_of(catalogue.checks[check].condition or "") if n.startswith(CLASS_PREFIX))


def _rows(frames: Frames, answers: Answers, node: str) -> Iterator[tuple[str, list[int], pl.DataFrame]]:
    for kind, answer in answers.items():
        rows = (frames.tables[kind].frame["node"] == node).arg_true().to_list()
        if rows:
            yield kind, rows, answer[rows]


def answered_no(frames: Frames, answers: Answers, node: str) -> list[str]:
    """The checks that looked at every one of the node's components of their kind and found nothing."""
    return [c.name for _, _, own in _rows(frames, answers, node) for c in own if c.null_count() == 0 and not c.any()]


def unanswered(catalogue: Catalogue, frames: Frames, answers: Answers, node: str) -> list[Unanswered]:
    """The checks that cannot tell about some component of the node, with the reason of the first such component."""
    found = []
    for kind, rows, own in _rows(frames, answers, node):
        table = frames.tables[kind]
        for column in own:
            blind = column.is_null().arg_true().to_list()
            if not blind:
                continue
            row = rows[blind[0]]
            sources = [s for s, part in table.parts.items() if part.states[row] != State.FRESH]
            reason = reason_at(catalogue.checks[column.name], table, row)
            if reason is UnknownReason.NOT_APPLICABLE:
                continue
            found.append(Unanswered(column.name, reason, sources[0] if sources else ""))
    return found


def unanswered_counts(catalogue: Catalogue, frames: Frames, answers: Answers) -> dict[str, int]:
    """Node → how many of its checks have no answer for some component. Nodes that have all are not in it."""
    counts: Counter[str] = Counter()
    for kind, answer in answers.items():
        blind = [c.name for c in answer if c.null_count()]
        if not blind:
            continue
        frame = frames.tables[kind].frame
        whole = answer.select(blind).hstack(frame.select(n for n in frame.columns if n.startswith(CLASS_PREFIX)))
        applies = {c: [pl.col(n).is_not_null() for n in _lacks(catalogue, c) if n in whole.columns] for c in blind}
        nulls = whole.select(pl.all_horizontal(pl.col(c).is_null(), *applies[c]).alias(c) for c in blind)
        nulls = nulls.with_columns(frame["node"])
        per_node = nulls.group_by("node").agg(pl.col(blind).any()).select("node", pl.sum_horizontal(blind).alias("n"))
        counts.update(dict(per_node.filter(pl.col("n") > 0).iter_rows()))
    return counts


def gpus_seen(frames: Frames) -> dict[str, int]:
    """Node → how many of its declared GPUs some source sees now. Empty where no source reports GPUs at all."""
    table = frames.tables.get(GPU)
    if table is None or not table.parts:
        return {}
    fresh = pl.any_horizontal([pl.lit(part.states == State.FRESH) for part in table.parts.values()])
    counts = table.frame.select("node", fresh.alias("seen")).group_by("node").agg(pl.col("seen").sum())
    return {node: int(seen) for node, seen in counts.iter_rows()}


WHOLE = {NODE: "its host", GPU: "its GPUs"}
"""The kinds without which a node is not seen, as people call them."""


def blind_nodes(frames: Frames, telemetry: Collection[str]) -> dict[str, str]:
    """Node → of what nothing at all is known now, and why, though one of these sources ought to tell it.

    The scheduler is no telemetry: that it lists a node says nothing of the state of its parts.
    """
    why: dict[str, list[str]] = defaultdict(list)
    heard = {s for table in frames.tables.values() for s, part in table.parts.items() if part.values.width}
    for kind, what in WHOLE.items():
        table = frames.tables.get(kind)
        # a source that tells of other kinds alone owes nothing here; one never heard of may owe everything
        owes = {s: p.values.width or s not in heard for s, p in table.parts.items()} if table else {}
        parts = {s: p for s, p in table.parts.items() if s in telemetry and owes[s]} if table else {}
        if table is None or not parts or table.frame.is_empty():
            continue
        known = pl.select(pl.any_horizontal([pl.lit(_says_something(p)) for p in parts.values()])).to_series()
        if known.all():
            continue
        rows = pl.DataFrame({"node": table.frame["node"], "known": known})
        # a source may be called anything, also "node"
        rows = rows.with_columns(_states(p, s in heard).alias(f"state of {s}") for s, p in parts.items())
        per_node = rows.group_by("node").agg(pl.col("known").any(), *(pl.col(f"state of {s}").max() for s in parts))
        for node, _, *states in per_node.filter(~pl.col("known")).iter_rows():
            why[node].append(f"of {what} ({_who_is_blind(dict(zip(parts, map(State, states), strict=True)))})")
    return {node: f"nothing is seen {' or '.join(found)}" for node, found in why.items()}


def _says_something(part: Part) -> pl.Series:
    """Whether a row has any reading now: a fresh page of blanks says nothing, nor do the names in its labels."""
    columns = [c for c in part.values.get_columns() if c.dtype != pl.String]
    if part.all_fresh and any(c.null_count() == 0 for c in columns):
        return pl.repeat(True, len(part.states), dtype=pl.Boolean, eager=True)
    if not columns:
        return pl.repeat(False, len(part.states), dtype=pl.Boolean, eager=True)
    return pl.select(pl.any_horizontal([pl.lit(c.is_not_null()) for c in columns]) & ~pl.lit(part.blind)).to_series()


def _states(part: Part, heard: bool) -> pl.Series:
    """As the part says, but a source that is down has not lost those of whom it never told."""
    if not heard or part.all_fresh:
        return part.states
    never = pl.lit(int(State.NEVER_SEEN), dtype=pl.UInt8)
    return pl.select(pl.when(pl.lit(part.seen.is_null())).then(never).otherwise(pl.lit(part.states))).to_series()


def _who_is_blind(states: Mapping[str, State]) -> str:
    """The sources that have told of the node before, or, where none has, some that never did; and why each is blind."""
    told = {s: state for s, state in states.items() if state is not State.NEVER_SEEN} or states
    said = [f"{source}: {_why_dark(state)}" for source, state in sorted(told.items())]
    return ", ".join(said[:3]) + (f" and {len(said) - 3} more" if len(said) > 3 else "")


def _why_dark(state: State) -> str:
    return REASONS[state].value if state in REASONS else "no value that can be used"
