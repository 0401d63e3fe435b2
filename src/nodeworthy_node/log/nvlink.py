"""NVLink errors: register bits of Xid 74 (up to NVLink 4) and the words of Xid 144-150 (NVLink 5).

Sources: NVIDIA's public Xid catalogue. Xid 144-150: `<sub-unit> <Fatal|Nonfatal> XC<n> i<n> Link <l> (IntrInfo
ErrorStatus d0 …)`; for a link that went down the reason is bits 25:20 of IntrInfo. Link -1 is the whole GPU.
The tables are data (`xid.toml`: nvlink5, registers74).
"""

import re
from collections.abc import Mapping
from typing import Any, Optional

from nodeworthy_node.log.event import ERROR, ORIGIN, SEVERITIES, SYMPTOM, UNKNOWN, WARNING, Verdict

_LINK5 = re.compile(
    r"(?P<unit>[A-Z][A-Z0-9_/]*)\s+(?P<fatality>Fatal|Nonfatal)\s+XC(?P<cross>\d)\s+i(?P<injected>\d)"
    r"(?:\s+Link\s+(?P<link>-?\d+))?(?:\s*\((?P<words>[0-9a-fA-Fx ]*)(?P<closed>\))?)?"
)
_REGISTERS = re.compile(r"link (?P<link>-?\d+) ?\((?P<words>0x[0-9a-fA-F]+(?:, ?0x[0-9a-fA-F]+)*)\)")
LINK_DOWN = ("NETIR_LINK_DOWN", "NETIR_LINK_EVT")


def decode_link5(base: Verdict, rest: str, tables: Mapping[str, Any]) -> Verdict:
    said = _LINK5.search(rest)
    if said is None:
        return base._replace(role=UNKNOWN, meaning=base.meaning + " The line does not say which unit or link.")
    words = [int(word, 16) for word in re.findall(r"0x([0-9a-fA-F]{1,8})(?![0-9a-fA-F])", said.group("words") or "")]
    unit = said.group("unit").rsplit("/", 1)[-1]
    fatal = said.group("fatality") == "Fatal"
    details: dict[str, Any] = {
        **base.details,
        "unit": unit,
        "fatal": fatal,
        "cross_contained": said.group("cross") == "1",
        "injected": said.group("injected") == "1",
        "registers": [f"0x{word:08x}" for word in words],
    }
    if said.group("link") is not None:
        details["link"] = int(said.group("link"))
    status: Optional[int] = None
    if unit in LINK_DOWN and words:
        status = words[0] >> 20 & 0x3F
        details["down_reason"] = status
    elif len(words) > 1:
        status = words[1]
    entry = _link5_entry(tables["nvlink5"], base.code, unit, status)
    return _meant(base._replace(details=details), entry, fatal, status)


def _link5_entry(
    entries: list[Mapping[str, Any]], code: str, unit: str, status: Optional[int]
) -> Optional[Mapping[str, Any]]:
    """The entry for this status; an entry without `status` stands for any. 0x80000000 is the same for all units."""
    for entry in entries:
        if entry["xid"] == code and any(unit.startswith(name) for name in entry["units"]):
            wanted = entry.get("status")
            if wanted is None or status in wanted:
                return entry
    return None


def _meant(base: Verdict, entry: Optional[Mapping[str, Any]], fatal: bool, status: Optional[int]) -> Verdict:
    """The fatal bit of the line promotes; the table never makes less of it."""
    if entry is None:
        return base._replace(
            role=ORIGIN if fatal else UNKNOWN,
            severity=ERROR if fatal else WARNING,
            action="reset-gpu" if fatal else "observe",
        )
    severity, action, role = entry["severity"], entry["action"], entry["role"]
    if fatal and SEVERITIES.index(severity) < SEVERITIES.index(ERROR):
        severity, action = ERROR, "reset-gpu"
    details = dict(base.details)
    if entry.get("suspect"):
        details["suspect"] = entry["suspect"]
    meaning = base.meaning if not entry.get("meaning") else f"{base.meaning} {entry['meaning']}"
    return base._replace(role=role, severity=severity, action=action, meaning=meaning, details=details)


def decode_registers(base: Verdict, rest: str, tables: Mapping[str, Any]) -> Verdict:
    """Xid 74: seven registers, of which the 1st, 3rd, 4th and 5th count (Hopper and older).

    The worst bit decides. Bits that only say that the other end had trouble make it a symptom.
    """
    said = _REGISTERS.search(rest)
    if said is None:
        return base
    words = [int(word, 16) for word in re.findall(r"0x([0-9a-fA-F]+)", said.group("words"))]
    details: dict[str, Any] = {
        **base.details,
        "link": int(said.group("link")),
        "registers": [hex(word) for word in words],
    }
    hits: list[Mapping[str, Any]] = []
    for entry in tables["registers74"]:
        position = entry["register"] - 1
        if position < len(words) and any(words[position] >> bit & 1 for bit in entry["bits"]):
            hits.append(entry)
    if not hits:
        return base._replace(details=details)
    details["bits"] = [entry["meaning"] for entry in hits]
    worst = max(hits, key=lambda entry: (entry["role"] != SYMPTOM, SEVERITIES.index(entry["severity"])))
    severity, action = worst["severity"], worst["action"]
    if "fatal error detected" in rest and SEVERITIES.index(severity) < SEVERITIES.index(ERROR):
        # whatever the bit asks for in the long run, a link with a fatal error stays down until a reset
        severity, action = ERROR, "reset-gpu"
    return base._replace(
        role=worst["role"],
        severity=severity,
        action=action,
        meaning=f"{base.meaning} {worst['meaning']}",
        details=details,
    )
