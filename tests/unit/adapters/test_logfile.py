"""Following a log file: rotation, truncation, restarts, partial lines; nothing missed, nothing twice."""

from __future__ import annotations

import asyncio
import gzip
import json
import os
import shutil
import threading
from pathlib import Path

import pytest

from nodeworthy.adapters.files.literals import finder
from nodeworthy.adapters.files.log_rules import load_grammar
from nodeworthy.adapters.logfile import LogFile
from nodeworthy.adapters.logfile import tail as tail_module
from nodeworthy.errors import Broken, Unreachable
from nodeworthy.model.event import LogEvent, Role

NOW = 1796060423.0  # 2026-11-30T17:40:23Z


class HandClock:
    """A clock that the test moves."""

    def __init__(self) -> None:
        self.at = 0.0

    def now(self) -> float:
        return NOW + self.at

    def monotonic(self) -> float:
        return self.at

    async def sleep(self, seconds: float) -> None:
        self.at += seconds


def line(number: int, host: str = "n3") -> str:
    """A kernel line whose process id tells it from all others."""
    return f"2026-11-30T17:40:00.000000+00:00 {host} kernel: NVRM: Xid (PCI:0000:04:00): 79, pid={number}, name=p, GPU has fallen off the bus.\n"


def append(path: Path, text: str) -> None:
    with path.open("a") as file:
        file.write(text)


def follow(path: Path, clock: HandClock, cursor: dict[str, object] | None = None, **options: object) -> LogFile:
    grammar = load_grammar()
    known = {"n3": "node3", "n4": "node4"}
    return LogFile(
        path,
        grammar=grammar,
        find=finder(grammar.literals),
        clock=clock,
        resolve=known.get,
        cursor=cursor,
        **options,  # type: ignore[arg-type]
    )


def restart(log: LogFile, path: Path, clock: HandClock) -> LogFile:
    """A new process: only what survives being written down as JSON comes through."""
    return follow(path, clock, json.loads(json.dumps(log.cursor())))


def numbers(log: LogFile) -> list[int]:
    """The process ids in what one read gives."""
    return [int(event.message.split("pid=")[1].split(",")[0]) for event in asyncio.run(log.read())]


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "kern.log"


def test_event_in_the_words_of_the_model(path: Path, clock: HandClock) -> None:
    """A line becomes a LogEvent with its own time, the resolved node and the trust of its transport."""
    path.touch()
    log = follow(path, clock)
    assert asyncio.run(log.read()) == []
    append(path, line(1))
    (event,) = asyncio.run(log.read())
    assert isinstance(event, LogEvent)
    assert (event.kind, event.code, event.role, event.component) == ("xid", "79", Role.ORIGIN, "0000:04:00.0")
    assert (event.host, event.node, event.trusted, event.gpu) == ("n3", "node3", True, None)
    assert event.at == NOW - 23
    assert event.source == str(path)
    assert follow(path, clock, source="kern").source == "kern"


def test_only_the_new_part(path: Path, clock: HandClock) -> None:
    """A file that is already there is read from its end, and each line comes once."""
    append(path, line(1))
    log = follow(path, clock)
    assert numbers(log) == []
    append(path, line(2) + line(3))
    assert numbers(log) == [2, 3]
    assert numbers(log) == []


def test_from_start(path: Path, clock: HandClock) -> None:
    """`from_start` reads what is there."""
    append(path, line(1))
    assert numbers(follow(path, clock, from_start=True)) == [1]


def test_partial_last_line_waits(path: Path, clock: HandClock) -> None:
    """A line without its end is not an event until the end is written."""
    path.touch()
    log = follow(path, clock)
    text = line(7)
    append(path, text[:90])
    assert numbers(log) == []
    append(path, text[90:])
    assert numbers(log) == [7]


def test_partial_line_at_the_start_is_not_lost(path: Path, clock: HandClock) -> None:
    """A line that is half written when following starts is an event when it is whole."""
    text = line(8)
    append(path, line(1) + text[:50])
    log = follow(path, clock)
    assert numbers(log) == []
    append(path, text[50:])
    assert numbers(log) == [8]


def test_missing_file_is_an_error_until_it_is_there(path: Path, clock: HandClock) -> None:
    """No file is "cannot see", not "nothing there"; when it appears it is read from its beginning."""
    log = follow(path, clock)
    with pytest.raises(Unreachable, match="cannot be read"):
        asyncio.run(log.read())
    append(path, line(1))
    assert numbers(log) == [1]


def test_a_file_that_cannot_be_opened_at_first(path: Path, clock: HandClock) -> None:
    """What was already there when a file could not yet be opened is old, and is not replayed later."""
    path.mkdir()
    log = follow(path, clock)
    with pytest.raises(Unreachable, match="is not a regular file"):
        asyncio.run(log.read())
    path.rmdir()
    append(path, line(1))
    assert numbers(log) == []
    append(path, line(2))
    assert numbers(log) == [2]


def test_rotation_by_rename(path: Path, clock: HandClock) -> None:
    """Lines written to the old file before and after its rename, and to the new one, all come once."""
    append(path, line(1))
    log = follow(path, clock, from_start=True)
    assert numbers(log) == [1]
    with path.open("a") as writer:
        writer.write(line(2))
        writer.flush()
        path.rename(path.with_name("kern.log.1"))
        assert numbers(log) == [2]  # no file has the name at this moment
        append(path, line(4))
        writer.write(line(3))
        writer.flush()
        assert numbers(log) == [3, 4]
        writer.write(line(5))
        writer.flush()
        assert numbers(log) == [5]
    clock.at += 120
    assert numbers(log) == []
    append(path, line(6))
    assert numbers(log) == [6]
    assert len(log.cursor()["places"]) == 1  # type: ignore[arg-type]


def test_last_line_of_a_rotated_file_without_its_end(path: Path, clock: HandClock) -> None:
    """What a dead writer left half written in a rotated file counts as a line in the end."""
    append(path, line(1))
    log = follow(path, clock, from_start=True)
    assert numbers(log) == [1]
    append(path, line(2).rstrip("\n"))
    path.rename(path.with_name("kern.log.1"))
    append(path, line(3))
    assert numbers(log) == [3]
    clock.at += 120
    assert numbers(log) == [2]


def test_a_file_that_is_written_anew(path: Path, clock: HandClock) -> None:
    """A copy that rsync puts in the place of the old one, with more in it, is not replayed."""
    append(path, line(1))
    log = follow(path, clock, from_start=True)
    assert numbers(log) == [1]
    for number in (2, 3):
        copy = path.with_name(".kern.log.tmp")
        copy.write_text(path.read_text() + line(number))
        copy.rename(path)
        assert numbers(log) == [number]


def test_copytruncate(path: Path, clock: HandClock) -> None:
    """Lines written between our last look and the truncation are found in the copy."""
    append(path, line(1))
    log = follow(path, clock, from_start=True)
    assert numbers(log) == [1]
    append(path, line(2))
    shutil.copy(path, path.with_name("kern.log.1"))
    os.truncate(path, 0)
    append(path, line(3))
    assert numbers(log) == [2, 3]


def test_copytruncate_that_grew_past_our_place(path: Path, clock: HandClock) -> None:
    """A truncated file that is already longer than before is not mistaken for the old one."""
    append(path, line(1))
    log = follow(path, clock, from_start=True)
    assert numbers(log) == [1]
    shutil.copy(path, path.with_name("kern.log.1"))
    os.truncate(path, 0)
    append(path, line(2) + line(3) + line(4))
    assert numbers(log) == [2, 3, 4]


def test_truncation_without_a_copy_is_said(path: Path, clock: HandClock) -> None:
    """Where lines may be lost, the log says so."""
    append(path, line(1))
    log = follow(path, clock, from_start=True)
    numbers(log)
    os.truncate(path, 0)
    append(path, line(2))
    assert numbers(log) == [2]
    assert "truncated without a copy" in log.problems[0]


def test_restart_goes_on(path: Path, clock: HandClock) -> None:
    """A new process with the stored cursor reads what was written meanwhile, once."""
    append(path, line(1))
    log = follow(path, clock, from_start=True)
    numbers(log)
    append(path, line(2))
    log = restart(log, path, clock)
    assert numbers(log) == [2]
    log = restart(log, path, clock)
    assert numbers(log) == []


def test_close_and_go_on(path: Path, clock: HandClock) -> None:
    """After `close` reading goes on where it stood."""
    append(path, line(1))
    log = follow(path, clock, from_start=True)
    assert numbers(log) == [1]
    log.close()
    append(path, line(2))
    assert numbers(log) == [2]


@pytest.mark.parametrize("compress", [False, True], ids=["plain", "gz"])
def test_restart_after_two_rotations(path: Path, clock: HandClock, compress: bool) -> None:
    """Two rotations while we were down: the rest of the oldest, all of the next, then the present file."""
    append(path, line(1))
    log = follow(path, clock, from_start=True)
    numbers(log)
    append(path, line(2))
    second, first = path.with_name("kern.log.2"), path.with_name("kern.log.1")
    if compress:
        second = path.with_name("kern.log.2.gz")
        second.write_bytes(gzip.compress(path.read_bytes()))
        path.unlink()
    else:
        path.rename(second)
    os.utime(second, (NOW - 200, NOW - 200))
    append(first, line(3))
    os.utime(first, (NOW - 100, NOW - 100))
    append(path, line(4))
    append(path.with_name("kern.log.bak.txt"), line(99))
    log = restart(log, path, clock)
    assert numbers(log) == [2, 3, 4]
    log = restart(log, path, clock)
    assert numbers(log) == []


def test_restart_while_an_old_file_lingers(path: Path, clock: HandClock) -> None:
    """A restart within the minute after a rotation loses nothing that comes late into the old file."""
    append(path, line(1))
    log = follow(path, clock, from_start=True)
    numbers(log)
    old = path.with_name("kern.log.1")
    path.rename(old)
    append(path, line(2))
    assert numbers(log) == [2]
    append(old, line(3))
    log = restart(log, path, clock)
    assert numbers(log) == [3]


def test_restart_when_the_old_file_is_gone(path: Path, clock: HandClock) -> None:
    """Where what was written meanwhile cannot be found, that is said, and the new file is read from its beginning."""
    append(path, line(1))
    log = follow(path, clock, from_start=True)
    numbers(log)
    path.unlink()
    append(path, line(2))
    log = restart(log, path, clock)
    assert numbers(log) == [2]
    assert "may be missing" in log.problems[0]


def test_restart_before_anything_was_read(path: Path, clock: HandClock) -> None:
    """A cursor at offset 0 of a file that was rotated since still finds that file."""
    path.touch()
    log = follow(path, clock)
    numbers(log)
    append(path, line(1))
    path.rename(path.with_name("kern.log.1"))
    append(path, line(2))
    assert numbers(restart(log, path, clock)) == [1, 2]


def test_unknown_hosts_are_counted(path: Path, clock: HandClock) -> None:
    """A host that the fleet does not know is an event without a node, and its name is kept."""
    path.touch()
    log = follow(path, clock)
    numbers(log)
    append(path, line(1, "stranger") + line(2, "n4") + line(3, "stranger"))
    nodes = [event.node for event in asyncio.run(log.read())]
    assert nodes == [None, "node4", None]
    assert log.unknown_names == ("stranger",)
    assert log.unknown == {"stranger": 2}


def test_a_host_that_the_fleet_learns_is_no_stranger_any_more(
    path: Path, clock: HandClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It need not speak again for that: unknown hosts are asked for anew."""
    append(path, line(1, "stranger") + line(2, "other"))
    log = follow(path, clock, from_start=True)
    numbers(log)
    assert log.unknown_names == ("stranger", "other")
    monkeypatch.setattr(log, "_resolve", {"stranger": "n9"}.get)
    clock.at += 60
    assert numbers(log) == []
    assert log.unknown_names == ("other",)


def test_a_line_without_a_host_belongs_to_the_given_one(path: Path, clock: HandClock) -> None:
    """A node's own dmesg names no host."""
    path.touch()
    log = follow(path, clock, host="n4", boot=NOW - 1000)
    numbers(log)
    append(path, "[  900.500000] NVRM: Xid (PCI:0000:04:00): 79, GPU has fallen off the bus.\n")
    (event,) = asyncio.run(log.read())
    assert (event.node, event.at) == ("node4", NOW - 99.5)


def test_line_without_end_cannot_fill_the_memory(path: Path, clock: HandClock, monkeypatch: pytest.MonkeyPatch) -> None:
    """A line of many megabytes is cut and skipped, and its neighbours are read."""
    monkeypatch.setattr(tail_module, "LONGEST", 4096)
    monkeypatch.setattr(tail_module, "MOST", 8192)
    path.touch()
    log = follow(path, clock)
    numbers(log)
    append(path, line(1) + "x" * 50_000 + "NVRM: Xid (PCI:0000:04:00): 48, pid=9," + "y" * 10 + "\n" + line(2))
    seen = []
    for _ in range(12):
        seen += numbers(log)
    assert seen == [1, 2]


def test_backlog_comes_in_parts(path: Path, clock: HandClock, monkeypatch: pytest.MonkeyPatch) -> None:
    """A backlog larger than one read is read on in the next, in order."""
    monkeypatch.setattr(tail_module, "MOST", 1000)
    append(path, "".join(line(number) for number in range(40)))
    log = follow(path, clock, from_start=True)
    seen = []
    for _ in range(10):
        seen += numbers(log)
    assert seen == list(range(40))


def test_nothing_in_a_distrusted_file_is_trusted(path: Path, clock: HandClock) -> None:
    """Whoever may write to the file chooses tag, priority, form and journal fields alike: none of them proves anything."""
    path.touch()
    log = follow(path, clock, trusted=False)
    numbers(log)
    xid = "NVRM: Xid (PCI:0000:04:00): 79, pid=1, name=p, GPU has fallen off the bus."
    journal = {"_TRANSPORT": "kernel", "_HOSTNAME": "n3", "MESSAGE": xid, "__REALTIME_TIMESTAMP": "1796060400000000"}
    forms = [
        line(1),
        "<4>" + line(2),
        f"[  900.500000] {xid}\n",
        f"<0>[  900.500000] {xid}\n",
        f"kern  :err   : [  900.500000] {xid}\n",
        f"3,1234,900500000,-;{xid}\n",
        json.dumps(journal) + "\n",
    ]
    append(path, "".join(forms))
    events = asyncio.run(log.read())
    assert len(events) == len(forms)
    assert not any(event.trusted for event in events)
    believing = follow(path, clock, from_start=True)
    assert all(event.trusted for event in asyncio.run(believing.read()))


class Slow:
    """A mount that hangs until it is let go: `stat` of the log waits."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, log: LogFile) -> None:
        self.go, self.calls = threading.Event(), 0
        look = log._look

        def hang() -> None:
            self.calls += 1
            self.go.wait(20)
            look()

        monkeypatch.setattr(log, "_look", hang)


def test_a_hung_mount_loses_no_line(path: Path, clock: HandClock, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reading that was given up is waited for again, by one thread, and its lines come once, with their cursor."""
    append(path, line(1))
    log = follow(path, clock, from_start=True)
    mount = Slow(monkeypatch, log)

    async def play() -> list[int]:
        for _ in range(3):
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(log.read(), 0.02)
        assert log.cursor()["places"] == []
        mount.go.set()
        while not log._reading.done():  # type: ignore[union-attr]
            await asyncio.sleep(0.001)
        assert log.cursor()["places"][0]["offset"] == 0, "what nobody has been handed is not behind the cursor"
        return [len(await log.read()), mount.calls]

    assert asyncio.run(play()) == [1, 1]
    assert len(log.cursor()["places"]) == 1  # type: ignore[arg-type]
    assert numbers(log) == []


def test_making_it_touches_no_file(path: Path, clock: HandClock, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is made in the event loop, which a dead mount must not stop: the first look is the first reading's."""

    def dead(*_: object, **__: object) -> None:
        raise AssertionError("looked at a file")

    with monkeypatch.context() as hung:
        for name in ("stat", "open", "exists"):
            hung.setattr(Path, name, dead)
        follow(path, clock)
        follow(path, clock, from_start=True)


def test_a_damaged_rotated_file_stops_nothing(path: Path, clock: HandClock) -> None:
    """What follows a bad place in a compressed file is lost and said; the other files are read all the same."""
    append(path, line(1))
    log = follow(path, clock, from_start=True)
    numbers(log)
    append(path, line(2))
    packed = bytearray(gzip.compress(path.read_bytes() + os.urandom(200_000)))
    packed[-100_000:] = b"x" * 100_000
    path.with_name("kern.log.2.gz").write_bytes(packed)
    os.utime(path.with_name("kern.log.2.gz"), (NOW - 200, NOW - 200))
    path.unlink()
    append(path.with_name("kern.log.1"), line(3))
    append(path, line(4))
    log = restart(log, path, clock)
    seen = numbers(log)
    assert seen[-2:] == [3, 4]
    assert "cannot be read on" in log.problems[0]
    append(path, line(5))
    assert numbers(log) == [5]


def test_a_file_that_fails_keeps_nothing_from_the_others(
    path: Path, clock: HandClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lines of the rotated file are handed over although the present one cannot be read; that one is read later."""
    append(path, line(1))
    log = follow(path, clock, from_start=True)
    numbers(log)
    append(path, line(2))
    path.rename(path.with_name("kern.log.1"))
    append(path, line(3))
    lines_of = log._lines_of

    def failing(file: tail_module.Open, most: int) -> tuple[int, list[LogEvent]]:
        if file is log._open[-1]:
            raise OSError(5, "Input/output error")
        return lines_of(file, most)

    with monkeypatch.context() as broken:
        broken.setattr(log, "_lines_of", failing)
        assert numbers(log) == [2]
        with pytest.raises(Unreachable, match="Input/output error"):
            asyncio.run(log.read())
    assert numbers(log) == [3]


def test_a_defect_in_classifying_moves_nothing(path: Path, clock: HandClock, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file stands where it stood until its lines are events."""
    append(path, line(1))
    log = follow(path, clock, from_start=True)
    with monkeypatch.context() as broken:
        broken.setattr(log, "_log_event", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            asyncio.run(log.read())
    assert numbers(log) == [1]


def test_a_damaged_cursor_is_our_error(path: Path, clock: HandClock) -> None:
    """A cursor that cannot be read is not silently taken for none."""
    with pytest.raises(Broken, match="stored place"):
        follow(path, clock, {"places": [{"device": "x"}]})


BARE = "NVRM: Xid (PCI:0000:04:00): 79, pid=1, name=p, GPU has fallen off the bus.\n"


def test_a_line_without_a_time_is_timed_only_while_we_keep_up(path: Path, clock: HandClock) -> None:
    """Of a backlog nobody knows when it was written; between two reads it can only have been written between them."""
    append(path, BARE)
    log = follow(path, clock, host="n3", from_start=True)
    (first,) = asyncio.run(log.read())
    assert (first.at, first.read_at, first.timed) == (NOW, NOW, False)
    clock.at += 5
    append(path, BARE)
    (live,) = asyncio.run(log.read())
    assert (live.at, live.timed) == (NOW + 5, True)
    clock.at += 3600
    append(path, BARE)
    (late,) = asyncio.run(log.read())
    assert late.timed is False


def test_a_backlog_in_parts_stays_a_backlog(path: Path, clock: HandClock, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second part of a file that is read after a long time is as old as the first."""
    monkeypatch.setattr(tail_module, "MOST", len(BARE) + 1)
    append(path, BARE * 3)
    log = follow(path, clock, host="n3", from_start=True)
    found: list[LogEvent] = []
    while len(found) < 3:
        found += asyncio.run(log.read())
        clock.at += 5
    assert [event.timed for event in found] == [False] * 3


def test_a_line_from_the_future_is_taken_at_its_reading_and_said(path: Path, clock: HandClock) -> None:
    """A stamp of another zone would outlive the next boot; one of a clock that is a little ahead is left as it is."""
    path.touch()
    log = follow(path, clock)
    asyncio.run(log.read())
    append(path, line(1).replace("17:40:00", "21:40:00") + line(2).replace("17:40:00", "17:40:26"))
    ahead, near = asyncio.run(log.read())
    assert (ahead.at, ahead.read_at, ahead.timed) == (NOW, NOW, True)
    assert near.at == NOW + 3
    (problem,) = log.problems
    assert "n3" in problem
    assert "ahead" in problem
    clock.at += 5
    append(path, line(3).replace("17:40:00", "21:40:00"))
    asyncio.run(log.read())
    assert len(log.problems) == 1


def test_a_deleted_log_is_not_fine_for_ever(path: Path, clock: HandClock) -> None:
    """Between a rename and the new file nothing is wrong; a minute later there is no log."""
    append(path, line(1))
    log = follow(path, clock, from_start=True)
    assert numbers(log) == [1]
    path.unlink()
    assert numbers(log) == []

    clock.at += 61.0
    with pytest.raises(Unreachable, match="No such file"):
        numbers(log)

    append(path, line(2))
    assert numbers(log) == [2]


def test_a_fifo_is_refused_and_does_not_hang(path: Path, clock: HandClock) -> None:
    """Opening a FIFO without a writer would wait for ever; it is said, and a file in its place is read."""
    os.mkfifo(path)
    log = follow(path, clock)
    with pytest.raises(Unreachable, match="not a regular file"):
        numbers(log)

    path.unlink()
    append(path, line(1))
    assert numbers(log) == [], "what is there by the time it can be opened is old"
    append(path, line(2))
    assert numbers(log) == [2]
