"""Words with every field set, for tests of the record."""

from __future__ import annotations

from nodeworthy.model.event import LogEvent, Role
from nodeworthy.model.finding import ComponentRef, Evidence, Finding, Locality, Severity, Trust, UnknownReason, Verdict
from nodeworthy.model.hold import Effect, Hold, HoldState, Owner, OwnerKind
from nodeworthy.model.ledger import Entry
from nodeworthy.model.record import Transition

AT = 1_772_366_400.25

EVIDENCE = (
    Evidence("kernel line", "NVRM: Xid (PCI:0000:3b:00): 79", "kern.log", AT - 3),
    Evidence("gpu.temp", "unknown", "dcgm", None),
)


def finding(node: str = "n3", check: str = "xid.79", since: float = AT, **changes: object) -> Finding:
    fields: dict[str, object] = {
        "check": check,
        "component": ComponentRef(node, "gpu", "0"),
        "verdict": Verdict.TRUE,
        "severity": Severity.FATAL,
        "confidence": 0.97,
        "since": since,
        "summary": "GPU 0 has fallen off the bus",
        "evidence": EVIDENCE,
        "unknown": None,
        "trust": Trust.ACT,
        "locality": Locality.SELF_EVIDENT,
        "action": "reset",
        "proof": "gpu.burn",
        "clears": "a new boot without it",
        "rule_version": "2",
        "boot_id": "5f0c",
    }
    return Finding(**{**fields, **changes})  # type: ignore[arg-type]


def unknown_finding(node: str = "n4") -> Finding:
    return finding(node, "gpu.count", verdict=Verdict.UNKNOWN, unknown=UnknownReason.SOURCE_DOWN, boot_id=None)


def hold(node: str = "n3", state: HoldState = HoldState.WOULD, **changes: object) -> Hold:
    fields: dict[str, object] = {
        "key": f"xid.79@{node}/gpu0",
        "subject": ComponentRef(node, "gpu", "0"),
        "effect": Effect.NO_NEW_WORK,
        "owner": Owner(OwnerKind.NODEWORTHY, "observe"),
        "state": state,
        "reason": "Xid 79",
        "since": AT,
        "evidence": EVIDENCE,
        "because": (f"xid.79@{node}/gpu0",),
        "clears": "proof gpu.burn",
        "waiting_for": "approval",
        "deadline": AT + 3600,
    }
    return Hold(**{**fields, **changes})  # type: ignore[arg-type]


def state(node: str = "n3", text: str = "IDLE+DRAIN", at: float = AT) -> Transition:
    return Transition(node, text, tuple(text.split("+")[1:]), at, "bad fan", "root", at - 1)


def event(node: str | None = "n3", at: float = AT, **changes: object) -> LogEvent:
    fields: dict[str, object] = {
        "at": at,
        "host": "n3.cluster",
        "component": "0000:3b:00",
        "kind": "xid",
        "code": "79",
        "role": Role.ORIGIN,
        "severity": "fatal",
        "action": "reset",
        "proof": "gpu.burn",
        "trusted": True,
        "rule": "xid-79",
        "message": "NVRM: Xid (PCI:0000:3b:00): 79, pid=1, GPU has fallen off the bus.",
        "node": node,
        "gpu": 0,
        "source": "kern.log",
    }
    return LogEvent(**{**fields, **changes})  # type: ignore[arg-type]


def entry(subject: str = "n3/gpu0", kind: str = "finding.opened", at: float = AT, **changes: object) -> Entry:
    fields: dict[str, object] = {
        "at": at,
        "kind": kind,
        "subject": subject,
        "summary": "GPU 0 has fallen off the bus",
        "cause": "xid.79",
        "data": {"finding": f"xid.79@{subject}"},
    }
    return Entry(**{**fields, **changes})  # type: ignore[arg-type]
