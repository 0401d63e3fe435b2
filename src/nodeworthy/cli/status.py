"""`nodeworthy status`: the bad news first."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import click

from nodeworthy.cli import words
from nodeworthy.cli.client import Client, client_options
from nodeworthy.cli.output import output_options, print_document
from nodeworthy.cli.watch import repeat, watch_option

_STATES = ("serving", "suspect", "out", "failed", "unknown")
_SHOWN = 12


@click.command(epilog="Example:  nodeworthy status\n\nExit codes: 0 all is well, 3 something needs a person.")
@output_options
@watch_option
@client_options
def status(client: Client, output: str, watch: float | None) -> None:
    """Show what needs a person, first; then counts, sources and the health of the turn."""

    def once() -> int:
        answer = client.get("/v1/status")
        print_document(answer, output, schema="nodeworthy.status/1", text=render)
        return 0 if answer["well"] else 3

    sys.exit(repeat(watch, once))


def render(answer: Mapping[str, Any]) -> str:
    lines = [_head(answer)]
    needs = answer["needs"]
    if needs:
        lines.append(words.bold("NEEDS YOU"))
        lines += [_need(need) for need in needs[:_SHOWN]]
        if len(needs) > _SHOWN:
            lines.append(f"  … and {len(needs) - _SHOWN} more: nodeworthy finding list")
    else:
        lines.append("Nothing needs you." if answer["as_of"] is not None else "Nothing is known yet.")
    lines.append(words.bold("NODES"))
    lines.append(
        "  "
        + (
            _states(answer["by_state"])
            if answer["nodes"]
            else "? no fleet is declared, and no scheduler has told of one"
        )
    )
    if answer["would"]:
        lines.append(f"  would hold {words.count(answer['would'], 'thing')} now: nodeworthy would")
    if answer["unknown"]:
        lines.append(words.bold("UNKNOWN"))
        lines += [f"  ? {_unknown(item)}" for item in answer["unknown"][:_SHOWN]]
    lines.append(words.bold("SEEN THROUGH"))
    lines += [f"  {words.sources_line([source])}" for source in answer["sources"]] or [
        "  ? no source has been read yet"
    ]
    lines.append("  " + _turn(answer["turn"]))
    return "\n".join(lines)


def _head(answer: Mapping[str, Any]) -> str:
    gpus = "? GPUs" if answer["gpus"] is None else words.count(answer["gpus"], "GPU")
    nodes = "? nodes" if answer["nodes"] is None else words.count(answer["nodes"], "node")
    as_of = "before the first turn" if answer["as_of"] is None else f"as of {words.ago(answer['as_of'])}"
    mode = " · observe (writes nothing outside)" if answer["mode"] == "observe" else f" · {answer['mode']}"
    return f"{answer['fleet'] or 'undeclared fleet'} · {as_of} · {nodes} / {gpus}{mode}"


def _need(need: Mapping[str, Any]) -> str:
    glyph = words.GLYPHS.get(need["severity"], "·")
    since = "" if need["since"] is None else f" ({words.age(need['since'])})"
    subject, summary = need["subject"], need["summary"].removeprefix(f"{need['subject']}: ")
    line = f"  {glyph} {need['what']} {subject}: {summary}{since}"
    return words.paint(line, need["severity"]) + f"\n      {need['command']}"


def _states(counts: Mapping[str, int]) -> str:
    return " · ".join(
        words.paint(f"{words.GLYPHS[state]} {state} {counts.get(state, 0):,}", state)
        for state in _STATES
        if counts.get(state) or state == "serving"
    )


def _unknown(item: Mapping[str, Any]) -> str:
    since = "" if item["since"] is None else f" for {words.age(item['since'])}"
    detail = f" ({item['detail']})" if item["detail"] else ""
    return f"{item['what']}: {item['reason']}{since}{detail}"


def _turn(turn: Mapping[str, Any]) -> str:
    if turn["last_at"] is None:
        return "no turn has been made yet"
    took = words.UNKNOWN if turn["took_s"] is None else f"{turn['took_s'] * 1000:,.0f} ms"
    line = f"turn {turn['number']:,} {words.ago(turn['last_at'])}, took {took} (every {turn['interval_s']:g} s)"
    stalled = [loop["name"] for loop in turn["loops"] if loop["stalled"]]
    return line + (words.paint(f" · ✗ stalled: {', '.join(stalled)}", "fail") if stalled else "")
