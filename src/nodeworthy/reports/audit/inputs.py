"""What an audit is made from: three tables, a window, and what reason texts mean.

All times are whole POSIX seconds. Null means "not known" and stays so: an open event has no end, a running
job has no end, a job without GPU accounting has no GPU count.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

from nodeworthy.decide.marks import Normalise
from nodeworthy.model.scheduler import SchedulerNode

EVENTS: Mapping[str, type[pl.DataType]] = {
    "node": pl.String,
    "start": pl.Int64,
    "end": pl.Int64,
    "state": pl.String,
    "kind": pl.String,
    "reason": pl.String,
    "author": pl.String,
}
"""One row per period in which accounting saw a node not in service (`sacctmgr show event`). `state` is as printed,
`kind` is what it means (`outages.kind_of`; `unknown` where the state cannot be read)."""

JOBS: Mapping[str, type[pl.DataType]] = {
    "job": pl.Int64,
    "user": pl.String,
    "state": pl.String,
    "start": pl.Int64,
    "end": pl.Int64,
    "width": pl.Int32,
    "nodelist": pl.String,
    "gpus": pl.Float32,
    "failed_node": pl.String,
}
"""One row per attempt of a job (`sacct -X -D`). `nodelist` is folded; `width` is the number of nodes."""


@dataclass(frozen=True, slots=True)
class Window:
    """The audited period, half-open, in POSIX seconds."""

    since: int
    until: int

    @property
    def seconds(self) -> int:
        return self.until - self.since

    @property
    def days(self) -> float:
        return self.seconds / 86400


@dataclass(frozen=True, slots=True)
class Gap:
    """Something the audit could not see, and what that does to the figures."""

    what: str
    effect: str


@dataclass(frozen=True, slots=True)
class KernelEvent:
    """A kernel line that names the origin of an error, trusted (see `kernel`), already resolved to a node name."""

    at: float
    node: str
    kind: str
    code: str
    message: str


NODE_HOURS: Mapping[str, type[pl.DataType]] = {
    "node": pl.Categorical,
    "hour": pl.Int32,
    "busy": pl.Float32,
    "seen": pl.UInt16,
    "present": pl.UInt16,
    "partitioned": pl.Boolean,
}
"""One row per node and hour (of its beginning, in hours since 1970) in which its GPUs said anything. `busy`: GPU-hours
in which a kernel ran; `seen`: GPUs with a usable utilisation; `present`: GPUs that said anything; `partitioned`: some
are MIG instances, so GPUs cannot be counted. Narrow, because ninety days of 10,000 nodes are 21.6 million rows."""

SLOWED: Mapping[str, type[pl.DataType]] = {"node": pl.Categorical, "hour": pl.Int32, "share": pl.Float32}
"""Hours in which a GPU of the node was slowed against its will, and for what share of the hour; only where it was."""


@dataclass(frozen=True, slots=True)
class Telemetry:
    """What a metrics server knows of the nodes' hours. `first` to `last`: the hours asked for (last exclusive); `read`:
    those that it answered. A node without a row in an hour that was read had no telemetry. `slowed` is None where
    nobody told clock event reasons."""

    node_hours: pl.DataFrame
    slowed: pl.DataFrame | None
    first: int
    last: int
    read: frozenset[int]


@dataclass(frozen=True, slots=True)
class AuditInput:
    """Everything an audit reads. `nodes` is None where the present state is not known; `events` and `jobs` are None
    where there is no accounting. `kernel` is None where no logs were given, `telemetry` where no metrics server answered. `gaps` are what the reading side already
    had to leave out."""

    cluster: str
    window: Window
    nodes: Mapping[str, SchedulerNode] | None
    events: pl.DataFrame | None
    jobs: pl.DataFrame | None
    normalise: Normalise
    gaps: tuple[Gap, ...] = ()
    kernel: tuple[KernelEvent, ...] | None = None
    left_authors: frozenset[str] = frozenset()
    telemetry: Telemetry | None = None
