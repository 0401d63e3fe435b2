"""How classified events are shown: a table that streams, counts, and what was read."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, BinaryIO

import click

from nodeworthy.cli.printable import printable

if TYPE_CHECKING:
    from nodeworthy_node.log import Event
    from nodeworthy_node.log.scan import Tally

# within this time (seconds of the log's own clock) the same thing said again is a repeat
REPEAT_S = 60.0
# how many different things are remembered to find repeats
REMEMBERED = 100_000
WIDTHS = (
    ("time (utc)", 19),
    ("host", 12),
    ("component", 14),
    ("kind", 6),
    ("code", 10),
    ("role", 11),
    ("severity", 8),
    ("action", 15),
)
PROGRESS_S = 1.0


@dataclass
class Repeats:
    """Leaves out what was just said, so that a storm of one error is a line a minute."""

    left_out: int = 0
    _said: dict[tuple[str, str, str, str], float | None] = field(default_factory=dict)

    def is_repeat(self, event: Event) -> bool:
        key = (event.host, event.verdict.component, event.verdict.kind, event.verdict.code)
        at = event.time if event.time is not None else event.uptime
        if key in self._said:
            before = self._said[key]
            if at is None or before is None or abs(at - before) < REPEAT_S:
                self.left_out += 1
                return True
        if len(self._said) >= REMEMBERED:
            self._said.clear()
        self._said[key] = at
        return False


def table_lines(events: Iterable[Event], wide: bool) -> Iterator[str]:
    """A heading, then a line for each event, as soon as it comes. `origin?` is what the kernel did not say itself."""
    yield _aligned([name.upper() for name, _ in WIDTHS], "MEANING")
    for event in events:
        said = event.verdict
        role = said.role if event.trusted else said.role + "?"
        cells = [
            _when(event),
            event.host or "-",
            said.component or "-",
            said.kind,
            said.code,
            role,
            said.severity,
            said.action,
        ]
        yield _aligned(cells, said.meaning + (f"  | {event.message}" if wide else ""))


def _aligned(cells: list[str], last: str) -> str:
    shown = [printable(cell).ljust(width) for cell, (_, width) in zip(cells, WIDTHS, strict=True)]
    return "  ".join([*shown, printable(last)])


def _when(event: Event) -> str:
    """UTC; or seconds since boot, where that is all that is known."""
    if event.time is not None:
        return time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(event.time))
    return "?" if event.uptime is None else f"boot+{event.uptime:.3f}s"


def counted(events: Iterable[Event]) -> list[dict[str, Any]]:
    """One row for each host, component, kind and code, with how often, first and last; the worst first."""
    rows: dict[tuple[str, ...], dict[str, Any]] = {}
    for event in events:
        said = event.verdict
        key = (event.host, said.component, said.kind, said.code, said.role, str(event.trusted))
        row = rows.get(key)
        if row is None:
            row = rows[key] = {
                "host": event.host,
                "component": said.component,
                "kind": said.kind,
                "code": said.code,
                "role": said.role,
                "severity": said.severity,
                "action": said.action,
                "trusted": event.trusted,
                "count": 0,
                "first": event.time,
                "last": event.time,
                "meaning": said.meaning,
            }
        row["count"] += 1
        if event.time is not None:
            row["first"] = event.time if row["first"] is None else min(row["first"], event.time)
            row["last"] = event.time if row["last"] is None else max(row["last"], event.time)
    order = {"fatal": 0, "error": 1, "warning": 2, "info": 3}
    return sorted(rows.values(), key=lambda row: (order[row["severity"]], -row["count"]))


class Watched:
    """A file that says on a terminal, at most once a second, how far reading it is."""

    def __init__(self, stream: BinaryIO, name: str, size: int, monotonic: Callable[[], float]) -> None:
        self._stream, self._name, self._size, self._monotonic = stream, name, size, monotonic
        self._done = 0
        self._shown = monotonic()

    def read(self, size: int) -> bytes:
        data = self._stream.read(size)
        self._done += len(data)
        now = self._monotonic()
        if now - self._shown >= PROGRESS_S:
            self._shown = now
            part = f" of {self._size / 1e6:.0f}" if self._done <= self._size else ""
            click.echo(f"\r{printable(self._name)}: {self._done / 1e6:.0f}{part} MB ", err=True, nl=False)
        return data


def talk(tally: Tally, repeats: int) -> str:
    """One sentence on what was read, with everything that did not become a row."""
    parts = [f"{tally.bytes / 1e6:.1f} MB read", f"{tally.events} events"]
    if tally.undecoded:
        parts.append(f"{tally.undecoded} of them cut or garbled (code unknown)")
    if tally.passed_over:
        parts.append(f"{tally.passed_over} lines that only looked like one or continue another")
    if repeats:
        parts.append(f"{repeats} repeats within a minute not shown (--all shows them)")
    return ", ".join(parts) + "."
