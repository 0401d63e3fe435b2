"""`nodeworthy finding list | show`."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import click

from nodeworthy.cli import words
from nodeworthy.cli.client import Client, client_options, segment
from nodeworthy.cli.output import Column, output_options, print_document, print_rows
from nodeworthy.cli.page import answer_extra, block
from nodeworthy.cli.select import label_option, nodes_argument, say_not_known, selection
from nodeworthy.cli.watch import repeat, watch_option
from nodeworthy.model.order import natural

_SEVERITY = {"fatal": 0, "error": 1, "warning": 2, "info": 3}
_VERDICT = {"true": 0, "unknown": 1, "false": 2}


def urgency(finding: Mapping[str, Any]) -> tuple[Any, ...]:
    """Sort key: true before unknown, the severest first, then by component."""
    return _VERDICT[finding["verdict"]], _SEVERITY[finding["severity"]], natural(finding["component"]), finding["check"]


COLUMNS = (
    Column("severity", text=words.mark),
    Column("component"),
    Column("check"),
    Column("verdict", text=lambda v: "? unknown" if v == "unknown" else str(v)),
    Column("since", text=words.age),
    Column("trust"),
    Column("confidence", wide=True),
    Column("incident", wide=True, text=str),
    Column("rule_version", "VERSION", wide=True),
    Column("key", wide=True),
    Column("summary"),
)


@click.group()
def finding() -> None:
    """Findings: what the checks say, with their evidence."""


@finding.command(
    "list",
    epilog="Example:  nodeworthy finding list -l rack=r12 --verdict unknown -o wide\n\n"
    "Exit codes: 0 listed, 1 a name is not known.",
)
@nodes_argument
@label_option
@click.option(
    "--verdict",
    multiple=True,
    type=click.Choice(list(_VERDICT)),
    help="Only these answers (default: true and unknown).",
)
@output_options
@watch_option
@client_options
def list_(
    client: Client,
    nodes: tuple[str, ...],
    label: tuple[str, ...],
    verdict: tuple[str, ...],
    output: str,
    watch: float | None,
) -> None:
    """List findings, the worst first. NODES are node sets (n1,n[3-5]); none means all."""

    def once() -> int:
        answer = client.pages("/v1/findings", {**selection(nodes, label), "verdict": list(verdict) or None})
        print_rows(
            sorted(answer["items"], key=urgency),
            COLUMNS,
            output,
            schema="nodeworthy.finding-list/1",
            name_key="key",
            empty="No findings.",
            extra=answer_extra(answer),
        )
        return say_not_known(answer)

    sys.exit(repeat(watch, once))


@finding.command("show", epilog="Example:  nodeworthy finding show xid-79@n2/gpu5")
@click.argument("key")
@output_options
@client_options
def show(client: Client, key: str, output: str) -> None:
    """Show one finding: its evidence, what its check means, what it rests on. KEY is check@component."""
    answer = client.get(f"/v1/findings/{segment(key)}")
    print_document(answer, output, schema="nodeworthy.finding/1", text=render)


def render(answer: Mapping[str, Any]) -> str:
    found = answer["finding"]
    word = "unknown" if found["verdict"] == "unknown" else found["severity"]
    why = f" ({found['unknown']})" if found["unknown"] else ""
    head = f"{words.mark(word)} {found['component']}: {found['summary']}{why}"
    version = f", version {found['rule_version']}" if found["rule_version"] else ""
    lines = [
        words.paint(head, word),
        *block("since", [f"{words.clock_time(found['since'])} ({words.age(found['since'])})"]),
        *block("check", [f"{found['check']}{version}: {found['title']}"]),
        *block("trust", [f"{found['trust']}; confidence {found['confidence']:.2f}"]),
        *block("evidence", evidence(found["evidence"])),
        *block("means", [answer["check_help"]]),
        *block("source", [answer["check_source"]]),
        *block("action", [found["action"]]),
        *block("proof", [found["proof"]]),
        *block("clears", [found["clears"]]),
        *block("incident", [found["incident"] or ""]),
        *block("node", [f"nodeworthy node explain {found['node']}"] if found["node"] else []),
    ]
    return "\n".join(lines)


def evidence(items: list[Mapping[str, Any]]) -> list[str]:
    return [f"{e['what']}: {e['value']} ({e['source']}, {words.ago(e['seen'])})" for e in items]
