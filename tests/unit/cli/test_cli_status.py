"""`nodeworthy status`: bad news first, and exit code 3 while somebody is needed."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from tests.unit.cli.conftest import Call
from tests.views_in_memory import MemoryViews


def test_bad_news_comes_first(call: Call) -> None:
    """The first line says what and when, the second begins what needs a person, with the command to type."""
    result = call("status")
    lines = result.stdout.splitlines()
    assert result.exit_code == 3
    assert lines[0] == "lab · as of 2s ago · 5 nodes / 40 GPUs · observe (writes nothing outside)"
    assert lines[1] == "NEEDS YOU"
    assert lines[2] == "  ✗ node n2: GPU 5 fell off the bus (Xid 79); it still takes work (3h20m)"
    assert lines[3].strip() == "nodeworthy node explain n2"


def test_well_is_said_and_is_exit_0(call: Call, views: MemoryViews) -> None:
    """With nothing to do the command says so and succeeds."""
    views.needs = ()
    result = call("status")
    assert result.exit_code == 0
    assert "Nothing needs you." in result.stdout


def test_source_that_is_late_is_shown_with_its_reason(call: Call) -> None:
    """A source that does not answer in full is shown as shape, word, age and reason."""
    assert "dcgm ▲ late 1m35s: n5:9400: connection refused" in call("status").stdout


def test_json_is_the_answer_with_a_schema(call: Call) -> None:
    """-o json prints the API's answer under a schema name."""
    document = json.loads(call("status", "-o", "json").stdout)
    assert document["schema"] == "nodeworthy.status/1"
    assert document["by_state"] == {"serving": 1, "suspect": 1, "out": 1, "failed": 1, "unknown": 1}


def test_before_the_first_turn_nothing_is_claimed(call: Call, views: MemoryViews) -> None:
    """Without a snapshot the age is not invented."""
    views.as_of = None
    assert "before the first turn" in call("status").stdout.splitlines()[0]


def test_fleet_that_nobody_told_of_is_unknown_and_not_empty(
    call: Call, views: MemoryViews, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No fleet file and no answer from a scheduler: the number of nodes is not known, it is not 0."""
    status = replace(views.status(), fleet="", nodes=None, gpus=None, by_state={})
    monkeypatch.setattr(views, "status", lambda: status)
    text = call("status").stdout
    assert text.startswith("undeclared fleet · as of 2s ago · ? nodes / ? GPUs")
    assert "? no fleet is declared, and no scheduler has told of one" in text
    assert "serving 0" not in text


def test_long_problem_of_a_source_is_cut(call: Call, views: MemoryViews, monkeypatch: pytest.MonkeyPatch) -> None:
    """The status stays readable when a source fails with a page of text."""
    source = replace(views.status().sources[1], problem="scontrol: error: " * 50)
    status = replace(views.status(), sources=(source,))
    monkeypatch.setattr(views, "status", lambda: status)
    assert max(map(len, call("status").stdout.splitlines())) < 120
