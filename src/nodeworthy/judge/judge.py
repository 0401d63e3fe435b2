"""Judge: facts → findings.

All checks of a kind are one Polars select that gives a Boolean column per check: true, false, or null for
unknown. Everything after that touches only what is not well:

    answer   no entry      pending                    finding
    true     → pending     opens after `for_s`        stays; a clearing that had begun is forgotten
    false    –             forgotten                  closes after `clear_s` of false
    unknown  –             waits, time stops          stays as last known, marked unknown since …

So a row at rest has no state, what is unknown neither opens nor closes a finding, and time that nobody
looked does not count towards `for_s` or `clear_s`: they are counted by when the inputs were seen (`judge.looks`), so
one sample that is judged in many turns is one look. A finding that opened often in an hour says so
(flapping). Unknown answers are not objects: they are counted per (check, reason, source).

A check that cannot be evaluated is our error: its answers are unknown ("check failed") and one finding names
Nodeworthy itself. A source that went quiet gives one finding about the source and none about any node.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import polars as pl

from nodeworthy.judge import explain
from nodeworthy.judge.compile import compile_condition
from nodeworthy.judge.debounce import Answer, RowState, moves, step
from nodeworthy.judge.frames import Frames, Table
from nodeworthy.judge.looks import last_looks
from nodeworthy.judge.sources import CHECK as SOURCE_CHECK
from nodeworthy.judge.sources import source_findings
from nodeworthy.judge.unknown import UnknownGroup, reason_at, unknown_groups
from nodeworthy.model.catalogue import Catalogue, Check, Feature
from nodeworthy.model.finding import ComponentRef, Evidence, Finding, Locality, Severity, UnknownReason, Verdict
from nodeworthy_node import conditions

# Longer between two turns than this is time in which nobody looked; it does not count towards any debounce.
LONGEST_TURN_S: Final = 300.0
SELF: Final = ComponentRef("nodeworthy", "self")


@dataclass(frozen=True, slots=True)
class JudgeState:
    """What judging remembers between turns. `rows`: check → row of its kind's frame → state."""

    at: float | None = None
    fleet_revision: str = ""
    rows: Mapping[str, Mapping[int, RowState]] = field(default_factory=dict)
    sources: Mapping[str, Finding] = field(default_factory=dict)
    failures: Mapping[str, float] = field(default_factory=dict)
    keys: Mapping[str, pl.DataFrame] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Judgement:
    """The findings that stand now, what to remember, and what could not be judged and why.

    `answers`: kind → a Boolean column per check, a row per component as in the kind's frame; null is unknown.
    """

    findings: tuple[Finding, ...]
    state: JudgeState
    unknown: tuple[UnknownGroup, ...]
    answers: Mapping[str, pl.DataFrame] = field(default_factory=dict)


def judge(catalogue: Catalogue, frames: Frames, previous: JudgeState, now: float) -> Judgement:
    """One turn of judging. Never raises on odd data; the same input gives the same judgement."""
    before = _carry_over(previous, frames, catalogue)
    blind_s = now - before.at if before.at is not None and now - before.at > LONGEST_TURN_S else 0.0
    rows: dict[str, Mapping[int, RowState]] = {}
    findings: list[Finding] = []
    unknown: list[UnknownGroup] = []
    failures: dict[str, float] = {}
    kept: dict[str, pl.DataFrame] = {}
    for kind, table in frames.tables.items():
        checks = [c for c in catalogue.checks.values() if c.kind == kind and c.condition is not None]
        if not checks or table.frame.is_empty():
            continue
        answers, broken = _answers(checks, table.frame)
        kept[kind] = answers
        for check in checks:
            column = answers[check.id]
            if check.id in broken:
                failures[check.id] = before.failures.get(check.id, now)
                findings.append(_failed(check, failures[check.id], broken[check.id]))
            turn = _Turn(check, table, column, catalogue.features, now, blind_s, check.id in broken)
            rows_now, found = turn.run(before.rows.get(check.id, {}))
            if rows_now:
                rows[check.id] = rows_now
            findings += found
            unknown += unknown_groups(check, table, column, failed=check.id in broken)
    sources = source_findings(frames, before.sources, now)
    state = JudgeState(now, frames.fleet_revision, rows, sources, failures, _keys(frames))
    return Judgement((*findings, *sources.values()), state, tuple(unknown), kept)


def resume(catalogue: Catalogue, frames: Frames, findings: Iterable[Finding]) -> JudgeState:
    """The state after a restart, from the findings that stood before it.

    They stand on as last known until the first answer: what became well meanwhile closes after `clear_s`, what
    is not seen stays, with its `since`. Findings of checks or components that are gone are left out.
    """
    places: dict[str, dict[tuple[str, str], int]] = {}
    rows: dict[str, dict[int, RowState]] = {}
    found_before = tuple(findings)
    for found in found_before:
        check = catalogue.checks.get(found.check)
        if (
            check is None
            or check.condition is None
            or check.kind not in frames.tables
            or found.verdict is not Verdict.TRUE
        ):
            continue
        if check.kind not in places:
            keys = frames.tables[check.kind].frame.select("node", "index").iter_rows()
            places[check.kind] = {(node, index): row for row, (node, index) in enumerate(keys)}
        row = places[check.kind].get((found.component.node, found.component.index))
        if row is not None:
            blind_from = found.since if found.unknown is not None else None
            state = RowState(
                since=found.since, active=True, blind_from=blind_from, openings=(found.since,), finding=found
            )
            rows.setdefault(check.id, {})[row] = state
    sources = {f.component.node: f for f in found_before if f.check == SOURCE_CHECK}
    return JudgeState(fleet_revision=frames.fleet_revision, rows=rows, sources=sources, keys=_keys(frames))


def _keys(frames: Frames) -> dict[str, pl.DataFrame]:
    """Which component each row number of the state is."""
    return {kind: table.frame.select("node", "index") for kind, table in frames.tables.items()}


@dataclass(frozen=True, slots=True)
class _Turn:
    """One check in one turn."""

    check: Check
    table: Table
    column: pl.Series
    features: Mapping[str, Feature]
    now: float
    blind_s: float
    failed: bool

    def run(self, before: Mapping[int, RowState]) -> tuple[dict[int, RowState], list[Finding]]:
        true_rows = self.column.arg_true().to_list() if self.column.any() else []
        answers: dict[int, Answer] = dict.fromkeys(true_rows, True)
        others = [row for row in before if row not in answers]
        if others:
            answers.update(zip(others, self.column.gather(others).to_list(), strict=True))
        after: dict[int, RowState] = {}
        opening: list[int] = []
        check, looks = (
            self.check,
            self._looks([row for row, answer in answers.items() if moves(before.get(row), answer)]),
        )
        for row, answer in answers.items():
            looked = looks.get(row, self.now)
            state = step(before.get(row), answer, check.for_s, check.clear_s, self.now, looked, self.blind_s)
            if state is None:
                continue
            after[row] = state
            if state.active and state.finding is None:
                opening.append(row)
        for row, finding in zip(opening, self._open(opening, after), strict=True):
            after[row] = replace(after[row], finding=finding)
        return after, self._standing(after)

    def _looks(self, rows: list[int]) -> dict[int, float]:
        """When the answer of each of the rows was looked at."""
        if not rows:
            return {}
        names = explain.names_of(self.check.condition or "")
        return dict(zip(rows, last_looks(self.table, names, self.features, rows, self.now), strict=True))

    def _open(self, rows: list[int], states: Mapping[int, RowState]) -> list[Finding]:
        if not rows:
            return []
        evidence = explain.evidence(self.check, self.table, rows)
        nodes = self.table.frame["node"].gather(rows).to_list()
        indexes = self.table.frame["index"].gather(rows).to_list()
        return [
            explain.finding(
                self.check,
                ComponentRef(node, self.check.kind, index),
                states[row].since,
                proofs,
                len(states[row].openings),
            )
            for row, node, index, proofs in zip(rows, nodes, indexes, evidence, strict=True)
        ]

    def _standing(self, after: dict[int, RowState]) -> list[Finding]:
        """The findings of active rows; where the input became unknown they say so, and stop saying so after."""
        standing: list[Finding] = []
        for row, state in after.items():
            found = state.finding
            if not state.active or found is None:
                continue
            if (state.blind_from is not None) != (found.unknown is not None):
                found = (
                    self._known(found) if state.blind_from is None else self._last_known(found, row, state.blind_from)
                )
                after[row] = replace(state, finding=found)
            standing.append(found)
        return standing

    def _last_known(self, found: Finding, row: int, since: float) -> Finding:
        reason = UnknownReason.CHECK_FAILED if self.failed else reason_at(self.check, self.table, row)
        note = Evidence(explain.UNKNOWN_SINCE, reason.value, "judge", since)
        return replace(
            found,
            unknown=reason,
            confidence=found.confidence * explain.BLIND_CONFIDENCE,
            evidence=(*found.evidence, note),
        )

    def _known(self, found: Finding) -> Finding:
        evidence = tuple(e for e in found.evidence if e.what != explain.UNKNOWN_SINCE)
        return replace(found, unknown=None, confidence=found.confidence / explain.BLIND_CONFIDENCE, evidence=evidence)


def _answers(checks: Sequence[Check], frame: pl.DataFrame) -> tuple[pl.DataFrame, dict[str, str]]:
    """A Boolean column per check, and check → why for those that could not be evaluated (all unknown)."""
    exprs = _expressions(checks, frame.schema)
    try:
        answers = frame.select(list(exprs.values()))
    except Exception:  # noqa: BLE001  one broken check must not blind the others: find out which below
        answers = None
    if answers is not None and answers.height == frame.height:
        return answers, {}
    columns: list[pl.Series] = []
    broken: dict[str, str] = {}
    for name, expr in exprs.items():
        try:
            column = frame.select(expr).to_series()
            if len(column) != frame.height or column.dtype != pl.Boolean:
                raise TypeError(f"{len(column)} answers of type {column.dtype} for {frame.height} rows")
        except Exception as error:  # noqa: BLE001  whatever it is, it is our error and not the node's
            broken[name] = f"{type(error).__name__}: {error}"
            column = pl.Series(name, dtype=pl.Boolean).clear(frame.height)
        columns.append(column)
    return pl.DataFrame(columns), broken


_compiled: dict[tuple[object, ...], dict[str, pl.Expr]] = {}


def _expressions(checks: Sequence[Check], schema: pl.Schema) -> dict[str, pl.Expr]:
    """Check id → expression. Remembered while checks and columns stay the same; frames hold no NaN."""
    key = (tuple((c.id, c.condition, c.applies) for c in checks), tuple(schema.items()))
    if key not in _compiled:
        if len(_compiled) >= 2 * 3:  # three kinds, and as many while a catalogue or fleet changes
            _compiled.clear()
        _compiled[key] = {c.id: _expression(c, schema).alias(c.id) for c in checks}
    return _compiled[key]


def _expression(check: Check, schema: pl.Schema) -> pl.Expr:
    """Where a check does not apply the answer is false: it neither opens nor is it unknown."""
    expr = compile_condition(conditions.parse(check.condition or ""), schema, finite=True)
    if not check.applies:
        return expr
    applies = compile_condition(conditions.parse(check.applies), schema, finite=True)
    return pl.when(applies).then(expr).otherwise(False)


def _failed(check: Check, since: float, why: str) -> Finding:
    return Finding(
        check="check-failed",
        component=replace(SELF, index=check.id),
        verdict=Verdict.TRUE,
        severity=Severity.ERROR,
        confidence=1.0,
        since=since,
        summary=f"check {check.id} version {check.version} cannot be evaluated; what it would say is unknown",
        evidence=(Evidence("error", why[:500], "judge", None),),
        locality=Locality.SELF_EVIDENT,
        action="Report it as a defect, with the catalogue layer of the check.",
        clears="The check can be evaluated again.",
        rule_version=check.version,
    )


def _carry_over(previous: JudgeState, frames: Frames, catalogue: Catalogue) -> JudgeState:
    """State is kept by row number; after a change of the fleet the same components have other numbers."""
    if previous.fleet_revision in ("", frames.fleet_revision):
        return previous
    moves: dict[str, dict[int, int]] = {}
    for kind, table in frames.tables.items():
        old = previous.keys.get(kind)
        if old is not None:
            rows = {key: row for row, key in enumerate(table.frame.select("node", "index").iter_rows())}
            moves[kind] = {row: rows[key] for row, key in enumerate(old.iter_rows()) if key in rows}
    carried: dict[str, Mapping[int, RowState]] = {}
    for check, states in previous.rows.items():
        move = moves.get(catalogue.checks[check].kind, {}) if check in catalogue.checks else {}
        carried[check] = {move[row]: state for row, state in states.items() if row in move}
    return replace(previous, rows=carried)
