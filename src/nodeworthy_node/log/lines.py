"""Log lines: from raw bytes to (time, host, who wrote it, message).

A line may be: journald JSON; `/dev/kmsg` records; `dmesg` in each of its time forms (relative, `-T`, ISO,
`-x`, `-r`); classic syslog with or without a year; RFC 5424; ISO syslog and `journalctl -o short-iso`;
the bracketed stamps of Slurm and of the fabric manager; `ipmitool sel` rows; or a bare message.

The question that matters most is `kernel`: True when the line came by kernel transport, False when it says
that some other program wrote it, None when it does not say. A tenant can write any text with `logger`, so the
text alone is never believed. What is decided by what:
- journald: `_TRANSPORT`, which journald sets itself;
- a priority number or facility name: facility 0 (kern), which neither `logger` nor a write to `/dev/kmsg` can get;
- dmesg forms: they show the kernel's own buffer;
- text syslog without a facility: the tag is `kernel` and carries no process id.
"""

import json
import re
from typing import Any, NamedTuple, Optional

from nodeworthy_node.log.when import MONTHS, Reference, Stamp, dated, iso, since_boot

# nobody needs more of one line than this; what is longer is cut before it is looked at
MAX_LINE = 64 * 1024

_MONTH = "|".join(MONTHS)
_CLOCK = r"\d{1,2}:\d\d:\d\d"
_PRIORITY = re.compile(r"<(\d{1,3})>")
_KMSG = re.compile(r"(\d{1,4}),\d+,(\d{1,18}),[^;,]{1,4}(?:,[^;]*)?;")
_FACILITIES = "kern|user|mail|daemon|auth|syslog|lpr|news|uucp|cron|authpriv|ftp|local\\d"
_LEVELS = "emerg|panic|alert|crit|err|error|warn|warning|notice|info|debug"
_DECODED = re.compile(rf"({_FACILITIES}) *:(?:{_LEVELS}) *: ?")
_UPTIME = re.compile(r"\[ *([\d.]{1,24})\] ?(?:\[ *[TC]\d+\] ?)?")
_CTIME = re.compile(rf"\[[A-Z][a-z][a-z] ({_MONTH}) +(\d{{1,2}}) ({_CLOCK})(?:\.(\d+))? (\d{{4}})\] ?")
_ISO = re.compile(rf"(\d{{4}}-\d\d-\d\d)[T ]({_CLOCK})(?:([.,])(\d{{1,9}}))? ?(Z|[+-]\d\d:?\d\d)? +")
_BRACKET_ISO = re.compile(rf"\[(\d{{4}}-\d\d-\d\d)[T ]({_CLOCK})(?:[.,](\d{{1,9}}))?(Z|[+-]\d\d:?\d\d)?\] ?")
_BRACKET_DATE = re.compile(rf"\[({_MONTH}) +(\d{{1,2}}) (\d{{4}}) ({_CLOCK})(?:\.(\d+))?\] ?")
_CLASSIC = re.compile(rf"(?:(\d{{4}}) )?({_MONTH}) +(\d{{1,2}})(?: (\d{{4}}))? ({_CLOCK})(?:\.(\d{{1,9}}))? +")
_VERSION = re.compile(r"1 (?=\d{4}-|- )")
_5424 = re.compile(r"(\S+) (\S+) (\S+) (?:\S+) (?:-|(?:\[[^\]]*\])+)(?: |$)")
_TAG = r"([^\s:\[\]]{1,128})(?:\[([^\]\s]{1,20})\])?: ?"
_HOST_TAG = re.compile(rf"(\w[\w.:@%-]{{0,254}}) +(?:({_FACILITIES})\.(?:{_LEVELS}) +)?{_TAG}")
_KERNEL_TAG = re.compile(r"kernel(?:\[([^\]\s]{1,20})\])?: ?")
_SEL = re.compile(
    r" *[0-9a-fA-F]{1,8} \| +(\d\d)/(\d\d)/(\d{2,4}) *\| +(\d\d:\d\d:\d\d)(?: ([AP]M))?(?: ([A-Z]{3,4}))? +\| "
)


class Line(NamedTuple):
    """One log line, taken apart. Empty text: the line does not say.

    `by_tag`: that the kernel wrote it is told by the tag alone, which `logger -t kernel` can write too.
    """

    time: Optional[float]
    host: str
    identifier: str
    kernel: Optional[bool]
    message: str
    form: str
    note: str = ""
    uptime: Optional[float] = None
    boot_id: str = ""
    by_tag: bool = False


def parse(raw: bytes, reference: Reference) -> Line:
    """Take one line apart. Never raises: what has no known form is a bare message."""
    # runs of NUL come before a line where a machine lost power or a log was truncated under its writer
    text = raw.lstrip(b"\x00")[:MAX_LINE].decode("utf-8", "replace").strip("\x00\r\n\ufeff ")
    if text.startswith("{"):
        line = _from_json(text)
        if line is not None:
            return line
    if text.startswith("<"):
        return _prioritised(text, reference)
    return _headed(text, reference, None)


def _prioritised(text: str, reference: Reference) -> Line:
    found = _PRIORITY.match(text)
    if found is None:
        return _headed(text, reference, None)
    kern = int(found.group(1)) >> 3 == 0
    rest = text[found.end() :]
    version = _VERSION.match(rest)
    if version is None:
        return _headed(rest, reference, kern)
    return _rfc5424(rest[version.end() :], reference, kern)


def _rfc5424(rest: str, reference: Reference, kern: Optional[bool]) -> Line:
    stamp, _, body = rest.partition(" ")
    moment = _ISO.match(stamp + " ")
    at = Stamp(None, "the line has no time")
    if moment is not None:
        date, clock, _, fraction, zone = moment.groups(default="")
        at = iso(date, clock, fraction, zone, reference)
    found = _5424.match(body)
    if found is None:
        return Line(at.at, "", "", _both(kern, None), body, "rfc5424", at.note)
    host, app, pid = found.groups()
    tagged = app == "kernel" and pid == "-"
    message = body[found.end() :].lstrip("\ufeff")
    uptime, message = _strip_uptime(message) if tagged else (None, message)
    return Line(at.at, _named(host), _named(app), _both(kern, tagged), message, "rfc5424", at.note, uptime)


def _headed(text: str, reference: Reference, kern: Optional[bool]) -> Line:
    """A line whose form shows in its first characters. `kern`: the facility, where a priority told it."""
    first = text[:1]
    if first == "[":
        return _bracketed(text, reference, kern)
    if first.isdigit():
        found = _KMSG.match(text)
        if found is not None:
            # a write to /dev/kmsg from user space gets facility 1 whatever it asks for (Documentation/ABI/dev-kmsg)
            uptime = int(found.group(2)) / 1e6
            at = since_boot(uptime, reference)
            kernel = int(found.group(1)) >> 3 == 0
            return Line(at.at, "", "kernel" if kernel else "", kernel, text[found.end() :], "kmsg", at.note, uptime)
        found = _ISO.match(text)
        if found is not None:
            return _iso_line(text, found, reference, kern)
    if first in "kumdaslncf":
        found = _DECODED.match(text)
        if found is not None:
            return _headed(text[found.end() :], reference, found.group(1) == "kern")
    found = _CLASSIC.match(text)
    if found is not None:
        early, month, day, late, clock, fraction = found.groups(default="")
        at = dated(month, day, clock, early or late, fraction, reference)
        return _tagged(text[found.end() :], at, kern, "syslog")
    found = _SEL.match(text)
    if found is not None:
        return _sel(text, found, reference)
    return _bare(text, kern)


def _iso_line(text: str, found: "re.Match[str]", reference: Reference, kern: Optional[bool]) -> Line:
    date, clock, mark, fraction, zone = found.groups(default="")
    at = iso(date, clock, fraction, zone, reference)
    rest = text[found.end() :]
    if mark == ",":
        # dmesg --time-format=iso: a comma before the fraction, and no host
        kernel = kern if kern is not None else True
        return Line(at.at, "", "kernel" if kernel else "", kernel, rest, "dmesg-iso", at.note)
    return _tagged(rest, at, kern, "iso")


def _bracketed(text: str, reference: Reference, kern: Optional[bool]) -> Line:
    found = _UPTIME.match(text)
    if found is not None:
        kernel = True if kern is None else kern
        uptime, message = _strip_uptime(text)
        at = since_boot(uptime, reference)
        return Line(at.at, "", "kernel" if kernel else "", kernel, message, "dmesg", at.note, uptime)
    found = _CTIME.match(text)
    if found is not None:
        month, day, clock, fraction, year = found.groups(default="")
        at = dated(month, day, clock, year, fraction, reference)
        kernel = True if kern is None else kern
        return Line(at.at, "", "kernel" if kernel else "", kernel, text[found.end() :], "dmesg-T", at.note)
    found = _BRACKET_ISO.match(text)
    if found is not None:
        date, clock, fraction, zone = found.groups(default="")
        at = iso(date, clock, fraction, zone, reference)
        uptime, message = _strip_uptime(text[found.end() :])
        # a console server stamps what the kernel prints; anything else of this form is a program's own log
        return Line(at.at, "", "", None if uptime is not None else False, message, "bracketed", at.note, uptime)
    found = _BRACKET_DATE.match(text)
    if found is not None:
        month, day, year, clock, fraction = found.groups(default="")
        at = dated(month, day, clock, year, fraction, reference)
        return Line(at.at, "", "nv-fabricmanager", False, text[found.end() :], "fabric-manager", at.note)
    return _bare(text, kern)


def _tagged(rest: str, at: Stamp, kern: Optional[bool], form: str) -> Line:
    """`host tag[pid]: message`, where host, tag and pid may each be missing."""
    found = _HOST_TAG.match(rest)
    if found is None or found.group(1).endswith(":"):
        bare = _KERNEL_TAG.match(rest)
        if bare is not None:
            uptime, message = _strip_uptime(rest[bare.end() :])
            kernel = _both(kern, bare.group(1) is None)
            return Line(at.at, "", "kernel", kernel, message, form, at.note, uptime, by_tag=kern is None)
        return Line(at.at, "", "", _both(kern, None), rest, form, at.note)
    host, facility, tag, pid = found.groups()
    if facility:
        kern = facility == "kern"
    tagged = tag == "kernel" and pid is None
    message = rest[found.end() :]
    uptime, message = _strip_uptime(message) if tagged else (None, message)
    by_tag = tagged and kern is None
    return Line(at.at, host, tag, _both(kern, tagged), message, form, at.note, uptime, by_tag=by_tag)


def _bare(text: str, kern: Optional[bool]) -> Line:
    none = "the line has no time"
    found = _KERNEL_TAG.match(text)
    if found is None:
        return Line(None, "", "", kern, text, "bare", none)
    uptime, message = _strip_uptime(text[found.end() :])
    kernel = _both(kern, found.group(1) is None)
    return Line(None, "", "kernel", kernel, message, "bare", none, uptime, by_tag=kern is None)


def _sel(text: str, found: "re.Match[str]", reference: Reference) -> Line:
    """A row of `ipmitool sel list`: month/day/year, the BMC's own clock."""
    month, day, year, clock, half, zone = found.groups(default="")
    hour = int(clock[:2])
    if half:
        clock = f"{hour % 12 + (12 if half == 'PM' else 0):02d}{clock[2:]}"
    full = year if len(year) == 4 else "20" + year
    known = "Z" if zone in ("UTC", "GMT") else ""
    at = iso(f"{full}-{month}-{day}", clock, "", known, reference)
    return Line(at.at, "", "ipmi-sel", False, text[found.end() :], "ipmi-sel", at.note)


def _strip_uptime(message: str) -> "tuple[Optional[float], str]":
    """Take the kernel's own `[12345.678901]` (and `[T123]`, the calling thread) off a message."""
    found = _UPTIME.match(message)
    if found is None:
        return None, message
    try:
        return float(found.group(1)), message[found.end() :]
    except ValueError:
        return None, message[found.end() :]


def _both(kern: Optional[bool], tagged: Optional[bool]) -> Optional[bool]:
    """A facility decides where there is one, but may not contradict the tag."""
    if kern is None:
        return tagged
    return kern and tagged is not False


def _named(text: str) -> str:
    return "" if text == "-" else text


def _from_json(text: str) -> Optional[Line]:
    """`journalctl -o json`, or the JSON of a log shipper. A shipper's own words about transport are not believed."""
    try:
        record = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(record, dict):
        return None
    message = _json_message(record)
    if message is None:
        return None
    stamp = record.get("__REALTIME_TIMESTAMP") or record.get("_SOURCE_REALTIME_TIMESTAMP")
    at = _microseconds(stamp)
    note = (
        "" if at is not None else "the record has no time" if stamp is None else "the time of the record cannot be read"
    )
    transport = record.get("_TRANSPORT")
    kernel = None if transport is None else transport == "kernel"
    uptime = _microseconds(record.get("_SOURCE_MONOTONIC_TIMESTAMP") or record.get("__MONOTONIC_TIMESTAMP"))
    host = _text(record.get("_HOSTNAME") or record.get("hostname") or record.get("host"))
    identifier = _text(record.get("SYSLOG_IDENTIFIER") or record.get("_COMM"))
    if kernel and identifier not in ("", "kernel"):
        kernel = False
    return Line(at, host, identifier, kernel, message, "journald", note, uptime, _text(record.get("_BOOT_ID")))


def _json_message(record: "dict[str, Any]") -> Optional[str]:
    """The text of a record; journald writes text that is not UTF-8 as a list of byte values."""
    for key in ("MESSAGE", "message", "msg", "log"):
        value = record.get(key)
        if isinstance(value, str):
            return value.strip("\x00\r\n")
        if isinstance(value, list):
            try:
                return bytes(value).decode("utf-8", "replace").strip("\x00\r\n")
            except (ValueError, TypeError):
                return None
    return None


def _microseconds(value: object) -> Optional[float]:
    """Seconds. More than 17 digits are later than the year 5138: no time, and hundreds of them are no float either."""
    text = str(value)
    return int(text) / 1e6 if len(text) <= 17 and text.isascii() and text.isdigit() else None


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
