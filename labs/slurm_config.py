"""The configuration files of a Slurm lab: one machine that plays many nodes.

What makes it work, each line proven on Slurm 22.05, 24.11 and 26.05:

- `slurmd -N NAME` once per node, each on a port of its own; `config_overrides` makes slurmctld believe the
  sockets, memory and GPUs that the configuration claims.
- A GPU is a link to /dev/null (gres.conf wants a device; `Count=` without `File=` registers none).
- Phantom nodes: up to 1,000 names share the address and port of one slurmd, which answers for them all.
- Everything listens on loopback (`NoCtldInAddrAny,NoInAddrAny`).
"""

from __future__ import annotations

import dataclasses
import json
import socket
from dataclasses import dataclass
from pathlib import Path

PHANTOMS_PER_DAEMON = 1000


@dataclass(frozen=True)
class LabOptions:
    """What a lab is made of. `root` is an unpacked Debian root, or None for this machine's packages."""

    nodes: int = 16
    phantom: int = 0
    cloud: int = 0
    root: str | None = None
    database: bool = False
    topology: str = "tree"  # tree | block | none
    gpus: int = 8
    gpu_type: str = "h100"
    prefix: str = "gpu"
    width: int = 5
    leaf: int = 4
    sockets: int = 2
    cores: int = 32
    memory_mb: int = 2_000_000
    slurmd_timeout_s: int = 30
    resume_timeout_s: int = 900
    health_interval_s: int = 5
    extra: str = ""

    def name(self, number: int, prefix: str | None = None) -> str:
        return f"{self.prefix if prefix is None else prefix}{number:0{self.width}d}"

    def real_names(self) -> list[str]:
        return [self.name(i) for i in range(1, self.nodes + 1)]

    def cloud_names(self) -> list[str]:
        return [self.name(i, "cloud") for i in range(1, self.cloud + 1)]

    def phantom_groups(self) -> list[tuple[int, int]]:
        """First and last number of each group of phantoms that one slurmd answers for."""
        step = PHANTOMS_PER_DAEMON
        return [(a, min(a + step - 1, self.phantom)) for a in range(1, self.phantom + 1, step)]

    def ports(self) -> int:
        return 4 + self.nodes + self.cloud + len(self.phantom_groups())

    def to_json(self) -> str:
        return json.dumps(dataclasses.asdict(self), indent=1)


@dataclass(frozen=True)
class LabPlace:
    """Where a lab lives and what it found there."""

    directory: Path
    options: LabOptions
    version: tuple[int, int]
    plugins: str
    port: int

    @property
    def controller_port(self) -> int:
        return self.port

    @property
    def dbd_port(self) -> int:
        return self.port + 1

    @property
    def database_port(self) -> int:
        return self.port + 2

    def range_text(self, prefix: str, first: int, last: int) -> str:
        width = self.options.width
        if first == last:
            return f"{prefix}{first:0{width}d}"
        return f"{prefix}[{first:0{width}d}-{last:0{width}d}]"

    def populations(self) -> list[tuple[str, int]]:
        o = self.options
        return [(p, n) for p, n in ((o.prefix, o.nodes), ("cloud", o.cloud), ("ph", o.phantom)) if n]


def _span(first: int, last: int) -> str:
    return str(first) if first == last else f"[{first}-{last}]"


def slurm_conf(place: LabPlace) -> str:
    return "\n".join([_general(place), _timing(place), _programs(place), _accounting(place), _nodes(place), ""])


def _general(place: LabPlace) -> str:
    lab, o = place.directory, place.options
    topology = f"topology/{o.topology}"
    if o.topology == "none":
        topology = "topology/flat" if place.version >= (25, 5) else "topology/default"
        if place.version < (23, 11):
            topology = "topology/none"
    jwt = ""
    if Path(f"{o.root or ''}{place.plugins}/auth_jwt.so").exists():
        jwt = f"AuthAltTypes=auth/jwt\nAuthAltParameters=jwt_key={lab}/etc/jwt_hs256.key"
    return f"""\
ClusterName=lab
SlurmctldHost={socket.gethostname().split(".")[0]}(127.0.0.1)
SlurmctldPort={place.controller_port}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket={lab}/munge/munge.socket
{jwt}
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
PluginDir={place.plugins}
StateSaveLocation={lab}/state/ctld
SlurmdSpoolDir={lab}/state/slurmd/%n
SlurmctldPidFile={lab}/run/slurmctld.selfpid
SlurmdPidFile={lab}/run/slurmd-%n.selfpid
SlurmctldLogFile={lab}/log/slurmctld.log
SlurmdLogFile={lab}/log/slurmd-%n.log
SlurmctldDebug=info
SlurmdDebug=info
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=30
SlurmdParameters=config_overrides
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
DefMemPerCPU=1000
GresTypes=gpu
TopologyPlugin={topology}
"""


def _timing(place: LabPlace) -> str:
    o = place.options
    # pings are a third of SlurmdTimeout: one slurmd cannot answer for a thousand phantoms that often
    slurmd_timeout = 900 if o.phantom else o.slurmd_timeout_s
    return f"""\
SchedulerType=sched/backfill
SchedulerParameters=batch_sched_delay=0,sched_min_interval=100000,sched_interval=2,bf_interval=2
PriorityType=priority/multifactor
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
JobRequeue=1
KillWait=3
CompleteWait=0
MinJobAge=600
SlurmctldTimeout=30
SlurmdTimeout={slurmd_timeout}
MessageTimeout=20
TreeWidth=65533
ReturnToService=1
ResumeTimeout={o.resume_timeout_s}
"""


def _programs(place: LabPlace) -> str:
    lab, o = place.directory, place.options
    lines = [f"RebootProgram={lab}/hook/reboot", "SlurmctldParameters=reboot_from_controller"]
    if not o.phantom and o.health_interval_s:
        lines += [
            f"HealthCheckProgram={lab}/hook/health",
            f"HealthCheckInterval={o.health_interval_s}",
            "HealthCheckNodeState=ANY",
        ]
        if place.version >= (26, 5):
            lines.append(f"HealthCheckTimeout={max(1, o.health_interval_s - 1)}")
    if o.cloud:
        lines += [
            f"ResumeProgram={lab}/hook/resume",
            f"SuspendProgram={lab}/hook/suspend",
            "SuspendTime=600",
            "SuspendTimeout=5",
        ]
        if o.nodes:
            lines.append(f"SuspendExcNodes={place.range_text(o.prefix, 1, o.nodes)}")
        if place.version < (23, 2):
            lines.append("PrivateData=cloud")  # else powered-down cloud nodes are invisible
    return "\n".join(lines)


def _accounting(place: LabPlace) -> str:
    if not place.options.database:
        return ""
    # With munge on a private socket, clients of slurmdbd take its path from AccountingStoragePass alone.
    return f"""\
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=127.0.0.1
AccountingStoragePort={place.dbd_port}
AccountingStoragePass={place.directory}/munge/munge.socket
AccountingStorageEnforce=associations,limits,qos
AccountingStorageTRES=gres/gpu,gres/gpu:{place.options.gpu_type}
"""


def _nodes(place: LabPlace) -> str:
    o = place.options
    gres = f"Gres=gpu:{o.gpu_type}:{o.gpus}" if o.gpus else ""
    hardware = f"Sockets={o.sockets} CoresPerSocket={o.cores} ThreadsPerCore=1 RealMemory={o.memory_mb} {gres}"
    where = "NodeHostname=localhost NodeAddr=127.0.0.1"
    port = place.port + 4
    lines: list[str] = []
    members: list[str] = []

    def add(names: str, ports: str, features: str, state: str) -> None:
        lines.append(f"NodeName={names} {where} Port={ports} {hardware} Features={features} State={state}")
        members.append(names)

    if o.nodes:
        add(place.range_text(o.prefix, 1, o.nodes), _span(port, port + o.nodes - 1), o.gpu_type, "UNKNOWN")
    port += o.nodes
    if o.cloud:
        add(place.range_text("cloud", 1, o.cloud), _span(port, port + o.cloud - 1), f"{o.gpu_type},cloud", "CLOUD")
    port += o.cloud
    for first, last in o.phantom_groups():
        add(place.range_text("ph", first, last), str(port), f"{o.gpu_type},phantom", "UNKNOWN")
        port += 1
    nodes = ",".join(members)
    for name, tier, default in (("batch", 10, " Default=YES"), ("low", 1, ""), ("high", 100, "")):
        lines.append(
            f"PartitionName={name} Nodes={nodes}{default} MaxTime=INFINITE State=UP PriorityTier={tier} OverSubscribe=NO"
        )
    return "\n".join([*lines, o.extra])


def gres_conf(place: LabPlace, broken: dict[str, int] | None = None) -> str:
    """gres.conf; `broken` gives nodes that see fewer GPUs than slurm.conf claims."""
    o, dev = place.options, place.directory / "dev"
    lines = ["AutoDetect=off"]
    if not o.gpus:
        return "\n".join([*lines, ""])

    def line(names: str, count: int) -> str:
        files = f"{dev}/nvidia{_span(0, count - 1)}"
        return f"NodeName={names} Name=gpu Type={o.gpu_type} File={files} Flags=nvidia_gpu_env"

    for name in [*o.real_names(), *o.cloud_names()]:
        if count := (broken or {}).get(name, o.gpus):
            lines.append(line(name, count))
    if o.phantom:
        lines.append(line(place.range_text("ph", 1, o.phantom), o.gpus))
    return "\n".join([*lines, ""])


def topology_conf(place: LabPlace) -> str | None:
    """Leaf switches of `leaf` nodes below one spine, or blocks of `leaf` nodes."""
    o = place.options
    if o.topology == "none":
        return None
    groups = [
        place.range_text(prefix, first, min(first + o.leaf - 1, count))
        for prefix, count in place.populations()
        for first in range(1, count + 1, o.leaf)
    ]
    if o.topology == "block":
        lines = [f"BlockName=block{i:04d} Nodes={nodes}" for i, nodes in enumerate(groups, 1)]
        lines.append(f"BlockSizes={o.leaf},{o.leaf * 2}")
    else:
        lines = [f"SwitchName=leaf{i:04d} Nodes={nodes} LinkSpeed=400" for i, nodes in enumerate(groups, 1)]
        if len(groups) > 1:
            lines.append(f"SwitchName=spine Switches=leaf[{1:04d}-{len(groups):04d}] LinkSpeed=800")
    return "\n".join([*lines, ""])


def slurmdbd_conf(place: LabPlace) -> str:
    lab = place.directory
    return f"""\
AuthType=auth/munge
AuthInfo=socket={lab}/munge/munge.socket
CommunicationParameters=NoInAddrAny
DbdHost={socket.gethostname().split(".")[0]}
DbdAddr=127.0.0.1
DbdPort={place.dbd_port}
SlurmUser=root
PluginDir={place.plugins}
LogFile={lab}/log/slurmdbd.log
PidFile={lab}/run/slurmdbd.selfpid
StorageType=accounting_storage/mysql
StorageHost=127.0.0.1
StoragePort={place.database_port}
StorageUser=slurm
StoragePass=slurm
StorageLoc=slurm_acct_db
"""
