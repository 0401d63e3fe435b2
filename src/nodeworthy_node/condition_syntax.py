"""Text → tree: reads a condition with `ast` and allows only the forms that conditions have."""

from __future__ import annotations

import ast
import math
import re
import warnings
from typing import Union

from nodeworthy_node.condition_tree import (
    FUNCTIONS,
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
    Within,
    type_of,
)

LONGEST = 4000  # characters; a longer condition cannot be reviewed by a person
DEEPEST = 60  # levels of nesting

_CLASS = re.compile(r"""('(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*")|\bclass(?=\s*\.)""")
_STAND_IN = "klass"  # `class` is a keyword; a stand-in of the same length keeps the columns right

_COMPARISONS = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!="}
_ARITHMETIC = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}


def syntax(text: str) -> ast.expr:
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


def build(node: ast.expr, names: set[str], depth: int) -> Expression:
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
        return Junction(operator, tuple(build(v, names, depth + 1) for v in node.values), column)
    if isinstance(node, ast.UnaryOp):
        return _unary(node, names, depth)
    if isinstance(node, ast.BinOp):
        symbol = _ARITHMETIC.get(type(node.op))
        if symbol is None:
            raise ConditionError(f"operator {type(node.op).__name__} is not allowed", column, "use + - * / or any_bits")
        return Arithmetic(symbol, build(node.left, names, depth + 1), build(node.right, names, depth + 1), column)
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


Dotted = Union[ast.Name, ast.Attribute]


def _name(node: Dotted) -> str:
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
        return Not(build(node.operand, names, depth + 1), column)
    if not isinstance(node.op, ast.USub):
        raise ConditionError(f"operator {type(node.op).__name__} is not allowed", column, "only unary minus and not")
    operand = build(node.operand, names, depth + 1)
    if isinstance(operand, Literal) and isinstance(operand.value, float):
        return Literal(-operand.value, column)
    return Negative(operand, column)


def _comparison(node: ast.Compare, names: set[str], depth: int) -> Expression:
    parts: list[Expression] = []
    left = build(node.left, names, depth + 1)
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
        right = build(right_node, names, depth + 1)
        parts.append(Compare(symbol, left, right, left.column))
        left = right
    return parts[0] if len(parts) == 1 else Junction("and", tuple(parts), parts[0].column)


def _values(node: ast.expr) -> tuple[Literal, ...]:
    column = node.col_offset + 1
    remedy = 'write a tuple, for example in (1, 2) or in ("a", "b")'
    if not isinstance(node, (ast.Tuple, ast.List)):
        raise ConditionError("in needs a tuple of literals on its right", column, remedy)
    nothing: set[str] = set()
    values = [build(element, nothing, 0) for element in node.elts]
    literals = tuple(v for v in values if isinstance(v, Literal))
    if not literals or len(literals) != len(values):
        raise ConditionError("in needs at least one value, and literals only", column, remedy)
    if len({type_of(v.value) for v in literals}) > 1:
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
    return Call(node.func.id, tuple(build(a, names, depth + 1) for a in node.args), column)
