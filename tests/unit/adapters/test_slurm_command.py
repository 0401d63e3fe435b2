"""Running client commands: every way to fail has its name."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from nodeworthy.adapters.slurm.command import SlurmCommand
from nodeworthy.errors import Garbled, Refused, TimedOut, Unreachable, WorldError

WAYS: dict[str, Callable[[SlurmCommand, Path, tuple[str, ...]], object]] = {
    "run": lambda command, _, argv: asyncio.run(command.run(*argv)),
    "run_sync": lambda command, _, argv: command.run_sync(*argv),
    "stream_lines": lambda command, _, argv: list(command.stream_lines(*argv)),
    "spool_to": lambda command, folder, argv: command.spool_to(folder / "spool", *argv),
}


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    """A folder of commands that behave as Slurm's clients do."""
    scripts = {
        "good": 'printf "one\\ntwo\\n"',
        "empty": "exit 0",
        "silent_error": 'echo "slurm_load_topo error: Requested topology configuration is not available" >&2',
        "no_controller": 'echo "slurm_load_node error: Unable to contact slurm controller (connect failure)" >&2; exit 1',
        "slow_controller": 'echo "slurm_load_jobs error: Socket timed out on send/recv operation" >&2; exit 1',
        "denied": 'echo "half an answer"; echo "slurm_update error: Access/permission denied" >&2; exit 1',
        "hangs": "sleep 30",
        "killed": "echo half; kill -9 $$",
        "time_format": 'printf "%s" "$SLURM_TIME_FORMAT"',
        "squeue_states": 'printf "%s" "[$SQUEUE_STATES]"',
        "latin": "printf 'caf\\351\\n'",
    }
    folder = tmp_path / "tools"
    folder.mkdir()
    for name, body in scripts.items():
        (folder / name).write_text(f"#!/bin/sh\n{body}\n")
        (folder / name).chmod(0o755)
    return folder


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("silent_error", Refused),
        ("no_controller", Unreachable),
        ("slow_controller", TimedOut),
        ("denied", Refused),
        ("hangs", TimedOut),
        ("killed", Unreachable),
        ("not_there", Unreachable),
    ],
)
def test_failures_have_names(tools: Path, tmp_path: Path, way: str, name: str, error: type[WorldError]) -> None:
    """Each failure is the same WorldError however the command is run, and says which command."""
    command = SlurmCommand(bin_dir=tools, timeout_s=0.5 if name == "hangs" else 10)
    with pytest.raises(error, match=name) as caught:
        WAYS[way](command, tmp_path, (name,))
    assert caught.value.hint
    assert not (tmp_path / "spool").exists(), "a half answer was left behind"


@pytest.mark.parametrize("way", WAYS)
def test_answers(tools: Path, tmp_path: Path, way: str) -> None:
    """A good answer arrives whole, also through a file."""
    got = WAYS[way](SlurmCommand(bin_dir=tools), tmp_path, ("good",))
    assert got == {"run": "one\ntwo\n", "run_sync": "one\ntwo\n", "stream_lines": ["one", "two"], "spool_to": 8}[way]


def test_an_empty_answer_is_no_error(tools: Path) -> None:
    """No output and no complaint is an answer: there is nothing."""
    assert SlurmCommand(bin_dir=tools).run_sync("empty") == ""


def test_time_out_ends_the_command(tools: Path) -> None:
    """A command that hangs is ended within the time-out, not waited for."""
    begun = time.monotonic()
    with pytest.raises(TimedOut):
        asyncio.run(SlurmCommand(bin_dir=tools, timeout_s=0.3).run("hangs"))
    assert time.monotonic() - begun < 5


def test_environment(tools: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Times are asked for in seconds, and a user's own squeue settings do not change our answers."""
    monkeypatch.setenv("SQUEUE_STATES", "FAILED")
    command = SlurmCommand(bin_dir=tools)
    assert command.run_sync("time_format") == "%s"
    assert command.run_sync("squeue_states") == "[]"


def test_other_encodings_stay_visible(tools: Path) -> None:
    """Bytes that are no UTF-8 are shown as escapes: nothing is lost, nothing raises."""
    assert SlurmCommand(bin_dir=tools).run_sync("latin") == "caf\\xe9\n"


def test_nul_is_refused_before_anything_runs(tools: Path) -> None:
    """An argument with NUL cannot name anything."""
    with pytest.raises(Garbled):
        SlurmCommand(bin_dir=tools).run_sync("good", "a\0b")
