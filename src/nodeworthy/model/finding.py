"""Findings: what a check says of a component, in three values, with the evidence kept."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Verdict(StrEnum):
    """The answer of a check. Only TRUE is adverse: the condition of the fault holds."""

    TRUE = "true"
    FALSE = "false"
    UNKNOWN = "unknown"


class UnknownReason(StrEnum):
    """Why something is unknown. These differ, and the difference is kept (design law 1)."""

    STALE = "stale"
    NEVER_SEEN = "never seen"
    SENTINEL = "sentinel"
    SOURCE_DOWN = "source down"
    NOT_APPLICABLE = "not applicable"
    UNREADABLE = "unreadable"
    CHECK_FAILED = "check failed"
    FUTURE = "timestamp in the future"
    SHORT_HISTORY = "too little history yet"


class Severity(StrEnum):
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"
    FATAL = "fatal"


class Trust(StrEnum):
    """How far a check version is believed (design law 13)."""

    SHADOW = "shadow"
    PROPOSE = "propose"
    ACT = "act"


class Locality(StrEnum):
    """Whether evidence speaks for itself or may have a shared cause (design law 4)."""

    SELF_EVIDENT = "self-evident"
    SHAREABLE = "shareable"


@dataclass(frozen=True, slots=True, order=True)
class ComponentRef:
    """A component of a node, or something beside the nodes. `kind`: node | gpu | nic | source | identity | self …

    `index` is the GPU index, port or device name; empty for the node itself. What is no part of a node has its name
    in `node` or in `index` alone.
    """

    node: str
    kind: str = "node"
    index: str = ""

    def __str__(self) -> str:
        if self.kind == "node":
            return self.node
        if self.node and self.index:
            return f"{self.node}/{self.kind}{self.index}"
        return f"{self.kind}:{self.node or self.index}"

    @property
    def of_node(self) -> bool:
        """Whether this is a node or a part of one."""
        return self.kind == "node" or bool(self.node and self.index)

    @property
    def owner_node(self) -> str | None:
        """The node that this is, or is a part of; None for what is no part of a node, whatever it is called."""
        return self.node if self.of_node else None


@dataclass(frozen=True, slots=True)
class Evidence:
    """One thing that speaks for a finding: a signal's value, a log line, a scheduler state."""

    what: str
    value: str
    source: str
    seen: float | None


@dataclass(frozen=True, slots=True)
class Finding:
    """A check's present answer about one component. `since` is when it first held without a gap."""

    check: str
    component: ComponentRef
    verdict: Verdict
    severity: Severity
    confidence: float
    since: float
    summary: str
    evidence: tuple[Evidence, ...] = ()
    unknown: UnknownReason | None = None
    trust: Trust = Trust.SHADOW
    locality: Locality = Locality.SELF_EVIDENT
    action: str = ""
    proof: str = ""
    clears: str = ""
    rule_version: str = ""
    boot_id: str | None = None
    ended: float | None = None

    @property
    def key(self) -> str:
        """Stable over turns: one finding per check and component."""
        return f"{self.check}@{self.component}"


@dataclass(frozen=True, slots=True)
class Incident:
    """Findings that share an origin."""

    key: str
    title: str
    severity: Severity
    since: float
    findings: tuple[str, ...]
    nodes: tuple[str, ...]
    origin: str
    explanation: str
