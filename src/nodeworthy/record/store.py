"""The record: ledger, findings, holds, node states, events and cursors in one database.

Every write takes one lock first (SQLite: BEGIN IMMEDIATE; PostgreSQL: the ledger's row in `counters`, FOR
UPDATE) and keeps it until commit. So there is one writer at a time, numbers taken from `counters` follow
commit order, and two writers cannot deadlock. Readers hold no lock and see one moment. See
docs/decisions/0001-one-write-lock.md.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, TypeVar

import sqlalchemy as sa

from nodeworthy.errors import NotKnown, Refused
from nodeworthy.model.event import LogEvent
from nodeworthy.model.finding import Finding
from nodeworthy.model.hold import Hold, HoldState
from nodeworthy.model.ledger import Entry
from nodeworthy.model.record import Memory, Outcome, Page, Pruned, Revision, StoreInfo, Transition
from nodeworthy.record import changes, migrations, retention, rows, tables
from nodeworthy.record.engine import make_engine, parse_url, reading, shown, translated, writing
from nodeworthy.record.thinning import SAME

Item = TypeVar("Item")
_NODES_AT_ONCE = 1000  # names in one query, far below what either database takes (SQLite: 32,766)


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
    return _opened(parsed) if create else _opened(parsed, check=_must_exist)


def _opened(
    url: sa.URL, *, check: Callable[[sa.Engine], None] | None = None, then: Callable[[], None] | None = None
) -> SqlStore:
    engine = make_engine(url)
    try:
        with translated(url):
            if check is not None:
                check(engine)
            migrations.upgrade(engine)
    except BaseException:
        engine.dispose()
        raise
    return SqlStore(engine, then)


def _must_exist(engine: sa.Engine) -> None:
    """Refuses to make a store where one was expected, for example under a mistyped name."""
    name = shown(engine.url)
    missing = NotKnown(
        f"there is no store at {name}", hint="name it with --store, or start `nodeworthy serve` to make one"
    )
    if engine.dialect.name == "sqlite":
        try:
            Path(engine.url.database or "").stat()
        except FileNotFoundError:
            raise missing from None
        except OSError as error:
            raise Refused(
                f"the store {name} cannot be opened: {error.strerror}",
                hint="be its owner, or name another with --store",
            ) from error
    with engine.connect() as connection:
        if migrations.current(connection) is None:
            raise missing


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
            with translated(self.engine.url), connection.begin_nested():  # all or nothing, also when the outer goes on
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
            return changes.append(connection, list(entries))

    def commit_turn(self, outcome: Outcome) -> list[Entry]:
        with self.write() as connection:
            return changes.keep(connection, outcome)

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
                sequence=changes.counted(connection, tables.ledger),
            )

    def sequence(self) -> int:
        with self.read() as connection:
            return changes.counted(connection, tables.ledger)

    def entries(
        self,
        after: int = 0,
        limit: int = 1000,
        *,
        node: str | None = None,
        kinds: Sequence[str] = (),
        since: float = 0.0,
        newest: bool = False,
    ) -> list[Entry]:
        table = tables.ledger
        query = _page_of(table, after, limit, node)
        if kinds:
            query = query.where(table.c.kind.in_(kinds))
        if since:
            query = query.where(table.c.at >= since)
        if newest:
            query = query.order_by(None).order_by(table.c.id.desc())
        with self.read() as connection:
            found = list(_all(connection, query, rows.to_entry))
        return found[::-1] if newest else found

    def findings(
        self, *, open_only: bool = True, node: str | None = None, since: float = 0.0, after: int = 0, limit: int = 1000
    ) -> Page[Finding]:
        query = _page_of(tables.findings, after, limit + 1, node).where(_not_over(tables.findings, open_only, since))
        return self._page(query, limit, rows.to_finding)

    def holds(
        self,
        *,
        open_only: bool = True,
        node: str | None = None,
        states: Sequence[HoldState] = (),
        since: float = 0.0,
        after: int = 0,
        limit: int = 1000,
    ) -> Page[Hold]:
        query = _page_of(tables.holds, after, limit + 1, node).where(_not_over(tables.holds, open_only, since))
        if states:
            query = query.where(tables.holds.c.state.in_([state.value for state in states]))
        return self._page(query, limit, rows.to_hold)

    def history(self, node: str, *, since: float = 0.0, after: int = 0, limit: int = 1000) -> Page[Transition]:
        table = tables.node_states
        in_force = sa.select(sa.func.max(table.c.id)).where(table.c.node == node, table.c.at <= since)
        first = sa.func.coalesce(in_force.scalar_subquery(), 0)
        query = _page_of(table, after, limit + 1, node).where(table.c.id >= first)
        return self._page(query, limit, rows.to_state)

    def histories(self, nodes: Collection[str], *, since: float = 0.0) -> Mapping[str, Sequence[Transition]]:
        table, wanted = tables.node_states, sorted(nodes)
        found: dict[str, list[Transition]] = {}
        with self.read() as connection:
            for start in range(0, len(wanted), _NODES_AT_ONCE):
                these = table.c.node.in_(wanted[start : start + _NODES_AT_ONCE])
                in_force = sa.select(sa.func.max(table.c.id)).where(these, table.c.at <= since).group_by(table.c.node)
                later = sa.or_(table.c.at > since, table.c.id.in_(in_force))
                for state in _all(connection, sa.select(table).where(these, later).order_by(table.c.id), rows.to_state):
                    found.setdefault(state.node, []).append(state)
        return found

    def events(
        self, *, node: str | None = None, since: float = 0.0, after: int = 0, limit: int = 1000, each: int = 0
    ) -> Page[LogEvent]:
        query = _page_of(tables.events, after, limit + 1, node).where(tables.events.c.at >= since)
        if each:
            query = query.where(tables.events.c.id.in_(_newest_of_each(since, each)))
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
        return Page(rows.to_words(shown, to_word), shown[-1]["id"] if len(found) > limit else None)


def _where_open(table: sa.Table) -> sa.Select[Any]:
    return sa.select(table).where(table.c.ended.is_(None)).order_by(table.c.id)


def _not_over(table: sa.Table, open_only: bool, since: float) -> sa.ColumnElement[bool]:
    is_open = table.c.ended.is_(None)
    return is_open if open_only else sa.or_(is_open, table.c.ended >= since)


def _last_per_node(table: sa.Table) -> sa.Select[Any]:
    return sa.select(table).where(table.c.id.in_(sa.select(sa.func.max(table.c.id)).group_by(table.c.node)))


def _newest_of_each(since: float, each: int) -> sa.Select[Any]:
    """Numbers of the newest events that say the same, and of those that an open finding began with."""
    table, open_ = tables.events, tables.findings
    same = [table.c[name] for name in SAME]
    place = sa.func.row_number().over(partition_by=same, order_by=[table.c.at.desc(), table.c.id.desc()])
    began = sa.exists().where(open_.c.node == table.c.node, open_.c.since == table.c.at, open_.c.ended.is_(None))
    ranked = sa.select(table.c.id, place.label("place"), began.label("began")).where(table.c.at >= since).subquery()
    return sa.select(ranked.c.id).where(sa.or_(ranked.c.place <= each, ranked.c.began))


def _page_of(table: sa.Table, after: int, limit: int, node: str | None) -> sa.Select[Any]:
    query = sa.select(table).where(table.c.id > after).order_by(table.c.id).limit(limit)
    return query if node is None else query.where(table.c.node == node)


def _all(
    connection: sa.Connection, query: sa.Select[Any], to_word: Callable[[sa.RowMapping], Item]
) -> tuple[Item, ...]:
    return rows.to_words(connection.execute(query).mappings(), to_word)


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
        url=shown(engine.url),
        schema_revision=migrations.current(connection) or "",
        size_bytes=size,
        rows={
            table.name: count(sa.select(table)) for table in tables.metadata.sorted_tables if table.name != "counters"
        },
        open_findings=count(_where_open(tables.findings)),
        open_holds=count(_where_open(tables.holds)),
        oldest=connection.execute(sa.select(sa.func.min(tables.ledger.c.at))).scalar(),
        sequence=changes.counted(connection, tables.ledger),
    )
