"""The observers: one small loop per source, at its own pace, that never lets a failure out.

A source that raises is recorded as failing, with the sentence, and asked again at its next round: the level-triggered
poll is the retry. Nothing here judges; an outage is only written down. A source that hangs is cut off by its own
adapter's time-out, and by `HARD_LIMIT_S` here in case the adapter does not keep its word. An answer of the wrong kind
is a failure like any other: it must not reach the turn, which would fail by it again and again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from nodeworthy.errors import Garbled, NodeworthyError
from nodeworthy.model.event import LogEvent
from nodeworthy.model.fact import KEY_COLUMNS
from nodeworthy.model.scheduler import SchedulerSnapshot
from nodeworthy.observe.snapshot import Snapshot, SourceReading
from nodeworthy.ports import Clock, EventLog, Scheduler, Telemetry, TelemetryBatch

Answer = TypeVar("Answer")
Heard = tuple[Sequence[LogEvent], Mapping[str, object], tuple[str, ...], tuple[str, ...]]
HARD_LIMIT_S = 120.0

Beat = Callable[[str], None]
Report = Callable[[str, float, bool], None]
"""Told of every reading: the source, how long it took in seconds, and whether it answered."""


class Observers:
    """Runs the observing loops. `wake` is called when something arrived that should not wait for the next turn."""

    def __init__(
        self, snapshot: Snapshot, clock: Clock, wake: Callable[[], None], beat: Beat, report: Report | None = None
    ) -> None:
        self.snapshot = snapshot
        self.clock = clock
        self.wake = wake
        self.beat = beat
        self.report = report

    async def watch_scheduler(self, name: str, port: Scheduler, interval_s: float) -> None:
        self.declare(name, "scheduler", interval_s)
        while True:
            answer = await self._ask(name, lambda: _nodes(port))
            if answer is not None:
                first = self.snapshot.scheduler is None
                self.snapshot.scheduler = answer
                self._note(name, answer.problems)
                if first:
                    self.wake()
            await self.clock.sleep(interval_s)

    async def watch_telemetry(self, name: str, kind: str, port: Telemetry, interval_s: float) -> None:
        self.declare(name, kind, interval_s)
        while True:
            batch = await self._ask(name, lambda: _batch(port))
            if batch is not None:
                self.snapshot.batches[name] = batch
                self._note(name, batch.problems, batch.unknown_names)
            await self.clock.sleep(interval_s)

    async def watch_log(self, name: str, port: EventLog, interval_s: float) -> None:
        """While the turn is too far behind, the log is not read: it is late, and its file keeps the rest."""
        self.declare(name, "log", interval_s)
        while True:
            if self.snapshot.full:
                self._failed(name, "not read on: too many of its lines wait for a turn")
                self.beat(name)
            elif (heard := await self._ask(name, lambda: _lines(port))) is not None:
                events, self.snapshot.cursors[name], problems, strangers = heard
                self.snapshot.events.extend(events)
                self._note(name, problems, strangers)
                if events:
                    self.wake()
            await self.clock.sleep(interval_s)

    def declare(self, name: str, kind: str, interval_s: float) -> None:
        """Say that there is such a source, before it is first read."""
        self.snapshot.sources[name] = SourceReading(name, kind, interval_s, since=self.clock.now())

    def _note(self, name: str, notes: tuple[str, ...], unknown_names: tuple[str, ...] = ()) -> None:
        reading = self.snapshot.sources[name]
        self.snapshot.sources[name] = replace(reading, notes=notes, unknown_names=unknown_names)

    async def _ask(self, name: str, question: Callable[[], Awaitable[Answer]]) -> Answer | None:
        """The answer, or None with the failure written down. Only our own cancellation comes through."""
        started, answered = self.clock.monotonic(), False
        try:
            async with asyncio.timeout(HARD_LIMIT_S):
                answer = await question()
            answered = True
        except (NodeworthyError, OSError) as error:
            self._failed(name, _sentence(error))
            return None
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            self._failed(name, _defect(error))
            return None
        except Exception as error:  # noqa: BLE001  (a defect in an adapter must not end the watch)
            self._failed(name, _defect(error))
            return None
        finally:
            self.beat(name)
            if self.report is not None:
                self.report(name, self.clock.monotonic() - started, answered)
        now = self.clock.now()
        reading = self.snapshot.sources[name]
        self.snapshot.sources[name] = replace(reading, last_ok=now, last_try=now, problem="")
        return answer

    def _failed(self, name: str, problem: str) -> None:
        reading = self.snapshot.sources[name]
        self.snapshot.sources[name] = replace(reading, last_try=self.clock.now(), problem=problem)


def _sentence(error: NodeworthyError | OSError) -> str:
    if isinstance(error, NodeworthyError):
        return "; ".join(error.chain())
    return str(error) or ("it did not answer in time" if isinstance(error, TimeoutError) else type(error).__name__)


def _defect(error: BaseException) -> str:
    return f"defect in the adapter: {type(error).__name__}" + (f": {error}" if str(error) else "")


async def _nodes(port: Scheduler) -> SchedulerSnapshot:
    answer: object = await port.read()
    if not isinstance(answer, SchedulerSnapshot):
        raise Garbled(f"the scheduler's adapter answered with a {type(answer).__name__}")
    return answer


async def _batch(port: Telemetry) -> TelemetryBatch:
    answer: object = await port.read()
    if not isinstance(answer, TelemetryBatch):
        raise Garbled(f"the adapter answered with a {type(answer).__name__}")
    wrong = [kind for kind, frame in answer.frames.items() if not {*KEY_COLUMNS, "seen"} <= set(frame.columns)]
    if wrong:
        raise Garbled(f"its frames of {', '.join(wrong)} lack node, index or seen")
    return answer


async def _lines(port: EventLog) -> Heard:
    """The new events, the cursor behind them, what could not be read, and the hosts that nobody declares: all or nothing."""
    events: object = await port.read()
    if not isinstance(events, Sequence) or not all(isinstance(event, LogEvent) for event in events):
        raise Garbled(f"the log's adapter answered with a {type(events).__name__} and not with events")
    said = tuple(getattr(port, "problems", ())), tuple(getattr(port, "unknown_names", ()))
    return events, port.cursor(), *said
