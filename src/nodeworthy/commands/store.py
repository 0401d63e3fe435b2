"""`nodeworthy store`: back up, restore, prune and look at the record."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from nodeworthy.cli.output import output_options, print_document
from nodeworthy.model.duration import format_duration, format_time, parse_duration

if TYPE_CHECKING:
    from nodeworthy.record.store import SqlStore

Command = Callable[..., Any]


def store_option(command: Command) -> Command:
    """Adds `--store URL`; the callback gets `url`, never empty."""

    def default(_ctx: click.Context, _param: click.Parameter, value: str | None) -> str:
        from nodeworthy.wiring.paths import store_url

        return value or store_url()

    return click.option(
        "--store",
        "url",
        metavar="URL",
        callback=default,
        help="postgresql://… or a SQLite file. Default: NODEWORTHY_STORE, or that of the configuration.",
    )(command)


@contextmanager
def _opened(url: str) -> Iterator[SqlStore]:
    from nodeworthy.record.store import open_store

    opened = open_store(url, create=False)
    try:
        yield opened
    finally:
        opened.close()


@click.group()
def store() -> None:
    """Back up, restore and prune the record."""


@store.command(epilog="Example:  nodeworthy store backup /backup/nodeworthy-$(date +%F).jsonl.gz")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--force", is_flag=True, help="Replace FILE if it is there.")
@store_option
@output_options
def backup(file: Path, force: bool, url: str, output: str) -> None:
    """Write the whole record to FILE, as of one moment, while it is in use.

    The file restores into SQLite and PostgreSQL alike.
    """
    from nodeworthy.record.backup import back_up

    with _opened(url) as opened:
        made = back_up(opened, file, now=time.time(), force=force)
    print_document(
        asdict(made),
        output,
        schema="nodeworthy.store-backup-made/1",
        text=lambda _: f"{made.path}: {sum(made.rows.values())} rows, up to ledger entry {made.sequence}",
    )


@store.command(epilog="Example:  nodeworthy store restore --store postgresql://nodeworthy@db/nodeworthy FILE")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--force", is_flag=True, help="Replace all that the store holds.")
@store_option
@output_options
def restore(file: Path, force: bool, url: str, output: str) -> None:
    """Fill a new store from a backup. FILE is checked whole before anything is written.

    Stop `nodeworthy serve` first if it uses this store.
    """
    from nodeworthy.record import backup as backups

    done = backups.restore(url, file, force=force)
    print_document(
        asdict(done),
        output,
        schema="nodeworthy.store-restored/1",
        text=lambda _: (
            f"restored {sum(done.rows.values())} rows of {format_time(done.at)}, up to ledger entry {done.sequence}"
        ),
    )


@store.command(epilog="Example:  nodeworthy store prune --older-than 90d")
@click.option("--older-than", metavar="AGE", required=True, help="What ended longer ago than this goes: 90d, 26w.")
@store_option
@output_options
def prune(older_than: str, url: str, output: str) -> None:
    """Remove what is old from the record; what is open stays. Safe while it is in use."""
    now = time.time()
    before = now - parse_duration(older_than)
    with _opened(url) as opened:
        pruned = opened.prune(before, now=now)

    def text(_: object) -> str:
        said = "\n".join(f"  {name:12} {count:>10}" for name, count in pruned.removed.items())
        return f"removed what ended before {format_time(before)}:\n{said}"

    print_document(asdict(pruned), output, schema="nodeworthy.store-pruned/1", text=text)


@store.command(epilog="Example:  nodeworthy store info -o json")
@store_option
@output_options
def info(url: str, output: str) -> None:
    """Size, schema, number of rows and oldest entry of the record."""
    with _opened(url) as opened:
        found = opened.info()

    def text(_: object) -> str:
        size = "?" if found.size_bytes is None else f"{found.size_bytes / 1e6:.1f} MB"
        oldest = "none yet"
        if found.oldest is not None:
            oldest = f"{format_time(found.oldest)} ({format_duration(time.time() - found.oldest)} ago)"
        facts = {
            "store": found.url,
            "schema": found.schema_revision,
            "size": size,
            "oldest entry": oldest,
            "last sequence": str(found.sequence),
            "open findings": str(found.open_findings),
            "open holds": str(found.open_holds),
            **{f"{name} rows": str(count) for name, count in found.rows.items()},
        }
        return "\n".join(f"{name:18} {value}" for name, value in facts.items())

    print_document(asdict(found), output, schema="nodeworthy.store-info/1", text=text)
