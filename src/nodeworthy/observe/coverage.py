"""Notice when a source stops saying what it used to say.

A page that is gone leaves no trace in the next batch: an exporter renames a field or turns a 0 into a missing
series (dcgm-exporter issue 700), a rack drops out of Prometheus' targets, and every alert on it falls silent.
So each source's adapter remembers which signals and which nodes it has had, and says which it has no more.
The memory ends with the process, and for a node a day after it was last heard of (it may have been removed).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from nodeworthy.model.nodeset import fold
from nodeworthy.observe.components import some
from nodeworthy.ports import TelemetryBatch

FORGET_S = 86400.0
_NAMED = 200  # nodes named in one sentence


class Coverage:
    def __init__(self) -> None:
        self._signals: set[str] = set()
        self._nodes: dict[str, dict[str, float]] = defaultdict(dict)

    def missing(self, batch: TelemetryBatch, other_names: Iterable[str] = ()) -> tuple[str, ...]:
        """What earlier batches had and this one has not, in sentences. `other_names`: names nobody asked for."""
        return (*self._missing_signals(batch, other_names), *self._missing_nodes(batch))

    def _missing_signals(self, batch: TelemetryBatch, other_names: Iterable[str]) -> tuple[str, ...]:
        # a cell that was emptied for a reason of its own was said; it is reported with that reason
        said = {c for frame in batch.frames.values() for c in frame.columns} - {"node", "index", "seen"}
        gone = sorted(self._signals - said)
        self._signals |= said
        if not gone:
            return ()
        others = sorted(other_names)
        hint = f"; names not understood: {some(others)}" if others else ""
        return (f"{len(gone)} signals were reported before and now by nobody: {some(gone)}{hint}",)

    def _missing_nodes(self, batch: TelemetryBatch) -> tuple[str, ...]:
        sentences = []
        for kind in sorted({*self._nodes, *batch.frames}):
            known = self._nodes[kind]
            here = batch.frames[kind]["node"].unique().to_list() if kind in batch.frames else []
            known.update(dict.fromkeys(here, batch.at))
            gone = sorted(node for node, at in known.items() if batch.at - FORGET_S < at < batch.at)
            if gone:
                more = f" and {len(gone) - _NAMED} more" if len(gone) > _NAMED else ""
                sentences.append(f"{kind} data of {len(gone)} nodes were there before: {fold(gone[:_NAMED])}{more}")
        return tuple(sentences)
