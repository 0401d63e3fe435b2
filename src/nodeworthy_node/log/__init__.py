"""From log lines to events: `parse` takes a line apart, a `Grammar` says what it is evidence of.

    Reference (what is known from outside) ─┐
    raw bytes ── lines.parse ───────────────┴─▶ Line ── Grammar.classify ─▶ Event (or None)
    files, pipes ── scan.hits ─▶ only the lines that hold a literal of the grammar

Pure but for `scan`, which reads. The rules are data and come in as a mapping; the reader of the data is elsewhere.
"""

from nodeworthy_node.log.event import Event, Verdict
from nodeworthy_node.log.grammar import Grammar
from nodeworthy_node.log.lines import Line, parse
from nodeworthy_node.log.when import Reference

__all__ = ["Event", "Grammar", "Line", "Reference", "Verdict", "parse"]
