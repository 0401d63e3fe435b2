"""`nodeworthy serve`: the control plane in observe mode."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from nodeworthy.cli.printable import printable, say


@click.command(
    epilog="Example:  nodeworthy serve --config /etc/nodeworthy/nodeworthy.toml\n\n"
    "Exit codes: 0 stopped as asked (with --once: all is well), 1 failed, 2 the configuration is wrong, "
    "3 with --once: not well, 4 another instance serves this socket or store."
)
@click.option(
    "--config",
    "config_file",
    type=click.Path(),
    envvar="NODEWORTHY_CONFIG",
    help="Configuration file (default: /etc/nodeworthy/nodeworthy.toml if there, else the defaults).",
)
@click.option("--fleet", type=click.Path(path_type=Path), help="Fleet file, instead of the one in the configuration.")
@click.option("--once", is_flag=True, help="Read everything once, make one turn, print the status and end.")
def serve(config_file: str | None, fleet: Path | None, once: bool) -> None:
    """Run the control plane: observe, judge and say what it would do. Writes nothing outside."""
    from nodeworthy.wiring.config import load
    from nodeworthy.wiring.serve import run

    config, warnings = load(config_file)
    for warning in warnings:
        say(f"warning: {printable(str(warning))}", err=True)
    if fleet is not None:
        config = config.model_copy(update={"fleet": fleet})
    if not run(config, once=once):
        sys.exit(3)
