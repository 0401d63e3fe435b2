"""Facts: what is remembered between turns, and a history that cannot be trusted."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from nodeworthy.judge.features import Windows
from nodeworthy.ports import TelemetryBatch
from nodeworthy.record.history import History
from nodeworthy.service.facts import Facts
from tests.pictures import START, Site, node, telemetry, xid


class Broken(History):
    """A history whose replay fails in a way that nobody foresaw."""

    tried = 0

    def replay(self, *_: object) -> int:
        self.tried += 1
        raise pl.exceptions.ComputeError("no such page")


def test_a_replay_that_fails_is_said_and_tried_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Windows begin anew, and the turn goes on."""
    site = Site()
    broken = Broken(tmp_path, Windows(site.world.catalogue).signals())
    site.facts = Facts(Windows(site.world.catalogue), broken)
    for turn in range(3):
        picture = site.turn([node("n1")], telemetry(["n1"], START + 15 * turn, bad=["n1"]))
    assert "gpu-row-remap-failed@n1/gpu1" in picture.findings
    assert broken.tried == 1
    assert "no such page" in caplog.text


def booted(names: dict[str, float], at: float) -> TelemetryBatch:
    rows = {
        "node": list(names),
        "index": [""] * len(names),
        "seen": [at] * len(names),
        "boot_time": list(names.values()),
    }
    return TelemetryBatch("dcgm", at, {"node": pl.DataFrame(rows)})


def test_boots_come_from_telemetry_where_no_scheduler_says_them() -> None:
    """A boot that an exporter tells ends what the log of the boot before it said."""
    site = Site()
    line = xid("n1", START + 10, read_at=START + 12)
    site.turn(None, booted({"n1": START - 5000}, START + 15), [line])
    assert site.picture is not None
    assert site.picture.boots == {"n1": START - 5000}
    assert "xid-79@n1" in site.picture.findings
    picture = site.turn(None, booted({"n1": START + 500}, START + 615), [], step=600)
    assert picture.boots == {"n1": START + 500}
    assert "xid-79@n1" not in picture.findings
    assert site.turn(None, booted({"n1": START + 1e6}, site.now + 15), []).boots == {"n1": START + 500}


def test_two_sources_of_one_boot_are_one_boot() -> None:
    """Scheduler and exporter compute the boot time each in its way; only another boot is news."""
    site = Site()
    for nodes in ([node("n1", boot_at=START - 9000)], None, [node("n1", boot_at=START - 9000)]):
        picture = site.turn(nodes, booted({"n1": START - 8960}, site.now + 15))
        assert picture.boots == {"n1": START - 9000}
    # the scheduler still says the boot before, until slurmd registers
    picture = site.turn([node("n1", boot_at=START - 9000)], booted({"n1": START - 100}, site.now + 15))
    assert picture.boots == {"n1": START - 100}


def test_a_source_with_a_long_interval_does_not_flap() -> None:
    """Read every five minutes, its last word stands until three readings are missed."""
    site = Site()
    site.readings["dcgm"] = replace(site.readings["dcgm"], interval_s=300.0)
    site.turn([node("n1")], telemetry(["n1"], START + 15, bad=["n1"]))
    for _ in range(14):
        found = site.turn([node("n1")], step=60.0).findings["gpu-row-remap-failed@n1/gpu1"]
        assert found.unknown is None
    picture = site.turn([node("n1")], step=120.0)
    assert picture.findings["gpu-row-remap-failed@n1/gpu1"].unknown is not None
