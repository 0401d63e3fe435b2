"""One turn: what was seen, and the last picture, become the next picture. Read this file first.

    observe → judge → decide → act, with the record as their medium

The observers have filled a snapshot, and `facts` has made frames of it; this is judge and decide, and it waits for
nothing. It is a function: the same world, picture, sight, frames and time give the same result, so any turn can be
replayed. In observe mode every hold is a `would`: nothing is acted upon, and the record keeps what would have been.
"""

from __future__ import annotations

from dataclasses import replace

from nodeworthy.decide.holds import want
from nodeworthy.decide.incidents import group
from nodeworthy.decide.marks import read_marks
from nodeworthy.decide.status import dated, statuses, still_dark
from nodeworthy.judge.answers import answering, blind_nodes
from nodeworthy.judge.events import judge_events
from nodeworthy.judge.frames import Frames
from nodeworthy.judge.identities import identity_findings
from nodeworthy.judge.judge import judge
from nodeworthy.judge.locate import locate, places
from nodeworthy.judge.sources import carried, silent_findings
from nodeworthy.model.finding import UnknownReason
from nodeworthy.model.scheduler import SOURCE
from nodeworthy.observe.snapshot import Seen
from nodeworthy.service.picture import Picture, World, boots, jobs_by_node, lost_sources, revisions, told, transitions


def turn(world: World, before: Picture, seen: Seen, frames: Frames, now: float) -> Picture:
    """The picture at `now`. Pure; raises only for a defect of ours."""
    nodes = seen.scheduler.nodes if seen.scheduler else {}

    # judge: facts and events become findings, in three values
    judged = judge(world.catalogue, frames, before.judged, now)
    booted = boots(seen.scheduler, frames, before.boots, now)
    where = places(frames, before.places)
    seen = replace(seen, events=locate(seen.events, where))
    silent = silent_findings(seen.silent(now), before.findings, now)
    happened = judge_events(world.catalogue, seen.events, before.events, now, boots=booted)
    doubts = identity_findings(world.resolver, seen.doubts, seen.sources.values(), before.findings, now, frames)
    findings = {f.key: f for f in (*judged.findings, *happened.findings, *silent, *doubts)}
    findings |= carried(findings, seen.unheard(), before.findings)

    # decide: findings and the scheduler's marks become incidents, holds and one word a node
    dark = still_dark(before.statuses) if seen.untried() & before.lost else {}
    blind = dark | blind_nodes(frames, besides=(SOURCE,))
    answered = answering(frames, judged.answers, blind)
    incidents = tuple(group(findings, world.fleet, world.policy, world.catalogue, answered))
    holds = want(findings, world.catalogue, incidents, before.holds, world.policy, now)
    marks = read_marks(seen.scheduler, world.reasons.normalise, now)
    unseen = seen.why_no_scheduler(now)
    words = statuses(world.fleet.nodes, nodes, marks, findings.values(), blind, unseen)
    words = dated(words, before.statuses, before.told, now, first=not before.number)
    lost = lost_sources(seen, before.lost, now)
    return replace(
        before,
        number=before.number + 1, at=now, seen=seen, world=world, frames=frames,
        places=where, judged=judged.state, answers=judged.answers, unknown=tuple(g for g in judged.unknown if g.reason is not UnknownReason.NOT_APPLICABLE), events=happened.state,
        findings=findings, incidents=incidents, holds=holds, marks=marks, statuses=words,
        transitions=transitions(seen.scheduler, before.transitions, now), jobs=jobs_by_node(seen.scheduler),
        boots=booted, told=told(words, before.told, blind=bool(unseen) or any(seen.sources[n].sees_nodes for n in lost)), lost=lost, revisions=revisions(world),
    )  # fmt: skip
