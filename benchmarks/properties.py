"""The campaign: every property and every parser with 100,000 inputs: `python -m benchmarks.properties`.

Prints, a row a test: its inputs, seconds, failures and the peak memory of its process, and exits with 1 where one failed. Each
test runs in a process of its own (`--jobs` at once), because Hypothesis remembers what it has tried. `--only WORDS` takes
the tests that pytest's -k takes, `--small` the inputs of a usual test run; `--json FILE` writes the rows as figures. One test alone, with what made it fail:
`pytest --hypothesis-profile=campaign 'TEST'`.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MEMORY_LIMIT_MB = 1024
_TRIED = re.compile(r"(\d+) passing.*?(\d+) failing")


@dataclass(frozen=True)
class Row:
    """`inputs` 0: a test without random inputs (or one that failed before the first). The test of damaged inputs gives
    each of its inputs to every parser in tests/properties/parsers.py."""

    test: str
    inputs: int
    seconds: float
    failures: int
    memory_mb: int

    def figure(self) -> dict[str, object]:
        """As the other benchmarks write theirs: failures, of which there should be none."""
        beside = f"{self.inputs:,} inputs in {self.seconds} s, {self.memory_mb} MB"
        return {
            "what": self.test,
            "value": self.failures,
            "unit": "failures",
            "target": 0,
            "at_least": False,
            "beside": beside,
        }


def profile(small: bool) -> str:
    return f"--hypothesis-profile={'ci' if small else 'campaign'}"


def tests(only: str) -> list[str]:
    """The ids of the tests with drawn inputs, as pytest collects them."""
    command = [sys.executable, "-m", "pytest", "tests/properties", "-q", "--collect-only", "-m", "hypothesis"]
    found = subprocess.run([*command, "-k", only], cwd=ROOT, capture_output=True, text=True, check=False)
    return [line for line in found.stdout.splitlines() if "::" in line]


def run(test: str, timeout_s: float, small: bool) -> Row:
    """One test in its own process; one that is not ready by then has failed."""
    started = time.monotonic()
    with tempfile.TemporaryFile("w+") as said:
        process = subprocess.Popen(
            [sys.executable, "-m", "pytest", test, "-q", "--tb=short", "--timeout=0", "-p", "no:cacheprovider", profile(small),
             "--hypothesis-show-statistics"],
            cwd=ROOT, stdout=said, stderr=subprocess.STDOUT,
        )  # fmt: skip
        memory = _wait(process, started + timeout_s)
        said.seek(0)
        text = said.read()
    seconds = time.monotonic() - started
    tried = [(int(good), int(bad)) for good, bad in _TRIED.findall(text)]
    failed = process.returncode != 0 or memory > MEMORY_LIMIT_MB
    if failed:
        print(text[-4000:], file=sys.stderr, flush=True)
    return Row(test.removeprefix("tests/properties/"), sum(map(sum, tried)), round(seconds, 1), int(failed), memory)


def _wait(process: subprocess.Popen[bytes], until: float) -> int:
    """Ends it at `until`; its peak memory in MB."""
    while True:
        pid, status, usage = os.wait4(process.pid, os.WNOHANG)
        if pid:
            process.returncode = os.waitstatus_to_exitcode(status)
            return usage.ru_maxrss // 1024
        if time.monotonic() > until:
            process.kill()
        time.sleep(0.2)


def campaign(only: str, jobs: int, timeout_s: float, small: bool) -> Iterator[Row]:
    with ThreadPoolExecutor(jobs) as pool:
        yield from pool.map(lambda test: run(test, timeout_s, small), tests(only))


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--only", default="", metavar="WORDS", help="as pytest's -k")
    options.add_argument("--jobs", type=int, default=2, help="tests at once (default 2)")
    options.add_argument(
        "--timeout", type=float, default=3600.0, metavar="S", help="seconds for one test (default 3600)"
    )
    options.add_argument("--small", action="store_true", help="some hundred inputs, to see that it works")
    options.add_argument("--json", type=Path, metavar="FILE", help="write the rows there, too")
    asked = options.parse_args()
    rows = []
    print("| test | inputs | seconds | failures | MB |\n| --- | ---: | ---: | ---: | ---: |")
    for row in campaign(asked.only, asked.jobs, asked.timeout, asked.small):
        rows.append(row)
        print(f"| {row.test} | {row.inputs:,} | {row.seconds} | {row.failures} | {row.memory_mb} |", flush=True)
    if asked.json:
        asked.json.write_text(json.dumps([row.figure() for row in rows]))
    return 1 if not rows or any(row.failures for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
