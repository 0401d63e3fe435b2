"""What a batch scheduler says of its nodes and jobs, in one vocabulary for all versions.

Slurm's node state is a base state plus flags; what people call "drained" or "draining" is computed from
both (`SchedulerNode.drained`, `.draining`), never read from one string. Times are POSIX seconds (UTC).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

SOURCE: Final = "slurm"  # as whose the catalogue names the scheduler's fields

# what a signal of the catalogue may read of a node (`slurm:NAME`), and its type there
FIELDS: Final[Mapping[str, str]] = {
    "cpus": "int",
    "memory_mb": "int",
    "sockets": "int",
    "gpus": "int",
    "gpus_used": "int",
    "gpu_type": "str",
    "reservation": "str",
    "address": "str",
    "hostname": "str",
    "version": "str",
    "boot_at": "float",
    "slurmd_start_at": "float",
}


class BaseState(StrEnum):
    """Slurm's base node states (slurm.h, 22.05 to 26.05)."""

    UNKNOWN = "UNKNOWN"
    DOWN = "DOWN"
    IDLE = "IDLE"
    ALLOCATED = "ALLOCATED"
    ERROR = "ERROR"
    MIXED = "MIXED"
    FUTURE = "FUTURE"


BUSY_STATES = frozenset({BaseState.ALLOCATED, BaseState.MIXED})


@dataclass(frozen=True, slots=True)
class Mark:
    """The one reason slot that Slurm has per node: text, who wrote it, when.

    `user` proves nobody (hooks and `sudo` both write as root); it is a hint, never an identity.
    """

    reason: str
    user: str | None
    at: float | None


@dataclass(frozen=True, slots=True)
class SchedulerNode:
    """One node as the scheduler sees it."""

    name: str
    base: BaseState
    flags: frozenset[str]
    mark: Mark | None = None
    partitions: tuple[str, ...] = ()
    reservation: str | None = None
    cpus: int | None = None
    memory_mb: int | None = None
    sockets: int | None = None
    gpus: int | None = None
    gpu_type: str | None = None
    gpus_used: int | None = None
    features: tuple[str, ...] = ()
    address: str | None = None
    hostname: str | None = None
    boot_at: float | None = None
    slurmd_start_at: float | None = None
    version: str | None = None

    def has(self, flag: str) -> bool:
        return flag in self.flags

    @property
    def state(self) -> str:
        """As Slurm prints it: base and sorted flags joined with `+`."""
        return "+".join([self.base.value, *sorted(self.flags)])

    @property
    def busy(self) -> bool:
        return self.base in BUSY_STATES or "COMPLETING" in self.flags

    @property
    def draining(self) -> bool:
        return "DRAIN" in self.flags and self.busy

    @property
    def drained(self) -> bool:
        return "DRAIN" in self.flags and not self.busy


@dataclass(frozen=True, slots=True)
class Job:
    """A job now in the scheduler's memory (not accounting)."""

    job_id: str
    name: str
    user: str
    state: str
    partition: str
    nodes: tuple[str, ...] = ()
    gpus: int | None = None
    reason: str | None = None
    start_at: float | None = None
    end_at: float | None = None


@dataclass(frozen=True, slots=True)
class Reservation:
    name: str
    nodes: tuple[str, ...]
    flags: frozenset[str]
    users: tuple[str, ...]
    start_at: float | None
    end_at: float | None
    active: bool


@dataclass(frozen=True, slots=True)
class Partition:
    name: str
    nodes: tuple[str, ...]
    state: str
    default: bool = False


@dataclass(frozen=True, slots=True)
class TopologyUnit:
    """A switch (tree) or block of the scheduler's own topology."""

    name: str
    kind: str  # "switch" | "block"
    level: int
    nodes: tuple[str, ...]
    children: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SchedulerSnapshot:
    """One reading of the scheduler, as of `taken_at`. `nodes` is keyed by NodeName."""

    cluster: str
    version: str
    taken_at: float
    nodes: dict[str, SchedulerNode]
    jobs: tuple[Job, ...] = ()
    reservations: tuple[Reservation, ...] = ()
    partitions: tuple[Partition, ...] = ()
    topology: tuple[TopologyUnit, ...] = ()
    problems: tuple[str, ...] = field(default=())  # parts that could not be read, in words
    daemon_users: frozenset[str] = frozenset()  # whom its daemons run as: what they write is nobody's act
