"""`nodeworthy store`: what it prints, writes and refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from nodeworthy.cli.main import cli
from nodeworthy.errors import BadRequest, NotAllowed, NotKnown
from nodeworthy.record import migrations
from nodeworthy.record.store import open_store
from nodeworthy.wiring import paths
from tests.record_samples import AT, entry, finding


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("NODEWORTHY_STATE", str(tmp_path / "state"))
    monkeypatch.delenv("NODEWORTHY_STORE", raising=False)
    return tmp_path / "state"


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["store", *arguments])


def fill(url: str) -> None:
    from nodeworthy.model.record import Outcome

    store = open_store(url)
    store.commit_turn(Outcome(AT, entries=(entry(), entry()), findings=(finding(),)))
    store.close()


def test_info_says_what_is_there(state: Path) -> None:
    """People get lines with size and age, machines a document with its schema."""
    fill(str(state / "record.db"))
    shown = run("info")
    assert shown.exit_code == 0, shown.output
    assert "2026-03-01T12:00:00Z" in shown.output
    document = json.loads(run("info", "--json").output)
    assert document["schema"] == "nodeworthy.store-info/1"
    assert (document["rows"]["ledger"], document["open_findings"], document["schema_revision"]) == (
        2,
        1,
        migrations.HEAD,
    )


def test_info_of_nothing_is_not_known_and_makes_nothing(state: Path) -> None:
    """A store that is not there is an error, not an empty store."""
    assert isinstance(run("info").exception, NotKnown)
    assert not state.exists()


def test_backup_restore_and_prune_go_through_files(state: Path, tmp_path: Path) -> None:
    """A backup restores under another name; prune takes the ledger and keeps the open finding."""
    fill(str(state / "record.db"))
    file, copy = str(tmp_path / "b.gz"), str(tmp_path / "copy.db")
    assert "up to ledger entry 2" in run("backup", file).output
    assert isinstance(run("backup", file).exception, NotAllowed)
    assert run("backup", file, "--force").exit_code == 0
    assert "up to ledger entry 2" in run("restore", file, "--store", copy).output
    assert isinstance(run("restore", file, "--store", copy).exception, NotAllowed)
    assert run("restore", file, "--store", copy, "--force").exit_code == 0
    pruned = json.loads(run("prune", "--older-than", "1d", "--store", copy, "-o", "json").output)
    assert pruned["removed"] == {
        "ledger": 2, "findings": 0, "holds": 0, "node_states": 0, "events": 0, "boots": 0, "revisions": 0,
    }  # fmt: skip
    document = json.loads(run("info", "--store", copy, "--json").output)
    assert (document["rows"]["ledger"], document["open_findings"], document["sequence"]) == (1, 1, 3)


def test_prune_wants_an_age_with_its_unit(state: Path) -> None:
    """A bare number is refused before anything is removed."""
    fill(str(state / "record.db"))
    assert isinstance(run("prune", "--older-than", "90").exception, BadRequest)
    assert json.loads(run("info", "--json").output)["rows"]["ledger"] == 2


@pytest.mark.parametrize("verb", ["backup", "restore", "prune", "info"])
def test_each_verb_has_help_with_an_example(verb: str) -> None:
    """--help shows how the command is used."""
    shown = run(verb, "--help")
    assert shown.exit_code == 0
    assert f"nodeworthy store {verb}" in shown.output.split("Example:")[1]


def test_the_environment_says_where_things_are(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """State, store and socket follow their variables, and have places for root and for others without them."""
    monkeypatch.setenv("NODEWORTHY_STORE", "postgresql://h/d")
    assert paths.store_url() == "postgresql://h/d"
    monkeypatch.delenv("NODEWORTHY_STORE")
    assert paths.store_url() == str(paths.state_dir() / "record.db")
    monkeypatch.setenv("NODEWORTHY_SOCKET", "/x/y.sock")
    assert paths.socket_path() == Path("/x/y.sock")
    monkeypatch.delenv("NODEWORTHY_SOCKET")
    monkeypatch.delenv("NODEWORTHY_STATE")
    monkeypatch.setattr("os.geteuid", lambda: 0)
    assert paths.state_dir() == Path("/var/lib/nodeworthy")
    assert paths.socket_path() == Path("/run/nodeworthy/nodeworthy.sock")
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    monkeypatch.setattr("os.access", lambda *_: False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_RUNTIME_DIR", "/run/user/1000")
    assert paths.state_dir() == tmp_path / ".local/state/nodeworthy"
    assert paths.socket_path() == Path("/run/user/1000/nodeworthy.sock")
    monkeypatch.delenv("XDG_RUNTIME_DIR")
    assert paths.socket_path() == paths.state_dir() / "nodeworthy.sock"
