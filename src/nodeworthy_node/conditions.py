"""The condition language of checks, and its reference evaluator.

A condition is one line in Python's expression syntax, for example

    pcie_link_width < class.pcie_width and gpu_utilisation > 20

It is read with `ast` and only these forms are allowed: comparisons (chained too), `and`, `or`, `not`,
`+ - * /`, unary minus, `in` / `not in` a tuple of literals, numbers, strings, True and False, names,
`class.NAME`, and the functions of `FUNCTIONS`.

Meaning. There are three values: true, false and unknown (None), joined as in Kleene's strong logic:
`and` is false as soon as one side is false, `or` is true as soon as one side is true, everything else with
an unknown side is unknown. A name is unknown when it is missing, None, or not finite (NaN, infinity). An
operation on the wrong type (a number compared with a string, a boolean used as a number), a division by
zero and an overflow are unknown, never an error. Strings and booleans can be compared for equality only.
So making an input unknown can only turn an answer into unknown: it never makes a condition true. A
condition that has an answer without looking at anything is refused when it is read.

Numbers. Every number is a float64. Integers are exact up to 2**53 (about 9e15); a larger integer is first
rounded to the nearest float64, so that two integers beyond 2**53 that round alike compare as equal.

`judge.compile` turns the same tree into a Polars expression; a property test holds the two together.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Optional, Union

from nodeworthy_node.condition_syntax import build, syntax
from nodeworthy_node.condition_tree import (
    ANY,
    BOOLEAN,
    FUNCTIONS,
    NUMBER,
    STRING,
    Arithmetic,
    Call,
    Compare,
    ConditionError,
    Expression,
    Junction,
    Literal,
    Name,
    Negative,
    Not,
    Value,
    Within,
    infer,
    operands,
    type_of,
    wanted_truth,
)

__all__ = [
    "ANY",
    "BOOLEAN",
    "EXACT",
    "FUNCTIONS",
    "NUMBER",
    "STRING",
    "Arithmetic",
    "Call",
    "Compare",
    "Condition",
    "ConditionError",
    "Expression",
    "Junction",
    "Literal",
    "Name",
    "Negative",
    "Not",
    "Within",
    "parse",
    "type_of",
]

EXACT = 2.0**53  # integers are exact in float64 up to here


@dataclass(frozen=True)
class Condition:
    """A condition that was read and found well formed. `names` are its inputs, `class.` ones included."""

    text: str
    root: Expression
    names: tuple[str, ...]

    def evaluate(self, values: Mapping[str, Any]) -> Optional[bool]:
        """True, false, or None for unknown. Never raises on odd values: what cannot be used is unknown."""
        answer = _evaluate(self.root, values)
        return answer if isinstance(answer, bool) else None

    def type_errors(self, types: Mapping[str, str]) -> list[ConditionError]:
        """What is wrong given the type of each name (number | string | boolean): uses that are always unknown."""
        errors: list[ConditionError] = []
        result = infer(self.root, types, errors)
        if result not in (BOOLEAN, ANY):
            errors.append(wanted_truth(self.root, result))
        return errors


def parse(text: str) -> Condition:
    """Read a condition. Raises ConditionError with column and remedy."""
    tree = syntax(text)
    names: set[str] = set()
    root = build(tree, names, 0)
    condition = Condition(text, root, tuple(sorted(names)))
    errors = condition.type_errors({})
    if errors:
        raise errors[0]
    if not names:
        raise ConditionError("looks at nothing", 1, "name a signal, for example gpu_temperature > 90")
    constant = condition.evaluate({})
    if constant is not None:
        raise ConditionError(
            f"is always {str(constant).lower()}, whatever is seen",
            1,
            "remove the part that does not depend on a signal",
        )
    return condition


def _number(value: Value) -> Optional[float]:
    """The value as a finite float64, or None when it is not a number."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def _input(value: object) -> Value:
    if isinstance(value, (bool, str)):
        return value
    return _number(value) if isinstance(value, (int, float)) else None


def _evaluate(node: Expression, values: Mapping[str, Any]) -> Value:
    if isinstance(node, Literal):
        return node.value
    if isinstance(node, Name):
        return _input(values.get(node.name))
    if isinstance(node, Junction):
        return _join(node, values)
    if isinstance(node, Not):
        inner = _evaluate(node.operand, values)
        return not inner if isinstance(inner, bool) else None
    if isinstance(node, Compare):
        return _compare(node.operator, _evaluate(node.left, values), _evaluate(node.right, values))
    if isinstance(node, Within):
        operand = _evaluate(node.operand, values)
        answers = [_compare("==", operand, literal.value) for literal in node.values]
        return None if None in answers else True in answers
    numbers = [_number(_evaluate(operand, values)) for operand in operands(node)]
    known = [n for n in numbers if n is not None]
    return _calculate(node, known) if len(known) == len(numbers) else None


def _join(node: Junction, values: Mapping[str, Any]) -> Optional[bool]:
    decisive = node.operator == "or"
    unknown = False
    for operand in node.operands:
        answer = _evaluate(operand, values)
        if answer is decisive:
            return decisive
        unknown = unknown or not isinstance(answer, bool)
    return None if unknown else not decisive


def _compare(operator: str, left: Value, right: Value) -> Optional[bool]:
    if left is None or right is None or type_of(left) != type_of(right):
        return None
    if operator == "==":
        return left == right
    if operator == "!=":
        return left != right
    a, b = _number(left), _number(right)
    if a is None or b is None:  # strings and booleans have no order
        return None
    orders: dict[str, bool] = {"<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b}
    return orders[operator]


def _calculate(node: Union[Arithmetic, Negative, Call], numbers: list[float]) -> Value:
    if isinstance(node, Negative):
        return -numbers[0]
    if isinstance(node, Call):
        if node.function == "any_bits":
            return _any_bits(numbers[0], numbers[1])
        return {"abs": lambda: abs(numbers[0]), "min": lambda: min(numbers), "max": lambda: max(numbers)}[
            node.function
        ]()
    a, b = numbers
    if node.operator == "/":
        return None if b == 0 else _number(a / b)
    return _number(a + b if node.operator == "+" else a - b if node.operator == "-" else a * b)


def _any_bits(number: float, mask: float) -> Optional[bool]:
    """Bits of whole numbers from 0 to 2**53; anything else has no bits and is unknown."""
    if not all(0 <= n <= EXACT and n == math.floor(n) for n in (number, mask)):
        return None
    return int(number) & int(mask) != 0
