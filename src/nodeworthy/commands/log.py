"""`nodeworthy log`: turn log lines into events. Runs alone: no server, no fleet file, no configuration."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, cast

import click

from nodeworthy.cli.output import Column, output_options, print_document, print_rows
from nodeworthy.cli.printable import printable, say
from nodeworthy.errors import BadRequest, NotKnown
from nodeworthy.model.duration import parse_time

if TYPE_CHECKING:
    from nodeworthy_node.log import Event

FORMATS = ("table", "wide", "json", "jsonl")
ROLES = ("origin", "symptom", "application", "unknown")


@click.group()
def log() -> None:
    """Turn kernel and system log lines into events."""


@dataclass(frozen=True)
class Wanted:
    """The filters of `log classify`. Empty: everything."""

    kinds: tuple[str, ...] = ()
    roles: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    since: float | None = None

    def __call__(self, event: Event) -> bool:
        """An event whose time is not known is never left out for its time."""
        return (
            (not self.kinds or event.verdict.kind in self.kinds)
            and (not self.roles or event.verdict.role in self.roles)
            and (not self.hosts or any(fnmatchcase(event.host, pattern) for pattern in self.hosts))
            and (self.since is None or event.time is None or event.time >= self.since)
        )


@dataclass
class Reading:
    """What is read and how, and what came of it."""

    names: tuple[str, ...]
    site_rules: str | None
    zone: str | None
    boot: str | None
    from_kernel: bool
    trust_tag: bool
    quiet: bool
    holds: int = 0
    problems: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Everything that can be wrong with what was asked for is found before the first line is printed."""
        from nodeworthy.adapters.files.log_rules import load_grammar
        from nodeworthy.adapters.files.log_source import open_log
        from nodeworthy_node.log.scan import Tally

        self.tally = Tally()
        self.grammar = load_grammar(Path(self.site_rules) if self.site_rules else None)
        self.known = (_zone(self.zone), _boot(self.boot))
        self.opened = [(name, open_log(name)) for name in self.names]

    def events(self, wanted: Callable[[Event], bool]) -> Iterator[Event]:
        """All events of all files in order. A file that breaks off is a problem; the others are still read."""
        from nodeworthy.adapters.files.literals import finder
        from nodeworthy.adapters.files.log_source import DAMAGED, reference
        from nodeworthy.commands.log_view import Watched
        from nodeworthy_node.log.scan import events

        grammar, find = self.grammar, finder(self.grammar.literals)
        zone, boot = self.known
        for name, stream in self.opened:
            known = reference(name, time.time(), zone, boot)
            source = stream
            if sys.stderr.isatty() and not self.quiet and name != "-":
                source = cast(BinaryIO, Watched(stream, name, Path(name).stat().st_size, time.monotonic))
            found = events(source, find, grammar, known, self.tally, self.from_kernel, self.trust_tag)
            try:
                with stream:
                    for event in found:
                        self.holds += event.holds
                        if wanted(event):
                            yield event
            except DAMAGED as error:
                self.problems.append(f"{name}: reading broke off: {error}")


@log.command(
    epilog="Example: journalctl -k -o json | nodeworthy log classify - --json\n\n"
    "Times are UTC. A role with a question mark was not said by the kernel itself: it explains and never holds."
)
@click.argument("files", nargs=-1, metavar="[FILE|-]...")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line (same as -o jsonl).")
@click.option(
    "-o",
    "--output",
    type=click.Choice(FORMATS),
    default="table",
    show_default=True,
    help="How to print; json is one object a line.",
)
@click.option(
    "--kind", "kinds", multiple=True, help="Only events of this kind (xid, sxid, aer, mce, link, …); repeatable."
)
@click.option("--role", "roles", multiple=True, type=click.Choice(ROLES), help="Only events of this role; repeatable.")
@click.option("--host", "hosts", multiple=True, help="Only events of hosts that match (n*, gpu-00[12]); repeatable.")
@click.option("--since", help="Only events after this: 2h30m, 90d, 2026-11-30, 2026-11-30T17:00 (UTC).")
@click.option("--summary", is_flag=True, help="Count by host, component and code instead of listing.")
@click.option("--check", is_flag=True, help="Exit 3 if an event is found that may hold a node by itself.")
@click.option("--all", "everything", is_flag=True, help="In the table, show repeats within a minute too.")
@click.option("--tz", "zone", help="Zone of stamps that name none.  [default: this machine's]")
@click.option("--boot", help="When the kernel's own counter was 0: a time, or `this` for this machine's boot.")
@click.option("--from-kernel", is_flag=True, help="The input is the kernel's own output (dmesg -t): trust bare lines.")
@click.option(
    "--distrust-tag", is_flag=True, help="Do not trust text lines for the tag `kernel` alone: logger -t can write it."
)
@click.option(
    "--rules", "site_rules", type=click.Path(dir_okay=False), help="A site's own rules (TOML) above the built-in ones."
)
@click.option("-q", "--quiet", is_flag=True, help="No summary of what was read on standard error.")
def classify(
    files: tuple[str, ...],
    as_json: bool,
    output: str,
    kinds: tuple[str, ...],
    roles: tuple[str, ...],
    hosts: tuple[str, ...],
    since: str | None,
    summary: bool,
    check: bool,
    everything: bool,
    zone: str | None,
    boot: str | None,
    from_kernel: bool,
    distrust_tag: bool,
    site_rules: str | None,
    quiet: bool,
) -> None:
    """Say what the lines of log FILEs (or of standard input) are evidence of.

    Reads syslog with or without a year, journald JSON, every form of dmesg, /dev/kmsg, RFC 5424, and logs of Slurm,
    the fabric manager and `ipmitool sel list`; compressed too (.gz, .xz, .bz2).
    """
    from nodeworthy.commands.log_view import Repeats, counted, talk

    if not files and sys.stdin.isatty():
        raise BadRequest("nothing to read", hint="name a log file, or pipe one in: dmesg | nodeworthy log classify -")
    reading = Reading(files or ("-",), site_rules, zone, boot, from_kernel, not distrust_tag, quiet)
    events = reading.events(Wanted(kinds, roles, hosts, _moment(since, "--since") if since else None))
    repeats = Repeats()
    output = "jsonl" if as_json else output
    if summary:
        print_rows(counted(events), COUNTS, output, schema="nodeworthy.log-summary/1", empty="No events.")
    elif output in ("json", "jsonl"):
        _write_json(events, prompt="-" in reading.names)
    else:
        shown = events if everything else (event for event in events if not repeats.is_repeat(event))
        _write_table(shown, wide=output == "wide", prompt="-" in reading.names)
    if not quiet:
        say(talk(reading.tally, repeats.left_out), err=True)
    for problem in reading.problems:
        say(f"warning: {printable(problem)}", err=True)
    if reading.problems:
        sys.exit(6)
    if check and reading.holds:
        sys.exit(3)


def _write_json(events: Iterable[Event], prompt: bool) -> None:
    """`prompt`: the reader at the other end waits for each line, as with `tail -f`."""
    import orjson

    out = sys.stdout.buffer
    for event in events:
        line = orjson.dumps(event.as_dict())
        # it writes what is beyond ASCII as it is, the 8-bit controls and what turns a line around among it
        out.write((line if line.isascii() else json.dumps(event.as_dict()).encode()) + b"\n")
        if prompt:
            out.flush()
    out.flush()


def _write_table(events: Iterable[Event], wide: bool, prompt: bool) -> None:
    from nodeworthy.commands.log_view import table_lines

    for line in table_lines(events, wide):
        # as `say` would print it (its cells are printable), without a flush for each of a million lines
        sys.stdout.write(line + "\n")
        if prompt:
            sys.stdout.flush()


def _time_text(at: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(at))


COUNTS = (
    Column("count"),
    Column("host"),
    Column("component"),
    Column("kind"),
    Column("code"),
    Column("role"),
    Column("severity"),
    Column("trusted", wide=True),
    Column("first", text=_time_text),
    Column("last", text=_time_text),
    Column("action"),
    Column("meaning"),
)


@log.command(epilog="Example: nodeworthy log explain xid-79")
@click.argument("code")
@output_options
def explain(code: str, output: str) -> None:
    """Say what a CODE means (xid-79, sxid-20034, or the name of a rule), what to do, and who says otherwise."""
    from nodeworthy.adapters.files.log_rules import built_in

    data = built_in()
    document = _explained(code.strip().lower(), data)
    print_document(document, output, schema="nodeworthy.log-code/1", text=_explain_text)


@log.command(epilog="Example: nodeworthy log rules -o wide")
@output_options
def rules(output: str) -> None:
    """List the rules: which lines mean something, and what. Codes of Xid and SXid have their own tables: see explain."""
    from nodeworthy.adapters.files.log_rules import built_in

    columns = [Column(key) for key in ("id", "kind", "transport", "role", "severity", "action")]
    columns += [Column("proof", wide=True), Column("meaning"), Column("example", wide=True)]
    rows = [{"role": "by code", "severity": "by code", "action": "by code", **rule} for rule in built_in()["rules"]]
    print_rows(rows, columns, output, schema="nodeworthy.log-rules/1", name_key="id")


def _explained(code: str, data: Mapping[str, Any]) -> dict[str, Any]:
    kind, _, number = code.replace(":", "-").replace(" ", "-").rpartition("-")
    if kind in ("xid", "sxid") and number in data[kind]:
        entry, source = data[kind][number], data["sources"][kind]
        document = {"code": f"{kind}-{number}", **entry, "source": entry.get("source", source)}
    else:
        rule = next((rule for rule in data["rules"] if rule["id"] == code), None)
        if rule is None:
            raise NotKnown(
                f"there is no code or rule {code!r}",
                hint="xid-79, sxid-20034, or a name that `nodeworthy log rules` lists",
            )
        document = {
            "code": code,
            **{key: value for key, value in rule.items() if key not in ("id", "literals", "pattern")},
        }
    document["action_text"] = data["actions"].get(document.get("action", "none"), "")
    document["proof_text"] = data["proofs"].get(document.get("proof", "none"), "")
    return document


def _explain_text(document: Mapping[str, Any]) -> str:
    may = document.get("role") == "origin" and document.get("severity") in ("error", "fatal")
    rows: Sequence[tuple[str, str]] = (
        ("Means", document["meaning"]),
        ("Role", f"{document.get('role', 'by code')} ({document.get('severity', 'by code')})"),
        ("Holds", "a trusted line may hold a node by itself" if may else "never by itself"),
        ("Do", f"{document['action_text']} [{document.get('action', 'by code')}]"),
        ("Prove", f"{document['proof_text']} [{document.get('proof', 'by code')}]"),
        (
            "Vendor",
            " / ".join(
                str(document[key]) for key in ("mnemonic", "vendor", "investigate", "class") if document.get(key)
            ),
        ),
        ("Applies", document.get("applies", "")),
        ("Source", str(document.get("source", ""))),
    )
    lines = [document["code"], *(f"  {name:<8} {text}" for name, text in rows if text)]
    if document.get("disputed"):
        lines += ["  Others", *(f"    {text}" for text in document["disputed"])]
    return "\n".join(lines)


def _moment(text: str, option: str) -> float:
    try:
        return parse_time(text, now=time.time())
    except BadRequest as error:
        raise BadRequest(f"{option}: {error}", hint=error.hint) from error


def _boot(text: str | None) -> float | None:
    from nodeworthy.adapters.files.log_source import boot_time

    if text == "this":
        return boot_time()
    return None if text is None else _moment(text, "--boot")


def _zone(name: str | None) -> Any:
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

    from nodeworthy.adapters.files.log_source import local_zone

    try:
        return ZoneInfo(name) if name else local_zone()
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise BadRequest(f"--tz {name}: no such zone", hint="use a name like UTC or Europe/Berlin") from error
