"""`nodeworthy config check | show | explain`."""

from __future__ import annotations

import sys
from typing import Any

import click

from nodeworthy.cli.output import Column, output_options, print_document, print_rows
from nodeworthy.cli.printable import printable, say

_FILE = click.argument("file", required=False, type=click.Path())


@click.group()
def config() -> None:
    """The configuration: check a file, show what is in force, explain every setting."""


@config.command(
    epilog="Example:  nodeworthy config check /etc/nodeworthy/nodeworthy.toml\n\n"
    "Exit codes: 0 valid, 2 wrong, 3 valid but something in it will not work here."
)
@_FILE
@output_options
def check(file: str | None, output: str) -> None:
    """Check FILE (default: NODEWORTHY_CONFIG or /etc/nodeworthy/nodeworthy.toml): every problem with its line, field
    and remedy."""
    from dataclasses import asdict

    from nodeworthy.errors import BadFile
    from nodeworthy.wiring.config import load

    level, code = "warning", 0
    try:
        _, problems = load(file)
        code = 3 if problems else 0
    except BadFile as error:
        problems, level, code = tuple(error.problems), "error", 2
    if output in ("table", "wide"):
        for problem in problems:
            say(f"{level}: {printable(str(problem))}")
        say({0: "valid", 2: "wrong; nothing was started", 3: "valid, with warnings"}[code], err=True)
    else:
        rows = [{"level": level, **asdict(problem)} for problem in problems]
        print_rows(rows, [Column(k) for k in _PROBLEM], output, schema="nodeworthy.config-check/1", name_key="field")
    sys.exit(code)


_PROBLEM = ("level", "file", "line", "field", "message", "remedy")


@config.command(epilog="Example:  nodeworthy config show -o json")
@_FILE
@output_options
def show(file: str | None, output: str) -> None:
    """Show every setting in force, defaults filled in. Secrets are files; their content is never read here."""
    from nodeworthy.wiring.config import load

    settings, _ = load(file)
    document = settings.model_dump(mode="json")
    print_document(document, output, schema="nodeworthy.config/1", text=lambda _: as_toml(document))


def as_toml(document: dict[str, Any]) -> str:
    """The settings as they would stand in a file."""
    import tomlkit

    return tomlkit.dumps(_without_none(document))


def _without_none(value: Any) -> Any:
    """TOML has no null: what is unset is left out."""
    if isinstance(value, dict):
        return {k: _without_none(v) for k, v in value.items() if v is not None}
    return [_without_none(v) for v in value] if isinstance(value, list) else value


@config.command(epilog="Example:  nodeworthy config explain slurm.interval")
@click.argument("setting", required=False, default="")
@output_options
def explain(setting: str, output: str) -> None:
    """Explain SETTING, or every setting whose name begins with it: type, default, what it is for."""
    from nodeworthy.errors import NotKnown
    from nodeworthy.wiring.reference import settings_rows

    rows = [row for row in settings_rows() if row["setting"].startswith(setting)]
    if not rows:
        raise NotKnown(f"there is no setting {setting!r}", hint="`nodeworthy config explain` lists all")
    columns = (Column("setting"), Column("type"), Column("default"), Column("description", "WHAT FOR"))
    print_rows(rows, columns, output, schema="nodeworthy.settings/1", name_key="setting")
