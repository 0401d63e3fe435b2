"""The observers: one small loop per source, at its own pace, that never lets a failure out.

A source that raises is recorded as failing, with the sentence, and asked again at its next round: the level-triggered
poll is the retry. Nothing here judges; an outage is only written down. A source that hangs is cut off by its own
adapter's time-out, and by `limit_s` here in case the adapter does not keep its word.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TypeVar

from nodeworthy.errors import NodeworthyError
from nodeworthy.observe.snapshot import Snapshot, SourceReading
from nodeworthy.ports import Clock, EventLog, Scheduler, Telemetry

Answer = TypeVar("Answer")
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
            answer = await self._ask(name, port.read())
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
            batch = await self._ask(name, port.read())
            if batch is not None:
                self.snapshot.batches[name] = batch
                self._note(name, batch.problems, batch.unknown_names)
            await self.clock.sleep(interval_s)

    async def watch_log(self, name: str, port: EventLog, interval_s: float) -> None:
        self.declare(name, "log", interval_s)
        while True:
            events = await self._ask(name, port.read())
            if events is not None:
                self.snapshot.events.extend(events)
                self.snapshot.cursors[name] = port.cursor()
                self._note(name, (), tuple(getattr(port, "unknown_names", ())))
                if events:
                    self.wake()
            await self.clock.sleep(interval_s)

    def declare(self, name: str, kind: str, interval_s: float) -> None:
        """Say that there is such a source, before it is first read."""
        self.snapshot.sources[name] = SourceReading(name, kind, interval_s, since=self.clock.now())

    def _note(self, name: str, notes: tuple[str, ...], unknown_names: tuple[str, ...] = ()) -> None:
        reading = self.snapshot.sources[name]
        self.snapshot.sources[name] = replace(reading, notes=notes, unknown_names=unknown_names)

    async def _ask(self, name: str, question: Awaitable[Answer]) -> Answer | None:
        """The answer, or None with the failure written down."""
        started, answered = self.clock.monotonic(), False
        try:
            async with asyncio.timeout(HARD_LIMIT_S):
                answer = await question
            answered = True
        except (NodeworthyError, OSError, TimeoutError) as error:
            problem = "; ".join(error.chain()) if isinstance(error, NodeworthyError) else (str(error) or "timed out")
            self._failed(name, problem)
            return None
        except Exception as error:  # noqa: BLE001  (a defect in an adapter must not end the watch)
            self._failed(name, f"defect in the adapter: {type(error).__name__}: {error}")
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
