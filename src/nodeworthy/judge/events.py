"""Event checks: what was said once in a log → findings that stand until something ends them.

A line counts for a check when its kind, code and rule match, when it came by kernel transport (a tenant can
write anything else, design law 14), when its host is a declared node, and when it belongs to the present boot:
lines from before the boot are history (law 9). Where the boot is not known, a line that was a day old when it was read
may be history too, and so may a line without a time of its own: they explain and never hold. For a check that asks for a hold the line must also be read as
error or fatal, and not as a symptom or as a program's doing: by-products never hold (law 4).

A finding ends when the node has a newer boot, when a proof that began after the last line passed, or
when `clear_s` (if the check has one) passed without another such line. `count` lines within `window_s` are needed.
The finding is about the GPU where the line names one and the check is about GPUs, else about the node.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final

from nodeworthy.judge.catalogue_check import LINES_KEPT
from nodeworthy.model.catalogue import Catalogue, Check, EventMatch
from nodeworthy.model.event import LogEvent, Role
from nodeworthy.model.fact import GPU
from nodeworthy.model.finding import ComponentRef, Evidence, Finding, Severity, Verdict

# The kernel's first lines are stamped by syslog when it starts, and the boot time that a scheduler or exporter reports
# is computed from uptime and the clock before it was set: two minutes cover both.
BOOT_SLACK_S: Final = 120.0
# Logs are read as they grow. A line that was older than this when it was read is from a backlog, which may reach back
# over a boot; a day passes what a collector that was away over night delivers late.
BACKLOG_S: Final = 86400.0
LONGEST_MESSAGE: Final = 500
_HOLDING: Final = (Severity.ERROR.value, Severity.FATAL.value)
_INNOCENT: Final = (Role.APPLICATION, Role.SYMPTOM)

Key = tuple[str, ComponentRef]


@dataclass(frozen=True, slots=True)
class Heard:
    """The lines of one check and component: how many in all, and the latest `LINES_KEPT`, oldest first."""

    total: int
    first_at: float
    lines: tuple[LogEvent, ...]

    @property
    def last_at(self) -> float:
        return self.lines[-1].at


@dataclass(frozen=True, slots=True)
class EventState:
    heard: Mapping[Key, Heard] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class EventJudgement:
    findings: tuple[Finding, ...]
    state: EventState


def judge_events(
    catalogue: Catalogue,
    events: Iterable[LogEvent],
    previous: EventState,
    now: float,
    *,
    boots: Mapping[str, float] | None = None,
    proofs: Mapping[ComponentRef, float] | None = None,
) -> EventJudgement:
    """One turn over new events. `boots`: node → when it booted, where known. `proofs`: component → start of
    the last proof that it passed; a proof of the node covers its GPUs."""
    checks = _by_kind(catalogue)
    heard = dict(previous.heard)
    for event in events:
        event = event if event.read_at is not None else replace(event, read_at=now)
        for check in checks.get(event.kind, ()):
            if check.event is not None and _counts(check, check.event, event):
                key = (check.id, _component(check, event))
                heard[key] = _add(heard.get(key), event, check.clear_s)
    kept: dict[Key, Heard] = {}
    for key, lines in heard.items():
        known = catalogue.checks.get(key[0])
        left = _still_valid(lines, known, key[1], now, boots or {}, proofs or {}) if known else None
        if left is not None:
            kept[key] = left
    findings = []
    for (name, ref), lines in kept.items():
        check = catalogue.checks[name]
        proving = _of_this_boot(lines, ref.node in (boots or {})) if check.effect else lines
        if proving is not None:
            findings.append(_finding(check, ref, proving))
    return EventJudgement(tuple(f for f in findings if f is not None), EventState(kept))


def to_data(state: EventState) -> list[dict[str, Any]]:
    """The state as plain values, for the store: a restart must not forget what the log said of this boot."""
    return [
        {
            "check": check,
            "component": asdict(component),
            "total": heard.total,
            "first_at": heard.first_at,
            "lines": [{**asdict(line), "role": line.role.value} for line in heard.lines],
        }
        for (check, component), heard in state.heard.items()
    ]


def from_data(rows: Iterable[Mapping[str, Any]]) -> EventState:
    """The state that `to_data` gave."""
    return EventState(
        {
            (row["check"], ComponentRef(**row["component"])): Heard(
                row["total"],
                row["first_at"],
                tuple(LogEvent(**{**line, "role": Role(line["role"])}) for line in row["lines"]),
            )
            for row in rows
        }
    )


def _by_kind(catalogue: Catalogue) -> dict[str, list[Check]]:
    checks: dict[str, list[Check]] = {}
    for check in catalogue.checks.values():
        if check.event is not None:
            checks.setdefault(check.event.kind, []).append(check)
    return checks


def _counts(check: Check, match: EventMatch, event: LogEvent) -> bool:
    if not event.trusted or event.node is None:
        return False
    if match.codes and event.code not in match.codes:
        return False
    if match.rules and event.rule not in match.rules:
        return False
    return not check.effect or (event.severity in _HOLDING and event.role not in _INNOCENT)


def _component(check: Check, event: LogEvent) -> ComponentRef:
    if check.kind == GPU and event.gpu is not None:
        return ComponentRef(event.node or "", GPU, str(event.gpu))
    return ComponentRef(event.node or "")


def _add(heard: Heard | None, event: LogEvent, clear_s: float) -> Heard:
    """A line that stands for others counts for all of them. With `clear_s` a quiet time longer than it begins anew, so that it does not matter when turns were made."""
    if heard is None or (clear_s > 0 and event.at - heard.last_at > clear_s):
        return Heard(1 + event.more, event.at, (event,))
    lines = (*heard.lines, event)
    if event.at < heard.last_at:  # a file that was read late
        lines = tuple(sorted(lines, key=lambda e: e.at))
    return Heard(heard.total + 1 + event.more, min(heard.first_at, event.at), lines[-LINES_KEPT:])


def _still_valid(
    heard: Heard,
    check: Check,
    component: ComponentRef,
    now: float,
    boots: Mapping[str, float],
    proofs: Mapping[ComponentRef, float],
) -> Heard | None:
    """What is left of the lines after boot, proof and expiry; None where nothing is."""
    start = boots.get(component.node, float("-inf")) - BOOT_SLACK_S
    for proven in (component, ComponentRef(component.node)):
        start = max(start, proofs.get(proven, float("-inf")))
    if check.clear_s > 0 and now - heard.last_at > check.clear_s:
        return None
    if heard.first_at >= start:
        return heard
    lines = tuple(line for line in heard.lines if line.at >= start)
    return replace(heard, total=len(lines), first_at=lines[0].at, lines=lines) if lines else None


def _of_this_boot(heard: Heard, boot_known: bool) -> Heard | None:
    """The lines that are surely of the present boot, which alone may ask for a hold; None where there is none."""
    lines = tuple(
        line
        for line in heard.lines
        if line.timed and (boot_known or line.read_at is None or line.read_at - line.at <= BACKLOG_S)
    )
    if len(lines) == len(heard.lines):
        return heard
    return replace(heard, total=len(lines), first_at=lines[0].at, lines=lines) if lines else None


def _where(event: LogEvent) -> str:
    place = event.component or event.host
    return place if event.gpu is None else f"gpu{event.gpu} at {place}"


def _finding(check: Check, component: ComponentRef, heard: Heard) -> Finding | None:
    match = check.event
    assert match is not None
    since = heard.first_at
    if match.count > 1:
        # enough lines close together, the latest such group; LINES_KEPT bounds what a count can ask for
        times = [line.at for line in heard.lines]
        groups = [
            t
            for t, u in zip(times, times[match.count - 1 :], strict=False)
            if not match.window_s or u - t <= match.window_s
        ]
        if not groups:
            return None
        since = groups[0]
    times_said = "" if heard.total == 1 else f", {heard.total} times"
    last = heard.lines[-1]
    shown = (heard.lines[0], last) if len(heard.lines) > 1 else (last,)
    return Finding(
        check=check.id,
        component=component,
        verdict=Verdict.TRUE,
        severity=check.severity,
        confidence=1.0,
        since=since,
        summary=f"{check.title} ({_where(last)}{times_said})",
        evidence=tuple(
            Evidence(f"{e.kind} {e.code}", e.message[:LONGEST_MESSAGE], e.source or "log", e.at) for e in shown
        ),
        trust=check.trust,
        locality=check.locality,
        action=check.action,
        proof=check.proof,
        clears=check.clears,
        rule_version=check.version,
    )
