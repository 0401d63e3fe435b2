"""Situations from the field, as their metrics arrived: what must be read of them, and what must not."""

from __future__ import annotations

from pathlib import Path

import pytest

from nodeworthy.adapters.files.catalogue import load
from nodeworthy.observe.coverage import Coverage
from nodeworthy.observe.exposition import parse
from nodeworthy.observe.telemetry import exposed, to_batch
from nodeworthy.ports import TelemetryBatch
from tests.telemetry_words import SIGNALS, cell, shared_file

CASES = Path(__file__).parents[1] / "data" / "exposition"
NOW = 1_796_000_000.0


def batch_of(text: str, *nodes: str, built_in: bool = False) -> TelemetryBatch:
    page = parse(text, at=NOW)
    assert page.unreadable == 0
    signals = exposed(load().signals.values() if built_in else SIGNALS)
    return to_batch(page.samples, signals, lambda n: n if n in nodes else None, source="exporters", at=NOW)


def test_workload_labels_do_not_make_more_gpus() -> None:
    """dcgm-exporter 340: one RTX 4090 shown as three series by its pods is one GPU with one temperature."""
    text = shared_file("cases/mo-duplicate-series-pod-label/input.prom").read_text()
    batch = batch_of(text, "worker1", built_in=True)
    assert batch.frames["gpu"].height == 1
    assert cell(batch, "gpu", "worker1", "0", "gpu_temperature") == 41.0
    assert cell(batch, "gpu", "worker1", "0", "gpu_model") == "NVIDIA GeForce RTX 4090"
    assert batch.problems == ()


def test_clock_event_bits_arrive_whole() -> None:
    """dcgm-exporter 254: 96 on gpu1 is thermal; gpu0 speaks through MIG rows only; gpu2 saw heat in the window."""
    text = shared_file("cases/mo-throttle-bitmask-decode/input.prom").read_text()
    batch = batch_of(text, "node-a")
    frame = batch.frames["gpu"]
    assert sorted(frame["index"]) == ["1", "2"]
    mask = cell(batch, "gpu", "node-a", "1", "clock_event_reasons")
    assert isinstance(mask, int) and mask & 0x20 and mask & 0x40 and not mask & 0x1
    assert cell(batch, "gpu", "node-a", "2", "thermal_clock_events") == 1
    assert cell(batch, "gpu", "node-a", "2", "clock_event_reasons") is None
    assert batch.problems == ()


def test_zero_and_not_available_differ() -> None:
    """dcgm-exporter 700: after an upgrade fields vanish; absent is unknown, and the loss is a problem of the source."""
    before = batch_of((CASES / "dcgm-two-gpus.prom").read_text(), "n1", built_in=True)
    gone = ("XID_ERRORS", "CLOCK_THROTTLE_REASONS")
    lines = (CASES / "dcgm-two-gpus.prom").read_text().splitlines(keepends=True)
    after = batch_of("".join(x for x in lines if not any(g in x for g in gone)), "n1", built_in=True)
    assert cell(before, "gpu", "n1", "0", "last_xid") == 0
    assert "last_xid" not in after.frames["gpu"].columns
    assert cell(after, "gpu", "n1", "0", "gpu_temperature") is not None
    coverage = Coverage()
    assert coverage.missing(before) == ()
    (sentence,) = coverage.missing(after)
    assert sentence == "2 signals were reported before and now by nobody: clock_event_reasons, last_xid"
    assert coverage.missing(after) == (sentence,), "it is said as long as it lasts"
    assert coverage.missing(before) == ()


def test_the_last_xid_is_a_number_and_no_event() -> None:
    """dcgm-exporter 500: the gauge keeps the last Xid for ever; no check may act on it, and the batch has no events."""
    catalogue = load()
    assert [c.id for c in catalogue.checks.values() if c.condition and "last_xid" in c.condition and c.effect] == []
    text = 'DCGM_FI_DEV_XID_ERRORS{gpu="3",Hostname="n1"} 79\n'
    assert cell(batch_of(text, "n1", built_in=True), "gpu", "n1", "3", "last_xid") == 79


def test_the_published_page_of_eight_gpus_is_understood() -> None:
    """Eight H100s under dcgm-exporter on driver 580: a row for each, identity and numbers right."""
    text = shared_file("samples/dcgm/dcgm-exporter-8xh100.prom").read_text()
    batch = batch_of(text, "gpu-node-1", built_in=True)
    assert batch.frames["gpu"].height == 8 and batch.problems == () and batch.unknown_names == ()
    assert cell(batch, "gpu", "gpu-node-1", "0", "power_draw") == pytest.approx(113.611)
    assert cell(batch, "gpu", "gpu-node-1", "7", "gpu_uuid") == "GPU-04d228d3-3b5a-3534-f5cf-969706647d56"
    assert cell(batch, "gpu", "gpu-node-1", "7", "gpu_driver_version") == "580.105.08"


def test_a_real_node_exporter_page_is_understood() -> None:
    """A page of Debian's node_exporter 1.5 on a virtual machine; its -1 Mbit/s link is unknown, not slow."""
    page = parse((CASES / "node-exporter-1.5.prom").read_text(), at=NOW, target="vm:9100")
    signals = exposed(load().signals.values())
    batch = to_batch(page.samples, signals, {"vm": "vm"}.get, source="exporters", at=NOW)
    assert cell(batch, "node", "vm", "", "load_1m") == 1.08
    assert cell(batch, "node", "vm", "", "root_readonly") is False
    assert str(cell(batch, "node", "vm", "", "kernel_release")).startswith("6.")
    assert cell(batch, "nic", "vm", "eth0", "net_carrier") is True
    assert cell(batch, "nic", "vm", "eth0", "net_speed") is None
    assert any("net_speed: 1 values not used, impossible for float" in p for p in batch.problems)
