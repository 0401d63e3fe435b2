"""The words of an audit, once: every renderer draws these sections and invents nothing.

A section answers one question. Its sentence is the answer; its table is the evidence. What is not known
reads `?`, never 0.
"""

from __future__ import annotations

from collections.abc import Sequence

from nodeworthy.commands.audit_render.use_sections import devices, use, use_in_short
from nodeworthy.commands.audit_render.words import Section, count, day, minute, number, percent
from nodeworthy.model.nodeset import fold
from nodeworthy.reports.audit.kernel import KernelEvidence
from nodeworthy.reports.audit.people import age_text
from nodeworthy.reports.audit.reliability import Estimate
from nodeworthy.reports.audit.report import Audit, CauseRow

OWNERS = {
    "person": "a person",
    "someone": "someone (as root)",
    "scheduler": "the scheduler",
    "health program": "a health program",
    "nodeworthy": "Nodeworthy",
    "": "not known whose",
}


def interval(e: Estimate, unit: str) -> str:
    """`12 d (95 %: 9 to 17)`."""
    if e.value is None:
        return f"more than {number(e.low)} {unit} (95 %)" if e.low is not None else "not known"
    low, high = number(e.low), number(e.high)
    return f"{number(e.value)} {unit} (95 %: {low} to {high})"


def duration(hours: float | None) -> str:
    return "?" if hours is None else age_text(hours / 24)


def counts_gpus(audit: Audit) -> bool:
    """Whether hours are GPU-hours; a fleet without (known) GPUs is counted in node-hours."""
    return bool(audit.totals.gpus)


def unit(audit: Audit) -> str:
    return "GPU-hours" if counts_gpus(audit) else "node-hours"


def hours_of(audit: Audit, row: CauseRow) -> float | None:
    return row.gpu_hours if counts_gpus(audit) else row.node_hours


def lost(audit: Audit) -> float | None:
    return audit.totals.lost_gpu_hours if counts_gpus(audit) else audit.totals.lost_node_hours


def capacity(audit: Audit) -> float | None:
    if counts_gpus(audit):
        return audit.totals.capacity_gpu_hours
    return None if audit.totals.nodes is None else audit.totals.nodes * audit.window.seconds / 3600


def heading(audit: Audit) -> str:
    t = audit.totals
    size = "fleet size not known" if t.nodes is None else f"{t.nodes:,} nodes, {number(t.gpus)} GPUs"
    return f"{audit.cluster} · {audit.window.days:.0f} days to {minute(audit.window.until)} UTC · {size}"


def answer(audit: Audit) -> tuple[str, str]:
    """How much was lost, and to what: two sentences."""
    total, there = lost(audit), capacity(audit)
    least = "" if audit.totals.history or total is None else "at least "
    first = f"Lost {least}{number(total)} of {number(there)} {unit(audit)} ({percent(total, there)})."
    by_kind = {kind: sum(hours_of(audit, r) or 0.0 for r in audit.causes if r.reads == kind) for kind in _KINDS}
    parts = [f"{percent(h, total)} {_KINDS[k]}" for k, h in by_kind.items() if h > 0]
    top = [r for r in audit.causes if (hours_of(audit, r) or 0) > 0][:3]
    most = ", ".join(f"{r.title} {percent(hours_of(audit, r), total)}" for r in top)
    if total is None:
        second = "Not known: neither events nor the present state of the nodes were given."
    elif not top:
        second = "No outage was recorded in this window."
    else:
        second = f"Of it {', '.join(parts)}. Most went to: {most}."
    return first, f"{second} {use_in_short(audit.utilisation)}".rstrip()


_KINDS = {"fault": "faults", "planned": "planned work", "unknown": "for reasons that do not tell"}


def sections(audit: Audit) -> list[Section]:
    """In order of urgency. A section without evidence says so in its sentence."""
    all_ = [
        _people(audit), _causes(audit), _out(audit), _lemons(audit), _holes(audit), _repeats(audit), _reliability(audit),
        _jobs(audit), _gaps(audit),
    ]  # fmt: skip
    if audit.kernel is not None:
        all_.insert(5, _kernel(audit.kernel))
    if audit.utilisation is not None:
        all_[3:3] = [use(audit.utilisation), devices(audit.utilisation)]
    return all_


def _kernel(k: KernelEvidence) -> Section:
    rows = tuple(
        (r.node, minute(r.at), f"{r.kind} {r.code}", f"{r.times:,}", r.cause or "no outage within a day",
         "the kernel tells, the mark does not" if r.told else "-", r.message)
        for r in k.rows
    )  # fmt: skip
    sentence = f"{count(k.events, 'error')} on {count(k.nodes, 'node')}"
    if rows:
        sentence += (
            f"; {count(k.outages_with_event, 'outage')} had one, of which {k.told_by_kernel} had a mark that does not tell why; "
            f"{k.unnoticed} took no node out."
        )
    return Section(
        "kernel", "Kernel log", sentence, ("node", "at (UTC)", "event", "times", "mark", "note", "message"), rows,
        frozenset({3}), short=5,
    )  # fmt: skip


def _people(audit: Audit) -> Section:
    rows = audit.needs_person
    if not rows and audit.totals.nodes is None:
        sentence = "Not known: the present state of the nodes was not given."
    elif not rows:
        sentence = "No node needs a person now."
    else:
        kinds = [(k, sum(1 for r in rows if r.kind == k)) for k in _NEED]
        sentence = f"{count(len(rows), 'node')}: " + ", ".join(f"{n} {_NEED[k]}" for k, n in kinds if n) + "."
    return Section(
        "people", "Needs a person", sentence, ("node", "why", "next", "GPU-h lost"),
        tuple((r.node, "; ".join(r.why), r.next, number(r.lost_gpu_hours)) for r in rows),
        frozenset({3}), short=5,
    )  # fmt: skip


_NEED = {
    "black-hole": "eat jobs",
    "lemon": "keep failing and are in service",
    "contradictory": "have marks that contradict the facts",
    "orphaned": "have marks that nobody will lift",
    "out": "are out for a fault or an unknown reason",
    "past": "were bad and may have been mended",
}


def _causes(audit: Audit) -> Section:
    total = lost(audit)
    rows = tuple(
        (r.title, r.reads, number(hours_of(audit, r)), percent(hours_of(audit, r), total), f"{r.outages:,}",
         f"{r.nodes:,}", duration(r.median_hours), f"{r.still_out:,}")
        for r in audit.causes
    )  # fmt: skip
    owners = [
        f"{OWNERS.get(o.owner, o.owner)} {percent(o.node_hours, audit.totals.lost_node_hours)}"
        for o in audit.owners
        if o.node_hours > 0
    ]
    sentence = f"{count(audit.totals.outages, 'outage')}, {number(audit.totals.lost_node_hours)} node-hours."
    if owners:
        sentence += f" Marked by: {', '.join(owners)}."
    return Section(
        "causes", "Where the hours went", sentence,
        ("cause", "kind", unit(audit), "share", "outages", "nodes", "median", "still out"), rows,
        frozenset({2, 3, 4, 5, 6, 7}),
    )  # fmt: skip


def _out(audit: Audit) -> Section:
    out = audit.out_now
    rows = tuple(
        (r.node, r.state, r.title, OWNERS.get(r.owner, r.owner), "?" if r.age_days is None else age_text(r.age_days),
         r.reason or "-", "; ".join((*r.contradictory, *r.orphaned)) or ("jobs still run" if r.busy else "-"))
        for r in out
    )  # fmt: skip
    if audit.totals.nodes is None:
        sentence = "Not known: the present state of the nodes was not given."
    elif not out:
        sentence = "Every node is in service."
    else:
        gpus = sum(r.gpus or 0 for r in out)
        orphaned, odd = sum(1 for r in out if r.orphaned), sum(1 for r in out if r.contradictory)
        sentence = f"{count(len(out), 'node')} with {gpus:,} GPUs; {count(orphaned, 'mark')} may be orphaned, {odd} contradictory."
        by_owner = [f"{OWNERS.get(o.owner, o.owner)} {o.out_now}" for o in audit.owners if o.out_now]
        sentence += f" Whose mark: {', '.join(by_owner)}."
    if audit.stale_texts:
        sentence += f" In service with an old reason: {_folded([n for n, _ in audit.stale_texts])}."
    return Section(
        "out",
        "Out now",
        sentence,
        ("node", "state", "cause", "whose", "age", "reason", "note"),
        rows,
        frozenset({4}),
        short=6,
    )


def _folded(names: Sequence[str]) -> str:
    text = fold(names)
    return text if len(text) < 60 else text[:57] + "…"


def _lemons(audit: Audit) -> Section:
    rows = tuple(
        (r.node, str(r.failures), number(r.expected), f"{r.score:.0f} x", f"{r.q:.0e}",
         ", ".join(f"{title} {n}" for title, n in r.causes), str(r.jobs_killed),
         "?" if r.in_service is None else "yes" if r.in_service else "no",
         ", ".join(day(e.at) for e in r.events[:6]))
        for r in audit.lemons
    )  # fmt: skip
    sentence = "No node fails more often than its peers explain."
    if rows:
        failures = sum(r.failures for r in audit.lemons)
        share = percent(failures, max(1, audit.totals.failures))
        sentence = f"{count(len(rows), 'node')}: {failures} failures, {share} of all, more than their peers explain."
    return Section(
        "lemons", "Nodes that keep failing (lemons)", sentence,
        ("node", "failed", "expected", "score", "q", "how", "jobs killed", "in service", "latest"), rows,
        frozenset({1, 2, 3, 4, 6}), short=5,
    )  # fmt: skip


def _holes(audit: Audit) -> Section:
    rows = tuple(
        (h.node, str(h.users), f"{h.fast_failures} of {h.jobs}", f"{h.hits} ({number(h.expected)} expected)", f"{h.p:.0e}",
         "?" if h.last is None else minute(h.last), "whole window" if h.day is None else day(h.day))
        for h in audit.black_holes
    )  # fmt: skip
    if audit.totals.jobs is None:
        sentence = "Not known: no job history."
    elif not rows:
        sentence = "No node fails the jobs of several users at once."
    else:
        sentence = (
            f"{count(len(rows), 'node')}: jobs of several users failed within two minutes there and not elsewhere."
        )
    return Section(
        "holes", "Nodes where jobs die fast (black holes)", sentence,
        ("node", "users", "jobs failed fast", "user-days hit", "p", "last", "seen in"), rows, frozenset({1, 2, 3, 4}), short=5,
    )  # fmt: skip


def _repeats(audit: Audit) -> Section:
    r = audit.repeats
    rows = tuple(
        (title, f"{again} of {returns}", percent(again, returns)) for title, returns, again in r.by_cause if again
    )
    sentence = f"No return could be followed for {r.days:.0f} days."
    if r.returns:
        e = r.share
        sentence = (
            f"{r.failed_again} of {r.returns} returns failed again within {r.days:.0f} days "
            f"({100 * (e.value or 0):.0f} %, 95 %: {100 * (e.low or 0):.0f} to {100 * (e.high or 0):.0f}), "
            f"{r.same_cause} of them for the same cause."
        )
        if r.nodes:
            sentence += " Most often: " + ", ".join(f"{node} ({n})" for node, n in r.nodes[:5]) + "."
    return Section(
        "repeats",
        "Failed again after a return",
        sentence,
        ("first cause", "again", "share"),
        rows,
        frozenset({1, 2}),
        short=3,
    )


def _reliability(audit: Audit) -> Section:
    r = audit.reliability
    rows = (
        ("mean time between failures of a node", interval(r.mtbf_days, "d")),
        ("failures per 1,000 node-days", interval(r.per_1000_node_days, "")),
        ("half of the failed nodes were back after", interval(r.repair_median_hours, "h")),
        ("mean time to repair, finished ones", interval(r.repair_mean_hours, "h")),
        ("outages shared by several nodes, not in the above", f"{r.shared_outages:,}"),
    )
    sentence = f"Time between failures of a node: {interval(r.mtbf_days, 'd')}. Half are back within: {interval(r.repair_median_hours, 'h')}."
    return Section("reliability", "MTBF and MTTR", sentence, ("figure", "value"), rows, short=0)


def _jobs(audit: Audit) -> Section:
    t = audit.totals
    rows = tuple((state, f"{n:,}", number(h)) for state, n, h in audit.outcomes)
    if t.jobs is None:
        sentence = "Not known: no job history."
    else:
        sentence = (
            f"{t.jobs:,} job attempts held {number(t.allocated_gpu_hours)} GPU-hours "
            f"({percent(t.allocated_gpu_hours, t.capacity_gpu_hours)} of all). Lost nodes killed {count(t.jobs_killed or 0, 'job')}"
        )
        sentence += f", at least {number(t.killed_gpu_hours)} GPU-hours of work." if t.jobs_killed else "."
    return Section("jobs", "Jobs", sentence, ("ended as", "attempts", "GPU-hours"), rows, frozenset({1, 2}), short=0)


def _gaps(audit: Audit) -> Section:
    rows = tuple((g.what, g.effect) for g in audit.gaps)
    sentence = "What this report could not see." if rows else "Nothing was missing."
    return Section("gaps", "Not known", sentence, ("what", "so"), rows, short=6)
