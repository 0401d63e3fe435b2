"""Following a log file, so that nothing is missed and nothing comes twice.

Each `read` looks at the path once. What it may find, and what it does:
- the same file, longer: read the new whole lines; a last line without its end waits;
- the same file, but shorter or with other bytes where we stood (copytruncate): finish the copy beside it, start anew;
- another file under the name with the same content and perhaps more (rsync): go on in it;
- another file under the name (rename and create): finish the old one, which stays open, start the new one at 0; the
  old one is looked at for a minute more, because a syslog server writes to it until it is told;
- no file: an error, unless one is still open; "there is nothing" and "I cannot see" differ.
After a restart the file is found again by its place (see `place`), also among the rotated and compressed ones.

All work on files runs in a thread, at most `MOST` bytes at a time, so that a backlog of gigabytes holds up nobody. A
thread that hangs in a dead mount is waited for again by the next `read`: there is one at a time, and what it brings is
handed over once, together with its cursor, or not at all. A file moves on only when its lines are events.
"""

from __future__ import annotations

import asyncio
import gzip
import os
import stat
import threading
import zlib
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from datetime import UTC, tzinfo
from pathlib import Path
from typing import Any, BinaryIO

from nodeworthy.adapters.logfile.place import PRINT, Place, ends, fingerprint, since
from nodeworthy.errors import Broken, Unreachable
from nodeworthy.model.event import LogEvent, Role
from nodeworthy.ports import Clock
from nodeworthy_node.log import Event, Grammar, Reference, parse
from nodeworthy_node.log.lines import MAX_LINE
from nodeworthy_node.log.scan import LONGEST, Find, lines_at

# bytes read at a time: some 50 ms of work
MOST = 16 * 1024 * 1024
# how long a file is looked at after its name went to another one: a syslog server reopens within seconds
LINGER_S = 60.0
# unknown hosts that are remembered by name
MOST_UNKNOWN = 1000
# a stamp further ahead than clocks of one site differ (as for telemetry) says nothing of when the line was written
AHEAD_S = 5.0
# a line without a time that was written since the last read is at most so old
LIVE_S = 60.0
# how often those are looked up again: the fleet may have learnt them
ASK_AGAIN_S = 10.0

Heard = tuple[list[LogEvent], list[Place]]


@dataclass
class Open:
    """A file that is being read. `until`: when to leave it (monotonic), for one that has lost its name.

    `head` and `tail` are the bytes of the fingerprints, kept while reading: nothing is read twice for them.
    """

    file: BinaryIO
    offset: int
    skipping: bool = False
    until: float | None = None
    done: bool = False
    head: bytes = b""
    tail: bytes = b""

    def __post_init__(self) -> None:
        self.head, self.tail = ends(self.file, self.offset)

    def take(self, data: bytes) -> None:
        """These bytes, which follow the offset, are read."""
        if len(self.head) < PRINT:
            self.head = (self.head + data[:PRINT])[:PRINT]
        self.tail = (self.tail + data[-PRINT:])[-PRINT:]
        self.offset += len(data)

    @property
    def identity(self) -> tuple[int, int]:
        stat = os.fstat(self.file.fileno())
        return stat.st_dev, stat.st_ino

    @property
    def place(self) -> Place:
        device, inode = self.identity
        return Place(device, inode, self.offset, fingerprint(self.head), fingerprint(self.tail), self.skipping)


class LogFile:
    """An event log (see `ports.EventLog`) over one file.

    `source` is its name (default: the path). `resolve` gives the node of a host name, or None. `host` stands for lines
    that name none (a node's own dmesg). `cursor` is what `cursor()` gave before a restart. Without one, the first read
    starts at the end of a file that is there (`from_start`: at its beginning), and at the beginning of one that appears
    later. `trusted`: false for a file that others than the kernel's own transport may write to: tag, facility, priority
    and host are then only what the writer says, and none of its lines is trusted.
    """

    def __init__(
        self,
        path: Path,
        *,
        grammar: Grammar,
        find: Find,
        clock: Clock,
        resolve: Callable[[str], str | None],
        cursor: Mapping[str, Any] | None = None,
        zone: tzinfo = UTC,
        boot: float | None = None,
        host: str = "",
        from_start: bool = False,
        trusted: bool = True,
        source: str = "",
    ) -> None:
        self.path = path
        self.source = source or str(path)
        self.problems: tuple[str, ...] = ()
        self.unknown: dict[str, int] = {}
        self._asked_at = 0.0
        self._grammar, self._find, self._clock, self._resolve = grammar, find, clock, resolve
        self._zone, self._boot, self._host = zone, boot, host
        self._trusted, self._from_start = trusted, from_start
        self._gone_at: float | None = None  # since when there is nothing under the name
        self._open: list[Open] = []  # oldest first; the last one has the name
        self._restore = _places(cursor)
        self._places: list[Place] = list(self._restore)  # behind what was handed over
        self._looked = bool(self._restore)  # whether it is known where to begin
        # there, but not to be opened (yet): what it holds by the time it can be opened is old
        self._not_yet = False
        self._up_to: float | None = None  # when all that was there had been read
        self._ahead: set[str] = set()
        self._reading: Future[Heard] | None = None

    @property
    def unknown_names(self) -> tuple[str, ...]:
        """Hosts that `resolve` does not know, in the order in which they were first seen."""
        return tuple(self.unknown)

    async def read(self) -> Sequence[LogEvent]:
        """What was written since the last read. Raises Unreachable when the file cannot be opened.

        May be given up at any time: the next one goes on waiting for the same reading and gets what it brings.
        """
        if self._reading is None:
            self._reading = _in_a_thread(self._read)
        try:
            events, self._places = await asyncio.wrap_future(self._reading)
        except asyncio.CancelledError:
            raise  # given up; the reading goes on, or waits to be fetched
        except Exception:
            self._reading = None
            raise
        self._reading = None
        return events

    def cursor(self) -> Mapping[str, object]:
        """Where reading stands: store it in the transaction that stores what was read."""
        return {"path": str(self.path), "places": [place.as_dict() for place in self._places]}

    def close(self) -> None:
        """Let go of the files. The cursor stays as it is."""
        for file in self._open:
            file.file.close()
        self._open, self._restore = [], list(self._places)

    def _read(self) -> Heard:
        self._look()
        self._ask_again()
        events: list[LogEvent] = []
        left, began = MOST, self._clock.now()
        for file in list(self._open):
            try:
                took, found = self._lines_of(file, left)
            except (OSError, EOFError, zlib.error) as error:
                if file.until is not None:
                    self._unreadable(file, error)
                    continue
                if not events:
                    raise Unreachable(f"the log {self.path} cannot be read: {error}") from error
                break  # what the others gave is handed over; the next read meets the same
            events += found
            left -= took
            if left <= 0:
                break
        self._leave()
        if left > 0:
            self._up_to = began
        return events, [file.place for file in self._open]

    def _ask_again(self) -> None:
        now = self._clock.monotonic()
        if self.unknown and now - self._asked_at >= ASK_AGAIN_S:
            self._asked_at = now
            self.unknown = {h: count for h, count in self.unknown.items() if not h or self._resolve(h) is None}

    def _unreadable(self, file: Open, error: Exception) -> None:
        """A rotated file that is damaged is left at once, one that cannot be read now when its time is over."""
        damaged = isinstance(error, (gzip.BadGzipFile, EOFError, zlib.error))
        if damaged or self._clock.monotonic() >= (file.until or 0.0):
            self._say(f"{self.path}: a rotated file beside it cannot be read on, its lines may be missing: {error}")
            file.done = True

    def _look(self) -> None:
        """Make the list of open files agree with what is under the name now."""
        if not self._looked:
            self._restore = _first_place(self.path, self._from_start)
            self._places = list(self._restore)
            self._not_yet = not self._restore and self.path.exists()
            self._looked = True
        try:
            found = self.path.stat()
            self._gone_at = None
        except OSError as error:
            now = self._clock.monotonic()
            self._gone_at = now if self._gone_at is None else self._gone_at
            if self._open and now - self._gone_at < LINGER_S:
                return  # between a rename and the new file: the old one is still open
            raise Unreachable(
                f"the log {self.path} cannot be read: {error.strerror}", hint="check the path and the right to read it"
            ) from error
        current = self._open[-1] if self._open else None
        if current is None:
            self._begin()
            return
        if (found.st_dev, found.st_ino) != current.identity:
            self._renamed(current)
        elif not current.place.is_in(current.file):
            self._truncated(current)

    def _begin(self) -> None:
        """Open the file for the first time, or find the place again after a restart."""
        file = self._opened()
        if self._not_yet:
            self._restore, self._not_yet = _first_place(self.path, from_start=False), False
        if not self._restore:
            self._open = [Open(file, 0)]
            return
        newest = self._restore[-1]
        if newest.is_in(file):
            for place in self._restore[:-1]:
                self._linger(next(since(self.path, place), None))
            self._open.append(Open(file, newest.offset, newest.skipping))
        else:
            behind = list(since(self.path, self._restore[0]))
            if not behind:
                self._say(
                    f"{self.path}: the file that was read before is gone; lines between then and now may be missing"
                )
            for found in behind:
                self._linger(found)
            self._open.append(Open(file, 0))
        self._restore = []

    def _linger(self, found: tuple[BinaryIO, int] | None) -> None:
        if found is not None:
            self._open.append(Open(*found, until=self._soon()))

    def _renamed(self, current: Open) -> None:
        file = self._opened()
        if current.offset and current.place.is_in(file):
            # written anew with the same content (rsync, an editor): not a new log
            current.file.close()
            current.file = file
            return
        current.until = self._soon()
        self._open.append(Open(file, 0))

    def _truncated(self, current: Open) -> None:
        """copytruncate: what we had not read yet is in the copy, if there is one."""
        copies = list(since(self.path, current.place))
        if not copies:
            self._say(f"{self.path}: was truncated without a copy; lines written just before may be missing")
        self._open.remove(current)
        for found in copies:
            self._linger(found)
        self._open.append(Open(current.file, 0))

    def _opened(self) -> BinaryIO:
        try:
            # O_NONBLOCK: a FIFO without a writer must not hang us; it is refused below like all that is no file
            descriptor = os.open(self.path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            raise Unreachable(f"the log {self.path} cannot be opened: {error.strerror}") from error
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise Unreachable(f"the log {self.path} is not a regular file")
        return open(descriptor, "rb")  # noqa: PTH123  (the descriptor is what was looked at)

    def _soon(self) -> float:
        return self._clock.monotonic() + LINGER_S

    def _say(self, problem: str) -> None:
        self.problems = (*self.problems, problem)[-20:]

    def _lines_of(self, file: Open, most: int) -> tuple[int, list[LogEvent]]:
        """Read on in one file, up to its last line end. A file that has lost its name for good is read to its end."""
        file.file.seek(file.offset)
        data = file.file.read(most)
        end = data.rfind(b"\n") + 1
        done, skipping = file.done, file.skipping
        if file.until is not None and len(data) < most and self._clock.monotonic() >= file.until:
            end, done = len(data), True
        start = 0
        if skipping:
            start = data.find(b"\n") + 1
            skipping = not start
            if skipping:
                start = end = len(data)
        elif not end and len(data) >= LONGEST:
            end, skipping = len(data), True
        found = self._events(data[start:end]) if end > start else []
        file.take(data[:end])
        file.done, file.skipping = done, skipping
        return len(data), found

    def _events(self, block: bytes) -> list[LogEvent]:
        now = self._clock.now()
        reference = Reference(now=now, tz=self._zone, boot=self._boot)
        found: list[LogEvent] = []
        for _, raw in lines_at(block, self._find(block)):
            line = parse(raw, reference)
            if line.kernel and not self._trusted:
                line = line._replace(kernel=None)
            event = self._grammar.classify(line)
            if event is not None:
                found.append(self._log_event(event, now))
        return found

    def _log_event(self, event: Event, now: float) -> LogEvent:
        """In the words of the model."""
        host = event.host or self._host
        node = self._resolve(host) if host else None
        if node is None and (host in self.unknown or len(self.unknown) < MOST_UNKNOWN):
            self.unknown[host] = self.unknown.get(host, 0) + 1
        said = event.verdict
        at, timed = self._time(event.time, host, now)
        return LogEvent(
            at=at,
            host=host,
            component=said.component,
            kind=said.kind,
            code=said.code,
            role=Role(said.role),
            severity=said.severity,
            action=said.action,
            proof=said.proof,
            trusted=event.trusted,
            rule=said.rule,
            message=event.message,
            node=node,
            source=self.source,
            read_at=now,
            timed=timed,
        )

    def _time(self, said: float | None, host: str, now: float) -> tuple[float, bool]:
        """When a line was written, and whether that is known. One without a time, or with one that cannot be, counts as
        written when it was read; that is its time only if it was written since the last read, not long ago."""
        if said is not None and said <= now + AHEAD_S:
            return said, True
        if said is not None and host not in self._ahead and len(self._ahead) < MOST_UNKNOWN:
            self._ahead.add(host)
            self._say(
                f"{self.path}: {host or 'a line'} stamps lines {said - now:,.0f} s ahead (a wrong clock or zone?); they "
                "are taken as written when they were read"
            )
        return now, self._up_to is not None and now - self._up_to <= LIVE_S

    def _leave(self) -> None:
        """Close files that have lost their name long enough ago and are read to their end."""
        for file in [file for file in self._open if file.done]:
            self._open.remove(file)
            file.file.close()


def _in_a_thread(work: Callable[[], Heard]) -> Future[Heard]:
    """Runs at once in a thread of its own. It is a daemon, because one that hangs must not hold up the others' threads
    nor our end."""
    future: Future[Heard] = Future()
    future.set_running_or_notify_cancel()  # so that giving up the waiting does not cancel the work

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:  # noqa: BLE001  (handed to whoever waits)
            future.set_exception(error)

    threading.Thread(target=run, name="log", daemon=True).start()
    return future


def _first_place(path: Path, from_start: bool) -> list[Place]:
    """The start of a file, or its end (where its last line begins, if that has no end yet); none where there is no file."""
    try:
        if not path.is_file():  # a FIFO would wait for its writer
            return []
        file = path.open("rb")
    except OSError:
        return []
    with file:
        if from_start:
            return [Open(file, 0).place]
        start = max(0, file.seek(0, 2) - MAX_LINE)
        file.seek(start)
        last = file.read()
        return [Open(file, start + last.rfind(b"\n") + 1 if b"\n" in last else start).place]


def _places(cursor: Mapping[str, Any] | None) -> list[Place]:
    if not cursor:
        return []
    try:
        return [Place.from_dict(raw) for raw in cursor["places"]]
    except (KeyError, TypeError, ValueError) as error:
        raise Broken(f"the stored place in a log cannot be read: {cursor!r}") from error
