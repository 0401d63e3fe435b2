"""The scheduler's names → the fleet's: one resolver for every source, the scheduler included.

Nodes and jobs come keyed by the fleet's names; a node keeps the NodeName that its scheduler knows it by, because
that is what a command has to say. What the fleet does not declare is a doubt about identity and no node.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from nodeworthy.model.identity import Doubt, NameKind, Resolver
from nodeworthy.model.scheduler import SchedulerSnapshot


@dataclass(frozen=True, slots=True)
class Named:
    """A scheduler's snapshot in the fleet's names, and doubts about the rest."""

    snapshot: SchedulerSnapshot
    doubts: tuple[Doubt, ...] = ()


def in_fleet_names(snapshot: SchedulerSnapshot, resolver: Resolver) -> Named:
    answers = resolver.resolve(NameKind.SCHEDULER, snapshot.nodes, snapshot.cluster)
    names = {theirs: answer.node for theirs, answer in answers.items() if answer.node is not None}
    strangers = [name for name in snapshot.nodes if name not in names]
    doubts = tuple(resolver.unknown(NameKind.SCHEDULER, strangers, snapshot.cluster, source="slurm"))
    if not strangers and all(theirs == ours for theirs, ours in names.items()):
        return Named(snapshot)
    nodes = {names[theirs]: node for theirs, node in snapshot.nodes.items() if theirs in names}
    jobs = tuple(
        replace(job, nodes=tuple(names[n] for n in job.nodes if n in names)) if job.nodes else job
        for job in snapshot.jobs
    )
    return Named(replace(snapshot, nodes=nodes, jobs=jobs), doubts)
