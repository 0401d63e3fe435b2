"""An audit on one page of terminal. The first lines answer: how much, to what, and which nodes need a person."""

from __future__ import annotations

import io

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from nodeworthy.cli.audit_render.sections import Section, answer, heading, sections
from nodeworthy.reports.audit.report import Audit

KIND_STYLE = {"fault": "red", "planned": "cyan", "unknown": "dim"}
ON_PAGE = ("people", "causes", "out", "lemons", "holes", "repeats", "reliability", "jobs", "gaps")
PAGE_COLUMNS = {
    "people": (0, 1, 3), "causes": (0, 1, 2, 3, 4, 5, 6, 7), "out": (0, 2, 3, 4, 5, 6), "lemons": (0, 1, 2, 5, 6, 7),
    "holes": (0, 1, 2, 3, 5), "repeats": (0, 1, 2), "gaps": (0, 1),
}  # fmt: skip


def page(audit: Audit, *, width: int, colour: bool, wide: bool = False) -> str:
    """The report as text. `wide`: all columns and all rows."""
    out = io.StringIO()
    console = Console(
        file=out,
        width=width,
        force_terminal=colour,
        color_system="standard" if colour else None,
        highlight=False,
        emoji=False,
    )
    first, second = answer(audit)
    console.print(Text(heading(audit), style="dim"))
    console.print(Text(first, style="bold"))
    console.print(Text(second))
    for section in sections(audit):
        _draw(console, section, wide)
    hint = "All rows: -o wide. Pictures and all tables: --html FILE. For programs: -o json."
    console.print(Text("\n" + hint, style="dim"))
    return out.getvalue()


def _draw(console: Console, section: Section, wide: bool) -> None:
    console.print()
    console.print(Text.assemble((section.title.upper(), "bold"), "  ", section.sentence))
    limit = len(section.rows) if wide else section.short
    rows = section.rows[:limit]
    if not rows:
        return
    columns = tuple(range(len(section.headings))) if wide else PAGE_COLUMNS[section.id]
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim", show_edge=False)
    for k in columns:
        # Names are never cut: people copy them. Sentences may be.
        short = k == 0 or k in section.right
        table.add_column(
            section.headings[k],
            justify="right" if k in section.right else "left",
            no_wrap=short or not wide,
            overflow="fold" if wide else "ellipsis",
            min_width=max(len(r[k]) for r in rows) if short and max(len(r[k]) for r in rows) < 40 else None,
        )
    for row in rows:
        style = KIND_STYLE.get(row[1], "") if section.id == "causes" else ""
        table.add_row(*(Text(" ".join(row[k].split()), style=style if k < 2 else "") for k in columns))
    console.print(Padding(table, (0, 0, 0, 2)))
    if limit < len(section.rows):
        console.print(Text(f"  … and {len(section.rows) - limit:,} more", style="dim"))
