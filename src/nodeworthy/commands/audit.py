"""`nodeworthy audit slurm`: what a fleet lost, to what, and who is out and why. Reads only; needs no set-up."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from nodeworthy.cli.output import output_options
from nodeworthy.cli.printable import say

if TYPE_CHECKING:
    from nodeworthy.reports.audit.report import Audit

EXISTING = click.Path(exists=True, dir_okay=False)


@click.group(epilog="Example:  nodeworthy audit slurm --since 90d")
def audit() -> None:
    """What a fleet lost, to what, and who is out and why: from records that already exist."""


@audit.command(
    epilog="""\b
Example:  nodeworthy audit slurm --since 90d --html audit.html
\b
From files, made on another machine:
  export SLURM_TIME_FORMAT=%s
  sacct -a -X -D -P -S now-90days -o JobIDRaw,User,State,Start,End,NNodes,NodeList,AllocTRES,FailedNode | gzip > jobs.gz
  sacctmgr -P show event start=now-90days format=Cluster,NodeName,TimeStart,TimeEnd,State,User,Reason > events.txt
  scontrol -o -d show nodes > nodes.txt
  nodeworthy audit slurm --jobs jobs.gz --events events.txt --nodes nodes.txt
(before Slurm 23.02 sacct has no FailedNode: leave it out)"""
)
@click.option(
    "--since",
    default="90d",
    show_default=True,
    metavar="AGE|TIME",
    help="Beginning: 90d, 2h30m before the end, or 2026-09-01 (UTC).",
)
@click.option(
    "--until", default=None, metavar="AGE|TIME", help="End (UTC); now, or with files the latest time in them."
)
@click.option("--jobs", type=EXISTING, help="Saved output of `sacct -P` (also .gz).")
@click.option("--events", type=EXISTING, help="Saved output of `sacctmgr -P show event` (also .gz).")
@click.option("--nodes", type=EXISTING, help="Saved output of `scontrol -o show nodes` (also .gz).")
@click.option(
    "--logs", type=EXISTING, multiple=True, help="Kernel or syslog files to compare outages with; repeatable."
)
@click.option("--prometheus", metavar="URL", help="Prometheus or VictoriaMetrics: what allocated GPUs really did.")
@click.option("--timezone", metavar="ZONE", help="Zone of times without one in the files, e.g. Europe/Berlin.")
@click.option("--cluster", metavar="NAME", help="Name to print for data from files.")
@click.option(
    "--timeout",
    default=900.0,
    show_default=True,
    metavar="SECONDS",
    help="Longest wait for one Slurm command, and for all metrics.",
)
@click.option("--html", type=click.Path(dir_okay=False, writable=True), help="Also write one HTML file with pictures.")
@click.option("--markdown", type=click.Path(dir_okay=False, writable=True), help="Also write Markdown.")
@output_options
def slurm(html: str | None, markdown: str | None, output: str, **options: object) -> None:
    """Audit a Slurm cluster, or files saved from one.

    Reads with scontrol, sacct and sacctmgr, from any login node, without root, and writes nothing to Slurm. What could
    not be read is listed under "Not known" and never counted as zero. Exit code 6: a source failed, the rest stands.
    """
    from nodeworthy.reports.audit.report import build
    from nodeworthy.wiring.audit_sources import Request, gather

    request = Request.parse(**options)
    given, failed = gather(request, say=lambda text: say(text, err=True))
    report = build(given)
    _write_files(report, html, markdown)
    _print(report, output)
    if failed:
        sys.exit(6)


def _write_files(report: Audit, html: str | None, markdown: str | None) -> None:
    from pathlib import Path

    from nodeworthy.errors import BadRequest

    for path, kind in ((html, "html"), (markdown, "markdown")):
        if path is None:
            continue
        if kind == "html":
            from nodeworthy.commands.audit_render.html import document
        else:
            from nodeworthy.commands.audit_render.markdown import document
        try:
            Path(path).write_text(document(report), encoding="utf-8")
        except OSError as error:
            raise BadRequest(f"cannot write {path}: {error.strerror}", hint="choose another path") from error
        say(f"wrote {path}", err=True)


def _print(report: Audit, output: str) -> None:
    from nodeworthy.cli.output import Column, print_document, print_rows
    from nodeworthy.reports.audit.report import SCHEMA

    if output in ("csv", "name", "nodeset"):
        rows = [
            {"node": r.node, "kind": r.kind, "why": "; ".join(r.why), "lost_gpu_hours": r.lost_gpu_hours}
            for r in report.needs_person
        ]
        columns = [Column(k) for k in ("node", "kind", "why", "lost_gpu_hours")]
        print_rows(rows, columns, output, schema=SCHEMA, name_key="node")
        return
    print_document(report.document(), output, schema=SCHEMA, text=lambda _: _page(report, output == "wide"))


def _page(report: Audit, wide: bool) -> str:
    import os
    import shutil

    from nodeworthy.commands.audit_render.terminal import page

    on_terminal = sys.stdout.isatty()
    width = shutil.get_terminal_size().columns if on_terminal else 120
    if wide:
        width = max(width, 240)
    return page(report, width=max(80, width), colour=on_terminal and "NO_COLOR" not in os.environ, wide=wide)
