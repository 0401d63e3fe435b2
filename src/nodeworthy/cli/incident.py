"""`nodeworthy incident list | show`."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import click

from nodeworthy.cli import words
from nodeworthy.cli.client import Client, client_options, segment
from nodeworthy.cli.finding import urgency
from nodeworthy.cli.output import Column, output_options, print_document, print_rows
from nodeworthy.cli.page import answer_extra, block
from nodeworthy.cli.watch import repeat, watch_option

_SEVERITY = {"fatal": 0, "error": 1, "warning": 2, "info": 3}
COLUMNS = (
    Column("severity", text=words.mark),
    Column("key", "INCIDENT"),
    Column("since", text=words.age),
    Column("node_count", "NODES"),
    Column("nodes", "WHICH"),
    Column("origin"),
    Column("title"),
)


@click.group()
def incident() -> None:
    """Incidents: findings that share an origin."""


@incident.command("list", epilog="Example:  nodeworthy incident list -o jsonl")
@output_options
@watch_option
@client_options
def list_(client: Client, output: str, watch: float | None) -> None:
    """List incidents, the worst first."""

    def once() -> int:
        answer = client.pages("/v1/incidents")
        print_rows(
            sorted(answer["items"], key=lambda i: (_SEVERITY[i["severity"]], i["since"])),
            COLUMNS,
            output,
            schema="nodeworthy.incident-list/1",
            name_key="key",
            empty="No incidents.",
            extra=answer_extra(answer),
        )
        return 0

    sys.exit(repeat(watch, once))


@incident.command("show", epilog="Example:  nodeworthy incident show i-1")
@click.argument("key")
@output_options
@client_options
def show(client: Client, key: str, output: str) -> None:
    """Show one incident: its origin, why its findings belong together, whom it touches."""
    answer = client.get(f"/v1/incidents/{segment(key)}")
    print_document(answer, output, schema="nodeworthy.incident/1", text=render)


def render(answer: Mapping[str, Any]) -> str:
    it = answer["incident"]
    findings = sorted(answer["findings"], key=urgency)
    return "\n".join(
        [
            words.paint(f"{words.mark(it['severity'])} {it['key']}: {it['title']}", it["severity"]),
            *block("since", [f"{words.clock_time(it['since'])} ({words.age(it['since'])})"]),
            *block("origin", [it["origin"] or "? cannot tell"]),
            *block("because", [it["explanation"]]),
            *block("nodes", [f"{it['nodes']} ({it['node_count']})"]),
            *block("findings", [f"{words.mark(f['severity'])} {f['component']}: {f['summary']}" for f in findings]),
        ]
    )
