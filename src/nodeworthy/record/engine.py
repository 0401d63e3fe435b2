"""A database engine for a store URL: SQLite or PostgreSQL, set up so that one rule holds on both.

Reads see one consistent moment. Writes are one at a time: SQLite by BEGIN IMMEDIATE, PostgreSQL by the row
lock that `store` takes first (in READ COMMITTED, so that what was committed while it waited is seen). SQLite runs in WAL mode (readers never wait for the writer) and with
`synchronous=FULL`, so what was committed survives the loss of power, not only of the process.
"""

from __future__ import annotations

import os
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.exc import ArgumentError, DBAPIError, IntegrityError, OperationalError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from nodeworthy.errors import BadRequest, Broken, Garbled, NodeworthyError, Refused, TimedOut, Unreachable
from nodeworthy.model.secrets import redacted
from nodeworthy.record.tables import dump_json, load_json

LOCK_WAIT_S: Final = 10  # a writer waits this long for another; a turn commits in well under a second
CONNECT_WAIT_S: Final = 5
STATEMENT_WAIT_S: Final = 120  # a prune's or a dump's slowest single statement, with room
_JSON: Final[dict[str, Any]] = {"json_serializer": dump_json, "json_deserializer": load_json}
_HINT = "write sqlite:////var/lib/nodeworthy/record.db or postgresql://USER@HOST/DATABASE"


def parse_url(text: str) -> sa.URL:
    """The URL of a store; a bare path is SQLite. Raises BadRequest for anything else than our two databases."""
    if "://" not in text:
        if not text:
            raise BadRequest("no store is named", hint=_HINT)
        return sa.URL.create("sqlite", database=str(Path(text).expanduser()))
    try:
        url = sa.make_url(text)
    except (ArgumentError, ValueError) as error:
        raise BadRequest("the store's URL cannot be read", hint=_HINT) from error
    if url.drivername in ("postgresql", "postgres", "postgresql+psycopg"):
        return url.set(drivername="postgresql+psycopg")
    if url.drivername == "sqlite" and url.database not in ("", ":memory:", None):
        return url
    raise BadRequest(f"not a store: {shown(url)}", hint=_HINT)


def shown(url: sa.URL) -> str:
    """The URL as it may be told: without the password, also where libpq takes it as a parameter."""
    return redacted(url.render_as_string(hide_password=True))


def make_engine(url: sa.URL) -> sa.Engine:
    """An engine with our settings; connects to nothing yet."""
    if url.get_backend_name() == "sqlite":
        engine = sa.create_engine(url, **_JSON, connect_args={"timeout": LOCK_WAIT_S})
        sa.event.listen(
            engine, "do_connect", lambda _dialect, _record, _args, _options: _make_file(Path(url.database or ""))
        )
        sa.event.listen(engine, "connect", _set_up_sqlite)
        sa.event.listen(engine, "begin", _begin_sqlite)
        return engine
    engine = sa.create_engine(
        url,
        **_JSON,
        pool_pre_ping=True,  # survives a restart of the server
        connect_args={"connect_timeout": CONNECT_WAIT_S, "application_name": "nodeworthy", "tcp_user_timeout": 30_000},
    )
    sa.event.listen(engine, "connect", _set_up_postgresql)
    return engine


def reading(engine: sa.Engine) -> sa.Connection:
    """A connection whose transaction sees one moment, whatever is committed meanwhile."""
    connection = engine.connect()
    if engine.dialect.name == "postgresql":
        connection = connection.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
    return connection


def writing(engine: sa.Engine) -> sa.Connection:
    """A connection whose transaction is the only one that writes, once its caller holds the write lock."""
    return engine.connect().execution_options(nodeworthy_write=True)


def _make_file(path: Path) -> None:
    """Make a missing database, in WAL mode before anybody can see it: to switch an open one needs it alone, and
    SQLite does not wait for that. Mode 0600, as the record names users and hosts; its WAL gets the same."""
    try:
        if path.exists():
            return
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o750)
        number, partial = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            os.close(number)
            with closing(sqlite3.connect(partial)) as connection:
                connection.execute("PRAGMA journal_mode=WAL")
            with suppress(FileExistsError):  # another was quicker
                os.link(partial, path)
        finally:
            Path(partial).unlink()
    except (OSError, sqlite3.Error) as error:
        raise Unreachable(
            f"the store {path} cannot be made: {getattr(error, 'strerror', None) or error}",
            hint="name another place with --store or NODEWORTHY_STORE",
        ) from error


def _set_up_sqlite(connection: Any, _record: object) -> None:
    connection.isolation_level = None  # we say BEGIN ourselves, see _begin_sqlite
    for pragma in (
        f"busy_timeout={LOCK_WAIT_S * 1000}",
        "journal_mode=WAL",
        "synchronous=FULL",
        "foreign_keys=ON",
        "journal_size_limit=67108864",  # a long backup lets the WAL grow; it shrinks to this afterwards
    ):
        connection.execute(f"PRAGMA {pragma}")


def _begin_sqlite(connection: sa.Connection) -> None:
    write = connection.get_execution_options().get("nodeworthy_write", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if write else "BEGIN")


def _set_up_postgresql(connection: Any, _record: object) -> None:
    autocommit, connection.autocommit = connection.autocommit, True
    connection.execute(f"SET statement_timeout = '{STATEMENT_WAIT_S}s'")
    connection.execute(f"SET lock_timeout = '{LOCK_WAIT_S}s'")
    connection.autocommit = autocommit


@contextmanager
def translated(url: sa.URL) -> Iterator[None]:
    """Database errors inside, as errors of our tree."""
    try:
        yield
    except SQLAlchemyError as error:
        raise _translate(error, shown(url)) from error


def _translate(error: SQLAlchemyError, name: str) -> NodeworthyError:
    said = str(getattr(error, "orig", None) or error).strip().splitlines()
    text = said[0] if said else type(error).__name__
    lower = text.lower()
    state = str(getattr(getattr(error, "orig", None), "sqlstate", None) or "")
    if isinstance(error, PoolTimeout) or "locked" in lower or state in ("55P03", "57014") or "timeout" in lower:
        return TimedOut(f"the store {name} did not answer in time: {text}", hint="see whether another writer holds it")
    if "not a database" in lower or "malformed" in lower:
        return Garbled(
            f"the store {name} cannot be read: {text}", hint="restore a backup: nodeworthy store restore FILE"
        )
    if "full" in lower or "readonly" in lower or "read-only" in lower or state.startswith(("53", "25006", "42501")):
        return Refused(f"the store {name} takes no writes: {text}", hint="see disk space, permissions and roles")
    if isinstance(error, IntegrityError) or not isinstance(error, DBAPIError):
        return Broken(f"the store {name} was used wrongly: {text}", hint="please report this")
    if isinstance(error, OperationalError) or error.connection_invalidated:
        return Unreachable(f"the store {name} cannot be reached: {text}", hint="see that it runs and is reachable")
    return Broken(f"the store {name} was used wrongly: {text}", hint="please report this")
