"""Facts: what the sources said last, as frames over the declared rows, with what signals did over time beside them.

This is the last step of observing: it remembers (windows in memory, a bounded history on disk), so that the turn need
not. After a restart the recorded history is replayed, and the windows are as they were.
"""

from __future__ import annotations

from nodeworthy.judge.features import Windows
from nodeworthy.judge.frames import Frames, build, declare
from nodeworthy.observe.snapshot import Seen
from nodeworthy.record.history import History
from nodeworthy.service.picture import World


class Facts:
    """Called once a turn, in order of time. `history` None keeps nothing over a restart."""

    def __init__(self, windows: Windows, history: History | None = None) -> None:
        self._windows = windows
        self._history = history
        self._replayed = history is None

    def frames(self, world: World, seen: Seen, now: float) -> Frames:
        frames = build(world.fleet, world.catalogue, seen.batches, now, down=seen.down(now))
        if self._history is not None and not self._replayed and world.fleet.nodes:
            self._history.replay(self._windows, declare(world.fleet), world.fleet.revision, now)
            self._replayed = True
        frames = self._windows.update(frames)
        if self._history is not None:
            self._history.append(frames)
        return frames

    def close(self) -> None:
        """Write what is still in memory."""
        if self._history is not None:
            self._history.flush()
