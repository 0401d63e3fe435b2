"""Ledger entries: what happened, what caused it, who did it. Their sequence follows commit order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Entry:
    """`kind` is a dotted word: finding.opened, finding.closed, hold.would, hold.lifted, node.state,
    source.lost, source.back, turn.stalled, person.drained, person.resumed …

    `sequence` is given by the store at commit; 0 before that.
    """

    at: float
    kind: str
    subject: str
    summary: str
    cause: str = ""
    actor: str = "nodeworthy"
    data: Mapping[str, object] = field(default_factory=dict)
    sequence: int = 0
