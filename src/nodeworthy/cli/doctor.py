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
from nodeworthy.cli.page import answer_extra
from nodeworthy.errors import NodeworthyError

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
    print_rows(rows, COLUMNS, output, schema="nodeworthy.doctor/1", extra={**extra, "well": well})
    if output in ("table", "wide"):
        click.echo(verdict(rows), err=True)
    sys.exit(0 if well else 3)


def _check(name: str, state: str, sentence: str, remedy: str = "") -> dict[str, str]:
    return {"name": name, "state": state, "sentence": sentence, "remedy": remedy}


def _configuration(path: str) -> dict[str, str]:
    from nodeworthy.wiring.config import load

    try:
        _, warnings = load(path)
    except NodeworthyError as error:
        return _check("configuration", "fail", str(error), error.hint)
    if warnings:
        return _check("configuration", "warn", "; ".join(str(w) for w in warnings), f"nodeworthy config check {path}")
    return _check("configuration", "ok", f"{path} is valid")


def verdict(rows: Sequence[Mapping[str, Any]]) -> str:
    """One sentence: is it us?"""
    bad = [row["name"] for row in rows if row["state"] != "ok"]
    if not bad:
        return "Nodeworthy can see and work."
    return f"{words.count(len(bad), 'check')} of {len(rows)} not well: {', '.join(bad)}"
