"""Metrics pages of a pretended GPU node, in the formats of dcgm-exporter 4.x and node_exporter 1.5.

The numbers are those of an idle DGX H100 that is well: temperatures and power as in a public page of eight
such GPUs, counters that stand or grow with time. A page is made from the node, the time and what was set.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

GPUS = 8
# where the eight GPUs of one DGX H100 sit; labs.logsource uses the same addresses
PCI_BUSES = ("53", "64", "75", "86", "97", "A8", "B9", "CA")
DRIVER = "580.105.08"
BOOTED_AT = 1_790_000_000.0
PORTS = 8  # InfiniBand

DCGM_PAGE, NODE_PAGE = "dcgm", "node"
Number = Callable[[int, float], float]  # by GPU and time
Setting = tuple[str, str, str]  # node, part ("" all, a GPU's index, a device), metric


@dataclass(frozen=True)
class Settings:
    """What a person set: numbers by (node, part, metric)."""

    values: Mapping[Setting, float] = field(default_factory=dict)

    def value(self, node: str, part: str, metric: str, normal: float) -> float:
        return self.values.get((node, part, metric), self.values.get((node, "", metric), normal))


def _still(number: float) -> Number:
    return lambda gpu, now: number


# metric → (type, help, number): the fields of the exporter's default list and others that sites add
GPU_METRICS: Mapping[str, tuple[str, str, Number]] = {
    "DCGM_FI_DEV_COUNT": ("gauge", "Number of devices on the node.", _still(GPUS)),
    "DCGM_FI_DEV_SM_CLOCK": ("gauge", "SM clock frequency (in MHz).", _still(1980)),
    "DCGM_FI_DEV_MAX_SM_CLOCK": ("gauge", "Maximum SM clock (in MHz).", _still(1980)),
    "DCGM_FI_DEV_MEM_CLOCK": ("gauge", "Memory clock frequency (in MHz).", _still(2619)),
    "DCGM_FI_DEV_MEMORY_TEMP": ("gauge", "Memory temperature (in C).", lambda g, t: 38 + g % 3),
    "DCGM_FI_DEV_GPU_TEMP": ("gauge", "GPU temperature (in C).", lambda g, t: 26 + (g * 3 + int(t) // 30) % 5),
    "DCGM_FI_DEV_GPU_TEMP_LIMIT": ("gauge", "Margin to slowdown (in C).", lambda g, t: 58 - g % 3),
    "DCGM_FI_DEV_SLOWDOWN_TEMP": ("gauge", "Slowdown temperature (in C).", _still(87)),
    "DCGM_FI_DEV_MEM_MAX_OP_TEMP": ("gauge", "Memory limit (in C).", _still(95)),
    "DCGM_FI_DEV_POWER_USAGE": ("gauge", "Power draw (in W).", lambda g, t: 66 + g * 0.347),
    "DCGM_FI_DEV_ENFORCED_POWER_LIMIT": ("gauge", "Power limit (in W).", _still(700)),
    "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION": (
        "counter",
        "Total energy consumption since boot (in mJ).",
        lambda g, t: int((t - BOOTED_AT) * 67_000),
    ),
    "DCGM_FI_DEV_PCIE_REPLAY_COUNTER": ("counter", "Total number of PCIe retries.", _still(0)),
    "DCGM_FI_DEV_PCIE_LINK_GEN": ("gauge", "PCIe generation.", _still(5)),
    "DCGM_FI_DEV_PCIE_MAX_LINK_GEN": ("gauge", "Maximum PCIe generation.", _still(5)),
    "DCGM_FI_DEV_PCIE_LINK_WIDTH": ("gauge", "PCIe width.", _still(16)),
    "DCGM_FI_DEV_PCIE_MAX_LINK_WIDTH": ("gauge", "Maximum PCIe width.", _still(16)),
    "DCGM_FI_DEV_GPU_UTIL": ("gauge", "GPU utilization (in %).", _still(0)),
    "DCGM_FI_DEV_MEM_COPY_UTIL": ("gauge", "Memory utilization (in %).", _still(0)),
    "DCGM_FI_DEV_XID_ERRORS": ("gauge", "Value of the last XID error encountered.", _still(0)),
    "DCGM_FI_DEV_CLOCK_THROTTLE_REASONS": ("gauge", "Current clock throttle reasons.", _still(1)),
    "DCGM_FI_DEV_THERMAL_VIOLATION": ("counter", "Throttling duration due to heat (in ns).", _still(0)),
    "DCGM_FI_DEV_FB_TOTAL": ("gauge", "Framebuffer memory (in MiB).", _still(81559)),
    "DCGM_FI_DEV_FB_FREE": ("gauge", "Framebuffer memory free (in MiB).", _still(81076)),
    "DCGM_FI_DEV_FB_USED": ("gauge", "Framebuffer memory used (in MiB).", _still(4)),
    "DCGM_FI_DEV_PERSISTENCE_MODE": ("gauge", "Persistence mode.", _still(1)),
    "DCGM_FI_DEV_ECC_CURRENT": ("gauge", "ECC mode.", _still(1)),
    "DCGM_FI_DEV_ECC_SBE_VOL_TOTAL": ("counter", "Single-bit volatile ECC errors.", _still(0)),
    "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL": ("counter", "Double-bit volatile ECC errors.", _still(0)),
    "DCGM_FI_DEV_ECC_SBE_AGG_TOTAL": ("counter", "Single-bit persistent ECC errors.", lambda g, t: 2 if g == 4 else 0),
    "DCGM_FI_DEV_ECC_DBE_AGG_TOTAL": ("counter", "Double-bit persistent ECC errors.", _still(0)),
    "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS": ("counter", "Rows remapped, uncorrectable errors.", _still(0)),
    "DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS": ("counter", "Rows remapped, correctable errors.", _still(0)),
    "DCGM_FI_DEV_ROW_REMAP_FAILURE": ("gauge", "Whether remapping of rows has failed.", _still(0)),
    "DCGM_FI_DEV_ROW_REMAP_PENDING": ("gauge", "Whether remapping of rows is pending.", _still(0)),
    "DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL": ("counter", "NVLink CRC flit errors.", _still(0)),
    "DCGM_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL": ("counter", "NVLink CRC data errors.", _still(0)),
    "DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL": ("counter", "NVLink retries.", _still(0)),
    "DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL": ("counter", "NVLink recovery errors.", _still(0)),
    "DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL": ("counter", "NVLink bandwidth counters, all lanes.", _still(0)),
    "DCGM_FI_DEV_FABRIC_MANAGER_STATUS": ("gauge", "Fabric manager status.", _still(3)),
    "DCGM_FI_DEV_GET_GPU_RECOVERY_ACTION": ("gauge", "Recovery action.", _still(0)),
    "DCGM_FI_PROF_GR_ENGINE_ACTIVE": ("gauge", "Ratio of time the graphics engine is active.", _still(0)),
    "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE": ("gauge", "Ratio of cycles the tensor pipe is active.", _still(0)),
}

# metric → (type, labels as written, number); `{device=...}` series are per InfiniBand port
NODE_METRICS: tuple[tuple[str, str, str, Callable[[float], float]], ...] = (
    ("node_boot_time_seconds", "gauge", "", lambda t: BOOTED_AT),
    ("node_edac_correctable_errors_total", "counter", '{controller="0"}', lambda t: 0),
    ("node_edac_correctable_errors_total", "counter", '{controller="1"}', lambda t: 0),
    ("node_edac_uncorrectable_errors_total", "counter", '{controller="0"}', lambda t: 0),
    ("node_edac_uncorrectable_errors_total", "counter", '{controller="1"}', lambda t: 0),
    (
        "node_filesystem_avail_bytes",
        "gauge",
        '{device="/dev/nvme0n1p2",fstype="ext4",mountpoint="/"}',
        lambda t: 1.4e12,
    ),
    ("node_filesystem_avail_bytes", "gauge", '{device="tmpfs",fstype="tmpfs",mountpoint="/tmp"}', lambda t: 1e11),
    ("node_filesystem_files_free", "gauge", '{device="/dev/nvme0n1p2",fstype="ext4",mountpoint="/"}', lambda t: 1.1e8),
    ("node_filesystem_readonly", "gauge", '{device="/dev/nvme0n1p2",fstype="ext4",mountpoint="/"}', lambda t: 0),
    ("node_filesystem_size_bytes", "gauge", '{device="/dev/nvme0n1p2",fstype="ext4",mountpoint="/"}', lambda t: 1.8e12),
    ("node_load1", "gauge", "", lambda t: 1.08),
    ("node_memory_MemAvailable_bytes", "gauge", "", lambda t: 2.0e12),
    ("node_memory_MemTotal_bytes", "gauge", "", lambda t: 2.164e12),
    ("node_procs_blocked", "gauge", "", lambda t: 0),
    ("node_timex_offset_seconds", "gauge", "", lambda t: 1.2e-05),
    ("node_timex_sync_status", "gauge", "", lambda t: 1),
    (
        "node_uname_info",
        "gauge",
        '{domainname="(none)",machine="x86_64",nodename="NODE",release="5.15.0-1042-nvidia",sysname="Linux",version="#42"}',
        lambda t: 1,
    ),
    ("node_vmstat_oom_kill", "counter", "", lambda t: 0),
)
NIC_METRICS: tuple[tuple[str, str, float], ...] = (
    ("node_infiniband_link_downed_total", "counter", 0),
    ("node_infiniband_link_error_recovery_total", "counter", 0),
    ("node_infiniband_physical_state_id", "gauge", 5),
    ("node_infiniband_port_discards_transmitted_total", "counter", 0),
    ("node_infiniband_port_errors_received_total", "counter", 0),
    ("node_infiniband_rate_bytes_per_second", "gauge", 5e10),
    ("node_infiniband_state_id", "gauge", 4),
    ("node_infiniband_symbol_error_total", "counter", 0),
)


def uuid(node: str, gpu: int) -> str:
    """A stable UUID of the form that GPUs have, different for each GPU of the lab."""
    digest = f"{zlib.crc32(node.encode()):08x}"
    return f"GPU-{digest}-69c4-b61d-e0bc-{digest[:4]}{gpu:08x}"


def pci_address(gpu: int) -> str:
    return f"00000000:{PCI_BUSES[gpu]}:00.0"


def page(kind: str, node: str, now: float, settings: Settings) -> str:
    """The page that the exporter `kind` of `node` serves at `now` (POSIX seconds)."""
    lines = _dcgm(node, now, settings) if kind == DCGM_PAGE else _node(node, now, settings)
    return "\n".join(lines) + "\n"


def _dcgm(node: str, now: float, settings: Settings) -> Iterator[str]:
    for metric, (kind, text, number) in GPU_METRICS.items():
        yield f"# HELP {metric} {text}"
        yield f"# TYPE {metric} {kind}"
        for gpu in range(GPUS):
            value = settings.value(node, str(gpu), metric, number(gpu, now))
            digits = f"{value:.6f}" if "POWER" in metric or "PROF" in metric else _plain(value)
            yield (
                f'{metric}{{gpu="{gpu}",UUID="{uuid(node, gpu)}",pci_bus_id="{pci_address(gpu)}",device="nvidia{gpu}",'
                f'modelName="NVIDIA H100 80GB HBM3",Hostname="{node}",DCGM_FI_DRIVER_VERSION="{DRIVER}"}} {digits}'
            )


def _node(node: str, now: float, settings: Settings) -> Iterator[str]:
    announced = set()
    for metric, kind, labels, number in NODE_METRICS:
        if metric not in announced:
            announced.add(metric)
            yield f"# HELP {metric} A metric of node_exporter."
            yield f"# TYPE {metric} {kind}"
        value = settings.value(node, "", metric, number(now))
        yield f"{metric}{labels.replace('NODE', node)} {_plain(value)}"
    for metric, kind, normal in NIC_METRICS:
        yield f"# HELP {metric} A metric of node_exporter."
        yield f"# TYPE {metric} {kind}"
        for number in range(PORTS):
            device = f"mlx5_{number}"
            value = settings.value(node, device, metric, normal)
            yield f'{metric}{{device="{device}",port="1"}} {_plain(value)}'


def _plain(value: float) -> str:
    """A number as Go prints it: whole numbers without a point, the rest at full length."""
    return str(int(value)) if value == value and abs(value) < 1e15 and value == int(value) else repr(float(value))
