"""What an NVSwitch `SXid` line says.

One error is three lines: the header (`22013, Non-fatal, Link 44 Minion Link DLREQ interrupt`), its data words
and its severity. Only the header is an event; the other two continue it. Whether an error is fatal is said by the
line; the table (`sxid.toml`) says what fatal means for that code: one port's partition, or the whole fabric.
"""

import re
from collections.abc import Mapping
from typing import Any, Optional

from nodeworthy_node.log.event import ERROR, FATAL, INFO, ORIGIN, UNKNOWN, WARNING, Verdict
from nodeworthy_node.log.xid import pci

_CONTINUES = re.compile(r"(?:Data \{|Severity \d)")
_HEADER = re.compile(r"(?:(?P<fatality>Fatal|Non-fatal)(?:,|$| error))? ?(?:Link (?P<link>\d+) )?(?P<text>.*)")


def decode(found: "re.Match[str]", tables: Mapping[str, Any], verdict: Verdict) -> Optional[Verdict]:
    rest = (found.group("rest") or "").strip()
    if _CONTINUES.match(rest):
        return None
    code = found.group("code") or ""
    component = pci(found.group("component") or "")
    details: dict[str, Any] = {"switch": found.group("switch")} if found.group("switch") else {}
    if not code:
        meaning = "An NVSwitch error whose code cannot be read: the line is cut or garbled."
        return verdict._replace(code=UNKNOWN, component=component, meaning=meaning, details=details)
    said = _HEADER.match(rest)
    fatal = None
    if said is not None:
        fatal = {"Fatal": True, "Non-fatal": False}.get(said.group("fatality") or "")
        if said.group("link"):
            details["link"] = int(said.group("link"))
        if said.group("text"):
            details["text"] = said.group("text").strip()
    if fatal is not None:
        details["fatal"] = fatal
    base = verdict._replace(code=code, component=component, details=details)
    return _meant(base, tables["sxid"].get(code), fatal)


def _meant(base: Verdict, entry: Optional[Mapping[str, Any]], fatal: Optional[bool]) -> Verdict:
    """The line's own word on fatality goes before the table's: the same code can be either."""
    if entry is None:
        severity = {True: ERROR, False: INFO, None: WARNING}[fatal]
        role = ORIGIN if fatal else UNKNOWN
        action = "reset-fabric" if fatal else "none"
        meaning = f"SXid {base.code} is not in the catalogue; the switch says " + (
            "nothing of how bad it is." if fatal is None else ("fatal." if fatal else "non-fatal.")
        )
        return base._replace(role=role, severity=severity, action=action, meaning=meaning)
    meant = base._replace(
        role=entry["role"],
        severity=entry["severity"],
        action=entry["action"],
        proof=entry["proof"],
        meaning=entry["meaning"],
    )
    if fatal is False:
        severity = WARNING if entry["severity"] in (ERROR, FATAL, WARNING) else INFO
        action = "observe" if entry["severity"] in (ERROR, FATAL) else entry["action"]
        return meant._replace(severity=severity, action=action)
    return meant
