"""A small fleet in memory, for tests of the API and the command line: what a night looks like.

n1 serves; n2 has a GPU off the bus and still takes work; n3 was drained by alice; n4 is down; n5 is dark.
It keeps the laws of `Views`: lists are complete, filters add up, what is not there raises NotKnown.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from nodeworthy import __version__
from nodeworthy.decide.people import Agreement
from nodeworthy.errors import NotKnown
from nodeworthy.model.finding import Severity, Trust, Verdict
from nodeworthy.model.hold import Effect, HoldState, OwnerKind
from nodeworthy.model.status import NodeState
from nodeworthy.service.views import (
    AboutAnswer,
    CheckState,
    CheckView,
    DoctorAnswer,
    EntryView,
    EvidenceView,
    ExplainAnswer,
    FindingAnswer,
    FindingsAnswer,
    FindingView,
    HistoryAnswer,
    IncidentAnswer,
    IncidentsAnswer,
    IncidentView,
    JobView,
    LedgerAnswer,
    LoopView,
    MarkView,
    Names,
    NeedView,
    NodeAnswer,
    NodesAnswer,
    NodeView,
    OwnerView,
    PersonAct,
    SchedulerView,
    SourceState,
    SourceView,
    StatusAnswer,
    TurnView,
    UnknownView,
    WouldAnswer,
    WouldView,
)

NOW = 1_764_520_000.0  # 2025-11-30 16:26:40 UTC
XID = "xid-79@n2/gpu5"
DARK = "telemetry-silent@n5"

SOURCES = (
    SourceView("slurm", "scheduler", SourceState.OK, NOW - 4, 4.0, 30.0),
    SourceView("dcgm", "exporter", SourceState.LATE, NOW - 95, 95.0, 15.0, "n5:9400: connection refused"),
    SourceView("kernel log", "log", SourceState.OK, NOW - 1, 1.0, None),
)
EVIDENCE = (
    EvidenceView(
        "Xid 79 in the kernel log",
        "NVRM: Xid (PCI:0000:9b:00): 79, GPU has fallen off the bus.",
        "kernel log",
        NOW - 12000,
    ),
    EvidenceView("GPUs seen", "7 of 8", "dcgm", NOW - 9),
)
FINDINGS = (
    FindingView(
        key=XID,
        check="xid-79",
        title="GPU fell off the bus",
        node="n2",
        component="n2/gpu5",
        verdict=Verdict.TRUE,
        severity=Severity.FATAL,
        trust=Trust.SHADOW,
        confidence=0.99,
        since=NOW - 12000,
        summary="GPU 5 fell off the bus (Xid 79)",
        evidence=EVIDENCE,
        action="reboot, then prove the GPU",
        proof="gpu-basic",
        clears="a reboot after which 8 of 8 GPUs are seen",
        rule_version="1",
    ),
    FindingView(
        key=DARK,
        check="telemetry-silent",
        title="No telemetry",
        node="n5",
        component="n5",
        verdict=Verdict.UNKNOWN,
        severity=Severity.WARNING,
        trust=Trust.SHADOW,
        confidence=0.0,
        since=NOW - 660,
        summary="nothing heard from the exporter of n5",
        unknown="stale",
    ),
)
WOULD = (
    WouldView(
        key="hold:" + XID,
        node="n2",
        component="n2/gpu5",
        verb="hold",
        effect=Effect.NO_NEW_WORK,
        state=HoldState.WOULD,
        reason="GPU 5 fell off the bus (Xid 79)",
        since=NOW - 11998,
        evidence=EVIDENCE,
        because=(XID,),
        clears="a reboot after which 8 of 8 GPUs are seen, and the proof gpu-basic",
        agreement=Agreement.NOT,
    ),
    WouldView(
        key="hold:gpu-count@n3",
        node="n3",
        component="n3",
        verb="drain",
        effect=Effect.NO_NEW_WORK,
        state=HoldState.WOULD,
        reason="6 of 8 GPUs seen",
        since=NOW - 90000,
        because=("gpu-count@n3",),
        clears="8 of 8 GPUs are seen",
        waiting_for="job 88101 to end",
        agreement=Agreement.AFTER,
        people=PersonAct("took out", "alice", NOW - 86400, "gpu missing, ticket 4411"),
        lead_s=3600.0,
    ),
)
INCIDENT = IncidentView(
    "i-1",
    "rack r2 has gone dark",
    Severity.WARNING,
    NOW - 660,
    "rack r2",
    "all seen members went silent together",
    "n5",
    1,
    (DARK,),
)


def scheduler(name: str, state: str, **more: Any) -> SchedulerView:
    base: dict[str, Any] = {
        "cluster": "lab",
        "name": name,
        "state": state,
        "flags": tuple(state.split("+")[1:]),
        "partitions": ("gpu",),
        "reservation": None,
        "reason": None,
        "reason_user": None,
        "reason_at": None,
        "boot_at": NOW - 900_000,
        "version": "24.11.5",
        "seen": NOW - 4,
    }
    return SchedulerView(**{**base, **more})


def node(name: str, state: NodeState, scheduler_state: str, **more: Any) -> NodeView:
    base: dict[str, Any] = {
        "since": NOW - 12000,
        "reason": "",
        "owner": None,
        "next": "",
        "node_class": "h100x8",
        "gpus": 8,
        "gpus_seen": 8,
        "jobs": 0,
        "last_seen": NOW - 9,
        "labels": {"pool": "train"},
        "domains": {"rack": "r1"},
    }
    return NodeView(name=name, state=state, scheduler_state=scheduler_state, **{**base, **more})


NODES = (
    node("n1", NodeState.SERVING, "IDLE", since=NOW - 400_000),
    node(
        "n2",
        NodeState.SUSPECT,
        "MIXED",
        reason="GPU 5 fell off the bus (Xid 79)",
        next="drain n2 by hand",
        gpus_seen=7,
        jobs=1,
        findings=1,
    ),
    node(
        "n3",
        NodeState.OUT,
        "IDLE+DRAIN",
        since=NOW - 86400,
        reason="gpu missing, ticket 4411",
        owner=OwnerView(OwnerKind.PERSON, "alice"),
        next="ask alice",
        gpus_seen=6,
    ),
    node(
        "n4",
        NodeState.FAILED,
        "DOWN+NOT_RESPONDING",
        reason="Not responding",
        owner=OwnerView(OwnerKind.SCHEDULER, "slurm"),
    ),
    node(
        "n5",
        NodeState.UNKNOWN,
        "IDLE",
        since=NOW - 660,
        reason="no telemetry for 11m",
        gpus_seen=None,
        jobs=None,
        last_seen=NOW - 660,
        unknown=14,
        domains={"rack": "r2"},
    ),
)


SLOTS: dict[str, dict[str, Any]] = {
    "n3": {"reason": "gpu missing, ticket 4411", "reason_user": "alice", "reason_at": NOW - 86400},
    "n4": {"reason": "Not responding", "reason_user": "slurm", "reason_at": NOW - 12000},
}


def details(view: NodeView) -> ExplainAnswer:
    """All about one node of the small fleet."""
    name = view.name
    found = tuple(f for f in FINDINGS if f.node == name)
    marks: tuple[MarkView, ...] = ()
    if name == "n3":
        marks = (
            MarkView(
                "drain in Slurm", view.reason, OwnerView(OwnerKind.PERSON, "alice"), view.since, "alice resumes it"
            ),
        )
    if name == "n4":
        marks = (
            MarkView(
                "DOWN in Slurm",
                view.reason,
                OwnerView(OwnerKind.SCHEDULER, "slurm"),
                view.since,
                "slurmd answers again",
            ),
        )
    jobs = (
        (JobView("88213", "llama-70b", "alice", "RUNNING", "n[1-2]", 2, 16, NOW - 7200, NOW + 2400),)
        if name == "n2"
        else ()
    )
    unknown = (
        (UnknownView("telemetry of n5", "stale", "last sample 11m ago", NOW - 660, ("gpu-count", "ecc-dbe")),)
        if name == "n5"
        else ()
    )
    suspect = name == "n2"
    return ExplainAnswer(
        as_of=NOW - 2,
        sources=SOURCES,
        node=view,
        serial="SN-" + name.upper(),
        names={"slurm lab": name, "syslog": name + ".cluster"},
        scheduler=scheduler(name, view.scheduler_state or "UNKNOWN", **SLOTS.get(name, {})),
        marks=marks,
        jobs=jobs,
        findings=found,
        would=tuple(w for w in WOULD if w.node == name),
        incidents=("i-1",) if name == "n5" else (),
        unknown=unknown,
        well=view.state is NodeState.SERVING,
        because=("GPU 5 fell off the bus: Xid 79 in the kernel log of this boot speaks for itself",) if suspect else (),
        evidence=EVIDENCE if suspect else (),
        rejected=("heat: GPU 5 was at 61 °C when last seen, the limit of its class is 87 °C",) if suspect else (),
        waiting_for=(),
        clears=("a reboot after which 8 of 8 GPUs are seen, and the proof gpu-basic",) if suspect else (),
        next=("nobody holds it, work still lands there: drain it by hand (we only observe)",) if suspect else (),
    )


def entries(number: int) -> list[EntryView]:
    """A ledger of so many entries, about n1 to n5 in turn."""
    return [
        EntryView(k, NOW - 1000 + k, "finding.opened", f"n{k % 5 + 1}", f"entry {k}", "", "nodeworthy", {"k": k})
        for k in range(1, number + 1)
    ]


class MemoryViews:
    """Implements `nodeworthy.service.views.Views` over the constants above; `nodes_` and `ledger_` may be replaced."""

    def __init__(self) -> None:
        self.nodes_: tuple[NodeView, ...] = NODES
        self.ledger_: list[EntryView] = entries(3)
        self.as_of: float | None = NOW - 2
        self.needs: tuple[NeedView, ...] = (
            NeedView(
                Severity.FATAL,
                "node",
                "n2",
                "GPU 5 fell off the bus (Xid 79); it still takes work",
                NOW - 12000,
                "nodeworthy node explain n2",
            ),
            NeedView(
                Severity.WARNING, "source", "dcgm", "one of 5 targets does not answer", NOW - 660, "nodeworthy doctor"
            ),
        )
        self.checks: tuple[CheckView, ...] = (
            CheckView("source slurm", CheckState.OK, "slurm answered 4 s ago"),
            CheckView("clock", CheckState.WARN, "the clock is 3 s ahead of slurmctld's", "run chrony or ntpd"),
            CheckView("disk space", CheckState.UNKNOWN, "cannot read the free space of /var/lib/nodeworthy"),
        )

    def _base(self) -> dict[str, Any]:
        return {"as_of": self.as_of, "sources": SOURCES}

    def about(self) -> AboutAnswer:
        return AboutAnswer(
            version=__version__, fleet="lab", mode="observe", started_at=NOW - 5000, now=NOW, **self._base()
        )

    def status(self) -> StatusAnswer:
        unknown = (UnknownView("telemetry of n5", "stale", "last sample 11m ago", NOW - 660, ("gpu-count",)),)
        return StatusAnswer(
            **self._base(),
            fleet="lab",
            mode="observe",
            revision="1f2e3d4c5b6a",
            catalogue="c0ffee",
            nodes=len(self.nodes_),
            gpus=8 * len(self.nodes_),
            by_state=Counter(n.state for n in self.nodes_),
            needs=self.needs,
            would=1 if self.needs else 0,
            incidents=1,
            findings=Counter(f.severity for f in FINDINGS if f.verdict is Verdict.TRUE),
            findings_unknown=1,
            unknown=unknown if self.needs else (),
            turn=TurnView(
                812, NOW - 2, 0.041, 5.0, (LoopView("turn", 2.0, 15.0, False), LoopView("slurm", 4.0, 90.0, False))
            ),
            well=not self.needs,
        )

    def _matching(self, names: Names, labels: Mapping[str, str]) -> tuple[tuple[NodeView, ...], tuple[str, ...]]:
        known = {n.name for n in self.nodes_}
        missing = tuple(n for n in names or () if n not in known)

        def fits(view: NodeView) -> bool:
            have = {**view.labels, **view.domains, "class": view.node_class}
            return (names is None or view.name in names) and all(have.get(k) == v for k, v in labels.items())

        return tuple(filter(fits, self.nodes_)), missing

    def nodes(self, names: Names, labels: Mapping[str, str], states: frozenset[NodeState]) -> NodesAnswer:
        found, missing = self._matching(names, labels)
        return NodesAnswer(
            **self._base(), items=tuple(n for n in found if not states or n.state in states), not_known=missing
        )

    def explain(self, name: str) -> ExplainAnswer:
        for view in self.nodes_:
            if view.name == name:
                return replace(details(view), as_of=self.as_of)
        raise NotKnown(f"no node is called {name!r}", hint="`nodeworthy node list -o name` prints all names")

    def node(self, name: str) -> NodeAnswer:
        answer = self.explain(name)
        return NodeAnswer(**{f.name: getattr(answer, f.name) for f in fields(NodeAnswer)})

    def history(self, name: str, since: float | None, limit: int) -> HistoryAnswer:
        self.explain(name)
        items = [e for e in self.ledger_ if e.subject == name and (since is None or e.at >= since)]
        return HistoryAnswer(**self._base(), node=name, items=tuple(items[-limit:]))

    def findings(self, names: Names, labels: Mapping[str, str], verdicts: frozenset[Verdict]) -> FindingsAnswer:
        found, missing = self._matching(names, labels)
        here = {n.name for n in found}
        items = tuple(f for f in FINDINGS if f.node in here and (not verdicts or f.verdict in verdicts))
        return FindingsAnswer(**self._base(), items=items, not_known=missing)

    def finding(self, key: str) -> FindingAnswer:
        for found in FINDINGS:
            if found.key == key:
                return FindingAnswer(
                    **self._base(),
                    finding=found,
                    check_help="The GPU no longer answers on PCIe.",
                    check_source="NVIDIA Xid catalogue",
                )
        raise NotKnown(f"there is no finding {key!r} now", hint="`nodeworthy node history NODE` shows what was")

    def incidents(self) -> IncidentsAnswer:
        return IncidentsAnswer(**self._base(), items=(INCIDENT,))

    def incident(self, key: str) -> IncidentAnswer:
        if key != INCIDENT.key:
            raise NotKnown(f"there is no incident {key!r}", hint="see `nodeworthy incident list`")
        return IncidentAnswer(**self._base(), incident=INCIDENT, findings=FINDINGS[1:])

    def would(self, names: Names, labels: Mapping[str, str], since: float | None) -> WouldAnswer:
        found, missing = self._matching(names, labels)
        items = tuple(w for w in WOULD if w.node in {n.name for n in found})
        return WouldAnswer(
            **self._base(), items=items, agreement=Counter(w.agreement for w in items), since=since, not_known=missing
        )

    def ledger(self, after: int, limit: int, subject: str | None = None) -> LedgerAnswer:
        every = [e for e in self.ledger_ if subject is None or e.subject == subject]
        found = every[after:] if after < 0 else [e for e in every if e.sequence > after]
        items = tuple(found[:limit])
        return LedgerAnswer(**self._base(), items=items, last=items[-1].sequence if items else max(after, 0))

    def doctor(self) -> DoctorAnswer:
        well = all(c.state is CheckState.OK for c in self.checks)
        return DoctorAnswer(**self._base(), items=self.checks, well=well)
