"""How fast `nodeworthy log classify` is, as a ratio to `grep -cE` for the same literals on the same file.

    python benchmarks/log_classify.py                     1 GB, one fault line in 20,000 (a bad day)
    python benchmarks/log_classify.py --every 10          a storm: one line in ten is a fault line
    python benchmarks/log_classify.py --megabytes 100

Both are whole processes, each run several times in turn, and the best of each counts: what other work on the machine
costs hits both. grep runs with LC_ALL=C, its fastest.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from nodeworthy.adapters.files.log_rules import load_grammar

ROOT = Path(__file__).resolve().parent.parent
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


def cost(command: list[str], environment: dict[str, str]) -> tuple[float, float, bytes]:
    """Seconds by the clock, seconds of processor time, and the output of a whole process."""
    before, start = os.times(), time.perf_counter()
    done = subprocess.run(command, check=False, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment)
    took, after = time.perf_counter() - start, os.times()
    busy = after.children_user + after.children_system - before.children_user - before.children_system
    return took, busy, done.stdout


def measure(path: Path, rounds: int) -> dict[str, float]:
    """The best of several rounds of grep and of the command, by the clock and in processor time, and their counts."""
    literals = load_grammar().literals
    grep = [
        "grep",
        "-cE",
        "|".join(re.sub(r"([\\.\[\]{}()*+?^$|])", r"\\\1", literal) for literal in literals),
        str(path),
    ]
    ours = [sys.executable, "-m", "nodeworthy.cli.main", "log", "classify", str(path), "--json", "-q"]
    environment = {**os.environ, "LC_ALL": "C", "PYTHONPATH": str(ROOT / "src")}
    best = dict.fromkeys(("grep_s", "grep_cpu_s", "ours_s", "ours_cpu_s"), float("inf"))
    for _ in range(rounds):
        for name, command in (("grep", grep), ("ours", ours)):
            took, busy, out = cost(command, environment)
            best[f"{name}_s"] = min(best[f"{name}_s"], took)
            best[f"{name}_cpu_s"] = min(best[f"{name}_cpu_s"], busy)
            best[f"{name}_lines"] = int(out) if name == "grep" else out.count(b"\n")
    return {
        **best,
        "ratio": best["ours_s"] / best["grep_s"],
        "ratio_cpu": best["ours_cpu_s"] / best["grep_cpu_s"],
    }


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--megabytes", type=int, default=1000)
    options.add_argument("--every", type=int, default=20_000, help="one fault line in this many")
    options.add_argument("--rounds", type=int, default=3)
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "central.log"
        faults = write_log(path, chosen.megabytes, chosen.every)
        size = path.stat().st_size
        result = measure(path, chosen.rounds)
    print(f"file      {size / 1e9:.2f} GB, {faults} fault lines (1 in {chosen.every})")
    for name, title in (("grep", "grep -cE"), ("ours", "classify")):
        took, busy, lines = (result[f"{name}_{what}"] for what in ("s", "cpu_s", "lines"))
        print(
            f"{title}  {took:.2f} s ({busy:.2f} s of processor time), {lines:.0f} lines, {size / took / 1e9:.2f} GB/s"
        )
    print(f"ratio     {result['ratio']:.2f} ({result['ratio_cpu']:.2f} in processor time)")


if __name__ == "__main__":
    main()
