"""Writes the reference pages from the program itself: `python -m docs.generate` (or `make docs`).

A page that is written by hand is wrong after a month. `tests/docs` fails while a page is not what this file
would write, so a command, setting, metric, error or endpoint cannot be added without its documentation.
"""

from __future__ import annotations

import inspect
import json
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import click

from docs import generate_catalogue, generate_log_events
from docs.tree import Leaf, leaves
from nodeworthy import errors
from nodeworthy.adapters.files.catalogue import load as load_catalogue
from nodeworthy.api.app import create_app
from nodeworthy.service.metrics import METRICS
from nodeworthy.wiring.reference import settings_rows

REFERENCE = Path(__file__).parent / "reference"
_NOTE = "<!-- Written by `python -m docs.generate`; do not edit. -->"


def openapi() -> dict[str, Any]:
    """The API's description. It needs no views: routes are described, not called."""
    return create_app(None).openapi()  # type: ignore[arg-type]


def openapi_page() -> str:
    return json.dumps(openapi(), indent=2, ensure_ascii=False) + "\n"


def api_page() -> str:
    """Every endpoint in words."""
    document = openapi()
    lines = [
        "# API",
        _NOTE,
        "",
        document["info"]["description"],
        "",
        "It is served on the Unix socket of `nodeworthy serve`; who may write the socket file may ask. The machine-readable",
        "description is [openapi.json](openapi.json), and `/v1/openapi.json` of a running instance.",
        "",
        "```console",
        "$ curl --unix-socket /run/nodeworthy/nodeworthy.sock http://localhost/v1/status",
        "```",
    ]
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            lines += ["", f"## `{method.upper()} {path}`", "", _sentences(operation)]
            lines += _parameters(operation.get("parameters", []))
    return "\n".join(lines) + "\n"


def _sentences(operation: Mapping[str, Any]) -> str:
    summary = str(operation["summary"])
    return f"{summary}{'' if summary.endswith('?') else '.'} {operation['description']}"


def _parameters(parameters: list[Mapping[str, Any]]) -> list[str]:
    if not parameters:
        return []
    rows = [(f"`{p['name']}`", p["in"], p["schema"].get("default"), p.get("description", "")) for p in parameters]
    return ["", *table(("parameter", "in", "default", "meaning"), [(n, i, _code(d), m) for n, i, d, m in rows])]


def _code(value: object) -> str:
    return "" if value is None else f"`{value}`"


def settings_page() -> str:
    rows = [(f"`{r['setting']}`", r["type"], _default(r["default"]), r["description"]) for r in settings_rows()]
    return (
        "\n".join(
            [
                "# Settings",
                _NOTE,
                "",
                "`nodeworthy.toml` is read from `--config`, else from the file that `NODEWORTHY_CONFIG` names, else from",
                "`/etc/nodeworthy/nodeworthy.toml`; with no file at all the defaults below hold. `nodeworthy config check FILE`",
                "tells every problem with its line; `nodeworthy config show` prints what is in force.",
                "",
                'A duration is a text with its unit: `"30s"`, `"2h30m"`, `"400d"`. `exporters[]` means the setting stands in a',
                "section that may be repeated: `[[exporters]]`. Secrets stand in files of their own (mode 0600), never here.",
                "",
                *table(("setting", "type", "default", "meaning"), rows),
            ]
        )
        + "\n"
    )


def _default(text: str) -> str:
    return text if text in ("required", "unset", "see right") else f"`{text}`"


def metrics_page() -> str:
    rows = [(f"`{m.name}`", m.kind, ", ".join(f"`{label}`" for label in m.labels), m.help) for m in METRICS]
    return (
        "\n".join(
            [
                "# Metrics",
                _NOTE,
                "",
                "What Nodeworthy says of itself and of the fleet in numbers, at `/metrics` of its socket, and on TCP where",
                "`metrics_listen` is set. A value that is not known has no series, so alert on absence as well as on values:",
                "",
                "```yaml",
                "- alert: NodeworthyBlind",
                "  expr: nodeworthy_source_ok == 0 or absent(nodeworthy_snapshot_timestamp_seconds)",
                "  for: 5m",
                "- alert: NodeworthyStalled",
                "  expr: time() - nodeworthy_snapshot_timestamp_seconds > 60 or nodeworthy_loop_stalled == 1",
                "```",
                "",
                *table(("metric", "type", "labels", "meaning"), rows),
            ]
        )
        + "\n"
    )


def errors_page() -> str:
    """The error tree: codes, what they mean, exit codes."""
    rows = []
    for kind in _kinds(errors.NodeworthyError):
        depth = len(kind.__mro__) - len(errors.NodeworthyError.__mro__)
        rows.append((f"`{kind.code}`", "· " * depth + kind.__name__, str(kind.exit_code), _meaning(kind)))
    return (
        "\n".join(
            [
                "# Errors",
                _NOTE,
                "",
                "Every error has a stable code, a sentence and a hint what to do next. On the command line it is printed to",
                "stderr; the API answers with the same as a problem document (RFC 9457).",
                "",
                *table(("code", "name", "exit code", "meaning"), rows),
            ]
        )
        + "\n"
    )


def _kinds(kind: type[errors.NodeworthyError]) -> Iterator[type[errors.NodeworthyError]]:
    yield kind
    for below in sorted(kind.__subclasses__(), key=lambda k: k.code):
        if below.__module__ == errors.__name__:
            yield from _kinds(below)


def _meaning(kind: type[errors.NodeworthyError]) -> str:
    """From the drawing in the module's docstring: `├── Name   CODE   meaning`."""
    for line in (errors.__doc__ or "").splitlines():
        if kind.code in line:
            return line.partition(kind.code)[2].strip() or "any of the below"
    raise LookupError(f"{kind.__name__} ({kind.code}) is not drawn in nodeworthy.errors")


def cli_page() -> str:
    lines = [
        "# Commands",
        _NOTE,
        "",
        "Data are printed to stdout, talk to stderr. `-o json` prints one document with a `schema` name that only grows,",
        "`-o jsonl` a line for each item; unknown is `?` in tables and `null` in JSON, never 0. Node sets (`n[1-3],login`)",
        "are understood wherever nodes are named.",
        "",
        *table(("exit code", "meaning"), list(EXIT_CODES)),
    ]
    for leaf in leaves():
        lines += ["", f"## `nodeworthy {' '.join(leaf.path)}`", *_command(leaf)]
    return "\n".join(lines) + "\n"


EXIT_CODES = (
    ("0", "fine"),
    ("1", "failed"),
    ("2", "usage: the command, a value or a file is wrong; nothing was done"),
    ("3", "checked, and not well"),
    ("4", "not allowed"),
    ("5", "refused by a guard"),
    ("6", "partly done"),
    ("7", "still running"),
)


def _command(leaf: Leaf) -> list[str]:
    context = click.Context(leaf.command, info_name="nodeworthy " + " ".join(leaf.path))
    usage = " ".join(leaf.command.collect_usage_pieces(context))
    lines = ["", *_paragraphs(leaf.command.help or ""), "", "```", f"{context.info_name} {usage}", "```"]
    records = [record for p in leaf.command.params if (record := p.get_help_record(context))]
    options = [(name, meaning) for name, meaning in records if meaning]  # an argument is explained in the text
    if options:
        lines += ["", *table(("option", "meaning"), [(f"`{_cell(o)}`", _cell(h)) for o, h in options])]
    return [*lines, "", *_paragraphs(leaf.command.epilog or "")]


def _paragraphs(text: str) -> list[str]:
    """Click's help as Markdown: paragraphs are joined, lines after \\b and examples are kept as they are."""
    found: list[str] = []
    for paragraph in inspect.cleandoc(text).split("\n\n"):
        kept = paragraph.lstrip("\n")
        if kept.startswith("\b"):
            found += ["```", *kept.lstrip("\b").strip("\n").splitlines(), "```", ""]
        elif kept.startswith("Example"):
            word, _, command = kept.partition(":")
            found += [
                f"{word}:",
                "",
                "```console",
                *(f"$ {line.strip()}" for line in command.strip().splitlines()),
                "```",
                "",
            ]
        else:
            found += [" ".join(kept.split()), ""]
    return found[:-1]


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())


def table(heads: tuple[str, ...], rows: list[tuple[str, ...]]) -> list[str]:
    """A Markdown table."""
    lines = [heads, tuple("---" for _ in heads), *rows]
    return ["| " + " | ".join(_cell(cell).replace("\\\\|", "\\|") for cell in line) + " |" for line in lines]


PAGES: Mapping[str, Callable[[], str]] = {
    "api.md": api_page,
    "checks.md": lambda: generate_catalogue.checks_page(load_catalogue()),
    "cli.md": cli_page,
    "errors.md": errors_page,
    "log-events.md": generate_log_events.page,
    "metrics.md": metrics_page,
    "openapi.json": openapi_page,
    "settings.md": settings_page,
    "signals.md": lambda: generate_catalogue.signals_page(load_catalogue()),
}


def main() -> None:
    for name, page in PAGES.items():
        (REFERENCE / name).write_text(page(), encoding="utf-8")
        sys.stdout.write(f"{REFERENCE / name}\n")


if __name__ == "__main__":
    main()
