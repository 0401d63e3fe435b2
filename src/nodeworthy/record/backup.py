"""Backup and restore: one portable file for both databases, taken while the store is in use.

A backup is gzipped JSON lines: a head (format, schema revision), then per table one line with its columns
and one array a row, then an end with the count of rows per table and a SHA-256 of all before it. It is read
from one moment of the store. A file that was cut, changed or half written has no valid end, and nothing of
it is restored. An older schema's backup is restored into that schema and then upgraded.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import zlib
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import sqlalchemy as sa

from nodeworthy.errors import BadRequest, Garbled, NotAllowed, Refused
from nodeworthy.record import migrations, tables
from nodeworthy.record.engine import make_engine, parse_url, translated, writing
from nodeworthy.record.store import SqlStore

FORMAT: Final = "nodeworthy.store-backup/1"
_BATCH: Final = 2000
_NOT_DATA: Final = frozenset({"alembic_version"})


@dataclass(frozen=True, slots=True)
class Backup:
    """What a backup holds. `sequence` is that of the last ledger entry in it."""

    path: str
    schema_revision: str
    at: float
    sequence: int
    rows: dict[str, int]


def back_up(store: SqlStore, path: Path, *, now: float, force: bool = False) -> Backup:
    """Write the whole store, as of one moment, to `path` (mode 0600), complete or not at all."""
    if path.exists() and not force:
        raise NotAllowed(f"{path} is there already", hint="name another file, or replace it with --force")
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        with os.fdopen(os.open(partial, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as file:
            with gzip.GzipFile(filename="", fileobj=file, mode="wb", compresslevel=3) as packed:
                made = _write(store, packed, path, now)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    except OSError as error:
        raise Refused(f"{path} cannot be written: {error.strerror}", hint="see disk space and permissions") from error
    finally:
        with suppress(OSError):
            partial.unlink()
    return made


def _write(store: SqlStore, packed: gzip.GzipFile, path: Path, now: float) -> Backup:
    digest, counts = hashlib.sha256(), dict[str, int]()

    def line(value: Any) -> None:
        text = json.dumps(value, separators=(",", ":"), allow_nan=False).encode() + b"\n"
        digest.update(text)
        packed.write(text)

    with store.read() as connection:
        schema = migrations.current(connection) or ""
        sequence = connection.execute(
            sa.select(tables.counters.c.value).where(tables.counters.c.name == tables.ledger.name)
        ).scalar_one()
        line({"format": FORMAT, "schema": schema, "at": now, "sequence": sequence})
        for table in tables.metadata.sorted_tables:
            line({"table": table.name, "columns": [column.name for column in table.columns]})
            counts[table.name] = 0
            found = connection.execution_options(stream_results=True, yield_per=_BATCH).execute(
                sa.select(table).order_by(*table.primary_key.columns)
            )
            for row in found:
                line(list(row))
                counts[table.name] += 1
    packed.write(json.dumps({"rows": counts, "sha256": digest.hexdigest()}).encode() + b"\n")
    return Backup(str(path), schema, now, sequence, counts)


def verify(path: Path) -> Backup:
    """What a backup holds, after reading all of it. Raises Garbled when it is not whole and unchanged."""
    head: dict[str, Any] = {}
    counts: Counter[str] = Counter()
    digest, table, end = hashlib.sha256(), "", None
    for raw in _lines(path):
        if end is not None:
            raise _not_whole(path, "something follows its end")
        value = _parsed(path, raw)
        if isinstance(value, dict) and "sha256" in value:
            end = value
            continue
        digest.update(raw)
        if isinstance(value, list):
            counts[table] += 1
        elif "format" in value:
            head = value
        else:
            table = str(value.get("table"))
    if head.get("format") != FORMAT:
        raise Garbled(
            f"{path} is not a backup of a store ({FORMAT})", hint="make one with `nodeworthy store backup FILE`"
        )
    if end is None:
        raise _not_whole(path, "it has no end")
    try:
        rows = {str(name): int(count) for name, count in end["rows"].items()}
        backup = Backup(str(path), str(head["schema"]), float(head["at"]), int(head["sequence"]), rows)
    except (KeyError, AttributeError, TypeError, ValueError, OverflowError) as error:
        raise _not_whole(path, "its head or its end says too little") from error
    if end["sha256"] != digest.hexdigest() or dict(counts) != {name: count for name, count in rows.items() if count}:
        raise _not_whole(path, "its content does not match its digest")
    return backup


def _lines(path: Path) -> Iterator[bytes]:
    try:
        with gzip.open(path, "rb") as packed:
            yield from packed
    except FileNotFoundError as error:
        raise BadRequest(f"there is no file {path}", hint="name a file made by `nodeworthy store backup`") from error
    except (OSError, EOFError, zlib.error) as error:
        raise _not_whole(path, str(error)) from error


def _parsed(path: Path, raw: bytes) -> Any:
    try:
        value = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise _not_whole(path, "a line is not JSON") from error
    if not isinstance(value, (dict, list)):
        raise _not_whole(path, "a line is neither a head nor a row")
    return value


def _not_whole(path: Path, why: str) -> Garbled:
    return Garbled(f"the backup {path} is not whole: {why}", hint="nothing was restored; take another backup file")


def restore(url: str, path: Path, *, force: bool = False) -> Backup:
    """Fill the store at `url` from a backup, in one transaction, and check it before it counts.

    Raises NotAllowed when the store holds anything and `force` is not given; with it, all that it held goes.
    """
    backup = verify(path)
    migrations.check_known(backup.schema_revision)
    parsed = parse_url(url)
    engine = make_engine(parsed)
    try:
        with translated(parsed):
            _check_not_later(engine, backup)
            migrations.upgrade(engine, backup.schema_revision)
            with writing(engine) as connection, connection.begin():
                _refill(connection, path, backup, force=force)
            migrations.upgrade(engine)
    finally:
        engine.dispose()
    return backup


def _check_not_later(engine: sa.Engine, backup: Backup) -> None:
    with engine.connect() as connection:
        present = migrations.current(connection)
    if present is not None and present > backup.schema_revision:
        raise BadRequest(
            f"the backup has schema {backup.schema_revision}, the store a later one ({present})",
            hint="restore it into a new store: it is upgraded there",
        )


def _refill(connection: sa.Connection, path: Path, backup: Backup, *, force: bool) -> None:
    there = sa.MetaData()
    there.reflect(connection)
    data = [table for table in there.sorted_tables if table.name not in _NOT_DATA]
    connection.execute(sa.select(there.tables["counters"]).with_for_update())
    if not force and any(_count(connection, table) for table in data if table.name != "counters"):
        raise NotAllowed(
            "the store is not empty", hint="restore into a new store, or replace all that it holds with --force"
        )
    for table in data:
        connection.execute(table.delete())
    for name, columns, some in _batches(path):
        if name not in there.tables or not set(columns) <= set(there.tables[name].columns.keys()):
            raise _not_whole(path, f"schema {backup.schema_revision} has no such table or column in {name}")
        connection.execute(there.tables[name].insert(), [dict(zip(columns, row, strict=True)) for row in some])
    for table in data:
        found = _count(connection, table)
        if found != backup.rows.get(table.name, 0):
            raise Refused(f"{table.name} has {found} rows after the restore, the backup {backup.rows.get(table.name)}")


def _count(connection: sa.Connection, table: sa.Table) -> int:
    return int(connection.execute(sa.select(sa.func.count()).select_from(table)).scalar_one())


def _batches(path: Path) -> Iterator[tuple[str, list[str], list[list[Any]]]]:
    """The rows of a verified backup, some at a time: table, columns, rows."""
    name, columns, some = "", list[str](), list[list[Any]]()
    for raw in _lines(path):
        value = json.loads(raw)
        if isinstance(value, list):
            some.append(value)
        if some and (isinstance(value, dict) or len(some) == _BATCH):
            yield name, columns, some
            some = []
        if isinstance(value, dict) and "table" in value:
            name, columns = value["table"], value["columns"]
