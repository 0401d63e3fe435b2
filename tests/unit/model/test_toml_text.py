"""Files that people write: whatever stands in them, a document or a BadFile with the line."""

from __future__ import annotations

import pytest

from nodeworthy.errors import BadFile
from nodeworthy.model.toml_text import KEY_PARTS, read_toml


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("a = 1\na = 2\n", 2, "Cannot overwrite"),
        ("a = [", 1, "Invalid value"),
        ("a = 1\nb = " + "9" * 5_000, None, "not TOML"),
        ("a = " + "[" * 100_000, None, "nested too deeply"),
        ("a = 1\nb" + ".b" * 100_000 + " = 1", 2, "a key of more than 200 parts"),
        ("[b" + ". b " * 100_000 + "]", 1, "a key of more than 200 parts"),
    ],
)
def test_what_is_no_toml_is_a_bad_file(text: str, line: int | None, said: str) -> None:
    """Also what `tomllib` answers with ValueError or RecursionError, or with minutes of work and gigabytes."""
    with pytest.raises(BadFile) as refused:
        read_toml(text, "x.toml")
    (problem,) = refused.value.problems
    assert problem.line == line
    assert said in problem.message


def test_dots_that_are_no_key_are_read() -> None:
    """A long ruler, a list of numbers and a sentence with many full stops are not refused."""
    numbers = ", ".join(["0.5"] * KEY_PARTS * 2)
    text = f"# {'.' * 1000}\na = [{numbers}]\nb = '{'Word. ' * (KEY_PARTS - 1)}'\n"
    assert len(read_toml(text, "x.toml")["a"]) == KEY_PARTS * 2
