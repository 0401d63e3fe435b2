"""`nodeworthy doctor`: is it the fleet, or is it us?

Asks the running instance for its checks of itself; where none answers, that is the first finding, and what
can be checked without one (the configuration, the socket) is checked here.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

import click

from nodeworthy.cli import words
from nodeworthy.cli.client import Client, client_options
from nodeworthy.cli.output import Column, output_options, print_rows
from nodeworthy.cli.page import answer_extra, block
from nodeworthy.cli.printable import cleaned, say
from nodeworthy.errors import BadFile, NodeworthyError, Problem

_ORDER = {"fail": 0, "unknown": 1, "warn": 2, "ok": 3}
COLUMNS = (
    Column("state", text=words.mark),
    Column("name", "CHECK"),
    Column("sentence", "SAYS"),
    Column("remedy", "REMEDY"),
)


@click.command(
    epilog="Example:  nodeworthy doctor --config /etc/nodeworthy/nodeworthy.toml\n\n"
    "Exit codes: 0 all is well, 3 something is not, or cannot be told."
)
@click.option("--config", "config_file", type=click.Path(), help="Also check this configuration file.")
@output_options
@client_options
def doctor(client: Client, config_file: str | None, output: str) -> None:
    """Check that Nodeworthy itself can see and work: sources, permissions, clock, store, disk, files, versions."""
    items: list[Mapping[str, Any]] = []
    extra: dict[str, Any] = {}
    try:
        answer = client.get("/v1/doctor")
        items += [_check("server", "ok", f"nodeworthy serve answers on {client.path}"), *answer["items"]]
        extra = answer_extra(answer)
    except NodeworthyError as error:
        items.append(_check("server", "fail", str(error), error.hint))
    if config_file is not None:
        items.append(_configuration(config_file))
    well = all(item["state"] == "ok" for item in items)
    rows = sorted(items, key=lambda item: _ORDER[item["state"]])
    if output == "table":
        say(render(cleaned(rows)))
    else:
        print_rows(rows, COLUMNS, output, schema="nodeworthy.doctor/1", extra={**extra, "well": well})
    sys.exit(0 if well else 3)


def _check(name: str, state: str, sentence: str, remedy: str = "") -> dict[str, str]:
    return {"name": name, "state": state, "sentence": sentence, "remedy": remedy}


def _configuration(path: str) -> dict[str, str]:
    from nodeworthy.wiring.config import load

    remedy = f"nodeworthy config check {path}"
    try:
        _, problems = load(path)
    except BadFile as error:
        return _check("configuration", "fail", _first(error.problems), remedy)
    if problems:
        return _check("configuration", "warn", _first(problems), remedy)
    return _check("configuration", "ok", f"{path} is valid")


def _first(problems: Sequence[Problem]) -> str:
    more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
    return f"{problems[0]}{more}"


def render(rows: Sequence[Mapping[str, Any]]) -> str:
    """The verdict first (is it us?), then each check, what is not well on top, with its remedy."""
    bad = [row["name"] for row in rows if row["state"] != "ok"]
    count = f"{len(bad)} of {words.count(len(rows), 'check')}"
    lines = [f"Not well: {count} ({', '.join(bad)})." if bad else "Nodeworthy can see and work."]
    for row in rows:
        lines += [words.paint(line, row["state"]) for line in block(words.mark(row["state"]), [_says(row)])]
        lines += block("", [f"try: {row['remedy']}"] if row["remedy"] else [])
    return "\n".join(lines)


def _says(row: Mapping[str, Any]) -> str:
    return f"{row['name']}: {row['sentence']}"
