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
    found = [
        *_ourselves(health, loops),
        *_incidents(picture),
        *_sources(sources),
        *_partly_blind(picture, sources),
        *_nodes(picture),
        *_marks(picture),
    ]
    # ourselves and the scheduler come before all: what else is said rests on them
    first = {"nodeworthy", *(s.name for s in sources if s.kind == "scheduler")}

    def weight(need: NeedView) -> tuple[bool, int, float]:
        of_ours = need.what == "nodeworthy" or (need.what == "source" and need.subject in first)
        return not of_ours, ORDER.index(need.severity), need.since if need.since is not None else 0.0

    return tuple(sorted(found, key=weight))


def _ourselves(health: TurnHealth, loops: Sequence[LoopView]) -> Iterator[NeedView]:
    if health.failure:
        said = f"the last turn failed, what is shown is older: {health.failure}"
        yield NeedView(Severity.FATAL, "nodeworthy", "turn", said, health.at, "nodeworthy doctor")
    for loop in loops:
        if loop.stalled:
            said = f"the loop {loop.name} has stalled"
            yield NeedView(Severity.FATAL, "nodeworthy", loop.name, said, None, "nodeworthy doctor")


def _incidents(picture: Picture) -> Iterator[NeedView]:
    doubts = [i for i in picture.incidents if i.origin.startswith("identity:")]
    for incident in picture.incidents:
        if incident.severity in MATTERS and not incident.origin.startswith(("source:", "identity:")):
            subject = fold(incident.nodes) if incident.nodes else incident.origin
            command = f"nodeworthy incident show {incident.key}"
            yield NeedView(incident.severity, "incident", subject, incident.title, incident.since, command)
    if doubts:
        first = doubts[0].title.removeprefix(f"{doubts[0].origin}: ")
        more = f"; and {len(doubts) - 1} more like it" if len(doubts) > 1 else ""
        subject = doubts[0].origin.removeprefix("identity:")
        yield NeedView(Severity.WARNING, "identity", subject, first + more, doubts[0].since, "nodeworthy incident list")


def _sources(sources: Iterable[SourceView]) -> Iterator[NeedView]:
    for source in sources:
        if source.state in (SourceState.DOWN, SourceState.LATE):
            severity = Severity.ERROR if source.kind == "scheduler" else Severity.WARNING
            said = f"{source.kind} is {source.state}: {source.problem or 'no answer in time'}; what it tells is unknown"
            yield NeedView(severity, "source", source.name, said, source.last_seen, "nodeworthy doctor")


def _partly_blind(picture: Picture, sources: Iterable[SourceView]) -> Iterator[NeedView]:
    """Sources that answer and yet do not see all that they should: four of sixteen exporters are down."""
    answering = {f"source:{s.name}" for s in sources if s.state is SourceState.OK}
    for incident in picture.incidents:
        if incident.origin in answering:
            said = incident.title.removeprefix(f"{incident.origin}: ")
            name = incident.origin.removeprefix("source:")
            yield NeedView(Severity.WARNING, "source", name, said, incident.since, "nodeworthy doctor")


def _nodes(picture: Picture) -> Iterator[NeedView]:
    """Nodes with the same reason are one line: a dead switch fails forty nodes with one sentence.

    Nodes that are unknown only because the whole scheduler is not seen are not told of: that source is.
    """
    scheduler_seen = picture.seen.scheduler is not None
    groups: dict[tuple[NodeState, str], list[NodeStatus]] = defaultdict(list)
    for status in picture.statuses.values():
        if status.state is NodeState.FAILED or (status.state is NodeState.UNKNOWN and scheduler_seen):
            groups[(status.state, status.reason)].append(status)
    for (state, reason), members in groups.items():
        names = [s.node for s in members]
        since = min((s.since for s in members if s.since is not None), default=None)
        command = f"nodeworthy node explain {names[0]}" if len(names) == 1 else f"nodeworthy node list --state {state}"
        severity = Severity.ERROR if state is NodeState.FAILED else Severity.WARNING
        yield NeedView(severity, "node", fold(names), f"{state}: {reason}", since, command)


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
