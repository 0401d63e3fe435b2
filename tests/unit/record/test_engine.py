"""Store URLs, and database errors as errors of our tree."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeworthy.errors import BadRequest, Garbled, NotKnown, Refused, TimedOut, Unreachable
from nodeworthy.model.hold import OwnerKind
from nodeworthy.record import engine
from nodeworthy.record.store import open_store
from nodeworthy.record.tables import clean_json, clean_text, dump_json
from tests.record_samples import entry


def test_urls_of_both_databases_are_read() -> None:
    """A path is SQLite; every spelling of PostgreSQL uses the one driver."""
    assert engine.parse_url("/var/lib/x y.db").database == "/var/lib/x y.db"
    assert engine.parse_url("sqlite:////var/lib/x.db").database == "/var/lib/x.db"
    for text in ("postgresql://u:p@h/d", "postgres://u:p@h/d", "postgresql+psycopg://u:p@h/d"):
        assert engine.parse_url(text).drivername == "postgresql+psycopg"


@pytest.mark.parametrize(
    "text", ["", "mysql://h/d", "sqlite://", "sqlite:///:memory:", "://", "postgresql+asyncpg://h/d"]
)
def test_other_urls_are_refused(text: str) -> None:
    """What is neither of the two is a usage error that shows how to write one."""
    with pytest.raises(BadRequest) as refused:
        engine.parse_url(text)
    assert "postgresql://" in refused.value.hint


def test_no_error_shows_a_password() -> None:
    """The URL in an error has its password hidden."""
    with pytest.raises(Unreachable) as failed:
        open_store("postgresql://u:s3cret@127.0.0.1:1/d")
    assert "s3cret" not in "".join(failed.value.chain())
    with pytest.raises(BadRequest) as refused:
        open_store("mysql://u:s3cret@h/d")
    assert "s3cret" not in "".join(refused.value.chain())


def test_a_file_that_is_no_database_is_garbled_and_left_alone(tmp_path: Path) -> None:
    """A foreign file is named, not overwritten."""
    path = tmp_path / "record.db"
    path.write_bytes(b"this is a letter to my aunt\n" * 100)
    with pytest.raises(Garbled):
        open_store(str(path))
    assert path.read_bytes().startswith(b"this is a letter")


def test_a_place_that_cannot_be_made_is_unreachable(tmp_path: Path) -> None:
    """A file where the folder should be is said plainly."""
    (tmp_path / "file").write_text("")
    with pytest.raises(Unreachable, match="cannot be made"):
        open_store(str(tmp_path / "file" / "record.db"))


def test_a_store_that_should_be_there_is_not_made(tmp_path: Path) -> None:
    """Without `create` a mistyped name makes nothing."""
    with pytest.raises(NotKnown):
        open_store(str(tmp_path / "record.db"), create=False)
    assert list(tmp_path.iterdir()) == []


def test_an_empty_database_is_no_store(postgres_url: str) -> None:
    """Without `create` an empty PostgreSQL database stays empty."""
    for _ in range(2):
        with pytest.raises(NotKnown):
            open_store(postgres_url, create=False)


def test_a_role_without_rights_is_refused_with_its_reason(postgres_url: str) -> None:
    """A write that PostgreSQL does not allow is an error of its own kind, and loses nothing."""
    store = open_store(postgres_url)
    store.append([entry()])
    with pytest.raises(Refused), store.write() as connection:
        connection.exec_driver_sql("CREATE ROLE reader")
        connection.exec_driver_sql("SET ROLE reader")
        connection.exec_driver_sql("DELETE FROM ledger")
    assert len(store.entries()) == 1
    store.close()


def test_a_writer_that_never_lets_go_times_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second writer waits its time, is told that it timed out, and can write once the first is done."""
    monkeypatch.setattr(engine, "LOCK_WAIT_S", 0.2)
    url = str(tmp_path / "record.db")
    first, second = open_store(url), open_store(url)
    with first.transaction():
        first.append([entry()])
        with pytest.raises(TimedOut):
            second.append([entry()])
    assert second.append([entry()])[0].sequence == 2
    first.close()
    second.close()


def test_only_the_owner_reads_the_file(tmp_path: Path) -> None:
    """The database and its write-ahead log are mode 0600 whatever the umask."""
    old = os.umask(0)
    try:
        store = open_store(str(tmp_path / "state" / "record.db"))
        store.append([entry()])
        modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "state").iterdir()}
        store.close()
    finally:
        os.umask(old)
    assert set(modes) == {"record.db", "record.db-wal", "record.db-shm"}
    assert set(modes.values()) == {0o600}


def test_a_new_file_is_in_wal_mode_before_anybody_sees_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SQLite does not wait for the lock that a switch to WAL needs, so several that start at once must not switch."""
    link, seen = os.link, list[bytes]()

    def watched(source: str, target: Path) -> None:
        seen.append(Path(source).read_bytes()[18:20])  # the format's write and read version: 2 is WAL
        assert not target.exists()
        link(source, target)

    monkeypatch.setattr(os, "link", watched)
    open_store(str(tmp_path / "record.db")).close()
    open_store(str(tmp_path / "record.db")).close()
    assert seen == [b"\x02\x02"]
    assert [path.name for path in tmp_path.iterdir()] == ["record.db"]


def test_a_full_disk_is_refused_and_loses_nothing(tmp_path: Path) -> None:
    """A turn that does not fit is an error, what was there stays, and after room was made work goes on."""
    store = open_store(str(tmp_path / "record.db"))
    store.append([entry()])

    def allow(pages: int) -> None:
        with store.engine.connect() as connection:
            connection.exec_driver_sql(f"PRAGMA max_page_count={pages}")

    allow(1)  # SQLite takes the present size as the least
    with pytest.raises(Refused, match="full"):
        store.append([entry(summary="x" * 100_000)] * 50)
    assert [e.sequence for e in store.entries()] == [1]
    allow(1_000_000)
    assert store.append([entry()])[0].sequence == 2
    store.close()


def test_a_damaged_file_is_garbled(tmp_path: Path) -> None:
    """Pages that were overwritten are an error that points at the backup, not an empty answer."""
    path = tmp_path / "record.db"
    store = open_store(str(path))
    store.append([entry(summary="x" * 1000)] * 200)
    store.close()
    content = bytearray(path.read_bytes())
    content[4096:] = b"\x55" * (len(content) - 4096)
    path.write_bytes(content)
    with pytest.raises(Garbled) as failed:
        open_store(str(path)).entries()
    assert "restore" in failed.value.hint


def test_json_changed_by_hand_is_garbled(tmp_path: Path) -> None:
    """A column that is no longer JSON is said so."""
    store = open_store(str(tmp_path / "record.db"))
    store.append([entry()])
    with store.write() as connection:
        connection.exec_driver_sql("UPDATE ledger SET data = '{'")
    with pytest.raises(Garbled, match="not JSON"):
        store.entries()
    store.close()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(st.text())
def test_clean_text_is_what_a_database_takes(text: str) -> None:
    """No NUL, no lone surrogate, the same length; clean text is unchanged."""
    clean = clean_text(text)
    assert "\0" not in clean
    clean.encode()
    assert len(clean) == len(text)
    assert clean_text(clean) == clean


@given(JSON)
def test_clean_json_is_json_and_stays(value: object) -> None:
    """Anything nested becomes valid JSON, and cleaning twice changes nothing."""
    clean = clean_json(value)
    assert clean_json(clean) == clean
    dump_json(value).encode()


@given(JSON)
def test_json_is_the_same_by_the_fast_and_the_slow_way(value: object) -> None:
    """What is kept is the cleaned value, whichever way it was written."""
    assert json.loads(dump_json(value)) == clean_json(value)


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        ({"a": float("nan"), "b": float("inf")}, {"a": None, "b": None}),
        (["a\0b", "\ud800", {"\0": 1}], ["a\ufffdb", "\ufffd", {"\ufffd": 1}]),
        ("a backslash and u0000: \\u0000", "a backslash and u0000: \\u0000"),
        ({1: 2**70, "s": {"b", "a"}}, {"1": 2**70, "s": ["a", "b"]}),
        (Path("/tmp"), "/tmp"),
        (OwnerKind.PERSON, "person"),
    ],
)
def test_json_keeps_odd_values(value: object, kept: object) -> None:
    """What JSON or a database cannot say is kept as near as it can be said."""
    assert json.loads(dump_json(value)) == kept
