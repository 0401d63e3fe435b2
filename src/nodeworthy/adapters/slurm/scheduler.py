"""Slurm as the Scheduler port sees it: reads only, never partial, never faster than configured.

One reading is five client calls in a row, one after the other, so that a busy controller never has two of
ours at once: nodes, jobs, partitions, reservations, and (more rarely, because it hardly changes) topology
and the controller's name and version. If any of the first four fails, the whole reading fails: a fleet with
an unreadable part is unknown, not smaller. Only the topology may be missing, which is then said in `problems`.

Asked again before `minimum_interval_s` has passed, it answers what it answered last, a failure included:
the pace at the controller does not depend on how many ask, or how well it goes.
"""

from __future__ import annotations

import asyncio
import secrets
from dataclasses import dataclass, replace

from nodeworthy.adapters.slurm import text
from nodeworthy.adapters.slurm.command import SlurmCommand
from nodeworthy.errors import Refused, WorldError
from nodeworthy.model.scheduler import Partition, Reservation, SchedulerNode, SchedulerSnapshot, TopologyUnit
from nodeworthy.ports import Clock

MINIMUM_INTERVAL_S = 10.0
SLOW_INTERVAL_S = 300.0


@dataclass(frozen=True, slots=True)
class _Slow:
    """What hardly changes, read again every `slow_interval_s`."""

    read_at: float
    cluster: str
    version: str
    topology: tuple[TopologyUnit, ...]
    problems: tuple[str, ...]
    users: frozenset[str]


class SlurmScheduler:
    """Implements `ports.Scheduler`. Intervals are in seconds."""

    def __init__(
        self,
        command: SlurmCommand,
        clock: Clock,
        minimum_interval_s: float = MINIMUM_INTERVAL_S,
        slow_interval_s: float = SLOW_INTERVAL_S,
    ) -> None:
        self._command = command
        self._clock = clock
        self._minimum_interval_s = minimum_interval_s
        self._slow_interval_s = slow_interval_s
        self._turn = asyncio.Lock()
        self._asked_at: float | None = None
        self._last: SchedulerSnapshot | WorldError | None = None
        self._slow: _Slow | None = None

    async def read(self) -> SchedulerSnapshot:
        """The scheduler now, or as of the last permitted reading. Raises WorldError."""
        async with self._turn:
            if self._last is None or self._due():
                self._asked_at = self._clock.monotonic()
                try:
                    self._last = await self._read()
                except WorldError as error:
                    self._last = error
            if isinstance(self._last, WorldError):
                raise self._last.with_traceback(None)
            return self._last

    def _due(self) -> bool:
        return self._asked_at is None or self._clock.monotonic() - self._asked_at >= self._minimum_interval_s

    async def _read(self) -> SchedulerSnapshot:
        taken_at = self._clock.now()
        run = self._command.run
        nodes = text.nodes(await run("scontrol", "-o", "-d", "-a", "show", "nodes"))
        separator = "x" + secrets.token_hex(8)
        jobs = text.jobs(await run("squeue", "-a", "-h", "-O", text.job_format(separator)), separator)
        partitions = text.partitions(await run("scontrol", "-o", "-a", "show", "partition"))
        reservations = text.reservations(await run("scontrol", "-o", "-a", "show", "reservation"))
        slow = await self._read_slow()
        return SchedulerSnapshot(
            cluster=slow.cluster,
            version=slow.version,
            taken_at=taken_at,
            nodes=_with_reservations(nodes, reservations),
            jobs=jobs,
            reservations=reservations,
            partitions=partitions,
            topology=slow.topology,
            problems=(*slow.problems, *_unlisted(nodes, partitions)),
            daemon_users=slow.users,
        )

    async def _read_slow(self) -> _Slow:
        now = self._clock.monotonic()
        if self._slow is None or now - self._slow.read_at >= self._slow_interval_s:
            config = text.config(await self._command.run("scontrol", "show", "config"))
            topology, problems = await self._read_topology()
            if topology is None:
                # what could not be read is what it was: a fleet does not lose its switches to a time-out
                topology = self._slow.topology if self._slow else ()
            users = frozenset(_user(config.get(key, "")) for key in ("SlurmUser", "SlurmdUser")) - {""}
            self._slow = _Slow(now, config.get("ClusterName", ""), config["SLURM_VERSION"], topology, problems, users)
        return self._slow

    async def _read_topology(self) -> tuple[tuple[TopologyUnit, ...] | None, tuple[str, ...]]:
        """The topology, empty where there is none and None where it could not be read; and what went wrong."""
        try:
            return text.topology(await self._command.run("scontrol", "show", "topology")), ()
        except Refused as error:
            if "No topology information available" in str(error):
                return (), ()
            return None, (f"the topology could not be read: {error}",)
        except WorldError as error:
            return None, (f"the topology could not be read: {error}",)


def _user(text: str) -> str:
    """`slurm(64030)` → `slurm`"""
    return text.partition("(")[0].strip()


def _with_reservations(
    nodes: dict[str, SchedulerNode], reservations: tuple[Reservation, ...]
) -> dict[str, SchedulerNode]:
    """Before 23.02 a node does not say which reservation it is in; the reservations do."""
    named = dict(nodes)
    for reservation in reservations:
        for name in reservation.nodes if reservation.active else ():
            if (node := named.get(name)) is not None and node.reservation is None:
                named[name] = replace(node, reservation=reservation.name)
    return named


def _unlisted(nodes: dict[str, SchedulerNode], partitions: tuple[Partition, ...]) -> tuple[str, ...]:
    """Partitions name nodes that the node list lacks: hidden from us (PrivateData, cloud nodes that are
    powered down before 23.02), or added between the two answers."""
    missing = sorted({name for partition in partitions for name in partition.nodes} - nodes.keys())
    if not missing:
        return ()
    shown = ", ".join(missing[:3]) + (" …" if len(missing) > 3 else "")
    return (f"{len(missing)} nodes of the partitions are not in the node list: {shown}",)
