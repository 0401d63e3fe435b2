"""Findings for people: the values that made a check true, where each is from, and one sentence."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from nodeworthy.judge.frames import State, Table
from nodeworthy.model.catalogue import Check
from nodeworthy.model.fact import CLASS_PREFIX
from nodeworthy.model.finding import ComponentRef, Evidence, Finding, Verdict
from nodeworthy_node import conditions

UNKNOWN_SINCE: Final = "unknown since"
BLIND_CONFIDENCE: Final = 0.5  # a finding whose input is no longer seen is believed half as much
FLAPPING: Final = 3  # this many openings in an hour are called flapping


@lru_cache(maxsize=1024)
def names_of(condition: str) -> tuple[str, ...]:
    """The names in a condition, signals before expectations."""
    names = conditions.parse(condition).names
    return tuple(sorted(names, key=lambda name: (name.startswith(CLASS_PREFIX), name)))


def evidence(check: Check, table: Table, rows: list[int]) -> list[tuple[Evidence, ...]]:
    """For each row the values of the condition's names, with their source and when they were seen."""
    names = [n for n in names_of(check.condition or "") if n in table.frame.columns]
    columns = []
    for name in names:
        values = table.frame[name].gather(rows).to_list()
        said = zip(values, _origins(table, name, rows), strict=True)
        columns.append([Evidence(name, show(value), source, seen) for value, (source, seen) in said])
    return list(zip(*columns, strict=True)) if columns else [()] * len(rows)


def _origins(table: Table, name: str, rows: list[int]) -> list[tuple[str, float | None]]:
    """Which source gave the value of each row, and when it was seen: the first that is fresh there and says something."""
    if name.startswith(CLASS_PREFIX):
        return [("class", None)] * len(rows)
    found: list[tuple[str, float | None]] = [("history", None)] * len(rows)
    for source in reversed(table.suppliers.get(name, ())):
        part = table.parts[source]
        gave = (part.states.gather(rows) == State.FRESH) & part.values[name].gather(rows).is_not_null()
        seen = part.seen.gather(rows).to_list()
        for place in gave.arg_true().to_list() if not gave.all() else range(len(rows)):
            found[place] = (source, seen[place])
    return found


def show(value: object) -> str:
    """A value as people write it: no trailing zeros, `?` for unknown."""
    if value is None:
        return "?"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def finding(
    check: Check, component: ComponentRef, since: float | None, proofs: tuple[Evidence, ...], openings: int
) -> Finding:
    """A true finding of a check. `openings`: how often it opened within the last hour, this time included."""
    said = ", ".join(f"{_words(e.what)} {e.value}" for e in proofs)
    summary = f"{check.title} ({said})"
    if openings >= FLAPPING:
        proofs = (*proofs, Evidence("flapping", f"opened {openings} times within an hour", "judge", since))
        summary += f"; flapping: {openings} times within an hour"
    return Finding(
        check=check.id,
        component=component,
        verdict=Verdict.TRUE,
        severity=check.severity,
        confidence=1.0,
        since=since or 0.0,
        summary=summary,
        evidence=proofs,
        trust=check.trust,
        locality=check.locality,
        action=check.action,
        proof=check.proof,
        clears=check.clears,
        rule_version=check.version,
    )


def _words(name: str) -> str:
    if name.startswith(CLASS_PREFIX):
        return "declared " + name.removeprefix(CLASS_PREFIX).replace("_", " ")
    return name.replace("_", " ")
