"""The reference page of the fleet file says what the program does."""

from __future__ import annotations

import re
import tomllib
from importlib import resources
from pathlib import Path

from nodeworthy.adapters.files.fleet import parse_fleet
from nodeworthy.adapters.files.fleet_csv import COLUMNS, DOMAINS
from nodeworthy.adapters.files.fleet_schema import CLASS, EXPECT, SECTIONS

DOCS = Path(__file__).resolve().parents[3] / "docs"
PAGE = (DOCS / "reference" / "fleet-file.md").read_text()


def rows(heading: str) -> dict[str, str]:
    """Key → the rest of its row, in the table under a heading."""
    section = re.split(r"^## ", PAGE, flags=re.MULTILINE)
    (text,) = [part for part in section if part.splitlines()[0].strip("`").lower() == heading.lower()]
    return dict(re.findall(r"^\| `([^`]+)` \| (.*) \|$", text, flags=re.MULTILINE))


def test_every_key_is_documented() -> None:
    """Each section's table has exactly the keys of the schema, with their words, and says which are required."""
    for where, keys in SECTIONS.items():
        found = rows(where)
        assert set(found) == {key.name for key in keys}, where
        for key in keys:
            assert key.help in found[key.name], (where, key.name)
            assert ("required" in found[key.name]) == key.required, (where, key.name)


def test_expectations_are_those_of_the_catalogue() -> None:
    """What a class may be expected to have is what checks ask for, under the same name and of the same type."""
    types = {"str": (str,), "int": (int,), "bool": (bool,), "float": (int, float)}
    text = (resources.files("nodeworthy") / "catalogue" / "expectations.toml").read_text()
    attributes = {key.name for key in CLASS} | {"name"}
    asked = {e["id"]: types[e["type"]] for e in tomllib.loads(text)["expectation"] if e["id"] not in attributes}
    assert {key.name: key.types for key in EXPECT} == asked


def test_every_csv_column_is_documented() -> None:
    """Each column and each header that means it is on the page."""
    found = rows("Columns of a CSV file")
    assert set(found) == set(COLUMNS)
    for column, headers in COLUMNS.items():
        assert set(re.findall(r"`([^`]+)`", found[column])) == set(headers)
    assert all(f"`{kind}`" in PAGE for kind in DOMAINS)


def test_the_example_is_well() -> None:
    """The file on the page can be read, and means what the page says."""
    (example,) = re.findall(r"```toml\n(.*?)```", PAGE, flags=re.DOTALL)
    fleet = parse_fleet(example)
    assert len(fleet.nodes) == 10_000
    assert fleet.nodes["gpu10000"].domains == {"rack": "r313", "feed": "B"}
    assert len(fleet.domain("rack", "r313")) == 16
    assert fleet.nodes["gpu00007"].serial == "J100DX1"


def test_the_how_to_names_every_command() -> None:
    """Each verb of `nodeworthy fleet` is in the how-to."""
    page = (DOCS / "how-to" / "fleet.md").read_text()
    for verb in ("import slurm", "import csv", "check", "diff slurm", "diff csv", "show", "nodes", "fold", "unfold"):
        assert f"nodeworthy fleet {verb}" in page, verb
