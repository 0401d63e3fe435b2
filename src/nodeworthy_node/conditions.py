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

import ast
import math
import re
import warnings
from dataclasses import dataclass
from typing import Any, Mapping, Union  # noqa: UP035  runs on Python 3.9

LONGEST = 4000  # characters; a longer condition cannot be reviewed by a person
DEEPEST = 60  # levels of nesting
EXACT = 2.0**53  # integers are exact in float64 up to here

NUMBER, STRING, BOOLEAN, ANY = "number", "string", "boolean", "any"

# name -> (least arguments, most arguments, result in words)
FUNCTIONS = {
    "abs": (1, 1, "the absolute value of a number"),
    "any_bits": (2, 2, "true when a whole number has any of the bits of a mask set"),
    "max": (2, 8, "the largest of its numbers"),
    "min": (2, 8, "the smallest of its numbers"),
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


# --- the tree: both back ends walk it ---------------------------------------------------------------


@dataclass(frozen=True)
class Literal:
    value: float | str | bool
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


@dataclass(frozen=True)
class Condition:
    """A condition that was read and found well formed. `names` are its inputs, `class.` ones included."""

    text: str
    root: Expression
    names: tuple[str, ...]

    def evaluate(self, values: Mapping[str, Any]) -> bool | None:
        """True, false, or None for unknown. Never raises on odd values: what cannot be used is unknown."""
        answer = _evaluate(self.root, values)
        return answer if isinstance(answer, bool) else None

    def type_errors(self, types: Mapping[str, str]) -> list[ConditionError]:
        """What is wrong given the type of each name (number | string | boolean): uses that are always unknown."""
        errors: list[ConditionError] = []
        result = _infer(self.root, types, errors)
        if result not in (BOOLEAN, ANY):
            errors.append(_wanted_truth(self.root, result))
        return errors


def parse(text: str) -> Condition:
    """Read a condition. Raises ConditionError with column and remedy."""
    tree = _syntax(text)
    names: set[str] = set()
    root = _build(tree, names, 0)
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


# --- reading ----------------------------------------------------------------------------------------

_CLASS = re.compile(r"""('(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*")|\bclass(?=\s*\.)""")
_STAND_IN = "klass"  # `class` is a keyword; a stand-in of the same length keeps the columns right

_COMPARISONS = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!="}
_ARITHMETIC = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}


def _syntax(text: str) -> ast.expr:
    if len(text) > LONGEST:
        raise ConditionError(f"is longer than {LONGEST} characters", LONGEST + 1, "split it into two checks")
    if not text.strip():
        raise ConditionError("is empty", 1, "write a comparison, for example gpu_temperature > 90")
    stood_in = re.search(r"\bklass\b", text)
    if stood_in:
        raise ConditionError("klass is not a name here", stood_in.start() + 1, "write class.NAME")
    source = _CLASS.sub(lambda match: match.group(1) or _STAND_IN, text)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(source.strip(), mode="eval").body
    except SyntaxError as error:
        indent = len(source) - len(source.lstrip())
        column = min(error.offset + indent if error.offset else len(text) + 1, len(text) + 1)
        raise ConditionError(
            f"cannot be read: {error.msg}", max(column, 1), "see docs/reference/conditions.md"
        ) from None
    except (ValueError, MemoryError, RecursionError) as error:
        raise ConditionError(f"cannot be read: {error}", 1, "see docs/reference/conditions.md") from None


def _build(node: ast.expr, names: set[str], depth: int) -> Expression:
    column = node.col_offset + 1
    if depth > DEEPEST:
        raise ConditionError(f"is nested more than {DEEPEST} levels deep", column, "simplify it")
    if isinstance(node, ast.Constant):
        return _literal(node)
    if isinstance(node, (ast.Name, ast.Attribute)):
        name = _name(node)
        names.add(name)
        return Name(name, column)
    if isinstance(node, ast.BoolOp):
        operator = "and" if isinstance(node.op, ast.And) else "or"
        return Junction(operator, tuple(_build(v, names, depth + 1) for v in node.values), column)
    if isinstance(node, ast.UnaryOp):
        return _unary(node, names, depth)
    if isinstance(node, ast.BinOp):
        symbol = _ARITHMETIC.get(type(node.op))
        if symbol is None:
            raise ConditionError(f"operator {type(node.op).__name__} is not allowed", column, "use + - * / or any_bits")
        return Arithmetic(symbol, _build(node.left, names, depth + 1), _build(node.right, names, depth + 1), column)
    if isinstance(node, ast.Compare):
        return _comparison(node, names, depth)
    if isinstance(node, ast.Call):
        return _call(node, names, depth)
    raise ConditionError(
        f"{type(node).__name__} is not allowed",
        column,
        "use comparisons, and/or/not, + - * /, in, and the named functions",
    )


def _literal(node: ast.Constant) -> Literal:
    value, column = node.value, node.col_offset + 1
    if isinstance(value, (bool, str)):
        if isinstance(value, str) and any(0xD800 <= ord(c) <= 0xDFFF for c in value):
            raise ConditionError("a string holds half a surrogate pair", column, "write the character itself")
        return Literal(value, column)
    if isinstance(value, (int, float)):
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if not math.isfinite(number):
            raise ConditionError("this number is too large for float64", column, "the largest is about 1.8e308")
        return Literal(number, column)
    raise ConditionError(f"{value!r} is not a value here", column, "use a number, a string, True or False")


def _name(node: ast.Name | ast.Attribute) -> str:
    column = node.col_offset + 1
    if isinstance(node, ast.Name):
        if node.id == _STAND_IN or node.id in FUNCTIONS:
            raise ConditionError(f"{node.id} is not a signal", column, "write class.NAME or call the function")
        return node.id
    if isinstance(node.value, ast.Name) and node.value.id == _STAND_IN:
        return "class." + node.attr
    raise ConditionError("only class.NAME may have a dot", column, "name a signal, or class.NAME for an expectation")


def _unary(node: ast.UnaryOp, names: set[str], depth: int) -> Expression:
    column = node.col_offset + 1
    if isinstance(node.op, ast.Not):
        return Not(_build(node.operand, names, depth + 1), column)
    if not isinstance(node.op, ast.USub):
        raise ConditionError(f"operator {type(node.op).__name__} is not allowed", column, "only unary minus and not")
    operand = _build(node.operand, names, depth + 1)
    if isinstance(operand, Literal) and isinstance(operand.value, float):
        return Literal(-operand.value, column)
    return Negative(operand, column)


def _comparison(node: ast.Compare, names: set[str], depth: int) -> Expression:
    parts: list[Expression] = []
    left = _build(node.left, names, depth + 1)
    for operator, right_node in zip(node.ops, node.comparators):
        column = right_node.col_offset + 1
        if isinstance(operator, (ast.In, ast.NotIn)):
            if len(node.ops) > 1:
                raise ConditionError("in cannot be part of a chain", column, "join two comparisons with and")
            inside = Within(left, _values(right_node), left.column)
            return inside if isinstance(operator, ast.In) else Not(inside, left.column)
        symbol = _COMPARISONS.get(type(operator))
        if symbol is None:
            raise ConditionError("is / is not is not allowed", column, "use == or !=")
        right = _build(right_node, names, depth + 1)
        parts.append(Compare(symbol, left, right, left.column))
        left = right
    return parts[0] if len(parts) == 1 else Junction("and", tuple(parts), parts[0].column)


def _values(node: ast.expr) -> tuple[Literal, ...]:
    column = node.col_offset + 1
    remedy = 'write a tuple, for example in (1, 2) or in ("a", "b")'
    if not isinstance(node, (ast.Tuple, ast.List)):
        raise ConditionError("in needs a tuple of literals on its right", column, remedy)
    nothing: set[str] = set()
    values = [_build(element, nothing, 0) for element in node.elts]
    literals = tuple(v for v in values if isinstance(v, Literal))
    if not literals or len(literals) != len(values):
        raise ConditionError("in needs at least one value, and literals only", column, remedy)
    if len({_type_of(v.value) for v in literals}) > 1:
        raise ConditionError("the values of in are of different types", column, "use numbers only or strings only")
    return literals


def _call(node: ast.Call, names: set[str], depth: int) -> Expression:
    column = node.col_offset + 1
    known = ", ".join(sorted(FUNCTIONS))
    if not isinstance(node.func, ast.Name) or node.func.id not in FUNCTIONS:
        raise ConditionError("this function is not known", column, f"the functions are {known}")
    least, most, _ = FUNCTIONS[node.func.id]
    if node.keywords or not least <= len(node.args) <= most:
        count = str(least) if least == most else f"{least} to {most}"
        raise ConditionError(f"{node.func.id} takes {count} plain arguments", column, FUNCTIONS[node.func.id][2])
    return Call(node.func.id, tuple(_build(a, names, depth + 1) for a in node.args), column)


# --- types ------------------------------------------------------------------------------------------


def _type_of(value: object) -> str:
    if isinstance(value, bool):
        return BOOLEAN
    return STRING if isinstance(value, str) else NUMBER


def _wanted_truth(node: Expression, found: str) -> ConditionError:
    return ConditionError(f"a true-or-false value is needed, this is a {found}", node.column, "write a comparison")


def _need(node: Expression, wanted: str, types: Mapping[str, str], errors: list[ConditionError]) -> None:
    found = _infer(node, types, errors)
    if found in (wanted, ANY):
        return
    if wanted == BOOLEAN:
        errors.append(_wanted_truth(node, found))
    else:
        errors.append(
            ConditionError(f"a {wanted} is needed, this is a {found}", node.column, "check the signal's type")
        )


def _infer(node: Expression, types: Mapping[str, str], errors: list[ConditionError]) -> str:
    """The type of an expression; what can only ever be unknown is added to `errors`."""
    if isinstance(node, Literal):
        return _type_of(node.value)
    if isinstance(node, Name):
        return types.get(node.name, ANY)
    if isinstance(node, (Not, Junction)):
        for operand in (node.operand,) if isinstance(node, Not) else node.operands:
            _need(operand, BOOLEAN, types, errors)
        return BOOLEAN
    if isinstance(node, Compare):
        left, right = _infer(node.left, types, errors), _infer(node.right, types, errors)
        _check_comparison(node, left, right, errors)
        return BOOLEAN
    if isinstance(node, Within):
        wanted = _type_of(node.values[0].value)
        _need(node.operand, wanted, types, errors)
        return BOOLEAN
    for operand in _operands(node):
        _need(operand, NUMBER, types, errors)
    return BOOLEAN if isinstance(node, Call) and node.function == "any_bits" else NUMBER


def _operands(node: Arithmetic | Negative | Call) -> tuple[Expression, ...]:
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


# --- evaluating -------------------------------------------------------------------------------------


def _number(value: Value) -> float | None:
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
    numbers = [_number(_evaluate(operand, values)) for operand in _operands(node)]
    known = [n for n in numbers if n is not None]
    return _calculate(node, known) if len(known) == len(numbers) else None


def _join(node: Junction, values: Mapping[str, Any]) -> bool | None:
    decisive = node.operator == "or"
    unknown = False
    for operand in node.operands:
        answer = _evaluate(operand, values)
        if answer is decisive:
            return decisive
        unknown = unknown or not isinstance(answer, bool)
    return None if unknown else not decisive


def _compare(operator: str, left: Value, right: Value) -> bool | None:
    if left is None or right is None or _type_of(left) != _type_of(right):
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


def _calculate(node: Arithmetic | Negative | Call, numbers: list[float]) -> Value:
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


def _any_bits(number: float, mask: float) -> bool | None:
    """Bits of whole numbers from 0 to 2**53; anything else has no bits and is unknown."""
    if not all(0 <= n <= EXACT and n == math.floor(n) for n in (number, mask)):
        return None
    return int(number) & int(mask) != 0
