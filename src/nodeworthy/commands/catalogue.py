"""`nodeworthy catalogue`: what can be seen, what is judged, and from where each number comes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from nodeworthy.cli.output import Column, output_options, print_document, print_rows
from nodeworthy.errors import BadFile, NotKnown

if TYPE_CHECKING:
    from nodeworthy.model.catalogue import Catalogue, Check, Signal

WHAT = ("checks", "signals", "features", "expectations")


def layers_option(command: Callable[..., Any]) -> Callable[..., Any]:
    return click.option(
        "--layer",
        "layers",
        multiple=True,
        type=click.Path(path_type=Path),
        metavar="PATH",
        help="A site's catalogue file or directory; may be given several times, later ones win.",
    )(command)


@click.group(epilog="Example:  nodeworthy catalogue list checks --kind gpu")
def catalogue() -> None:
    """The signals and checks, with their sources."""


@catalogue.command("list", epilog="Example:  nodeworthy catalogue list checks --severity error --kind gpu")
@click.argument("what", type=click.Choice(WHAT), default="checks")
@click.option("--kind", type=click.Choice(["node", "gpu", "nic"]), help="Only of this kind of component.")
@click.option(
    "--severity", type=click.Choice(["info", "warning", "error", "fatal"]), help="Only checks of this severity."
)
@click.option("--effect", help="Only checks that ask for this hold; none: those that only inform.")
@click.option("--trust", type=click.Choice(["shadow", "propose", "act"]), help="Only checks with this trust.")
@click.option("--source", help="Only signals that this source gives (dcgm, node_exporter, …).")
@layers_option
@output_options
def list_(
    what: str,
    kind: str | None,
    severity: str | None,
    effect: str | None,
    trust: str | None,
    source: str | None,
    layers: tuple[Path, ...],
    output: str,
) -> None:
    """List checks, signals, features or expectations."""
    loaded = _load(layers)
    wanted = {"kind": kind, "severity": severity, "effect": "" if effect == "none" else effect, "trust": trust}
    rows = [row for row in _rows(loaded, what) if all(v is None or row.get(k) == v for k, v in wanted.items())]
    if source is not None:
        rows = [row for row in rows if any(str(f).startswith(f"{source}:") for f in row.get("fields", ()))]
    print_rows(
        rows,
        _COLUMNS[what],
        output,
        schema=f"nodeworthy.catalogue-{what}/1",
        name_key="id",
        empty=f"No {what} match.",
        extra={"revision": loaded.revision},
    )


@catalogue.command(epilog="Example:  nodeworthy catalogue show pcie-speed-low")
@click.argument("name")
@layers_option
@output_options
def show(name: str, layers: tuple[Path, ...], output: str) -> None:
    """Show one check, signal, feature or expectation by its id, and what other projects say where they disagree."""
    import difflib

    loaded = _load(layers)
    found = {row["id"]: (what, row) for what in WHAT for row in _rows(loaded, what)}
    if name not in found:
        near = difflib.get_close_matches(name, list(found), n=3)
        hint = f"did you mean {', '.join(near)}?" if near else "nodeworthy catalogue list checks"
        raise NotKnown(f"the catalogue has no {name!r}", hint=hint)
    what, row = found[name]
    word = what.removesuffix("s")
    document = {"what": word, **row, **(_codes(loaded.checks[name]) if what == "checks" else {})}
    print_document(document, output, schema=f"nodeworthy.{word}/1", text=_text)


@catalogue.command(epilog="Example:  nodeworthy catalogue check /etc/nodeworthy/catalogue")
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path))
@output_options
def check(paths: tuple[Path, ...], output: str) -> None:
    """Check a site's catalogue files: PATHS are files or directories, laid over the built-in catalogue in this order.

    Prints every problem with file, line, field and remedy, and ends with 3 when there are any.
    """
    try:
        loaded = _load(paths)
        problems = []
    except BadFile as error:
        loaded, problems = None, error.problems
    rows = [
        {"file": p.file, "line": p.line, "field": p.field, "message": p.message, "remedy": p.remedy} for p in problems
    ]
    columns = [
        Column("file", text=lambda v: str(v)),
        Column("line"),
        Column("field"),
        Column("message"),
        Column("remedy"),
    ]
    layers = {str(p) for p in paths}
    own = [c.id for c in loaded.checks.values() if c.layer in layers] if loaded else []
    fine = f"Fine: {len(own)} checks from these layers" + (f" ({', '.join(own)})." if own else ".")
    print_rows(
        rows,
        columns,
        output,
        schema="nodeworthy.catalogue-problems/1",
        name_key="file",
        empty=fine,
        extra={"well": not rows, "checks": own},
    )
    if rows:
        raise SystemExit(3)


def _load(layers: tuple[Path, ...]) -> Catalogue:
    from nodeworthy.adapters.files.catalogue import load

    return load(layers)


_COLUMNS: Mapping[str, tuple[Column, ...]] = {
    "checks": (
        Column("id"),
        Column("kind"),
        Column("severity"),
        Column("effect", text=lambda v: v or "informs"),
        Column("trust"),
        Column("for_s", "FOR", wide=True),
        Column("clear_s", "CLEARS AFTER", wide=True),
        Column("layer", wide=True),
        Column("when", wide=True),
        Column("title"),
    ),
    "signals": (
        Column("id"),
        Column("kind"),
        Column("type"),
        Column("unit"),
        Column("counter", wide=True),
        Column("max_age_s", "MAX AGE", wide=True),
        Column("fields", wide=True),
        Column("help"),
    ),
    "features": (
        Column("id"),
        Column("kind"),
        Column("signal"),
        Column("function"),
        Column("window_s", "WINDOW"),
        Column("help"),
    ),
    "expectations": (Column("id"), Column("type"), Column("unit"), Column("help")),
}


def _rows(loaded: Catalogue, what: str) -> list[dict[str, Any]]:
    from dataclasses import asdict

    if what == "checks":
        return [_check_row(c) for c in loaded.checks.values()]
    if what == "signals":
        return [_signal_row(s) for s in loaded.signals.values()]
    return [asdict(e) for e in (loaded.features if what == "features" else loaded.expectations).values()]


def _check_row(check: Check) -> dict[str, Any]:
    from dataclasses import asdict

    return {**asdict(check), "when": when(check)}


def when(check: Check) -> str:
    """What makes a check true, in one line."""
    if check.event is None:
        return check.condition or ""
    event = check.event
    codes = ", ".join(event.codes) or "any code"
    often = f", {event.count} times in {event.window_s:g} s" if event.count > 1 else ""
    return f"log event {event.kind} {codes}{often}"


def _signal_row(signal: Signal) -> dict[str, Any]:
    from dataclasses import asdict

    return {**asdict(signal), "fields": [field_text(f) for f in signal.fields]}


def field_text(field: Any) -> str:
    """A field as `source:name{label="value"} × scale`."""
    labels = ",".join(f'{k}="{v}"' for k, v in field.labels.items())
    text = f"{field.source}:{field.name}" + (f"{{{labels}}}" if labels else "")
    if field.value_label:
        text += f" label {field.value_label}"
    return text if field.scale == 1.0 else f"{text} × {field.scale:g}"


def _codes(check: Check) -> dict[str, Any]:
    """What the code tables of the log grammar know of an event check's codes."""
    if check.event is None or check.event.kind not in ("xid", "sxid"):
        return {}
    import tomllib
    from importlib.resources import files

    table = files("nodeworthy") / "catalogue" / f"{check.event.kind}.toml"
    if not table.is_file():
        return {}
    known = tomllib.loads(table.read_text(encoding="utf-8"))[check.event.kind]
    return {"codes": {code: known[code] for code in check.event.codes if code in known}}


def _text(document: Mapping[str, Any]) -> str:
    """Key and value lines; what is empty is left out, codes come last with what is disputed."""
    lines = [f"{document['what']} {document['id']}"]
    for key, value in document.items():
        if key in ("what", "id", "codes", "event", "condition") or value in (None, "", [], (), False):
            continue
        if isinstance(value, (list, tuple)):
            value = ("\n" + " " * 15).join(str(v) for v in value)
        lines.append(f"  {key.replace('_', ' '):12} {value}")
    for code, row in document.get("codes", {}).items():
        lines.append(f"  code {code:7} {row.get('mnemonic', row.get('class', ''))}: {row['meaning']}")
        if row.get("vendor"):
            lines.append(f"{'':15}vendor: {row['vendor']}")
        lines += [f"{'':15}disputed: {text}" for text in row.get("disputed", ())]
    return "\n".join(lines)
