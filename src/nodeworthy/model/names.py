"""The many ways in which one machine, GPU or slot is written, brought to one form; nothing here knows a fleet."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

# what firmware says when nobody has written a serial (dmidecode, Redfish, NVML): it names nothing
_PLACEHOLDERS: Final = frozenset(
    [
        "0",
        "none",
        "null",
        "n/a",
        "na",
        "unknown",
        "default",
        "default_string",
        "not_specified",
        "not_available",
        "not_applicable",
        "to_be_filled_by_o.e.m.",
        "system_serial_number",
        "chassis_serial_number",
        "0123456789",
        "123456789",
        "1234567890",
        "xxxxxxxxxx",
        "empty",
        "oem",
    ]
)


def serial_number(text: str) -> str:
    """A serial without blanks around it; empty for the fillers of firmware (`To be filled by O.E.M.`)."""
    serial = text.strip()
    word = "_".join(serial.lower().strip("[]").split())
    return "" if word in _PLACEHOLDERS or not word.strip("0.-_") else serial


def gpu_uuid(text: str) -> str:
    """A GPU's UUID as NVML writes it: `GPU-` and lower-case hex."""
    uuid = text.strip()
    return f"GPU-{uuid[4:].lower()}" if uuid[:4].lower() == "gpu-" else uuid


@lru_cache(maxsize=4096)  # a fleet has few distinct addresses and asks for each of them often
def pci_address(text: str) -> str | None:
    """A PCI address in one form, `0000:3b:00.0`; None if it is none.

    Understands `0000:3b:00` (Xid lines), `00000000:3B:00.0` (NVML), `PCI:0000:3b:00`, `3b:00.0` (lspci, domain 0).
    """
    match = _PCI.fullmatch(text.strip())
    if match is None:
        return None
    domain, bus, device = int(match["domain"] or "0", 16), int(match["bus"], 16), int(match["device"], 16)
    return f"{domain:04x}:{bus:02x}:{device:02x}.{int(match['function'] or '0', 16):x}"


_PCI = re.compile(
    r"(?:PCI:\s*)?(?:(?P<domain>[0-9a-f]{1,8}):)?(?P<bus>[0-9a-f]{2}):(?P<device>[0-9a-f]{2})(?:\.(?P<function>[0-7]))?",
    re.IGNORECASE,
)
_SCHEME = re.compile(r"^[a-z][a-z0-9+.-]*://", re.IGNORECASE)
_PORT = re.compile(r"^(?P<host>\[[^\]]*\]|[^:]*):(?P<port>\d{1,5})$")


def host_and_port(text: str) -> tuple[str, str]:
    """`http://N1.x.org:9400/metrics` → ("n1.x.org", "9400"). The port is empty where there is none."""
    host, port = text.strip(), ""
    if "/" in host:
        host = _SCHEME.sub("", host).partition("/")[0]
    if ":" in host and (match := _PORT.match(host)):
        host, port = match["host"], match["port"]
    return host.strip("[]").rstrip(".").lower(), port


def is_address(host: str) -> bool:
    """Whether a host is an IP address (which has no short form)."""
    if ":" not in host and not host.replace(".", "").isdigit():
        return False
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def short_name(host: str) -> str:
    """The first label of a host name; an IP address is whole."""
    return host if is_address(host) else host.partition(".")[0]


class HostNames:
    """Claims of nodes on host names of one kind. A short name and a full one agree if their first labels do; two
    full names agree only if they are equal; a port decides only where both have one."""

    def __init__(self) -> None:
        self.by_host: dict[str, dict[str, set[str]]] = {}  # host → node → ports ("" = any)
        self.by_short: dict[str, set[str]] = {}  # first label → full hosts
        self.texts: dict[str, str] = {}

    def claim(self, text: str, node: str) -> None:
        host, port = host_and_port(text)
        if not host:
            return
        self.by_host.setdefault(host, {}).setdefault(node, set()).add(port)
        short = short_name(host)
        if short != host:
            self.by_short.setdefault(short, set()).add(host)
        self.texts.setdefault(text, node)

    def claimants(self, text: str) -> set[str]:
        host, port = host_and_port(text)
        short = short_name(host)
        hosts = (host, short) if short != host else (host, *self.by_short.get(host, ()))
        return {
            node
            for name in hosts
            for node, ports in self.by_host.get(name, {}).items()
            if not port or "" in ports or port in ports
        }

    def shared(self) -> Iterator[tuple[str, set[str]]]:
        """Names that more than one node claims as they are written."""
        for text in self.texts:
            nodes = self.claimants(text)
            if len(nodes) > 1:
                yield text, nodes

    def known(self) -> set[str]:
        """Every form under which a claim is found."""
        return {*self.texts, *self.by_host, *self.by_short}
