"""Words that the telemetry tests share: some signals of the catalogue's kind, a clock, and reading at once."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from nodeworthy.model.catalogue import Signal, SourceField
from nodeworthy.observe.samples import Samples, join
from nodeworthy.ports import Telemetry, TelemetryBatch


def dcgm(name: str, **more: object) -> SourceField:
    return SourceField("dcgm", name, **more)  # type: ignore[arg-type]


def host(name: str, **more: object) -> SourceField:
    return SourceField("node_exporter", name, **more)  # type: ignore[arg-type]


SIGNALS = (
    Signal("gpu_uuid", "gpu", "str", "", "", (dcgm("DCGM_FI_DEV_GPU_TEMP", value_label="UUID"),)),
    Signal(
        "gpu_temperature",
        "gpu",
        "float",
        "celsius",
        "",
        (dcgm("DCGM_FI_DEV_GPU_TEMP"), dcgm("DCGM_FI_DEV_GPU_TEMP_CELSIUS")),
        minimum=-40.0,
        maximum=150.0,
    ),
    Signal("power_draw", "gpu", "float", "watt", "", (dcgm("DCGM_FI_DEV_POWER_USAGE"),), minimum=0.0, maximum=5000.0),
    Signal("energy", "gpu", "float", "joule", "", (dcgm("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", scale=0.001),), True),
    Signal(
        "clock_event_reasons",
        "gpu",
        "int",
        "bits",
        "",
        (dcgm("DCGM_FI_DEV_CLOCK_THROTTLE_REASONS"), dcgm("DCGM_FI_DEV_CLOCKS_EVENT_REASONS")),
        minimum=0.0,
        maximum=65535.0,
    ),
    Signal("last_xid", "gpu", "int", "code", "", (dcgm("DCGM_FI_DEV_XID_ERRORS"),), minimum=0.0, maximum=1000.0),
    Signal("row_remap_pending", "gpu", "bool", "", "", (dcgm("DCGM_FI_DEV_ROW_REMAP_PENDING"),)),
    Signal(
        "thermal_clock_events",
        "gpu",
        "int",
        "events",
        "",
        (dcgm("DCGM_EXP_CLOCK_EVENTS_COUNT", labels={"clock_event": "hw_thermal"}),),
        minimum=0.0,
    ),
    Signal("ib_state", "nic", "int", "code", "", (host("node_infiniband_state_id"),), minimum=0.0, maximum=5.0),
    Signal(
        "net_speed",
        "nic",
        "float",
        "gigabit/second",
        "",
        (host("node_network_speed_bytes", scale=8e-9),),
        minimum=0.001,
        maximum=10000.0,
    ),
    Signal("edac_corrected", "node", "int", "errors", "", (host("node_edac_correctable_errors_total"),), True),
    Signal("root_readonly", "node", "bool", "", "", (host("node_filesystem_readonly", labels={"mountpoint": "/"}),)),
    Signal("kernel_release", "node", "str", "", "", (host("node_uname_info", value_label="release"),)),
    Signal("load_1m", "node", "float", "processes", "", (host("node_load1"),), minimum=0.0),
    Signal("scheduler_gpus", "node", "int", "gpus", "", (SourceField("slurm", "gpus"),)),
)


def read(telemetry: Telemetry) -> TelemetryBatch:
    return asyncio.run(telemetry.read())


def nothing() -> Samples:
    return join([])


def cell(batch: TelemetryBatch, kind: str, node: str, index: str, signal: str) -> object:
    """One cell of a batch; fails if the row is not there exactly once."""
    frame = batch.frames[kind]
    rows = [row for row in frame.iter_rows(named=True) if (row["node"], row["index"]) == (node, index)]
    assert len(rows) == 1, f"{len(rows)} rows of {node} {kind}{index}"
    return rows[0][signal]


def reason(batch: TelemetryBatch, node: str, index: str, signal: str) -> str | None:
    """Why a cell is null, as the batch says; None if it does not say."""
    assert batch.unknown is not None
    reasons = [
        row["reason"]
        for row in batch.unknown.iter_rows(named=True)
        if (row["node"], row["index"], row["signal"]) == (node, index, signal)
    ]
    assert len(reasons) <= 1
    return reasons[0] if reasons else None


def shared_file(relative: str) -> Path:
    """A file of the shared samples and cases, or a skip that says why."""
    root = Path(os.environ.get("NODEWORTHY_SHARED", Path(__file__).parents[2] / "shared"))
    for candidate in (root, Path(__file__).parents[3] / "shared"):
        if (candidate / relative).exists():
            return candidate / relative
    pytest.skip(f"the shared samples are not here ({root / relative}); set NODEWORTHY_SHARED")
