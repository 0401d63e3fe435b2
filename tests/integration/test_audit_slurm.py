"""The audit on real Slurm clusters: sixteen nodes in sixteen situations, three versions, with accounting."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from labs.slurm_lab import SlurmLab
from labs.slurm_states import ExpectedNode
from tests.conftest import SLURM_VERSIONS, Labs

SOURCE = str(Path(__file__).resolve().parents[2] / "src")
States = Callable[[str], tuple[SlurmLab, dict[str, ExpectedNode]]]

pytestmark = [pytest.mark.slurm, pytest.mark.slow]


def audit(lab: SlurmLab | None, *options: str) -> subprocess.CompletedProcess[str]:
    """Run the command as a person would, in a process of its own."""
    env = {**os.environ, **(dict(lab.env) if lab else {}), "PYTHONPATH": SOURCE}
    argv = [sys.executable, "-m", "nodeworthy.cli.main", "audit", "slurm", *options]
    return subprocess.run(argv, capture_output=True, text=True, env=env, timeout=120, check=False)


def report(lab: SlurmLab | None, *options: str) -> dict[str, Any]:
    done = audit(lab, *options, "-o", "json")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["schema"] == "nodeworthy.audit/1"
    return dict(document)


@pytest.fixture(params=SLURM_VERSIONS)
def states(request: pytest.FixtureRequest, slurm_states: States) -> tuple[SlurmLab, dict[str, ExpectedNode]]:
    """A lab of this version with all its states made; shared with the other readers."""
    return slurm_states(request.param)


@pytest.fixture
def accounted(states: tuple[SlurmLab, dict[str, ExpectedNode]]) -> SlurmLab:
    """The same lab, where it has accounting."""
    lab, _ = states
    if not lab.options.database:
        pytest.skip("mariadbd is not installed, so the labs have no accounting")
    return lab


def test_state_cause_and_owner_of_every_node_are_right(states: tuple[SlurmLab, dict[str, ExpectedNode]]) -> None:
    """Of each node that is out the audit says the right state, cause and owner, and of no other that it is out."""
    lab, expected = states
    found = {row["node"]: row for row in report(lab, "--since", "1d")["out_now"]}
    out = {name: e for name, e in expected.items() if e.cause}
    assert set(found) == set(out)
    for name, e in out.items():
        row = found[name]
        assert set(row["state"].split("+")) >= {e.base, *e.flags}, name
        assert (row["cause"], row["owner"], row["reason"]) == (e.cause, e.owner, e.reason), name


def test_hours_are_conserved_and_nothing_is_written(accounted: SlurmLab) -> None:
    """Lost hours are bounded by the window, and slurmctld saw no update while the audit ran."""
    lab = accounted
    before = lab.update_requests()
    totals = report(lab, "--since", "1d")["totals"]
    assert totals["nodes"] == 16
    assert 0 < totals["lost_gpu_hours"] <= totals["capacity_gpu_hours"]
    assert totals["jobs"] >= 6
    assert lab.update_requests() == before


def test_saved_files_say_the_same_as_the_live_cluster(accounted: SlurmLab, tmp_path: Path) -> None:
    """What people send in files yields the same nodes, causes and outages as reading directly."""
    lab = accounted
    fields = "JobIDRaw,User,State,Start,End,NNodes,NodeList,AllocTRES"
    saved = {
        "jobs": ("sacct", "-a", "-X", "-D", "-P", "-S", "now-1days", "-o", fields),
        "events": ("sacctmgr", "-P", "show", "event", "start=now-1days",
                   "format=Cluster,NodeName,TimeStart,TimeEnd,State,User,Reason"),
        "nodes": ("scontrol", "-o", "-d", "show", "nodes"),
    }  # fmt: skip
    options = []
    for what, argv in saved.items():
        env = {**os.environ, **lab.env, "SLURM_TIME_FORMAT": "%s"}
        done = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=60, check=True)
        (tmp_path / what).write_text(done.stdout)
        options += [f"--{what}", str(tmp_path / what)]
    live, files = report(lab, "--since", "1d"), report(None, *options, "--since", "1d")
    for key in ("node", "cause", "owner", "state"):
        assert [r[key] for r in files["out_now"]] == [r[key] for r in live["out_now"]]
    assert {(c["cause"], c["outages"]) for c in files["causes"]} == {(c["cause"], c["outages"]) for c in live["causes"]}


def test_a_cluster_without_a_database_says_what_it_does_not_know(slurm_lab: Labs) -> None:
    """Who is out is known without slurmdbd; the past is said to be unknown, never counted as nothing."""
    lab = slurm_lab("22.05", use="audit-plain", nodes=2)
    lab.run("scontrol", "update", f"nodename={lab.name(2)}", "state=drain", "reason=Xid 79 on GPU 3")
    document = report(lab, "--since", "1d")
    assert [row["node"] for row in document["out_now"]] == [lab.name(2)]
    assert document["totals"]["jobs"] is None
    said = " ".join(gap["what"] for gap in document["gaps"])
    assert "no event history" in said
    assert "no job history" in said


def test_a_dead_controller_is_an_error_not_an_empty_fleet() -> None:
    """Without an answer there is no report; the message says what to try."""
    done = subprocess.run(
        [sys.executable, "-m", "nodeworthy.cli.main", "audit", "slurm", "--timeout", "20"],
        capture_output=True, text=True, timeout=60, check=False,
        env={**os.environ, "PYTHONPATH": SOURCE, "SLURM_CONF": "/nonexistent/slurm.conf"},
    )  # fmt: skip
    assert done.returncode == 1
    assert "error NW-3" in done.stderr
    assert done.stdout == ""
