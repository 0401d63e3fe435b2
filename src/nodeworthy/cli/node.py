"""`nodeworthy node list | show | explain | history`."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import click

from nodeworthy.cli import words
from nodeworthy.cli.client import Client, client_options, segment
from nodeworthy.cli.output import Column, output_options, print_document, print_rows
from nodeworthy.cli.page import answer_extra
from nodeworthy.cli.select import complete_nodes, label_option, nodes_argument, say_not_known, selection
from nodeworthy.cli.since import SINCE
from nodeworthy.cli.watch import repeat, watch_option
from nodeworthy.model.order import natural

# what is not well comes first
_URGENCY = {"failed": 0, "suspect": 1, "unknown": 2, "out": 3, "serving": 4}
STATES = tuple(_URGENCY)


def _gpus(row: Mapping[str, Any]) -> str:
    seen, declared = (words.UNKNOWN if row[k] is None else str(row[k]) for k in ("gpus_seen", "gpus"))
    return f"{seen}/{declared}"


def _pairs(value: Mapping[str, str]) -> str:
    return ",".join(f"{k}={v}" for k, v in sorted(value.items())) or "-"


COLUMNS = (
    Column("name", "NODE"),
    Column("state", text=words.mark),
    Column("since", text=words.age),
    Column("seen_of_declared", "GPUS"),
    Column("owner_text", "OWNER"),
    Column("scheduler_state", "SCHEDULER", wide=True),
    Column("jobs", wide=True),
    Column("findings", wide=True),
    Column("unknown", wide=True),
    Column("node_class", "CLASS", wide=True),
    Column("domains", wide=True, text=_pairs),
    Column("labels", wide=True, text=_pairs),
    Column("last_seen", "SEEN", wide=True, text=words.age),
    Column("reason"),
    Column("next"),
)


@click.group()
def node() -> None:
    """Nodes: state, owner, reason, history."""


@node.command(
    "list",
    epilog="Example:  nodeworthy node list 'n[1-16]' -l rack=r12 --state suspect -o nodeset\n\n"
    "Exit codes: 0 listed, 1 a name is not known.",
)
@nodes_argument
@label_option
@click.option("--state", multiple=True, type=click.Choice(STATES), help="Only nodes in this state; repeat for more.")
@output_options
@watch_option
@client_options
def list_(
    client: Client,
    nodes: tuple[str, ...],
    label: tuple[str, ...],
    state: tuple[str, ...],
    output: str,
    watch: float | None,
) -> None:
    """List nodes, what is not well first. NODES are node sets (n1,n[3-5]); none means all."""

    def once() -> int:
        answer = client.pages("/v1/nodes", {**selection(nodes, label), "state": list(state) or None})
        rows = sorted(answer["items"], key=lambda n: (_URGENCY[n["state"]], natural(n["name"])))
        people = output in ("table", "wide")
        shown = [{**r, "seen_of_declared": _gpus(r), "owner_text": _owner(r)} for r in rows] if people else rows
        print_rows(
            shown, COLUMNS if people else _DATA, output, schema="nodeworthy.node-list/1", extra=answer_extra(answer)
        )
        return say_not_known(answer)

    sys.exit(repeat(watch, once))


_DATA = (
    *(c for c in COLUMNS if c.key not in ("seen_of_declared", "owner_text")),
    Column("gpus_seen"),
    Column("gpus"),
    Column("owner"),
)


def _owner(row: Mapping[str, Any]) -> str:
    return "-" if row["owner"] is None else words.owner(row["owner"])


@node.command(
    "show",
    epilog="Example:  nodeworthy node show n2\n\nExit codes: 0 the node is well, 3 it is not, 1 it is not known.",
)
@click.argument("name", shell_complete=complete_nodes)
@output_options
@watch_option
@client_options
def show(client: Client, name: str, output: str, watch: float | None) -> None:
    """Show everything known of one node."""
    from nodeworthy.cli import explain

    def once() -> int:
        answer = client.get(f"/v1/nodes/{segment(name)}")
        print_document(answer, output, schema="nodeworthy.node/1", text=explain.show)
        return 0 if answer["well"] else 3

    sys.exit(repeat(watch, once))


@node.command("explain", epilog="Example:  nodeworthy node explain n2")
@click.argument("name", shell_complete=complete_nodes)
@output_options
@watch_option
@client_options
def explain_(client: Client, name: str, output: str, watch: float | None) -> None:
    """Explain one node: because, evidence, what it is not, what it waits for, what clears it, next."""
    from nodeworthy.cli import explain

    def once() -> int:
        answer = client.get(f"/v1/nodes/{segment(name)}/explain")
        print_document(answer, output, schema="nodeworthy.node-explanation/1", text=explain.explain)
        return 0

    sys.exit(repeat(watch, once))


HISTORY = (
    Column("at", "WHEN", text=words.clock_time),
    Column("kind"),
    Column("actor", "BY"),
    Column("summary"),
    Column("cause", wide=True),
    Column("sequence", wide=True),
)


@node.command("history", epilog="Example:  nodeworthy node history n2 --since 7d")
@click.argument("name", shell_complete=complete_nodes)
@click.option("--since", type=SINCE, help="Only the last 90m, 12h, 7d, or since 2026-11-30[T12:00].")
@click.option(
    "--limit", type=click.IntRange(1, 1000), default=100, show_default=True, help="At most so many, the newest."
)
@output_options
@watch_option
@client_options
def history(client: Client, name: str, since: float | None, limit: int, output: str, watch: float | None) -> None:
    """Show what happened to one node, oldest first."""

    def once() -> int:
        answer = client.get(f"/v1/nodes/{segment(name)}/history", {"since": since, "limit": limit})
        print_rows(
            answer["items"],
            HISTORY,
            output,
            schema="nodeworthy.node-history/1",
            name_key="kind",
            empty=f"Nothing is recorded about {name} in that time.",
            extra=answer_extra(answer),
        )
        return 0

    sys.exit(repeat(watch, once))
