"""`nodeworthy completion`: the completion script of a shell."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from nodeworthy.errors import BadRequest


@click.command(epilog='Example:  eval "$(nodeworthy completion bash)"')
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the completion script of SHELL. Put it in your shell's start-up file."""
    kind = get_completion_class(shell)
    if kind is None:
        raise BadRequest(f"no completion for {shell!r}", hint="choose bash, zsh or fish")
    click.echo(kind(ctx.find_root().command, {}, "nodeworthy", "_NODEWORTHY_COMPLETE").source())
