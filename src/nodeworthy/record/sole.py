"""One `serve` per store: two would each commit the same lines, findings and cursors.

A lock is held for as long as the process lives and dies with it: for SQLite flock(2) on a file beside the database, for
PostgreSQL a session's advisory lock on a connection of its own, so it holds across machines. Commands that read, back
up or prune need no such lock: they decide nothing.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import sqlalchemy as sa

from nodeworthy.errors import NotAllowed
from nodeworthy.record.engine import make_engine, parse_url, translated

_KEY: Final = 0x6E6F64655F736572  # PostgreSQL advisory lock of the one that serves ("node_ser")
_HINT: Final = "ask the running one with `nodeworthy status`; stop it first, or give this one a `store` of its own"


@contextmanager
def sole(url: str) -> Iterator[None]:
    """Nobody else is inside for the same store. Raises NotAllowed where somebody is; what open_store does where the
    database cannot be reached."""
    if url == "temporary:":
        yield
        return
    parsed = parse_url(url)
    with _file(Path(parsed.database or "")) if parsed.get_backend_name() == "sqlite" else _session(parsed):
        yield


@contextmanager
def _file(database: Path) -> Iterator[None]:
    path = database.resolve().with_name(database.resolve().name + ".serve")
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o750)
        lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise NotAllowed(
            f"cannot lock the store {database}: {error.strerror}", hint="be its owner, or name another `store`"
        ) from error
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            holder = os.pread(lock, 32, 0).decode(errors="replace").strip() or "unknown"
            said = f"another `nodeworthy serve` (process {holder}) writes to the store {database}"
            raise NotAllowed(said, hint=_HINT) from error
        os.ftruncate(lock, 0)
        os.pwrite(lock, f"{os.getpid()}\n".encode(), 0)
        yield
    finally:
        os.close(lock)


@contextmanager
def _session(url: sa.URL) -> Iterator[None]:
    engine = make_engine(url)
    try:
        with translated(url):
            connection = engine.connect().execution_options(isolation_level="AUTOCOMMIT")
            got = connection.execute(sa.select(sa.func.pg_try_advisory_lock(_KEY))).scalar()
        with connection:
            if not got:
                name = url.render_as_string(hide_password=True)
                raise NotAllowed(f"another `nodeworthy serve` writes to the store {name}", hint=_HINT)
            yield
    finally:
        engine.dispose()
