"""What was looked at and is not so, what cannot be told, and which nodes are dark: three different things."""

from __future__ import annotations

from collections.abc import Iterable

from nodeworthy.judge.answers import answered_no, blind_nodes, gpus_seen, unanswered, unanswered_counts
from nodeworthy.judge.frames import Frames, build
from nodeworthy.judge.judge import JudgeState, judge
from nodeworthy.model.finding import UnknownReason
from nodeworthy.model.fleet import Fleet, Node, NodeClass
from nodeworthy.ports import TelemetryBatch
from tests.pictures import START, catalogue, fleet, telemetry

NODES = tuple(fleet().nodes)


def frames(
    *batches: TelemetryBatch, now: float = START + 5, of: Fleet | None = None, down: Iterable[str] = ()
) -> Frames:
    return build(of or fleet(), catalogue(), batches, now, down=dict.fromkeys(down, "no route"))


def test_a_node_that_its_source_lost_is_dark() -> None:
    """Stale, never seen though its class is, and a source that is down differ, in words; a fresh node is not dark."""
    old = telemetry(["n1"], START - 600)
    seen = frames(old, telemetry(["n2"], START))
    assert blind_nodes(seen)["n1"] == "no telemetry of it now: dcgm has not seen it lately"
    assert "never seen it, though it sees others" in blind_nodes(seen)["n3"]
    assert "n2" not in blind_nodes(seen)

    down = frames(telemetry(NODES, START - 600), down=["dcgm"])
    assert set(blind_nodes(down)) == set(NODES)
    assert "dcgm does not answer" in blind_nodes(down)["n1"]


def test_a_class_that_no_source_covers_is_not_dark() -> None:
    """Login nodes without exporters are no blindness; nor is a site without any telemetry."""
    site = Fleet("f", {"h": NodeClass("h", gpus=2), "login": NodeClass("login")},
                 {"n1": Node("n1", "h"), "n2": Node("n2", "h"), "l1": Node("l1", "login")})  # fmt: skip
    assert set(blind_nodes(frames(telemetry(["n1"], START), of=site))) == {"n2"}
    assert blind_nodes(frames()) == {}


def test_one_source_of_two_is_enough_and_the_scheduler_is_none() -> None:
    """A node that any telemetry sees is not dark; that Slurm lists it says nothing of its hardware."""
    old, other = telemetry(NODES, START - 600), telemetry(["n1"], START, source="other")
    assert "n1" not in blind_nodes(frames(old, other))
    listed = telemetry(NODES, START, source="slurm")
    assert blind_nodes(frames(old, listed)) == {}
    assert set(blind_nodes(frames(old, listed), besides=("slurm",))) == set(NODES)


def test_gpus_that_are_not_seen_are_not_none() -> None:
    """A node of which nothing is fresh has no count: it may be the source that is blind."""
    found = frames(telemetry(["n1"], START), telemetry(["n2"], START - 600))
    assert gpus_seen(found) == {"n1": 2}
    assert gpus_seen(frames()) == {}


def test_no_is_said_only_of_what_was_looked_at() -> None:
    """A check that found nothing on every part and applies there; not one that is unknown, true or does not apply."""
    found = frames(telemetry(NODES, START, bad=["n1"]))
    answers = judge(catalogue(), found, JudgeState(), START + 5).answers
    no = answered_no(catalogue(), found, answers, "n1")

    assert "gpu-temperature-high" in no or any("hot" in catalogue().checks[c].title for c in no)
    assert "gpu-row-remap-failed" not in no
    assert "gpu-row-remap-failed" in answered_no(catalogue(), found, answers, "n2")
    assert "nvlink-count-low" not in no, "its class declares no NVLinks"
    dark = frames(telemetry(["n2"], START))
    answers = judge(catalogue(), dark, JudgeState(), START + 5).answers
    assert "gpu-row-remap-failed" not in answered_no(catalogue(), dark, answers, "n1")


def test_unknown_is_counted_as_it_is_listed() -> None:
    """The count of a node is the length of its list, each with its reason, and what does not apply is in neither."""
    found = frames(telemetry(["n1", "n2"], START), telemetry(["n3"], START - 600))
    answers = judge(catalogue(), found, JudgeState(), START + 5).answers
    counts = unanswered_counts(catalogue(), found, answers)

    for name in NODES:
        listed = unanswered(catalogue(), found, answers, name)
        assert counts.get(name, 0) == len(listed)
        assert all(u.reason is not UnknownReason.NOT_APPLICABLE for u in listed)
        assert not {u.check for u in listed} & set(answered_no(catalogue(), found, answers, name))
    reasons = {u.check: u.reason for u in unanswered(catalogue(), found, answers, "n3")}
    assert reasons["gpu-row-remap-failed"] is UnknownReason.STALE
