"""`nodeworthy serve` as a process: systemd's protocol, the socket, a second instance, an orderly end."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from nodeworthy.cli.client import connect
from nodeworthy.record.store import open_store

ROOT = Path(__file__).parents[2]
FLEET = """\
name = "lab"

[classes.h100x8]
gpus = 8

[[nodes]]
names = "n[1-2]"
class = "h100x8"
"""


@dataclass
class Served:
    """A running instance: its process and what its commands print."""

    process: subprocess.Popen[bytes]
    environment: dict[str, str]
    config: Path

    def ask(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "nodeworthy.cli.main", *arguments]
        return subprocess.run(command, env=self.environment, capture_output=True, text=True, timeout=60)

    def ask_json(self, *arguments: str) -> dict[str, object]:
        answer = json.loads(self.ask(*arguments, "-o", "json").stdout)
        assert isinstance(answer, dict)
        return answer


@pytest.fixture
def served(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    (tmp_path / "fleet.toml").write_text(FLEET)
    (tmp_path / "kern.log").touch()
    config = tmp_path / "nodeworthy.toml"
    config.write_text(
        f'fleet = "{tmp_path}/fleet.toml"\nstate_dir = "{tmp_path}/state"\nsocket = "{tmp_path}/nw.sock"\n'
        f'[slurm]\nenabled = false\n[turn]\ninterval = "1s"\n[[logs]]\npath = "{tmp_path}/kern.log"\ntrusted = true\n'
    )
    ours = ("NODEWORTHY_", "PYTHONDONTWRITEBYTECODE")
    environment = {k: v for k, v in os.environ.items() if not k.startswith(ours)}
    environment |= {
        "PYTHONPATH": str(ROOT / "src"),
        "PYTHONPYCACHEPREFIX": str(tmp_path_factory.getbasetemp() / "pycache"),  # as installed: compiled once
        "NODEWORTHY_SOCKET": str(tmp_path / "nw.sock"),
        "NOTIFY_SOCKET": str(tmp_path / "notify"),
        "WATCHDOG_USEC": "1000000",
    }
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd, (tmp_path / "log").open("wb") as log:
        systemd.bind(environment["NOTIFY_SOCKET"])
        systemd.settimeout(90)
        command = [sys.executable, "-m", "nodeworthy.cli.main", "serve", "--config", str(config)]
        process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
        try:
            told = [systemd.recv(200)]
            while b"READY=1" not in told or b"WATCHDOG=1" not in told[-1]:
                told.append(systemd.recv(200))
            yield Served(process, environment, config)
        finally:
            if process.poll() is None:
                process.terminate()
            process.wait(timeout=30)


def test_serve_tells_systemd_answers_and_ends_in_order(served: Served, tmp_path: Path) -> None:
    """READY and WATCHDOG came (the fixture waits for both); status answers; SIGTERM ends with 0 and no socket left."""
    status = served.ask_json("status")
    assert status["nodes"] == 2
    assert status["gpus"] == 16
    assert status["well"] is False  # nothing sees these nodes: that is unknown, and unknown is not well
    assert status["by_state"]["unknown"] == 2  # type: ignore[index]
    assert served.ask("status").returncode == 3
    assert (tmp_path / "nw.sock").stat().st_mode & 0o777 == 0o660
    served.process.send_signal(signal.SIGTERM)
    assert served.process.wait(timeout=30) == 0
    assert not (tmp_path / "nw.sock").exists()
    assert "no Nodeworthy is running here" in served.ask("status").stderr


def test_turns_and_readings_are_counted(served: Served, tmp_path: Path) -> None:
    """/metrics of a running instance counts turns, and readings of each source by outcome."""
    connection = connect(str(tmp_path / "nw.sock"), 30)
    connection.request("GET", "/metrics")
    text = connection.getresponse().read().decode()
    connection.close()
    samples = {
        (sample.name, sample.labels.get("source"), sample.labels.get("outcome")): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }
    assert samples["nodeworthy_turns_total", None, "ok"] >= 1
    assert samples["nodeworthy_reads_total", f"{tmp_path}/kern.log", "ok"] >= 1
    assert samples["nodeworthy_read_duration_seconds_count", f"{tmp_path}/kern.log", None] >= 1


def test_second_instance_is_refused_with_exit_4(served: Served) -> None:
    """The running instance keeps its socket and goes on answering."""
    second = served.ask("serve", "--config", str(served.config))
    assert second.returncode == 4
    assert f"process {served.process.pid}" in second.stderr
    assert served.ask("node", "list", "-o", "nodeset").stdout == "n[1-2]\n"


def test_one_look_beside_a_running_instance_is_refused(served: Served, tmp_path: Path) -> None:
    """`serve --once` would commit lines and cursors a second time, also over another socket: exit 4, nothing written."""
    store = tmp_path / "state" / "record.db"
    kept = open_store(str(store)).load().cursors
    other = tmp_path / "other.toml"
    other.write_text(served.config.read_text().replace("nw.sock", "other.sock"))
    for once in (("--once",), ()):
        second = served.ask("serve", "--config", str(other), *once)
        assert second.returncode == 4, second.stderr
        assert f"process {served.process.pid}" in second.stderr and "nodeworthy status" in second.stderr
    assert set(open_store(str(store)).load().cursors) == set(kept)


def test_killed_instance_is_followed_by_the_next(served: Served, tmp_path: Path) -> None:
    """After kill -9 the socket is left over; clients say that it has stopped, and `serve --once` can start."""
    served.process.kill()
    served.process.wait(timeout=30)
    assert (tmp_path / "nw.sock").is_socket()
    assert "has stopped" in served.ask("status").stderr
    once = served.ask("serve", "--config", str(served.config), "--once")
    assert once.returncode == 3, once.stderr  # nothing sees these nodes, and unknown is not well
    assert once.stdout.startswith("2 nodes: 2 unknown")


def test_every_command_answers_over_the_socket(served: Served) -> None:
    """Each reading command works against a real instance and prints JSON that names its schema."""
    for arguments in (
        ("status",), ("doctor",), ("would",), ("node", "list"), ("node", "show", "n1"), ("node", "explain", "n1"),
        ("node", "history", "n1"), ("finding", "list"), ("incident", "list"), ("ledger", "tail"),
    ):  # fmt: skip
        result = served.ask(*arguments, "-o", "json")
        assert result.returncode in (0, 3), f"{arguments}: {result.stderr}"
        assert json.loads(result.stdout)["schema"].startswith("nodeworthy."), arguments
        assert served.ask(*arguments).returncode == result.returncode


def test_wrong_configuration_starts_nothing(served: Served, tmp_path: Path) -> None:
    """A mistake in the file is exit 2 with its line, before anything is opened."""
    wrong = tmp_path / "wrong.toml"
    wrong.write_text('[slurm]\ninterval = "1s"\n')
    result = served.ask("serve", "--config", str(wrong))
    assert result.returncode == 2
    assert f"{wrong}:2: slurm.interval: must be at least 5s" in result.stderr
