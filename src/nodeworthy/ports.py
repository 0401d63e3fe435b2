"""What Nodeworthy needs of the world: one page of Protocols, each with its laws.

Every port takes and returns serialisable values, so that an outpost can stand between. An implementation
translates and never judges. What cannot be read raises a `WorldError` within its time-out; it is never
returned as an empty answer, because an empty answer says "there is nothing".
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import polars as pl

    from nodeworthy.model.event import LogEvent
    from nodeworthy.model.finding import Finding
    from nodeworthy.model.hold import Hold, HoldState
    from nodeworthy.model.ledger import Entry
    from nodeworthy.model.record import Memory, Outcome, Page, Pruned, Revision, StoreInfo, Transition
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
    """The record. Laws:

    - One writer at a time; a transaction is all or nothing, also when the process is killed in it.
    - Sequences follow commit order without gaps: who has seen entry n never later meets an entry before n.
    - `load` after `commit_turn` gives the state that the turn left: a restart is invisible.
    - A cursor moves in the transaction that keeps what was read up to it. An outcome whose cursor of a
      source is the committed one brings that source's events a second time: they are not kept twice.
    - What is open is never pruned. Text and JSON come back as given, except NUL and undecodable bytes
      (U+FFFD) and NaN or infinities within JSON (null).
    """

    def transaction(self) -> AbstractContextManager[None]:
        """Groups the calls inside into one transaction; may be nested."""
        ...

    def append(self, entries: Iterable[Entry]) -> list[Entry]:
        """The entries with their sequences."""
        ...

    def commit_turn(self, outcome: Outcome) -> list[Entry]:
        """Keep all that a turn changed, or nothing. Closing what is not open changes nothing."""
        ...

    def load(self) -> Memory: ...

    def sequence(self) -> int:
        """Of the last ledger entry; 0 when there is none."""
        ...

    def entries(
        self,
        after: int = 0,
        limit: int = 1000,
        *,
        node: str | None = None,
        kinds: Sequence[str] = (),
        since: float = 0.0,
        newest: bool = False,
    ) -> list[Entry]:
        """In order. `node`: of it and its components. `newest`: the last `limit` instead of the first."""
        ...

    def findings(
        self, *, open_only: bool = True, node: str | None = None, since: float = 0.0, after: int = 0, limit: int = 1000
    ) -> Page[Finding]:
        """With `open_only` false also those that ended at or after `since`."""
        ...

    def holds(
        self,
        *,
        open_only: bool = True,
        node: str | None = None,
        states: Sequence[HoldState] = (),
        since: float = 0.0,
        after: int = 0,
        limit: int = 1000,
    ) -> Page[Hold]: ...

    def history(self, node: str, *, since: float = 0.0, after: int = 0, limit: int = 1000) -> Page[Transition]:
        """The node's states from `since` on, oldest first, with the one that was in force at `since`."""
        ...

    def histories(self, nodes: Collection[str], *, since: float = 0.0) -> Mapping[str, Sequence[Transition]]:
        """The whole `history` of each of many nodes at once; a node without any is left out."""
        ...

    def events(
        self, *, node: str | None = None, since: float = 0.0, after: int = 0, limit: int = 1000, each: int = 0
    ) -> Page[LogEvent]:
        """Of a storm a minute keeps its first lines and the count of the rest (`LogEvent.more`). With `each` only the
        newest so many of those that say the same of one component, and the lines that open findings began with."""
        ...

    def save_revision(self, revision: Revision) -> None:
        """Keep it under (kind, digest); what is kept already stays as it is."""
        ...

    def revision(self, kind: str, digest: str) -> Revision:
        """Raises NotKnown."""
        ...

    def note(self, key: str) -> object | None:
        """A small value under a name; None when there is none."""
        ...

    def set_note(self, key: str, value: object) -> None: ...

    def prune(self, before: float, *, now: float) -> Pruned: ...

    def info(self) -> StoreInfo: ...

    def close(self) -> None: ...
