"""`nodeworthy would`: what observe mode would have done, held against what people did."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import click

from nodeworthy.cli import words
from nodeworthy.cli.client import Client, client_options
from nodeworthy.cli.finding import evidence
from nodeworthy.cli.output import Column, output_options, print_rows
from nodeworthy.cli.page import answer_extra, block
from nodeworthy.cli.printable import cleaned, say
from nodeworthy.cli.select import label_option, nodes_argument, say_not_known, selection
from nodeworthy.cli.since import SINCE
from nodeworthy.cli.watch import repeat, watch_option
from nodeworthy.model.order import natural

COLUMNS = (
    Column("verb"),
    Column("component"),
    Column("effect"),
    Column("trust", wide=True),
    Column("state"),
    Column("since", text=words.age),
    Column("ended", wide=True, text=words.age),
    Column("waiting_for", wide=True),
    Column("lead_s", "LEAD", wide=True, text=words.span),
    Column("because", wide=True),
    Column("key", wide=True),
    Column("agreement", "PEOPLE"),
    Column("reason"),
)
_STATE_ORDER = {"would": 0, "wanted": 0, "enforced": 0, "lifting": 1, "lifted": 2}


@click.command(epilog="Example:  nodeworthy would --since 7d\n\nExit codes: 0 shown, 1 a name is not known.")
@nodes_argument
@label_option
@click.option("--since", type=SINCE, help="Also what was and has ended: the last 12h, 7d, or since 2026-11-30[T12:00].")
@click.option("--brief", is_flag=True, help="A line for each, without evidence.")
@output_options
@watch_option
@client_options
def would(
    client: Client,
    nodes: tuple[str, ...],
    label: tuple[str, ...],
    since: float | None,
    brief: bool,
    output: str,
    watch: float | None,
) -> None:
    """Show what it would have held, drained or waited with, since when and why, against what people did.

    Nothing of this is written anywhere outside. NODES are node sets (n1,n[3-5]); none means all.
    """

    def once() -> int:
        answer = client.pages("/v1/would", {**selection(nodes, label), "since": since})
        items = sorted(answer["items"], key=lambda w: (_STATE_ORDER[w["state"]], natural(w["component"]), w["since"]))
        if output == "table" and not brief:
            say(render(cleaned(items)))
        else:
            print_rows(
                items,
                COLUMNS,
                output,
                schema="nodeworthy.would/1",
                name_key="key",
                empty=_NOTHING,
                extra=answer_extra(answer),
            )
        if output in ("table", "wide") and items:
            say(agreement(answer["agreement"]), err=True)
        return say_not_known(answer)

    sys.exit(repeat(watch, once))


_NOTHING = "It would do nothing."
_UNPROVEN = {"shadow": " (a check in shadow: not yet trusted to act)"}


def render(items: list[Mapping[str, Any]]) -> str:
    """Each with its evidence, what clears it and what people did."""
    return "\n".join("\n".join(_item(item)) for item in items) or _NOTHING


def _item(item: Mapping[str, Any]) -> list[str]:
    ended = "" if item["ended"] is None else f", ended {words.ago(item['ended'])}"
    tense = "would have" if item["ended"] is not None else "would"
    since = f"since {words.clock_time(item['since'])} ({words.age(item['since'])}){ended}"
    verb = {"hold": "hold", "drain": "drain", "wait": "wait with"}.get(item["verb"], item["verb"])
    return [
        words.bold(f"{tense} {verb} {item['component']} ({item['effect']}) {since}"),
        *block("because", [item["reason"] + _UNPROVEN.get(item["trust"], "")]),
        *block("evidence", evidence(item["evidence"])),
        *block("waiting", [item["waiting_for"]]),
        *block("clears", [item["clears"]]),
        *block("people", [_people(item)]),
        *block("more", [f"nodeworthy node explain {item['node']}"]),
    ]


def _people(item: Mapping[str, Any]) -> str:
    act = item["people"]
    if act is None:
        return f"{item['agreement']}"
    lead = ""
    if item["lead_s"] is not None:
        lead = f", {words.span(item['lead_s'])} {'after' if item['lead_s'] >= 0 else 'before'} we would have"
    text = f' ("{act["text"]}")' if act["text"] else ""
    who = act["who"] or "somebody"
    did = {"took out": "took it out", "put back": "put it back"}.get(act["what"], act["what"])
    return f"{item['agreement']}: {who} {did} {words.ago(act['at'])}{lead}{text}"


def agreement(counts: Mapping[str, int]) -> str:
    """`people did not: 1 · people did too, after us: 1`."""
    parts = [f"{what}: {number}" for what, number in counts.items() if number]
    return "Against what people did: " + (" · ".join(parts) if parts else "nothing to compare yet")
