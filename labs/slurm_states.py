"""Sixteen nodes in sixteen situations, each made for real.

    1 idle                    7 drained under a job       13 failing under a job
    2 job on some GPUs        8 reserved                  14 registers too few GPUs
    3 4 job on all GPUs       9 maintenance reservation   15 set down by hand
    5 slurmd killed          10 hangs in a reboot         16 drained by the health program
    6 drained by hand        11 reboot waits for its job
                             12 set failing while idle

With accounting the marks on 6 and 7 are made by `daemon`, which stands for a person with a name of their own;
without it only root may write, and root proves nobody.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from labs.slurm_lab import SlurmLab

PERSON = "daemon"
JOB = ("-t", "60", "-n1")
WHOLE = ("-t", "60", "--exclusive", "--gres=gpu:8")


@dataclass(frozen=True)
class ExpectedNode:
    """What a reader should say of a node.

    `base` and `flags` as Slurm names them (other flags do not occur). `owner` is one of "", "someone",
    "person", "scheduler", "health program"; `cause` is the id of the reason's cause in the catalogue of
    reasons, or "" where nobody marked the node; `reason` is the text of the mark.
    """

    base: str
    flags: frozenset[str] = frozenset()
    owner: str = ""
    cause: str = ""
    reason: str | None = None
    gpus_used: int = 0
    what: str = ""

    @property
    def state(self) -> str:
        return "+".join([self.base, *sorted(self.flags)])

    @property
    def pattern(self) -> str:
        """Matches the state as scontrol prints it, whatever the order of its flags."""
        ahead = "".join(rf"(?=.*\+{flag}(\+|$))" for flag in sorted(self.flags))
        return rf"{ahead}{self.base}(\+[A-Z_]+){{{len(self.flags)}}}"


def expected(lab: SlurmLab, lost_for_good: bool = True) -> dict[str, ExpectedNode]:
    """What make_states leaves. `lost_for_good`: node 5 was lost long enough to be declared down."""
    hand = "person" if lab.options.database else "someone"
    lost = (
        ExpectedNode("DOWN", frozenset({"NOT_RESPONDING"}), "scheduler", "not-responding", "Not responding", 0, "lost")
        if lost_for_good
        else ExpectedNode("MIXED", frozenset({"NOT_RESPONDING"}), gpus_used=1, what="lost")
    )

    def flags(*names: str) -> frozenset[str]:
        return frozenset(names)

    table = {
        1: ExpectedNode("IDLE", what="idle"),
        2: ExpectedNode("MIXED", gpus_used=2, what="a job on 2 of 8 GPUs"),
        3: ExpectedNode("ALLOCATED", gpus_used=8, what="a job on all GPUs"),
        4: ExpectedNode("ALLOCATED", gpus_used=8, what="a job on all GPUs"),
        5: lost,
        6: ExpectedNode("IDLE", flags("DRAIN"), hand, "gpu-lost", "GPU 3 fell off the bus [ops]", 0, "drained by hand"),
        7: ExpectedNode("MIXED", flags("DRAIN"), hand, "gpu-memory", "ECC errors", 4, "drained under a job"),
        8: ExpectedNode("IDLE", flags("RESERVED"), what="reserved"),
        9: ExpectedNode("IDLE", flags("MAINTENANCE", "RESERVED"), what="maintenance"),
        10: ExpectedNode(
            "DOWN",
            flags("DRAIN", "REBOOT_ISSUED"),
            "someone",
            "reboot",
            "firmware : reboot issued",
            0,
            "hangs in its reboot",
        ),
        11: ExpectedNode(
            "MIXED", flags("DRAIN", "REBOOT_REQUESTED"), "someone", "maintenance", "kernel update", 1, "waits to reboot"
        ),
        12: ExpectedNode("IDLE", flags("FAIL"), "someone", "unclear", "failing soon", 0, "fail"),
        13: ExpectedNode("ALLOCATED", flags("FAIL"), "someone", "nvlink", "NVLink replay errors", 8, "failing"),
        14: ExpectedNode(
            "IDLE",
            flags("DRAIN", "INVALID_REG"),
            "scheduler",
            "gres-count",
            "gres/gpu count reported lower than configured (7 < 8)",
            0,
            "registers 7 of 8 GPUs",
        ),
        15: ExpectedNode("DOWN", flags(), "someone", "repair", "pulled for RMA", 0, "set down by hand"),
        16: ExpectedNode(
            "IDLE",
            flags("DRAIN"),
            "health program",
            "gpu-lost",
            "health: Xid 79 on GPU 5",
            0,
            "drained by its health program",
        ),
    }
    return {lab.name(number): node for number, node in table.items()}


def make_states(lab: SlurmLab, wait_lost: bool = True) -> dict[str, ExpectedNode]:
    """Make them, wait until each is there, and return what to expect by node name.

    With `wait_lost` it waits for the lost node to be declared down, about twice the lab's SlurmdTimeout."""
    n = lab.name
    _start_jobs(lab)
    lab.kill_node(n(5))
    hand = PERSON if lab.options.database else None

    def update(number: int, state: str, reason: str, user: str | None = None) -> None:
        lab.run("scontrol", "update", f"nodename={n(number)}", f"state={state}", f"reason={reason}", user=user)

    update(6, "drain", "GPU 3 fell off the bus [ops]", hand)
    update(7, "drain", "ECC errors", hand)
    reserve = ("scontrol", "create", "reservation", "starttime=now", "duration=600", "users=root")
    lab.run(*reserve, "reservationname=demo", f"nodes={n(8)}")
    lab.run(*reserve, "reservationname=service", "flags=maint,ignore_jobs", f"nodes={n(9)}")
    lab.hang_reboot(n(10))
    lab.run("scontrol", "reboot", "ASAP", "nextstate=resume", "reason=firmware", n(10))
    lab.run("scontrol", "reboot", "ASAP", "nextstate=down", "reason=kernel update", n(11))
    update(12, "fail", "failing soon")
    update(13, "fail", "NVLink replay errors")
    lab.break_gres(n(14), 7)
    update(15, "down", "pulled for RMA")
    lab.health_fault(n(16), "health: Xid 79 on GPU 5")
    wanted = expected(lab, wait_lost)
    patience_s = 60 + 4 * lab.options.slurmd_timeout_s
    lab.await_states({name: node.pattern for name, node in wanted.items()}, patience_s)
    return wanted


def _start_jobs(lab: SlurmLab) -> None:
    n = lab.name
    jobs = [
        lab.submit("-J", "mixed", "-w", n(2), *JOB, "-c4", "--gres=gpu:2", "--mem=64G"),
        lab.submit("-J", "alloc", "-w", f"{n(3)},{n(4)}", "-N2", *WHOLE),
        lab.submit("-J", "onlost", "-w", n(5), *JOB, "--gres=gpu:1"),
        lab.submit("-J", "ondrain", "-w", n(7), *JOB, "--gres=gpu:4"),
        lab.submit("-J", "onreboot", "-w", n(11), *JOB, "--gres=gpu:1"),
        lab.submit("-J", "onfailing", "-w", n(13), *WHOLE),
    ]
    deadline = time.monotonic() + 60
    while len(lab.run("squeue", "-h", "-t", "running", "-o", "%i").split()) < len(jobs):
        if time.monotonic() > deadline:
            raise TimeoutError(f"the jobs did not start: {lab.run('squeue')}")
        time.sleep(0.3)
