"""The reference pages are what the program says of itself now, and nothing is missing from them."""

from __future__ import annotations

import re

import pytest

from docs.generate import PAGES, REFERENCE, openapi
from docs.tree import leaves
from nodeworthy import errors
from nodeworthy.adapters.files.catalogue import load
from nodeworthy.cli.main import COMMANDS
from nodeworthy.service.metrics import METRICS
from nodeworthy.wiring.reference import settings_rows


@pytest.mark.parametrize("name", sorted(PAGES))
def test_page_is_current(name: str) -> None:
    """A page that is not what `make docs` would write is wrong."""
    assert (REFERENCE / name).read_text(encoding="utf-8") == PAGES[name](), f"run `make docs` ({name} is not current)"


def test_every_command_is_listed() -> None:
    """Each command of the tree has its section, and each noun of `--help` leads to one."""
    page = (REFERENCE / "cli.md").read_text(encoding="utf-8")
    sections = set(re.findall(r"^## `nodeworthy (.+)`$", page, flags=re.MULTILINE))
    assert sections == {" ".join(leaf.path) for leaf in leaves()}
    assert {section.split()[0] for section in sections} == set(COMMANDS)


def test_every_setting_is_listed() -> None:
    """Each setting stands in its page with what it is for."""
    page = (REFERENCE / "settings.md").read_text(encoding="utf-8")
    for row in settings_rows():
        assert f"| `{row['setting']}` |" in page
        assert row["description"].strip(), row["setting"]


def test_every_endpoint_is_listed_and_explained() -> None:
    """Each route has a summary, a description, explained parameters, and its section."""
    page = (REFERENCE / "api.md").read_text(encoding="utf-8")
    for path, operations in openapi()["paths"].items():
        for method, operation in operations.items():
            assert f"## `{method.upper()} {path}`" in page
            assert operation["summary"] and operation.get("description"), path
            for parameter in operation.get("parameters", []):
                assert parameter.get("description"), f"{path}: {parameter['name']}"


def test_every_metric_is_listed() -> None:
    """Each metric stands in its page."""
    page = (REFERENCE / "metrics.md").read_text(encoding="utf-8")
    assert [m.name for m in METRICS if f"| `{m.name}` |" not in page] == []


def test_every_check_and_signal_is_listed_with_its_source() -> None:
    """Each check of the built-in catalogue has its section, and says what it means and where it is from."""
    page = (REFERENCE / "checks.md").read_text(encoding="utf-8")
    catalogue = load()
    assert len(catalogue.checks) >= 40
    for check in catalogue.checks.values():
        assert f"\n### {check.id}\n" in page
        assert check.title and check.source, check.id
    signals = (REFERENCE / "signals.md").read_text(encoding="utf-8")
    assert [s.id for s in catalogue.signals.values() if f"\n### {s.id}\n" not in signals] == []


def test_every_error_is_listed_and_codes_are_unique() -> None:
    """Each class of the tree has its own code, and the page has it."""
    page = (REFERENCE / "errors.md").read_text(encoding="utf-8")
    kinds = [k for k in vars(errors).values() if isinstance(k, type) and issubclass(k, errors.NodeworthyError)]
    codes = [k.code for k in kinds]
    assert len(set(codes)) == len(codes) > 8
    assert all(f"| `{code}` |" in page for code in codes)


def test_openapi_answers_are_described_with_their_errors() -> None:
    """Each operation says that errors are problem documents, and no default error schema is left."""
    document = openapi()
    for path, operations in document["paths"].items():
        for operation in operations.values():
            assert {"4XX", "5XX"} <= set(operation["responses"]), path
            assert "422" not in operation["responses"], path
    assert "ProblemDocument" in document["components"]["schemas"]
    assert "HTTPValidationError" not in document["components"]["schemas"]
    references = set(re.findall(r'"#/components/schemas/([^"]+)"', str(document).replace("'", '"')))
    assert references <= set(document["components"]["schemas"])


def test_only_reads_are_offered() -> None:
    """Observe mode: every operation of the API is a GET."""
    assert {method for operations in openapi()["paths"].values() for method in operations} == {"get"}


@pytest.mark.parametrize("word", ["hold", "finding", "incident", "node set", "unknown", "would", "turn", "ledger"])
def test_glossary_has_the_words_of_the_design(word: str) -> None:
    """The words that the commands use are explained."""
    assert f"**{word}" in (REFERENCE / "glossary.md").read_text(encoding="utf-8")
