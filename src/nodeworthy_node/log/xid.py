"""What an `NVRM: Xid` line says beyond its code.

    NVRM: Xid (PCI:0000:04:00): 31, pid=123, name=python3, Ch 00000008, …
    NVRM: Xid (PCI:0000:04:00): 154, GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)
    NVRM: Xid (PCI:0000:04:00): 145, RLW_REMAP Nonfatal XC0 i0 Link 00 (0x00000004 0x00000001 …)

The meaning of a code comes from the table (`xid.toml`); three families are decided by their text: 154 carries the
driver's own recommendation, 74 has register bits and 144-150 name a sub-unit, a link and error words (`nvlink`).
A code that is not in the table, or a line that is cut before its code, is reported as what it is: unknown.
"""

import re
from collections.abc import Mapping
from typing import Any, Optional

from nodeworthy_node.log import nvlink
from nodeworthy_node.log.event import ERROR, FATAL, INFO, SYMPTOM, UNKNOWN, WARNING, Verdict

_PROCESS = re.compile(r"\bpid='?(?P<pid>[^',\s]+)'?(?:, name=(?P<process>[^,]{1,64}))?")
_RECOVERY = re.compile(r"recovery action changed from 0x([0-9a-fA-F]+) \(([^)]*)\) to 0x([0-9a-fA-F]+) \(([^)]*)\)")
_GSP = re.compile(r"GPU(?P<gpu_instance>\d+) GSP! Expected function (?P<gsp_function>\d+ \([A-Z_0-9]+\))")
_CONTAINMENT = re.compile(
    r"(?P<unit>Contained|Uncontained): (?P<where>[^.]{1,80})\. RST: (?P<rst>\w+), D-RST: (?P<drst>\w+)"
)
_EXCEPTION = re.compile(r"\(GPC (?P<gpc>\d+), TPC (?P<tpc>\d+)(?:, SM (?P<sm>\d+))?\): (?P<exception>[\w ]+)")
_MMU = re.compile(r"ENGINE (?P<engine>\S+).* faulted @ (?P<address>\S+?)\.? .*type (?P<fault>\w+) (?P<access>\w+)")
_TEXTS = (_GSP, _CONTAINMENT, _EXCEPTION, _MMU)

_PCI = re.compile(r"([0-9a-fA-F]{4,8}):([0-9a-fA-F]{2}):([0-9a-fA-F]{2})(?:\.([0-9a-fA-F]))?")

# the driver's recommendation (154) in our words; anything else is kept as it is said
RECOVERY_ACTIONS: Mapping[str, "tuple[str, str]"] = {
    "none": ("none", INFO),
    "gpu reset required": ("reset-gpu", ERROR),
    "drain and reset": ("reset-gpu", ERROR),
    "drain p2p": ("stop-p2p", WARNING),
    "node reboot required": ("reboot", FATAL),
}


def pci(name: str) -> str:
    """A PCI address in one form: NVRM leaves the function out, others write a domain of eight digits.

    >>> pci("0000:9B:00")
    '0000:9b:00.0'
    >>> pci("00000000:86:00.0")
    '0000:86:00.0'
    >>> pci("CPU4")
    'CPU4'
    """
    found = _PCI.fullmatch(name)
    if found is None:
        return name
    domain, bus, device, function = found.groups(default="0")
    return f"{int(domain, 16):04x}:{bus}:{device}.{function}".lower()


def decode(found: "re.Match[str]", tables: Mapping[str, Any], verdict: Verdict) -> Optional[Verdict]:
    rest = found.group("rest") or ""
    code = found.group("code") or ""
    component = pci(found.group("component") or "")
    details = _details(rest)
    if found.group("mig"):
        details["mig_instance"] = found.group("mig")
    if not code:
        meaning = "A GPU error whose code cannot be read: the line is cut or garbled."
        return verdict._replace(code=UNKNOWN, component=component, meaning=meaning, details=details)
    entry = tables["xid"].get(code)
    base = verdict._replace(code=code, component=component, details=details)
    if entry is None:
        return base._replace(meaning=f"Xid {code} is not in the catalogue.")
    base = base._replace(
        role=entry["role"],
        severity=entry["severity"],
        action=entry["action"],
        proof=entry["proof"],
        meaning=entry["meaning"],
    )
    if code == "154":
        return _recommendation(base, rest)
    if code == "74":
        return nvlink.decode_registers(base, rest, tables)
    if 144 <= int(code) <= 150:
        return nvlink.decode_link5(base, rest, tables)
    if "reset gpu to activate" in rest:
        return base._replace(details={**details, "pending": "a row remap waits for a reset of the GPU"})
    return base


def _details(rest: str) -> dict[str, Any]:
    details: dict[str, Any] = {}
    process = _PROCESS.search(rest)
    if process is not None:
        pid, name = process.group("pid"), process.group("process")
        if pid.isdigit():
            details["pid"] = int(pid)
        if name and name != "<unknown>":
            details["process"] = name
    for text in _TEXTS:
        said = text.search(rest)
        if said is not None:
            details.update((key, value) for key, value in said.groupdict().items() if value)
    return details


def _recommendation(base: Verdict, rest: str) -> Verdict:
    """Xid 154 is about another error: what it asks for counts, and whose fault it is stays open."""
    said = _RECOVERY.search(rest)
    if said is None:
        return base._replace(action="none", meaning="The driver changed its recommendation; the line is cut before it.")
    before, after = said.group(2), said.group(4)
    action, severity = RECOVERY_ACTIONS.get(after.strip().lower(), ("ticket", WARNING))
    return base._replace(
        role=SYMPTOM,
        severity=severity,
        action=action,
        meaning=f"The driver now recommends: {after}.",
        details={
            **base.details,
            "recommendation": after,
            "before": before,
            "recommendation_code": int(said.group(3), 16),
        },
    )
