"""Run every benchmark, each in a process of its own, and write docs/benchmarks.md: `make bench`.

python -m benchmarks.run                 all of them, full size (about ten minutes)
python -m benchmarks.run --small         to see that they work; writes no page
python -m benchmarks.run --only judge    one of them; the page keeps what it says of the others
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from benchmarks import measure
from benchmarks.measure import ROOT, Figure, number

PAGE = ROOT / "docs" / "benchmarks.md"
BENCHMARKS = {
    "start_up": ("Start-up", ()),
    "judge": ("Judging", ()),
    "turn": ("Whole turns", ("--lab",)),
    "exposition": ("Telemetry", ()),
    "log_classify": ("Log lines", ()),
    "audit": ("The audit", ()),
    "store": ("The record", ()),
}
HEAD = """\
# Benchmarks

Written by `make bench` (`python -m benchmarks.run`), which runs each benchmark in a process of its own. Targets are
the project's own; a figure that misses its target is shown as missing it. The best of several runs counts where a run
is short. Compare machines by the last column, which is another program's figure from the same run.

"""


@dataclass(frozen=True)
class Section:
    """What one benchmark said, and what it cost."""

    name: str
    figures: tuple[Figure, ...]
    command: str
    wall_s: float
    peak_mb: float
    when: str

    @property
    def text(self) -> str:
        rows = [_row(f) for f in self.figures]
        return "\n".join([
            f"## {BENCHMARKS[self.name][0]}",
            "",
            f"`{self.command}`: {self.wall_s:.0f} s, at most {self.peak_mb:,.0f} MB. {self.when}",
            "",
            "| figure | measured | target | beside it |",
            "|---|---:|---:|---|",
            *rows,
            "",
        ])  # fmt: skip


def _row(figure: Figure) -> str:
    target = ""
    if figure.target is not None:
        sign, word = ("≥" if figure.at_least else "≤"), ("met" if figure.met else "**missed**")
        target = f"{sign} {number(figure.target)} {figure.unit}, {word}"
    return f"| {figure.what} | {number(figure.value)} {figure.unit} | {target} | {figure.beside} |"


def machine() -> str:
    """The processor, cores, memory and versions of this machine, and how busy it is with other things."""
    cpu = next((line.partition(":")[2].strip() for line in Path("/proc/cpuinfo").read_text().splitlines()
                if line.startswith("model name")), platform.machine())  # fmt: skip
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
    return (
        f"{os.cpu_count()} cores of {cpu}, {memory:.0f} GB, Python {platform.python_version()}, "
        f"load {os.getloadavg()[0]:.1f} at the start"
    )


def run(name: str, *, small: bool, lab: Path | None) -> Section:
    """One benchmark, in its own process. Ends the program when it fails. `lab`: one that runs already."""
    with tempfile.TemporaryDirectory() as scratch:
        found = Path(scratch) / "figures.json"
        options = ["--small"] if small else list(BENCHMARKS[name][1])
        at = [f"--lab-at={lab}"] if lab and name == "turn" else []
        command = [sys.executable, "-m", f"benchmarks.{name}", *options, *at, "--json", str(found)]
        when = f"{datetime.datetime.fromtimestamp(time.time(), datetime.UTC):%Y-%m-%d}, {machine()}"
        spent = measure.cost(command, show=True)
        if not found.exists():
            raise SystemExit(f"benchmarks.{name} ended with {spent.returncode} and without figures")
        figures = tuple(Figure(**f) for f in json.loads(found.read_text()))
    said = " ".join(["python -m", f"benchmarks.{name}", *options])
    return Section(name, figures, said, spent.wall_s, spent.peak_mb, when)


def earlier(page: str) -> dict[str, str]:
    """The sections of a page by the benchmark's name."""
    titles = {title: name for name, (title, _) in BENCHMARKS.items()}
    parts = (part for part in page.split("\n## ")[1:])
    return {titles[p.partition("\n")[0]]: f"## {p.rstrip()}\n" for p in parts if p.partition("\n")[0] in titles}


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--only", choices=[*BENCHMARKS], action="append", help="this one (may be repeated)")
    options.add_argument("--small", action="store_true", help="small sizes, and no page")
    options.add_argument("--lab-at", type=Path, metavar="DIR", help="use the lab of phantom nodes that runs there")
    given = options.parse_args()
    sections = earlier(PAGE.read_text()) if PAGE.exists() else {}
    for name in given.only or BENCHMARKS:
        print(f"--- {name}", flush=True)
        sections[name] = run(name, small=given.small, lab=given.lab_at).text
        if not given.small:
            PAGE.write_text(HEAD + "\n".join(sections[n] for n in BENCHMARKS if n in sections))


if __name__ == "__main__":
    main()
