"""The snapshot: what the observers saw last. Observers write it, the turn takes it, nothing else touches it.

All of it lives in the event loop's thread. `take` hands the turn an immutable `Seen`; log events are handed over
exactly once, together with the cursors that stood behind them, so that both can be committed in one transaction.
A turn that fails gives its events back with `put_back`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from nodeworthy.decide.status import NO_SCHEDULER
from nodeworthy.model.event import LogEvent
from nodeworthy.model.identity import Doubt
from nodeworthy.model.scheduler import SchedulerSnapshot
from nodeworthy.ports import TelemetryBatch


@dataclass(frozen=True, slots=True)
class SourceReading:
    """How a source is doing. Times are POSIX seconds, None where it has not happened yet.

    `problem` is the sentence of the last failure, empty after a good answer. `notes` are what a good answer could
    not tell (a reason each).
    """

    name: str
    kind: str  # scheduler | exporter | prometheus | log
    interval_s: float
    since: float
    last_ok: float | None = None
    last_try: float | None = None
    problem: str = ""
    notes: tuple[str, ...] = ()
    unknown_names: tuple[str, ...] = ()

    @property
    def sees_nodes(self) -> bool:
        """Whether nodes are unknown without it; a log that is silent darkens none."""
        return self.kind == SCHEDULER or self.kind in TELEMETRY

    @property
    def limit_s(self) -> float:
        """Older than this it is late: three missed rounds, and never less than ten seconds."""
        return max(3 * self.interval_s, 10.0)

    @property
    def why(self) -> str:
        """Why it is not seen, in words."""
        return self.problem or ("it has not answered yet" if self.last_ok is None else "it does not answer in time")

    def age(self, now: float) -> float | None:
        return None if self.last_ok is None else max(0.0, now - self.last_ok)

    def lost(self, now: float) -> bool:
        """Whether what it said last may no longer be taken for the present.

        Also where it is ahead of `now` by more than that: the clock was set back, and its age cannot be told.
        """
        return abs(now - (self.since if self.last_ok is None else self.last_ok)) > self.limit_s

    def gone(self, now: float) -> bool:
        """Whether it is not seen now: lost, or it failed and has never answered, so there is nothing to wait out."""
        return self.lost(now) or (self.last_ok is None and bool(self.problem))


@dataclass(frozen=True, slots=True)
class Seen:
    """One consistent view of the snapshot, for one turn. `doubts`: names of the scheduler that nobody declares."""

    scheduler: SchedulerSnapshot | None
    batches: tuple[TelemetryBatch, ...]
    events: tuple[LogEvent, ...]
    cursors: Mapping[str, Mapping[str, object]]
    sources: Mapping[str, SourceReading]
    doubts: tuple[Doubt, ...] = ()

    def current(self, now: float) -> Seen:
        """The same without a scheduler that has been silent too long: its last word is not the present."""
        return replace(self, scheduler=None) if self.why_no_scheduler(now) else self

    def why_no_scheduler(self, now: float) -> str:
        """Why the scheduler is not seen now, in words; empty where it is."""
        reading = next((s for s in self.sources.values() if s.kind == SCHEDULER), None)
        if reading is None:
            return NO_SCHEDULER
        if self.scheduler is None or reading.lost(now):
            return f"the scheduler is not seen: {reading.why}"
        return ""

    def silent(self, now: float) -> list[SourceReading]:
        """The scheduler and the logs that cannot be read now."""
        return [s for s in self.sources.values() if s.kind not in TELEMETRY and s.lost(now)]

    def down(self, now: float) -> dict[str, str]:
        """Telemetry sources that do not answer, with the sentence why."""
        return {s.name: s.why for s in self.sources.values() if s.kind in TELEMETRY and s.gone(now)}

    def unheard(self) -> list[str]:
        """The sources that have not answered since we started."""
        return [s.name for s in self.sources.values() if s.last_ok is None]

    def untried(self) -> frozenset[str]:
        """The telemetry that was not asked yet."""
        return frozenset(s.name for s in self.sources.values() if s.kind in TELEMETRY and s.last_try is None)


SCHEDULER = "scheduler"
TELEMETRY = frozenset({"exporter", "prometheus"})
MOST_EVENTS = 100_000  # some 60 MB, and what one turn judges and records in seconds


@dataclass
class Snapshot:
    """The mutable meeting place. `scheduler` and each batch are kept until replaced; staleness is judged later."""

    scheduler: SchedulerSnapshot | None = None
    batches: dict[str, TelemetryBatch] = field(default_factory=dict)
    events: list[LogEvent] = field(default_factory=list)
    cursors: dict[str, Mapping[str, object]] = field(default_factory=dict)
    sources: dict[str, SourceReading] = field(default_factory=dict)

    @property
    def full(self) -> bool:
        """So many events wait for a turn that logs should not be read on: their files keep the rest."""
        return len(self.events) >= MOST_EVENTS

    def take(self) -> Seen:
        seen = Seen(
            scheduler=self.scheduler,
            batches=tuple(self.batches.values()),
            events=tuple(self.events),
            cursors=dict(self.cursors),
            sources=dict(self.sources),
        )
        self.events.clear()
        return seen

    def put_back(self, events: Sequence[LogEvent]) -> None:
        """Events of a turn that was not kept, before those that came since."""
        self.events[:0] = events
