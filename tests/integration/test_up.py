"""`make up`: what it prints works as printed, and nothing is left of it, however it ends."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from labs import up

ROOT = Path(__file__).parents[2]
EXIT_CODES = (0, 3)  # 3: checked and not well, which is the point of the exercise

pytestmark = [pytest.mark.slurm, pytest.mark.skipif(bool(up.missing()), reason=up.missing() or "-")]


class Running:
    """`python -m labs.up` as a process, and its printed lines as they come."""

    def __init__(self, *arguments: str) -> None:
        environment = {k: v for k, v in os.environ.items() if not k.startswith(("NODEWORTHY_", "SLURM_"))}
        environment["PYTHONPATH"] = f"{ROOT}/src"
        self.process = subprocess.Popen(
            [sys.executable, "-m", "labs.up", *arguments],
            cwd=ROOT,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.lines: list[str] = []

    def read_until(self, pattern: str) -> str:
        """Reads what it prints up to the line that matches; the line."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(line.rstrip("\n"))
            if re.search(pattern, line):
                return self.lines[-1]
        raise AssertionError(f"it ended without {pattern!r}:\n" + "\n".join(self.lines))

    def end(self, number: int = signal.SIGTERM) -> int:
        if self.process.poll() is None:
            self.process.send_signal(number)
        assert self.process.stdout is not None
        with self.process.stdout as rest:
            self.lines += rest.read().splitlines()
        return self.process.wait(timeout=60)

    @property
    def env_file(self) -> Path:
        return Path(next(line for line in self.lines if line.startswith("    . ")).split()[1])

    def commands(self) -> list[str]:
        """Every printed command but the first, which reads the environment."""
        return [line.strip() for line in self.lines if line.startswith("    ") and not line.startswith("    . ")]

    def shell(self, command: str) -> subprocess.CompletedProcess[str]:
        """Runs a line in a fresh shell in which the printed environment was read, as a person would."""
        script = f". {self.env_file}\n{command}"
        clean = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/nonexistent"}
        return subprocess.run(
            ["sh", "-c", script], cwd="/", env=clean, capture_output=True, text=True, timeout=60, check=False
        )

    def ask(self, command: str) -> dict[str, object]:
        answer = json.loads(self.shell(f"{command} -o json").stdout)
        assert isinstance(answer, dict)
        return answer


def processes_with(directory: Path) -> list[str]:
    """Command lines of live processes that name this directory."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if str(directory) in words:
            found.append(words)
    return found


@pytest.fixture(scope="module")
def running() -> Iterator[Running]:
    it = Running()
    try:
        it.read_until(r"^Ctrl-C here ends everything")
        yield it
    finally:
        directory = it.env_file.parent
        assert it.end() == 0, "\n".join(it.lines)
        assert not directory.exists()
        assert processes_with(directory) == []


def test_every_printed_command_works(running: Running) -> None:
    """Each line, copied into a shell as it stands, ends with 0, or with 3 where it checks and finds faults."""
    commands = running.commands()
    assert len(commands) >= 15
    for command in commands:
        done = running.shell(command)
        assert done.returncode in EXIT_CODES, f"{command}: exit code {done.returncode}\n{done.stderr}"
        if command.startswith(("nodeworthy", "sinfo", "exporter")):
            assert done.stdout.strip(), command


def test_faults_have_the_right_state_and_owner(running: Running) -> None:
    """The states that were made for real are the states that are shown; Slurm may take a while to give n5 up."""
    wanted = {"n5": "failed", "n6": "out", "n8": "out", "n14": "failed", "n16": "out", "n1": "serving"}
    deadline = time.monotonic() + 60
    while True:
        nodes = {node["name"]: node for node in running.ask("nodeworthy node list")["items"]}  # type: ignore[attr-defined]
        states = {name: nodes[name]["state"] for name in wanted}
        if states == wanted or time.monotonic() > deadline:
            break
        time.sleep(1)
    assert states == wanted
    assert nodes["n16"]["owner"]["kind"] == "health program"
    assert nodes["n14"]["owner"]["kind"] == "scheduler"
    if shutil.which("mariadbd"):
        assert nodes["n6"]["owner"] == {"kind": "person", "name": "daemon"}


def test_only_evidence_that_nobody_forged_would_hold(running: Running) -> None:
    """The kernel's Xid 79 on n3 and the exporter's failed row remap on n10 would hold; no Xid 31, no user's line."""
    running.read_until("kernel log: Xid 79 on n3")
    deadline = time.monotonic() + 20
    while True:
        held = {hold["component"].split("/")[0] for hold in running.ask("nodeworthy would")["items"]}  # type: ignore[attr-defined]
        if {"n3", "n10"} <= held or time.monotonic() > deadline:
            break
        time.sleep(0.5)
    assert {"n3", "n10"} <= held
    assert held.isdisjoint({"n4", "n7", "n13"})


def test_doctor_finds_nothing_wrong_with_nodeworthy(running: Running) -> None:
    """Every source answers and no check of Nodeworthy itself fails in the site that we set up ourselves."""
    checks = running.ask("nodeworthy doctor")["items"]
    assert isinstance(checks, list)
    assert len(checks) > 5
    assert [check for check in checks if check["state"] == "fail"] == []


@pytest.fixture
def short_folder() -> Iterator[Path]:
    """Slurm runs no jobs below a path as long as pytest's."""
    with tempfile.TemporaryDirectory(prefix="nw-") as folder:
        yield Path(folder)


def test_it_ends_by_itself_beside_another(running: Running, short_folder: Path) -> None:
    """A second one beside the first has its own place, ends after --for, says so, and keeps what --dir asks for."""
    second = Running("--for", "1", "--dir", str(short_folder / "kept"))
    second.read_until("everything is ended")
    assert second.process.wait(timeout=30) == 0, second.end()
    second.end()
    assert second.env_file.parent == short_folder / "kept"
    assert (short_folder / "kept/nodeworthy.toml").exists()
    assert not (short_folder / "kept/slurm").exists()
    assert processes_with(short_folder) == []
    assert running.shell("nodeworthy node list -o nodeset").stdout == "n[1-16]\n"


def test_interrupted_start_leaves_nothing(running: Running) -> None:
    """SIGINT in the middle of the start ends what was started until then, and the directory is gone."""
    third = Running()
    third.read_until(r" s  Slurm ")
    made = {path for path in Path(tempfile.gettempdir()).glob("nodeworthy-up-*") if path != running.env_file.parent}
    assert third.end(signal.SIGINT) == 0
    assert made
    assert [path for path in made if path.exists()] == []
    assert [words for path in made for words in processes_with(path)] == []


def test_not_root_is_told_what_is_missing_and_what_works(tmp_path: Path) -> None:
    """Another user gets one clear sentence, what works without the lab, and exit code 1; nothing is started."""
    done = subprocess.run(
        ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", sys.executable, "-c",
         "import sys; from labs.up import missing; print(missing()); sys.exit(1 if missing() else 0)"],
        cwd="/", env={"PYTHONPATH": f"{ROOT}/src:{ROOT}", "PATH": os.environ["PATH"], "HOME": "/nonexistent"},
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    if "Permission denied" in done.stderr:
        pytest.skip("the interpreter or the checkout is in a folder that only root may enter")
    assert done.returncode == 1
    assert "needs root" in done.stdout
