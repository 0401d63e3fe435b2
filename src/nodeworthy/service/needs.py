"""What needs a person, worst first: incidents, nodes that failed or whose mark makes no sense, lost sources, ourselves."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from nodeworthy.model.finding import Severity
from nodeworthy.model.hold import OwnerKind
from nodeworthy.model.nodeset import fold
from nodeworthy.model.status import NodeState, NodeStatus
from nodeworthy.service.engine import TurnHealth
from nodeworthy.service.picture import Picture
from nodeworthy.service.views import LoopView, NeedView, SourceState, SourceView

ORDER = tuple(Severity)[::-1]
MATTERS = frozenset({Severity.ERROR, Severity.FATAL, Severity.WARNING})


def of(
    picture: Picture, sources: Sequence[SourceView], health: TurnHealth, loops: Sequence[LoopView]
) -> tuple[NeedView, ...]:
    gone = tuple(_sources(sources))
    partly = _incidents(picture, {f"source:{need.subject}" for need in gone})
    found = [*_ourselves(health, loops), *partly, *gone, *_nodes(picture), *_marks(picture)]
    return tuple(sorted(found, key=lambda n: (ORDER.index(n.severity), n.since if n.since is not None else 0.0)))


def _ourselves(health: TurnHealth, loops: Sequence[LoopView]) -> Iterator[NeedView]:
    if health.failure:
        said = f"the last turn failed, what is shown is older: {health.failure}"
        yield NeedView(Severity.FATAL, "nodeworthy", "turn", said, health.at, "nodeworthy doctor")
    for loop in loops:
        if loop.stalled:
            said = f"the loop {loop.name} has stalled"
            yield NeedView(Severity.FATAL, "nodeworthy", loop.name, said, None, "nodeworthy doctor")


def _incidents(picture: Picture, said: set[str]) -> Iterator[NeedView]:
    """Those worth a look, without sources that are `said` to be gone already."""
    for incident in picture.incidents:
        if incident.severity in MATTERS and incident.origin not in said:
            subject = fold(incident.nodes) if incident.nodes else incident.origin
            command = f"nodeworthy incident show {incident.key}"
            yield NeedView(incident.severity, "incident", subject, incident.title, incident.since, command)


def _sources(sources: Iterable[SourceView]) -> Iterator[NeedView]:
    for source in sources:
        if source.state in (SourceState.DOWN, SourceState.LATE):
            severity = Severity.ERROR if source.kind == "scheduler" else Severity.WARNING
            said = f"{source.kind} is {source.state}: {source.problem or 'no answer in time'}; what it tells is unknown"
            yield NeedView(severity, "source", source.name, said, source.last_seen, "nodeworthy doctor")


def _nodes(picture: Picture) -> Iterator[NeedView]:
    """Failed nodes with the same reason are one line: a dead switch fails forty nodes with one sentence."""
    groups: dict[str, list[NodeStatus]] = defaultdict(list)
    for status in picture.statuses.values():
        if status.state is NodeState.FAILED:
            groups[status.reason].append(status)
    for reason, members in groups.items():
        names = [s.node for s in members]
        since = min((s.since for s in members if s.since is not None), default=None)
        command = f"nodeworthy node explain {names[0]}" if len(names) == 1 else "nodeworthy node list --state failed"
        yield NeedView(Severity.ERROR, "node", fold(names), f"failed: {reason}", since, command)


def _marks(picture: Picture) -> Iterator[NeedView]:
    """Marks that contradict themselves, and drains that nobody may be going to lift."""
    groups: dict[tuple[str, OwnerKind], list[str]] = defaultdict(list)
    since: dict[tuple[str, OwnerKind], float] = {}
    for name, mark in picture.marks.items():
        for sentence in (*mark.contradictory, *mark.orphaned_because):
            key = (sentence, mark.owner.kind)
            groups[key].append(name)
            if mark.at is not None:
                since[key] = min(mark.at, since.get(key, mark.at))
    for key, names in groups.items():
        command = f"nodeworthy node explain {names[0]}"
        yield NeedView(Severity.WARNING, "mark", fold(names), f"odd mark: {key[0]}", since.get(key), command)
