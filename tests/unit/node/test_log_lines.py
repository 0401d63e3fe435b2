"""Line formats: time, host, writer and message of each form; malformed ones never raise."""

from __future__ import annotations

from datetime import timedelta, timezone
from zoneinfo import ZoneInfo

import pytest

from nodeworthy_node.log import Reference, parse
from nodeworthy_node.log.lines import MAX_LINE

NOW = 1796060423.0  # 2026-11-30T17:40:23Z
BOOT = NOW - 100_000
SEEN = Reference(now=NOW, boot=BOOT)

XID = "NVRM: Xid (PCI:0000:04:00): 79, GPU has fallen off the bus."
AT = 1796059800.0  # 2026-11-30T17:30:00Z

# raw, time, host, identifier, kernel
FORMS = {
    "classic": (f"Nov 30 17:30:00 n3 kernel: {XID}", AT, "n3", "kernel", True),
    "classic, kernel counter": (f"Nov 30 17:30:00 n3 kernel: [12345.678901] {XID}", AT, "n3", "kernel", True),
    "classic, thread": (f"Nov 30 17:30:00 n3 kernel: [  130.456250] [ T1946] {XID}", AT, "n3", "kernel", True),
    "classic, one-digit day": (f"Nov  3 17:30:00 n3 kernel: {XID}", AT - 27 * 86400, "n3", "kernel", True),
    "classic, year before": (f"2025 Nov 30 17:30:00 n3 kernel: {XID}", AT - 365 * 86400, "n3", "kernel", True),
    "classic, year after": (f"Nov 30 2025 17:30:00 n3 kernel: {XID}", AT - 365 * 86400, "n3", "kernel", True),
    "classic, last year": (f"Dec 31 17:30:00 n3 kernel: {XID}", AT - 334 * 86400, "n3", "kernel", True),
    "classic, program": (f"Nov 30 17:30:00 n3 alice[77]: {XID}", AT, "n3", "alice", False),
    "classic, kernel with a process id": (f"Nov 30 17:30:00 n3 kernel[77]: {XID}", AT, "n3", "kernel", False),
    "classic, facility": (f"Nov 30 17:30:00 n3 kern.warn kernel: {XID}", AT, "n3", "kernel", True),
    "classic, user facility": (f"Nov 30 17:30:00 n3 user.notice kernel: {XID}", AT, "n3", "kernel", False),
    "priority kern": (f"<4>Nov 30 17:30:00 n3 kernel: {XID}", AT, "n3", "kernel", True),
    "priority user": (f"<13>Nov 30 17:30:00 n3 kernel: {XID}", AT, "n3", "kernel", False),
    "priority kern, iso": (f"<4>2026-11-30T17:30:00+00:00 n3 kernel: {XID}", AT, "n3", "kernel", True),
    "priority user, iso": (f"<13>2026-11-30T17:30:00+00:00 n3 kernel: {XID}", AT, "n3", "kernel", False),
    "rfc5424": (f"<4>1 2026-11-30T17:30:00Z n3 kernel - - - {XID}", AT, "n3", "kernel", True),
    "rfc5424, structured": (f'<4>1 2026-11-30T17:30:00+00:00 n3 kernel - - [a b="c"] {XID}', AT, "n3", "kernel", True),
    "rfc5424, user": (f"<13>1 2026-11-30T17:30:00Z n3 kernel - - - {XID}", AT, "n3", "kernel", False),
    "rfc5424, program": (f"<4>1 2026-11-30T17:30:00Z n3 alice 77 - - {XID}", AT, "n3", "alice", False),
    "iso syslog": (f"2026-11-30T18:30:00.000000+01:00 n3 kernel: {XID}", AT, "n3", "kernel", True),
    "short-iso": (f"2026-11-30T17:30:00+0000 n3.example kernel: {XID}", AT, "n3.example", "kernel", True),
    "iso, program": (f"2026-11-30T17:30:00+00:00 n3 nhc[1]: {XID}", AT, "n3", "nhc", False),
    "kmsg": (f"4,1234,50000000,-;{XID}", BOOT + 50, "", "kernel", True),
    "kmsg, more fields": (f"4,1234,50000000,-,caller=T1;{XID}", BOOT + 50, "", "kernel", True),
    "kmsg, from user space": (f"12,1234,50000000,-;{XID}", BOOT + 50, "", "", False),
    "dmesg": (f"[   50.500000] {XID}", BOOT + 50.5, "", "kernel", True),
    "dmesg -T": (f"[Mon Nov 30 17:30:00 2026] {XID}", AT, "", "kernel", True),
    "dmesg iso": (f"2026-11-30T17:30:00,500000+00:00 {XID}", AT + 0.5, "", "kernel", True),
    "dmesg -x iso": (f"kern  :err   : 2026-11-30T17:30:00,500000+00:00 {XID}", AT + 0.5, "", "kernel", True),
    "dmesg -x": (f"kern  :warn  : [   50.500000] {XID}", BOOT + 50.5, "", "kernel", True),
    "dmesg -x, user": (f"user  :warn  : [   50.500000] {XID}", BOOT + 50.5, "", "", False),
    "dmesg -r": (f"<4>[   50.500000] {XID}", BOOT + 50.5, "", "kernel", True),
    "slurm": (f"[2026-11-30T17:30:00.000] {XID}", AT, "", "", False),
    "console server": (f"[2026-11-30 17:30:00.000000][50.500000] {XID}", AT, "", "", None),
    "fabric manager": (f"[Nov 30 2026 17:30:00] [ERROR] [tid 1] {XID}", AT, "", "nv-fabricmanager", False),
    "bare": (XID, None, "", "", None),
    "bare kernel": (f"kernel: [50.5] {XID}", None, "", "kernel", True),
    "journald": (
        '{"__REALTIME_TIMESTAMP":"1796059800000000","_HOSTNAME":"n3","SYSLOG_IDENTIFIER":"kernel","_TRANSPORT":"kernel",'
        f'"_BOOT_ID":"b1","MESSAGE":"{XID}"}}',
        AT,
        "n3",
        "kernel",
        True,
    ),
    "journald, logger -t kernel": (
        '{"__REALTIME_TIMESTAMP":"1796059800000000","_HOSTNAME":"n3","SYSLOG_IDENTIFIER":"kernel","_TRANSPORT":"syslog",'
        f'"MESSAGE":"{XID}"}}',
        AT,
        "n3",
        "kernel",
        False,
    ),
    "journald, bytes": (
        '{"__REALTIME_TIMESTAMP":"1796059800000000","_HOSTNAME":"n3","_TRANSPORT":"kernel","MESSAGE":'
        f"{list(XID.encode())}}}",
        AT,
        "n3",
        "",
        True,
    ),
    "json of a shipper": (f'{{"host":"n3","message":"{XID}"}}', None, "n3", "", None),
}


@pytest.mark.parametrize(("raw", "at", "host", "identifier", "kernel"), FORMS.values(), ids=FORMS)
def test_form(raw: str, at: float | None, host: str, identifier: str, kernel: bool | None) -> None:
    """Each form gives its time, host, writer and transport, and the bare message."""
    line = parse(raw.encode(), SEEN)
    assert line.time == (None if at is None else pytest.approx(at, abs=1e-4))
    assert (line.host, line.identifier, line.kernel) == (host, identifier, kernel)
    assert line.message.endswith(XID)
    if kernel:
        assert line.message == XID


@pytest.mark.parametrize(
    ("raw", "note"),
    [
        (b"Nov 30 17:30:00 n3 kernel: x", "the line has no year, and no reference time is given"),
        (b"[ 12.5] x", "seconds since an unknown boot"),
        (b"[...] x", "the time of the line cannot be read"),
        (b"Nov 31 17:30:00 n3 kernel: x", "the line has no year, and no reference time is given"),
        (b"2026-13-40T17:30:00Z n3 kernel: x", "no such date or time"),
        (b"x", "the line has no time"),
        (b"", "the line has no time"),
    ],
)
def test_a_time_that_cannot_be_known_is_none_with_a_reason(raw: bytes, note: str) -> None:
    """No clock is read and no time invented."""
    line = parse(raw, Reference())
    assert line.time is None
    assert line.note == note


def test_kernel_counter_is_kept() -> None:
    """Without a boot time the kernel's own counter still orders lines."""
    assert parse(b"[ 3606.832215] x", Reference()).uptime == 3606.832215


def test_zone_of_the_writer() -> None:
    """A stamp without a zone is read in the zone given, with its summer time."""
    berlin = Reference(now=NOW, tz=ZoneInfo("Europe/Berlin"))
    assert parse(b"Nov 30 18:30:00 n3 kernel: x", berlin).time == AT
    assert parse(b"Jul 30 19:30:00 n3 kernel: x", berlin).time == AT - 123 * 86400
    assert parse(b"Nov 30 12:30:00 n3 kernel: x", Reference(now=NOW, tz=timezone(timedelta(hours=-5)))).time == AT


def test_leap_day_without_a_year() -> None:
    """29 February goes to the latest year that has one."""
    line = parse(b"Feb 29 00:00:00 n3 kernel: x", SEEN)
    assert line.time == 1709164800.0  # 2024-02-29


def test_new_year() -> None:
    """A line of 31 December that is read on 1 January belongs to the year before; a clock some hours ahead does not."""
    first = Reference(now=1798761900.0)  # 2027-01-01T00:05:00Z
    assert parse(b"Dec 31 23:59:00 n3 kernel: x", first).time == 1798761540.0
    assert parse(b"Jan  1 02:00:00 n3 kernel: x", first).time == 1798768800.0


def test_nul_run_before_a_line() -> None:
    """What a power loss or a truncated file leaves before a line does not hide it."""
    line = parse(b"\0" * (2 * MAX_LINE) + f"Nov 30 17:30:00 n3 kernel: {XID}".encode(), SEEN)
    assert (line.host, line.message) == ("n3", XID)


@pytest.mark.parametrize(
    "raw",
    [
        b"{",
        b"{}",
        b"[]",
        b'{"MESSAGE": 5}',
        b'{"MESSAGE": [300]}',
        b'{"MESSAGE":"x","__REALTIME_TIMESTAMP":"soon"}',
        b"{" * 50_000,
    ],
)
def test_broken_json_is_a_line(raw: bytes) -> None:
    """Text that looks like JSON and is none, or says nothing, does no harm."""
    assert parse(raw, SEEN).time is None


def test_sel_rows() -> None:
    """Rows of `ipmitool sel list` in the date forms of several versions."""
    for raw in (
        b"   1 | 11/30/2026 | 17:30:00 | Power Supply #0xc4 | Failure detected () | Asserted",
        b"  3a | 11/30/26 | 17:30:00 UTC | Power Supply #0xc4 | Failure detected () | Asserted",
        b"  34 | 11/30/2026 | 05:30:00 PM UTC | Power Supply #0xc4 | Failure detected () | Asserted",
    ):
        line = parse(raw, SEEN)
        assert (line.time, line.identifier) == (AT, "ipmi-sel")
        assert line.message.startswith("Power Supply #0xc4 |")


@pytest.mark.parametrize("stamp", ['"soon"', "9" * 400, '"-5"', '"' + "9" * 18 + '"', "1.5", "[]"])
def test_an_impossible_time_in_a_journal_record_is_no_time(stamp: str) -> None:
    """A number of hundreds of digits, a negative one, one after the year 5138: the line stays, its time is unknown."""
    record = f'{{"MESSAGE":"x","__REALTIME_TIMESTAMP":{stamp},"__MONOTONIC_TIMESTAMP":{stamp}}}'
    line = parse(record.encode(), Reference(now=1796060423.0))
    assert (line.message, line.time, line.uptime) == ("x", None, None)
    assert line.note
