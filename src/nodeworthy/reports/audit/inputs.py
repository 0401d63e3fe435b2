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


@dataclass(frozen=True, slots=True)
class AuditInput:
    """Everything an audit reads. `nodes` is None where the present state is not known; `events` and `jobs` are None
    where there is no accounting. `kernel` is None where no logs were given. `gaps` are what the reading side already
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
