"""Processes that a lab started, and no others.

A lab runs daemons that must be ended for certain and must never be confused with somebody else's. Each one
is recorded as "pid start-time" in a file; it counts as ours only while the kernel still gives that process
id the same start time, so a number that was handed on is never signalled. Nothing is ended by name.
"""

from __future__ import annotations

import os
import random
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path


class LabError(RuntimeError):
    """The lab could not do what was asked; the message says where to look."""


def start_ticks(pid: int) -> int | None:
    """Start time of a live process in clock ticks since boot; None when there is none (or only a zombie)."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if fields[0] == "Z" else int(fields[19])


class Processes:
    """The recorded processes of one lab: `run` holds NAME.pid, `log` gets NAME.out."""

    def __init__(self, run: Path, log: Path) -> None:
        self.run, self.log = run, log
        self._children: dict[str, subprocess.Popen[bytes]] = {}

    def spawn(self, name: str, argv: Sequence[str], env: Mapping[str, str] | None = None) -> int:
        with (self.log / f"{name}.out").open("ab") as out:
            process = subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                env={**os.environ, **(env or {})},
            )
        self._children[name] = process
        (self.run / f"{name}.pid").write_text(f"{process.pid} {start_ticks(process.pid)}\n")
        return process.pid

    def names(self) -> list[str]:
        return sorted(path.stem for path in self.run.glob("*.pid"))

    def pid(self, name: str) -> int | None:
        """The process id of `name` if that very process still lives."""
        try:
            pid, ticks = map(int, (self.run / f"{name}.pid").read_text().split())
        except (FileNotFoundError, ValueError):
            return None
        if (child := self._children.get(name)) is not None:
            child.poll()  # else it would stay a zombie
        return pid if start_ticks(pid) == ticks else None

    def signal(self, name: str, number: int) -> None:
        if (pid := self.pid(name)) is not None:
            with suppress(ProcessLookupError):
                os.kill(pid, number)

    def end(self, *names: str, patience_s: float = 10.0) -> None:
        """Ask all of them to end, wait, then insist."""
        for name in names:
            self.signal(name, signal.SIGTERM)
        deadline = time.monotonic() + patience_s
        for name in names:
            while self.pid(name) is not None:
                if time.monotonic() > deadline:
                    self.signal(name, signal.SIGKILL)
                time.sleep(0.05)
            (self.run / f"{name}.pid").unlink(missing_ok=True)

    def tail(self, name: str, lines: int = 5) -> str:
        path = self.log / f"{name}.out"
        return "\n".join(path.read_text(errors="replace").splitlines()[-lines:]) if path.exists() else ""


def wait_until(
    condition: Callable[[], bool], what: str, timeout_s: float, every_s: float = 0.1, says: Callable[[], str] = str
) -> float:
    """Seconds until `condition` held. Raises LabError with `says()` when it did not in time."""
    begun = time.monotonic()
    while not condition():
        if time.monotonic() - begun > timeout_s:
            raise LabError(f"{what}: not after {timeout_s:g} s. {says()}".strip())
        time.sleep(every_s)
    return time.monotonic() - begun


def free_ports(count: int) -> int:
    """First port of a free range on loopback, below the kernel's range for outgoing connections.

    Not a lock: two labs that start in the same instant may choose overlapping ranges, and one then fails."""
    for _ in range(50):
        first = random.randint(20000, 30000 - count)
        with ExitStack() as held:
            try:
                for port in range(first, first + count):
                    probe = held.enter_context(socket.socket())
                    probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                    probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        return first
    raise LabError(f"no free range of {count} ports between 20000 and 30000")


def leftovers(conf: Path, log: Path) -> Iterator[int]:
    """Job step daemons and job processes of a lab: they outlive slurmd by design.

    A step daemon is known by the slurmd log that it holds open, a job process by this lab's SLURM_CONF
    together with a SLURM_JOB_ID in its environment."""
    mark = f"SLURM_CONF={conf}".encode()
    for folder in Path("/proc").glob("[0-9]*"):
        pid = int(folder.name)
        if pid == os.getpid():
            continue
        try:
            variables = (folder / "environ").read_bytes().split(b"\0")
            is_job = mark in variables and any(v.startswith(b"SLURM_JOB_ID=") for v in variables)
            is_step = b"slurmstepd" in (folder / "cmdline").read_bytes().split(b"\0")[0] and any(
                str(link.readlink()).startswith(f"{log}/slurmd-") for link in (folder / "fd").iterdir()
            )
        except OSError:
            continue
        if is_job or is_step:
            yield pid
