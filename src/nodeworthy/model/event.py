"""Events: things that were said once (a kernel line), as opposed to facts, which can be read again."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Role(StrEnum):
    """What a log line is evidence of."""

    ORIGIN = "origin"
    SYMPTOM = "symptom"
    APPLICATION = "application"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class LogEvent:
    """A classified log line. `component` is as the line names it (a PCI address, a link, a disk).

    `trusted` is true when the line came by kernel transport and so cannot be forged by a tenant.
    `node` is the resolved node name, or None where the host is not known to the fleet. `more`: how many further lines
    that say the same of the same component in the same minute it stands for, which were not kept one by one. `read_at`:
    when it was read, None where nobody kept that. `timed` is false where `at` is only when it was read: the line has no
    time of its own, or an impossible one, and may be much older.
    """

    at: float
    host: str
    component: str
    kind: str  # xid | sxid | aer | mce | link | oom | …
    code: str
    role: Role
    severity: str
    action: str
    proof: str
    trusted: bool
    rule: str
    message: str
    node: str | None = None
    gpu: int | None = None
    source: str = ""
    more: int = 0
    read_at: float | None = None
    timed: bool = True
