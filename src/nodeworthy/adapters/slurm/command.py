"""Running Slurm's client commands, and saying in our words how they failed.

Slurm's clients are a poor protocol with one good property: they exist everywhere. What this file knows
about them:

- Exit code 0 proves nothing: some errors are only printed (`scontrol` in its text mode). An empty answer
  with an error on stderr is therefore a failure, whatever the exit code says.
- A client waits as long as its controller makes it wait, so every call has a time-out of ours; the process
  group that we started is ended when it passes.
- Times are asked for as POSIX seconds (`SLURM_TIME_FORMAT=%s`), which leaves no question of time zone.
  Whoever parses them still accepts Slurm's standard format, because a wrapper may drop the variable.
- No shell is ever involved: arguments are passed as they are.

Failures become `TimedOut`, `Unreachable`, `Refused` or `Garbled` (`nodeworthy.errors`).
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from nodeworthy.errors import Garbled, Refused, TimedOut, Unreachable, WorldError

DEFAULT_TIMEOUT_S = 30.0
"""Slurm's own MessageTimeout is 10 s and a busy controller answers late, not never: three times that."""

OWN_ENVIRONMENT = {"SLURM_TIME_FORMAT": "%s", "LC_ALL": "C.UTF-8"}

USER_SETTINGS = ("SQUEUE_", "SINFO_", "SACCT_", "SACCTMGR_", "SLURM_CLUSTERS", "SLURM_BITSTR_LEN")
"""Variables by which users set up their own listings; ours must not depend on them."""

_UNREACHABLE = re.compile(
    r"unable to contact slurm controller|connection refused|no route to host|network is unreachable"
    r"|unable to (?:establish|connect)|failed to contact|slurm_persist_conn_open|problem talking to"
    r"|unable to resolve|could not establish a configuration source|not responding",
    re.IGNORECASE,
)
_TIMED_OUT = re.compile(r"timed out|timeout", re.IGNORECASE)
_ERROR_LINE = re.compile(r"error|fatal|unrecognized option|invalid|denied|unable", re.IGNORECASE)
_SENTENCE_LIMIT = 300


@dataclass(frozen=True, slots=True)
class SlurmCommand:
    """How to call Slurm here: environment on top of our own, time-out, and where the commands are.

    `env` adds to (and overrides) the environment of this process, for instance `SLURM_CONF`. `bin_dir` is
    searched instead of PATH. One value serves all adapters; it holds no state.
    """

    env: Mapping[str, str] = field(default_factory=dict)
    timeout_s: float = DEFAULT_TIMEOUT_S
    bin_dir: Path | None = None

    async def run(self, *argv: str) -> str:
        """The command's standard output. Raises a `WorldError` for everything else."""
        try:
            process = await asyncio.create_subprocess_exec(
                *self._argv(argv),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=self._environment(),
                start_new_session=True,
            )
        except OSError as error:
            raise cannot_start(argv, error) from error
        try:
            out, err = await asyncio.wait_for(process.communicate(), self.timeout_s)
        except TimeoutError as error:
            raise self._timed_out(argv) from error
        finally:
            if process.returncode is None:
                _end_group(process.pid)
                await process.wait()
        assert process.returncode is not None
        return answer(argv, process.returncode, out, err)

    def run_sync(self, *argv: str) -> str:
        """As `run`, for commands that work alone (the audit)."""
        with self._started(argv, subprocess.PIPE, subprocess.PIPE) as process:
            try:
                out, err = process.communicate(timeout=self.timeout_s)
            except subprocess.TimeoutExpired as error:
                raise self._timed_out(argv) from error
            finally:
                _end_if_running(process)
        return answer(argv, process.returncode, out, err)

    def spool_to(self, path: Path, *argv: str) -> int:
        """Write the command's output straight into `path`, for answers too big for memory.

        Returns its size in bytes. On failure the file is removed, so that a half answer cannot be read
        for a whole one."""
        with path.open("wb") as spool, tempfile.TemporaryFile() as errors:
            try:
                return self._spool(argv, spool, errors)
            except BaseException:
                path.unlink(missing_ok=True)
                raise

    def stream_lines(self, *argv: str) -> Iterator[str]:
        """The lines of a big answer, without their line ends, in constant memory.

        The answer is spooled to an unnamed file first: the first line appears only after the command has
        succeeded, so no reader ever works on half an answer. Lines end at a line feed alone."""
        with tempfile.TemporaryFile() as spool, tempfile.TemporaryFile() as errors:
            self._spool(argv, spool, errors)
            spool.seek(0)
            for line in spool:
                yield _text(line.rstrip(b"\n"))

    def _spool(self, argv: Sequence[str], spool: IO[bytes], errors: IO[bytes]) -> int:
        code = self._wait(argv, spool, errors)
        size = spool.seek(0, os.SEEK_END)
        if code != 0 or size == 0:
            errors.seek(0)
            answer(argv, code, b"", errors.read())
        return size

    def _wait(self, argv: Sequence[str], out: IO[bytes], err: IO[bytes]) -> int:
        with self._started(argv, out, err) as process:
            try:
                return process.wait(timeout=self.timeout_s)
            except subprocess.TimeoutExpired as error:
                raise self._timed_out(argv) from error
            finally:
                _end_if_running(process)

    def _started(self, argv: Sequence[str], out: int | IO[bytes], err: int | IO[bytes]) -> subprocess.Popen[bytes]:
        try:
            return subprocess.Popen(
                self._argv(argv),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                env=self._environment(),
                start_new_session=True,
            )
        except OSError as error:
            raise cannot_start(argv, error) from error

    def _argv(self, argv: Sequence[str]) -> list[str]:
        # An argument with NUL cannot be passed to a process; it cannot be a name in Slurm either.
        if any("\0" in argument for argument in argv):
            raise Garbled(f"{argv[0]}: an argument holds a NUL character")
        program = str(self.bin_dir / argv[0]) if self.bin_dir else argv[0]
        return [program, *argv[1:]]

    def _environment(self) -> dict[str, str]:
        inherited = {key: value for key, value in os.environ.items() if not key.startswith(USER_SETTINGS)}
        return {**inherited, **OWN_ENVIRONMENT, **self.env}

    def _timed_out(self, argv: Sequence[str]) -> TimedOut:
        return TimedOut(
            f"`{' '.join(argv)}` did not answer within {self.timeout_s:g} s",
            hint="is slurmctld overloaded? `sdiag` on its host shows its queues",
        )


def answer(argv: Sequence[str], code: int, out: bytes, err: bytes) -> str:
    """The text of a finished command, or the error that it stands for."""
    said = _text(err).strip()
    if code == 0 and (out or not _ERROR_LINE.search(said)):
        return _text(out)
    if code != 0 and not said:
        said = _text(out).strip()
    raise failure(argv, code, said)


def failure(argv: Sequence[str], code: int, said: str) -> WorldError:
    """Which kind of failure a client's own words describe."""
    what = f"`{' '.join(argv)}` failed with exit code {code}: {_shorten(said) or 'no message'}"
    if _UNREACHABLE.search(said):
        return Unreachable(what, hint="is slurmctld up, and SLURM_CONF the right one? Try `scontrol ping`")
    if _TIMED_OUT.search(said):
        return TimedOut(what, hint="is slurmctld overloaded? `sdiag` on its host shows its queues")
    if code < 0:
        return Unreachable(what, hint=f"the command was ended by signal {-code}")
    return Refused(what, hint="run the command by hand as the same user to see what it needs")


def cannot_start(argv: Sequence[str], error: OSError) -> WorldError:
    """The command could not even be started."""
    if isinstance(error, FileNotFoundError):
        return Unreachable(
            f"the command {argv[0]!r} is not installed here",
            hint="install Slurm's client commands (Debian: slurm-client) or set the folder where they are",
        )
    if isinstance(error, PermissionError):
        return Refused(f"the command {argv[0]!r} may not be run: {error.strerror}")
    return Unreachable(f"the command {argv[0]!r} could not be started: {error.strerror or error}")


def _end_group(pid: int) -> None:
    """End the session that we started for one command: the client and what it started itself."""
    try:
        os.killpg(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def _end_if_running(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        _end_group(process.pid)
        process.wait()


def _shorten(said: str) -> str:
    """The lines that tell, on one line of bounded length."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    telling = [line for line in lines if _ERROR_LINE.search(line)] or lines
    sentence = "; ".join(telling)
    return sentence if len(sentence) <= _SENTENCE_LIMIT else sentence[: _SENTENCE_LIMIT - 1] + "…"


def _text(raw: bytes) -> str:
    """UTF-8; other bytes stay visible as escapes, so that nothing is lost and nothing is invented."""
    return raw.decode("utf-8", errors="backslashreplace")
