"""Reason texts → causes.

Slurm has one free-text slot per node, in which slurmctld, health programs, operators and scripts all write in
their own ways, host names and counters included. The table (`catalogue/reasons.toml`) says by which beginning a
program signs, and which wording means which cause. A text that fits nothing is *unclear*, which is an answer:
its words are kept by whoever holds the mark.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from nodeworthy.errors import BadFile, Problem
from nodeworthy.model.hold import OwnerKind
from nodeworthy.model.reason import HEALTH_CHECK, NO_REASON, UNCLEAR, ReasonCause, ReasonKind

EMPTY = frozenset({"", "none", "n/a", "unknown", "reason unknown", "(null)", "-", "."})
LONGEST = 2000
"""No reason that a person reads is longer; what a program pastes behind it does not change its cause."""
DISTINCT = 65536
_NUMBER = re.compile(r"\d+")


@dataclass(frozen=True, slots=True)
class _Writer:
    pattern: re.Pattern[str]
    owner: OwnerKind
    name: str


@dataclass(frozen=True, slots=True)
class _Cause:
    pattern: re.Pattern[str]
    cause: ReasonCause


class Reasons:
    """The table, ready for use. Immutable; the same text always gives the same cause."""

    def __init__(self, writers: Sequence[_Writer], causes: Sequence[_Cause]) -> None:
        self._writers = tuple(writers)
        self._causes = tuple(causes)
        self._cached = lru_cache(maxsize=DISTINCT)(self._normalise)
        self._by_shape = lru_cache(maxsize=DISTINCT)(self._read)

    def normalise(self, reason: str | None) -> ReasonCause:
        """The cause that a reason text names; remembers the texts that it has read."""
        return self._cached(reason or "")

    def causes(self) -> tuple[ReasonCause, ...]:
        """Every cause that can be named, in the order of the table."""
        return (*dict.fromkeys(entry.cause for entry in self._causes), HEALTH_CHECK, UNCLEAR, NO_REASON)

    def _normalise(self, reason: str) -> ReasonCause:
        text = " ".join(reason[:LONGEST].split())
        if text.lower() in EMPTY:
            return NO_REASON
        # Numbers are host names, counters and sizes, except in Xid codes: without them few shapes are left.
        return self._by_shape(text if "xid" in text.lower() else _NUMBER.sub("0", text))

    def _read(self, text: str) -> ReasonCause:
        for writer in self._writers:
            if found := writer.pattern.match(text):
                cause = self._cause(text[found.end() :])
                if cause is UNCLEAR and writer.owner is OwnerKind.HEALTH_PROGRAM:
                    cause = HEALTH_CHECK
                return replace(cause, owner=writer.owner, writer=writer.name)
        return self._cause(text)

    def _cause(self, text: str) -> ReasonCause:
        return next((entry.cause for entry in self._causes if entry.pattern.search(text)), UNCLEAR)


def build(table: Mapping[str, Any], file: str = "reasons.toml") -> Reasons:
    """Reasons from the parsed table. Raises BadFile that names every entry that is wrong."""
    problems: list[Problem] = []
    writers = [_writer(entry, f"writer {i}", file, problems) for i, entry in enumerate(table.get("writer", ()), 1)]
    causes = [_cause(entry, f"cause {i}", file, problems) for i, entry in enumerate(table.get("cause", ()), 1)]
    known = [entry for entry in causes if entry is not None]
    ids = [entry.cause.cause for entry in known]
    problems += [
        Problem(file, None, name, "this cause is there twice", "join the patterns with |")
        for name in dict.fromkeys(ids)
        if ids.count(name) > 1
    ]
    if problems:
        raise BadFile(problems)
    return Reasons([entry for entry in writers if entry is not None], known)


def _writer(entry: Mapping[str, Any], where: str, file: str, problems: list[Problem]) -> _Writer | None:
    try:
        return _Writer(_pattern(entry), OwnerKind(entry["owner"]), str(entry["name"]))
    except (KeyError, ValueError, TypeError, re.error) as error:
        problems.append(Problem(file, None, where, f"not a writer: {error}"))
        return None


def _cause(entry: Mapping[str, Any], where: str, file: str, problems: list[Problem]) -> _Cause | None:
    try:
        owner = OwnerKind(entry["owner"]) if "owner" in entry else None
        cause = ReasonCause(str(entry["id"]), str(entry["title"]), ReasonKind(entry["kind"]), owner)
        if not entry["source"]:
            raise ValueError("no source")
        return _Cause(_pattern(entry), cause)
    except (KeyError, ValueError, TypeError, re.error) as error:
        problems.append(Problem(file, None, str(entry.get("id", where)), f"not a cause: {error}"))
        return None


def _pattern(entry: Mapping[str, Any]) -> re.Pattern[str]:
    return re.compile(entry["pattern"], re.IGNORECASE)
