"""Every key a fleet file may have: its type, and what it says. The reference page is tested against this.

name = "alps"

[classes.h100x8-64c-2t]            what nodes of a kind should have
gpus = 8

[[nodes]]                          which nodes there are; as many groups as there are kinds of them
names = "gpu[00001-10000]"
class = "h100x8-64c-2t"

[domains.rack]                     what they share: rack, leaf, block, feed, loop …
"r[001-313]" = { nodes = "gpu[00001-10000]", each = 32 }

[node.gpu00007]                    what is true of one node alone
serial = "J100DX1"
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Key:
    """One key. `types` are the TOML types it accepts, as Python types; bool never passes as int."""

    name: str
    types: tuple[type, ...]
    help: str
    required: bool = False


TOP: Final = (
    Key("name", (str,), "The fleet's name."),
    Key("classes", (dict,), "One table a node class: [classes.NAME]."),
    Key("nodes", (list,), "Groups of nodes of one class: [[nodes]]."),
    Key("domains", (dict,), "One table a kind of failure domain: [domains.KIND], with a line a domain."),
    Key("node", (dict,), "What is true of one node alone: [node.NAME]."),
)

CLASS: Final = (
    Key("gpus", (int,), "How many GPUs a node has; 0 if left out."),
    Key("gpu_type", (str,), "The GPUs' type, as the scheduler names it (h100, b200 …)."),
    Key("cpus", (int,), "Logical processors as the scheduler counts them."),
    Key("memory_mb", (int,), "Memory in MiB that a node has at least."),
    Key("sockets", (int,), "Processor sockets."),
    Key("expect", (dict,), "Further expectations, seen by checks as class.NAME."),
)

# the expectations of the shipped catalogue (tested to be the same); a site may add its own names to them
EXPECT: Final = (
    Key("nics", (str,), "Network devices that must be there, as a node set, for example mlx5_[0-7]."),
    Key("pcie_gen", (int,), "PCIe generation of a GPU's link under load."),
    Key("pcie_width", (int,), "PCIe lanes of a GPU's link."),
    Key("nvlinks", (int,), "Active NVLinks per GPU (18 on H100 SXM; 0 or undeclared on boards without)."),
    Key("fabric_manager", (bool,), "The node needs a fabric manager of its own (NVSwitch inside the node)."),
    Key("ecc", (bool,), "Error correction of GPU memory must be on."),
    Key("mig", (bool,), "GPUs of this class are split into instances."),
    Key("persistence", (bool,), "The driver must stay loaded (persistence mode or daemon)."),
    Key("gpu_temperature_max", (int, float), "Highest GPU temperature that is normal here."),
    Key("memory_temperature_max", (int, float), "Highest GPU memory temperature that is normal here."),
    Key("power_limit", (int, float), "Power limit that GPUs of this class run with."),
    Key("ib_rate", (int, float), "Rate of each InfiniBand or RoCE port."),
    Key("mtu", (int,), "Largest packet on the network devices of the class."),
    Key("net_speed", (int, float), "Speed of the Ethernet devices of the class."),
    Key("driver_version", (str,), "Driver version that the class should run."),
    Key("kernel_release", (str,), "Kernel release that the class should run."),
    Key("shared_mounts", (int,), "Network file systems that must be mounted."),
)

_NAMES: Final = (
    Key("scheduler", (dict,), 'NodeNames by cluster: { alps = "{name}" }.'),
    Key("syslog", (str, list), "Host names in log lines."),
    Key("exporter", (str, list), "Exporter instances (host or host:port) and Hostname labels."),
    Key("bmc", (str,), "Address of the management controller."),
)

GROUP: Final = (
    Key("names", (str,), "The nodes, as a node set: gpu[00001-00016].", required=True),
    Key("class", (str,), "Their class, declared under [classes].", required=True),
    Key("labels", (dict,), "Labels of all of them, for selection with -l key=value."),
    *_NAMES,
)

NODE: Final = (
    Key("serial", (str,), "The chassis serial: the asset. Faults follow it, whatever the node is called."),
    Key("labels", (dict,), "Labels of this node, added to its group's."),
    *_NAMES,
)

DOMAIN: Final = (
    Key("nodes", (str,), "The nodes in the domain, as a node set.", required=True),
    Key("each", (int,), "With a set of domains: how many nodes go into each, in order."),
)

SECTIONS: Final = {
    "the top of the file": TOP,
    "[classes.NAME]": CLASS,
    "[classes.NAME.expect]": EXPECT,
    "[[nodes]]": GROUP,
    "[node.NAME]": NODE,
    "[domains.KIND]": DOMAIN,
}

NAME_SLOT: Final = "{name}"
