"""What is not seen: nodes in the dark, and the findings about sources over turns and restarts."""

from __future__ import annotations

import polars as pl

from nodeworthy.judge.answers import blind_nodes
from nodeworthy.judge.frames import Frames, build
from nodeworthy.judge.sources import CHECK, carried
from nodeworthy.model.catalogue import Catalogue, Signal
from nodeworthy.model.finding import ComponentRef, Finding, Severity, Verdict
from nodeworthy.model.fleet import Fleet, Node, NodeClass
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
TELEMETRY = frozenset({"dcgm", "node"})  # a source may well be called as a column is


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


def test_a_node_is_dark_when_nothing_tells_of_its_gpus_or_its_host() -> None:
    """The scheduler's own facts are no sight of a node, and neither is a fresh page of blanks with names on it."""
    scheduler = hosts("slurm", "count")
    assert blind_nodes(frames(scheduler), TELEMETRY) == {}, "no telemetry: nothing ought to be seen"
    assert blind_nodes(frames(scheduler, gpus(60.0, 61.0), hosts("node", "load")), TELEMETRY) == {}
    blank = blind_nodes(frames(scheduler, gpus(60.0, None), hosts("node", "load")), TELEMETRY)
    assert blank == {"n2": "nothing is seen of its GPUs (dcgm: no value that can be used)"}
    old = blind_nodes(frames(scheduler, gpus(60.0, 61.0, age=500)), TELEMETRY)
    assert old == dict.fromkeys(("n1", "n2"), "nothing is seen of its GPUs (dcgm: stale)")


def test_one_source_that_sees_is_enough() -> None:
    """A second source that is down, or has never told of the node, takes no sight away and is not blamed."""
    given = frames(gpus(60.0, 61.0), gpus(1.0, source="node", nodes=("n1",)), down={"node": "refused"})
    assert blind_nodes(given, TELEMETRY) == {}
    given = frames(gpus(60.0, 61.0, age=500), gpus(1.0, source="node", nodes=("n1",)))
    assert blind_nodes(given, TELEMETRY) == {"n2": "nothing is seen of its GPUs (dcgm: stale)"}


def test_a_source_that_never_answered_is_dark_at_once() -> None:
    """After a start with dead exporters no node passes for seen, and each kind is named."""
    told = blind_nodes(frames(down={"dcgm": "refused"}), TELEMETRY)
    assert told["n1"] == "nothing is seen of its host (dcgm: source down) or of its GPUs (dcgm: source down)"

    def seen(**more: object) -> Seen:
        reading = SourceReading("dcgm", "exporter", 15.0, since=NOW, last_try=NOW, **more)  # type: ignore[arg-type]
        return Seen(None, (), (), {}, {"dcgm": reading})

    assert seen(problem="refused").down(NOW) == {"dcgm": "refused"}
    assert seen(problem="refused", last_ok=NOW - 1).down(NOW) == {}, "one failure is no loss"
    assert seen().down(NOW) == {}, "not tried yet"
    assert seen(problem="refused").unheard() == ["dcgm"]


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
