"""What the benchmarks share: figures with their targets, best-of timing, and the cost of a whole process.

Every benchmark is `python -m benchmarks.NAME [--small] [--json FILE]`. It makes figures and hands them to `report`,
which prints them for people and, when asked, writes them for `benchmarks.run`.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LOOK_EVERY_S = 0.05  # how often a child's memory is looked at


@dataclass(frozen=True)
class Figure:
    """One measured number. `target`: what it should be at most (`at_least`: at least); None where there is none.

    `beside` is the same work by a known program in the same run, in words: what makes figures of two machines comparable.
    """

    what: str
    value: float
    unit: str
    target: float | None = None
    at_least: bool = False
    beside: str = ""

    @property
    def met(self) -> bool | None:
        if self.target is None:
            return None
        return self.value >= self.target if self.at_least else self.value <= self.target


@dataclass(frozen=True)
class Cost:
    """Of a whole process: seconds by the clock and of processor time, and its greatest memory in MB."""

    wall_s: float
    cpu_s: float
    peak_mb: float
    stdout: bytes
    returncode: int


def best(work: Callable[[], object], times: int = 3, clock: Callable[[], float] = time.perf_counter) -> float:
    """Seconds of the fastest of several runs: what others do on the machine only makes it slower.

    `clock`: `time.process_time` counts processor time, for figures "a core"."""
    taken = []
    for _ in range(times):
        start = clock()
        work()
        taken.append(clock() - start)
    return min(taken)


def memory_mb(pid: int | str = "self", which: str = "VmHWM") -> float:
    """Greatest (VmHWM) or present (VmRSS) memory of a process in MB; 0 where it has ended."""
    try:
        text = Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    return next((int(line.split()[1]) / 1000 for line in text.splitlines() if line.startswith(which)), 0.0)


def environment() -> dict[str, str]:
    """Of a child that runs this checkout."""
    return {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}


def nodeworthy(*arguments: str) -> list[str]:
    """The command line of our own command."""
    return [sys.executable, "-m", "nodeworthy.cli.main", *arguments]


def cost(
    command: Sequence[str],
    *,
    env: Mapping[str, str] | None = None,
    show: bool = False,
    look_every_s: float = LOOK_EVERY_S,
) -> Cost:
    """Run a command and say what it cost. Its errors pass through; its output too with `show`, else it is returned.

    Memory is the kernel's own high-water mark, which `getrusage` of a child confuses with that of its parent.
    """
    before, start = os.times(), time.perf_counter()
    child = subprocess.Popen(command, env=env or environment(), stdout=None if show else subprocess.PIPE)
    peak, out = 0.0, b""
    while True:
        peak = max(peak, memory_mb(child.pid))
        try:
            out, _ = child.communicate(timeout=look_every_s)
            break
        except subprocess.TimeoutExpired:
            continue
    wall, after = time.perf_counter() - start, os.times()
    busy = after.children_user + after.children_system - before.children_user - before.children_system
    return Cost(wall, busy, peak, out or b"", child.returncode)


def parser(description: str | None) -> argparse.ArgumentParser:
    """With the options that every benchmark has."""
    options = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--small", action="store_true", help="a tenth of the size or less, to see that it works")
    options.add_argument("--json", type=Path, metavar="FILE", help="write the figures there, too")
    return options


def report(figures: Iterable[Figure], given: argparse.Namespace) -> bool:
    """Print each figure as it comes, and write them all where `--json` says; whether every target was met."""
    found = []
    for figure in figures:
        found.append(figure)
        print(sentence(figure), flush=True)
    if given.json is not None:
        given.json.write_text(json.dumps([asdict(f) for f in found]))
    return all(f.met is not False for f in found)


def number(value: float) -> str:
    """Three digits that count, whole numbers in full."""
    if value >= 100 or value == int(value):
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def sentence(figure: Figure) -> str:
    said = f"{figure.what:72} {number(figure.value):>12} {figure.unit}"
    if figure.target is not None:
        word = "at least" if figure.at_least else "at most"
        said += f"   ({word} {number(figure.target)}: {'met' if figure.met else 'NOT met'})"
    return f"{said}   {figure.beside}".rstrip()
