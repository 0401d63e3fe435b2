"""The pictures of an audit, as inline SVG by matplotlib. Theory of operation:

matplotlib draws with stand-in colours; afterwards each becomes a CSS variable, so that one file follows the reader's
light or dark setting. Text stays text (`svg.fonttype = none`), so it can be read aloud, searched and zoomed. Each
picture has a sentence for those who do not see it, and the numbers that it shows as a table (`rows`).

Colours are the project's state palette (worst difference 19 in CIEDE2000 over normal and colour-blind vision); series
differ by hatching too, so colour is never alone.
"""

from __future__ import annotations

import io
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from nodeworthy.commands.audit_render.sections import counts_gpus, hours_of, unit
from nodeworthy.commands.audit_render.words import day, number, percent
from nodeworthy.reports.audit.report import Audit

# stand-in → CSS variable of the page
STAND_INS = {
    "#a10001": "--failed",
    "#a10002": "--suspect",
    "#a10003": "--working",
    "#a10004": "--out",
    "#a10005": "--unknown",
    "#a10006": "--serving",
    "#a10007": "--ink",
    "#a10008": "--faint",
    "#a10009": "--ground",
}
SERIES = ("#a10001", "#a10002", "#a10003", "#a10004", "#a10005")
REST = "#a10006"
INK, FAINT, GROUND = "#a10007", "#a10008", "#a10009"
HATCHES = ("", "///", "", "...", "xx", "\\\\\\")
MOST_SERIES = 5
AGES = ((1, "< 1 d"), (7, "1–7 d"), (30, "7–30 d"), (90, "30–90 d"), (float("inf"), "> 90 d"))


@dataclass(frozen=True, slots=True)
class Picture:
    """`section`: the section that it belongs to. `svg` is safe markup; `rows` are the numbers in it."""

    section: str
    title: str
    sentence: str
    svg: str
    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def pictures(audit: Audit) -> list[Picture]:
    """Those for which there are data."""
    made: list[Picture | None] = [_by_day(audit), _by_cause(audit), _use(audit), _ages(audit), _lemons(audit)]
    return [p for p in made if p is not None]


def _by_day(audit: Audit) -> Picture | None:
    if not counts_gpus(audit) or not any(d.gpu_hours for d in audit.days):
        return None
    totals: dict[str, float] = {}
    for d in audit.days:
        for title, hours in d.gpu_hours:
            totals[title] = totals.get(title, 0.0) + hours
    names = sorted(totals, key=lambda t: -totals[t])
    shown = names[:MOST_SERIES]
    others = len(names) > MOST_SERIES
    series: list[tuple[str, list[float]]] = []
    for name in shown:
        series.append((name, [dict(d.gpu_hours).get(name, 0.0) for d in audit.days]))
    if others:
        series.append(("all other causes", [sum(h for t, h in d.gpu_hours if t not in shown) for d in audit.days]))
    starts = [d.start for d in audit.days]

    worst = max(audit.days, key=lambda d: sum(h for _, h in d.gpu_hours))
    return Picture(
        "causes", "Lost GPU-hours by day and cause",
        f"The worst day was {day(worst.start)} with {number(sum(h for _, h in worst.gpu_hours))} GPU-hours.",
        _svg(_stacked(starts, series, "GPU-hours lost per day"), 9.0, 3.2), ("day", *(n for n, _ in series)),
        tuple((day(s), *(number(v[k]) for _, v in series)) for k, s in enumerate(starts)),
    )  # fmt: skip


def _stacked(starts: list[int], series: list[tuple[str, list[float]]], label: str) -> Callable[[Any], None]:
    """A bar a day, its parts one above the other."""

    def draw(axes: Any) -> None:
        base = [0.0] * len(starts)
        for k, (name, values) in enumerate(series):
            colour = SERIES[k] if k < MOST_SERIES else REST
            axes.bar(
                range(len(starts)), values, bottom=base, width=0.92, color=colour, label=name, linewidth=0.4,
                edgecolor=GROUND, hatch=HATCHES[k],
            )  # fmt: skip
            base = [a + b for a, b in zip(base, values, strict=True)]
        step = max(1, len(starts) // 8)
        axes.set_xticks(range(0, len(starts), step), [time.strftime("%d %b", time.gmtime(s)) for s in starts[::step]])
        axes.set_ylabel(label)
        handles, labels = axes.get_legend_handles_labels()
        axes.legend(
            handles[::-1], labels[::-1], loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False, labelcolor=INK
        )

    return draw


def _use(audit: Audit) -> Picture | None:
    use = audit.utilisation
    if use is None or not use.allocated_gpu_hours:
        return None
    parts = {
        "GPU gone": "gone", "ran no kernel": "idle", "ran a kernel": "busy", "no telemetry": "dark", "cannot be told": "untold"
    }  # fmt: skip
    series = [(name, [float(getattr(d, part)) for d in use.days]) for name, part in parts.items()]
    starts = [d.start for d in use.days]
    return Picture(
        "use", "GPU-hours given to jobs, by what they did",
        f"{percent(use.busy_gpu_hours, use.allocated_gpu_hours)} ran a kernel, {percent(use.idle_gpu_hours, use.allocated_gpu_hours)} ran none.",
        _svg(_stacked(starts, series, "GPU-hours held per day"), 9.0, 3.2), ("day", *parts),
        tuple((day(s), *(number(v[k]) for _, v in series)) for k, s in enumerate(starts)),
    )  # fmt: skip


def _by_cause(audit: Audit) -> Picture | None:
    rows = [r for r in audit.causes if (hours_of(audit, r) or 0) > 0][:12]
    if not rows:
        return None
    colours = {"fault": (SERIES[0], ""), "planned": (SERIES[2], "///"), "unknown": (SERIES[4], "xx")}

    def draw(axes: Any) -> None:
        seen: set[str] = set()
        for k, row in enumerate(reversed(rows)):
            colour, hatch = colours.get(row.reads, (REST, ""))
            label = row.reads if row.reads not in seen else "_"
            seen.add(row.reads)
            hours = hours_of(audit, row) or 0.0
            axes.barh(k, hours, color=colour, hatch=hatch, edgecolor=GROUND, linewidth=0.4, label=label, height=0.72)
            axes.annotate(f" {number(hours)}", (hours, k), va="center", color=INK, fontsize=9)
        axes.set_yticks(range(len(rows)), [r.title for r in reversed(rows)])
        axes.set_xlabel(f"{unit(audit)} lost")
        axes.margins(x=0.12)
        axes.legend(loc="lower right", frameon=False, labelcolor=INK)

    first = rows[0]
    return Picture(
        "causes", f"Lost {unit(audit)} by cause",
        f"{first.title} took most: {number(hours_of(audit, first))} {unit(audit)} in {first.outages} outages.",
        _svg(draw, 9.0, 0.9 + 0.32 * len(rows)), ("cause", "kind", unit(audit)),
        tuple((r.title, r.reads, number(hours_of(audit, r))) for r in rows),
    )  # fmt: skip


def _ages(audit: Audit) -> Picture | None:
    known = [r for r in audit.out_now if r.age_days is not None]
    if not known:
        return None
    kinds = ("fault", "planned", "unknown")
    table = {kind: [0] * len(AGES) for kind in kinds}
    for row in known:
        slot = next(k for k, (limit, _) in enumerate(AGES) if (row.age_days or 0) <= limit)
        table[row.reads if row.reads in table else "unknown"][slot] += 1
    colours = dict(zip(kinds, ((SERIES[0], ""), (SERIES[2], "///"), (SERIES[4], "xx")), strict=True))

    def draw(axes: Any) -> None:
        base = [0] * len(AGES)
        for kind in kinds:
            colour, hatch = colours[kind]
            axes.bar(
                range(len(AGES)), table[kind], bottom=base, color=colour, hatch=hatch, label=kind, width=0.7,
                edgecolor=GROUND, linewidth=0.4,
            )  # fmt: skip
            base = [a + b for a, b in zip(base, table[kind], strict=True)]
        for k, value in enumerate(base):
            if value:
                axes.annotate(str(value), (k, value), ha="center", va="bottom", color=INK, fontsize=9)
        axes.set_xticks(range(len(AGES)), [label for _, label in AGES])
        axes.set_ylabel("nodes out now")
        axes.yaxis.get_major_locator().set_params(integer=True)
        axes.legend(loc="upper right", frameon=False, labelcolor=INK)

    old = sum(table[k][3] + table[k][4] for k in kinds)
    return Picture(
        "out", "How long the nodes that are out now have been out",
        f"{old} of {len(known)} have been out for more than 30 days.",
        _svg(draw, 6.0, 2.6), ("age", *kinds),
        tuple((label, *(str(table[k][n]) for k in kinds)) for n, (_, label) in enumerate(AGES)),
    )  # fmt: skip


def _lemons(audit: Audit) -> Picture | None:
    rows = audit.lemons[:20]
    if not rows:
        return None
    span = (audit.window.since, audit.window.until)

    def draw(axes: Any) -> None:
        for k, lemon in enumerate(reversed(rows)):
            axes.plot(span, (k, k), color=FAINT, linewidth=0.8)
            axes.plot([e.at for e in lemon.events], [k] * len(lemon.events), "x", color=SERIES[0], markersize=6)
        axes.set_yticks(range(len(rows)), [r.node for r in reversed(rows)])
        axes.set_xlim(*span)
        ticks = [span[0] + (span[1] - span[0]) * k // 6 for k in range(7)]
        axes.set_xticks(ticks, [time.strftime("%d %b", time.gmtime(t)) for t in ticks])

    return Picture(
        "lemons", "When the nodes that keep failing failed",
        f"{rows[0].node} failed {rows[0].failures} times; its peers' rate explains {number(rows[0].expected)}.",
        _svg(draw, 9.0, 0.9 + 0.28 * len(rows)), ("node", "failures (latest first)"),
        tuple((r.node, ", ".join(day(e.at) for e in r.events)) for r in rows),
    )  # fmt: skip


def _svg(draw: Callable[[Any], None], width: float, height: float) -> str:
    import matplotlib
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    style: Any = {
        "svg.fonttype": "none", "svg.hashsalt": "nodeworthy", "font.family": "sans-serif", "font.size": 9.5,
        "hatch.linewidth": 0.6, "text.color": INK, "axes.labelcolor": INK, "xtick.color": INK, "ytick.color": INK,
        "axes.edgecolor": FAINT,
    }  # fmt: skip
    with matplotlib.rc_context(style):
        figure = Figure(figsize=(width, height), layout="constrained")
        FigureCanvasSVG(figure)
        axes = figure.subplots()
        axes.spines[["top", "right"]].set_visible(False)
        draw(axes)
        out = io.StringIO()
        figure.savefig(out, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    svg = re.sub(r"^.*?(?=<svg)", "", out.getvalue(), flags=re.DOTALL)
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    for stand_in, variable in STAND_INS.items():
        svg = svg.replace(stand_in, f"var({variable})")
    svg = re.sub(r"font: ([\d.]+px) [^;\"]*", r"font: \1 system-ui, sans-serif", svg)
    size = f'<svg style="max-width: {width * 6.5:.0f}rem" '
    return re.sub(
        r"<svg (?=[^>]*viewBox)",
        size,
        re.sub(r'(<svg [^>]*?)\b(?:width|height)="[^"]*" ?', r"\1", svg, count=2),
        count=1,
    )
