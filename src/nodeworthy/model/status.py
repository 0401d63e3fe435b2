"""The one word for a node, with whose doing it is and why."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from nodeworthy.model.hold import Owner


class NodeState(StrEnum):
    """Only SERVING is well."""

    SERVING = "serving"  # takes new work, and nothing speaks against it
    SUSPECT = "suspect"  # takes new work, and something speaks against it
    OUT = "out"  # somebody's mark (drain, reservation, planned reboot) keeps new work off
    FAILED = "failed"  # the scheduler cannot use it: down, not responding, invalid registration
    UNKNOWN = "unknown"  # nothing (or too little) is known of it now


@dataclass(frozen=True, slots=True)
class NodeStatus:
    """`since` is when this state began as far as we saw or the scheduler says; None is not known."""

    node: str
    state: NodeState
    reason: str
    owner: Owner | None = None
    since: float | None = None
    next: str = ""
