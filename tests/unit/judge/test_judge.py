"""Judging turn by turn: debounce, unknown, flapping, our own errors, and a fleet that changes."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl
import pytest

from nodeworthy.judge import judge as module
from nodeworthy.judge.frames import Frames, build
from nodeworthy.judge.judge import Judgement, JudgeState, judge, resume
from nodeworthy.model.catalogue import Catalogue, Check, Signal, SourceField
from nodeworthy.model.finding import ComponentRef, Finding, UnknownReason, Verdict
from nodeworthy.model.fleet import Fleet, Node, NodeClass
from nodeworthy.ports import TelemetryBatch

START = 1_000_000.0
SIGNALS = {
    "heat": Signal(
        "heat", "gpu", "float", "celsius", "", (SourceField("a", "x"), SourceField("b", "x")), maximum=200.0
    ),
    "other": Signal("other", "gpu", "int", "", "", sentinels=(0.0,), minimum=1, maximum=9),
}


def catalogue(for_s: float = 30.0, clear_s: float = 30.0, condition: str = "heat > 90", applies: str = "") -> Catalogue:
    check = Check(
        "hot", "3", "Too hot", "gpu", condition, None, applies, for_s, clear_s, action="cool", clears="cooler"
    )
    return Catalogue(SIGNALS, {}, {"hot": check}, f"{for_s}-{clear_s}-{condition}")


def fleet(*names: str) -> Fleet:
    return Fleet(
        "t", {"h": NodeClass("h", gpus=1, expect={"limit": 90.0})}, {n: Node(n, "h") for n in names or ("n0",)}
    )


def frames(
    now: float, heat: float | None, given: Catalogue, source: str = "a", nodes: Sequence[str] = ("n0",)
) -> Frames:
    table = pl.DataFrame(
        {"node": nodes, "index": ["0"] * len(nodes), "seen": [now] * len(nodes), "heat": [heat] * len(nodes)},
        schema_overrides={"heat": pl.Float64},
    )
    return build(fleet(*nodes), given, [TelemetryBatch(source, now, {"gpu": table})], now)


def run(values: Sequence[float | None], given: Catalogue, step: float = 15.0) -> list[Judgement]:
    state, results = JudgeState(), []
    for turn, heat in enumerate(values):
        now = START + step * turn
        results.append(judge(given, frames(now, heat, given), state, now))
        state = results[-1].state
    return results


def shown(values: Sequence[float | None], given: Catalogue, step: float = 15.0) -> str:
    """A character a turn: . nothing, T true, t true as last known."""
    marks = []
    for result in run(values, given, step):
        found = [f for f in result.findings if f.check == "hot"]
        marks.append("." if not found else "t" if found[0].unknown else "T")
    return "".join(marks)


@pytest.mark.parametrize(
    ("heat", "expected"),
    [
        ([95, 95, 95, 95], "..TT"),  # opens after 30 s
        ([95, 95, 80, 95, 95, 95], ".....T"),  # a gap starts anew
        ([95, 95, 95, 80, 80, 80], "..TTT."),  # closes after 30 s
        ([95, 95, 95, 80, 95, 80, 80, 80], "..TTTTT."),  # back to true forgets the clearing
        ([95, 95, None, None, None, 95, 95], "......T"),  # unknown time does not count towards opening
        ([95, 95, 95, None, None, None, None], "..Ttttt"),  # unknown keeps what was known
        ([95, 95, 95, None, 80, 80, 80], "..TtTT."),
        ([95, 95, 95, 80, None, None, 80, 80, 80], "..TTttTT."),  # unknown time does not count towards clearing
        ([None, None, 80, None], "...."),
        ([300, 300, 300, 300], "...."),  # out of range is unknown
        ([float("nan")] * 4, "...."),
    ],
)
def test_debounce(heat: list[float | None], expected: str) -> None:
    """A finding opens after for_s, closes after clear_s, and unknown neither opens nor closes it."""
    assert shown(heat, catalogue()) == expected


def test_without_debounce_a_finding_opens_and_closes_at_once() -> None:
    """for_s and clear_s of 0 mean this very turn."""
    assert shown([80, 95, 80, 95], catalogue(0, 0)) == ".T.T"


def test_time_that_nobody_looked_does_not_count() -> None:
    """After a pause of an hour a single true answer does not open a finding that needs 30 seconds."""
    assert shown([95, 95], catalogue(), step=3600.0) == ".."


def test_a_row_at_rest_has_no_state() -> None:
    """All well: nothing is remembered, whatever the number of rows."""
    given = catalogue()
    nodes = [f"n{i}" for i in range(50)]
    result = judge(given, frames(START, 50.0, given, nodes=nodes), JudgeState(), START)
    assert result.findings == ()
    assert result.state.rows == {}
    assert result.unknown == ()


def test_a_finding_carries_its_evidence() -> None:
    """Values of the condition's names with source and time, the class's expectation, and a sentence."""
    given = catalogue(0, 0, "heat > class.limit")
    (finding,) = run([95.5], given)[0].findings
    assert finding.component == ComponentRef("n0", "gpu", "0")
    assert finding.verdict is Verdict.TRUE
    assert [(e.what, e.value, e.source, e.seen) for e in finding.evidence] == [
        ("heat", "95.5", "a", START),
        ("class.limit", "90", "class", None),
    ]
    assert finding.summary == "Too hot (heat 95.5, declared limit 90)"
    assert finding.rule_version == "3"
    assert finding.since == START


def test_flapping_is_said() -> None:
    """The third opening within an hour is evidence of its own."""
    results = run([95, 80, 95, 80, 95], catalogue(0, 0))
    said = [["flapping" in f.summary for f in r.findings] for r in results]
    assert said == [[False], [], [False], [], [True]]
    assert any(e.what == "flapping" for e in results[-1].findings[0].evidence)


def test_since_is_when_it_first_held() -> None:
    """Not when the debounce ended."""
    assert run([95, 95, 95], catalogue())[2].findings[0].since == START


def test_unknown_is_counted_by_reason_and_source() -> None:
    """Silence, a blank value, and what is not declared differ, and the difference is kept."""
    given = catalogue(condition="heat > class.limit and other > 5")
    nodes = ("n0", "n1", "n2", "n3")
    declared = Fleet(
        "t",
        {"h": NodeClass("h", gpus=1, expect={"limit": 90.0}), "old": NodeClass("old", gpus=1)},
        {n: Node(n, "old" if n == "n3" else "h") for n in nodes},
    )
    table = pl.DataFrame(
        {
            "node": ["n0", "n1", "n3"],
            "index": ["0"] * 3,
            "seen": [START, START - 999, START],
            "heat": [95.0] * 3,
            "other": [0, 6, 6],
        }
    )
    built = build(declared, given, [TelemetryBatch("a", START, {"gpu": table})], START)
    groups = judge(given, built, JudgeState(), START).unknown
    assert {(g.reason, g.source, g.count, g.nodes) for g in groups} == {
        (UnknownReason.SENTINEL, "a", 1, ("n0",)),
        (UnknownReason.STALE, "a", 1, ("n1",)),
        (UnknownReason.NEVER_SEEN, "a", 1, ("n2",)),
        (UnknownReason.NOT_APPLICABLE, "class", 1, ("n3",)),
    }


def test_where_a_check_does_not_apply_it_is_not_unknown() -> None:
    """`applies` that is not true makes the answer neither true nor unknown."""
    given = catalogue(0, 0, applies="class.limit > 100")
    assert run([95.0], given)[0].findings == ()
    assert run([None], given)[0].unknown == ()


def test_a_second_source_fills_in_and_is_named() -> None:
    """Where the preferred source is blind, the other's value counts, and the evidence says whose it is."""
    given = catalogue(0, 0)

    def batch(source: str, seen: float, heat: float) -> TelemetryBatch:
        table = pl.DataFrame({"node": ["n0"], "index": ["0"], "seen": [seen], "heat": [heat]})
        return TelemetryBatch(source, seen, {"gpu": table})

    both = [batch("b", START, 95.0), batch("a", START, 50.0)]
    assert judge(given, build(fleet(), given, both, START), JudgeState(), START).findings == ()
    stale = [batch("b", START, 95.0), batch("a", START - 999, 50.0)]
    found = judge(given, build(fleet(), given, stale, START), JudgeState(), START).findings
    assert [e.source for f in found if f.check == "hot" for e in f.evidence] == ["b"]


def test_state_follows_the_component_when_the_fleet_changes() -> None:
    """A node added in front does not inherit the finding, and the finding keeps its since."""
    given = catalogue(0, 0)
    first = judge(given, frames(START, 95.0, given, nodes=("n5",)), JudgeState(), START)
    table = pl.DataFrame({"node": ["a0", "n5"], "index": ["0", "0"], "seen": [START + 15] * 2, "heat": [50.0, 95.0]})
    built = build(fleet("a0", "n5"), given, [TelemetryBatch("a", START + 15, {"gpu": table})], START + 15)
    (finding,) = judge(given, built, first.state, START + 15).findings
    assert finding.component.node == "n5"
    assert finding.since == START


def test_a_check_that_crashes_is_our_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """The others go on, its answers are unknown, a true finding stands, and one finding names Nodeworthy."""
    given = catalogue(0, 0)
    well = Check("other", "1", "Other", "gpu", "heat > 10", action="x", clears="y")
    given = Catalogue(SIGNALS, {}, {**given.checks, "other": well}, "crash")
    before = judge(given, frames(START, 95.0, given), JudgeState(), START)
    real = module._expression

    def broken(check: Check, schema: pl.Schema) -> pl.Expr:
        return pl.col("no such column") > 1 if check.id == "hot" else real(check, schema)

    monkeypatch.setattr(module, "_expression", broken)
    monkeypatch.setattr(module, "_compiled", {})
    after = judge(given, frames(START + 15, 95.0, given), before.state, START + 15)
    found: dict[str, Finding] = {f.check: f for f in after.findings}
    assert set(found) == {"hot", "other", "check-failed"}
    assert found["hot"].unknown is UnknownReason.CHECK_FAILED
    assert found["other"].unknown is None
    assert found["check-failed"].component.node == "nodeworthy"
    assert "no such column" in found["check-failed"].evidence[0].value
    assert [(g.check, g.reason, g.count) for g in after.unknown] == [("hot", UnknownReason.CHECK_FAILED, 1)]


def test_the_same_input_gives_the_same_judgement() -> None:
    """Judging is a pure function: replay gives equal findings and state."""
    values: list[float | None] = [95, 95, None, 95, 80, 95, 95, 95]
    first, second = run(values, catalogue()), run(values, catalogue())
    assert [r.findings for r in first] == [r.findings for r in second]
    assert [r.state.rows for r in first] == [r.state.rows for r in second]


def test_findings_go_on_after_a_restart() -> None:
    """Blind at the restart: it stands with its since. Seen well: it closes after clear_s. Gone from the fleet: gone."""
    given = catalogue()
    before = run([95, 95, 95], given)[-1].findings
    now = START + 60
    blind = frames(now, None, given)
    state = resume(given, blind, before)
    (standing,) = judge(given, blind, state, now).findings
    assert standing.since == START
    assert standing.unknown is UnknownReason.SENTINEL
    well = [judge(given, frames(now, 50.0, given), state, now)]
    well.append(judge(given, frames(now + 30, 50.0, given), well[0].state, now + 30))
    assert [len(r.findings) for r in well] == [1, 0]
    other = frames(now, None, given, nodes=("n9",))
    assert judge(given, other, resume(given, other, before), now).findings == ()


def read_again(seen: Sequence[float], turns: Sequence[float], heat: Sequence[float], given: Catalogue) -> list[bool]:
    """Whether the check stands at each turn, when source a was last read at the latest of `seen` up to then."""
    state, stands = JudgeState(), []
    for turn in turns:
        at = max(t for t in seen if t <= turn)
        table = pl.DataFrame({"node": ["n0"], "index": ["0"], "seen": [START + at], "heat": [heat[seen.index(at)]]})
        batch = TelemetryBatch("a", START + at, {"gpu": table})
        now = START + turn
        built = build(fleet(), given, [batch], now, down={"a": "refused"} if turn - at > 30 else None)
        result = judge(given, built, state, now)
        state = result.state
        stands.append(any(f.check == "hot" for f in result.findings))
    return stands


def test_one_sample_judged_in_many_turns_is_one_look() -> None:
    """A source that dies after one bad sample opens nothing, though its value is not yet too old for two minutes."""
    assert not any(read_again([0], range(0, 600, 5), [95.0], catalogue(for_s=60)))


def test_debounce_counts_from_sample_to_sample() -> None:
    """With turns between scrapes a finding opens and closes at the sample that is for_s or clear_s after the first."""
    given = catalogue(for_s=30, clear_s=30)
    stands = read_again([0, 15, 30, 45, 60, 75], range(0, 90, 5), [95.0, 95.0, 95.0, 80.0, 80.0, 80.0], given)
    assert [turn * 5 for turn, on in enumerate(stands) if on] == list(range(30, 75, 5))


def test_the_time_between_the_last_look_and_the_next_one_does_not_count() -> None:
    """Two samples with a quarter of an hour of silence between them are not a minute of looking."""
    stands = read_again([0, 900, 915], [*range(0, 900, 5), 900, 905, 915], [95.0, 95.0, 95.0], catalogue(for_s=30))
    assert not any(stands)


def test_a_clock_that_was_set_back_does_not_stop_the_debounce() -> None:
    """What was pending before the clock went back an hour is counted anew, and opens after for_s."""
    given, state, stands = catalogue(for_s=30), JudgeState(), []
    for now in (START, START - 3600, START - 3570):
        result = judge(given, frames(now, 95.0, given), state, now)
        state = result.state
        stands.append(any(f.check == "hot" for f in result.findings))
    assert stands == [False, False, True]


def test_a_fleet_that_changes_at_the_first_turn_after_a_restart_closes_nothing() -> None:
    """What stood before the restart stands on, with its since, when a node was added to the fleet file meanwhile."""
    given = catalogue()
    before = run([95, 95, 95], given)[-1].findings
    now = START + 60
    state = resume(given, frames(now, None, given), before)
    (standing,) = judge(given, frames(now, None, given, nodes=("a0", "n0")), state, now).findings
    assert (standing.component.node, standing.since) == ("n0", START)
