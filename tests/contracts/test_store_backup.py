"""Backup and restore, from each database into each."""

from __future__ import annotations

import gzip
import json
import stat
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from nodeworthy.errors import BadRequest, Garbled, NodeworthyError, NotAllowed
from nodeworthy.model.record import Outcome, Revision
from nodeworthy.record import migrations
from nodeworthy.record.backup import back_up, restore, verify
from nodeworthy.record.store import SqlStore, open_store
from tests.contracts.test_store import FULL
from tests.postgres import postgres_server, postgres_url  # noqa: F401  (fixtures)
from tests.record_samples import AT, entry, finding

KINDS = ("sqlite", "postgresql")
Place = Callable[[str], str]


@pytest.fixture
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """A new, empty place for a store of a kind."""
    made: list[str] = []

    def new(kind: str) -> str:
        made.append(kind)
        if kind == "postgresql":
            return str(request.getfixturevalue("postgres_server").database())
        return str(tmp_path / f"store{len(made)}.db")

    return new


def fill(store: SqlStore) -> None:
    store.commit_turn(FULL)
    store.commit_turn(
        Outcome(AT + 1, entries=(entry(summary="é\0🙂"),), findings=(finding("n8"),), closed=(finding().key,))
    )
    store.save_revision(Revision("fleet", "abc", AT, {"nodes": ["n1"], "rack": None}))
    store.set_note("policy", {"mode": "observe", "big": 2**53 + 1, "small": 0.1})


def everything(store: SqlStore) -> list[object]:
    return [
        store.load(),
        store.entries(),
        store.findings(open_only=False),
        store.holds(open_only=False),
        store.events(),
        store.history("n3"),
        store.revision("fleet", "abc"),
        store.note("policy"),
        store.info().rows,
    ]


@pytest.mark.parametrize("source", KINDS)
@pytest.mark.parametrize("target", KINDS)
def test_a_restored_store_is_the_store(source: str, target: str, place: Place, tmp_path: Path) -> None:
    """All comes back equal on either database, and counting goes on where it was."""
    store = open_store(place(source))
    fill(store)
    before = everything(store)
    made = back_up(store, tmp_path / "backup.gz", now=AT)
    store.close()
    url = place(target)
    assert restore(url, tmp_path / "backup.gz") == verify(tmp_path / "backup.gz") == made
    restored = open_store(url, create=False)
    assert everything(restored) == before
    assert restored.append([entry()])[0].sequence == made.sequence + 1
    restored.commit_turn(Outcome(AT + 9, findings=(finding("n77"),), closed=(finding("n8").key,)))
    assert set(restored.load().findings) == {"xid.79@n77/gpu0", "gpu.count@n4/gpu0"}
    restored.close()


@pytest.mark.parametrize("kind", KINDS)
def test_a_store_that_holds_anything_is_not_overwritten(kind: str, place: Place, tmp_path: Path) -> None:
    """Without force nothing changes; with it the backup's content is all there is."""
    store = open_store(place("sqlite"))
    fill(store)
    back_up(store, tmp_path / "backup.gz", now=AT)
    wanted = everything(store)
    store.close()
    url = place(kind)
    other = open_store(url)
    other.append([entry("other")])
    with pytest.raises(NotAllowed):
        restore(url, tmp_path / "backup.gz")
    assert [e.subject for e in other.entries()] == ["other"]
    restore(url, tmp_path / "backup.gz", force=True)
    assert everything(other) == wanted
    other.close()


@pytest.mark.parametrize("kind", KINDS)
def test_a_backup_is_of_one_moment_while_the_store_is_in_use(kind: str, place: Place, tmp_path: Path) -> None:
    """A writer that goes on during backups leaves no backup with a ledger that disagrees with the findings."""
    store = open_store(place(kind))
    stop = threading.Event()

    def write() -> None:
        turn = 0
        while not stop.is_set():
            turn += 1
            store.commit_turn(Outcome(AT + turn, entries=(entry(f"n{turn}"),), findings=(finding(f"n{turn}"),)))

    writer = threading.Thread(target=write)
    writer.start()
    try:
        made = [back_up(store, tmp_path / f"{number}.gz", now=AT) for number in range(5)]
    finally:
        stop.set()
        writer.join()
    assert store.load().sequence >= made[-1].sequence
    store.close()
    for backup in made:
        assert backup.rows["ledger"] == backup.rows["findings"] == backup.sequence


def test_a_backup_file_is_not_overwritten_nor_left_half(place: Place, tmp_path: Path) -> None:
    """An existing file stays unless forced; a failing backup leaves no file at all."""
    store = open_store(place("sqlite"))
    fill(store)
    path = tmp_path / "backups" / "backup.gz"
    with pytest.raises(NodeworthyError, match="cannot be written"):
        back_up(store, path, now=AT)
    path.parent.mkdir()
    path.write_text("precious")
    with pytest.raises(NotAllowed):
        back_up(store, path, now=AT)
    assert path.read_text() == "precious"
    with store.write() as connection:
        connection.exec_driver_sql("DROP TABLE sources")
    with pytest.raises(NodeworthyError):
        back_up(store, path, now=AT, force=True)
    assert [p.name for p in path.parent.iterdir()] == ["backup.gz"]
    assert path.read_text() == "precious"
    store.close()


def test_a_backup_is_for_its_owner_only(place: Place, tmp_path: Path) -> None:
    """The file has mode 0600, as the store has."""
    store = open_store(place("sqlite"))
    back_up(store, tmp_path / "backup.gz", now=AT)
    store.close()
    assert stat.S_IMODE((tmp_path / "backup.gz").stat().st_mode) == 0o600


def test_a_damaged_backup_restores_nothing(place: Place, tmp_path: Path) -> None:
    """Cut at any place, with a byte changed, a row gone or added, or no backup at all: refused, store untouched."""
    store = open_store(place("sqlite"))
    fill(store)
    path = tmp_path / "backup.gz"
    back_up(store, path, now=AT)
    store.close()
    whole = path.read_bytes()
    lines = gzip.decompress(whole).splitlines(keepends=True)
    damaged = [whole[:cut] for cut in range(0, len(whole) - 1, 97)]
    damaged += [whole[:at] + bytes([whole[at] ^ 0x41]) + whole[at + 1 :] for at in range(20, len(whole), 131)]
    damaged += [gzip.compress(b"".join(lines[:gone] + lines[gone + 1 :])) for gone in range(len(lines))]
    damaged += [
        gzip.compress(b"".join([*lines, lines[3]])),
        b"",
        b"no gzip",
        gzip.compress(b"[]\n"),
        gzip.compress(b"7\n"),
    ]
    damaged += [gzip.compress(lines[0] + end) for end in (b'{"sha256": ""}\n', b'{"sha256": "", "rows": 3}\n')]
    damaged += [gzip.compress(b'{"format": "nodeworthy.store-backup/1"}\n' + lines[-1])]
    damaged += [gzip.compress(b'{"sha256": 1}\n'), gzip.compress(b'{"format": []}\n{"sha256": "", "rows": 3}\n')]
    url = place("sqlite")
    target = open_store(url)
    target.append([entry("kept")])
    for content in damaged:
        path.write_bytes(content)
        with pytest.raises(Garbled):
            restore(url, path, force=True)
    assert [e.subject for e in target.entries()] == ["kept"]
    target.close()
    with pytest.raises(BadRequest):
        restore(url, tmp_path / "absent.gz")


@pytest.mark.parametrize("field", ["at", "sequence"])
@pytest.mark.parametrize("value", ["1" + "0" * 400, "Infinity", "[]", '"x"'])
def test_a_backup_with_an_impossible_head_is_not_whole(field: str, value: str, place: Place, tmp_path: Path) -> None:
    """Numbers beyond all numbers in the head are an error of the file, digest or not."""
    store = open_store(place("sqlite"))
    good = tmp_path / "good.gz"
    back_up(store, good, now=AT)
    store.close()
    head, rest = gzip.decompress(good.read_bytes()).split(b"\n", 1)
    changed = {**json.loads(head), field: None}
    bad = tmp_path / "bad.gz"
    bad.write_bytes(gzip.compress(json.dumps(changed).replace("null", value).encode() + b"\n" + rest))
    with pytest.raises(Garbled):
        verify(bad)


def test_a_backup_of_a_newer_schema_is_refused(place: Place, tmp_path: Path) -> None:
    """A backup made by a newer version is not squeezed into the older schema."""
    store = open_store(place("sqlite"))
    path = tmp_path / "backup.gz"
    back_up(store, path, now=AT)
    store.close()
    import hashlib

    lines = gzip.decompress(path.read_bytes()).splitlines(keepends=True)
    lines[0] = lines[0].replace(f'"{migrations.HEAD}"'.encode(), b'"9999"')
    end = json.loads(lines[-1]) | {"sha256": hashlib.sha256(b"".join(lines[:-1])).hexdigest()}
    path.write_bytes(gzip.compress(b"".join(lines[:-1]) + json.dumps(end).encode() + b"\n"))
    with pytest.raises(BadRequest, match="newer"):
        restore(place("sqlite"), path)
