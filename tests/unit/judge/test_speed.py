"""A small instance of benchmarks.judge: the cost of judging grows with the columns, not with Python objects."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

PATH = Path(__file__).parents[3] / "benchmarks" / "judge.py"


@pytest.fixture(scope="module")
def bench() -> ModuleType:
    spec = importlib.util.spec_from_file_location("judge_benchmark", PATH)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["judge_benchmark"] = module
    spec.loader.exec_module(module)
    return module


def test_ten_times_the_gpus_cost_far_less_than_ten_times_the_time(bench: ModuleType) -> None:
    """Best of five turns: fixed costs and columns dominate, there is no work per well row in Python."""
    small = min(bench.measure(2_000, bench.CASES[0], 5)[1])
    large = min(bench.measure(20_000, bench.CASES[0], 5)[1])
    assert large < 6 * small


@pytest.mark.parametrize("number", range(4))
def test_the_cases_of_the_benchmark_are_what_they_say(bench: ModuleType, number: int) -> None:
    """All well: nothing found; 1 % bad: some findings; blank: all unknown, one finding about the source."""
    case = bench.CASES[number]
    _, __, result = bench.measure(2_000, case, 5)
    on_nodes = [f for f in result.findings if f.component.kind == "gpu"]
    unknown = sum(group.count for group in result.unknown)
    assert bool(on_nodes) is (case.bad > 0)
    assert len(result.findings) - len(on_nodes) == (1 if case.blank else 0)
    assert (
        (unknown == 0) if not case.blank else (0.8 * case.blank < unknown / (2_000 * bench.CHECKS) < 1.2 * case.blank)
    )
    if case.blank == 1.0:
        assert unknown == 2_000 * bench.CHECKS


def test_a_turn_is_fast_enough_for_its_size(bench: ModuleType) -> None:
    """20,000 GPUs in a quarter of the budget of 80,000, with room for a busy machine (best of eight turns)."""
    making, judging, _ = bench.measure(20_000, bench.CASES[0], 8)
    assert min(m + j for m, j in zip(making, judging, strict=True)) < 100.0
