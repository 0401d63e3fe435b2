"""`nodeworthy fleet`: the declared fleet, made from what exists and kept by comparing."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from nodeworthy.cli.main import Lazy, LazyGroup
from nodeworthy.cli.output import Column, output_options, print_rows
from nodeworthy.cli.select import label_option

if TYPE_CHECKING:
    from nodeworthy.model.fleet import Fleet, Node

Command = TypeVar("Command", bound=Callable[..., Any])
NOT_WELL = 3


def fleet_option(command: Command) -> Command:
    """Adds `--fleet FILE`."""
    return click.option(
        "--fleet",
        "fleet_file",
        metavar="FILE",
        help="The fleet file. Default: $NODEWORTHY_FLEET, ./fleet.toml, /etc/nodeworthy/fleet.toml.",
    )(command)


@click.group(
    cls=LazyGroup,
    lazy={
        "import": Lazy("nodeworthy.commands.fleet_import:import_group", "Write a fleet file from what exists."),
        "diff": Lazy("nodeworthy.commands.fleet_import:diff_group", "Compare the fleet file with what exists now."),
    },
)
def fleet() -> None:
    """The declared fleet: which nodes there should be, of which class, and what they share."""


@fleet.command(epilog="Example:  nodeworthy fleet check --fleet /etc/nodeworthy/fleet.toml")
@fleet_option
@output_options
@click.pass_context
def check(ctx: click.Context, fleet_file: str | None, output: str) -> None:
    """Check the fleet file: all errors with file, line, field and remedy. Exit code 3 if there are any.

    Names that more than one node claims are errors too: they would resolve to none of them.
    """
    from nodeworthy.errors import BadFile
    from nodeworthy.model.identity import Resolver
    from nodeworthy.wiring.fleet_files import find_fleet, load_fleet

    path = find_fleet(fleet_file)
    problems: list[dict[str, Any]] = []
    summary = ""
    try:
        declared = load_fleet(path)
        summary = (
            f"{path}: {len(declared.nodes):,} nodes in {len(declared.classes)} classes, revision {declared.revision}"
        )
        problems = [
            {
                "file": str(path),
                "line": None,
                "field": doubt.subject,
                "message": doubt.summary,
                "remedy": "keep it for one",
            }
            for doubt in Resolver(declared).doubts()
        ]
    except BadFile as error:
        names = ("file", "line", "field", "message", "remedy")
        problems = [{name: getattr(p, name) for name in names} for p in error.problems]
    columns = [Column("file"), Column("line"), Column("field"), Column("message"), Column("remedy")]
    print_rows(
        problems, columns, output, schema="nodeworthy.fleet-check/1", name_key="field", empty=f"{summary}: well."
    )
    if problems:
        ctx.exit(NOT_WELL)


@fleet.command(epilog="Example:  nodeworthy fleet show -o json")
@fleet_option
@output_options
def show(fleet_file: str | None, output: str) -> None:
    """Show the classes with their nodes, and how many domains of each kind are known."""
    from nodeworthy.model.nodeset import fold
    from nodeworthy.wiring.fleet_files import find_fleet, load_fleet

    declared = load_fleet(find_fleet(fleet_file))
    kinds = sorted({kind for node in declared.nodes.values() for kind in node.domains})
    rows = []
    for node_class in declared.classes.values():
        members = [n for n in declared.nodes.values() if n.node_class == node_class.name]
        row = {"class": node_class.name, "nodes": len(members), "gpus_each": node_class.gpus}
        row |= {"gpu_type": node_class.gpu_type, "cpus": node_class.cpus, "memory_mb": node_class.memory_mb}
        row |= {kind: len({n.domains[kind] for n in members if kind in n.domains}) or None for kind in kinds}
        rows.append({**row, "nodeset": fold(n.name for n in members)})
    titles = [Column(kind, {"leaf": "LEAVES"}.get(kind, f"{kind.upper()}S")) for kind in kinds]
    columns = [Column("class"), Column("nodes"), Column("gpus_each"), Column("gpu_type"), Column("cpus")]
    columns += [Column("memory_mb"), *titles, Column("nodeset")]
    extra = {"name": declared.name, "revision": declared.revision, "nodes": len(declared.nodes)}
    print_rows(rows, columns, output, schema="nodeworthy.fleet/1", name_key="class", extra=extra, empty="No classes.")


@fleet.command(epilog="Example:  nodeworthy fleet nodes 'gpu[00001-00100]' -l rack=r007 -o nodeset")
@click.argument("selector", required=False)
@label_option
@fleet_option
@output_options
def nodes(selector: str | None, label: tuple[str, ...], fleet_file: str | None, output: str) -> None:
    """List declared nodes: all, or those of SELECTOR (a node set), with -l those with a label or domain."""
    from nodeworthy.wiring.fleet_files import find_fleet, load_fleet

    declared = load_fleet(find_fleet(fleet_file))
    chosen = select(declared, selector, label)
    kinds = sorted({kind for node in declared.nodes.values() for kind in node.domains})
    rows = [
        {
            "name": node.name,
            "class": node.node_class,
            "serial": node.serial or None,
            **{kind: node.domains.get(kind) for kind in kinds},
            "labels": dict(node.labels),
            "names": {
                "scheduler": dict(node.names.scheduler),
                "syslog": list(node.names.syslog),
                "exporter": list(node.names.exporter),
                "bmc": node.names.bmc or None,
            },
        }
        for node in chosen
    ]
    columns = [Column("name"), Column("class"), *[Column(kind) for kind in kinds], Column("serial")]
    columns.append(Column("labels", text=lambda value: ",".join(f"{k}={v}" for k, v in value.items()) or "-"))
    print_rows(rows, columns, output, schema="nodeworthy.fleet-nodes/1", empty="No node is selected.")


def select(declared: Fleet, selector: str | None, labels: Iterable[str]) -> list[Node]:
    """Nodes by node set and by key=value over labels, class and domains. A name that is not declared is an error."""
    from nodeworthy.errors import BadRequest, NotKnown
    from nodeworthy.model.nodeset import fold, unfold

    chosen = list(declared.nodes.values())
    if selector:
        wanted = unfold(selector)
        missing = [name for name in wanted if name not in declared.nodes]
        if missing:
            raise NotKnown(f"not in the fleet file: {fold(missing)}", hint="nodeworthy fleet nodes -o nodeset")
        chosen = [declared.nodes[name] for name in wanted]
    for label in labels:
        key, equals, value = label.partition("=")
        if not key or not equals:
            raise BadRequest(f"not key=value: {label!r}", hint="for example -l rack=r007")
        chosen = [n for n in chosen if {**n.domains, "class": n.node_class, **n.labels}.get(key) == value]
    return chosen


@fleet.command(epilog="Example:  nodeworthy fleet fold gpu1 gpu2 gpu3")
@click.argument("names", nargs=-1)
@output_options
def fold(names: tuple[str, ...], output: str) -> None:
    """Fold names into one node set. Without NAMES, they are read from standard input, apart by space or comma."""
    from nodeworthy.model import nodeset

    words = names or sys.stdin.read().replace(",", " ").split()
    text = nodeset.fold(words)
    print_rows(
        [{"name": text}],
        [Column("name", "NODE SET")],
        output if output != "table" else "name",
        schema="nodeworthy.nodeset/1",
    )


@fleet.command(epilog="Example:  nodeworthy fleet unfold 'gpu[00001-00004]'")
@click.argument("nodeset")
@output_options
def unfold(nodeset: str, output: str) -> None:
    """Unfold a node set into its names, one a line."""
    from nodeworthy.model import nodeset as sets

    rows = [{"name": name} for name in sets.unfold(nodeset)]
    print_rows(rows, [Column("name")], output if output != "table" else "name", schema="nodeworthy.nodeset/1")
