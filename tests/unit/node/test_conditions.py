"""The condition language: what is allowed, what it means, and what is said when it is wrong."""

from __future__ import annotations

import math
from typing import Any

import pytest

from nodeworthy_node.conditions import ConditionError, parse


@pytest.mark.parametrize(
    ("text", "values", "answer"),
    [
        ("a > 90", {"a": 91}, True),
        ("a > 90", {"a": 90.0}, False),
        ("a > 90", {}, None),
        ("a > 90", {"a": None}, None),
        ("a > 90", {"a": math.nan}, None),
        ("a > 90", {"a": math.inf}, None),
        ("a > 90", {"a": "91"}, None),
        ("a > 90", {"a": True}, None),
        ("1 < a < 3", {"a": 2}, True),
        ("1 < a < b", {"a": 0}, False),  # one part decides, though b is unknown
        ("1 < a < b", {"a": 2}, None),
        ("a and b", {"a": False}, False),
        ("a and b", {"a": True}, None),
        ("a or b", {"a": True}, True),
        ("a or b", {"a": False}, None),
        ("not a", {}, None),
        ("not a", {"a": False}, True),
        ("a / b > 1", {"a": 1, "b": 0}, None),
        ("a * 1e308 > 1", {"a": 1e308}, None),
        ("a - b == 0.5", {"a": 1, "b": 0.5}, True),
        ("-a < 0", {"a": 3}, True),
        ("a in (1, 2)", {"a": 2}, True),
        ("a not in (1, 2)", {"a": 2}, False),
        ("a not in (1, 2)", {}, None),
        ('s in ("x", "y")', {"s": "y"}, True),
        ('s in ("x", "y")', {"s": 1}, None),
        ('s == "class.gpus"', {"s": "class.gpus"}, True),
        ("s == t", {"s": "x", "t": "x"}, True),
        ("s < t", {"s": "a", "t": "b"}, None),
        ("n < class.gpus", {"n": 7, "class.gpus": 8}, True),
        ("n < class.gpus", {"n": 7}, None),
        ("any_bits(m, 0x60)", {"m": 96}, True),
        ("any_bits(m, 0x60)", {"m": 1}, False),
        ("any_bits(m, 0x60)", {"m": 1.5}, None),
        ("any_bits(m, 0x60)", {"m": -1}, None),
        ("abs(a) > 1", {"a": -2}, True),
        ("min(a, b) == 1 and max(a, b) == 2", {"a": 1, "b": 2}, True),
        ("max(a, b) > 0", {"a": 1}, None),
        ("a == b", {"a": 2**53, "b": 2**53 + 1}, True),  # beyond 2**53 integers round, and may compare equal
        ("a == b", {"a": 2**53 - 1, "b": 2**53}, False),
        ("a == b", {"a": 10**400, "b": 1}, None),
    ],
)
def test_meaning(text: str, values: dict[str, Any], answer: bool | None) -> None:
    """Three-valued logic, float64 numbers, and unknown for whatever cannot be used."""
    assert parse(text).evaluate(values) is answer


@pytest.mark.parametrize(
    ("text", "column", "message", "remedy"),
    [
        ("", 1, "empty", "comparison"),
        ("a >", 4, "cannot be read", "conditions.md"),
        ("a > 1 and", 10, "cannot be read", "conditions.md"),
        ("a ** 2 > 1", 1, "Pow", "+ - * /"),
        ("a % 2 == 1", 1, "Mod", "+ - * /"),
        ("a if b else c", 1, "IfExp", "comparisons"),
        ("__import__('os')", 1, "not known", "abs"),
        ("a > len(b)", 5, "not known", "any_bits"),
        ("a.b > 1", 1, "dot", "class.NAME"),
        ("class.a.b > 1", 1, "dot", "class.NAME"),
        ("klass.a > 1", 1, "klass", "class.NAME"),
        ("a is None", 6, "is not allowed", "=="),
        ("a == None", 6, "not a value", "a number"),
        ("a in b", 6, "tuple", "in (1, 2)"),
        ("a in ()", 6, "at least one", "in (1, 2)"),
        ("a in (1, 'x')", 6, "different types", "numbers only"),
        ("1 < a in (1, 2)", 10, "chain", "and"),
        ("a + 1", 1, "number", "comparison"),
        ("a and 3", 7, "true-or-false", "comparison"),
        ("a > 'x'", 1, "no order", ""),
        ("'x' == 3 or a", 1, "compared", "one type"),
        ("abs(a, b) > 1", 1, "takes 1", "absolute"),
        ("abs > 1", 1, "not a signal", "call"),
        ("a > 1e999", 5, "too large", "1.8e308"),
        ("1 < 2", 1, "looks at nothing", "name a signal"),
        ("a > 1 or 1 < 2", 1, "always true", "remove"),
        ("a > 1 and 1 > 2", 1, "always false", "remove"),
        ("a > 1\nb", 1, "cannot be read", ""),
        ("a > 1" + " or a > 1" * 900, 4001, "longer", "split"),
        ("not " * 70 + "a", 1, "nested", "simplify"),
        ("a\0 > 1", 1, "cannot be read", ""),
    ],
)
def test_mistakes_are_said_with_column_and_remedy(text: str, column: int, message: str, remedy: str) -> None:
    """A wrong condition names the column, what is wrong and what to write instead."""
    with pytest.raises(ConditionError) as caught:
        parse(text)
    assert message in caught.value.message
    assert remedy in caught.value.remedy
    if message not in ("cannot be read", "nested", "no order"):
        assert caught.value.column == column


def test_names_are_the_inputs() -> None:
    """`names` lists signals and expectations once, sorted, and no function."""
    assert parse("abs(b) > class.x and b < a").names == ("a", "b", "class.x")


def test_types_that_never_fit_are_found_before_any_value() -> None:
    """With the types of the names known, a use that could only be unknown is an error."""
    condition = parse("s > 3 and any_bits(p, 1) or n")
    errors = condition.type_errors({"s": "string", "p": "boolean", "n": "number"})
    assert [e.column for e in errors] == [1, 20, 29]
    assert condition.type_errors({"s": "number", "p": "number", "n": "boolean"}) == []
