"""`nodeworthy status`: bad news first, and exit code 3 while somebody is needed."""

from __future__ import annotations

import json

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
