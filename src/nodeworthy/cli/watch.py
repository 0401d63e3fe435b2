"""`--watch`: print again every few seconds, until interrupted.

On a terminal the screen is redrawn; into a pipe the answers follow one another (use `-o jsonl`). Nodeworthy
going away for a moment (an upgrade) does not end a watch: the error is said and the next round tries again.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any, TypeVar

import click

from nodeworthy.cli.printable import printable, say
from nodeworthy.errors import WorldError

Command = TypeVar("Command", bound=Callable[..., Any])


def watch_option(command: Command) -> Command:
    """Adds `-W/--watch SECONDS`; the callback gets `watch` (None: once)."""
    return click.option(
        "-W",
        "--watch",
        type=click.FloatRange(min=0.2),
        metavar="SECONDS",
        help="Print again every so many seconds, until interrupted.",
    )(command)


def repeat(every: float | None, once: Callable[[], int]) -> int:
    """Run `once` (which prints and returns an exit code) once, or again and again until Ctrl-C."""
    if every is None:
        return once()
    while True:
        if sys.stdout.isatty():
            click.clear()
        try:
            once()
        except WorldError as error:
            say(f"error {error.code}: {printable(str(error))}", err=True)
        sys.stdout.flush()
        time.sleep(every)
