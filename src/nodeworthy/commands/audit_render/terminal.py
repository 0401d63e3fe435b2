"""An audit on one page of terminal. The first lines answer: how much, to what, and which nodes need a person."""

from __future__ import annotations

import io

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from nodeworthy.cli.printable import printable
from nodeworthy.commands.audit_render.sections import answer, heading, sections
from nodeworthy.commands.audit_render.words import Section
from nodeworthy.reports.audit.report import Audit

KIND_STYLE = {"fault": "red", "planned": "cyan", "unknown": "dim"}
INDENT, GAP = 2, 2
NARROWEST = 8
PAGE_COLUMNS = {
    "people": (0, 1, 3), "causes": (0, 1, 2, 3, 4, 5, 6, 7), "out": (0, 2, 3, 4, 5, 6), "lemons": (0, 1, 2, 5, 6, 7),
    "holes": (0, 1, 2, 3, 5), "repeats": (0, 1, 2), "kernel": (0, 1, 2, 3, 4, 6), "gaps": (0, 1),
    "use": (0, 1, 2, 3), "devices": (0, 1, 2, 3, 4),
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
    console.print(Text(printable(heading(audit)), style="dim"))
    console.print(Text(printable(first), style="bold"))
    console.print(Text(printable(second)))
    for section in sections(audit):
        _draw(console, section, wide)
    hint = "All rows: -o wide. Pictures and all tables: --html FILE. For programs: -o json."
    console.print(Text("\n" + hint, style="dim"))
    return out.getvalue()


def _draw(console: Console, section: Section, wide: bool) -> None:
    console.print()
    console.print(Text.assemble((section.title.upper(), "bold"), "  ", printable(section.sentence)))
    limit = len(section.rows) if wide else section.short
    rows = section.rows[:limit]
    if not rows:
        return
    columns = tuple(range(len(section.headings))) if wide else PAGE_COLUMNS[section.id]
    cells = [[printable(" ".join(row[k].split())) for k in columns] for row in rows]
    headings = [section.headings[k] for k in columns]
    numbers = [k in section.right for k in columns]
    names = [k == 0 and section.id != "gaps" for k in columns]
    widths = _widths(cells, headings, names, numbers, console.width - INDENT)
    table = Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0), header_style="dim", show_edge=False)
    for heading_, width, is_number in zip(headings, widths, numbers, strict=True):
        table.add_column(
            heading_, width=width, no_wrap=not wide, overflow="fold" if wide else "ellipsis",
            justify="right" if is_number else "left",
        )  # fmt: skip
    for row in cells:
        style = KIND_STYLE.get(row[1], "") if section.id == "causes" else ""
        table.add_row(*(Text(cell, style=style if n < 2 else "") for n, cell in enumerate(row)))
    console.print(Padding(table, (0, 0, 0, INDENT)))
    if limit < len(section.rows):
        console.print(Text(f"  … and {len(section.rows) - limit:,} more", style="dim"))


def _widths(
    cells: list[list[str]], headings: list[str], names: list[bool], numbers: list[bool], room: int
) -> list[int]:
    """Names and numbers are never cut, because people copy and compare them; sentences share what is left: narrow
    ones get what they need, wide ones equal parts."""
    natural = [max(len(headings[n]), *(len(row[n]) for row in cells)) for n in range(len(headings))]
    fixed = [names[n] or numbers[n] for n in range(len(headings))]
    left = room - GAP * len(headings) - sum(w for w, f in zip(natural, fixed, strict=True) if f)
    widths = list(natural)
    open_ = sorted((n for n, f in enumerate(fixed) if not f), key=lambda n: natural[n])
    while open_:
        n = open_.pop(0)
        widths[n] = max(NARROWEST, min(natural[n], left // (len(open_) + 1)))
        left -= widths[n]
    return widths
