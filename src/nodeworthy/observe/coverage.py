"""Notice when a source stops saying what it used to say.

Exporters rename fields and turn a 0 into a missing series from one version to the next (dcgm-exporter issue
700), and alerts on the old name fall silent. A signal that some component had and that none has any more is
a problem of the source. The memory is one name per signal, and ends with the process.
"""

from __future__ import annotations

from collections.abc import Iterable

from nodeworthy.observe.components import some
from nodeworthy.ports import TelemetryBatch


class Coverage:
    def __init__(self) -> None:
        self._had: set[str] = set()

    def missing(self, batch: TelemetryBatch, other_names: Iterable[str] = ()) -> tuple[str, ...]:
        """A sentence if signals are gone that earlier batches had. `other_names`: names nobody asked for."""
        has = {
            column
            for frame in batch.frames.values()
            for column in frame.columns
            if column not in ("node", "index", "seen") and frame[column].null_count() < frame.height
        }
        # cells emptied for a reason of their own were said; they are reported with that reason
        said = has if batch.unknown is None else has | set(batch.unknown["signal"].unique())
        gone = sorted(self._had - said)
        self._had |= has
        if not gone:
            return ()
        others = sorted(other_names)
        hint = f"; names not understood: {some(others)}" if others else ""
        return (f"{len(gone)} signals were reported before and now by nobody: {some(gone)}{hint}",)
