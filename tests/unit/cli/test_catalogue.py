"""`nodeworthy catalogue`: lists, shows and checks, and the reference pages that are made from it."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from nodeworthy.adapters.files.catalogue import load
from nodeworthy.commands.catalogue import catalogue
from nodeworthy.errors import BadRequest, NotKnown

ROOT = Path(__file__).parents[3]


def run(*words: str, code: int = 0) -> str:
    result = CliRunner().invoke(catalogue, list(words), catch_exceptions=False)
    assert result.exit_code == code, result.output
    return result.stdout


def test_lists_can_be_narrowed() -> None:
    """Kind, severity and effect choose; the JSON carries schema, revision and the whole check."""
    document = json.loads(
        run("list", "checks", "--kind", "gpu", "--severity", "error", "--effect", "no-new-work", "-o", "json")
    )
    assert document["schema"] == "nodeworthy.catalogue-checks/1"
    assert document["revision"] == load().revision
    assert {"gpu-row-remap-failed", "xid-95"} <= {i["id"] for i in document["items"]}
    assert {(i["kind"], i["severity"], i["effect"]) for i in document["items"]} == {("gpu", "error", "no-new-work")}


@pytest.mark.parametrize("what", ["checks", "signals", "features", "expectations"])
def test_each_list_prints_in_each_form(what: str) -> None:
    """Table and names for people and scripts, as many lines as there are entries."""
    names = run("list", what, "-o", "name").split()
    assert names == list(getattr(load(), what))
    assert len(run("list", what).splitlines()) == len(names) + 1


def test_signals_of_a_source() -> None:
    """Only what the source gives."""
    names = run("list", "signals", "--source", "slurm", "-o", "name").split()
    assert names == ["scheduler_gpus", "scheduler_memory"]


def test_show_says_condition_help_and_source() -> None:
    """One entry of any sort, in text and JSON."""
    text = run("show", "pcie-speed-low")
    assert "class.pcie_gen" in text
    assert "idle" in text
    assert json.loads(run("show", "gpu_temperature", "-o", "json"))["unit"] == "celsius"
    assert json.loads(run("show", "xid-79", "-o", "json"))["event"]["codes"] == ["79"]


def test_show_of_something_unknown_suggests() -> None:
    """A typing mistake gets the nearest names."""
    with pytest.raises(NotKnown) as caught:
        run("show", "gpu-hott")
    assert "gpu-hot" in caught.value.hint


def test_check_is_fine_or_says_what_is_wrong(tmp_path: Path) -> None:
    """Exit 0 for a good layer, 3 with file, line and remedy for a bad one."""
    good = json.loads(run("show", "gpu-hot", "-o", "json"))
    text = "[[check]]\n" + "".join(
        f"{k} = {json.dumps(good[k])}\n"
        for k in ("id", "version", "title", "kind", "condition", "action", "clears", "help", "source")
    )
    layer = tmp_path / "ours.toml"
    layer.write_text(text)
    assert json.loads(run("check", str(layer), "-o", "json")) == {
        "schema": "nodeworthy.catalogue-problems/1",
        "well": True,
        "checks": ["gpu-hot"],
        "items": [],
    }
    layer.write_text(text.replace("gpu_temperature >", "gpu_temprature >"))
    (problem,) = json.loads(run("check", str(layer), "-o", "json", code=3))["items"]
    assert problem["file"] == str(layer)
    assert problem["line"] == 6
    assert problem["field"] == "gpu-hot.condition"
    assert problem["remedy"]
    assert "gpu_temprature" in run("check", str(layer), code=3)


def test_check_of_a_missing_path_is_a_usage_error(tmp_path: Path) -> None:
    """A path that is not there is not a fine catalogue."""
    with pytest.raises(BadRequest):
        run("check", str(tmp_path / "no.toml"))


def test_the_reference_pages_are_up_to_date() -> None:
    """docs/reference/checks.md and signals.md are what the generator writes now, with every check and signal."""
    spec = importlib.util.spec_from_file_location("generate_catalogue", ROOT / "docs" / "generate_catalogue.py")
    assert spec is not None
    assert spec.loader is not None
    generator = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(generator)
    for name, text in generator.pages(load()).items():
        written = (ROOT / "docs" / "reference" / name).read_text(encoding="utf-8")
        assert written == text, f"run: PYTHONPATH=src python -m docs.generate ({name})"
        for entry in load().checks if name == "checks.md" else load().signals:
            assert f"### {entry}\n" in written
