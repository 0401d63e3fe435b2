"""The tree of a condition, its types, and the error that a wrong one gives. Both back ends walk this tree."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Union

NUMBER, STRING, BOOLEAN, ANY = "number", "string", "boolean", "any"

# name -> (least arguments, most arguments, result in words)
FUNCTIONS = {
    "abs": (1, 1, "the absolute value of a number"),
    "any_bits": (2, 2, "true when a whole number has any of the bits of a mask set"),
    "max": (1, 8, "the largest of its numbers"),
    "min": (1, 8, "the smallest of its numbers"),
}


class ConditionError(ValueError):
    """A condition that cannot be read: what is wrong, at which column (from 1), and what to write instead."""

    def __init__(self, message: str, column: int, remedy: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.column = column
        self.remedy = remedy

    def __str__(self) -> str:
        remedy = f" ({self.remedy})" if self.remedy else ""
        return f"column {self.column}: {self.message}{remedy}"


@dataclass(frozen=True)
class Literal:
    value: Union[float, str, bool]
    column: int


@dataclass(frozen=True)
class Name:
    name: str
    column: int


@dataclass(frozen=True)
class Arithmetic:
    operator: str  # + - * /
    left: Expression
    right: Expression
    column: int


@dataclass(frozen=True)
class Negative:
    operand: Expression
    column: int


@dataclass(frozen=True)
class Call:
    function: str
    arguments: tuple[Expression, ...]
    column: int


@dataclass(frozen=True)
class Compare:
    operator: str  # < <= > >= == !=
    left: Expression
    right: Expression
    column: int


@dataclass(frozen=True)
class Within:
    operand: Expression
    values: tuple[Literal, ...]
    column: int


@dataclass(frozen=True)
class Not:
    operand: Expression
    column: int


@dataclass(frozen=True)
class Junction:
    operator: str  # and | or
    operands: tuple[Expression, ...]
    column: int


Expression = Union[Literal, Name, Arithmetic, Negative, Call, Compare, Within, Not, Junction]
Value = Union[float, str, bool, None]


def type_of(value: object) -> str:
    if isinstance(value, bool):
        return BOOLEAN
    return STRING if isinstance(value, str) else NUMBER


def wanted_truth(node: Expression, found: str) -> ConditionError:
    return ConditionError(f"a true-or-false value is needed, this is a {found}", node.column, "write a comparison")


def _need(node: Expression, wanted: str, types: Mapping[str, str], errors: list[ConditionError]) -> None:
    found = infer(node, types, errors)
    if found in (wanted, ANY):
        return
    if wanted == BOOLEAN:
        errors.append(wanted_truth(node, found))
    else:
        errors.append(
            ConditionError(f"a {wanted} is needed, this is a {found}", node.column, "check the signal's type")
        )


def infer(node: Expression, types: Mapping[str, str], errors: list[ConditionError]) -> str:
    """The type of an expression; what can only ever be unknown is added to `errors`."""
    if isinstance(node, Literal):
        return type_of(node.value)
    if isinstance(node, Name):
        return types.get(node.name, ANY)
    if isinstance(node, (Not, Junction)):
        for operand in (node.operand,) if isinstance(node, Not) else node.operands:
            _need(operand, BOOLEAN, types, errors)
        return BOOLEAN
    if isinstance(node, Compare):
        left, right = infer(node.left, types, errors), infer(node.right, types, errors)
        _check_comparison(node, left, right, errors)
        return BOOLEAN
    if isinstance(node, Within):
        wanted = type_of(node.values[0].value)
        _need(node.operand, wanted, types, errors)
        return BOOLEAN
    for operand in operands(node):
        _need(operand, NUMBER, types, errors)
    return BOOLEAN if isinstance(node, Call) and node.function == "any_bits" else NUMBER


def operands(node: Union[Arithmetic, Negative, Call]) -> tuple[Expression, ...]:
    if isinstance(node, Arithmetic):
        return (node.left, node.right)
    return node.arguments if isinstance(node, Call) else (node.operand,)


def _check_comparison(node: Compare, left: str, right: str, errors: list[ConditionError]) -> None:
    kinds = {left, right} - {ANY}
    if len(kinds) > 1:
        errors.append(
            ConditionError(f"a {left} is compared with a {right}", node.column, "both sides must be of one type")
        )
    elif kinds and kinds != {NUMBER} and node.operator not in ("==", "!="):
        errors.append(ConditionError(f"a {kinds.pop()} has no order", node.column, "use == or != or in"))
