"""`nodeworthy ledger tail`: what happened, in order, and what happens next."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator, Mapping
from typing import Any

import click

from nodeworthy.cli import words
from nodeworthy.cli.client import Client, client_options
from nodeworthy.cli.output import Column, output_options, print_rows
from nodeworthy.cli.page import answer_extra
from nodeworthy.cli.printable import cleaned, printable, say
from nodeworthy.errors import BadRequest, WorldError

COLUMNS = (
    Column("sequence", "SEQ"),
    Column("at", "WHEN", text=words.clock_time),
    Column("kind"),
    Column("subject"),
    Column("actor", "BY"),
    Column("cause", wide=True),
    Column("summary"),
)
_PAGE = 1000
_RECONNECT_S = 2.0


@click.group()
def ledger() -> None:
    """The ledger: what happened, in order, with causes."""


@ledger.command(epilog="Example:  nodeworthy ledger tail -n 50 -f -o jsonl")
@click.option(
    "-n", "--lines", type=click.IntRange(0, _PAGE), default=20, show_default=True, help="How many to begin with."
)
@click.option("--after", type=click.IntRange(min=0), help="Begin after this sequence instead.")
@click.option("-f", "--follow", is_flag=True, help="Go on with what happens next, until interrupted.")
@output_options
@client_options
def tail(client: Client, lines: int, after: int | None, follow: bool, output: str) -> None:
    """Print the end of the ledger, oldest first. With -f only table and jsonl make sense."""
    if follow:
        if output not in ("table", "wide", "jsonl"):
            raise BadRequest(f"-f cannot write {output}", hint="use -o table or -o jsonl with -f")
        for entry in _follow(client, lines, after):
            say(json.dumps(entry) if output == "jsonl" else line(cleaned(entry)))
            sys.stdout.flush()
        return
    answer = _page(client, lines, after)
    print_rows(
        answer["items"],
        COLUMNS,
        output,
        schema="nodeworthy.ledger/1",
        name_key="subject",
        empty="The ledger has no such entries.",
        extra=answer_extra(answer),
    )


def _page(client: Client, lines: int, after: int | None) -> dict[str, Any]:
    if after is None and lines == 0:
        last = client.get("/v1/ledger", {"after": -1, "limit": 1})
        return {**last, "items": []}
    return client.get("/v1/ledger", {"after": -lines if after is None else after, "limit": _PAGE})


def _follow(client: Client, lines: int, after: int | None) -> Iterator[dict[str, Any]]:
    """What is there, then what comes. A stream that breaks is taken up again where it broke."""
    answer = _page(client, lines, after)
    yield from answer["items"]
    last = answer["last"]
    while True:
        try:
            for entry in client.events(last):
                last = entry["sequence"]
                yield entry
        except WorldError as error:
            say(f"{printable(str(error))}; trying again", err=True)
        time.sleep(_RECONNECT_S)


def line(entry: Mapping[str, Any]) -> str:
    cause = f" because {entry['cause']}" if entry["cause"] else ""
    when = words.clock_time(entry["at"])
    return f"{entry['sequence']}  {when}  {entry['kind']}  {entry['subject']}: {entry['summary']}{cause} [{entry['actor']}]"
