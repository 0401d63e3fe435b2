"""Border cleaning: what a source printed → a value in the signal's unit and type, or null for unknown.

Every adapter that yields telemetry uses `clean`, so that NaN, infinity, blank values of a vendor, sentinels,
impossible values and wrong types become null in one place and in one way. Null means unknown, never 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import polars as pl

from nodeworthy.model.catalogue import Signal, SourceField
from nodeworthy.model.fact import DTYPES

# DCGM prints "blank" values where a field has none. dcgm_structs.h: DCGM_INT32_BLANK 0x7ffffff0, DCGM_INT64_BLANK
# 0x7ffffffffffffff0 and DCGM_FP64_BLANK 140737488355328.0 (2**47); the next few values above each say why (not found,
# not supported, no permission). Sixteen values are taken as blank above each base, and no more: byte and nanosecond
# counters do pass 2**47. 0x7ffffffffffffff0 and everything up to 2**63 is one float64.
BLANKS: Final[Mapping[str, tuple[tuple[float, float], ...]]] = {
    "dcgm": (
        (float(0x7FFFFFF0), float(0x7FFFFFFF)),
        (2.0**47, 2.0**47 + 15),
        (2.0**63, 2.0**63),
    )
}

# words that tools print for a switch; anything else is unknown
_WORDS: Final = {
    **dict.fromkeys(("1", "true", "yes", "on", "enabled", "active"), True),
    **dict.fromkeys(("0", "false", "no", "off", "disabled", "inactive"), False),
}


def clean(raw: pl.Expr, signal: Signal, field: SourceField, *, text: bool = False) -> pl.Expr:
    """The raw values of one field (Float64, or String with `text=True`) as values of the signal.

    `field` gives the scale and whose blank values to look for. Never raises on odd values.
    """
    if signal.type == "str":
        return _text(raw.cast(pl.String), signal)
    if signal.type == "bool":
        return _switch(raw, text)
    number = raw.str.strip_chars().cast(pl.Float64, strict=False) if text else raw.cast(pl.Float64, strict=False)
    good = number.is_finite()
    for low, high in BLANKS.get(field.source, ()):
        good &= ~number.is_between(low, high)
    sentinels = [float(s) for s in signal.sentinels if not isinstance(s, str)]
    if sentinels:
        good &= ~number.is_in(sentinels)
    value = pl.when(good).then(number * field.scale if field.scale != 1.0 else number)
    return _typed(_within(value, signal), signal)


def guard(column: pl.Series, signal: Signal) -> pl.Series:
    """A column that an adapter gave as clean, in the signal's type; what cannot be is null.

    The second line of defence: an adapter that forgets to clean must not make findings.
    """
    dtype = getattr(pl, DTYPES[signal.type])
    if column.dtype != dtype:
        column = _retype(column, signal)
    if dtype == pl.Float64 and not column.is_finite().all():
        column = pl.select(pl.when(column.is_finite()).then(column)).to_series().alias(column.name)
    if dtype.is_numeric():
        low, high = column.min(), column.max()
        if _outside(low, signal) or _outside(high, signal):
            column = pl.select(_within(pl.lit(column), signal)).to_series()
    return column


def _retype(column: pl.Series, signal: Signal) -> pl.Series:
    """A column of another type: numbers become numbers, switches become switches, all else is unknown."""
    name, nothing = column.name, pl.Series(column.name, [None] * len(column), dtype=getattr(pl, DTYPES[signal.type]))
    if signal.type == "str":
        return column.cast(pl.String) if column.dtype in (pl.Categorical, pl.Enum) else nothing
    if not column.dtype.is_numeric():
        return nothing
    number = pl.lit(column.cast(pl.Float64))
    expr = (
        _switch(number, text=False)
        if signal.type == "bool"
        else _typed(pl.when(number.is_finite()).then(number), signal)
    )
    return pl.select(expr).to_series().alias(name)


def _outside(value: object, signal: Signal) -> bool:
    if not isinstance(value, (int, float)):
        return False
    below = signal.minimum is not None and value < signal.minimum
    return below or (signal.maximum is not None and value > signal.maximum)


def _within(value: pl.Expr, signal: Signal) -> pl.Expr:
    if signal.minimum is None and signal.maximum is None:
        return value
    good = pl.lit(True)
    if signal.minimum is not None:
        good = good & (value >= signal.minimum)
    if signal.maximum is not None:
        good = good & (value <= signal.maximum)
    return pl.when(good).then(value)


def _typed(value: pl.Expr, signal: Signal) -> pl.Expr:
    if signal.type == "int":
        return pl.when(value == value.floor()).then(value).cast(pl.Int64, strict=False)
    return value


def _switch(raw: pl.Expr, text: bool) -> pl.Expr:
    if text:
        return raw.str.strip_chars().str.to_lowercase().replace_strict(_WORDS, default=None, return_dtype=pl.Boolean)
    return pl.when((raw == 0) | (raw == 1)).then(raw == 1)


def _text(raw: pl.Expr, signal: Signal) -> pl.Expr:
    bad = ["", "N/A", "[N/A]", "[Not Supported]", *(s for s in signal.sentinels if isinstance(s, str))]
    trimmed = raw.str.strip_chars()
    return pl.when(~trimmed.is_in(bad)).then(trimmed)
