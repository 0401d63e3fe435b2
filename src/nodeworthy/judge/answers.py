"""Reading the answers of a turn by node: what was looked at and is not so, and what cannot be told.

A check that needs an expectation which the node's class does not declare does not apply there: that is neither "not
so" nor "cannot be told", and is left out of both.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Container, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import polars as pl

from nodeworthy.judge.compile import compile_condition
from nodeworthy.judge.explain import names_of
from nodeworthy.judge.frames import Frames, Part, State
from nodeworthy.judge.unknown import reason_at
from nodeworthy.model.catalogue import Catalogue
from nodeworthy.model.fact import CLASS_PREFIX, GPU, NODE, class_column
from nodeworthy.model.finding import UnknownReason
from nodeworthy_node import conditions

Answers = Mapping[str, pl.DataFrame]
CLASS_NAME: Final = class_column("name")
BLANK: Final = -1  # beside the numbers of State, and the least of reasons
_BLIND: Final = {
    State.NEVER_SEEN: "has never seen it, though it sees others of its class",
    State.STALE: "has not seen it lately",
    State.FUTURE: "says times in the future",
    State.SOURCE_DOWN: "does not answer",
    BLANK: "tells nothing that can be used",
}


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


def answered_no(catalogue: Catalogue, frames: Frames, answers: Answers, node: str) -> list[str]:
    """The checks that apply to the node, looked at every one of its components of their kind and found nothing."""
    found = []
    for kind, rows, own in _rows(frames, answers, node):
        frame = frames.tables[kind].frame[rows]
        no = [c.name for c in own if c.null_count() == 0 and not c.any()]
        found += [name for name in no if _applies(catalogue.checks[name].applies, frame)]
    return found


def _applies(condition: str, frame: pl.DataFrame) -> bool:
    """Whether a check applies to some of the rows: where it does not, its answer is no without a look."""
    if not condition:
        return True
    return bool(frame.select(compile_condition(conditions.parse(condition), frame.schema)).to_series().any())


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
        frame = frames.tables[kind].frame
        lacks = {c.name: _lacks(catalogue, c.name) for c in answer if c.null_count()}
        # what no class declares is no column, and the check applies nowhere
        blind = [name for name, needs in lacks.items() if set(needs) <= set(frame.columns)]
        if not blind:
            continue
        whole = answer.select(blind).hstack(frame.select(n for n in frame.columns if n.startswith(CLASS_PREFIX)))
        applies = {c: [pl.col(n).is_not_null() for n in lacks[c]] for c in blind}
        nulls = whole.select(pl.all_horizontal(pl.col(c).is_null(), *applies[c]).alias(c) for c in blind)
        nulls = nulls.with_columns(frame["node"])
        per_node = nulls.group_by("node").agg(pl.col(blind).any()).select("node", pl.sum_horizontal(blind).alias("n"))
        counts.update(dict(per_node.filter(pl.col("n") > 0).iter_rows()))
    return counts


def gpus_seen(frames: Frames) -> dict[str, int]:
    """Node → how many of its declared GPUs some source sees now.

    A node of which none is seen is not in it: whether they are gone or the source is blind cannot be told.
    """
    table = frames.tables.get(GPU)
    if table is None or not table.parts:
        return {}
    fresh = pl.any_horizontal([pl.lit(part.states == State.FRESH) for part in table.parts.values()])
    counts = table.frame.select("node", fresh.alias("seen")).group_by("node").agg(pl.col("seen").sum())
    return {node: int(seen) for node, seen in counts.iter_rows() if seen}


def blind_nodes(frames: Frames, besides: Container[str] = ()) -> dict[str, str]:
    """Node → why no telemetry sees it, though some source ought to: one that has seen it or others of its class, or
    one that nobody has heard yet and that may owe everything. A fresh page of blanks is no sight.

    Sources in `besides` do not count: that the scheduler lists a node tells nothing of its hardware's health.
    """
    states: list[pl.DataFrame] = []
    heard = {s for table in frames.tables.values() for s, p in table.parts.items() if p.seen.null_count() < len(p.seen)}
    for table in frames.tables.values():
        for source, part in table.parts.items():
            if source in besides or CLASS_NAME not in table.frame.columns:
                continue
            told = part.seen.is_not_null()
            rows = pl.DataFrame({"node": table.frame["node"], "state": _sight(part), "told": told})
            if source in heard:
                of_class = table.frame[CLASS_NAME]
                rows = rows.filter(of_class.is_in(of_class.filter(told).unique().to_list()))
            states.append(rows.with_columns(pl.lit(source).alias("source")))
    if not states:
        return {}
    # named are those that have told of the node before, where there are such
    named = pl.col("told") | ~pl.col("told").any()
    worst = (
        pl.concat(states)
        .group_by("node")
        .agg(
            (pl.col("state") == State.FRESH).any().alias("seen"),
            pl.col("state").filter(named).max(),
            pl.col("source").filter(named).unique().sort(),
        )
    )
    return {
        node: f"no telemetry of it now: {', '.join(sources)} {_BLIND[state]}"
        for node, _, state, sources in worst.filter(~pl.col("seen")).iter_rows()
    }


def answering(frames: Frames, answers: Answers, blind: Collection[str]) -> Callable[[str], Collection[str]]:
    """Check → the nodes of which it has an answer now; for a check of log lines, all that are not `blind`."""

    def nodes(check: str) -> Collection[str]:
        for kind, answer in answers.items():
            if check in answer.columns:
                known = frames.tables[kind].frame["node"].filter(answer[check].is_not_null())
                return frozenset(known.unique())
        return frozenset(frames.tables[NODE].frame["node"]) - frozenset(blind)

    return nodes


def _sight(part: Part) -> pl.Series:
    """The state of each row, `BLANK` where a fresh one holds no reading: what its labels say is none."""
    states = part.states.cast(pl.Int64)
    readings = [c for c in part.values.get_columns() if c.dtype != pl.String]
    if any(c.null_count() == 0 for c in readings):
        return states
    says = pl.any_horizontal([pl.lit(c.is_not_null()) for c in readings]) if readings else pl.lit(False)
    blank = (pl.lit(states) == State.FRESH) & ~says
    return pl.select(pl.when(blank).then(BLANK).otherwise(pl.lit(states))).to_series()
