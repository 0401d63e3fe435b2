"""`--since`: a span back from now (90m, 12h, 7d) or a moment (2026-11-30T12:00, UTC), in the grammar of
`nodeworthy.model.duration`."""

from __future__ import annotations

import click

from nodeworthy.cli import words
from nodeworthy.errors import BadRequest
from nodeworthy.model.duration import parse_time


class Since(click.ParamType[float]):
    """Converts to POSIX seconds."""

    name = "since"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        try:
            return parse_time(str(value), now=words.now())
        except BadRequest as error:
            self.fail(f"{error}; {error.hint}", param, ctx)


SINCE = Since()
