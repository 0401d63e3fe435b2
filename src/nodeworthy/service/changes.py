"""What is new in a picture: ledger entries with causes, and the rows to keep. Pure.

The ledger is for people: it says what opened, ended, went out of sight, changed hands or came back, once each. Each
entry names its cause (a finding, a hold, a source), so that a chain can be followed from effect to origin.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from nodeworthy.judge.explain import UNKNOWN_SINCE
from nodeworthy.model.finding import Finding
from nodeworthy.model.hold import Hold, HoldState, OwnerKind
from nodeworthy.model.ledger import Entry
from nodeworthy.model.record import Boot, Outcome, SourceHealth, SourceState, Transition
from nodeworthy.model.status import NodeState
from nodeworthy.observe.snapshot import SourceReading
from nodeworthy.service.picture import Picture

UNSEEN_S = 60.0  # our judgement: a few missed readings are no story, a minute without sight is one


def changes(before: Picture, after: Picture) -> Outcome:
    """Everything that the turn from `before` to `after` has to record, for one transaction."""
    findings = [f for k, f in after.findings.items() if _differs(before.findings.get(k), f)]
    holds = [h for k, h in after.holds.items() if _hold_differs(before.holds.get(k), h)]
    transitions = [t for n, t in after.transitions.items() if before.transitions.get(n) != t]
    at = after.at
    entries = [
        *_finding_entries(before, after, at),
        *_hold_entries(before, after, at),
        *_status_entries(before, after, at),
        *_mark_entries(before, after, transitions),
        *_source_entries(before, after, at),
        *_world_entries(before, after, at),
    ]
    return Outcome(
        at=at,
        entries=tuple(entries),
        findings=tuple(findings),
        closed=tuple(k for k in before.findings if k not in after.findings),
        holds=tuple(holds),
        states=tuple(transitions),
        boots=tuple(Boot(n, f"{at:.0f}", at) for n, at in after.boots.items() if before.boots.get(n) != at),
        sources=tuple(_source_rows(before, after, at)),
        events=after.seen.events,
        cursors=after.seen.cursors,
    )


def _differs(old: Finding | None, new: Finding) -> bool:
    """Only what changes the story is kept again."""
    if old is None:
        return True
    return (old.verdict, old.severity, old.since, old.summary, old.unknown) != (
        new.verdict, new.severity, new.since, new.summary, new.unknown,
    )  # fmt: skip


def _hold_differs(old: Hold | None, new: Hold) -> bool:
    if old is None or bool(old.waiting_for) != bool(new.waiting_for):
        return True
    return (
        old is not new
        and old != new
        and replace(old, evidence=(), waiting_for="") != replace(new, evidence=(), waiting_for="")
    )


def _finding_entries(before: Picture, after: Picture, at: float) -> Iterator[Entry]:
    for key, finding in after.findings.items():
        old = before.findings.get(key)
        subject = str(finding.component)
        data = {"check": finding.check, "severity": finding.severity, "trust": finding.trust}
        if old is None:
            yield Entry(at, "finding.opened", subject, finding.summary, key, data=data)
            continue
        unseen, was_unseen = _unseen(finding, at), _unseen(old, before.at)
        if unseen and not was_unseen:
            why = f"cannot be seen now ({finding.unknown}): {finding.summary}"
            yield Entry(at, "finding.unseen", subject, why, key, data=data)
        elif was_unseen and finding.unknown is None:
            yield Entry(at, "finding.seen", subject, f"seen again: {finding.summary}", key, data=data)
    for key, old in before.findings.items():
        if key not in after.findings:
            yield Entry(at, "finding.closed", str(old.component), f"no longer so: {old.summary}", key)


def _unseen(finding: Finding, at: float) -> bool:
    """Whether it has been out of sight for so long that people should know: a value that comes and goes is no news."""
    if finding.unknown is None:
        return False
    since = next((e.seen for e in finding.evidence if e.what == UNKNOWN_SINCE), None)
    return since is None or at - since >= UNSEEN_S


def _hold_entries(before: Picture, after: Picture, at: float) -> Iterator[Entry]:
    for key, hold in after.holds.items():
        old = before.holds.get(key)
        if old is not None and old.state is HoldState.LIFTED:
            old = None  # what comes now is another hold for the same cause
        subject, data = str(hold.subject), {"hold": hold.key}
        waits = bool(hold.waiting_for)
        if hold.state is HoldState.LIFTED:
            if old is not None:
                yield Entry(at, "hold.lifted", subject, f"would no longer hold: {hold.reason}", key, data=data)
        elif waits and (old is None or not old.waiting_for):
            yield Entry(at, "hold.waits", subject, f"waits for {hold.waiting_for}: {hold.reason}", key, data=data)
        elif not waits and (old is None or old.waiting_for):
            yield Entry(at, "hold.would", subject, f"would hold ({hold.effect}): {hold.reason}", key, data=data)


def _status_entries(before: Picture, after: Picture, at: float) -> Iterator[Entry]:
    for name, status in after.told.items():
        old = before.told.get(name)
        if old is None and status.state is NodeState.SERVING:
            continue
        was = old.state if old else "not seen before"
        if old is None or old.state is not status.state:
            reason = f": {status.reason}" if status.reason else ""
            yield Entry(at, "node.state", name, f"{was} → {status.state}{reason}",
                        data={"from": str(was), "to": status.state, "reason": status.reason, "since": status.since})  # fmt: skip


def _mark_entries(before: Picture, after: Picture, transitions: Iterable[Transition]) -> Iterator[Entry]:
    """A mark that appeared, changed or went, with whose it is as far as the slot tells."""
    for now in transitions:
        old = before.transitions.get(now.node)
        old_reason = old.reason if old else None
        if now.reason == old_reason or (old is None and before.number == 0):
            continue
        mark = after.marks.get(now.node)
        actor = str(mark.owner) if mark else OwnerKind.SOMEONE.value
        if now.reason:
            change = f"reason changed from {old_reason!r}: " if old_reason else ""
            yield Entry(after.at, "node.marked", now.node, f"{change}{now.reason}", actor=actor,
                        data={"state": now.state, "user": now.user, "written_at": now.reason_at})  # fmt: skip
        else:
            yield Entry(after.at, "node.unmarked", now.node, f"mark gone: {old_reason}", actor=OwnerKind.SOMEONE.value)


def _source_entries(before: Picture, after: Picture, at: float) -> Iterator[Entry]:
    for name, reading in after.seen.sources.items():
        if name in after.lost and name not in before.lost:
            yield Entry(at, "source.lost", name, f"{reading.kind} {name} is not seen: {reading.why}")
        elif name in before.lost and name not in after.lost:
            yield Entry(at, "source.back", name, f"{reading.kind} {name} is seen again")


def _world_entries(before: Picture, after: Picture, at: float) -> Iterator[Entry]:
    world = after.world
    declared = {
        "fleet": f"{len(world.fleet.nodes)} nodes declared",
        "catalogue": f"{len(world.catalogue.checks)} checks",
    }
    for kind, words in declared.items():
        revision = after.revisions.get(kind)
        if revision != before.revisions.get(kind):
            yield Entry(at, f"{kind}.revision", kind, f"{kind} {revision}: {words}")


def _source_rows(before: Picture, after: Picture, at: float) -> Iterator[SourceState]:
    for name, reading in after.seen.sources.items():
        row = _source_row(reading, at)
        old = before.seen.sources.get(name)
        was = _source_row(old, before.at) if old else None
        if was is None or (was.health, was.problems) != (row.health, row.problems):
            yield row


def _source_row(reading: SourceReading, at: float) -> SourceState:
    problems = (reading.problem,) if reading.problem else reading.notes
    if reading.last_ok is None and not reading.problem:
        health = SourceHealth.UNKNOWN
    else:
        health = SourceHealth.LOST if reading.lost(at) else SourceHealth.FINE
    return SourceState(reading.name, health, reading.last_ok or reading.since, reading.last_ok, problems)
