"""kill -9 in the middle of commits: the record opens again, without a gap and without a half turn."""

from __future__ import annotations

import os
import random
import select
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from nodeworthy.record.store import open_store
from tests.postgres import Server, postgres_server  # noqa: F401  (fixture)

REPOSITORY = Path(__file__).parents[2]
# each turn opens 20 findings of its own and closes those of the turn before, and moves the cursor; says so when it is done
WRITER = """
import sys
from nodeworthy.model.record import Outcome
from nodeworthy.record.store import open_store
from tests.record_samples import AT, entry, event, finding, state

store = open_store(sys.argv[1])
cursor = store.load().cursors.get("kern.log", {"turn": 0})
turn = int(cursor["turn"])
nodes = [f"n{i}" for i in range(20)]
while True:
    turn += 1
    at = AT + turn
    store.commit_turn(Outcome(
        at,
        entries=tuple(entry(n, data={"turn": turn}) for n in nodes),
        findings=tuple(finding(n, f"turn.{turn}", at) for n in nodes),
        closed=tuple(finding(n, f"turn.{turn - 1}").key for n in nodes),
        states=tuple(state(n, f"S{turn}", at) for n in nodes),
        events=(event(at=AT + 60 * turn, message=f"turn {turn}"),),
        cursors={"kern.log": {"turn": turn}},
    ))
    print(turn, flush=True)
"""


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "sqlite":
        yield str(tmp_path / "record.db")
    else:
        server: Server = request.getfixturevalue("postgres_server")
        yield server.database()


def run_and_kill(url: str, delay: float) -> int:
    """Start a writer, kill it `delay` seconds after its first commit; the last turn that it said was committed."""
    environment = {**os.environ, "PYTHONPATH": f"{REPOSITORY / 'src'}:{REPOSITORY}"}
    writer = subprocess.Popen([sys.executable, "-c", WRITER, url], stdout=subprocess.PIPE, env=environment)
    assert writer.stdout is not None
    try:
        ready, _, _ = select.select([writer.stdout], [], [], 60)
        assert ready, "the writer did not start"
        time.sleep(delay)
    finally:
        writer.send_signal(signal.SIGKILL)
        said = writer.stdout.read()
        writer.wait(timeout=30)
        writer.stdout.close()
    # a last line without its newline was cut by the kill
    return int(said[: said.rindex(b"\n")].splitlines()[-1])


def test_a_store_survives_kill_9_at_any_instant(url: str) -> None:
    """Over several kills at random instants, each turn is there whole or not at all, and none that was said is lost."""
    chance = random.Random(7)
    for _ in range(6):
        said = run_and_kill(url, chance.uniform(0.0, 0.25))
        store = open_store(url, create=False)
        memory = store.load()
        turn = int(str(memory.cursors["kern.log"]["turn"]))
        assert turn in (said, said + 1)
        entries = [e for start in range(0, memory.sequence, 1000) for e in store.entries(start, 1000)]
        assert [e.sequence for e in entries] == list(range(1, turn * 20 + 1))
        assert {f.check for f in memory.findings.values()} == {f"turn.{turn}"}
        assert {s.state for s in memory.states.values()} == {f"S{turn}"}
        assert len(memory.findings) == len(memory.states) == 20
        info = store.info()
        assert (info.rows["findings"], info.rows["node_states"], info.rows["events"]) == (turn * 20, turn * 20, turn)
        store.close()
    if "://" not in url:
        with sqlite3.connect(url) as connection:
            assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        connection.close()


def test_a_store_goes_on_after_its_server_was_restarted(postgres_server: Server) -> None:  # noqa: F811
    """When PostgreSQL is stopped the store says that it cannot be reached; when it is back, work goes on."""
    from nodeworthy.errors import Unreachable
    from tests.record_samples import entry

    store = open_store(postgres_server.database())
    store.append([entry()])
    postgres_server.stop()
    try:
        with pytest.raises(Unreachable):
            store.append([entry()])
    finally:
        postgres_server.resume()
    assert store.append([entry()])[0].sequence == 2
    store.close()
