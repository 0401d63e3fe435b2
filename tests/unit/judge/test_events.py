"""Event checks: which kernel lines become findings, on what, and what ends them."""

from __future__ import annotations

import json
import tomllib
from dataclasses import replace
from importlib.resources import files

import pytest

from nodeworthy.adapters.files.catalogue import load
from nodeworthy.judge.events import LINES_KEPT, EventJudgement, EventState, from_data, judge_events, to_data
from nodeworthy.model.event import LogEvent, Role
from nodeworthy.model.finding import ComponentRef, Trust, Verdict

NOW = 1_000_000.0
CATALOGUE = load()
XID79 = LogEvent(
    at=NOW - 10,
    host="n3",
    component="0000:53:00",
    kind="xid",
    code="79",
    role=Role.ORIGIN,
    severity="fatal",
    action="reboot",
    proof="gpu-and-pcie",
    trusted=True,
    rule="xid",
    message="NVRM: Xid (PCI:0000:53:00): 79, GPU has fallen off the bus.",
    node="n3",
    gpu=0,
    source="kern.log",
)


def judged(*events: LogEvent, state: EventState | None = None, **options: dict[object, float]) -> EventJudgement:
    return judge_events(CATALOGUE, events, state or EventState(), NOW, **options)  # type: ignore[arg-type]


def xid(code: str, **changes: object) -> LogEvent:
    return replace(XID79, code=code, **changes)  # type: ignore[arg-type]


def test_xid_79_asks_at_once_for_no_new_work_on_the_node() -> None:
    """The node is named, the line is the evidence, and the check proposes without waiting."""
    (finding,) = judged(XID79).findings
    assert finding.check == "xid-79"
    assert finding.component == ComponentRef("n3")
    assert finding.verdict is Verdict.TRUE
    assert finding.since == XID79.at
    assert "fallen off the bus" in finding.evidence[0].value
    assert finding.evidence[0].seen == XID79.at
    assert finding.trust is Trust.PROPOSE
    assert CATALOGUE.checks["xid-79"].effect == "no-new-work"
    assert finding.clears


def test_a_gpu_fault_is_blamed_on_the_gpu() -> None:
    """A check about GPUs names the GPU of the line, and the node only where the GPU is not known."""
    (known,) = judged(xid("95")).findings
    (unknown,) = judged(xid("95", gpu=None)).findings
    assert known.component == ComponentRef("n3", "gpu", "0")
    assert unknown.component == ComponentRef("n3")


@pytest.mark.parametrize(
    "event",
    [
        replace(XID79, trusted=False),
        replace(XID79, node=None),
        replace(XID79, role=Role.SYMPTOM),
        replace(XID79, severity="warning"),
        xid("13", role=Role.APPLICATION, severity="warning"),
        xid("31", role=Role.APPLICATION, severity="warning"),
        xid("43", role=Role.APPLICATION, severity="warning"),
        xid("45", role=Role.SYMPTOM, severity="warning"),
        xid("149", severity="warning"),
        xid("999"),
    ],
    ids=["forged", "unknown host", "by-product", "not fatal", "13", "31", "43", "45", "149 not fatal", "unknown code"],
)
def test_what_does_not_count_makes_no_finding(event: LogEvent) -> None:
    """Forgeable lines, unknown hosts, by-products and what programs do hold nothing."""
    assert judged(event).findings == ()


@pytest.mark.parametrize("code", ["63", "92", "94", "154", "156"])
def test_codes_that_inform_hold_nothing(code: str) -> None:
    """A remapped row, a contained error and the like are noted without an effect."""
    (finding,) = judged(xid(code, severity="info")).findings
    assert CATALOGUE.checks[finding.check].effect == ""


def test_lines_of_an_earlier_boot_are_history() -> None:
    """A line from before the boot opens nothing, and a newer boot ends what stood."""
    assert judged(XID79, boots={"n3": NOW + 200}).findings == ()
    assert len(judged(XID79, boots={"n3": XID79.at - 1000}).findings) == 1
    standing = judged(XID79)
    assert judged(state=standing.state, boots={"n3": NOW + 200}).findings == ()
    assert len(judged(state=standing.state, boots={"n4": NOW + 200}).findings) == 1


def test_a_line_of_the_first_seconds_of_a_boot_counts() -> None:
    """The reported boot time is not exact, so lines up to two minutes before it belong to the boot."""
    assert len(judged(XID79, boots={"n3": XID79.at + 60}).findings) == 1


def test_a_proof_after_the_line_ends_the_finding() -> None:
    """A proof of the GPU or of its node ends it; one that began before the line does not."""
    standing = judged(xid("95")).state
    gpu, node = ComponentRef("n3", "gpu", "0"), ComponentRef("n3")
    assert judged(state=standing, proofs={gpu: NOW}).findings == ()
    assert judged(state=standing, proofs={node: NOW}).findings == ()
    assert len(judged(state=standing, proofs={node: XID79.at - 1}).findings) == 1


def test_a_line_after_the_proof_counts_again() -> None:
    """Old lines are forgotten with the proof and the new one stands alone."""
    state = judged(xid("95"), xid("95", at=NOW - 1)).state
    (finding,) = judged(state=state, proofs={ComponentRef("n3"): NOW - 5}).findings
    assert finding.since == NOW - 1


def test_notes_expire_by_themselves() -> None:
    """A check with clear_s ends so long after its last line."""
    state = judged(xid("63")).state
    later = judge_events(CATALOGUE, (), state, NOW + 86400 + 60)
    assert later.findings == ()
    assert later.state.heard == {}


def test_a_storm_is_one_finding_and_bounded() -> None:
    """800,000 copies of a line are one finding with a count; a few lines are kept."""
    storm = (replace(XID79, at=NOW - 100 + i / 100) for i in range(5000))
    result = judge_events(CATALOGUE, storm, EventState(), NOW)
    (finding,) = result.findings
    assert "5000 times" in finding.summary
    assert all(len(h.lines) <= LINES_KEPT for h in result.state.heard.values())
    assert len(finding.evidence) == 2


def test_some_checks_need_several_lines_within_a_window() -> None:
    """Five kills within an hour are a note, five spread over days are nothing."""
    kill = replace(XID79, kind="oom", code="killed", severity="warning", role=Role.APPLICATION)
    close = [replace(kill, at=NOW - 60 * i) for i in range(5)]
    spread = [replace(kill, at=NOW - 3000 * i) for i in range(5)]
    assert [f.check for f in judged(*close).findings] == ["kernel-out-of-memory"]
    assert judged(*close[:4]).findings == ()
    assert judged(*spread).findings == ()


def test_the_state_survives_a_restart_as_plain_values() -> None:
    """What was heard goes through JSON and says the same afterwards; a newer boot still ends it."""
    state = judged(XID79, xid("95"), xid("95", at=NOW - 1)).state
    again = from_data(json.loads(json.dumps(to_data(state))))
    assert again == state
    assert judged(state=again).findings == judged(state=state).findings
    assert judged(state=again, boots={"n3": NOW + 500}).findings == ()


def test_every_event_check_can_be_met_by_the_log_grammar() -> None:
    """Each kind and code that a check waits for is one that a log rule or code table can produce."""
    folder = files("nodeworthy") / "catalogue"
    if not (folder / "log_rules.toml").is_file():
        pytest.skip("the log grammar's tables are not part of this tree")
    tables = {name: tomllib.loads((folder / f"{name}.toml").read_text()) for name in ("xid", "sxid", "log_rules")}
    codes = {("xid", c) for c in tables["xid"]["xid"]} | {("sxid", c) for c in tables["sxid"]["sxid"]}
    codes |= {(r["kind"], r["code"]) for r in tables["log_rules"]["rule"] if "code" in r}
    for check in CATALOGUE.checks.values():
        for code in check.event.codes if check.event else ():
            assert (check.event.kind, code) in codes, check.id  # type: ignore[union-attr]


DAY = 86400.0


def test_an_old_line_of_a_node_whose_boot_is_unknown_does_not_hold() -> None:
    """A backlog of weeks may be of an earlier boot, which no newer boot would end; when the boot is known it is judged."""
    old = replace(XID79, at=NOW - 20 * DAY, read_at=NOW)
    first = judged(old)
    assert first.findings == ()
    assert judged(state=first.state, boots={"n3": NOW - 2 * DAY}).findings == ()
    (finding,) = judged(state=first.state, boots={"n3": NOW - 30 * DAY}).findings
    assert finding.since == old.at


def test_a_line_that_was_fresh_when_it_was_read_stands_without_a_boot() -> None:
    """What was read in time goes on, also a week later and after a restart."""
    line = replace(XID79, at=NOW - 7 * DAY, read_at=NOW - 7 * DAY + 5)
    again = from_data(json.loads(json.dumps(to_data(judged(line).state))))
    assert len(judged(state=again).findings) == 1


def test_a_line_without_a_time_explains_and_never_holds() -> None:
    """When it was written nobody knows, so it may be of any boot; a check that only informs still says it."""
    assert judged(replace(XID79, timed=False, read_at=NOW), boots={"n3": NOW - DAY}).findings == ()
    (finding,) = judged(xid("63", severity="info", timed=False), boots={"n3": NOW - DAY}).findings
    assert CATALOGUE.checks[finding.check].effect == ""
    lines = (XID79, replace(XID79, at=NOW, timed=False))
    (standing,) = judged(*lines, boots={"n3": NOW - DAY}).findings
    assert [e.seen for e in standing.evidence] == [XID79.at]


def test_a_kept_line_counts_for_those_that_were_not_kept() -> None:
    """The record keeps some lines of a storm and counts the rest; a restart tells the same number."""
    (finding,) = judged(xid("79", more=41)).findings

    assert "42 times" in finding.summary
