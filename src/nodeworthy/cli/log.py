"""`nodeworthy log`: turn log lines into events. Runs alone: no server, no fleet file, no configuration."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from nodeworthy_node.log import Event

FORMATS = ("table", "wide", "json", "jsonl")


@click.group()
def log() -> None:
    """Turn kernel and system log lines into events."""


@log.command(epilog="Example: journalctl -k -o json | nodeworthy log classify - --json")
@click.argument("files", nargs=-1, metavar="[FILE|-]...")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line (same as -o jsonl).")
@click.option("-o", "--output", type=click.Choice(FORMATS), default="table", show_default=True, help="How to print.")
def classify(files: tuple[str, ...], as_json: bool, output: str) -> None:
    """Say what the lines of log FILEs (or of standard input) are evidence of."""
    output = "jsonl" if as_json else output
    for event in _read(files or ("-",)):
        if output in ("json", "jsonl"):
            sys.stdout.write(json.dumps(event.as_dict(), ensure_ascii=False) + "\n")
        else:
            row = event.as_dict()
            sys.stdout.write(
                "  ".join(
                    str(row[k])
                    for k in ("time", "host", "component", "kind", "code", "role", "severity", "action", "meaning")
                )
                + "\n"
            )


def _read(files: tuple[str, ...]) -> Iterator[Event]:
    from nodeworthy.adapters.files.literals import finder
    from nodeworthy.adapters.files.log_rules import load_grammar
    from nodeworthy_node.log import Reference
    from nodeworthy_node.log.scan import Tally, events

    grammar = load_grammar()
    find = finder(grammar.literals)
    for name in files:
        tally = Tally()
        with Path("/dev/stdin" if name == "-" else name).open("rb") as stream:
            yield from events(stream, find, grammar, Reference(), tally)
