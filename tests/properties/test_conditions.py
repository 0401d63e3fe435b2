"""Conditions as properties: two back ends with one meaning, and blindness that never accuses."""

from __future__ import annotations

import math
from typing import Any

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from nodeworthy.judge.compile import compile_condition
from nodeworthy_node.conditions import Condition, ConditionError, parse

NUMBERS = {"a": pl.Float64, "b": pl.Int64, "c": pl.Float32, "class.n": pl.Float64, "u": pl.UInt64}
STRINGS = {"s": pl.String, "class.s": pl.String}
SWITCHES = {"p": pl.Boolean, "q": pl.Boolean}
SCHEMA: dict[str, Any] = {**NUMBERS, **STRINGS, **SWITCHES, "nothing": pl.Null}
NAMES = [*SCHEMA, "absent", "class.absent"]

literals = st.sampled_from(["0", "1", "2", "0.5", "3", "255", "0x60", "1e308", "9007199254740993", "1e-300"])
texts = st.sampled_from(["'x'", "'y'", '""', '"class.n"'])
names = st.sampled_from(NAMES)


def numeric(children: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    two = st.tuples(children, st.sampled_from(["+", "-", "*", "/"]), children)
    return st.one_of(
        two.map(lambda t: f"({t[0]} {t[1]} {t[2]})"),
        children.map(lambda c: f"-({c})"),
        children.map(lambda c: f"abs({c})"),
        st.tuples(st.sampled_from(["min", "max"]), children, children).map(lambda t: f"{t[0]}({t[1]}, {t[2]})"),
    )


numbers = st.recursive(st.one_of(literals, st.sampled_from(list(NUMBERS)), names), numeric, max_leaves=4)
comparators = st.sampled_from(["<", "<=", ">", ">=", "==", "!="])
comparisons = st.one_of(
    st.tuples(numbers, comparators, numbers).map(lambda t: f"{t[0]} {t[1]} {t[2]}"),
    st.tuples(numbers, comparators, numbers, comparators, numbers).map(" ".join),
    st.tuples(st.sampled_from([*STRINGS, "a"]), st.sampled_from(["==", "!="]), texts).map(" ".join),
    st.tuples(numbers, st.sampled_from(["in", "not in"]), literals, literals).map(
        lambda t: f"{t[0]} {t[1]} ({t[2]}, {t[3]})"
    ),
    st.tuples(names, st.sampled_from(["in", "not in"]), texts).map(lambda t: f"{t[0]} {t[1]} ({t[2]},)"),
    st.tuples(st.sampled_from([*SWITCHES, "s"]), st.sampled_from(["== True", "!= False", "== q"])).map(" ".join),
    st.tuples(numbers, literals).map(lambda t: f"any_bits({t[0]}, {t[1]})"),
    st.sampled_from([*SWITCHES, "a", "s", "nothing"]),
)


def logical(children: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        st.tuples(children, st.sampled_from(["and", "or"]), children).map(lambda t: f"({t[0]}) {t[1]} ({t[2]})"),
        children.map(lambda c: f"not ({c})"),
    )


expressions = st.recursive(comparisons, logical, max_leaves=5)

special = st.sampled_from(
    [0.0, -0.0, 1.0, 0.5, -1.0, 255.0, 2.0**53, 2.0**53 + 2, 1e308, -1e308, math.nan, math.inf, 5e-324]
)
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "a": st.one_of(st.none(), special, st.floats()),
    "b": st.one_of(st.none(), st.integers(-3, 300), st.integers(-(2**63), 2**63 - 1)),
    "c": st.one_of(st.none(), st.floats(width=32)),
    "u": st.one_of(st.none(), st.integers(0, 5), st.integers(0, 2**64 - 1)),
    "class.n": st.one_of(st.none(), special),
    "s": st.sampled_from([None, "x", "y", "", "class.n"]),
    "class.s": st.sampled_from([None, "x", "1"]),
    "p": st.sampled_from([None, True, False]),
    "q": st.sampled_from([None, True, False]),
    "nothing": st.none(),
}
rows = st.lists(st.fixed_dictionaries(VALUES), min_size=1, max_size=8)


def read(text: str) -> Condition | None:
    try:
        return parse(text)
    except ConditionError as error:
        assert error.column >= 1
        return None


def both(condition: Condition, data: list[dict[str, Any]]) -> tuple[list[bool | None], list[bool | None]]:
    frame = pl.DataFrame(data, schema=SCHEMA)
    compiled = frame.select(compile_condition(condition, frame.schema).alias("x") & pl.lit(True))
    answers = compiled["x"].to_list()
    if len(answers) == 1:
        answers = answers * len(data)
    return answers, [condition.evaluate(row) for row in data]


@given(expressions, rows)
def test_the_two_back_ends_agree(text: str, data: list[dict[str, Any]]) -> None:
    """Polars and the reference evaluator give the same answer for every condition and row."""
    condition = read(text)
    if condition is None:
        return
    compiled, reference = both(condition, data)
    assert compiled == reference, text


@given(expressions, rows, st.sets(st.sampled_from(NAMES)))
def test_blanking_inputs_never_makes_a_condition_true(text: str, data: list[dict[str, Any]], blank: set[str]) -> None:
    """Taking away what is known turns an answer into unknown or leaves it; it never changes it (Kleene)."""
    condition = read(text)
    if condition is None:
        return
    for row in data:
        before = condition.evaluate(row)
        after = condition.evaluate({k: v for k, v in row.items() if k not in blank})
        assert after is None or after == before, text
        assert condition.evaluate({}) is None, text


@given(
    st.one_of(
        st.text(max_size=60), expressions.map(lambda t: t[: len(t) * 2 // 3]), expressions.map(lambda t: t + "\0")
    )
)
def test_any_text_is_read_or_refused_clearly(text: str) -> None:
    """Odd text gives a ConditionError with column and sentence, never another exception."""
    try:
        parse(text)
    except ConditionError as error:
        assert 1 <= error.column <= len(text) + 1
        assert error.message


@given(
    expressions,
    st.dictionaries(names, st.one_of(st.binary(), st.lists(st.integers()), st.integers(), st.text(), st.floats())),
)
def test_odd_values_are_unknown_and_never_raise(text: str, values: dict[str, Any]) -> None:
    """Values of any type can be given to the reference evaluator."""
    condition = read(text)
    if condition is not None:
        assert condition.evaluate(values) in (True, False, None)
