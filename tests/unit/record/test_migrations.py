"""The schema's steps give exactly the tables that the code speaks to, and refuse what they do not know."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory

from nodeworthy.errors import BadRequest
from nodeworthy.record import migrations
from nodeworthy.record.engine import make_engine, parse_url
from nodeworthy.record.rows import from_event
from nodeworthy.record.store import open_store
from nodeworthy.record.tables import metadata
from tests.postgres import Server
from tests.record_samples import event


def sqlite_schema(path: Path) -> list[str]:
    engine = sa.create_engine(f"sqlite:///{path}")
    with engine.connect() as connection:
        rows = connection.exec_driver_sql("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL").scalars().all()
    engine.dispose()
    return sorted(" ".join(row.split()) for row in rows if "alembic_version" not in row)


def postgres_schema(server: Server, url: str) -> list[str]:
    command = [str(server.bin / "pg_dump"), "--schema-only", "-T", "alembic_version", url]
    said = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout
    # \restrict carries a random word in newer versions
    return [line for line in said.splitlines() if line and not line.startswith(("--", "\\"))]


def test_on_sqlite_the_steps_give_the_tables_to_the_letter(tmp_path: Path) -> None:
    """SQLite's own record of the schema is the same, from the steps and from the tables."""
    open_store(str(tmp_path / "steps.db")).close()
    engine = sa.create_engine(f"sqlite:///{tmp_path}/tables.db")
    metadata.create_all(engine)
    engine.dispose()
    steps = sqlite_schema(tmp_path / "steps.db")
    assert steps == sqlite_schema(tmp_path / "tables.db")
    assert len(steps) > 25


def test_on_postgresql_the_steps_give_the_tables_to_the_letter(postgres_server: Server) -> None:
    """pg_dump says the same of both, and Alembic finds no difference."""
    by_steps, by_tables = postgres_server.database(), postgres_server.database()
    store = open_store(by_steps)
    with store.read() as connection:
        assert compare_metadata(MigrationContext.configure(connection), metadata) == []
    store.close()
    engine = make_engine(parse_url(by_tables))
    metadata.create_all(engine)
    engine.dispose()
    assert postgres_schema(postgres_server, by_steps) == postgres_schema(postgres_server, by_tables)


def test_the_head_that_the_code_names_is_the_last_step() -> None:
    """HEAD is checked without Alembic at each start, so it must be the head that Alembic finds."""
    config = Config()
    config.set_main_option("script_location", str(Path(migrations.__file__).parent))
    assert ScriptDirectory.from_config(config).get_heads() == [migrations.HEAD]


def test_a_newer_schema_is_refused_and_left_alone(tmp_path: Path) -> None:
    """A store made by a newer version is neither read nor changed, and the error says what to do."""
    path = tmp_path / "record.db"
    open_store(str(path)).close()
    engine = sa.create_engine(f"sqlite:///{path}")
    with engine.begin() as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(BadRequest, match="newer Nodeworthy") as refused:
        open_store(str(path))
    assert "upgrade" in refused.value.hint
    with engine.connect() as connection:
        assert migrations.current(connection) == "9999"
    engine.dispose()


def test_an_upgrade_is_all_or_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """When a step fails half-way, no table of it is left, and the next start succeeds."""
    path = tmp_path / "record.db"
    failing = make_engine(parse_url(str(path)))

    @sa.event.listens_for(failing, "before_cursor_execute")
    def stop(_c: object, _cursor: object, statement: str, *_rest: object) -> None:
        if "CREATE TABLE node_states" in statement:
            raise RuntimeError("the power went")

    with pytest.raises(RuntimeError):
        migrations.upgrade(failing)
    failing.dispose()
    assert sqlite_schema(path) == []
    store = open_store(str(path))
    assert store.load().sequence == 0
    store.close()


def test_events_from_before_the_count_stand_for_themselves(tmp_path: Path) -> None:
    """A store of schema 0001 keeps its events through the upgrade, each for one line."""
    path = tmp_path / "record.db"
    engine = make_engine(parse_url(str(path)))
    migrations.upgrade(engine, "0001")
    row = {**from_event(event()), "id": 1}
    for later in ("more", "read_at", "timed"):
        del row[later]
    names = ", ".join(f'"{name}"' for name in row)
    with engine.begin() as connection:
        connection.exec_driver_sql(
            f"INSERT INTO events ({names}) VALUES ({', '.join('?' * len(row))})",
            tuple(row.values()),
        )
    engine.dispose()
    store = open_store(str(path))
    assert store.events().items == (event(),)
    store.close()
