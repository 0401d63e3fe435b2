"""Built-in checks on example facts: tests/cases/checks/*.toml, facts in and findings out."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from nodeworthy.adapters.files.catalogue import load
from nodeworthy.judge.explain import names_of
from nodeworthy.judge.frames import Frames, build
from nodeworthy.judge.judge import JudgeState, judge
from nodeworthy.model.fleet import Fleet, Node, NodeClass
from nodeworthy.ports import TelemetryBatch
from nodeworthy_node.conditions import parse

FOLDER = Path(__file__).parent / "checks"
CATALOGUE = load()
NOW = 1_700_000_000.0
CASES: list[tuple[str, dict[str, Any]]] = [
    (f"{file.stem}: {case['name']}", case)
    for file in sorted(FOLDER.glob("*.toml"))
    for case in tomllib.loads(file.read_text())["case"]
]


def frames(case: dict[str, Any], now: float) -> Frames:
    """One node with one GPU and one network device, as the case says; features are given as facts."""
    node_class = NodeClass(
        "c", gpus=case.get("class", {}).get("gpus", 1), expect={"nics": "nic0", **case.get("class", {})}
    )
    fleet = Fleet("t", {"c": node_class}, {"n0": Node("n0", "c")})
    index = {"node": "", "gpu": "0", "nic": "nic0"}[case["kind"]]
    facts = case.get("facts", {})
    signals = {k: [v] for k, v in facts.items() if k in CATALOGUE.signals}
    table = pl.DataFrame({"node": ["n0"], "index": [index], "seen": [now], **signals})
    built = build(fleet, CATALOGUE, [TelemetryBatch("case", now, {case["kind"]: table})], now)
    features = [f for f in CATALOGUE.features.values() if f.kind == case["kind"]]
    height = built.tables[case["kind"]].frame.height
    values = {f.id: [facts.get(f.id), *[None] * (height - 1)] for f in features}
    return (
        built.with_features({case["kind"]: pl.DataFrame(values, schema=dict.fromkeys(values, pl.Float64))})
        if values
        else built
    )


def found(case: dict[str, Any]) -> set[str]:
    """The checks that are true once the facts have held for twenty minutes."""
    state = JudgeState()
    for turn in range(5):
        now = NOW + 290.0 * turn
        judgement = judge(CATALOGUE, frames(case, now), state, now)
        state = judgement.state
    return {f.check for f in judgement.findings if f.component.kind != "source"}


@pytest.mark.parametrize("case", [case for _, case in CASES], ids=[name for name, _ in CASES])
def test_facts_in_findings_out(case: dict[str, Any]) -> None:
    """Exactly the named checks are true, no more and no less."""
    assert found(case) == set(case["findings"]), case["why"]


@pytest.mark.parametrize("case", [case for _, case in CASES], ids=[name for name, _ in CASES])
def test_the_evaluator_of_nodes_agrees(case: dict[str, Any]) -> None:
    """The plain-Python evaluator calls the same checks true on the same facts."""
    values = {**case.get("facts", {}), **{f"class.{k}": v for k, v in case.get("class", {}).items()}}
    agreed = set()
    for check in CATALOGUE.checks.values():
        if check.kind == case["kind"] and check.condition is not None:
            applies = not check.applies or parse(check.applies).evaluate(values) is True
            if applies and parse(check.condition).evaluate(values) is True:
                agreed.add(check.id)
    assert agreed == set(case["findings"]), case["why"]


def test_every_condition_check_has_a_case_that_makes_it_true() -> None:
    """A check that no example can make true is not tested."""
    covered = {name for _, case in CASES for name in case["findings"]}
    assert {c.id for c in CATALOGUE.checks.values() if c.condition is not None} - covered == set()


def test_no_built_in_check_is_true_of_nothing() -> None:
    """With every input unknown no check is true, and neither is any condition over class values alone."""
    for check in CATALOGUE.checks.values():
        if check.condition is not None:
            condition = parse(check.condition)
            assert condition.evaluate({}) is None
            assert any(not n.startswith("class.") for n in names_of(check.condition)), check.id


@pytest.mark.parametrize("case", [case for _, case in CASES], ids=[name for name, _ in CASES])
def test_blanking_any_fact_accuses_nobody(case: dict[str, Any]) -> None:
    """Without one of its facts or expectations a component has no finding that it had not with it."""
    values = {**case.get("facts", {}), **{f"class.{k}": v for k, v in case.get("class", {}).items()}}
    for blank in values:
        left = {k: v for k, v in values.items() if k != blank}
        for check in CATALOGUE.checks.values():
            if check.kind == case["kind"] and check.condition is not None and check.id not in case["findings"]:
                applies = not check.applies or parse(check.applies).evaluate(left) is True
                assert not (applies and parse(check.condition).evaluate(left) is True), (check.id, blank)
