"""How long commands take to start: `nodeworthy --help` against Python itself and Click alone, in the same run."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence

from benchmarks import measure
from benchmarks.measure import Figure

CLICK = "import click; click.Command('x', help='y').main(['--help'])"


def milliseconds(command: Sequence[str], times: int) -> float:
    return min(measure.cost(command, look_every_s=5.0).wall_s for _ in range(times)) * 1000


def figures(given: argparse.Namespace) -> Iterator[Figure]:
    times = 5 if given.small else 20
    python = milliseconds([sys.executable, "-c", "pass"], times)
    click = milliseconds([sys.executable, "-c", CLICK], times)
    beside = f"Python alone {python:.0f} ms, Click alone {click:.0f} ms"
    for words in (["--help"], ["--version"], ["node", "list", "--help"], ["log", "classify", "--help"]):
        target = 100.0 if words == ["--help"] else None
        yield Figure(f"nodeworthy {' '.join(words)}", milliseconds(measure.nodeworthy(*words), times), "ms", target,
                     beside=beside)  # fmt: skip


def main() -> None:
    given = measure.parser(__doc__).parse_args()
    measure.report(figures(given), given)


if __name__ == "__main__":
    main()
