"""What Nodeworthy needs of the world: one page of Protocols, each with its laws.

Every port takes and returns serialisable values, so that an outpost can stand between. An implementation
translates and never judges. What cannot be read raises a `WorldError` within its time-out; it is never
returned as an empty answer, because an empty answer says "there is nothing".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import polars as pl

    from nodeworthy.model.event import LogEvent
    from nodeworthy.model.ledger import Entry
    from nodeworthy.model.scheduler import SchedulerSnapshot


class Clock(Protocol):
    """Law: `monotonic` never goes back; all sleeping and all time-outs go through here."""

    def now(self) -> float:
        """POSIX seconds, UTC."""
        ...

    def monotonic(self) -> float: ...

    async def sleep(self, seconds: float) -> None: ...


class Scheduler(Protocol):
    """Law: reads only. A controller that is slow or dead raises; it never yields a partial fleet."""

    async def read(self) -> SchedulerSnapshot: ...


@dataclass(frozen=True, slots=True)
class TelemetryBatch:
    """What one source said at one time. `frames`: component kind → frame with columns `node`, `index`,
    `seen` (float) and one per signal id, already cleaned (units, sentinels, NaN, renamed fields).

    `problems` are sentences about what could not be used, each of which becomes evidence of a finding
    about the source, never about a node. `unknown_names` are instances that the fleet does not declare.
    `unknown` says why cells are null that the source did fill: columns `kind`, `node`, `index`, `signal`,
    `reason` (an UnknownReason's value). A null that is not listed there was not said at all.
    """

    source: str
    at: float
    frames: Mapping[str, pl.DataFrame]
    problems: tuple[str, ...] = ()
    unknown_names: tuple[str, ...] = ()
    unknown: pl.DataFrame | None = None


class Telemetry(Protocol):
    """Law: values are as the source stamped them, in the signal's unit; what is not known is null."""

    source: str

    async def read(self) -> TelemetryBatch: ...


class EventLog(Protocol):
    """Law: nothing missed, nothing replayed: `read` goes on where the committed cursor stands, also after a
    restart or a rotation. `commit` is called once what was read is safely recorded."""

    source: str

    async def read(self) -> Sequence[LogEvent]: ...

    def cursor(self) -> Mapping[str, object]: ...


class Store(Protocol):
    """Law: `transaction`s are atomic; entries get their sequence in commit order."""

    def append(self, entries: Iterable[Entry]) -> list[Entry]: ...

    def entries(self, after: int = 0, limit: int = 1000) -> list[Entry]: ...
