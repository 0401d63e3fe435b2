"""An audit as Markdown (GitHub tables): for a ticket, a wiki or a mail."""

from __future__ import annotations

from nodeworthy.cli.printable import printable
from nodeworthy.commands.audit_render.sections import answer, heading, sections
from nodeworthy.commands.audit_render.words import Section
from nodeworthy.reports.audit.report import Audit

MOST_ROWS = 200


def document(audit: Audit) -> str:
    """The whole report. Text from outside (reasons, names) cannot break out of its cell."""
    first, second = answer(audit)
    parts = [f"# Audit of {_safe(audit.cluster)}", _safe(heading(audit)), f"**{_safe(first)}** {_safe(second)}"]
    parts += [part for section in sections(audit) for part in _section(section)]
    return "\n\n".join(parts) + "\n"


def _section(section: Section) -> list[str]:
    parts = [f"## {section.title}", _safe(section.sentence)]
    if not section.rows:
        return parts
    marks = ["---:" if k in section.right else "---" for k in range(len(section.headings))]
    lines = [_line(section.headings), "| " + " | ".join(marks) + " |"]
    lines += [_line(tuple(_safe(cell) for cell in row)) for row in section.rows[:MOST_ROWS]]
    parts.append("\n".join(lines))
    if len(section.rows) > MOST_ROWS:
        parts.append(f"… and {len(section.rows) - MOST_ROWS:,} more; `-o json` has all.")
    return parts


def _line(cells: tuple[str, ...]) -> str:
    return "| " + " | ".join(cells) + " |"


def _safe(text: str) -> str:
    """One line, with everything that Markdown or HTML would act on escaped."""
    flat = printable(" ".join(text.split())).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return "".join("\\" + c if c in "\\`*_[]|#" else c for c in flat)
