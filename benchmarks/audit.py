"""Speed, memory and truth of the audit on an invented fleet history of any size.

    python -m benchmarks.audit --nodes 10000 --jobs 5000000 --days 90

Writes the three files that people would send (`sacct -P`, `sacctmgr -P show event`, `scontrol -o show nodes`) with
faults planted in them, runs `nodeworthy audit slurm` on them as a process of its own, prints wall time and peak
memory, and ends with 1 unless every planted node is found, no innocent node is named, and the hours lost agree with
the planted ones.

Planted: *lemons* (a dozen single failures each); *black holes* (six hours in which every job of everybody dies in
seconds); leaf switches that take 32 nodes at once. Decoys that must not be named: one user's broken array, all on one
node; users whose jobs fail fast everywhere; nodes with many planned outages; nodes behind the leaf switches.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from benchmarks.measure import Cost, Figure, cost, nodeworthy, parser, report

GPUS = 8
DAY = 86400
UNTIL = 1_790_000_000
LEAF = 32
FAULTS = (
    ("DOWN*", "Not responding", 0.35),
    ("DRAIN", "Xid 79 on GPU 3: fell off the bus", 0.25),
    ("INVAL", "gres/gpu count reported lower than configured (7 < 8)", 0.15),
    ("DRAIN", "Kill task failed", 0.15),
    ("DRAIN", "GPU 5: uncorrectable ECC error", 0.10),
)
DOWN_CAUSES = ("not-responding", "gres-count")
PLANNED = ("DRAIN", "maintenance: firmware update")
RATE = 2.34e-3  # failures per node-day, RSC-2 (arXiv:2410.21680)


@dataclass
class Truth:
    """What was planted. `down_hours`: node-hours in outages that no running job can shorten."""

    lemons: set[str] = field(default_factory=set)
    black_holes: set[str] = field(default_factory=set)
    decoys: set[str] = field(default_factory=set)
    down_hours: float = 0.0


@dataclass
class Fleet:
    names: np.ndarray
    since: int
    rng: np.random.Generator
    down: dict[int, list[tuple[int, int]]] = field(default_factory=dict)
    events: list[tuple[int, int, int, str, str]] = field(default_factory=list)  # node, start, end, state, reason

    def out(self, node: int, start: int, hours: float, state: str, reason: str) -> None:
        """Adds an outage unless the node is out then already (so that the planted hours add up)."""
        end = min(UNTIL, start + max(60, int(hours * 3600)))
        near = self.down.setdefault(node, [])
        if start < self.since or start >= UNTIL or any(start <= b + 300 and a - 300 <= end for a, b in near):
            return
        near.append((start, end))
        self.events.append((node, start, end, state, reason))


def generate(folder: Path, nodes: int, jobs: int, days: int, seed: int = 7) -> Truth:
    """Write jobs.txt, events.txt and nodes.txt into `folder`; returns what was planted."""
    rng = np.random.default_rng(seed)
    fleet = Fleet(np.array([f"gpu{n:05d}" for n in range(1, nodes + 1)]), UNTIL - days * DAY, rng)
    truth = Truth()
    special = rng.permutation(nodes)
    share = max(1, nodes // 500)
    lemons, holes, arrays, tended = (special[k * share : (k + 1) * share] for k in range(4))
    truth.lemons = set(fleet.names[lemons])
    truth.black_holes = set(fleet.names[holes])
    _plant_outages(fleet, lemons, tended, days)
    truth.decoys = set(fleet.names[arrays]) | set(fleet.names[tended])
    truth.down_hours = sum(e - s for _, s, e, state, _ in fleet.events if state in ("DOWN*", "INVAL")) / 3600
    _write_events(fleet, folder / "events.txt")
    _write_jobs(fleet, folder / "jobs.txt", jobs, holes, arrays, days)
    _write_nodes(fleet, folder / "nodes.txt")
    return truth


def _plant_outages(fleet: Fleet, lemons: np.ndarray, tended: np.ndarray, days: int) -> None:
    rng, count = fleet.rng, len(fleet.names)
    for _ in range(3):  # a leaf switch dies: its nodes are innocent
        first = int(rng.integers(0, max(1, count // LEAF))) * LEAF
        at = int(rng.integers(fleet.since + DAY, UNTIL - DAY))
        for node in range(first, min(first + LEAF, count)):
            fleet.out(node, at + int(rng.integers(0, 20)), 3.0, "DOWN*", "Not responding")
    for node in lemons:
        for k in range(12):
            state, reason, _ = FAULTS[int(rng.integers(0, len(FAULTS)))]
            at = fleet.since + int((k + rng.uniform(0.1, 0.9)) * days * DAY / 12)
            fleet.out(int(node), at, float(rng.lognormal(1.0, 0.5)), state, reason)
    for node in tended:
        for k in range(10):
            at = fleet.since + int((k + 0.5) * days * DAY / 10)
            fleet.out(int(node), at, 4.0, *PLANNED)
    weights = np.array([w for *_, w in FAULTS])
    for _ in range(int(rng.poisson(RATE * count * days))):
        state, reason, _ = FAULTS[int(rng.choice(len(FAULTS), p=weights / weights.sum()))]
        at = int(rng.integers(fleet.since, UNTIL - DAY))
        fleet.out(int(rng.integers(0, count)), at, float(rng.lognormal(1.5, 1.0)), state, reason)


def _write_events(fleet: Fleet, path: Path) -> None:
    with path.open("w") as out:
        out.write("Cluster|NodeName|TimeStart|TimeEnd|State|User|Reason\n")
        out.write(f"big||{fleet.since}|Unknown|||Cluster Registered TRES\n")
        for node, start, end, state, reason in sorted(fleet.events, key=lambda e: (e[1], e[0])):
            stop = "Unknown" if end >= UNTIL else end
            out.write(f"big|{fleet.names[node]}|{start}|{stop}|{state}|root(0)|{reason}\n")


def _write_nodes(fleet: Fleet, path: Path) -> None:
    open_now = {node: (state, reason, s) for node, s, end, state, reason in fleet.events if end >= UNTIL}
    words = {"DOWN*": "DOWN+NOT_RESPONDING", "DRAIN": "IDLE+DRAIN", "INVAL": "IDLE+DRAIN+INVALID_REG"}
    with path.open("w") as out:
        for n, name in enumerate(fleet.names):
            state, reason, at = open_now.get(n, ("", "", 0))
            said = f" Reason={reason} [root@{at}]" if state else ""
            out.write(
                f"NodeName={name} Arch=x86_64 CoresPerSocket=32 CPUAlloc=0 CPUTot=64 Gres=gpu:h100:{GPUS}"
                f" NodeAddr={name} NodeHostName={name} Version=23.11.4 OS=Linux 6.1 RealMemory=2000000 AllocMem=0"
                f" Sockets=2 Boards=1 State={words.get(state, 'IDLE')} ThreadsPerCore=1 Partitions=batch"
                f" BootTime={fleet.since} SlurmdStartTime={fleet.since} CfgTRES=cpu=64,mem=2000000M,gres/gpu={GPUS}{said}\n"
            )


def _write_jobs(fleet: Fleet, path: Path, jobs: int, holes: np.ndarray, arrays: np.ndarray, days: int) -> None:
    """In batches, so that the generator itself stays small."""
    rng, count = fleet.rng, len(fleet.names)
    users = max(30, min(800, jobs // 500))
    # Most users' jobs rarely die fast; three in a hundred users break nearly everything they start.
    clumsy = np.where(rng.random(users) < 0.03, 0.8, rng.beta(1, 40, users))
    with path.open("w") as out:
        out.write("JobIDRaw|User|State|Start|End|NNodes|NodeList|AllocTRES|FailedNode\n")
        first = 1
        for hole in holes:  # everybody's jobs, one after the other, each dead in seconds
            first = _batch(out, fleet, first, 40, users, np.full(users, 1.0), [int(hole)], 6 * 3600, fast=True)
        for node in arrays:  # one user, who runs nowhere else
            first = _batch(
                out, fleet, first, 300, 1, np.ones(1), [int(node)], 3600, fast=True, offset=users + int(node)
            )
        left = max(0, jobs - first + 1)
        while left:
            size = min(left, 500_000)
            first = _batch(out, fleet, first, size, users, clumsy, None, days * DAY - 2 * DAY, fast=False)
            left -= size
    assert count


def _batch(
    out: Any, fleet: Fleet, first: int, size: int, users: int, clumsy: np.ndarray, nodes: list[int] | None, span: int,
    *, fast: bool, offset: int = 0,
) -> int:  # fmt: skip
    rng, count = fleet.rng, len(fleet.names)
    user = rng.integers(0, users, size)
    node = np.array(nodes)[rng.integers(0, len(nodes), size)] if nodes else rng.integers(0, count, size)
    begin = fleet.since + (DAY * 5 if nodes else 0) + rng.integers(0, span, size)
    dies = rng.random(size) < clumsy[user]
    length = np.where(dies, rng.integers(1, 90, size), (rng.lognormal(7.0, 1.5, size)).astype(int) + 130)
    length = np.minimum(length, 7 * DAY)
    width = np.ones(size, int) if fast else np.where(rng.random(size) < 0.1, rng.integers(2, 33, size), 1)
    width = np.minimum(width, np.maximum(1, count - node))
    names = fleet.names
    last = node + width - 1
    single = pl.Series(names[node])
    folded = pl.Series(np.char.add(np.char.add(np.char.add("gpu[", np.char.zfill((node + 1).astype(str), 5)), "-"),
                                   np.char.add(np.char.zfill((last + 1).astype(str), 5), "]")))  # fmt: skip
    gpus = np.where(width > 1, width * GPUS, rng.integers(1, GPUS + 1, size))
    frame = pl.DataFrame(
        {
            "id": np.arange(first, first + size), "user": user + offset, "dies": dies, "start": begin,
            "end": np.minimum(begin + length, UNTIL - 60), "width": width, "single": single, "folded": folded, "gpus": gpus,
        }
    )  # fmt: skip
    frame.select(
        pl.col("id"),
        pl.format("u{}", "user"),
        pl.when("dies").then(pl.lit("FAILED")).otherwise(pl.lit("COMPLETED")).alias("state"),
        "start",
        "end",
        "width",
        pl.when(pl.col("width") > 1).then("folded").otherwise("single").alias("nodes"),
        pl.format(
            "billing={},cpu={},gres/gpu:h100={},gres/gpu={},mem=64G,node={}", "gpus", "gpus", "gpus", "gpus", "width"
        ),
        pl.lit("").alias("failed"),
    ).write_csv(out, separator="|", include_header=False, quote_style="never")
    return first + size


def measure(folder: Path, days: int, html: bool = True) -> tuple[dict[str, Any], Cost]:
    """Run the audit as its own process."""
    files = [f"--{what}={folder / what}.txt" for what in ("jobs", "events", "nodes")]
    page = [f"--html={folder / 'audit.html'}"] if html else []
    until = time.strftime("%Y-%m-%dT%H:%M:%S+00:00", time.gmtime(UNTIL))
    argv = nodeworthy("audit", "slurm", *files, *page, f"--since={days}d", f"--until={until}", "-o", "json")
    spent = cost(argv)
    if spent.returncode:
        raise SystemExit(f"the audit ended with {spent.returncode}")
    return json.loads(spent.stdout), spent


def grade(report: dict[str, Any], truth: Truth) -> list[str]:
    """What the report got wrong; empty when all is right."""
    wrong: list[str] = []
    lemons = {r["node"] for r in report["lemons"]}
    holes = {r["node"] for r in report["black_holes"]}
    for what, found, planted in (("lemon", lemons, truth.lemons), ("black hole", holes, truth.black_holes)):
        wrong += [f"{what} {n} was not found" for n in sorted(planted - found)]
        wrong += [f"{n} is no {what}" for n in sorted(found - planted)]
    wrong += [f"the innocent {n} was named" for n in sorted(truth.decoys & (lemons | holes))]
    hours = sum(c["node_hours"] for c in report["causes"] if c["cause"] in DOWN_CAUSES)
    if abs(hours - truth.down_hours) > 0.001 * truth.down_hours:
        wrong.append(f"{hours:.1f} node-hours down were reported, {truth.down_hours:.1f} planted")
    if report["totals"]["lost_gpu_hours"] > report["totals"]["capacity_gpu_hours"]:
        wrong.append("more was lost than there is")
    return wrong


def figures(nodes: int, jobs: int, days: int, keep: Path | None) -> Iterator[Figure]:
    with tempfile.TemporaryDirectory() as scratch:
        folder = keep or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        truth = generate(folder, nodes, jobs, days)
        size = sum(f.stat().st_size for f in folder.glob("*.txt")) / 1e6
        found, spent = measure(folder, days)
    wrong = grade(found, truth)
    what = f"audit of {nodes:,} nodes, {jobs:,} jobs, {days} days"
    yield Figure(what, spent.wall_s, "s", 60.0, beside=f"{size:,.0f} MB of text; {spent.cpu_s:.1f} s of processor time")
    yield Figure(f"{what}: memory", spent.peak_mb, "MB", 2000.0)
    planted = f"{len(truth.lemons)} lemons and {len(truth.black_holes)} black holes were planted"
    yield Figure(f"{what}: wrong answers", len(wrong), "answers", 0.0, beside="; ".join([planted, *wrong[:5]]))


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--nodes", type=int, help="10,000; with --small 1,000")
    options.add_argument("--jobs", type=int, help="5,000,000; with --small 200,000")
    options.add_argument("--days", type=int, default=90)
    options.add_argument("--keep", type=Path, help="keep the files in this folder")
    given = options.parse_args()
    nodes, jobs = (
        given.nodes or (1_000 if given.small else 10_000),
        given.jobs or (200_000 if given.small else 5_000_000),
    )
    if not report(figures(nodes, jobs, given.days, given.keep), given):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
