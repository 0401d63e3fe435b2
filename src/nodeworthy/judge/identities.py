"""Doubts about who is who, as findings: declared conflicts, names that a source says and nobody declares, and GPUs that
are seen where they cannot be."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Protocol

from nodeworthy.judge.frames import Frames
from nodeworthy.judge.sightings import gpu_doubts
from nodeworthy.model.finding import Finding
from nodeworthy.model.identity import Doubt, NameKind, Resolver


class Speaker(Protocol):
    """A source, and the names it said that resolve to no node."""

    @property
    def name(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def unknown_names(self) -> tuple[str, ...]: ...


NAME_KINDS: Mapping[str, NameKind] = {
    "log": NameKind.SYSLOG,
    "exporter": NameKind.EXPORTER,
    "prometheus": NameKind.EXPORTER,
}
MOST = 50  # names of one source that become findings of their own; the source's own page lists the rest


def identity_findings(
    resolver: Resolver,
    met: Iterable[Doubt],
    sources: Iterable[Speaker],
    previous: Mapping[str, Finding],
    now: float,
    frames: Frames | None = None,
) -> list[Finding]:
    """One finding a doubt, `MOST` at most of each source, of those `met` in the scheduler (a fleet file of another
    cluster makes every name strange) and of those that `frames` show. They blame no node and hold nothing."""
    doubts = [*resolver.doubts(), *islice(met, MOST)]
    if frames is not None:
        doubts += gpu_doubts(frames)[:MOST]
    for source in sources:
        kind = NAME_KINDS.get(source.kind)
        if kind is not None and source.unknown_names:
            doubts += resolver.unknown(kind, source.unknown_names[:MOST], source=source.name)
    found = []
    for doubt in doubts:
        finding = doubt.finding(now)
        before = previous.get(finding.key)
        found.append(doubt.finding(before.since) if before else finding)
    return found
