"""One order of names, everywhere."""

from __future__ import annotations

import ast
from pathlib import Path

from nodeworthy.model.order import natural

SOURCES = Path(__file__).parents[3] / "src" / "nodeworthy"


def test_names_in_the_order_people_expect() -> None:
    """Digits count as numbers; words come before numbers; leading zeros are no difference to the number."""
    names = ["n10", "n2", "login", "r2n1", "r10n1", "r2n03", "10", "a"]
    assert sorted(names, key=natural) == ["a", "login", "n2", "n10", "r2n1", "r2n03", "r10n1", "10"]


def test_what_two_places_need_is_defined_once() -> None:
    """The order of names, `-l` and the grammar of times have one definition each."""
    defined = [
        part.name
        for path in SOURCES.rglob("*.py")
        for part in ast.walk(ast.parse(path.read_text()))
        if isinstance(part, ast.FunctionDef)
    ]
    once = ("natural", "label_option", "printable", "parse_time", "parse_duration")
    assert {name: defined.count(name) for name in once} == dict.fromkeys(once, 1)
