"""Facts: what the sources said last, as frames over the declared rows, with what signals did over time beside them.

This is the last step of observing: it remembers (the last word on each component, windows, a bounded history on disk),
so that the turn need not. After a restart the recorded history is replayed, and the windows are as they were.
"""

from __future__ import annotations

import logging

import polars as pl

from nodeworthy.judge.features import Windows
from nodeworthy.judge.frames import Frames, Reading, build, declare, latest
from nodeworthy.observe.scheduler_facts import facts_of
from nodeworthy.observe.snapshot import Seen
from nodeworthy.record.history import History
from nodeworthy.service.picture import World

log = logging.getLogger(__name__)


class Facts:
    """Called once a turn, in order of time. `history` None keeps nothing over a restart."""

    def __init__(self, windows: Windows, history: History | None = None) -> None:
        self._windows = windows
        self._history = history
        self._latest: dict[str, Reading] = {}
        self._replayed = history is None

    def frames(self, world: World, seen: Seen, now: float) -> Frames:
        batches: list[Reading] = list(seen.batches)
        if seen.scheduler is not None:
            batches.append(facts_of(seen.scheduler, world.catalogue.signals.values()))
        for batch in batches:
            before = self._latest.get(batch.source)
            if before is None or before.at != batch.at:
                self._latest[batch.source] = latest(before, batch)
        patience = {name: source.limit_s for name, source in seen.sources.items()}
        latest_words = self._latest.values()
        frames = build(world.fleet, world.catalogue, latest_words, now, down=seen.down(now), patience=patience)
        if not self._replayed and world.fleet.nodes:
            self._replayed = True
            self._replay(world, now)
        frames = self._windows.update(frames)
        self._keep(frames)
        return frames

    def _replay(self, world: World, now: float) -> None:
        """Once: a history that cannot be read costs the windows of before the restart, never a turn."""
        if self._history is None:
            return
        try:
            self._history.replay(self._windows, declare(world.fleet), world.fleet.revision, now)
        except (OSError, pl.exceptions.PolarsError) as error:
            log.warning("the history of signals cannot be read, windows begin anew: %s", error)
        for problem in self._history.problems:
            log.warning("%s", problem)

    def _keep(self, frames: Frames) -> None:
        """A history that cannot be written (a full disk) costs windows after a restart, never the turn."""
        if self._history is None:
            return
        try:
            self._history.append(frames)
        except (OSError, pl.exceptions.PolarsError) as error:
            log.warning("the history of signals cannot be written, ten minutes of it are lost: %s", error)
            self._history.drop()

    def close(self) -> None:
        """Write what is still in memory."""
        if self._history is not None:
            self._history.flush()
