"""One way to print rows: `-o table|wide|json|jsonl|yaml|csv|name|nodeset`.

A command declares its columns once and yields dictionaries. Null is printed as `?` in tables (unknown is
drawn as unknown, never as 0) and as null elsewhere. Data go to stdout, talk goes to stderr.
"""

from __future__ import annotations

import csv
import json
import shutil
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import click

from nodeworthy.cli.printable import cleaned, printable, say
from nodeworthy.errors import BadRequest

FORMATS = ("table", "wide", "json", "jsonl", "yaml", "csv", "name", "nodeset")
Command = TypeVar("Command", bound=Callable[..., Any])


@dataclass(frozen=True)
class Column:
    """A column of a table. `wide`: shown only with `-o wide`. `text` turns a value into what people read."""

    key: str
    title: str = ""
    wide: bool = False
    text: Callable[[Any], str] | None = None

    @property
    def heading(self) -> str:
        return self.title or self.key.replace("_", " ").upper()

    def show(self, row: Mapping[str, Any]) -> str:
        value = row.get(self.key)
        if value is None:
            return "?"
        if self.text is not None:
            return self.text(value)
        if isinstance(value, (list, tuple, set, frozenset)):
            return ",".join(str(v) for v in value) or "-"
        return str(value) if value != "" else "-"


def output_options(command: Command) -> Command:
    """Adds `-o/--output` and `--json` (= `-o json`) to a command; the callback gets `output`."""

    def use_json(ctx: click.Context, _param: click.Parameter, value: bool) -> None:
        if value:
            ctx.params["output"] = "json"

    def keep_json(ctx: click.Context, _param: click.Parameter, value: str) -> str:
        return str(ctx.params.get("output") or value)

    command = click.option(
        "--json", is_flag=True, expose_value=False, is_eager=True, callback=use_json, help="Same as -o json."
    )(command)
    return click.option(
        "-o",
        "--output",
        type=click.Choice(FORMATS),
        default="table",
        show_default=True,
        callback=keep_json,
        help="How to print.",
    )(command)


def print_rows(
    rows: Iterable[Mapping[str, Any]],
    columns: Sequence[Column],
    output: str,
    *,
    schema: str,
    name_key: str = "name",
    empty: str = "Nothing to show.",
    extra: Mapping[str, Any] | None = None,
) -> None:
    """Print rows in the chosen format. `schema` names the JSON document (`nodeworthy.node-list/1`)."""
    items = [dict(row) for row in rows]
    if output == "json":
        _write(json.dumps({"schema": schema, **(extra or {}), "items": items}, indent=2, default=str))
    elif output == "jsonl":
        for item in items:
            _write(json.dumps(item, default=str))
    elif output == "yaml":
        document = json.loads(json.dumps({"schema": schema, **(extra or {}), "items": items}, default=str))
        _write(_yaml(document))
    elif output == "csv":
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow([c.key for c in columns])
        for item in items:
            writer.writerow([_csv_cell(item.get(c.key)) for c in columns])
    elif output == "name":
        for item in items:
            _write(printable(str(item.get(name_key, ""))))
    elif output == "nodeset":
        _print_nodeset(items)
    elif not items:
        say(empty, err=True)
    else:
        _print_table(items, [c for c in columns if output == "wide" or not c.wide], output == "wide")


def print_document(document: Mapping[str, Any], output: str, *, schema: str, text: Callable[[Any], str]) -> None:
    """Print one object: for people `text` of it (its texts made printable), the object itself for machines."""
    if output in ("json", "jsonl"):
        _write(json.dumps({"schema": schema, **document}, indent=2 if output == "json" else None, default=str))
    elif output == "yaml":
        _write(_yaml(json.loads(json.dumps({"schema": schema, **document}, default=str))))
    elif output in ("table", "wide"):
        _write(text(cleaned(document)).rstrip("\n"))
    else:
        raise BadRequest(f"-o {output} makes no sense for a single object", hint="use -o table, json or yaml")


def _print_nodeset(items: list[dict[str, Any]]) -> None:
    from nodeworthy.model.nodeset import fold

    names = [str(item["node"] if "node" in item else item.get("name", "")) for item in items]
    _write(printable(fold(n for n in names if n)))


def _print_table(items: list[dict[str, Any]], columns: Sequence[Column], wide: bool) -> None:
    """Plain aligned columns. The last column may be long; it is cut to the terminal unless wide."""
    lines = [[c.heading for c in columns], *([cell(c, i) for c in columns] for i in items)]
    widths = [max(len(line[k]) for line in lines) for k in range(len(columns))]
    room = None if wide or not sys.stdout.isatty() else shutil.get_terminal_size().columns
    for line in lines:
        text = "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        _write(text if room is None or len(text) <= room else text[: room - 1] + "…")


def cell(column: Column, row: Mapping[str, Any]) -> str:
    """What stands in a table: one line, whatever the value holds."""
    return printable(" ".join(column.show(row).split()))


_FORMULA = ("=", "+", "-", "@")


def _csv_cell(value: Any) -> Any:
    """A cell for a spreadsheet: numbers as they are, lists and pairs flat, text that it would take for a formula
    behind an apostrophe (https://owasp.org/www-community/attacks/CSV_Injection)."""
    if value is None or isinstance(value, (bool, int, float)):
        return value
    text = printable(_flat(value))
    return "'" + text if text.lstrip().startswith(_FORMULA) and not _is_number(text) else text


def _flat(value: Any) -> str:
    if isinstance(value, Mapping):
        return ",".join(f"{key}={_flat(item)}" for key, item in value.items())
    if isinstance(value, (list, tuple)):
        return ",".join(map(_flat, value))
    if isinstance(value, (set, frozenset)):
        return ",".join(sorted(map(_flat, value)))
    return "" if value is None else str(value)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _yaml(document: Any) -> str:
    """YAML may carry a character that turns a line around as it is: then everything beyond ASCII is escaped."""
    import yaml

    text = yaml.safe_dump(document, sort_keys=False, allow_unicode=True).rstrip()
    if all(line.isprintable() for line in text.split("\n")):
        return text
    return yaml.safe_dump(document, sort_keys=False).rstrip()


def _write(text: str) -> None:
    say(text)
