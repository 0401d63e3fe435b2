"""The audit against a real Prometheus and a real VictoriaMetrics that hold two days of a small fleet, with known truth."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from labs.metrics_history import Sample, prometheus_with, victoria_metrics_with
from labs.metrics_servers import NotHere
from nodeworthy.commands.audit import audit

SINCE = 1_790_000_000 // 86400 * 86400
HOURS, HOUR, STEP = 48, 3600, 300
GPUS = 4
OLD, NEW, TEMPERATURE = "DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_GPU_UTIL_RATIO", "DCGM_FI_DEV_GPU_TEMP"
CLOCKS = "DCGM_FI_DEV_CLOCK_THROTTLE_REASONS"
SERVERS = {"prometheus": prometheus_with, "victoria-metrics": victoria_metrics_with}


def says(
    node: str, value: float, hours: tuple[float, float] = (0, HOURS), *, gpus: int = GPUS, metric: str = OLD, **labels: str
) -> Iterator[Sample]:  # fmt: skip
    """What the exporter of a node says every five minutes, a little after the clock's strokes."""
    for gpu in range(gpus):
        named = {"Hostname": node, "instance": f"{node}:9400", "gpu": str(gpu), **labels}
        named = {k: v for k, v in named.items() if v}
        for at in range(int(hours[0] * HOUR), int(hours[1] * HOUR), STEP):
            yield metric, named, SINCE + at + 7.0, value


def history() -> Iterator[Sample]:
    yield from says("n1", 50)
    yield from says("n2", 100, gpus=2)
    for sample in says("n2", 0):
        if sample[1]["gpu"] in "23":
            yield sample
    yield from says("n3", 0)
    yield from says("n4", 100, (0, 4))  # then GPU 3 falls off the bus
    yield from says("n4", 100, (4, HOURS), gpus=3)
    yield from says("n5", 25, (0, 5))  # then the exporter dies, and lives again after ten hours
    yield from says("n5", 25, (15, HOURS))
    yield from says("n6", 0)
    yield from says("n6", 0x4, metric=CLOCKS, hours=(0, 8))  # power cap: normal
    yield from says("n6", 0x44, metric=CLOCKS, hours=(8, 11))  # thermal slowdown
    yield from says("n6", 0x0, metric=CLOCKS, hours=(11, 20))
    yield from says("n6", 0x80, metric=CLOCKS, hours=(20, 21.5))  # power brake, while the node is out
    yield from says("n6", 0x1, metric=CLOCKS, hours=(21.5, HOURS))
    for hour in range(4):  # each hour a job ends at half past and another begins: other labels, other series
        yield from says("n7", 100, (hour, hour + 0.5), hpc_job=str(2 * hour))
        yield from says("n7", 0, (hour + 0.5, hour + 1), hpc_job=str(2 * hour + 1))
    yield from says("n8", 80)
    yield from says("n8", 80, metric=NEW)  # both names at once, as while an exporter is replaced
    yield from says("n9", 100, (0, 3), GPU_I_ID="1")
    yield from says("n10", 100, (0, 5), Hostname="", instance="n10.example.org:9400")
    yield from says("n10", 9223372036854775794.0, (5, 10), Hostname="", instance="n10.example.org:9400")
    # no usable utilisation, but the GPUs are there: unseen, not gone
    yield from says("n10", 40, (0, 10), metric=TEMPERATURE, Hostname="", instance="n10.example.org:9400")
    yield from says("stranger", 100, (0, 3))
    yield from says("n1", 100, (0, 3), Hostname="n2")  # says that it is n2, and was asked as n1: nobody's


JOBS = (  # user, nodes, width, GPUs, first hour, last hour
    ("ann", "n1", 1, 4, 0, 24),
    ("bob", "n2", 1, 2, 0, 10),
    ("carl", "n3", 1, 2, 0, 6),
    ("dora", "n3", 1, 2, 0, 6),
    ("ann", "n4", 1, 4, 0, 12),
    ("bob", "n5", 1, 4, 0, 10),
    ("eve", "n7", 1, 4, 0, 4),
    ("eve", "n8", 1, 4, 0, 10),
    ("mia", "n9", 1, 14, 0, 3),
    ("tom", "n10", 1, 4, 0, 10),
    ("two", "n[2,8]", 2, 4, 30, 32),
)
# "two" holds half of n8, of which more than half is busy: taken to be its half.
BUSY = 48 + 20 + 0 + (16 + 24) + 5 + 8 + 32 + 20 + (4 + 4)
IDLE_OF = {"ann": 48, "bob": 15, "eve": 8 + 8, "tom": 0, "two": 0}
IDLE_OF_NOBODY = 24
GONE, DARK, UNTOLD = 8, 20 + 20, 14 * 3


def seconds(hour: float) -> int:
    return int(SINCE + hour * HOUR)


def write(folder: Path) -> list[str]:
    """The three files of Slurm, and the options that name them."""
    lines = ["JobIDRaw|User|State|Start|End|NNodes|NodeList|AllocTRES|FailedNode"]
    lines += [
        f"{k}|{user}|COMPLETED|{seconds(a)}|{seconds(b)}|{width}|{nodes}|gres/gpu={gpus}|"
        for k, (user, nodes, width, gpus, a, b) in enumerate(JOBS, 1)
    ]
    (folder / "jobs").write_text("\n".join(lines) + "\n")
    sizes = {f"n{k}": GPUS for k in range(1, 11)} | {"n9": 14}
    (folder / "nodes").write_text(
        "".join(f"NodeName={n} Gres=gpu:{g} RealMemory=1 State=IDLE Partitions=p\n" for n, g in sizes.items())
    )
    (folder / "events").write_text(
        "Cluster|NodeName|TimeStart|TimeEnd|State|User|Reason\n"
        f"c|n6|{seconds(20)}|{seconds(22)}|DOWN*|slurm(64030)|Not responding\n"
    )
    until = time.strftime("%Y-%m-%dT%H:%M:%S+00:00", time.gmtime(seconds(HOURS)))
    files = [f"--{what}={folder / what}" for what in ("jobs", "nodes", "events")]
    return [*files, "--since=2d", f"--until={until}"]


@pytest.fixture(scope="module", params=list(SERVERS))
def url(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    try:
        with SERVERS[request.param](tmp_path_factory.mktemp(request.param), list(history())) as address:
            yield address
    except NotHere as why:
        pytest.skip(str(why))


@pytest.fixture
def report(url: str, tmp_path: Path) -> dict[str, Any]:
    options = write(tmp_path)
    done = CliRunner().invoke(audit, ["slurm", *options, "--prometheus", url, "-o", "json"], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def test_the_hours_are_the_planted_ones(report: dict[str, Any]) -> None:
    """Busy, idle, gone, dark and untold, each to a thousandth of the GPU-hours held."""
    use = report["utilisation"]
    near = {"abs": 0.01 * use["allocated_gpu_hours"] / 10}
    assert use["hours_read"] == use["hours_asked"] == HOURS
    assert use["busy_gpu_hours"] == pytest.approx(BUSY, **near)
    assert use["idle_gpu_hours"] == pytest.approx(sum(IDLE_OF.values()) + IDLE_OF_NOBODY, **near)
    assert use["gone_gpu_hours"] == pytest.approx(GONE, **near)
    assert use["dark_gpu_hours"] == pytest.approx(DARK, **near)
    assert use["untold_gpu_hours"] == pytest.approx(UNTOLD, **near)
    held = sum((b - a) * gpus for _, _, _, gpus, a, b in JOBS)
    assert use["allocated_gpu_hours"] == pytest.approx(held)
    assert held == pytest.approx(report["totals"]["allocated_gpu_hours"])


def test_idle_hours_have_an_owner_only_where_one_user_was_alone(report: dict[str, Any]) -> None:
    """Two users who share a node's hour are not told apart."""
    idle = {u["user"]: u["idle_gpu_hours"] for u in report["utilisation"]["users"]}
    assert idle == pytest.approx(IDLE_OF, abs=0.3)
    assert report["utilisation"]["idle_of_nobody_gpu_hours"] == pytest.approx(IDLE_OF_NOBODY, abs=0.1)


def test_gone_slowed_and_unseen_nodes_are_named(report: dict[str, Any]) -> None:
    """GPU 3 of n4 from hour 4 on; n6 for three hours in service and not while it was out; n5 and n10 without usable
    telemetry, which is said and not counted as idle."""
    use = report["utilisation"]
    gone, slowed = use["troubles"]
    assert (gone["node"], gone["kind"], gone["first"], gone["last"]) == ("n4", "gone", seconds(4), seconds(11))
    assert gone["hours"] == pytest.approx(8, abs=0.1)
    assert (slowed["node"], slowed["kind"]) == ("n6", "throttled")
    assert slowed["hours"] == pytest.approx(3, abs=0.2)
    dark = {d["node"]: (d["dark_node_hours"], d["held_node_hours"]) for d in use["dark_nodes"]}
    assert dark == {"n5": (5, 10), "n10": (5, 10)}
    assert 1 - use["seen_node_hours"] / use["held_node_hours"] == pytest.approx(10 / 90)


def test_what_could_not_be_used_is_said(report: dict[str, Any]) -> None:
    """Unknown names, torn names, MIG, and telemetry that is missing."""
    said = " ".join(gap["what"] for gap in report["gaps"])
    assert "1 names that are no node (stranger)" in said
    assert "name two nodes at once" in said
    assert "1 nodes have MIG instances (n9)" in said
    assert "10 of 90 allocated node-hours on 2 nodes have no telemetry" in said


def test_every_rendering_carries_it(url: str, tmp_path: Path) -> None:
    """One line at the top of the page, two sections, a picture with its table."""
    options = [*write(tmp_path), "--prometheus", url, "--html", f"{tmp_path}/a.html", "--markdown", f"{tmp_path}/a.md"]
    page = CliRunner().invoke(audit, ["slurm", *options], catch_exceptions=False).stdout
    flat = " ".join(page.split())
    assert "ran a kernel" in " ".join(page.splitlines()[2:5])
    assert "WHAT ALLOCATED GPUS DID Of " in flat
    assert "Telemetry covers 88.9 % of the allocated node-hours" in flat
    assert "GPUS THAT ARE GONE, SLOWED OR UNSEEN 1 node with allocated GPUs gone; 1 slowed" in flat
    html, markdown = Path(f"{tmp_path}/a.html").read_text(), Path(f"{tmp_path}/a.md").read_text()
    assert "they are left out" in page  # what a gap does is not squeezed out by what it is
    assert "GPU-hours given to jobs, by what they did" in html
    assert "## What allocated GPUs did" in markdown
    assert "| n4 | jobs hold GPUs that the exporter does not see |" in markdown


def test_before_the_servers_memory_nothing_is_known(url: str, tmp_path: Path) -> None:
    """A window that begins a day before the first sample: that day is untold, and no node is called silent for it."""
    files = write(tmp_path)
    jobs = tmp_path / "jobs"
    jobs.write_text(jobs.read_text() + f"99|old|COMPLETED|{seconds(-10)}|{seconds(-5)}|1|n1|gres/gpu=4|\n")
    options = [*(o for o in files if not o.startswith("--since")), "--since=3d", "--prometheus", url, "-o", "json"]
    document = json.loads(CliRunner().invoke(audit, ["slurm", *options], catch_exceptions=False).stdout)
    use = document["utilisation"]
    assert (use["hours_asked"], use["hours_read"]) == (72, 48)
    assert use["untold_gpu_hours"] == pytest.approx(UNTOLD + 20, abs=0.3)
    assert {d["node"] for d in use["dark_nodes"]} == {"n5", "n10"}
    assert any("memory of these nodes begins 2026-09-21 00:00 UTC" in gap["what"] for gap in document["gaps"])


def test_without_jobs_slowed_clocks_are_still_known(url: str, tmp_path: Path) -> None:
    """No accounting: what allocated GPUs did is unknown and said so; the nodes' clocks are not."""
    options = [o for o in write(tmp_path) if not o.startswith("--jobs")]
    done = CliRunner().invoke(audit, ["slurm", *options, "--prometheus", url, "-o", "json"], catch_exceptions=False)
    document = json.loads(done.stdout)
    assert document["utilisation"]["busy_gpu_hours"] is None
    assert [t["node"] for t in document["utilisation"]["troubles"]] == ["n6"]
    assert any("no job history with GPU counts" in gap["what"] for gap in document["gaps"])
