"""The audit's command line: files in, four renderings out, errors that say what to do."""

from __future__ import annotations

import gzip
import json
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from benchmarks.audit import GPUS, generate, grade
from nodeworthy.commands.audit import audit
from nodeworthy.errors import BadFile, BadRequest
from nodeworthy.reports.audit.inputs import Window
from nodeworthy.wiring.audit_sources import Request, window

SOURCE = str(Path(__file__).resolve().parents[3] / "src")


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, object]:
    """A small invented history with planted faults; the same generator as the benchmark."""
    folder = tmp_path_factory.mktemp("history")
    return folder, generate(folder, nodes=500, jobs=60_000, days=90)


def run(*options: str) -> Result:
    return CliRunner().invoke(audit, ["slurm", *options], catch_exceptions=False)


def of(folder: Path, *options: str) -> Result:
    files = [f"--{what}={folder / what}.txt" for what in ("jobs", "events", "nodes")]
    return run(*files, "--since", "90d", *options)


def test_what_was_planted_is_found_and_nobody_else_is_named(fleet: tuple[Path, object]) -> None:
    """Lemons and black holes exactly; decoys never; lost hours as planted, to a part in a thousand."""
    folder, truth = fleet
    result = of(folder, "-o", "json", "--until", "2026-09-21T14:13:20+00:00")
    document = json.loads(result.stdout)
    assert document["schema"] == "nodeworthy.audit/1"
    assert document["totals"]["gpus"] == 500 * GPUS
    assert grade(document, truth) == []  # type: ignore[arg-type]


def test_the_first_lines_answer(fleet: tuple[Path, object]) -> None:
    """How much, to what, and which nodes: before anything else, on a page."""
    folder, _ = fleet
    lines = of(folder).stdout.splitlines()
    assert re.match(r"Lost [\d,]+ of [\d,]+ GPU-hours \(\d", lines[1])
    assert "Most went to:" in " ".join(lines[2:4])
    assert any("NEEDS A PERSON" in line for line in lines[:6])
    assert len(lines) <= 66
    assert max(map(len, lines)) <= 120


def test_markdown_and_html_carry_the_same_answer(fleet: tuple[Path, object], tmp_path: Path) -> None:
    """Three renderings, one set of sentences; the page fetches nothing and runs nothing."""
    folder, _ = fleet
    first = of(folder, "--html", str(tmp_path / "a.html"), "--markdown", str(tmp_path / "a.md")).stdout.splitlines()[1]
    page, text = (tmp_path / "a.html").read_text(), (tmp_path / "a.md").read_text()
    assert first in page
    assert first in text
    assert "<script" not in page
    assert not re.search(r"""(src|href)=["']?https?:|url\(["']?https?:|@import""", page)
    assert page.count("<svg") == page.count('role="img"') == page.count("As a table") >= 3
    assert "prefers-color-scheme: dark" in page
    ids = re.findall(r'\bid="([^"]+)"', page)
    assert len(ids) == len(set(ids))


def test_text_from_outside_cannot_break_the_pages(tmp_path: Path) -> None:
    """A reason is text, whatever it holds."""
    evil = "<script>alert(1)</script> | `x` [a](http://b)"
    (tmp_path / "nodes").write_text(
        f"NodeName=n1 Gres=gpu:8 RealMemory=1000 State=IDLE+DRAIN Partitions=p Reason={evil} [root@1780000000]\n"
    )
    options = ("--nodes", str(tmp_path / "nodes"), "--until", "2026-09-01", "--html", str(tmp_path / "a.html"),
               "--markdown", str(tmp_path / "a.md"))  # fmt: skip
    assert run(*options).exit_code == 0
    assert "<script" not in (tmp_path / "a.html").read_text()
    assert "&lt;script&gt;" in (tmp_path / "a.html").read_text()
    markdown = (tmp_path / "a.md").read_text()
    assert "<script" not in markdown
    assert "[a](http" not in markdown


@pytest.mark.parametrize("since", ["2h30m", "now-2h30m", "2026-08-31T21:30", "2026-08-31T21:30Z", "@1788211800"])
def test_times_are_of_one_grammar(since: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in every command, a time without an offset is UTC, whatever zone this machine or the files are in."""
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    try:
        for zone in ([], ["--timezone", "Asia/Tokyo"]):
            request = Request.parse(
                since=since, until="2026-09-01", jobs=None, events=None, nodes=None, logs=(), timezone=(zone or [""])[-1],
                cluster=None, timeout=10,
            )  # fmt: skip
            assert window(request, 0.0) == Window(1788211800, 1788220800)
    finally:
        monkeypatch.undo()
        time.tzset()


def test_hosts_of_logs_are_resolved_as_everywhere(tmp_path: Path) -> None:
    """Case, domains and NodeHostName as the rest of Nodeworthy reads them; a name of two nodes is nobody's."""
    (tmp_path / "nodes").write_text(
        "NodeName=n1 NodeHostName=Alpha NodeAddr=10.0.0.1 Gres=gpu:8 RealMemory=1000 State=IDLE Partitions=p\n"
        "NodeName=n2 NodeHostName=shared NodeAddr=n2.x.org Gres=gpu:8 RealMemory=1000 State=IDLE Partitions=p\n"
        "NodeName=n3 NodeHostName=shared NodeAddr=10.0.0.3 Gres=gpu:8 RealMemory=1000 State=IDLE Partitions=p\n"
    )
    hosts = ["ALPHA.X.Org", "N1", "10.0.0.1", "n2.x.org", "shared", "n3"]
    xid = "kernel: NVRM: Xid (PCI:0000:4e:00): 79, pid=12, name=python, GPU has fallen off the bus."
    lines = (f"2026-08-31T10:0{k}:00+00:00 {host} {xid}\n" for k, host in enumerate(hosts))
    (tmp_path / "kern.log").write_text("".join(lines))
    options = ("--nodes", str(tmp_path / "nodes"), "--until", "2026-09-01", "--logs", str(tmp_path / "kern.log"))
    document = json.loads(run(*options, "--since", "9d", "-o", "json").stdout)
    assert {row["node"]: row["times"] for row in document["kernel"]["rows"]} == {"n1": 3, "n2": 1, "n3": 1}
    assert [gap["what"] for gap in document["gaps"] if "shared" in gap["what"]] == [
        "1 log errors are of hosts that are no node (shared)"
    ]


def test_compressed_files_are_read(fleet: tuple[Path, object], tmp_path: Path) -> None:
    """People send .gz."""
    folder, _ = fleet
    options = []
    for what in ("jobs", "events", "nodes"):
        packed = tmp_path / f"{what}.gz"
        packed.write_bytes(gzip.compress((folder / f"{what}.txt").read_bytes()))
        options += [f"--{what}", str(packed)]
    plain = json.loads(of(folder, "-o", "json").stdout)
    assert json.loads(run(*options, "--since", "90d", "-o", "json").stdout)["totals"] == plain["totals"]


def test_jobs_alone_give_a_report_that_says_what_is_missing(fleet: tuple[Path, object]) -> None:
    """No nodes, no events: unknown is written as unknown."""
    folder, _ = fleet
    result = run("--jobs", str(folder / "jobs.txt"), "-o", "json")
    document = json.loads(result.stdout)
    assert document["totals"]["lost_gpu_hours"] is None
    assert document["totals"]["allocated_gpu_hours"] > 0
    assert len(document["gaps"]) >= 2
    assert "Lost ? of ? " in run("--jobs", str(folder / "jobs.txt")).stdout


def test_nodes_alone_give_a_lower_bound(fleet: tuple[Path, object], tmp_path: Path) -> None:
    """Without history only what is out now is known to be lost: at least so much."""
    (tmp_path / "nodes").write_text(
        "NodeName=n1 Gres=gpu:8 RealMemory=1000 State=IDLE+DRAIN Partitions=p Reason=Xid 79 [root@1780000000]\n"
    )
    until = ("--nodes", str(tmp_path / "nodes"), "--until", "2026-09-01T00:00:00+00:00", "--since", "10d")
    assert "Lost at least 1,920 of 1,920 GPU-hours" in run(*until).stdout


@pytest.mark.parametrize("content", ["", "no header\n", "a|b|c\n1|2|3\n", "JobIDRaw|User|State\n1|a|COMPLETED\n"])
def test_a_file_that_is_no_accounting_is_refused_with_a_remedy(content: str, tmp_path: Path) -> None:
    """The error names the file and the command that makes a right one."""
    (tmp_path / "jobs").write_text(content)
    with pytest.raises(BadFile, match=r"jobs") as caught:
        run("--jobs", str(tmp_path / "jobs"))
    assert "sacct" in str(caught.value) + caught.value.hint


@pytest.mark.parametrize("since", ["yesterday", "90", "-5d", "90x"])
def test_a_time_that_is_none_is_refused(since: str, fleet: tuple[Path, object]) -> None:
    """With a hint that shows how to write it."""
    folder, _ = fleet
    with pytest.raises(BadRequest) as caught:
        of(folder, f"--since={since}")
    assert "90d" in caught.value.hint or "--since" in caught.value.hint


def test_names_for_pipes(fleet: tuple[Path, object]) -> None:
    """`-o nodeset` prints the nodes that need a person, folded, and nothing else."""
    folder, truth = fleet
    from nodeworthy.model.nodeset import unfold

    named = set(unfold(of(folder, "-o", "nodeset").stdout.strip()))
    assert truth.lemons | truth.black_holes <= named  # type: ignore[attr-defined]


def test_help_has_an_example_and_loads_nothing_heavy() -> None:
    """`--help` names the commands that make the files, and imports neither Polars nor matplotlib nor Rich."""
    argv = [sys.executable, "-X", "importtime", "-m", "nodeworthy.cli.main", "audit", "slurm", "--help"]
    done = subprocess.run(argv, capture_output=True, text=True, env={"PYTHONPATH": SOURCE}, check=True)
    assert "Example:" in done.stdout
    assert "sacctmgr -P show event" in done.stdout
    for heavy in ("polars", "matplotlib", "rich.console", "scipy"):
        assert f" {heavy}\n" not in done.stderr


CONFIG = "AccountingStorageType = accounting_storage/slurmdbd\nClusterName = fake\nSLURM_VERSION = 23.11.4\n"
NODE = "NodeName=n1 Gres=gpu:8 RealMemory=1000 State=IDLE+DRAIN Partitions=p Reason=Xid 79 on GPU 3 [root@1780000000]\n"


def fake_slurm(folder: Path, **scripts: str) -> dict[str, str]:
    """Slurm's commands as scripts, first in PATH."""
    for name, script in scripts.items():
        (folder / name).write_text(f"#!/bin/sh\n{script}\n")
        (folder / name).chmod(0o755)
    (folder / "config").write_text(CONFIG)
    (folder / "node").write_text(NODE)
    return {"PATH": f"{folder}:/usr/bin:/bin", "PYTHONPATH": SOURCE}


SCONTROL = 'case "$*" in *config*) cat "$(dirname "$0")/config";; *) cat "$(dirname "$0")/node";; esac'


def test_a_source_that_fails_leaves_the_rest_standing(tmp_path: Path) -> None:
    """slurmdbd is down: who is out is still known, the past is said to be unknown, exit code 6."""
    down = "echo 'sacct: error: slurm_persist_conn_open: failed to connect' >&2; exit 1"
    env = fake_slurm(tmp_path, scontrol=SCONTROL, sacct=down, sacctmgr=down)
    argv = [sys.executable, "-m", "nodeworthy.cli.main", "audit", "slurm", "-o", "json"]
    done = subprocess.run(argv, capture_output=True, text=True, env=env, timeout=60, check=False)
    assert done.returncode == 6
    document = json.loads(done.stdout)
    assert [(r["node"], r["cause"]) for r in document["out_now"]] == [("n1", "gpu-lost")]
    assert document["totals"]["jobs"] is None
    said = " ".join(gap["what"] for gap in document["gaps"])
    assert "jobs: `sacct" in said
    assert "node events: `sacctmgr" in said


def test_half_an_answer_is_no_answer(tmp_path: Path) -> None:
    """sacct prints some jobs and then fails: none of them is used."""
    half = 'case "$*" in *helpformat*) echo JobIDRaw User State Start End NNodes NodeList AllocTRES;; *) echo "JobIDRaw|State"; exit 1;; esac'
    env = fake_slurm(
        tmp_path, scontrol=SCONTROL, sacct=half, sacctmgr="echo 'Cluster|NodeName|TimeStart|TimeEnd|State|User|Reason'"
    )
    argv = [sys.executable, "-m", "nodeworthy.cli.main", "audit", "slurm", "-o", "json"]
    done = subprocess.run(argv, capture_output=True, text=True, env=env, timeout=60, check=False)
    assert done.returncode == 6
    assert json.loads(done.stdout)["totals"]["jobs"] is None


def test_kernel_logs_are_set_against_outages(fleet: tuple[Path, object], tmp_path: Path) -> None:
    """Trusted errors of known hosts count; other hosts are said; a user's own line is no evidence."""
    folder, _ = fleet
    xid = "kernel: NVRM: Xid (PCI:0000:4e:00): 79, pid=12, name=python, GPU has fallen off the bus."
    (tmp_path / "kern.log").write_text(
        f"2026-09-01T10:00:00+00:00 gpu00001.example.org {xid}\n"
        f"2026-09-01T10:00:00+00:00 stranger {xid}\n"
        f"2026-09-01T10:00:00+00:00 gpu00002 myjob[77]: {xid.removeprefix('kernel: ')}\n"
    )
    document = json.loads(of(folder, "--logs", str(tmp_path / "kern.log"), "-o", "json").stdout)
    assert [row["node"] for row in document["kernel"]["rows"]] == ["gpu00001"]
    assert any("stranger" in gap["what"] for gap in document["gaps"])
    assert "KERNEL LOG  1 error on 1 node" in of(folder, "--logs", str(tmp_path / "kern.log")).stdout
