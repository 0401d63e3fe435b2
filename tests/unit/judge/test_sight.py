"""What is not seen: nodes in the dark, and the findings about sources over turns and restarts."""

from __future__ import annotations

import polars as pl

from nodeworthy.decide.status import still_dark
from nodeworthy.judge.answers import blind_nodes
from nodeworthy.judge.frames import Frames, build
from nodeworthy.judge.sources import CHECK, carried
from nodeworthy.model.catalogue import Catalogue, Signal
from nodeworthy.model.finding import ComponentRef, Finding, Severity, Verdict
from nodeworthy.model.fleet import Fleet, Node, NodeClass
from nodeworthy.model.status import NodeState, NodeStatus
from nodeworthy.observe.snapshot import Seen, SourceReading
from nodeworthy.ports import TelemetryBatch

NOW = 1_700_000_000.0
CATALOGUE = Catalogue(
    {
        "heat": Signal("heat", "gpu", "float", "", ""),
        "uuid": Signal("uuid", "gpu", "str", "", ""),
        "load": Signal("load", "node", "float", "", ""),
        "count": Signal("count", "node", "int", "", ""),
    },
    {},
    {},
    "sight-test",
)
FLEET = Fleet("t", {"gpu": NodeClass("gpu", gpus=1)}, {n: Node(n, "gpu") for n in ("n1", "n2")})
BESIDES = ("slurm",)


def gpus(
    *heat: float | None, source: str = "dcgm", age: float = 0.0, nodes: tuple[str, ...] = ("n1", "n2")
) -> TelemetryBatch:
    rows = {"node": nodes, "index": ["0"] * len(nodes), "seen": [NOW - age] * len(nodes), "heat": heat, "uuid": nodes}
    return TelemetryBatch(source, NOW, {"gpu": pl.DataFrame(rows, schema_overrides={"heat": pl.Float64})})


def hosts(source: str, signal: str) -> TelemetryBatch:
    rows = {"node": ["n1", "n2"], "index": ["", ""], "seen": [NOW, NOW], signal: [1, 1]}
    return TelemetryBatch(source, NOW, {"node": pl.DataFrame(rows)})


def frames(*batches: TelemetryBatch, down: dict[str, str] | None = None) -> Frames:
    return build(FLEET, CATALOGUE, batches, NOW, down=down or {})


def test_the_scheduler_is_no_sight_of_a_node() -> None:
    """That it lists a node tells nothing of the node's health; where there is no telemetry nothing ought to be seen."""
    assert blind_nodes(frames(hosts("slurm", "count")), BESIDES) == {}
    old = blind_nodes(frames(hosts("slurm", "count"), gpus(60.0, 61.0, age=500)), BESIDES)
    assert old == dict.fromkeys(("n1", "n2"), "no telemetry of it now: dcgm has not seen it lately")


def test_a_fresh_page_of_blanks_is_no_sight() -> None:
    """Names in labels are there and readings are not; one reading, of another source too, is enough."""
    blank = "no telemetry of it now: dcgm tells nothing that can be used"
    assert blind_nodes(frames(gpus(60.0, None)), BESIDES) == {"n2": blank}
    assert blind_nodes(frames(gpus(60.0, None), hosts("node", "load")), BESIDES) == {}


def test_who_told_of_the_node_is_named() -> None:
    """A source may be called as a column is; one that is down and never told of the node is not named."""
    given = frames(gpus(60.0, 61.0, age=500), gpus(1.0, source="node", nodes=("n1",)), down={"node": "refused"})
    assert blind_nodes(given, BESIDES) == {"n2": "no telemetry of it now: dcgm has not seen it lately"}


def test_a_source_that_never_answered_is_dark_at_once() -> None:
    """After a start with dead exporters no node passes for seen."""
    told = blind_nodes(frames(down={"dcgm": "refused"}), BESIDES)
    assert told == dict.fromkeys(("n1", "n2"), "no telemetry of it now: dcgm does not answer")

    def seen(**more: object) -> Seen:
        reading = SourceReading("dcgm", "exporter", 15.0, since=NOW, **more)  # type: ignore[arg-type]
        return Seen(None, (), (), {}, {"dcgm": reading})

    assert seen(problem="refused", last_try=NOW).down(NOW) == {"dcgm": "refused"}
    assert seen(problem="refused", last_try=NOW, last_ok=NOW - 1).down(NOW) == {}, "one failure is no loss"
    assert seen().down(NOW) == {}, "not tried yet"
    assert (seen().unheard(), seen().untried()) == (["dcgm"], {"dcgm"})
    assert (seen(last_ok=NOW, last_try=NOW).unheard(), seen(last_try=NOW).untried()) == ([], set())


def test_what_was_dark_stays_so_until_it_is_looked_at() -> None:
    """After a start a node that was unknown does not pass for seen before its telemetry was asked."""
    before = {"n1": NodeStatus("n1", NodeState.UNKNOWN, "dcgm: stale"), "n2": NodeStatus("n2", NodeState.SERVING, "")}
    assert set(still_dark(before)) == {"n1"}


def about(source: str, since: float) -> Finding:
    return Finding(CHECK, ComponentRef(source, "source"), Verdict.TRUE, Severity.ERROR, 1.0, since, "blind")


def test_finding_about_a_source_keeps_its_time() -> None:
    """It goes on from when it began; that of a source not heard since the start stands; others end."""
    before = {f.key: f for f in (about("dcgm", 10), about("node", 20), about("gone", 30))}
    now = {f.key: f for f in (about("dcgm", 99), about("new", 99))}
    found = carried(now, ["node"], before)
    assert {f.component.node: f.since for f in found.values()} == {"dcgm": 10, "node": 20}
    other = Finding("gpu-hot", ComponentRef("n1"), Verdict.TRUE, Severity.ERROR, 1.0, 5, "hot")
    assert carried({other.key: other}, [], {other.key: other}) == {}
