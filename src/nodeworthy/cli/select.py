"""Which nodes: node sets as arguments and `-l key=value`, the same on every list; and their completion."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem

from nodeworthy.cli.printable import printable, say
from nodeworthy.errors import NodeworthyError

Command = TypeVar("Command", bound=Callable[..., Any])


def complete_nodes(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Node names of the running instance, asked for at most a second; none where it is not there."""
    from nodeworthy.cli.client import Client
    from nodeworthy.cli.places import find_socket

    try:
        answer = Client(find_socket(), timeout_s=1.0).pages("/v1/nodes")
    except NodeworthyError:
        return []
    return [CompletionItem(item["name"]) for item in answer["items"] if item["name"].startswith(incomplete)]


def nodes_argument(command: Command) -> Command:
    """Adds `[NODES]...`: node sets; the callback gets `nodes` (a tuple, empty for all)."""
    return click.argument("nodes", nargs=-1, shell_complete=complete_nodes)(command)


def label_option(command: Command) -> Command:
    """Adds `-l/--label KEY=VALUE` (repeatable, all must match); the callback gets `label`."""
    return click.option(
        "-l",
        "--label",
        multiple=True,
        metavar="KEY=VALUE",
        help="Only nodes with this label, domain (rack=r12) or class; repeat for more, all must match.",
    )(command)


def selection(nodes: tuple[str, ...], label: tuple[str, ...]) -> dict[str, object]:
    """The API's parameters for what was asked for."""
    return {"nodes": ",".join(nodes) if nodes else None, "label": list(label) or None}


def say_not_known(answer: Mapping[str, Any]) -> int:
    """Name on stderr what nobody declared; 1 if there was such a name, else 0."""
    missing = answer.get("not_known") or []
    if not missing:
        return 0
    from nodeworthy.model.nodeset import fold

    say(f"not known: {printable(fold(missing))} (`nodeworthy node list -o nodeset` prints what is)", err=True)
    return 1
