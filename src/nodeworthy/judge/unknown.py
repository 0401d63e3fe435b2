"""Why a check cannot tell, counted per (check, reason, source) without making an object per row."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from nodeworthy.judge.explain import names_of
from nodeworthy.judge.frames import REASONS, SAMPLE, Part, Table
from nodeworthy.model.catalogue import Check
from nodeworthy.model.fact import CLASS_PREFIX
from nodeworthy.model.finding import UnknownReason

HISTORY: Final = "history"  # the "source" of features whose window is not covered yet

Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class UnknownGroup:
    """`count` rows of a check that are unknown for one reason because of one source; some of their nodes."""

    check: str
    reason: UnknownReason
    source: str
    count: int
    nodes: tuple[str, ...]


def reason_at(check: Check, table: Table, row: int) -> UnknownReason:
    """Why the check cannot tell about one row."""
    mask: Mask = np.zeros(table.frame.height, dtype=np.bool_)
    mask[row] = True
    return next((reason for reason, _, found in _why(check, table, mask) if found[row]), UnknownReason.NEVER_SEEN)


def unknown_groups(check: Check, table: Table, answers: pl.Series, *, failed: bool) -> list[UnknownGroup]:
    """The unknown answers of a check by reason and source; each row is counted once, under its first reason."""
    count = answers.null_count()
    if count == 0:
        return []
    nodes = table.frame["node"]
    if failed:
        return [UnknownGroup(check.id, UnknownReason.CHECK_FAILED, "judge", count, tuple(nodes.head(SAMPLE)))]
    part = _only_source(check, table)
    if part is not None and (answers.is_null() == part[1].blind).all():
        return [UnknownGroup(check.id, REASONS[o.state], part[0], o.count, o.nodes) for o in part[1].losses]
    mask: Mask = np.ones(len(answers), dtype=np.bool_) if count == len(answers) else answers.is_null().to_numpy()
    return [
        UnknownGroup(check.id, reason, source, int(np.count_nonzero(found)), _sample(nodes, found))
        for reason, source, found in _why(check, table, mask)
    ]


def _only_source(check: Check, table: Table) -> tuple[str, Part] | None:
    """The source of a check that looks at one source alone: then its blind rows are all there is to say.

    (When class columns are unknown in places, the unknown answers are more than the blind rows, or the
    other reason is equally true of a blind row.)
    """
    sources = {table.suppliers.get(n, ()) for n in names_of(check.condition or "") if not n.startswith(CLASS_PREFIX)}
    if len(sources) != 1:
        return None
    only = sources.pop()
    return (only[0], table.parts[only[0]]) if len(only) == 1 else None


def _sample(nodes: pl.Series, found: Mask) -> tuple[str, ...]:
    first = np.flatnonzero(found[:4096])[:SAMPLE]
    if len(first) < SAMPLE:
        first = np.flatnonzero(found)[:SAMPLE]
    return tuple(dict.fromkeys(nodes[int(row)] for row in first))


def _why(check: Check, table: Table, mask: Mask) -> Iterator[tuple[UnknownReason, str, Mask]]:
    """Split the rows of the mask by reason and source: expectations first, then sources, then the values."""
    names = names_of(check.condition or "")
    for name in names:
        if name.startswith(CLASS_PREFIX):
            column = table.frame.get_column(name, default=None)
            missing = mask if column is None else _nulls(column, mask)
            if missing.any():
                yield UnknownReason.NOT_APPLICABLE, "class", missing
                mask = mask & ~missing
    inputs = [n for n in names if not n.startswith(CLASS_PREFIX)]
    for source in dict.fromkeys(s for n in inputs for s in table.suppliers.get(n, ())):
        part = table.parts[source]
        codes = part.states.to_numpy()
        for loss in part.losses:
            found = mask & (codes == loss.state)
            if found.any():
                yield REASONS[loss.state], source, found
                mask = mask & ~found
    yield from _no_value(inputs, table, mask)


def _no_value(inputs: list[str], table: Table, mask: Mask) -> Iterator[tuple[UnknownReason, str, Mask]]:
    """Rows whose sources are fresh and yet gave nothing: no such field, a blank value, or too little history."""
    for name in inputs:
        if not mask.any():
            return
        column = table.frame.get_column(name, default=None)
        found = mask if column is None else _nulls(column, mask)
        if not found.any():
            continue
        sources = table.suppliers.get(name, ())
        if sources:
            yield UnknownReason.SENTINEL, sources[0], found
        else:
            if name in table.features:
                yield UnknownReason.SHORT_HISTORY, HISTORY, found
            else:
                yield UnknownReason.NEVER_SEEN, "", found
        mask = mask & ~found
    if mask.any():
        yield UnknownReason.UNREADABLE, "judge", mask


def _nulls(column: pl.Series, mask: Mask) -> Mask:
    if column.null_count() == 0:
        return np.zeros(len(mask), dtype=np.bool_)
    found: Mask = mask & column.is_null().to_numpy()
    return found
