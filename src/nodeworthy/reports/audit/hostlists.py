"""Folded node lists to nodes, by the column.

Accounting names the nodes of a job as `gpu[00001-00004,00007]`. A fleet's history holds hundreds of thousands of
different lists, so the common form (one name, or one prefix with one bracket) is unfolded by Polars, and only
the rest (several dimensions, several groups, suffixes) goes to ClusterShell, each distinct list once.
"""

from __future__ import annotations

import re

import polars as pl

from nodeworthy.errors import BadRequest
from nodeworthy.model.nodeset import unfold

NAME = r"^[A-Za-z0-9._:\-]+$"
ONE_BRACKET = r"^([A-Za-z0-9._:\-]*)\[([0-9,\-]+)\]$"
LARGEST = 1_000_000
"""No job has more nodes; a list that claims to is damaged, and unfolding it would take the memory of the machine."""
EXPANDED = {"nodelist": pl.String, "node": pl.String}


def expand(nodelists: pl.Series) -> pl.DataFrame:
    """Frame `nodelist`, `node` with a row for every node of every distinct list. Lists that cannot be read
    (`None assigned`, broken brackets) have no rows."""
    distinct = pl.DataFrame({"nodelist": nodelists.cast(pl.String).drop_nulls().unique()})
    distinct = distinct.filter(
        (pl.col("nodelist") != "") & ~pl.col("nodelist").is_in(["None assigned", "(null)", "None"])
    )
    plain = distinct.filter(pl.col("nodelist").str.contains(NAME))
    one = pl.col("nodelist").str.contains(ONE_BRACKET)
    bracket = distinct.filter(one)
    rest = distinct.filter(~one & pl.col("nodelist").str.contains(r"[\[\],]"))
    return pl.concat(
        [plain.select("nodelist", pl.col("nodelist").alias("node")), _one_bracket(bracket), _by_clustershell(rest)]
    )


def _one_bracket(lists: pl.DataFrame) -> pl.DataFrame:
    """`prefix[a-b,c]`: numbers keep the width of the first number of their range, as Slurm writes them."""
    ranges = (
        lists.select(
            "nodelist",
            pl.col("nodelist").str.extract(ONE_BRACKET, 1).alias("prefix"),
            pl.col("nodelist").str.extract(ONE_BRACKET, 2).str.split(",").alias("range"),
        )
        .explode("range")
        .filter(pl.col("range").str.contains(r"^\d{1,9}(-\d{1,9})?$"))
        .with_columns(pl.col("range").str.extract(r"^(\d+)", 1).alias("low"))
        .with_columns(
            pl.col("low").str.len_chars().alias("digits"),
            pl.col("low").cast(pl.Int64).alias("first"),
            pl.coalesce(pl.col("range").str.extract(r"-(\d+)$", 1), pl.col("low")).cast(pl.Int64).alias("last"),
        )
    )
    ranges = ranges.filter((pl.col("last") >= pl.col("first")) & (pl.col("last") - pl.col("first") < LARGEST))
    return (
        ranges.with_columns(pl.int_ranges("first", pl.col("last") + 1).alias("number"))
        .explode("number")
        .select(
            "nodelist",
            (pl.col("prefix") + _padded(pl.col("number"), pl.col("digits"))).alias("node"),
        )
    )


def _padded(number: pl.Expr, digits: pl.Expr) -> pl.Expr:
    text = number.cast(pl.String)
    missing = (digits.cast(pl.Int64) - text.str.len_chars().cast(pl.Int64)).clip(0)
    return pl.lit("0").repeat_by(missing).list.join("") + text


def _by_clustershell(lists: pl.DataFrame) -> pl.DataFrame:
    pairs: list[tuple[str, str]] = []
    for text in lists["nodelist"]:
        if _size(text) > LARGEST:
            continue
        try:
            pairs.extend((text, node) for node in unfold(text))
        except BadRequest:
            continue
    return pl.DataFrame(pairs, schema=EXPANDED, orient="row")


def _size(text: str) -> int:
    """At least as many nodes as the list can hold, from its ranges alone."""
    product = 1
    for inside in re.findall(r"\[([^\]]*)\]?", text):
        ranges = re.findall(r"([0-9]{1,12})-([0-9]{1,12})", inside)
        product *= inside.count(",") + 1 + sum(max(0, int(last) - int(first)) for first, last in ranges)
    return product
