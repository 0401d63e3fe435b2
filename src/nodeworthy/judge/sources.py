"""One finding per source that does not see what it should: quiet, stale, ahead of time, down, or garbled.

It names the source and never a node: losing sight of a node says nothing about the node (design law 1).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final, Protocol

from nodeworthy.judge.frames import Frames, SourceNote, State
from nodeworthy.model.finding import ComponentRef, Evidence, Finding, Locality, Severity, Trust, UnknownReason, Verdict
from nodeworthy.model.nodeset import fold

CHECK: Final = "source-blind"
HALF: Final = 0.5  # from this share of its rows on the finding is an error, below it a warning
MANY: Final = 200  # a node set of more nodes than this is cut
_WORDS: Final = {
    State.STALE: "no fresh value",
    State.FUTURE: "a time stamp in the future",
    State.SOURCE_DOWN: "no answer",
}


def source_findings(frames: Frames, previous: Mapping[str, Finding], now: float) -> dict[str, Finding]:
    """Source → its finding, for the sources that are not well now. `since` goes on while it lasts."""
    found: dict[str, Finding] = {}
    for source, note in frames.notes.items():
        finding = _finding(source, note, frames, previous.get(source), now)
        if finding is not None:
            found[source] = finding
    return found


class Silent(Protocol):
    """A source that is read whole or not at all: the scheduler, a log."""

    @property
    def name(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def why(self) -> str: ...


def silent_findings(sources: Iterable[Silent], previous: Mapping[str, Finding], now: float) -> list[Finding]:
    """One finding for each source that is silent now. `previous`: the findings of the last turn, by key."""
    found = []
    for source in sources:
        finding = Finding(
            check=CHECK,
            component=ComponentRef(source.name, "source"),
            verdict=Verdict.TRUE,
            severity=Severity.ERROR,
            confidence=1.0,
            since=now,
            summary=f"{source.kind} {source.name} is silent: {source.why}. What it tells is unknown.",
            evidence=(Evidence("problem", source.why, source.name, now),),
            locality=Locality.SHAREABLE,
            action="Check the source and the way to it; the nodes are not to blame.",
            clears="It answers again.",
            rule_version="1",
        )
        before = previous.get(finding.key)
        found.append(replace(finding, since=before.since) if before else finding)
    return found


def carried(
    findings: Mapping[str, Finding], unheard: Iterable[str], previous: Mapping[str, Finding]
) -> dict[str, Finding]:
    """The findings about sources, over turns and restarts: one that goes on keeps the time it began, and of a source
    that is `unheard` since we started, what was known of it stands. All by key."""
    known = {key: found for key, found in previous.items() if found.check == CHECK}
    waiting = {f"{CHECK}@{ComponentRef(name, 'source')}" for name in unheard}
    now = {key: found for key, found in findings.items() if found.check == CHECK}
    going_on = {key: replace(found, since=known[key].since) for key, found in now.items() if key in known}
    return {key: found for key, found in known.items() if key in waiting} | going_on


def _finding(source: str, note: SourceNote, frames: Frames, before: Finding | None, now: float) -> Finding | None:
    lost: dict[State, int] = {}
    nodes: set[str] = set()
    known = 0
    for table in frames.tables.values():
        part = table.parts.get(source)
        if part is None:
            continue
        known += len(part.states)
        if part.all_fresh:
            continue
        counts = {loss.state: loss.count for loss in part.losses}
        known -= counts.get(State.NEVER_SEEN, 0)
        bad = part.states.is_in([int(s) for s in _WORDS])
        nodes.update(table.frame["node"].filter(bad).unique())
        for state in _WORDS:
            lost[state] = lost.get(state, 0) + counts.get(state, 0)
    total = sum(lost.values())
    if not (total or note.down or note.problems):
        return None
    severity = Severity.ERROR if note.down or (known and total >= HALF * known) else Severity.WARNING
    return Finding(
        check=CHECK,
        component=ComponentRef(source, "source"),
        verdict=Verdict.TRUE,
        severity=severity,
        confidence=1.0,
        since=before.since if before else now,
        summary=_summary(source, note, lost, known, nodes),
        evidence=_evidence(source, note, lost, nodes, now),
        unknown=UnknownReason.SOURCE_DOWN if note.down else None,
        trust=Trust.SHADOW,
        locality=Locality.SHAREABLE,
        action="Check the exporter or collector and the network to it; the nodes are not to blame.",
        clears="Every component that the source has reported is reported again, without problems.",
        rule_version="1",
    )


def _summary(source: str, note: SourceNote, lost: Mapping[State, int], known: int, nodes: set[str]) -> str:
    parts = [f"{_WORDS[state]} for {count} of {known} components" for state, count in lost.items() if count]
    if nodes:
        parts.append(f"{len(nodes)} nodes: {_fold(nodes)}")
    if note.down:
        parts.insert(0, note.down)
    if note.problems:
        parts.append(f"{len(note.problems)} problems, first: {note.problems[0]}")
    return f"{source} does not see: " + "; ".join(parts) + ". What depends on it is unknown."


def _evidence(
    source: str, note: SourceNote, lost: Mapping[State, int], nodes: set[str], now: float
) -> tuple[Evidence, ...]:
    rows = [Evidence(_WORDS[state], f"{count} components", source, now) for state, count in lost.items() if count]
    if nodes:
        rows.append(Evidence("nodes", _fold(nodes), source, now))
    if note.down:
        rows.append(Evidence("down", note.down, source, now))
    rows += [Evidence("problem", text, source, now) for text in note.problems[:20]]
    if note.unknown_names:
        rows.append(Evidence("names not declared", ", ".join(note.unknown_names[:20]), source, now))
    return tuple(rows)


def _fold(nodes: set[str]) -> str:
    names = sorted(nodes)
    return fold(names[:MANY]) + (f" and {len(names) - MANY} more" if len(names) > MANY else "")
