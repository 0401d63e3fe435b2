"""A page of labelled blocks, as `explain` and every `show` print it: labels left, sentences wrapped at the right."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Iterable, Mapping
from typing import Any

_LABEL = 10


def width() -> int:
    """Columns to write in: the terminal's, within what can be read."""
    return max(60, min(110, shutil.get_terminal_size((100, 24)).columns))


def block(label: str, sentences: Iterable[str]) -> list[str]:
    """`label` and its sentences, all starting in the same column; nothing where there are none.

    >>> block("jobs", ["none"])
    ['  jobs        none']
    """
    lines: list[str] = []
    indent = " " * (_LABEL + 4)
    for sentence in sentences:
        for part in sentence.split("\n"):
            lines += textwrap.wrap(
                part, width(), initial_indent=indent, subsequent_indent=indent + "  ", break_on_hyphens=False
            )
    if lines:
        lines[0] = f"  {label.ljust(_LABEL)}  {lines[0][_LABEL + 4 :]}"
    return lines


def answer_extra(answer: Mapping[str, Any]) -> dict[str, Any]:
    """What a list's JSON carries beside its items: as_of, sources, total, …"""
    return {key: value for key, value in answer.items() if key != "items"}
