"""The schema's steps, one file each in `versions/`, numbered 0001, 0002 … and run in process.

An upgrade is one transaction under the write lock: a process killed in it leaves the old schema, and of
two that start together one waits and then finds nothing to do. There is no way down: a backup is that way.
"""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Final

import sqlalchemy as sa

from nodeworthy.errors import BadRequest
from nodeworthy.record.engine import writing

HEAD: Final = "0003"
_LOCK: Final = 0x6E6F6465  # PostgreSQL advisory lock of schema changes ("node")
_ONE_AT_A_TIME: Final = threading.Lock()  # Alembic keeps its context in module globals


def current(connection: sa.Connection) -> str | None:
    """The schema revision of a database; None when it has none yet."""
    if not sa.inspect(connection).has_table("alembic_version"):
        return None
    return connection.execute(sa.text("SELECT version_num FROM alembic_version")).scalar()


def check_known(revision: str | None) -> None:
    """Raises BadRequest when a schema was made by a newer Nodeworthy."""
    if revision is not None and revision > HEAD:
        raise BadRequest(
            f"the store has schema {revision}, made by a newer Nodeworthy; this one knows up to {HEAD}",
            hint="upgrade this Nodeworthy, or restore a backup into a store of its own",
        )


def upgrade(engine: sa.Engine, revision: str = HEAD) -> None:
    """Bring a database to `revision`, from nothing or from any older one. Refuses a newer schema."""
    with engine.connect() as connection:
        found = current(connection)
    check_known(found)
    if found is not None and found >= revision:
        return
    # imported here: it costs more than the rest of a short command, and is needed once in a store's life
    from alembic import command  # noqa: PLC0415
    from alembic.config import Config  # noqa: PLC0415

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent).replace("%", "%%"))
    with _ONE_AT_A_TIME, writing(engine) as connection, connection.begin():
        if connection.dialect.name == "postgresql":
            connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_LOCK)))
        config.attributes["connection"] = connection
        command.upgrade(config, revision)
