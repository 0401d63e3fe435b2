"""`nodeworthy fleet import` and `fleet diff`: the fleet file made from what exists, and kept up to date with it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from nodeworthy.cli.output import Column, output_options, print_document, print_rows
from nodeworthy.cli.printable import printable, say
from nodeworthy.commands.fleet import NOT_WELL, fleet_option

if TYPE_CHECKING:
    from nodeworthy.decide.fleet_import import Listed
    from nodeworthy.model.fleet import Fleet

Command = TypeVar("Command", bound=Callable[..., Any])
REFUSED = 5


@click.group("import")
def import_group() -> None:
    """Write a fleet file from what exists. An existing file is never replaced without --force."""


def slurm_options(command: Command) -> Command:
    """Which Slurm."""
    for option in (
        click.option(
            "--bin-dir", type=click.Path(path_type=Path), help="Where scontrol and squeue are; default: on PATH."
        ),
        click.option("--conf", type=click.Path(path_type=Path), help="A slurm.conf other than Slurm's own choice."),
    ):
        command = option(command)
    return command


def import_options(command: Command) -> Command:
    """Where an import goes."""
    for option in (
        click.option("--force", is_flag=True, help="Replace an existing file (the old one is kept as FILE.bak)."),
        click.option(
            "--to",
            "target",
            default="fleet.toml",
            show_default=True,
            metavar="FILE",
            help="Where to write; - for standard output.",
        ),
        click.option("--name", metavar="NAME", help="The fleet's name. Default: the cluster's or the file's."),
    ):
        command = option(command)
    return command


@import_group.command("csv", epilog="Example:  nodeworthy fleet import csv inventory.csv --to fleet.toml")
@click.argument("file", metavar="FILE")
@import_options
@output_options
@click.pass_context
def import_csv(ctx: click.Context, file: str, name: str | None, target: str, force: bool, output: str) -> None:
    """Import nodes from a CSV file with a header row: name, class or gpus, serial, rack, leaf, bmc …"""
    from nodeworthy.decide.fleet_import import fleet_from
    from nodeworthy.wiring.fleet_files import read_csv

    listed, notes = read_csv(file)
    _write_import(ctx, fleet_from(name or Path(file).stem, listed), notes, target, force, output)


@import_group.command("slurm", epilog="Example:  nodeworthy fleet import slurm --to fleet.toml")
@slurm_options
@import_options
@output_options
@click.pass_context
def import_slurm(
    ctx: click.Context,
    conf: Path | None,
    bin_dir: Path | None,
    name: str | None,
    target: str,
    force: bool,
    output: str,
) -> None:
    """Import the nodes that Slurm knows: classes from GRES, processors and memory; leaves and blocks from its topology.

    Read-only: it needs no more rights than `scontrol show nodes`.
    """
    from dataclasses import replace

    from nodeworthy.decide.fleet_import import from_scheduler
    from nodeworthy.wiring.slurm_once import read_slurm

    made = from_scheduler(read_slurm(conf, bin_dir))
    fleet = replace(made.fleet, name=name) if name else made.fleet
    _write_import(ctx, fleet, made.notes, target, force, output)


def _write_import(ctx: click.Context, made: Fleet, notes: Iterable[str], target: str, force: bool, output: str) -> None:
    """Write an imported fleet, unless a different file is there already: then show what would change."""
    from nodeworthy.wiring.fleet_files import fleet_text, read_text, write_file

    for note in notes:
        say(f"note: {printable(note)}", err=True)
    text = fleet_text(made)
    if target == "-":
        say(text, nl=False)
        return
    path = Path(target)
    if path.exists() and not force:
        old = read_text(path)
        if old != text:
            _print_text_diff(old, text, target)
            say(
                f"refused: {target} exists and differs (above). Nothing was written.\n"
                "  try: nodeworthy fleet diff … --write keeps what people wrote; --force replaces; --to FILE writes beside",
                err=True,
            )
            ctx.exit(REFUSED)
    backup = write_file(path, text)
    counts = {name: sum(n.node_class == name for n in made.nodes.values()) for name in made.classes}
    document = {
        "file": str(path),
        "backup": str(backup) if backup else None,
        "nodes": len(made.nodes),
        "classes": counts,
        "revision": made.revision,
    }
    classes = ", ".join(f"{count:,} × {c}" for c, count in counts.items())
    kept = f" (the old file is {backup})" if backup else ""
    print_document(
        document,
        output,
        schema="nodeworthy.fleet-import/1",
        text=lambda _: f"Wrote {path}: {len(made.nodes):,} nodes: {classes}{kept}",
    )


def _print_text_diff(old: str, new: str, name: str) -> None:
    import difflib

    lines = difflib.unified_diff(old.splitlines(), new.splitlines(), name, "imported", lineterm="", n=1)
    for line in lines:
        say(printable(line), err=True)


@click.group("diff")
def diff_group() -> None:
    """Compare the fleet file with what exists now. Exit code 3 if they differ."""


def diff_options(command: Command) -> Command:
    """What to do with the differences."""
    for option in (
        click.option("--prune", is_flag=True, help="With --write: drop nodes that are gone."),
        click.option("--write", is_flag=True, help="Take the differences over; comments and your own fields stay."),
    ):
        command = option(command)
    return output_options(fleet_option(command))


@diff_group.command("csv", epilog="Example:  nodeworthy fleet diff csv inventory.csv --write")
@click.argument("file", metavar="FILE")
@diff_options
@click.pass_context
def diff_csv(ctx: click.Context, file: str, fleet_file: str | None, write: bool, prune: bool, output: str) -> None:
    """Compare the fleet file with a CSV file."""
    from nodeworthy.wiring.fleet_files import read_csv

    listed, notes = read_csv(file)
    _diff(ctx, listed, "", notes, fleet_file, write, prune, output)


@diff_group.command("slurm", epilog="Example:  nodeworthy fleet diff slurm")
@slurm_options
@diff_options
@click.pass_context
def diff_slurm(
    ctx: click.Context,
    conf: Path | None,
    bin_dir: Path | None,
    fleet_file: str | None,
    write: bool,
    prune: bool,
    output: str,
) -> None:
    """Compare the fleet file with what Slurm knows now."""
    from nodeworthy.decide.fleet_import import list_scheduler
    from nodeworthy.wiring.slurm_once import read_slurm

    snapshot = read_slurm(conf, bin_dir)
    listed, notes = list_scheduler(snapshot)
    _diff(ctx, listed, snapshot.cluster, notes, fleet_file, write, prune, output)


def _diff(
    ctx: click.Context,
    listed: list[Listed],
    cluster: str,
    notes: Iterable[str],
    fleet_file: str | None,
    write: bool,
    prune: bool,
    output: str,
) -> None:
    """Print the differences, gathered: nodes that changed alike are one row."""
    from nodeworthy.decide.fleet_diff import compare, merge
    from nodeworthy.model.nodeset import fold
    from nodeworthy.wiring.fleet_files import find_fleet, fleet_text, parse_fleet, read_text, write_file

    for note in notes:
        say(f"note: {printable(note)}", err=True)
    path = find_fleet(fleet_file)
    old = read_text(path)
    declared = parse_fleet(old, str(path))
    changes = compare(declared, listed, cluster)
    alike: dict[tuple[str, str, str], list[str]] = {}
    for change in changes:
        alike.setdefault((change.kind, change.was, change.now), []).append(change.node)
    rows: list[Mapping[str, Any]] = [
        {"change": kind, "nodes": fold(names), "count": len(names), "was": was, "now": now}
        for (kind, was, now), names in alike.items()
    ]
    columns = [Column("change"), Column("count"), Column("was"), Column("now"), Column("nodes")]
    print_rows(
        rows, columns, output, schema="nodeworthy.fleet-diff/1", name_key="nodes", empty=f"{path}: no difference."
    )
    if not changes:
        return
    if not write:
        ctx.exit(NOT_WELL)
    text = fleet_text(merge(declared, listed, cluster, prune), old)
    backup = write_file(path, text)
    say(f"Wrote {path} (the old file is {backup})", err=True)
