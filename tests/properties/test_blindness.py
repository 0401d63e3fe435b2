"""Losing sight of nodes never accuses them: telemetry stops, lies, repeats, is cut or is renamed.

A fleet whose checks are all well (and one GPU that is truly bad) is read once; then a disturbance of the telemetry is
drawn and read for several turns. No new adverse finding may appear on any node, what was true stays as last
known, what cannot be told is counted with its reason, and one finding names the source.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from functools import lru_cache

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeworthy.adapters.files.catalogue import load
from nodeworthy.judge.features import Windows
from nodeworthy.judge.frames import Reading, build, latest
from nodeworthy.judge.judge import Judgement, JudgeState, judge
from nodeworthy.judge.sources import CHECK as SOURCE_BLIND
from nodeworthy.model.finding import Finding, UnknownReason, Verdict
from nodeworthy.model.fleet import Fleet, Node, NodeClass
from nodeworthy.ports import TelemetryBatch
from tests.properties.inputs import fewer

CATALOGUE = load()
START = 1_700_000_000.0
STEP = 15.0
EXPECT = {
    "nvlinks": 18,
    "pcie_width": 16,
    "pcie_gen": 5,
    "ecc": True,
    "gpu_temperature_max": 90.0,
    "nics": "mlx5_[0-1]",
}
FLEET = Fleet(
    "t",
    {"h": NodeClass("h", gpus=2, expect={**EXPECT, "ib_rate": 400.0, "mtu": 4096})},
    {f"n{i}": Node(f"n{i}", "h", domains={"rack": f"r{i // 4}"}) for i in range(8)},
)
WELL: dict[str, dict[str, object]] = {
    "gpu": {
        "gpu_temperature": 60.0,
        "memory_temperature": 70.0,
        "memory_max_temperature": 95.0,
        "temperature_margin": 25.0,
        "gpu_utilisation": 90.0,
        "nvlinks_active": 18,
        "pcie_link_width": 16,
        "pcie_link_width_max": 16,
        "pcie_link_gen": 5,
        "clock_event_reasons": 4,
        "row_remap_failed": False,
        "row_remap_pending": False,
        "recovery_action": 0,
        "ecc_mode": True,
        "ecc_uncorrected_volatile": 3,
        "ecc_corrected_volatile": 100,
        "pcie_replays": 12,
        "thermal_violation": 1.5,
        "fabric_health_summary": 1,
        "fabric_manager_status": 3,
        "inforom_valid": True,
    },
    "node": {"gpu_count": 2, "clock_offset": 0.001, "clock_synchronised": True, "root_readonly": False},
    "nic": {"ib_state": 4, "ib_physical_state": 5, "ib_rate": 400.0, "net_mtu": 4096, "ib_link_downed": 1},
}
KEYS = {
    "gpu": [(n, str(i)) for n in FLEET.nodes for i in range(2)],
    "node": [(n, "") for n in FLEET.nodes],
    "nic": [(n, f"mlx5_{i}") for n in FLEET.nodes for i in range(2)],
}
RACK = ("n0", "n1", "n2", "n3")
BAD = "n7"  # row remap failed on its second GPU from the start

Disturb = Callable[[str, pl.DataFrame, float], pl.DataFrame]


def well(now: float) -> dict[str, pl.DataFrame]:
    frames = {}
    for kind, keys in KEYS.items():
        columns: dict[str, list[object]] = {name: [value] * len(keys) for name, value in WELL[kind].items()}
        if kind == "gpu":
            columns["row_remap_failed"] = [key == (BAD, "1") for key in keys]
        frames[kind] = pl.DataFrame(
            {"node": [k[0] for k in keys], "index": [k[1] for k in keys], "seen": [now - 3.0] * len(keys), **columns}
        )
    return frames


class Site:
    """The judge stage as a turn would run it."""

    def __init__(self) -> None:
        self.now, self.state, self.windows = START, JudgeState(), Windows(CATALOGUE)
        self.reading: Reading | None = None

    def turn(self, frames: dict[str, pl.DataFrame] | None, problems: tuple[str, ...] = (), down: str = "") -> Judgement:
        self.now += STEP
        if frames is not None:
            self.reading = latest(self.reading, TelemetryBatch("dcgm", self.now, frames, problems))
        readings = [self.reading] if self.reading else []
        built = build(FLEET, CATALOGUE, readings, self.now, down={"dcgm": down} if down else None)
        judgement = judge(CATALOGUE, self.windows.update(built), self.state, self.now)
        self.state = judgement.state
        return judgement


@lru_cache(maxsize=1)
def _settled() -> tuple[Site, frozenset[str]]:
    site = Site()
    for _ in range(80):
        judgement = site.turn(well(site.now + STEP))
    return site, frozenset(adverse(judgement.findings))


def settled() -> tuple[Site, frozenset[str]]:
    """A site after twenty minutes of good telemetry, when every window is covered, and what is true there."""
    site, before = _settled()
    return deepcopy(site), before


def adverse(findings: tuple[Finding, ...]) -> set[str]:
    return {f.key for f in findings if f.verdict is Verdict.TRUE and f.component.kind != "source"}


def of_source(judgement: Judgement) -> list[Finding]:
    return [f for f in judgement.findings if f.check == SOURCE_BLIND]


def test_a_well_fleet_has_only_its_true_fault() -> None:
    """The baseline: one finding, on the GPU that is bad, and none about the source."""
    site, before = settled()
    assert before == {"gpu-row-remap-failed@n7/gpu1"}
    assert of_source(site.turn(well(site.now + STEP))) == []


@pytest.mark.parametrize("down", ["", "connection refused"], ids=["silent", "down"])
def test_all_telemetry_stops(down: str) -> None:
    """Nothing new is true for half an hour, everything is unknown with the reason, and one finding names the source."""
    site, before = settled()
    for _ in range(120):
        judgement = site.turn(None, down=down)
        assert adverse(judgement.findings) == before
    (source,) = of_source(judgement)
    assert source.component.node == "dcgm"
    assert source.severity.value == "error"
    (fault,) = [f for f in judgement.findings if f.key in before]
    reason = UnknownReason.SOURCE_DOWN if down else UnknownReason.STALE
    assert fault.unknown is reason
    assert fault.since < START + 60
    groups = {g.check: g for g in judgement.unknown if g.reason is reason}
    assert groups["gpu-row-remap-failed"].count == len(KEYS["gpu"])
    assert groups["ib-port-down"].count == len(KEYS["nic"])
    after = site.turn(well(site.now + STEP))
    assert of_source(after) == []
    assert [f.unknown for f in after.findings] == [None]


def test_one_rack_falls_silent() -> None:
    """The rack's nodes become stale, and one warning names the source with exactly these nodes."""
    site, before = settled()
    for _ in range(40):
        frames = {k: f.filter(~pl.col("node").is_in(RACK)) for k, f in well(site.now + STEP).items()}
        judgement = site.turn(frames)
        assert adverse(judgement.findings) == before
    (source,) = of_source(judgement)
    assert "4 nodes: n[0-3]" in source.summary
    stale = {g.check: g for g in judgement.unknown if g.reason is UnknownReason.STALE}
    assert stale["gpu-row-remap-failed"].count == 8
    assert set(stale["gpu-row-remap-failed"].nodes) <= set(RACK)


def test_one_gpu_vanishes_from_the_page() -> None:
    """A GPU that is no longer reported is unknown; its node is not accused by its silence."""
    site, before = settled()
    for _ in range(40):
        frames = well(site.now + STEP)
        frames["gpu"] = frames["gpu"].filter(~((pl.col("node") == "n2") & (pl.col("index") == "1")))
        judgement = site.turn(frames)
    assert adverse(judgement.findings) == before
    assert "1 nodes: n2" in of_source(judgement)[0].summary


def garble(value: object) -> Disturb:
    return lambda _, frame, __: frame.with_columns(
        pl.lit(value).alias(c) for c in frame.columns if c not in ("node", "index", "seen")
    )


DISTURBANCES: dict[str, Disturb] = {
    "NaN": garble(math.nan),
    "infinity": garble(math.inf),
    "text": garble("garbage"),
    "null": garble(None),
    "blank": garble(9.223372036854775807e18),
    "stale": lambda _, f, now: f.with_columns(pl.lit(now - 3600).alias("seen")),
    "future": lambda _, f, now: f.with_columns(pl.lit(now + 86400).alias("seen")),
    "seen NaN": lambda _, f, __: f.with_columns(pl.lit(math.nan).alias("seen")),
    "no seen": lambda _, f, __: f.drop("seen"),
    "renamed": lambda _, f, __: f.rename({c: c + "_v2" for c in f.columns if c not in ("node", "index", "seen")}),
    "half": lambda _, f, __: f.head(f.height // 2).select(f.columns[: 3 + (f.width - 3) // 2]),
    "empty": lambda _, f, __: f.clear(),
    "no columns": lambda _, __, ___: pl.DataFrame(),
    "duplicates": lambda _, f, __: pl.concat([f, f, f.reverse()]),
    "shuffled": lambda _, f, __: f.reverse(),
    "other nodes": lambda _, f, __: f.with_columns(pl.col("node") + "x"),
    "null keys": lambda _, f, __: f.with_columns(pl.lit(None, dtype=pl.String).alias("node")),
    "old duplicates that are bad": lambda k, f, now: pl.concat(
        [f, f.with_columns(pl.lit(now - 9000).alias("seen"), *([pl.lit(True).alias("row_remap_failed")] if k == "gpu" else []))]
    ),
    "future duplicates that are bad": lambda k, f, now: pl.concat(
        [f, f.with_columns(pl.lit(now + 9000).alias("seen"), *([pl.lit(True).alias("row_remap_failed")] if k == "gpu" else []))]
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", DISTURBANCES)
def test_a_disturbance_accuses_nobody(name: str) -> None:
    """Each disturbance, for six minutes and back to good: nothing becomes true and what was true stands."""
    site, before = settled()
    for _ in range(25):
        frames = {k: DISTURBANCES[name](k, f, site.now + STEP) for k, f in well(site.now + STEP).items()}
        judgement = site.turn(frames, problems=("page could not be read whole",))
        assert adverse(judgement.findings) == before, name
    assert len(of_source(judgement)) == 1
    for _ in range(25):
        judgement = site.turn(well(site.now + STEP))
        assert adverse(judgement.findings) == before, name
    assert of_source(judgement) == []


@fewer(20)
@given(st.lists(st.tuples(st.sampled_from(sorted(DISTURBANCES)), st.integers(1, 8)), min_size=1, max_size=5))
def test_disturbances_in_any_order_accuse_nobody(plan: list[tuple[str, int]]) -> None:
    """Disturbances follow one another in any order and length, with good telemetry between or not."""
    site, before = settled()
    for name, turns in plan:
        for _ in range(turns):
            frames = {k: DISTURBANCES[name](k, f, site.now + STEP) for k, f in well(site.now + STEP).items()}
            assert adverse(site.turn(frames).findings) == before, plan
    for _ in range(3):
        judgement = site.turn(well(site.now + STEP))
    assert adverse(judgement.findings) == before


@fewer(20)
@given(st.data())
def test_any_subset_of_values_may_vanish(data: st.DataObject) -> None:
    """Blanking any cells of the frames never makes a finding that the whole frames do not make."""
    site, before = settled()
    blank = data.draw(st.sets(st.sampled_from([(k, c) for k in WELL for c in WELL[k]]), max_size=20))
    keep = data.draw(st.lists(st.booleans(), min_size=16, max_size=16))
    for _ in range(12):
        frames = {}
        for kind, frame in well(site.now + STEP).items():
            mask = pl.Series((keep * 2)[: frame.height])
            frames[kind] = frame.with_columns(
                pl.when(mask).then(pl.col(c)).otherwise(None).alias(c) for c in frame.columns if (kind, c) in blank
            )
        assert adverse(site.turn(frames).findings) == before


def test_a_reading_is_told_by_its_source() -> None:
    """Names that nobody declared are evidence about the source, never about a node."""
    site, _ = settled()
    now = site.now + STEP
    batch = TelemetryBatch("dcgm", now, well(now), ("7 lines cut",), ("ghost-1",))
    site.reading = replace(batch)
    (source,) = of_source(site.turn(None))
    assert any(e.what == "names not declared" and "ghost-1" in e.value for e in source.evidence)
    assert any(e.value == "7 lines cut" for e in source.evidence)
