"""Conditions as Polars expressions, with exactly the meaning of the reference evaluator.

Polars' comparisons, AND, OR and NOT are three-valued as Kleene's logic wants. What is not is handled here:
NaN compares as the largest number, division by zero gives infinity, integers wrap, horizontal minimum and
maximum skip nulls, and comparing a string with a number is an error. So every number becomes Float64 first,
every result that is not finite becomes null, and a use of the wrong type is a constant null. The type of a
column is known before any row is read, so wrong types cost nothing.

`finite=True` says that no input column holds NaN or infinity (as in cleaned frames) and saves a pass.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

from nodeworthy_node import conditions as c

Schema = Mapping[str, pl.DataType]

UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class _Typed:
    type: str  # number | string | boolean | unknown
    expr: pl.Expr


_NULL = _Typed(UNKNOWN, pl.lit(None, dtype=pl.Boolean))


def compile_condition(condition: c.Condition, schema: Schema, *, finite: bool = False) -> pl.Expr:
    """A Boolean expression over columns of `schema`: true, false, or null for unknown.

    A name that is not in the schema is unknown. Never raises: types that do not fit are unknown.
    """
    result = _compile(condition.root, schema, finite)
    return result.expr if result.type == c.BOOLEAN else _NULL.expr


def column_type(dtype: pl.DataType | None) -> str:
    """The type that a column has in conditions: number, string, boolean or unknown."""
    if dtype is None:
        return UNKNOWN
    if dtype.is_numeric():
        return c.NUMBER
    if dtype == pl.Boolean:
        return c.BOOLEAN
    return c.STRING if dtype in (pl.String, pl.Categorical, pl.Enum) else UNKNOWN


def _compile(node: c.Expression, schema: Schema, finite: bool) -> _Typed:
    if isinstance(node, c.Literal):
        return _Typed(_literal_type(node), pl.lit(node.value))
    if isinstance(node, c.Name):
        return _column(node.name, schema, finite)
    if isinstance(node, c.Junction):
        return _junction([_compile(o, schema, finite) for o in node.operands], node.operator)
    if isinstance(node, c.Not):
        inner = _compile(node.operand, schema, finite)
        return _Typed(c.BOOLEAN, ~inner.expr) if inner.type == c.BOOLEAN else _NULL
    if isinstance(node, c.Compare):
        return _compare(node.operator, _compile(node.left, schema, finite), _compile(node.right, schema, finite))
    if isinstance(node, c.Within):
        operand = _compile(node.operand, schema, finite)
        if operand.type != _literal_type(node.values[0]):
            return _NULL
        answers = [_compare("==", operand, _compile(v, schema, finite)) for v in node.values]
        return _junction(answers, "or")
    return _calculate(node, schema, finite)


def _literal_type(literal: c.Literal) -> str:
    if isinstance(literal.value, bool):
        return c.BOOLEAN
    return c.STRING if isinstance(literal.value, str) else c.NUMBER


def _column(name: str, schema: Schema, finite: bool) -> _Typed:
    dtype = schema.get(name)
    kind = column_type(dtype)
    column = pl.col(name)
    if dtype is None or kind == UNKNOWN:
        return _NULL
    if kind == c.STRING:
        return _Typed(kind, column.cast(pl.String) if dtype != pl.String else column)
    if kind == c.NUMBER:
        number = column if dtype == pl.Float64 else column.cast(pl.Float64)
        return _Typed(kind, _finite(number) if dtype.is_float() and not finite else number)
    return _Typed(kind, column)


def _finite(expr: pl.Expr) -> pl.Expr:
    return pl.when(expr.is_finite()).then(expr)


def _junction(operands: list[_Typed], operator: str) -> _Typed:
    exprs = [o.expr if o.type == c.BOOLEAN else _NULL.expr for o in operands]
    result = exprs[0]
    for expr in exprs[1:]:
        result = result & expr if operator == "and" else result | expr
    return _Typed(c.BOOLEAN, result)


def _compare(operator: str, left: _Typed, right: _Typed) -> _Typed:
    if UNKNOWN in (left.type, right.type) or left.type != right.type:
        return _Typed(c.BOOLEAN, _NULL.expr)
    a, b = left.expr, right.expr
    if operator == "==":
        return _Typed(c.BOOLEAN, a == b)
    if operator == "!=":
        return _Typed(c.BOOLEAN, a != b)
    if left.type != c.NUMBER:
        return _Typed(c.BOOLEAN, _NULL.expr)
    orders = {"<": pl.Expr.lt, "<=": pl.Expr.le, ">": pl.Expr.gt, ">=": pl.Expr.ge}
    return _Typed(c.BOOLEAN, orders[operator](a, b))


def _calculate(node: c.Arithmetic | c.Negative | c.Call, schema: Schema, finite: bool) -> _Typed:
    if isinstance(node, c.Arithmetic):
        operands = [_compile(node.left, schema, finite), _compile(node.right, schema, finite)]
    elif isinstance(node, c.Negative):
        operands = [_compile(node.operand, schema, finite)]
    else:
        operands = [_compile(a, schema, finite) for a in node.arguments]
    if any(o.type != c.NUMBER for o in operands):
        return _NULL
    exprs = [o.expr for o in operands]
    if isinstance(node, c.Arithmetic):
        operations = {"+": pl.Expr.add, "-": pl.Expr.sub, "*": pl.Expr.mul, "/": pl.Expr.truediv}
        return _Typed(c.NUMBER, _finite(operations[node.operator](exprs[0], exprs[1])))
    if isinstance(node, c.Negative):
        return _Typed(c.NUMBER, -exprs[0])
    return _call(node.function, exprs)


def _call(function: str, exprs: list[pl.Expr]) -> _Typed:
    if function == "abs":
        return _Typed(c.NUMBER, exprs[0].abs())
    if function == "any_bits":
        number, mask = (_whole(e) for e in exprs)
        return _Typed(c.BOOLEAN, (number & mask) != 0)
    result = exprs[0]
    for expr in exprs[1:]:  # null when either side is null, unlike the horizontal functions
        first = result <= expr if function == "min" else result >= expr
        result = pl.when(first).then(result).when(~first).then(expr)
    return _Typed(c.NUMBER, result)


def _whole(expr: pl.Expr) -> pl.Expr:
    """A whole number from 0 to 2**53 as Int64, else null."""
    return pl.when((expr >= 0) & (expr <= c.EXACT) & (expr == expr.floor())).then(expr).cast(pl.Int64, strict=False)
