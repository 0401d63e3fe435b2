"""Frames: rows from the fleet, columns from the catalogue, and what of it is fresh."""

from __future__ import annotations

import polars as pl
import pytest

from nodeworthy.judge.frames import State, build, declare, latest
from nodeworthy.model.catalogue import Catalogue, Signal
from nodeworthy.model.fact import DTYPES
from nodeworthy.model.fleet import Fleet, Node, NodeClass
from nodeworthy.ports import TelemetryBatch

NOW = 1_700_000_000.0
CATALOGUE = Catalogue(
    {
        "quick": Signal("quick", "gpu", "float", "", "", max_age_s=60.0),
        "slow": Signal("slow", "gpu", "int", "", "", max_age_s=600.0),
        "name": Signal("name", "node", "str", "", ""),
    },
    {},
    {},
    "frames-test",
)
FLEET = Fleet(
    "t",
    {
        "gpu": NodeClass("gpu", gpus=2, gpu_type="h100", expect={"nics": "mlx5_[0-1]", "limit": 90, "odd": "x"}),
        "cpu": NodeClass("cpu", expect={"limit": 70.5, "odd": 3}),
    },
    {"g1": Node("g1", "gpu"), "c1": Node("c1", "cpu"), "g2": Node("g2", "gpu"), "lost": Node("lost", "no such class")},
)


def batch(
    seen: list[float | None], *, source: str = "dcgm", nodes: tuple[str, ...] = ("g1", "g1", "g2", "g2")
) -> TelemetryBatch:
    index = [str(i % 2) for i in range(len(nodes))]
    columns = {"node": nodes, "index": index, "seen": seen, "quick": [1.0] * len(nodes), "slow": [2] * len(nodes)}
    return TelemetryBatch(source, NOW, {"gpu": pl.DataFrame(columns, schema_overrides={"seen": pl.Float64})})


def test_rows_are_the_declared_components() -> None:
    """GPUs by the class's count, network devices by its node set, a row per node whatever its class."""
    rows = declare(FLEET)
    assert rows["node"].select("node", "index").rows() == [("g1", ""), ("c1", ""), ("g2", ""), ("lost", "")]
    assert rows["gpu"].select("node", "index").rows() == [("g1", "0"), ("g1", "1"), ("g2", "0"), ("g2", "1")]
    assert rows["nic"]["index"].to_list() == ["mlx5_0", "mlx5_1"] * 2
    assert declare(FLEET) is rows


def test_expectations_are_columns() -> None:
    """Each class's own value; unknown where the class does not declare it; of mixed types only the numbers."""
    node = declare(FLEET)["node"]
    assert node["class.limit"].to_list() == [90.0, 70.5, 90.0, None]
    assert node["class.gpu_type"].to_list() == ["h100", None, "h100", None]
    assert node["class.odd"].to_list() == [None, 3.0, None, None]
    assert node["class.gpus"].to_list() == [2, 0, 2, None]


def test_a_component_that_nobody_mentions_is_a_row_of_unknowns() -> None:
    """A vanished GPU stays a row, its state says never seen, and every signal has its type."""
    built = build(FLEET, CATALOGUE, [batch([NOW] * 3, nodes=("g1", "g1", "g2"))], NOW).tables["gpu"]
    assert built.frame["quick"].to_list() == [1.0, 1.0, 1.0, None]
    assert built.parts["dcgm"].states.to_list() == [State.FRESH] * 3 + [State.NEVER_SEEN]
    empty = build(FLEET, CATALOGUE, [], NOW).tables["gpu"].frame
    for name in ("quick", "slow"):
        assert empty.schema[name] == getattr(pl, DTYPES[CATALOGUE.signals[name].type])
        assert empty[name].null_count() == 4


def test_each_signal_ages_at_its_own_pace() -> None:
    """After 60 s the quick signal is unknown, the slow one after 600 s; the future is unknown for both."""
    seen: list[float | None] = [NOW - 30, NOW - 300, NOW - 900, NOW + 60]
    built = build(FLEET, CATALOGUE, [batch(seen)], NOW).tables["gpu"]
    assert built.frame["quick"].to_list() == [1.0, None, None, None]
    assert built.frame["slow"].to_list() == [2, 2, None, None]
    assert built.parts["dcgm"].states.to_list() == [State.FRESH, State.STALE, State.STALE, State.FUTURE]
    assert built.frame["seen.dcgm"].to_list() == seen


def test_a_source_that_is_down_says_so() -> None:
    """What is still fresh is used; what is not is unknown because the source is down."""
    built = build(FLEET, CATALOGUE, [batch([NOW, NOW, NOW - 900, None])], NOW, down={"dcgm": "refused"})
    states = built.tables["gpu"].parts["dcgm"].states.to_list()
    assert states == [State.FRESH, State.FRESH, State.SOURCE_DOWN, State.SOURCE_DOWN]
    never = build(FLEET, CATALOGUE, [], NOW, down={"dcgm": "refused"})
    assert never.notes["dcgm"].down == "refused"
    assert set(never.tables["gpu"].parts["dcgm"].states) == {State.SOURCE_DOWN}


def test_latest_keeps_what_the_new_reading_does_not_mention() -> None:
    """A silent node keeps its old time stamp and so grows stale; a mentioned one is replaced whole."""
    first = batch([NOW - 100] * 4)
    second = batch([NOW] * 2, nodes=("g1", "g1"))
    merged = latest(latest(None, first), second)
    frame = merged.frames["gpu"].sort("node", "index")
    assert frame["node"].to_list() == ["g1", "g1", "g2", "g2"]
    assert frame["seen"].to_list() == [NOW, NOW, NOW - 100, NOW - 100]
    full = batch([NOW + 15] * 4)
    assert latest(merged, full).frames["gpu"]["seen"].to_list() == [NOW + 15] * 4


def test_names_that_are_not_declared_are_not_rows() -> None:
    """A foreign instance makes no row and takes nobody's place."""
    given = batch([NOW] * 4, nodes=("zz", "zz", "g2", "g2"))
    built = build(FLEET, CATALOGUE, [given], NOW).tables["gpu"].frame
    assert built["quick"].to_list() == [None, None, 1.0, 1.0]


@pytest.mark.parametrize("nics", ["mlx5_[0-", "x" * 3 + "[1-999999999]", -1, float("inf"), float("nan"), 10**9])
def test_nics_that_cannot_be_counted_declare_none(nics: str | float) -> None:
    """A fleet that was recorded before it was refused costs its ports and never a turn."""
    odd = Fleet("odd-nics", {"h": NodeClass("h", gpus=1, expect={"nics": nics})}, {"n0": Node("n0", "h")})
    rows = declare(odd)
    assert rows["nic"].is_empty()
    assert rows["gpu"].height == 1


@pytest.mark.parametrize(("age", "known"), [(60, True), (300, True), (899, True), (901, False)])
def test_a_source_that_is_asked_seldom_may_be_older(age: float, known: bool) -> None:
    """A value lives for three rounds of its source, where that is more than the signal's own age."""
    table = pl.DataFrame({"node": ["g1"], "index": ["0"], "seen": [NOW - age], "quick": [1.0], "slow": [2]})
    frames = build(FLEET, CATALOGUE, [TelemetryBatch("dcgm", NOW - age, {"gpu": table})], NOW, patience={"dcgm": 900.0})
    row = frames.tables["gpu"].frame.filter(node="g1", index="0")
    assert (row["quick"][0] is not None, row["slow"][0] is not None) == (known, known)
    assert (frames.tables["gpu"].parts["dcgm"].states[0] == State.FRESH) is known
