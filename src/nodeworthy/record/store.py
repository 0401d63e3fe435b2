"""The record: ledger, findings, holds, node states, events and cursors in one database.

Every write takes one lock first (SQLite: BEGIN IMMEDIATE; PostgreSQL: the ledger's row in `counters`, FOR
UPDATE) and keeps it until commit. So there is one writer at a time, numbers taken from `counters` follow
commit order, and two writers cannot deadlock. Readers hold no lock and see one moment. See
docs/decisions/0101-one-write-lock.md.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, TypeVar

import sqlalchemy as sa

from nodeworthy.errors import Garbled, NotKnown
from nodeworthy.model.event import LogEvent
from nodeworthy.model.finding import Finding
from nodeworthy.model.hold import Hold, HoldState
from nodeworthy.model.ledger import Entry
from nodeworthy.model.record import Memory, NodeState, Outcome, Page, Pruned, Revision, StoreInfo
from nodeworthy.record import migrations, retention, rows, tables
from nodeworthy.record.engine import make_engine, parse_url, reading, translated, writing

Item = TypeVar("Item")
_CHUNK = 500  # keys in one IN (…); SQLite before 3.32 takes at most 999 variables


def open_store(url: str, *, create: bool = True) -> SqlStore:
    """The store at a URL or SQLite path, brought to the present schema. `temporary:` is a SQLite file of its
    own that goes when the store is closed.

    Raises BadRequest (not a store's URL, or made by a newer Nodeworthy), Unreachable, Garbled, and NotKnown
    when there is none and `create` is false.
    """
    if url == "temporary:":
        folder = tempfile.TemporaryDirectory(prefix="nodeworthy-store-")
        return _opened(parse_url(f"{folder.name}/record.db"), then=folder.cleanup)
    parsed = parse_url(url)
    if not create:
        _must_exist(parsed)
    return _opened(parsed)


def _opened(url: sa.URL, then: Callable[[], None] | None = None) -> SqlStore:
    engine = make_engine(url)
    try:
        with translated(url):
            migrations.upgrade(engine)
    except BaseException:
        engine.dispose()
        raise
    return SqlStore(engine, then)


def _must_exist(url: sa.URL) -> None:
    if url.get_backend_name() == "sqlite" and not Path(url.database or "").is_file():
        raise NotKnown(
            f"there is no store at {url.database}", hint="name it with --store, or start `nodeworthy serve` to make one"
        )


class SqlStore:
    """The port `Store` over SQLAlchemy Core. Safe for threads: each call has its own connection."""

    def __init__(self, engine: sa.Engine, then: Callable[[], None] | None = None) -> None:
        self.engine = engine
        self._then = then
        self._open: ContextVar[sa.Connection | None] = ContextVar("open transaction", default=None)

    # transactions

    @contextmanager
    def transaction(self) -> Iterator[None]:
        with self.write():
            yield

    @contextmanager
    def write(self) -> Iterator[sa.Connection]:
        """The connection of the open transaction, or of a new one that holds the write lock."""
        connection = self._open.get()
        if connection is not None:
            yield connection
            return
        with translated(self.engine.url), writing(self.engine) as connection, connection.begin():
            lock = sa.select(tables.counters.c.value).where(tables.counters.c.name == tables.ledger.name)
            connection.execute(lock.with_for_update())
            token = self._open.set(connection)
            try:
                yield connection
            finally:
                self._open.reset(token)

    @contextmanager
    def read(self) -> Iterator[sa.Connection]:
        """The connection of the open transaction, or of a new one that sees one moment."""
        connection = self._open.get()
        if connection is not None:
            yield connection
            return
        with translated(self.engine.url), reading(self.engine) as connection, connection.begin():
            yield connection

    # writing

    def append(self, entries: Iterable[Entry]) -> list[Entry]:
        with self.write() as connection:
            return _append(connection, list(entries))

    def commit_turn(self, outcome: Outcome) -> list[Entry]:
        with self.write() as connection:
            events = _not_kept_yet(connection, outcome)
            _close(connection, outcome.closed, outcome.at)
            _put_open(connection, tables.findings, [rows.from_finding(f) for f in outcome.findings])
            _put_open(connection, tables.holds, [rows.from_hold(h) for h in outcome.holds])
            _add(connection, tables.node_states, [rows.from_state(s) for s in outcome.states])
            _add(connection, tables.events, [rows.from_event(e) for e in events])
            _add_boots(connection, [rows.from_boot(b) for b in outcome.boots])
            _put(connection, tables.sources, [rows.from_source(s) for s in outcome.sources])
            positions = [{"source": s, "cursor": dict(c), "at": outcome.at} for s, c in outcome.cursors.items()]
            _put(connection, tables.cursors, positions)
            return _append(connection, list(outcome.entries))

    def save_revision(self, revision: Revision) -> None:
        table = tables.revisions
        with self.write() as connection:
            found = sa.select(table.c.at).where(table.c.kind == revision.kind, table.c.digest == revision.digest)
            if connection.execute(found).first() is None:
                row = {"kind": revision.kind, "digest": revision.digest, "at": revision.at, "content": revision.content}
                connection.execute(table.insert(), [row])

    def set_note(self, key: str, value: object) -> None:
        with self.write() as connection:
            connection.execute(tables.notes.delete().where(tables.notes.c.key == key))
            connection.execute(tables.notes.insert(), [{"key": key, "value": value}])

    def prune(self, before: float, *, now: float) -> Pruned:
        return retention.prune(self, before, now=now)

    # reading

    def load(self) -> Memory:
        with self.read() as connection:
            findings = _all(connection, _where_open(tables.findings), rows.to_finding)
            holds = _all(connection, _where_open(tables.holds), rows.to_hold)
            states = _all(connection, _last_per_node(tables.node_states), rows.to_state)
            boots = _all(connection, _last_per_node(tables.boots), rows.to_boot)
            sources = _all(connection, sa.select(tables.sources), rows.to_source)
            cursors = connection.execute(sa.select(tables.cursors.c.source, tables.cursors.c.cursor)).all()
            return Memory(
                findings={f.key: f for f in findings},
                holds={h.key: h for h in holds},
                states={s.node: s for s in states},
                boots={b.node: b for b in boots},
                sources={s.source: s for s in sources},
                cursors={source: cursor for source, cursor in cursors},
                sequence=_counted(connection, tables.ledger),
            )

    def entries(
        self, after: int = 0, limit: int = 1000, *, node: str | None = None, kinds: Sequence[str] = ()
    ) -> list[Entry]:
        query = _page_of(tables.ledger, after, limit, node)
        if kinds:
            query = query.where(tables.ledger.c.kind.in_(kinds))
        with self.read() as connection:
            return list(_all(connection, query, rows.to_entry))

    def findings(
        self, *, open_only: bool = True, node: str | None = None, after: int = 0, limit: int = 1000
    ) -> Page[Finding]:
        query = _page_of(tables.findings, after, limit + 1, node)
        if open_only:
            query = query.where(tables.findings.c.ended.is_(None))
        return self._page(query, limit, rows.to_finding)

    def holds(
        self,
        *,
        open_only: bool = True,
        node: str | None = None,
        states: Sequence[HoldState] = (),
        after: int = 0,
        limit: int = 1000,
    ) -> Page[Hold]:
        query = _page_of(tables.holds, after, limit + 1, node)
        if open_only:
            query = query.where(tables.holds.c.ended.is_(None))
        if states:
            query = query.where(tables.holds.c.state.in_([state.value for state in states]))
        return self._page(query, limit, rows.to_hold)

    def history(self, node: str, *, since: float = 0.0, after: int = 0, limit: int = 1000) -> Page[NodeState]:
        table = tables.node_states
        in_force = sa.select(sa.func.max(table.c.id)).where(table.c.node == node, table.c.at <= since)
        first = sa.func.coalesce(in_force.scalar_subquery(), 0)
        query = _page_of(table, after, limit + 1, node).where(table.c.id >= first)
        return self._page(query, limit, rows.to_state)

    def events(
        self, *, node: str | None = None, since: float = 0.0, after: int = 0, limit: int = 1000
    ) -> Page[LogEvent]:
        query = _page_of(tables.events, after, limit + 1, node).where(tables.events.c.at >= since)
        return self._page(query, limit, rows.to_event)

    def revision(self, kind: str, digest: str) -> Revision:
        table = tables.revisions
        with self.read() as connection:
            query = sa.select(table).where(table.c.kind == kind, table.c.digest == digest)
            row = connection.execute(query).mappings().first()
        if row is None:
            raise NotKnown(f"the record has no {kind} revision {digest}", hint="it may be from before the record began")
        return Revision(row["kind"], row["digest"], row["at"], row["content"])

    def note(self, key: str) -> object | None:
        with self.read() as connection:
            value: object | None = connection.execute(
                sa.select(tables.notes.c.value).where(tables.notes.c.key == key)
            ).scalar()
            return value

    def info(self) -> StoreInfo:
        with self.read() as connection:
            return _info(connection, self.engine)

    def close(self) -> None:
        self.engine.dispose()
        if self._then is not None:
            self._then()

    def _page(self, query: sa.Select[Any], limit: int, to_word: Callable[[sa.RowMapping], Item]) -> Page[Item]:
        """A page of a query that asks for one row more than `limit`: that row says that there is more."""
        with self.read() as connection:
            found = connection.execute(query).mappings().all()
        shown = found[:limit]
        return Page(tuple(to_word(row) for row in shown), shown[-1]["id"] if len(found) > limit else None)


def _take(connection: sa.Connection, table: sa.Table, count: int) -> int:
    """The first of `count` fresh numbers of a table. Needs the write lock."""
    mine = tables.counters.c.name == table.name
    connection.execute(tables.counters.update().where(mine).values(value=tables.counters.c.value + count))
    return _counted(connection, table) - count + 1


def _counted(connection: sa.Connection, table: sa.Table) -> int:
    value = connection.execute(sa.select(tables.counters.c.value).where(tables.counters.c.name == table.name)).scalar()
    if value is None:
        raise Garbled(f"the store has no counter for {table.name}", hint="restore a backup")
    return int(value)


def _add(connection: sa.Connection, table: sa.Table, new: Sequence[rows.Row]) -> int:
    """Insert rows under fresh numbers; the first of them."""
    if not new:
        return 0
    first = _take(connection, table, len(new))
    connection.execute(table.insert(), [{**row, "id": first + place} for place, row in enumerate(new)])
    return first


def _append(connection: sa.Connection, entries: Sequence[Entry]) -> list[Entry]:
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
        open_ids.update((key, number) for key, number in connection.execute(query))
    changed = [{**row, "row": open_ids[key]} for key, row in last.items() if key in open_ids]
    if changed:
        connection.execute(table.update().where(table.c.id == sa.bindparam("row")), changed)
    _add(connection, table, [row for key, row in last.items() if key not in open_ids])


def _close(connection: sa.Connection, keys: Sequence[str], at: float) -> None:
    if keys:
        table = tables.findings
        ending = table.update().where(table.c.key == sa.bindparam("of"), table.c.ended.is_(None)).values(ended=at)
        connection.execute(ending, [{"of": key} for key in keys])


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


def _where_open(table: sa.Table) -> sa.Select[Any]:
    return sa.select(table).where(table.c.ended.is_(None)).order_by(table.c.id)


def _last_per_node(table: sa.Table) -> sa.Select[Any]:
    return sa.select(table).where(table.c.id.in_(sa.select(sa.func.max(table.c.id)).group_by(table.c.node)))


def _page_of(table: sa.Table, after: int, limit: int, node: str | None) -> sa.Select[Any]:
    query = sa.select(table).where(table.c.id > after).order_by(table.c.id).limit(limit)
    return query if node is None else query.where(table.c.node == node)


def _all(
    connection: sa.Connection, query: sa.Select[Any], to_word: Callable[[sa.RowMapping], Item]
) -> tuple[Item, ...]:
    return tuple(to_word(row) for row in connection.execute(query).mappings())


def _info(connection: sa.Connection, engine: sa.Engine) -> StoreInfo:
    def count(query: sa.Select[Any]) -> int:
        return int(connection.execute(sa.select(sa.func.count()).select_from(query.subquery())).scalar_one())

    if engine.dialect.name == "sqlite":
        size = connection.exec_driver_sql(
            "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()"
        ).scalar()
    else:
        size = connection.execute(sa.select(sa.func.pg_database_size(sa.func.current_database()))).scalar()
    return StoreInfo(
        url=engine.url.render_as_string(hide_password=True),
        schema=migrations.current(connection) or "",
        size_bytes=size,
        rows={
            table.name: count(sa.select(table)) for table in tables.metadata.sorted_tables if table.name != "counters"
        },
        open_findings=count(_where_open(tables.findings)),
        open_holds=count(_where_open(tables.holds)),
        oldest=connection.execute(sa.select(sa.func.min(tables.ledger.c.at))).scalar(),
        sequence=_counted(connection, tables.ledger),
    )
