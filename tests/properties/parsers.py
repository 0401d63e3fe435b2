"""Every parser of outside text, with a good input and the errors it may answer with."""

from __future__ import annotations

import gzip
import json
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from nodeworthy.adapters.exposition.scrape import read_page
from nodeworthy.adapters.files.catalogue import built_in, site
from nodeworthy.adapters.files.fleet import parse_fleet
from nodeworthy.adapters.files.fleet_csv import parse_csv
from nodeworthy.adapters.files.log_rules import load_grammar
from nodeworthy.adapters.prometheus.api import read_answer
from nodeworthy.adapters.slurm import accounting, answers, documents, states, text, values
from nodeworthy.api import pages
from nodeworthy.errors import BadFile, BadRequest, Garbled, WorldError
from nodeworthy.judge.catalogue import build
from nodeworthy.model.duration import parse_duration, parse_time
from nodeworthy.model.nodeset import unfold
from nodeworthy.observe.telemetry import exposed, names_of
from nodeworthy.record.backup import back_up, verify
from nodeworthy.record.store import open_store
from nodeworthy.wiring.config import parse as parse_config
from nodeworthy_node.conditions import ConditionError
from nodeworthy_node.conditions import parse as parse_condition
from nodeworthy_node.log import Reference
from nodeworthy_node.log import parse as parse_line
from tests.contracts.test_store import FULL
from tests.telemetry_words import SIGNALS

SEPARATOR = "xSEP"
NODES = "".join(
    f"NodeName=n{i} Arch=x86_64 CPUTot=64 AvailableFeatures=h100 Gres=gpu:h100:8(S:0-1) GresUsed=gpu:h100:2(IDX:0-1) "
    f"NodeAddr=10.0.0.{i} NodeHostName=n{i} Version=24.11.5 OS=Linux 6 #1 SMP  RealMemory=2000000 Sockets=2 "
    f"State={state} Partitions=batch,low  BootTime=1796029385 SlurmdStartTime=1796033812{end}\n"
    for i, (state, end) in enumerate(
        [
            ("IDLE", ""),
            ("MIXED+DRAIN", " Reason=ECC errors [root@1796033824]"),
            ("DOWN+NOT_RESPONDING", " Reason=a [b] c=d [jane@1796033824]        two Comment=x ReservationName=r"),
        ],
        1,
    )
)
PARTITIONS = "PartitionName=batch Default=YES Nodes=n[1-3] State=UP\nPartitionName=low Nodes=(null) State=DOWN\n"
RESERVATIONS = "ReservationName=r StartTime=1 EndTime=2 Nodes=n[1-2],m1 Flags=MAINT Users=root State=ACTIVE\n"
TOPOLOGY = "SwitchName=s1 Level=0 Nodes=n[1-2]\nSwitchName=s2 Level=1 Nodes=n[1-2] Switches=s1\n"
JOBS = "".join(
    "".join(
        value + SEPARATOR
        for value in (f"{i}_1 na_me jane RUNNING batch n[1-2] 2 gres/gpu=4 gres/gpu:2 N/A None 1796033824 NONE".split())
    )
    + "\n"
    for i in range(3)
)
DOCUMENT = json.dumps(
    {
        "meta": {"slurm": {"release": "24.11.5"}},
        "errors": [],
        "nodes": [
            {"name": "n1", "state": ["MIXED", "DRAIN"], "gres": "gpu:8", "cpus": 64, "reason": "x", "features": ["a"]}
        ],
        "jobs": [{"job_id": 5, "job_state": ["RUNNING"], "nodes": "n[1-2]", "node_count": {"set": True, "number": 2}}],
    }
)
SACCT = "JobIDRaw|User|State|Start|End|NNodes|NodeList|AllocTRES|JobName\n" + "".join(
    f"{k}|u{k}|COMPLETED|2026-11-30T10:00:0{k}|1796033824|1|n[1-{k}]|billing=8,cpu=4,gres/gpu=4,gres/gpu:h100=4|a b\n"
    for k in range(1, 4)
)
SACCTMGR = "Cluster|NodeName|TimeStart|TimeEnd|State|User|Reason\n" + "".join(
    f"c|n{k}|2026-11-30T10:00:0{k}|Unknown|DOWN*|root(0)|Not responding\n" for k in range(1, 4)
)
PAGE = (Path(__file__).parents[1] / "data" / "exposition" / "dcgm-two-gpus.prom").read_text()
PROMETHEUS = json.dumps(
    {
        "status": "success",
        "data": {
            "resultType": "matrix",
            "result": [
                {"metric": {"__name__": "up", "instance": "n1:9400", "gpu": "0"}, "values": [[1796033824.1, "1"]]},
                {"metric": {"__name__": "up", "instance": "n2:9400"}, "values": [[1796033824.1, "NaN"]]},
            ],
        },
    }
)
FLEET = """\
name = "alps"
[classes.h100x8]
gpus = 8
gpu_type = "h100"
expect = { pcie_gen = 5, "site.key" = "a b", ok = true, rate = 0.5 }
[[nodes]]
names = "n[1-4]"
class = "h100x8"
exporter = "{name}:9400"
bmc = "10.0.0.[1-4]"
[domains.rack]
r1 = "n[1-2]"
r2 = "n[3-4]"
[node.n1]
serial = "S1"
labels = { owner = "physics" }
"""
CSV = 'Node Name;Serial-Number;GPUs;GPU Type;Rack;label:owner;syslog\nn1;"S;1";8;h100;r1;physics;"l1\nl2"\nn2;;0;;;;\n'
CONFIG = """\
socket = "/run/nodeworthy/api.sock"
[slurm]
interval = "30s"
[[exporters]]
name = "dcgm"
targets = ["http://n[1-3]:9400/metrics"]
"""
CATALOGUE = """\
[[check]]
id = "gpu-too-hot"
version = "1"
title = "Too hot"
kind = "gpu"
condition = "gpu_temperature > class.gpu_temperature_max and not ecc_mode"
action = "Cool it."
clears = "Cooler."
help = "Hot."
source = "test"
"""
LINES = "\n".join(
    [
        "Nov 30 17:30:00 n3 kernel: [12345.678901] NVRM: Xid (PCI:0000:01:00): 79, pid=1, GPU has fallen off the bus.",
        "<4>1 2026-11-30T17:30:00Z n3 kernel - - - NVRM: Xid (PCI:0000:01:00): 48",
        "kern  :warn  : [   12.500000] mlx5_core 0000:01:00.0: Link down",
        '{"_TRANSPORT":"kernel","__REALTIME_TIMESTAMP":"1796059800000000","MESSAGE":"NVRM: Xid (PCI:0000:01:00): 79"}',
        "   1 | 11/30/2026 | 17:30:00 | Memory | Uncorrectable ECC | Asserted",
        "6,1234,56789,-;Out of memory: Killed process 7",
    ]
)
METRICS = names_of(exposed(SIGNALS))
FOLDER = tempfile.TemporaryDirectory(prefix="nw-parsers-")
GRAMMAR = load_grammar()
SEEN = Reference(now=1796060423.0)
LAYERS = built_in()[:3]  # signals, features and expectations; the checks would only cost time


def _raw(answer: str) -> bytes:
    return answer.encode("utf-8", "surrogatepass")


def _file(answer: str | bytes, name: str) -> Path:
    path = Path(FOLDER.name) / name
    path.write_bytes(answer if isinstance(answer, bytes) else _raw(answer))
    return path


def _a_backup() -> str:
    store = open_store("temporary:")
    try:
        store.commit_turn(FULL)
        path = Path(FOLDER.name) / "good.gz"
        back_up(store, path, now=1796060423.0)
        return gzip.decompress(path.read_bytes()).decode()
    finally:
        store.close()


def _lines(answer: str) -> list[object]:
    return [GRAMMAR.classify(parse_line(line, SEEN)) for line in _raw(answer).split(b"\n")]


def _value(answer: str) -> object:
    return values.gpus(answer), values.tres_gpus(answer), values.time(answer), values.number(answer)


@dataclass(frozen=True)
class Parser:
    """`name` is the row in the campaign's table."""

    name: str
    read: Callable[[str], object]
    good: str
    errors: tuple[type[Exception], ...]
    slow: bool = False
    """One input costs milliseconds (a frame, a whole catalogue): a campaign gives it fewer."""


BACKUP = _a_backup()
PARSERS = [
    Parser("Slurm nodes", text.nodes, NODES, (WorldError,)),
    Parser("Slurm nodes, text or JSON", answers.nodes, NODES, (WorldError,)),
    Parser("Slurm partitions", text.partitions, PARTITIONS, (WorldError,)),
    Parser("Slurm reservations", text.reservations, RESERVATIONS, (WorldError,)),
    Parser("Slurm topology", text.topology, TOPOLOGY, (WorldError,)),
    Parser("Slurm jobs", lambda answer: text.jobs(answer, SEPARATOR), JOBS, (WorldError,)),
    Parser("Slurm config", text.config, "ClusterName = lab\nSLURM_VERSION = 22.05.8\n", (WorldError,)),
    Parser("Slurm ping", text.ping, "Slurmctld(primary) at vm is UP\n", (WorldError,)),
    Parser("Slurm nodes, JSON", documents.nodes, DOCUMENT, (WorldError,)),
    Parser("Slurm jobs, JSON", documents.jobs, DOCUMENT, (WorldError,)),
    Parser("Slurm version, JSON", documents.version, DOCUMENT, (WorldError,)),
    Parser("Slurm node state", states.from_text, "MIXED+DRAIN+NOT_RESPONDING", (WorldError,)),
    Parser("GRES, TRES, time, number", _value, "gres:gpu:h100:8(S:0-1),nic:2", ()),
    Parser("sacct", lambda answer: accounting.read_jobs(_file(answer, "jobs")), SACCT, (BadFile,), slow=True),
    Parser("sacctmgr events", lambda answer: accounting.read_events(_file(answer, "events")), SACCTMGR, (BadFile,)),
    Parser("log lines", _lines, LINES, ()),
    Parser("exposition text", lambda answer: read_page(_raw(answer), "", 0.0, "n1", METRICS), PAGE, (Garbled,)),
    Parser("Prometheus answers", lambda answer: read_answer(200, _raw(answer)), PROMETHEUS, (WorldError,)),
    Parser("node sets", unfold, "n[1-3,7],rack[1-2]-n[01-18],login!n2", (BadRequest,)),
    Parser("durations", parse_duration, "1d12h30m", (BadRequest,)),
    Parser("times", lambda answer: parse_time(answer, now=1796060423.0), "2026-11-30T17:30:00+01:00", (BadRequest,)),
    Parser("conditions", parse_condition, "a > 3 and not (b in ('x', 'y') or abs(c) <= 0x60)", (ConditionError,)),
    Parser("fleet.toml", parse_fleet, FLEET, (BadFile,)),
    Parser("CSV inventory", parse_csv, CSV, (BadFile,)),
    Parser("nodeworthy.toml", lambda answer: parse_config(answer, "n.toml"), CONFIG, (BadFile,)),
    Parser(
        "catalogue",
        lambda answer: build([*LAYERS, *site(_file(answer, "site.toml"))]),
        CATALOGUE,
        (BadFile,),
        slow=True,
    ),
    Parser("site log rules", lambda answer: load_grammar(_file(answer, "rules")), '[xid.79]\nseverity = "warning"\n',
           (BadFile,), slow=True),
    Parser("backup", lambda answer: verify(_file(gzip.compress(_raw(answer), 1), "backup")), BACKUP, (Garbled,)),
    Parser("backup, gzip", lambda answer: verify(_file(answer.encode("latin-1", "replace"), "packed")),
           gzip.compress(BACKUP.encode(), mtime=0).decode("latin-1"), (Garbled,)),
    Parser("API cursor", pages.decode, pages.encode("n1"), (BadRequest,)),
]  # fmt: skip
