"""Facts: what is remembered between turns, and a history that cannot be trusted."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from nodeworthy.judge.features import Windows
from nodeworthy.record.history import History
from nodeworthy.service.facts import Facts
from tests.pictures import START, Site, node, telemetry


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
