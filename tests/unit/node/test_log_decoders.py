"""What the driver writes beyond a code: Xid 154, 74, 144-150 and 63, and the switch errors."""

from __future__ import annotations

import pytest

from nodeworthy.adapters.files.log_rules import load_grammar
from nodeworthy_node.log import Event, Line


def said(message: str) -> Event | None:
    return load_grammar().classify(Line(1.0, "n3", "kernel", True, message, "test"))


def xid(text: str) -> Event:
    event = said(f"NVRM: Xid (PCI:0000:04:00): {text}")
    assert event is not None
    return event


@pytest.mark.parametrize(
    ("text", "action", "severity", "recommendation"),
    [
        ("0x0 (None) to 0x1 (GPU Reset Required)", "reset-gpu", "error", "GPU Reset Required"),
        ("0x0 (None) to 0x2 (Node Reboot Required)", "reboot", "fatal", "Node Reboot Required"),
        ("0x0 (None) to 0x4 (Drain and Reset)", "reset-gpu", "error", "Drain and Reset"),
        ("0x1 (GPU Reset Required) to 0x0 (None)", "none", "info", "None"),
        ("0x0 (None) to 0x9 (Call Somebody)", "ticket", "warning", "Call Somebody"),
    ],
)
def test_xid_154_follows_its_text(text: str, action: str, severity: str, recommendation: str) -> None:
    """The driver's own recommendation is taken, and its blame stays open."""
    event = xid(f"154, GPU recovery action changed from {text}")
    assert (event.verdict.action, event.verdict.severity, event.verdict.role) == (action, severity, "symptom")
    assert event.verdict.details["recommendation"] == recommendation


def test_xid_154_cut() -> None:
    """A malformed 154 recommends nothing."""
    event = xid("154, GPU recovery action")
    assert (event.verdict.action, event.verdict.role) == ("none", "symptom")
    assert "recommendation" not in event.verdict.details


@pytest.mark.parametrize(
    ("text", "role", "severity", "action", "details"),
    [
        ("145, RLW_REMAP Nonfatal XC0 i0 Link 00 (0x00000004 0x00000001 0x0 0x0)", "symptom", "warning", "observe", {"link": 0}),
        ("145, RLW_REMAP Nonfatal XC1 i0 Link 10 (0x00000004 0x00000040 0x0)", "origin", "error", "reset-gpu", {"cross_contained": True}),
        ("145, RLW_RXPIPE Fatal XC0 i0 Link 13 (0x0409a0c2 0x00000004 0x1)", "unknown", "error", "reset-gpu", {"fatal": True}),
        ("145, pid=7, name=ray::W, RLW_SRC_TRACK Nonfatal XC1 i1 Link 12 (0x040988e2 0x00000008)", "symptom", "warning", "observe", {"process": "ray::W", "injected": True}),
        ("146, TLW_RX/TLW_RX_PIPE0 Fatal XC0 i0 Link 00 (0x0000000a 0x00000004 0x0)", "origin", "error", "reset-gpu", {"unit": "TLW_RX_PIPE0"}),
        ("149, NETIR_LINK_EVT Fatal XC0 i0 Link 08 (0x004505c6 0x00000000 0x0)", "origin", "error", "reset-gpu", {"down_reason": 4, "suspect": "link"}),
        ("149, NETIR_LINK_EVT/NETIR_LINK_DOWN Fatal XC0 i0 Link 00 (0x01500011 0x0)", "symptom", "error", "reset-gpu", {"down_reason": 21, "suspect": "peer"}),
        ("149, NETIR_BER_EVENT Nonfatal XC0 i0 Link 03 (0x00086226 0x00000001)", "origin", "warning", "check-cabling", {"link": 3}),
        ("149, NETIR Fatal XC0 i0 Link -1 (0x000fe406 0x00000000)", "symptom", "error", "reset-gpu", {"link": -1}),
        ("150, MSE_WATCHDOG Fatal XC0 i0 Link 00 (0x00000000 0x00000000)", "origin", "fatal", "reset-gpu", {}),
        ("144, NEW_UNIT Nonfatal XC0 i0 Link 00 (0x00000000 0x00000001)", "unknown", "warning", "observe", {"unit": "NEW_UNIT"}),
        ("144, NEW_UNIT Fatal XC0 i0 Link 00 (0x00000000 0x00000001)", "origin", "error", "reset-gpu", {}),
    ],
)  # fmt: skip
def test_nvlink5(text: str, role: str, severity: str, action: str, details: dict[str, object]) -> None:
    """Sub-unit, fatal bit, status and reason decide; what is decoded is kept."""
    event = xid(text)
    assert (event.verdict.role, event.verdict.severity, event.verdict.action) == (role, severity, action)
    assert event.verdict.details.items() >= details.items()


@pytest.mark.parametrize(
    "text",
    [
        "145, RLW_REMAP",
        "145, RLW_REMAP Nonfatal XC1 i0",
        "145, RLW_REMAP Nonfatal XC1 i0 Link 10 (0x00000082 0x000",
        "145, %s %s XC0 i0 Link 00 (%s",
    ],
)
def test_nvlink5_cut(text: str) -> None:
    """A cut line of a family that must be decoded decides nothing."""
    event = xid(text)
    assert event.verdict.code == "145"
    assert event.verdict.role in ("unknown", "symptom")
    assert not event.holds


@pytest.mark.parametrize(
    ("registers", "role", "action"),
    [
        ("0x100, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0", "origin", "check-mechanical"),
        ("0x2, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0", "symptom", "observe"),
        ("0x0, 0x0, 0x2000, 0x0, 0x0, 0x0, 0x0", "origin", "ticket"),
        ("0x0, 0x0, 0x0, 0x40000, 0x0, 0x0, 0x0", "symptom", "reset-fabric"),
        ("0x102, 0x0, 0x0, 0x30000, 0x0, 0x0, 0x0", "origin", "check-mechanical"),
    ],
)
def test_xid_74_registers(registers: str, role: str, action: str) -> None:
    """The worst register bit decides; bits of the other end alone make it a symptom."""
    event = xid(f"74, pid='<unknown>', name=<unknown>, NVLink: error detected on link 14({registers})")
    assert (event.verdict.role, event.verdict.action) == (role, action)
    assert event.verdict.details["link"] == 14
    assert event.verdict.details["bits"]


def test_xid_74_that_says_fatal() -> None:
    """A link with a fatal error stays down until a reset, whatever its bits say."""
    event = xid("74, NVLink: fatal error detected on link 14(0x0, 0x0, 0x10000, 0x0, 0x0, 0x0, 0x0)")
    assert (event.verdict.severity, event.verdict.action) == ("error", "reset-gpu")


def test_row_remap_waits_for_a_reset() -> None:
    """Xid 63 that asks for a reset says so in its details."""
    event = xid("63, pid=1896, Row Remapper: New row marked for remapping, reset gpu to activate.")
    assert "waits for a reset" in event.verdict.details["pending"]


@pytest.mark.parametrize(
    ("text", "severity", "role"),
    [
        ("20034, Fatal, Link 48 LTSSM Fault Up", "error", "unknown"),
        ("12020, Fatal, Link 48 egress sequence id error", "fatal", "origin"),
        ("12028, Non-fatal, Link 32 egress non-posted PRIV error (First)", "warning", "application"),
        ("24007, Fatal, Link 28 sourcetrack timeout error (First)", "error", "origin"),
        ("24007, Non-fatal, Link 28 sourcetrack timeout error (First)", "warning", "origin"),
        ("99999, Fatal, Link 3 something", "error", "origin"),
        ("99999, Non-fatal, something", "info", "unknown"),
        ("99999, something", "warning", "unknown"),
    ],
)
def test_sxid(text: str, severity: str, role: str) -> None:
    """The line's own word on fatality goes before the table's."""
    event = said(f"nvidia-nvswitch1: SXid (PCI:0000:06:00.0): {text}")
    assert event is not None
    assert (event.verdict.severity, event.verdict.role) == (severity, role)


@pytest.mark.parametrize(
    "text", ["20034, Data {0x10000000, 0x10000000}", "20034, Severity 1 Engine instance 60 Sub-engine instance 00"]
)
def test_sxid_detail_lines_continue_their_event(text: str) -> None:
    """The data and severity lines of a switch error are not events of their own."""
    assert said(f"nvidia-nvswitch1: SXid (PCI:0000:06:00.0): {text}") is None
