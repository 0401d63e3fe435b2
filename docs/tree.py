"""The tree of commands, walked: for the reference page and for the tests of the documentation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import click

from nodeworthy.cli.main import cli


@dataclass(frozen=True, slots=True)
class Leaf:
    """A command that does something (a group only holds commands)."""

    path: tuple[str, ...]
    command: click.Command


def leaves(group: click.Group = cli, path: tuple[str, ...] = ()) -> Iterator[Leaf]:
    """All commands, in the order of `--help`."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = _load(group, context, name)
        if isinstance(command, click.Group):
            yield from leaves(command, (*path, name))
        elif command is not None:
            yield Leaf((*path, name), command)


def _load(group: click.Group, context: click.Context, name: str) -> click.Command | None:
    """A command; None where its module is not in this tree (a part that is built elsewhere)."""
    try:
        return group.get_command(context, name)
    except ModuleNotFoundError as error:
        if error.name and error.name.startswith("nodeworthy.cli."):
            return None
        raise
