"""How long judging takes: 100 checks over 80,000 GPUs with 60 signals, with debounce.

    python -m benchmarks.judge [--gpus 80000] [--turns 20]

Per case the median and the 95th percentile of the turns are printed, in milliseconds, for making the frames
(alignment with the declared rows, cleaning, staleness) and for judging (expressions, debounce, findings, unknowns).
Every turn has new data. The first turns, in which findings open, are counted too.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl

from benchmarks.measure import Figure, parser, report
from nodeworthy.judge.frames import Frames, build
from nodeworthy.judge.judge import Judgement, JudgeState, judge
from nodeworthy.model.catalogue import Catalogue, Check, Signal
from nodeworthy.model.finding import Severity
from nodeworthy.model.fleet import Fleet, Node, NodeClass
from nodeworthy.ports import TelemetryBatch

SIGNALS, CHECKS, PER_NODE = 60, 100, 8
LIMIT = 900.0  # synthetic signals are uniform in 0..800 when well; more than this is bad


def catalogue() -> Catalogue:
    """60 numeric signals and 100 checks of the shapes that the built-in catalogue has."""
    signals = {f"s{i}": Signal(f"s{i}", "gpu", "float", "", "", minimum=0, maximum=1e6) for i in range(SIGNALS)}
    shapes: list[Callable[[int, int], str]] = [
        lambda i, _: f"s{i} > {LIMIT}",
        lambda i, _: f"s{i} > class.limit",
        lambda i, j: f"s{i} > {LIMIT} and s{j} >= 0",
        lambda i, j: f"s{i} > {LIMIT} or s{i} - s{j} > {LIMIT}",
        lambda i, _: f"not s{i} <= {LIMIT}",
        lambda i, _: f"0 <= s{i} / 2 and s{i} > class.limit * 1.0",
    ]
    checks = {}
    for n in range(CHECKS):
        condition = shapes[n % len(shapes)](n % SIGNALS, (n * 7 + 1) % SIGNALS)
        name = f"c{n}"
        checks[name] = Check(
            name,
            "1",
            f"Check {n}",
            "gpu",
            condition,
            for_s=30.0 if n % 2 else 0.0,
            clear_s=60.0,
            severity=Severity.WARNING,
        )
    return Catalogue(signals, {}, checks, "benchmark")


def fleet(gpus: int) -> Fleet:
    node_class = NodeClass("h", gpus=PER_NODE, expect={"limit": LIMIT})
    return Fleet("benchmark", {"h": node_class}, {f"n{i:05}": Node(f"n{i:05}", "h") for i in range(gpus // PER_NODE)})


@dataclass(frozen=True)
class Case:
    """`bad`: share of GPUs with one bad signal. `blank`: share of rows whose source is silent."""

    name: str
    bad: float = 0.0
    blank: float = 0.0


CASES = (
    Case("all well"),
    Case("1 % bad", bad=0.01),
    Case("10 % of telemetry blank", blank=0.1),
    Case("everything blank", blank=1.0),
)


def batch(gpus: int, case: Case, now: float, seed: int) -> TelemetryBatch:
    random = np.random.default_rng(seed)
    frame = {f"s{i}": random.random(gpus) * 800.0 for i in range(SIGNALS)}
    steady = np.random.default_rng(7)  # the same GPUs are bad and silent in every turn
    for row in np.flatnonzero(steady.random(gpus) < case.bad):
        frame[f"s{row % SIGNALS}"][row] = 950.0
    seen = np.where(steady.random(gpus) < case.blank, now - 3600.0, now - 5.0)
    keys = {"node": [f"n{i // PER_NODE:05}" for i in range(gpus)], "index": [str(i % PER_NODE) for i in range(gpus)]}
    return TelemetryBatch("dcgm", now, {"gpu": pl.DataFrame({**keys, "seen": seen, **frame})})


def measure(gpus: int, case: Case, turns: int) -> tuple[list[float], list[float], Judgement]:
    """Milliseconds of each turn for frames and for judging, and the last judgement."""
    checks, declared, state = catalogue(), fleet(gpus), JudgeState()
    making: list[float] = []
    judging: list[float] = []
    result: Judgement | None = None
    # one turn on another fleet compiles the expressions and starts Polars' threads
    warm = build(declared, checks, [batch(gpus, Case("warm"), 0.0, 0)], 0.0)
    judge(checks, warm, JudgeState(), 0.0)
    for turn in range(turns):
        now = 1000.0 + 15.0 * turn
        given = batch(gpus, case, now, turn)
        start = time.perf_counter()
        frames: Frames = build(declared, checks, [given], now)
        middle = time.perf_counter()
        result = judge(checks, frames, state, now)
        end = time.perf_counter()
        state = result.state
        making.append((middle - start) * 1e3)
        judging.append((end - middle) * 1e3)
    assert result is not None
    return making, judging, result


def p95(values: list[float]) -> float:
    return sorted(values)[max(0, int(len(values) * 0.95 + 0.5) - 1)]


def figures(gpus: int, turns: int) -> Iterator[Figure]:
    size = f"{gpus:,} GPUs x {SIGNALS} signals, {CHECKS} checks"
    for case in CASES:
        making, judging, result = measure(gpus, case, turns)
        beside = f"p95 {p95(judging):.0f} ms; making the frames {statistics.median(making):.0f} ms"
        beside += f"; {len(result.findings):,} findings, {sum(g.count for g in result.unknown):,} answers unknown"
        yield Figure(f"judge, {size}: {case.name}", statistics.median(judging), "ms", 100.0, beside=beside)


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--gpus", type=int, help="80,000; with --small 8,000")
    options.add_argument("--turns", type=int, default=20)
    given = options.parse_args()
    report(figures(given.gpus or (8_000 if given.small else 80_000), given.turns), given)


if __name__ == "__main__":
    main()
