"""How words become rows: numbers in commit order, one open row a key, nothing kept twice.

All of it runs on a connection that holds the write lock (see `store`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.sql.compiler import SQLCompiler

from nodeworthy.errors import Garbled
from nodeworthy.model.event import LogEvent
from nodeworthy.model.ledger import Entry
from nodeworthy.model.record import Outcome
from nodeworthy.record import rows, tables
from nodeworthy.record.thinning import thinned

_CHUNK: Final = 500  # keys in one IN (…); SQLite before 3.32 takes at most 999 variables


def keep(connection: sa.Connection, outcome: Outcome) -> list[Entry]:
    """Keep all of an outcome; the entries with their sequences."""
    events = thinned(connection, _not_kept_yet(connection, outcome))
    _close(connection, outcome.closed, outcome.at)
    _put_open(connection, tables.findings, [rows.from_finding(f) for f in outcome.findings])
    _put_open(connection, tables.holds, [rows.from_hold(h) for h in outcome.holds])
    _add(connection, tables.node_states, [rows.from_state(s) for s in outcome.states])
    _add(connection, tables.events, [rows.from_event(e) for e in events])
    _add_boots(connection, [rows.from_boot(b) for b in outcome.boots])
    _put(connection, tables.sources, [rows.from_source(s) for s in outcome.sources])
    positions = [{"source": s, "cursor": dict(c), "at": outcome.at} for s, c in outcome.cursors.items()]
    _put(connection, tables.cursors, positions)
    return append(connection, outcome.entries)


def _take(connection: sa.Connection, table: sa.Table, count: int) -> int:
    """The first of `count` fresh numbers of a table. Needs the write lock."""
    mine = tables.counters.c.name == table.name
    connection.execute(tables.counters.update().where(mine).values(value=tables.counters.c.value + count))
    return counted(connection, table) - count + 1


def counted(connection: sa.Connection, table: sa.Table) -> int:
    value = connection.execute(sa.select(tables.counters.c.value).where(tables.counters.c.name == table.name)).scalar()
    if value is None:
        raise Garbled(f"the store has no counter for {table.name}", hint="restore a backup")
    return int(value)


def _add(connection: sa.Connection, table: sa.Table, new: Sequence[rows.Row]) -> int:
    """Insert rows under fresh numbers; the first of them."""
    if not new:
        return 0
    first = _take(connection, table, len(new))
    _many(connection, table, table.insert(), [{**row, "id": first + place} for place, row in enumerate(new)])
    return first


def _many(connection: sa.Connection, table: sa.Table, statement: sa.Insert | sa.Update, new: list[rows.Row]) -> None:
    """One statement for many rows of a table, through the driver: what SQLAlchemy does for each row of an
    `executemany` costs three times what the database does. Names that are no column are numbers as they are."""
    compiled = statement.compile(dialect=connection.dialect, column_keys=list(new[0]))
    assert isinstance(compiled, SQLCompiler)
    names = compiled.positiontup if compiled.positiontup is not None else list(new[0])
    convert = [(name, tables.converter(table.columns.get(name))) for name in names]
    values = [[change(row[name]) for name, change in convert] for row in new]
    if compiled.positiontup is not None:
        connection.exec_driver_sql(str(compiled), [tuple(row) for row in values])
    else:
        connection.exec_driver_sql(str(compiled), [dict(zip(names, row, strict=True)) for row in values])


def append(connection: sa.Connection, entries: Sequence[Entry]) -> list[Entry]:
    first = _add(connection, tables.ledger, [rows.from_entry(entry) for entry in entries])
    return [
        Entry(e.at, e.kind, e.subject, e.summary, e.cause, e.actor, e.data, first + place)
        for place, e in enumerate(entries)
    ]


def _put_open(connection: sa.Connection, table: sa.Table, new: Sequence[rows.Row]) -> None:
    """Each row replaces the open one of its key, or is added."""
    last = {tables.clean_text(row["key"]): row for row in new}  # of two under one key the later counts
    open_ids: dict[str, int] = {}
    keys = list(last)
    for start in range(0, len(keys), _CHUNK):
        some = keys[start : start + _CHUNK]
        query = sa.select(table.c.key, table.c.id).where(table.c.ended.is_(None), table.c.key.in_(some))
        # SQLite would rather walk all open rows for each chunk than look up its keys
        query = query.with_hint(table, f"INDEXED BY ux_{table.name}_open", "sqlite")
        open_ids.update((key, number) for key, number in connection.execute(query))
    changed = [{**row, "row": open_ids[key]} for key, row in last.items() if key in open_ids]
    if changed:
        _many(connection, table, table.update().where(table.c.id == sa.bindparam("row")), changed)
    _add(connection, table, [row for key, row in last.items() if key not in open_ids])


def _close(connection: sa.Connection, keys: Sequence[str], at: float) -> None:
    if keys:
        table = tables.findings
        ending = table.update().where(table.c.key == sa.bindparam("of"), table.c.ended.is_(None))
        _many(connection, table, ending, [{"ended": at, "of": tables.clean_text(key)} for key in keys])


def _put(connection: sa.Connection, table: sa.Table, new: Sequence[rows.Row]) -> None:
    """Each row replaces the one of its source, or is added."""
    if new:
        by_source = {row["source"]: row for row in new}
        connection.execute(table.delete().where(table.c.source == sa.bindparam("of")), [{"of": s} for s in by_source])
        connection.execute(table.insert(), list(by_source.values()))


def _add_boots(connection: sa.Connection, new: Sequence[rows.Row]) -> None:
    table = tables.boots
    unique = {(row["node"], row["boot_id"]): row for row in new}
    known: set[tuple[str, str]] = set()
    nodes = sorted({node for node, _ in unique})
    for start in range(0, len(nodes), _CHUNK):
        query = sa.select(table.c.node, table.c.boot_id).where(table.c.node.in_(nodes[start : start + _CHUNK]))
        known.update((node, boot_id) for node, boot_id in connection.execute(query))
    _add(connection, table, [row for key, row in unique.items() if key not in known])


def _not_kept_yet(connection: sa.Connection, outcome: Outcome) -> Sequence[LogEvent]:
    """The outcome's events without those of sources that stand where the outcome would bring them."""
    if not outcome.events or not outcome.cursors:
        return outcome.events
    query = sa.select(tables.cursors.c.source, tables.cursors.c.cursor)
    kept: Mapping[str, Any] = {source: cursor for source, cursor in connection.execute(query)}
    again = {s for s, c in outcome.cursors.items() if s in kept and kept[s] == tables.clean_json(dict(c))}
    return [event for event in outcome.events if event.source not in again]
