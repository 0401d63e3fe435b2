"""The fleet file of a real Slurm: imported, equal to it, and different once Slurm has changed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from labs.slurm_lab import SlurmLab
from nodeworthy.adapters.files.fleet import load_fleet
from nodeworthy.model.fleet import NodeClass

SOURCE = Path(__file__).resolve().parents[2] / "src"


def nodeworthy(lab: SlurmLab, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """The command as a user runs it who has the lab's Slurm commands on PATH."""
    env = {**os.environ, **lab.env, "PYTHONPATH": str(SOURCE)}
    command = [sys.executable, "-m", "nodeworthy.cli.main", *words]
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.slurm
@pytest.mark.parametrize("version", ["22.05", "24.11", "26.05"])
def test_import_and_diff(version: str, slurm_lab: Callable[..., SlurmLab], tmp_path: Path) -> None:
    """Classes, leaves and names come from Slurm; at once there is no difference; a changed file is one; nothing is
    written to Slurm."""
    lab = slurm_lab(version)
    before = lab.update_requests()
    done = nodeworthy(lab, tmp_path, "fleet", "import", "slurm")
    assert done.returncode == 0, done.stderr
    fleet = load_fleet(tmp_path / "fleet.toml")
    assert set(lab.node_names) <= set(fleet.nodes)
    node = fleet.nodes[lab.name(1)]
    assert node.names.scheduler == {fleet.name: lab.name(1)}
    assert node.domains["leaf"].startswith("leaf")
    assert fleet.class_of(node.name) == NodeClass("h100x8-64c-2t", 8, "h100", 64, 2_000_000, 2)
    assert len((tmp_path / "fleet.toml").read_text().splitlines()) < 30

    assert nodeworthy(lab, tmp_path, "fleet", "check").returncode == 0
    assert nodeworthy(lab, tmp_path, "fleet", "diff", "slurm").returncode == 0
    path = tmp_path / "fleet.toml"
    path.write_text(path.read_text().replace("gpus = 8", "gpus = 4  # ours"))
    differs = nodeworthy(lab, tmp_path, "fleet", "diff", "slurm", "-o", "json")
    assert differs.returncode == 3, differs.stderr
    (row,) = json.loads(differs.stdout)["items"]
    assert (row["change"], row["now"], row["count"]) == ("class", "gpus 4 → 8", len(fleet.nodes))
    assert lab.update_requests() == before


@pytest.mark.slurm
def test_a_dead_controller_writes_nothing(slurm_lab: Callable[..., SlurmLab], tmp_path: Path) -> None:
    """Without an answer there is no fleet file, and a file that is there stays as it is."""
    lab = slurm_lab("22.05", use="fleet, dead controller", nodes=2)
    assert nodeworthy(lab, tmp_path, "fleet", "import", "slurm").returncode == 0
    before = (tmp_path / "fleet.toml").read_text()
    lab.stop_controller()
    for words in (("import", "slurm", "--force"), ("diff", "slurm", "--write")):
        failed = nodeworthy(lab, tmp_path, "fleet", *words)
        assert failed.returncode == 1 and "error NW-3" in failed.stderr
    assert (tmp_path / "fleet.toml").read_text() == before
