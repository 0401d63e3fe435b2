"""How fast `nodeworthy log classify` is, as a ratio to `grep -cE` for the same literals on the same file.

    python -m benchmarks.log_classify                     1 GB, one fault line in 20,000 (a bad day)
    python -m benchmarks.log_classify --every 10          a storm: one line in ten is a fault line
    python -m benchmarks.log_classify --megabytes 100

Both are whole processes, each run several times in turn, and the best of each counts: what other work on the machine
costs hits both. grep runs with LC_ALL=C, its fastest.
"""

from __future__ import annotations

import random
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.measure import Figure, cost, environment, nodeworthy, parser, report
from nodeworthy.adapters.files.log_rules import load_grammar

HEAD = "Nov 30 {clock} gpu-{node:04d} "
QUIET = (
    "kernel: [{uptime}.{micro:06d}] IPv6: ADDRCONF(NETDEV_CHANGE): cali{hex}: link becomes ready",
    "kernel: [{uptime}.{micro:06d}] perf: interrupt took too long ({number} > 3136), lowering kernel.perf_event_max_sample_rate",
    "systemd[1]: Started Session {number} of User user{small}.",
    "systemd[1]: logrotate.service: Deactivated successfully.",
    "sshd[{number}]: Accepted publickey for user{small} from 192.0.2.{small} port {number} ssh2: ED25519 SHA256:{hex}{hex}",
    "CRON[{number}]: (root) CMD (command -v debian-sa1 > /dev/null && debian-sa1 1 1)",
    "slurmd[2211]: launch task StepId={number}.0 request from UID:{number} GID:{number} HOST:192.0.2.{small} PORT:{number}",
    "slurmstepd[{number}]: done with step {number}.0",
    "chronyd[901]: Selected source 192.0.2.{small} (ntp{small}.example)",
    'containerd[1800]: time="2026-11-30T17:40:23.{micro:06d}Z" level=info msg="RemoveContainer for \\"{hex}{hex}{hex}\\" returns successfully"',
    'kubelet[2100]: I1130 17:40:23.{micro:06d}    2100 reconciler_common.go:245] "operationExecutor.VerifyControllerAttachedVolume started for volume" pod="job-{hex}"',
)
FAULTS = (
    "kernel: [{uptime}.{micro:06d}] NVRM: Xid (PCI:0000:{bus}:00): 13, pid={number}, name=python3, Graphics SM Warp Exception on (GPC {small}, TPC 5, SM 1): Out Of Range Address",
    "kernel: [{uptime}.{micro:06d}] NVRM: Xid (PCI:0000:{bus}:00): 94, pid={number}, name=python3.10, Ch 0000000{digit}",
    "kernel: [{uptime}.{micro:06d}] NVRM: Xid (PCI:0000:{bus}:00): 145, RLW_SRC_TRACK Nonfatal XC1 i0 Link 12 (0x040988e2 0x00000008 0x00000000 0x00000000 0x00000000 0x00000000)",
    "kernel: [{uptime}.{micro:06d}] python3[{number}]: segfault at 7f797fe00000 ip 00007f7c7ac69996 sp 00007f7c12fd7c30 error 4 in libnccl.so.2[7f7c7ac00000+d3d3000]",
    "kernel: [{uptime}.{micro:06d}] mlx5_core 0000:{bus}:00.0 ens{small}np0: Link down",
    "kernel: [{uptime}.{micro:06d}] pcieport 0000:{bus}:01.0: AER: Corrected error received: 0000:{bus}:00.0",
)


def fill(template: str, rng: random.Random, second: int = 0) -> str:
    return template.format(
        clock=f"{second // 3600 % 24:02d}:{second // 60 % 60:02d}:{second % 60:02d}",
        node=rng.randint(1, 1250),
        uptime=rng.randint(1000, 9_000_000),
        micro=rng.randint(0, 999_999),
        hex=f"{rng.getrandbits(44):011x}",
        number=rng.randint(1000, 99_999),
        small=rng.randint(1, 254),
        digit=rng.randint(0, 9),
        bus=rng.choice(("18", "2a", "3a", "5d", "9a", "ab", "ba", "db")),
    )


def write_log(path: Path, megabytes: int, every: int) -> int:
    """A central syslog file of 1,250 nodes: one fault line in `every`. Returns how many fault lines there are."""
    rng = random.Random(7)
    quiet = [fill(HEAD + rng.choice(QUIET), rng, place // 400) + "\n" for place in range(20_000)]
    left, faults, second = megabytes * 1_000_000, 0, 0
    with path.open("wb") as out:
        while left > 0:
            lines = list(quiet)
            for place in range(0, len(lines), every):
                lines[place] = fill(HEAD + rng.choice(FAULTS), rng, second + place // 400) + "\n"
                faults += 1
            left -= out.write("".join(lines).encode())
            second += len(lines) // 400
    return faults


def measure(path: Path, rounds: int) -> dict[str, float]:
    """The best of several rounds of grep and of the command, by the clock and in processor time, and their counts."""
    literals = load_grammar().literals
    grep = [
        "grep",
        "-cE",
        "|".join(re.sub(r"([\\.\[\]{}()*+?^$|])", r"\\\1", literal) for literal in literals),
        str(path),
    ]
    ours = nodeworthy("log", "classify", str(path), "--json", "-q")
    env = {**environment(), "LC_ALL": "C"}
    best = dict.fromkeys(("grep_s", "grep_cpu_s", "ours_s", "ours_cpu_s"), float("inf"))
    for _ in range(rounds):
        for name, command in (("grep", grep), ("ours", ours)):
            spent = cost(command, env=env)
            best[f"{name}_s"] = min(best[f"{name}_s"], spent.wall_s)
            best[f"{name}_cpu_s"] = min(best[f"{name}_cpu_s"], spent.cpu_s)
            best[f"{name}_lines"] = int(spent.stdout) if name == "grep" else spent.stdout.count(b"\n")
    return {
        **best,
        "ratio": best["ours_s"] / best["grep_s"],
        "ratio_cpu": best["ours_cpu_s"] / best["grep_cpu_s"],
    }


def figures(megabytes: int, every: int, rounds: int) -> Iterator[Figure]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "central.log"
        faults = write_log(path, megabytes, every)
        size = path.stat().st_size
        result = measure(path, rounds)
    what = f"log classify, {size / 1e9:.2f} GB, 1 line in {every:,} matches"
    beside = f"{faults:,} fault lines; grep -cE {result['grep_s']:.2f} s, {size / result['grep_s'] / 1e9:.1f} GB/s"
    target = 3.0 if every >= 1000 else None
    yield Figure(f"{what}: by the clock", result["ours_s"], "s", beside=beside)
    yield Figure(f"{what}: times grep's time", result["ratio"], "x", target)
    yield Figure(f"{what}: times grep's processor time", result["ratio_cpu"], "x")


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--megabytes", type=int, help="1,000; with --small 100")
    options.add_argument("--every", type=int, nargs="*", default=[20_000, 10], help="one fault line in this many")
    options.add_argument("--rounds", type=int, default=3)
    given = options.parse_args()
    megabytes = given.megabytes or (100 if given.small else 1000)
    report((f for every in given.every for f in figures(megabytes if every > 100 else megabytes // 10, every, given.rounds)),
           given)  # fmt: skip


if __name__ == "__main__":
    main()
