"""The reading commands: what people see, what machines get, exit codes."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import click
import pytest

from nodeworthy.cli import watch as watch_module
from nodeworthy.cli import words
from nodeworthy.cli.select import complete_nodes
from nodeworthy.errors import BadRequest, NodeworthyError
from nodeworthy.model.order import natural
from nodeworthy.model.status import NodeState
from tests.unit.cli.conftest import Call
from tests.views_in_memory import XID, CheckState, CheckView, MemoryViews, node


def test_nodes_that_are_not_well_come_first(call: Call) -> None:
    """failed, suspect, unknown, out, serving; each with shape and word."""
    result = call("node", "list")
    rows = [line.split()[:3] for line in result.stdout.splitlines()[1:]]
    assert rows == [
        ["n4", "✗", "failed"],
        ["n2", "▲", "suspect"],
        ["n5", "?", "unknown"],
        ["n3", "◐", "out"],
        ["n1", "●", "serving"],
    ]
    assert result.exit_code == 0


def test_unknown_gpus_are_a_question_mark(call: Call) -> None:
    """GPUs that are not seen are `?` of those declared, not 0."""
    (line,) = [row for row in call("node", "list").stdout.splitlines() if row.startswith("n5")]
    assert "?/8" in line


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["n[1-3]", "-o", "name"], ["n2", "n3", "n1"]),
        (["n1", "n4", "-o", "name"], ["n4", "n1"]),
        (["-l", "rack=r2", "-o", "name"], ["n5"]),
        (["--state", "out", "--state", "failed", "-o", "nodeset"], ["n[3-4]"]),
    ],
)
def test_nodes_are_selected_by_set_label_and_state(call: Call, arguments: list[str], expected: list[str]) -> None:
    """Node sets as arguments, -l and --state restrict the list."""
    assert call("node", "list", *arguments).stdout.splitlines() == expected


def test_a_name_nobody_knows_is_told_and_is_exit_1(call: Call) -> None:
    """The known part is printed; the unknown names go to stderr, folded."""
    result = call("node", "list", "n1,x[1-3]", "-o", "name")
    assert result.stdout == "n1\n"
    assert "x[1-3]" in result.stderr
    assert result.exit_code == 1


def test_names_sort_as_people_count(call: Call, views: MemoryViews) -> None:
    """n2 comes before n10."""
    views.nodes_ = tuple(node(f"n{k}", NodeState.SERVING, "IDLE") for k in (10, 2, 1))
    assert call("node", "list", "-o", "name").stdout.split() == ["n1", "n2", "n10"]
    assert sorted(["a10b2", "a10b10", "a2"], key=natural) == ["a2", "a10b2", "a10b10"]


def test_json_list_has_schema_items_and_sources(call: Call) -> None:
    """Machines get what the API said, whole, under a schema name."""
    document = json.loads(call("node", "list", "--json").stdout)
    assert document["schema"] == "nodeworthy.node-list/1"
    assert document["total"] == 5
    assert len(document["items"]) == 5
    assert document["sources"][1]["state"] == "late"
    assert document["items"][2]["gpus_seen"] is None


def test_csv_has_the_same_columns_in_every_row(call: Call) -> None:
    """CSV is rectangular, and unknown is an empty cell."""
    lines = call("node", "list", "n[1-2]", "-o", "csv").stdout.splitlines()
    assert lines[0].startswith("name,state,since")
    assert len(lines) == 3


@pytest.mark.parametrize(("name", "code"), [("n1", 0), ("n2", 3), ("n3", 3), ("n5", 3)])
def test_show_exits_3_when_the_node_is_not_well(call: Call, name: str, code: int) -> None:
    """Scripts can ask `node show` whether a node is well; explain always succeeds."""
    assert call("node", "show", name).exit_code == code
    assert call("node", "explain", name).exit_code == 0


EXPLAINED = """\
▲ n2 is SUSPECT since 13:06 UTC (3h20m): GPU 5 fell off the bus (Xid 79)
  It still takes new work. As of 2s ago.
  scheduler   MIXED in lab (gpu), seen 4s ago
  owner       nobody holds it; nodeworthy would
  because     GPU 5 fell off the bus: Xid 79 in the kernel log of this boot speaks for itself
  evidence    Xid 79 in the kernel log (kernel log, 3h20m ago):
                NVRM: Xid (PCI:0000:9b:00): 79, GPU has fallen off the bus.
              GPUs seen: 7 of 8 (dcgm, 9s ago)
  not         heat: GPU 5 was at 61 °C when last seen, the limit of its class is 87 °C
  jobs        88213 llama-70b (alice, RUNNING) on n[1-2], 16 GPUs, time limit in 40m
  would       hold n2/gpu5 (no-new-work) since 13:06 UTC: GPU 5 fell off the bus (Xid 79)
  clears      a reboot after which 8 of 8 GPUs are seen, and the proof gpu-basic
  next        nobody holds it, work still lands there: drain it by hand (we only observe)
  seen by     slurm ● ok 4s · dcgm ▲ late 1m35s: n5:9400: connection refused · kernel log ● ok 1s
"""


def test_explain_reads_as_in_the_documentation(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """The whole explanation, word for word: it is what somebody reads at three in the morning."""
    monkeypatch.setenv("COLUMNS", "100")
    assert call("node", "explain", "n2").stdout == EXPLAINED


def test_explain_names_the_owner_of_a_mark(call: Call) -> None:
    """Whose drain it is, since when, in whose words, and what lifts it."""
    text = " ".join(call("node", "explain", "n3").stdout.split())
    assert "owner alice: drain in Slurm since 2025-11-29 16:26 UTC (1d): gpu missing, ticket 4411" in text
    assert "It takes no new work" in text
    assert "next ask alice" in text


def test_explain_says_what_is_unknown_and_why(call: Call) -> None:
    """A dark node: the reason, since when, which checks cannot tell, jobs not known."""
    text = " ".join(call("node", "explain", "n5").stdout.split())
    assert "unknown telemetry of n5: stale for 11m; last sample 11m ago; checks: gpu-count, ecc-dbe" in text
    assert "jobs ? not known" in text


def test_lines_fit_the_terminal(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a narrow terminal explanations are wrapped, not cut."""
    monkeypatch.setenv("COLUMNS", "60")
    wide = call("node", "explain", "n2").stdout
    assert max(map(len, wide.splitlines())) <= 62  # a path or log line without blanks may not be broken
    assert "fell off the bus" in wide


def test_missing_node_is_an_error_with_a_hint(call: Call) -> None:
    """A wrong name is not an empty answer."""
    result = call("node", "explain", "nobody")
    assert isinstance(result.exception, NodeworthyError)
    assert result.exception.hint


def test_history_is_oldest_first_and_since_is_understood(call: Call) -> None:
    """--since takes spans and moments; nonsense is a usage error."""
    assert [
        e["sequence"] for e in map(json.loads, call("node", "history", "n2", "-o", "jsonl").stdout.splitlines())
    ] == [1]
    assert json.loads(call("node", "history", "n2", "--since", "10s", "--json").stdout)["items"] == []
    result = call("node", "history", "n2", "--since", "soon")
    assert result.exit_code == 2
    assert "90d" in result.stderr


def test_findings_show_unknown_as_unknown(call: Call) -> None:
    """True findings come first; an unknown one is marked as such."""
    lines = call("finding", "list").stdout.splitlines()
    assert lines[1].split()[:3] == ["✗", "fatal", "n2/gpu5"]
    assert "? unknown" in lines[2]
    assert call("finding", "list", "--verdict", "unknown", "-o", "name").stdout.strip() == "telemetry-silent@n5"


def test_finding_shows_evidence_meaning_and_source(call: Call) -> None:
    """A finding is shown with what its check means and where its rule is from."""
    text = " ".join(call("finding", "show", XID).stdout.split())
    for words_ in (
        "GPUs seen: 7 of 8 (dcgm, 9s ago)",
        "means The GPU no longer answers",
        "source NVIDIA Xid catalogue",
    ):
        assert words_ in text


def test_incidents_list_and_show(call: Call) -> None:
    """An incident has an origin, members and an explanation."""
    assert "rack r2 has gone dark" in call("incident", "list").stdout
    text = " ".join(call("incident", "show", "i-1").stdout.split())
    assert "origin rack r2" in text
    assert "because all seen members went silent together" in text


def test_would_shows_hold_evidence_exit_and_people(call: Call) -> None:
    """Each would-hold has why, evidence, what clears it, and what people did."""
    result = call("would")
    first, second = result.stdout.split("would drain")
    assert first.startswith("would hold n2/gpu5 (no-new-work) since 13:06 UTC")
    assert "8 of 8 GPUs are seen, and the proof gpu-basic" in first
    assert "people did not" in first
    assert "alice took it out 1d ago, 1h after we would have" in " ".join(second.split())
    assert "Against what people did" in result.stderr


def test_would_of_nothing_says_so(call: Call) -> None:
    """Nothing to hold is a sentence, and JSON is an empty list."""
    assert call("would", "n1").stdout == "It would do nothing.\n"
    assert json.loads(call("would", "n1", "--json").stdout)["items"] == []


def test_ledger_tail_prints_the_end(call: Call) -> None:
    """-n 2 prints the last two entries, oldest first; --after goes on from a sequence."""
    assert [line.split()[0] for line in call("ledger", "tail", "-n", "2").stdout.splitlines()] == ["SEQ", "2", "3"]
    assert [e["sequence"] for e in json.loads(call("ledger", "tail", "--after", "1", "--json").stdout)["items"]] == [
        2,
        3,
    ]
    assert call("ledger", "tail", "-n", "0", "-o", "jsonl").stdout == ""


def test_following_as_one_document_is_refused(call: Call) -> None:
    """-f never ends, so it cannot be one JSON document."""
    assert isinstance(call("ledger", "tail", "-f", "--json").exception, BadRequest)


def test_following_goes_on_where_the_tail_ended(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """-f prints the tail and then each new entry once, also over a broken stream."""
    from nodeworthy.cli import ledger as ledger_module
    from nodeworthy.cli.client import Client
    from nodeworthy.errors import Unreachable

    starts: list[int] = []

    def events(_self: Client, after: int) -> object:
        starts.append(after)
        if len(starts) == 1:
            yield {"sequence": 4, "at": 0.0, "kind": "k", "subject": "s", "summary": "", "cause": "", "actor": "a"}
            raise Unreachable("gone")
        raise KeyboardInterrupt

    monkeypatch.setattr(Client, "events", events)
    monkeypatch.setattr(ledger_module, "_RECONNECT_S", 0.0)
    result = call("ledger", "tail", "-f", "-n", "1", "-o", "jsonl")
    assert [json.loads(line)["sequence"] for line in result.stdout.splitlines()] == [3, 4]
    assert starts == [3, 4]
    assert "gone; trying again" in result.stderr


def test_doctor_says_first_what_is_not_well(call: Call, views: MemoryViews) -> None:
    """Unknown is not ok; the remedy stands beside the check; all ok is exit 0."""
    result = call("doctor")
    assert result.exit_code == 3
    assert result.stdout.splitlines()[0] == "Not well: 2 of 4 checks (disk space, clock)."
    assert "try: run chrony or ntpd" in result.stdout
    views.checks = (CheckView("clock", CheckState.OK, "the clock is right"),)
    assert call("doctor").exit_code == 0


def test_doctor_without_an_instance_says_that(call: Call, tmp_path: object) -> None:
    """No instance is the first finding of the doctor, not an error of the command."""
    result = call("doctor", "--socket", f"{tmp_path}/none.sock", "--json")
    (item,) = json.loads(result.stdout)["items"]
    assert (item["name"], item["state"]) == ("server", "fail")
    assert result.exit_code == 3


def test_watch_prints_again_and_survives_a_restart(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """--watch repeats; an instance that is away for a round does not end it."""
    rounds = 0

    def sleep(seconds: float) -> None:
        nonlocal rounds
        assert seconds == 5
        rounds += 1
        monkeypatch.setenv("NODEWORTHY_SOCKET", "/nowhere")
        if rounds == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(watch_module.time, "sleep", sleep)
    result = call("node", "list", "-W", "5", "-o", "name")
    assert result.stdout.split().count("n4") == 3
    assert rounds == 3


def test_names_are_completed_from_the_running_instance(call: Call) -> None:
    """Completion offers names that begin as typed; without an instance it offers nothing."""
    context = click.Context(click.Command("x"))
    assert [item.value for item in complete_nodes(context, click.Argument(["x"]), "n")] == [
        "n1",
        "n2",
        "n3",
        "n4",
        "n5",
    ]
    assert call("node", "list").exit_code == 0


ANSI = re.compile(r"\x1b\[")


@pytest.mark.parametrize(
    ("terminal", "environment", "coloured"),
    [
        (True, {}, True),
        (False, {}, False),
        (True, {"NO_COLOR": "1"}, False),
        (True, {"TERM": "dumb"}, False),
    ],
)
def test_colour_only_on_terminals_that_want_it(
    monkeypatch: pytest.MonkeyPatch, terminal: bool, environment: dict[str, str], coloured: bool
) -> None:
    """Colour needs a terminal, and NO_COLOR and TERM=dumb are obeyed; shape and word are always there."""
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    for key, value in environment.items():
        monkeypatch.setenv(key, value)
    monkeypatch.setattr(words.sys.stdout, "isatty", lambda: terminal, raising=False)
    text = words.paint(words.mark("failed"), "failed")
    assert bool(ANSI.search(text)) is coloured
    assert "✗ failed" in text


def test_ages_are_short_and_never_guessed() -> None:
    """Two units at most; unknown is a question mark."""
    assert [words.span(s) for s in (0, 6.9, 660, 12000, 187200, None)] == ["0s", "6s", "11m", "3h20m", "2d4h", "?"]
    assert words.ago(None) == words.clock_time(None) == "?"


def test_source_that_was_never_seen_has_no_age(call: Call, views: MemoryViews, monkeypatch: pytest.MonkeyPatch) -> None:
    """A source without an answer shows `?`, not 0s."""
    from nodeworthy.service.views import SourceState, SourceView

    source = SourceView("bmc", "log", SourceState.NEVER, None, None, None, "permission denied")
    status = views.status()
    monkeypatch.setattr(views, "status", lambda: replace(status, sources=(source,)))
    assert "bmc ? never seen ?: permission denied" in call("status").stdout
