"""Words to rows and back: one pair of functions a word, and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from typing import Any, TypeVar

import sqlalchemy as sa

from nodeworthy.errors import Garbled
from nodeworthy.model.event import LogEvent, Role
from nodeworthy.model.finding import ComponentRef, Evidence, Finding, Locality, Severity, Trust, UnknownReason, Verdict
from nodeworthy.model.hold import Effect, Hold, HoldState, Owner, OwnerKind
from nodeworthy.model.ledger import Entry
from nodeworthy.model.record import Boot, SourceHealth, SourceState, Transition

Row = dict[str, Any]
Word = TypeVar("Word")


def to_words(found: Iterable[sa.RowMapping], to_word: Callable[[sa.RowMapping], Word]) -> tuple[Word, ...]:
    """Rows as words. A row that says what no word can say raises Garbled: it is never skipped."""
    words = []
    for row in found:
        try:
            words.append(to_word(row))
        except (ValueError, KeyError, TypeError) as error:
            raise Garbled(
                f"a row of the store cannot be read: {dict(row)!r:.300}",
                hint="it was written by another version or changed by hand; restore a backup",
            ) from error
    return tuple(words)


def from_entry(entry: Entry) -> Row:
    return {
        "at": entry.at,
        "kind": entry.kind,
        "subject": entry.subject,
        "node": entry.subject.partition("/")[0],
        "summary": entry.summary,
        "cause": entry.cause,
        "actor": entry.actor,
        "data": entry.data,
    }


def to_entry(row: sa.RowMapping) -> Entry:
    return Entry(
        at=row["at"],
        kind=row["kind"],
        subject=row["subject"],
        summary=row["summary"],
        cause=row["cause"],
        actor=row["actor"],
        data=row["data"],
        sequence=row["id"],
    )


def _from_evidence(evidence: Sequence[Evidence]) -> list[Row]:
    return [{"what": e.what, "value": e.value, "source": e.source, "seen": e.seen} for e in evidence]


def _to_evidence(items: Sequence[Mapping[str, Any]]) -> tuple[Evidence, ...]:
    return tuple(Evidence(i["what"], i["value"], i["source"], i["seen"]) for i in items)


def from_finding(finding: Finding) -> Row:
    return {
        "key": finding.key,
        "check_id": finding.check,
        "node": finding.component.node,
        "component": finding.component.kind,
        "index": finding.component.index,
        "verdict": finding.verdict.value,
        "severity": finding.severity.value,
        "confidence": finding.confidence,
        "since": finding.since,
        "ended": finding.ended,
        "summary": finding.summary,
        "evidence": _from_evidence(finding.evidence),
        "unknown": finding.unknown.value if finding.unknown else None,
        "trust": finding.trust.value,
        "locality": finding.locality.value,
        "action": finding.action,
        "proof": finding.proof,
        "clears": finding.clears,
        "rule_version": finding.rule_version,
        "boot_id": finding.boot_id,
    }


def to_finding(row: sa.RowMapping) -> Finding:
    return Finding(
        check=row["check_id"],
        component=ComponentRef(row["node"], row["component"], row["index"]),
        verdict=Verdict(row["verdict"]),
        severity=Severity(row["severity"]),
        confidence=row["confidence"],
        since=row["since"],
        summary=row["summary"],
        evidence=_to_evidence(row["evidence"]),
        unknown=UnknownReason(row["unknown"]) if row["unknown"] else None,
        trust=Trust(row["trust"]),
        locality=Locality(row["locality"]),
        action=row["action"],
        proof=row["proof"],
        clears=row["clears"],
        rule_version=row["rule_version"],
        boot_id=row["boot_id"],
        ended=row["ended"],
    )


def from_hold(hold: Hold) -> Row:
    return {
        "key": hold.key,
        "node": hold.subject.node,
        "component": hold.subject.kind,
        "index": hold.subject.index,
        "effect": hold.effect.value,
        "owner_kind": hold.owner.kind.value,
        "owner_name": hold.owner.name,
        "state": hold.state.value,
        "reason": hold.reason,
        "since": hold.since,
        "ended": hold.ended,
        "evidence": _from_evidence(hold.evidence),
        "because": hold.because,
        "clears": hold.clears,
        "waiting_for": hold.waiting_for,
        "deadline": hold.deadline,
    }


def to_hold(row: sa.RowMapping) -> Hold:
    return Hold(
        key=row["key"],
        subject=ComponentRef(row["node"], row["component"], row["index"]),
        effect=Effect(row["effect"]),
        owner=Owner(OwnerKind(row["owner_kind"]), row["owner_name"]),
        state=HoldState(row["state"]),
        reason=row["reason"],
        since=row["since"],
        evidence=_to_evidence(row["evidence"]),
        because=tuple(row["because"]),
        clears=row["clears"],
        waiting_for=row["waiting_for"],
        deadline=row["deadline"],
        ended=row["ended"],
    )


def from_state(state: Transition) -> Row:
    return {
        "node": state.node,
        "state": state.state,
        "flags": state.flags,
        "at": state.at,
        "reason": state.reason,
        "user": state.user,
        "reason_at": state.reason_at,
    }


def to_state(row: sa.RowMapping) -> Transition:
    return Transition(
        node=row["node"],
        state=row["state"],
        flags=tuple(row["flags"]),
        at=row["at"],
        reason=row["reason"],
        user=row["user"],
        reason_at=row["reason_at"],
    )


# all fields of an event but its role, which is an enum, and those that old rows do not have
_EVENT_FIELDS = tuple(field.name for field in fields(LogEvent) if field.name not in ("role", "more", "timed"))


def from_event(event: LogEvent) -> Row:
    return {name: getattr(event, name) for name in _EVENT_FIELDS} | {
        "role": event.role.value,
        "more": event.more,
        "timed": event.timed,
    }


def to_event(row: sa.RowMapping) -> LogEvent:
    return LogEvent(
        role=Role(row["role"]),
        more=row["more"] or 0,
        timed=row["timed"] is not False,
        **{name: row[name] for name in _EVENT_FIELDS},
    )


def from_boot(boot: Boot) -> Row:
    return {"node": boot.node, "boot_id": boot.boot_id, "at": boot.at}


def to_boot(row: sa.RowMapping) -> Boot:
    return Boot(row["node"], row["boot_id"], row["at"])


def from_source(source: SourceState) -> Row:
    return {
        "source": source.source,
        "health": source.health.value,
        "since": source.since,
        "last_seen": source.last_seen,
        "problems": source.problems,
    }


def to_source(row: sa.RowMapping) -> SourceState:
    return SourceState(
        row["source"], SourceHealth(row["health"]), row["since"], row["last_seen"], tuple(row["problems"])
    )
