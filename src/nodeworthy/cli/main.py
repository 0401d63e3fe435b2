"""The command line: `nodeworthy NOUN VERB`.

Start-up time is a feature: this module imports Click and the error tree and nothing else. Every command
lives in its own module and is loaded by name when it is called; `COMMANDS` is the whole table.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Mapping
from typing import NamedTuple, NoReturn

import click

from nodeworthy import __version__
from nodeworthy.cli.printable import say
from nodeworthy.errors import NodeworthyError


class Lazy(NamedTuple):
    """Where a command lives (`module:attribute`) and its line in `--help`."""

    target: str
    short_help: str


# noun (or lone command) → where it lives. Groups list their verbs in the same way.
COMMANDS: Mapping[str, Lazy] = {
    "audit": Lazy("nodeworthy.commands.audit:audit", "What a fleet lost, to what, and who is out and why."),
    "catalogue": Lazy("nodeworthy.commands.catalogue:catalogue", "The signals and checks, with their sources."),
    "completion": Lazy("nodeworthy.cli.completion:completion", "Print the completion script of a shell."),
    "config": Lazy("nodeworthy.commands.config:config", "Check and explain the configuration."),
    "doctor": Lazy("nodeworthy.commands.doctor:doctor", "Check that Nodeworthy itself can see and work."),
    "finding": Lazy("nodeworthy.cli.finding:finding", "What the checks say."),
    "fleet": Lazy("nodeworthy.commands.fleet:fleet", "The declared fleet: import, check, compare."),
    "incident": Lazy("nodeworthy.cli.incident:incident", "Findings that share an origin."),
    "ledger": Lazy("nodeworthy.cli.ledger:ledger", "What happened, in order, with causes."),
    "log": Lazy("nodeworthy.commands.log:log", "Turn kernel and system log lines into events."),
    "node": Lazy("nodeworthy.cli.node:node", "Nodes: state, owner, reason, history."),
    "serve": Lazy("nodeworthy.commands.serve:serve", "Run the control plane (observe mode: writes nothing outside)."),
    "status": Lazy("nodeworthy.cli.status:status", "What needs a person, first."),
    "store": Lazy("nodeworthy.commands.store:store", "Back up, restore and prune the record."),
    "would": Lazy("nodeworthy.cli.would:would", "What it would have done, since when and why."),
}


class LazyGroup(click.Group):
    """A Click group whose commands are imported when they are called.

    >>> LazyGroup(lazy={"x": Lazy("some.module:command", "Does x.")}).list_commands(None)
    ['x']
    """

    def __init__(self, *args: object, lazy: Mapping[str, Lazy] | None = None, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)  # type: ignore[arg-type]
        self.lazy = dict(lazy or {})

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted({*self.commands, *self.lazy})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        entry = self.lazy.get(cmd_name)
        if entry is None:
            return super().get_command(ctx, cmd_name)
        module, _, attribute = entry.target.partition(":")
        command = getattr(importlib.import_module(module), attribute)
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        rows = []
        for name in self.list_commands(ctx):
            entry = self.lazy.get(name)
            rows.append((name, entry.short_help if entry else self.commands[name].get_short_help_str(limit=90)))
        with formatter.section("Commands"):
            formatter.write_dl(rows)


@click.group(
    cls=LazyGroup,
    lazy=COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    epilog="Exit codes: 0 fine, 1 failed, 2 usage, 3 checked and not well, 4 not allowed, 5 refused by a guard, "
    "6 partly done, 7 still running.",
)
@click.version_option(__version__, "-V", "--version", prog_name="nodeworthy")
def cli() -> None:
    """Nodeworthy: which GPU nodes are fit for work, why not, and what to do.

    \b
    Try:
      nodeworthy audit slurm --since 90d      no set-up needed, read-only
      nodeworthy log classify /var/log/kern.log
      nodeworthy status                       of a running `nodeworthy serve`
    """


def fail(error: NodeworthyError) -> NoReturn:
    """Print the whole chain of an error once, with its code and hint, and end with its exit code."""
    outermost, *causes = error.chain()
    say(f"error {error.code}: {_further(outermost)}", err=True)
    for cause in causes:
        say(f"  because: {_further(cause)}", err=True)
    if error.hint:
        say(f"  try: {_further(error.hint)}", err=True)
    sys.exit(error.exit_code)


def _further(sentence: str) -> str:
    """Errors quote what others wrote: what comes after its first line is set in, and passes for no error of its own."""
    return sentence.replace("\n", "\n    ")


def main() -> None:
    """Entry point of the `nodeworthy` command."""
    try:
        cli.main(prog_name="nodeworthy")
    except NodeworthyError as error:
        fail(error)
    except BrokenPipeError:
        # the reader (head, less) went away; that is its right
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)


if __name__ == "__main__":
    main()
