"""The sections that a metrics server adds: what allocated GPUs did, and which devices to look at."""

from __future__ import annotations

from nodeworthy.commands.audit_render.words import Section, count, minute, number, percent
from nodeworthy.reports.audit.utilisation import Utilisation

SEVERAL = "(several at once)"
_KINDS = {"gone": "jobs hold GPUs that the exporter does not see", "throttled": "clocks slowed by heat or power"}


def use_in_short(u: Utilisation | None) -> str:
    """One sentence for the top of the page; empty where there is nothing to say."""
    if u is None or not u.allocated_gpu_hours:
        return ""
    return (
        f"Of the GPU-hours given to jobs {percent(u.busy_gpu_hours, u.allocated_gpu_hours)} ran a kernel, "
        f"{percent(u.idle_gpu_hours, u.allocated_gpu_hours)} ran none."
    )


def use(u: Utilisation) -> Section:
    """Busy and idle, and whose the idle hours were."""
    rows: list[tuple[str, float | None, float]] = [(r.user, r.seen_gpu_hours, r.idle_gpu_hours) for r in u.users]
    if u.idle_of_nobody_gpu_hours:
        rows.append((SEVERAL, None, u.idle_of_nobody_gpu_hours))
    rows.sort(key=lambda row: -row[2])
    cells = [(user, number(seen), number(idle), percent(idle, seen)) for user, seen, idle in rows]
    return Section(
        "use", "What allocated GPUs did", _use_sentence(u), ("user", "GPU-hours seen", "without a kernel", "share"),
        tuple(cells), frozenset({1, 2, 3}), short=5,
    )  # fmt: skip


def _use_sentence(u: Utilisation) -> str:
    total = u.allocated_gpu_hours
    if total is None:
        return "Not known: no job history with GPU counts."
    if not total:
        return "No job held a GPU in this window."
    parts = [
        (u.busy_gpu_hours, "ran a kernel"),
        (u.idle_gpu_hours, "ran none"),
        (u.gone_gpu_hours, "were of GPUs that the exporter did not see"),
        (u.dark_gpu_hours, "have no telemetry"),
        (u.untold_gpu_hours, "cannot be told"),
    ]
    said = [f"{percent(hours, total)} {what}" for hours, what in parts if hours]
    sentence = f"Of {number(total)} GPU-hours given to jobs " + ", ".join(said) + "."
    sentence += f" Telemetry covers {percent(u.seen_node_hours, u.held_node_hours)} of the allocated node-hours"
    if u.hours_read < u.hours_asked:
        sentence += f" in the {u.hours_read:,} of {u.hours_asked:,} hours that could be read"
    if u.outside_gpu_hours and u.outside_gpu_hours > 0.01 * total:
        sentence += f"; kernels ran for {number(u.outside_gpu_hours)} GPU-hours outside of jobs"
    return sentence + "."


def devices(u: Utilisation) -> Section:
    """Nodes whose GPUs are gone, slowed or unseen."""
    units = {"gone": "GPU-hours", "throttled": "hours"}
    rows = [
        (t.node, _KINDS[t.kind], f"{number(t.hours)} {units[t.kind]}", minute(t.first), minute(t.last))
        for t in u.troubles
    ]
    rows += [
        (d.node, f"no telemetry in {percent(d.dark_node_hours, d.held_node_hours)} of its allocated hours",
         f"{d.dark_node_hours:,} hours", "?", "?")
        for d in u.dark_nodes
    ]  # fmt: skip
    counts = [sum(1 for t in u.troubles if t.kind == kind) for kind in _KINDS]
    parts = []
    if u.allocated_gpu_hours is not None:
        parts.append(f"{count(counts[0], 'node')} with allocated GPUs gone")
    if u.throttled_node_hours is None:
        parts.append("slowed clocks are not known")
    else:
        parts.append(f"{counts[1]:,} slowed for an hour or more ({number(u.throttled_node_hours)} node-hours in all)")
    parts.append(f"{len(u.dark_nodes):,} without telemetry for some allocated hours")
    return Section(
        "devices", "GPUs that are gone, slowed or unseen", "; ".join(parts) + ".",
        ("node", "what", "how long", "first (UTC)", "last (UTC)"), tuple(rows), frozenset({2}), short=6,
    )  # fmt: skip
