"""What comes from outside is shown and never obeyed.

A job's name, a drain reason, a host name or a log line is written by whoever may write it, and a terminal obeys what
it is sent: ESC sequences retitle and repaint it, a newline forges a line, U+202E turns a name around. So a text from
outside that is printed for people goes through `printable` (a whole answer through `cleaned`) before words of ours are
put around it, and everything printed leaves through `say`, which lets nothing pass but lines and colours of our own.

Formats for machines (JSON, JSON lines, YAML) carry such text whole: there the format escapes it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import click

# colours and weights as `click.style` and Rich write them (ECMA-48, "select graphic rendition"): they move nothing
# longer than any kernel line or reason that a person reads to its end
LONGEST = 600

_COLOUR = re.compile(r"(\x1b\[[0-9;]*m)")


def printable(text: str) -> str:
    r"""`text` on one line, with whatever a terminal would act on or hide as a visible escape.

    What counts is `str.isprintable`: controls (C0, C1), line separators, bidirectional and other format characters
    and halves of surrogate pairs are not.

    >>> printable("a\x1b[2J\nb")
    'a\\x1b[2J\\nb'
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def cleaned(value: Any) -> Any:
    """An answer with each text in it printable, keys too; for what is shown to people."""
    if isinstance(value, str):
        return printable(_cut(value))
    if isinstance(value, Mapping):
        return {cleaned(key): cleaned(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [cleaned(item) for item in value]
    return value


def _cut(text: str) -> str:
    """A reason of 20,000 characters fills screens and tells no more; `-o json` has all of it."""
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}… ({len(text):,} characters)"


def say(text: str, *, err: bool = False, nl: bool = True) -> None:
    """Print lines for people, or data (`err`: talk). The only way out to a terminal."""
    click.echo("\n".join(_line(line) for line in text.split("\n")), err=err, nl=nl)


def _line(line: str) -> str:
    if line.isprintable():
        return line
    return "".join(part if part.startswith("\x1b") and _COLOUR.fullmatch(part) else printable(part)
                   for part in _COLOUR.split(line))  # fmt: skip
