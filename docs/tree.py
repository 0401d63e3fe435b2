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
        command = group.get_command(context, name)
        assert command is not None, f"{name} is listed and not there"
        if isinstance(command, click.Group):
            yield from leaves(command, (*path, name))
        else:
            yield Leaf((*path, name), command)
