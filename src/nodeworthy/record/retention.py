"""Retention: what is old goes, what is open stays, and the ledger says what went.

Rows go in small batches, each a transaction of its own, so that a turn never waits long for the lock. The
ledger loses only its oldest end (everything before the first entry that is young enough), so what is left
has no gap. Of a node's states the one in force at `before` stays: history from then on is complete. So it is with what the
site declared. Lines that an open finding may rest on stay as long as it is open.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import sqlalchemy as sa

from nodeworthy.model.duration import format_time
from nodeworthy.model.ledger import Entry
from nodeworthy.model.record import Pruned
from nodeworthy.record import tables

if TYPE_CHECKING:
    from nodeworthy.record.store import SqlStore

BATCH: Final = 5000  # rows a transaction: the lock is held for some 0.1 s, see docs/how-to/store.md


def prune(store: SqlStore, before: float, *, now: float) -> Pruned:
    """Remove what ended before `before` (POSIX seconds) and enter it into the ledger as of `now`."""
    removed = {table.name: _prune_table(store, table, _old(store, table, before)) for table in tables.NUMBERED}
    removed[tables.revisions.name] = _prune_revisions(store, before)
    with store.write() as connection:
        first = connection.execute(sa.select(sa.func.min(tables.ledger.c.id))).scalar()
        said = ", ".join(f"{count} {name}" for name, count in removed.items() if count) or "nothing"
        (entry,) = store.append(
            [
                Entry(
                    at=now,
                    kind="store.pruned",
                    subject="store",
                    summary=f"pruned what was before {format_time(before)}: {said}",
                    data={"before": before, "removed": removed},
                )
            ]
        )
    return Pruned(before, removed, first if first is not None else entry.sequence)


def _old(store: SqlStore, table: sa.Table, before: float) -> sa.ColumnElement[bool]:
    if table is tables.ledger:
        with store.read() as connection:
            young = connection.execute(sa.select(sa.func.min(table.c.id)).where(table.c.at >= before)).scalar()
            last = connection.execute(sa.select(sa.func.max(table.c.id))).scalar() or 0
        return table.c.id < (last + 1 if young is None else young)
    if table is tables.findings or table is tables.holds:
        return table.c.ended < before  # null, that is open, is never less
    if table is tables.events:
        # what an open finding may rest on: a restart judges it again (docs/decisions/0007)
        finding = tables.findings
        rests = sa.exists().where(
            finding.c.node == table.c.node, finding.c.ended.is_(None), finding.c.since <= table.c.at
        )
        return sa.and_(table.c.at < before, sa.not_(rests))
    newer = table.alias("newer")
    replaced = sa.exists().where(newer.c.node == table.c.node, newer.c.id > table.c.id, newer.c.at <= before)
    return sa.and_(table.c.at < before, replaced)


def _prune_revisions(store: SqlStore, before: float) -> int:
    """Revisions that were replaced before `before`. Those that a note names are the present ones, however old."""
    table = tables.revisions
    with store.write() as connection:
        present = set(
            filter(lambda value: isinstance(value, str), connection.execute(sa.select(tables.notes.c.value)).scalars())
        )
        in_force: dict[str, str] = {}
        old: list[tuple[str, str]] = []
        query = sa.select(table.c.kind, table.c.digest).where(table.c.at < before).order_by(table.c.at)
        for kind, digest in connection.execute(query):
            in_force[kind] = digest
            old.append((kind, digest))
        gone = [(k, d) for k, d in old if in_force[k] != d and d not in present]
        for kind, digest in gone:
            connection.execute(table.delete().where(table.c.kind == kind, table.c.digest == digest))
    return len(gone)


def _prune_table(store: SqlStore, table: sa.Table, old: sa.ColumnElement[bool]) -> int:
    removed = 0
    while True:
        with store.write() as connection:
            some = (
                connection.execute(sa.select(table.c.id).where(old).order_by(table.c.id).limit(BATCH)).scalars().all()
            )
            if some:
                # all that is old up to the last one chosen: the same rows, without a long list of numbers
                connection.execute(table.delete().where(table.c.id <= some[-1], old))
        removed += len(some)
        if len(some) < BATCH:
            return removed
