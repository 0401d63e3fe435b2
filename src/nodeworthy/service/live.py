"""The views of a running Nodeworthy: one picture, and the store for what was before.

Every method takes the present picture once and answers from it, so an answer never mixes two turns.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, TypeVar

from nodeworthy import __version__
from nodeworthy.decide.explain import explain
from nodeworthy.errors import NotKnown
from nodeworthy.model.finding import Finding, Severity, Verdict
from nodeworthy.model.fleet import Fleet
from nodeworthy.model.hold import Hold, HoldState
from nodeworthy.model.status import NodeState
from nodeworthy.ports import Clock, Store
from nodeworthy.service import needs, present, selfcheck
from nodeworthy.service.engine import Engine
from nodeworthy.service.picture import Picture
from nodeworthy.service.views import (
    AboutAnswer,
    DoctorAnswer,
    ExplainAnswer,
    FindingAnswer,
    FindingsAnswer,
    FindingView,
    HistoryAnswer,
    IncidentAnswer,
    IncidentsAnswer,
    LedgerAnswer,
    LoopView,
    Names,
    NodeAnswer,
    NodesAnswer,
    NodeView,
    SourceView,
    StatusAnswer,
    TurnView,
    WouldAnswer,
    WouldView,
)

Item = TypeVar("Item")
Asked = tuple[str, Names, frozenset[tuple[str, str]], object]  # which list, and of what
MODE = "observe"
SEVERITIES = tuple(Severity)[::-1]


class LiveViews:
    """Implements `Views`. `loops` tells the state of our own loops; `checks` are further checks of ourselves."""

    def __init__(
        self,
        engine: Engine,
        store: Store,
        clock: Clock,
        loops: Callable[[], tuple[LoopView, ...]],
        checks: Sequence[selfcheck.SelfCheck] = (),
    ) -> None:
        self._engine = engine
        self._store = store
        self._clock = clock
        self._loops = loops
        self._checks = tuple(checks)
        self._started_at = clock.now()
        self._lists: dict[str, tuple[Picture, Asked, tuple[Any, ...]]] = {}

    # what every answer carries

    def _picture(self) -> tuple[Picture, float | None, tuple[SourceView, ...]]:
        picture, now = self._engine.picture, self._clock.now()
        sources = tuple(present.source(reading, now) for reading in picture.seen.sources.values())
        return picture, picture.at if picture.number else None, sources

    def about(self) -> AboutAnswer:
        picture, as_of, sources = self._picture()
        return AboutAnswer(
            as_of=as_of,
            sources=sources,
            version=__version__,
            fleet=picture.world.fleet.name,
            mode=MODE,
            started_at=self._started_at,
            now=self._clock.now(),
        )

    def status(self) -> StatusAnswer:
        picture, as_of, sources = self._picture()
        health = self._engine.health
        wanted = needs.of(picture, sources, health, self._loops())
        fleet = picture.world.fleet
        by_state = Counter(status.state for status in picture.statuses.values())
        adverse = [f for f in picture.findings.values() if f.verdict is Verdict.TRUE]
        return StatusAnswer(
            as_of=as_of,
            sources=sources,
            fleet=fleet.name,
            mode=MODE,
            revision=fleet.revision,
            catalogue=picture.world.catalogue.revision,
            # an undeclared fleet that no scheduler has told of yet has an unknown number of nodes, not none
            nodes=len(fleet.nodes) or None,
            gpus=_gpus(fleet) if fleet.nodes else None,
            by_state={state: by_state.get(state, 0) for state in NodeState} if fleet.nodes else {},
            needs=wanted,
            would=sum(h.state is not HoldState.LIFTED for h in picture.holds.values()),
            incidents=len(picture.incidents),
            findings=dict(Counter(f.severity for f in adverse)),
            findings_unknown=sum(group.count for group in picture.unknown),
            unknown=present.unknown_groups(picture.unknown),
            turn=TurnView(health.number, health.at, health.took_s, self._engine.interval_s, self._loops()),
            well=as_of is not None and bool(fleet.nodes) and not wanted and not by_state.get(NodeState.UNKNOWN),
        )

    # nodes

    def nodes(self, names: Names, labels: Mapping[str, str], states: frozenset[NodeState]) -> NodesAnswer:
        picture, as_of, sources = self._picture()

        def make() -> tuple[NodeView, ...]:
            index = present.index(picture)
            chosen = _choose(picture, names, labels)
            return tuple(
                present.node(picture, index, n) for n in chosen if not states or picture.statuses[n].state in states
            )

        items = self._once(picture, ("nodes", names, frozenset(labels.items()), states), make)
        return NodesAnswer(as_of=as_of, sources=sources, items=items, not_known=_not_known(picture, names))

    def node(self, name: str) -> NodeAnswer:
        picture, as_of, sources = self._picture()
        return NodeAnswer(as_of=as_of, sources=sources, **self._of_node(picture, name))

    def explain(self, name: str) -> ExplainAnswer:
        picture, as_of, sources = self._picture()
        case = present.case(picture, self._must_be(picture, name))
        told = explain(case)
        return ExplainAnswer(
            as_of=as_of,
            sources=sources,
            **self._of_node(picture, name),
            because=told.because,
            evidence=tuple(present.evidence(e) for e in told.evidence),
            rejected=told.rejected,
            waiting_for=told.waiting_for,
            clears=told.clears,
            next=told.next,
        )

    def _of_node(self, picture: Picture, name: str) -> dict[str, Any]:
        known = self._must_be(picture, name)
        holds = [h for h in picture.holds.values() if h.subject.node == known and h.state is not HoldState.LIFTED]
        would = present.would(picture, self._acts(holds), holds)
        return present.node_parts(picture, known, would)

    def history(self, name: str, since: float | None, limit: int) -> HistoryAnswer:
        picture, as_of, sources = self._picture()
        known = self._must_be(picture, name)
        entries = self._store.entries(limit=limit, node=known, since=since or 0.0, newest=True)
        return HistoryAnswer(as_of=as_of, sources=sources, node=known, items=tuple(map(present.entry, entries)))

    # findings, incidents, would

    def findings(self, names: Names, labels: Mapping[str, str], verdicts: frozenset[Verdict]) -> FindingsAnswer:
        picture, as_of, sources = self._picture()
        asked = ("findings", names, frozenset(labels.items()), verdicts)
        items = self._once(picture, asked, lambda: _findings(picture, names, labels, verdicts))
        return FindingsAnswer(as_of=as_of, sources=sources, items=items, not_known=_not_known(picture, names))

    def finding(self, key: str) -> FindingAnswer:
        picture, as_of, sources = self._picture()
        found = picture.findings.get(key)
        if found is None:
            raise NotKnown(f"there is no finding {key} now", hint="`nodeworthy finding list` shows the present ones")
        check = picture.world.catalogue.checks.get(found.check)
        return FindingAnswer(
            as_of=as_of,
            sources=sources,
            finding=present.finding(picture, found, present.incident_of(picture).get(key)),
            check_help=check.help if check else "",
            check_source=check.source if check else "",
        )

    def incidents(self) -> IncidentsAnswer:
        picture, as_of, sources = self._picture()
        return IncidentsAnswer(as_of=as_of, sources=sources, items=tuple(map(present.incident, picture.incidents)))

    def incident(self, key: str) -> IncidentAnswer:
        picture, as_of, sources = self._picture()
        found = next((i for i in picture.incidents if i.key == key), None)
        if found is None:
            raise NotKnown(f"there is no incident {key} now", hint="`nodeworthy incident list` shows the present ones")
        findings = (picture.findings[k] for k in found.findings if k in picture.findings)
        return IncidentAnswer(
            as_of=as_of,
            sources=sources,
            incident=present.incident(found),
            findings=tuple(present.finding(picture, f, key) for f in findings),
        )

    def would(self, names: Names, labels: Mapping[str, str], since: float | None) -> WouldAnswer:
        picture, as_of, sources = self._picture()
        asked = ("would", names, frozenset(labels.items()), since)
        items = self._once(picture, asked, lambda: self._would(picture, names, labels, since))
        return WouldAnswer(
            as_of=as_of,
            sources=sources,
            items=items,
            agreement=dict(Counter(item.agreement for item in items)),
            since=since,
            not_known=_not_known(picture, names),
        )

    def _would(
        self, picture: Picture, names: Names, labels: Mapping[str, str], since: float | None
    ) -> tuple[WouldView, ...]:
        chosen = set(_choose(picture, names, labels))
        everything = names is None and not labels
        holds = {h.key: h for h in picture.holds.values() if h.state is not HoldState.LIFTED}
        if since is not None:
            past = present.all_pages(lambda after: self._store.holds(open_only=False, since=since, after=after))
            holds |= {h.key: h for h in past if h.ended is not None and h.key not in holds}
        kept = sorted((h for h in holds.values() if everything or h.subject.node in chosen), key=lambda h: h.since)
        return present.would(picture, self._acts(kept), kept)

    def _acts(self, holds: Collection[Hold]) -> present.History:
        """What happened to the held nodes since the oldest of these holds, and what was in force then."""
        if not holds:
            return {}
        return self._store.histories({h.subject.node for h in holds}, since=min(h.since for h in holds))

    def _once(self, picture: Picture, asked: Asked, make: Callable[[], tuple[Item, ...]]) -> tuple[Item, ...]:
        """The items of a list, made once for all of its pages: the next page of the same picture asks for the same.

        Of each list the last one asked for is kept, so what is kept is bounded by what one answer may be.
        """
        kept = self._lists.get(asked[0])
        if kept is not None and kept[0] is picture and kept[1] == asked:
            found: tuple[Item, ...] = kept[2]
            return found
        items = make()
        self._lists[asked[0]] = (picture, asked, items)
        return items

    # the record and ourselves

    def ledger(self, after: int, limit: int, subject: str | None = None) -> LedgerAnswer:
        _, as_of, sources = self._picture()
        if after < 0:
            last = self._store.sequence()
            entries = self._store.entries(limit=min(-after, limit), node=subject, newest=True)
        else:
            last = after
            entries = self._store.entries(after, limit, node=subject)
        reached = entries[-1].sequence if entries else last
        return LedgerAnswer(as_of=as_of, sources=sources, items=tuple(map(present.entry, entries)), last=reached)

    def doctor(self) -> DoctorAnswer:
        picture, as_of, sources = self._picture()
        items = selfcheck.run(picture, self._engine.health, sources, self._loops(), self._checks, self._clock.now())
        return DoctorAnswer(as_of=as_of, sources=sources, items=items, well=all(i.state.value == "ok" for i in items))

    @staticmethod
    def _must_be(picture: Picture, name: str) -> str:
        if name in picture.statuses:
            return name
        raise NotKnown(
            f"the fleet has no node {name}",
            hint="`nodeworthy node list -o name` shows all; names are those of the fleet file, or of Slurm without one",
        )


def _choose(picture: Picture, names: Names, labels: Mapping[str, str]) -> list[str]:
    wanted = None if names is None else set(names)
    fleet = picture.world.fleet
    return [
        name
        for name in picture.statuses
        if (wanted is None or name in wanted) and present.has_labels(fleet.nodes.get(name), labels)
    ]


def _findings(
    picture: Picture, names: Names, labels: Mapping[str, str], verdicts: frozenset[Verdict]
) -> tuple[FindingView, ...]:
    chosen = set(_choose(picture, names, labels))
    everything = names is None and not labels
    found = [
        f
        for f in picture.findings.values()
        if (everything or f.component.owner_node in chosen)
        and (not verdicts or f.verdict in verdicts or (f.unknown is not None and Verdict.UNKNOWN in verdicts))
    ]
    incident_of = present.incident_of(picture)
    return tuple(present.finding(picture, f, incident_of.get(f.key)) for f in sorted(found, key=_worst_first))


def _not_known(picture: Picture, names: Names) -> tuple[str, ...]:
    return tuple(n for n in names or () if n not in picture.statuses)


def _worst_first(finding: Finding) -> tuple[int, float, str]:
    return SEVERITIES.index(finding.severity), finding.since, finding.key


def _gpus(fleet: Fleet) -> int:
    return sum(fleet.classes[n.node_class].gpus for n in fleet.nodes.values() if n.node_class in fleet.classes)
