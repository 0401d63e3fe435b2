"""`--since`: a span back from now (90m, 12h, 7d, 2w) or a moment (2026-11-30, 2026-11-30T12:00, in UTC)."""

from __future__ import annotations

import re
from datetime import UTC, datetime

import click

from nodeworthy.cli import words

_SPAN = re.compile(r"(\d+)\s*([smhdw])")
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}


class Span(click.ParamType[float]):
    """Converts to POSIX seconds. A moment without an offset is UTC."""

    name = "since"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        text = str(value).strip()
        if match := _SPAN.fullmatch(text):
            return words.now() - int(match[1]) * _UNITS[match[2]]
        try:
            moment = datetime.fromisoformat(text)
        except ValueError:
            self.fail(f"{text!r} is neither a span (90m, 12h, 7d, 2w) nor a date (2026-11-30T12:00)", param, ctx)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


SPAN = Span()
