"""Real situations whose input is a log: what is to blame, what may hold a node, what is to be done.

The inputs are in tests/data/log/cases, one folder a case; where each is from is told in the cases' own meta.json.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from nodeworthy.adapters.files.literals import finder
from nodeworthy.adapters.files.log_rules import load_grammar
from nodeworthy_node.log import Event, Reference
from nodeworthy_node.log.scan import Tally, events

CASES = Path(__file__).parent.parent / "data" / "log" / "cases"


def classify(case: str, file: str, *, from_kernel: bool = False) -> list[Event]:
    grammar = load_grammar()
    with (CASES / case / file).open("rb") as stream:
        found = events(stream, finder(grammar.literals), grammar, Reference(now=1796060423.0), Tally(), from_kernel)
        return list(found)


def test_sxid_nonfatal_minion() -> None:
    """Three links report a non-fatal error in nine lines: three events, and nothing that holds a node."""
    found = classify("nh-sxid-nonfatal-minion", "input.dmesg.log")
    assert [(e.verdict.code, e.verdict.details["link"], e.verdict.details["switch"]) for e in found] == [
        ("22013", 44, "3"),
        ("22013", 45, "3"),
        ("22013", 46, "3"),
    ]
    assert all(e.trusted and not e.holds and e.verdict.severity == "warning" for e in found)
    assert {e.verdict.action for e in found} == {"observe"}


def test_thermal_then_xid79() -> None:
    """Five lines about one lost GPU are one origin: one component, one code."""
    found = classify("nh-thermal-then-xid79", "input.dmesg.log")
    assert {(e.verdict.component, e.verdict.kind, e.verdict.code) for e in found} == {("0000:02:00.0", "xid", "79")}
    assert all(e.holds for e in found)
    assert found[0].verdict.action == "reboot"
    assert found[0].time == 1744735803.0  # Tue Apr 15 16:50:03 2025, taken as UTC


def test_xid119_gsp() -> None:
    """A GPU whose system processor does not answer is the origin; the process that asked is the victim."""
    (event,) = classify("nh-xid119-gsp-driver-bug", "input.dmesg.log")
    assert (event.verdict.component, event.verdict.code, event.verdict.action) == ("0000:9b:00.0", "119", "reset-gpu")
    assert event.holds
    assert event.verdict.details["process"] == "nvidia-smi"
    assert event.verdict.details["gpu_instance"] == "4"


def test_xid144_150_severity() -> None:
    """Non-fatal NVLink errors only warn; fatal ones ask for a reset; reason 37 points at the other end of the link."""
    found = classify("nh-xid144-150-severity", "input.kmsg.log", from_kernel=True)
    assert [e.verdict.details["fatal"] for e in found] == [False, False, True, True, True]
    assert [e.verdict.severity for e in found] == ["warning", "warning", "error", "error", "error"]
    assert [e.verdict.action for e in found] == ["observe", "observe", "reset-gpu", "reset-gpu", "reset-gpu"]
    assert [e.verdict.details.get("down_reason") for e in found] == [None, None, 38, 37, None]
    assert found[3].verdict.role == "symptom"
    assert found[3].verdict.details["suspect"] == "peer"
    assert all(e.trusted for e in found)


def test_xid144_150_without_transport() -> None:
    """The same lines without a head do not say who wrote them: they may not hold."""
    found = classify("nh-xid144-150-severity", "input.kmsg.log")
    assert len(found) == 5
    assert not any(e.trusted or e.holds for e in found)


# case, file, then of each event: kind, code, role, action, component
OTHERS = [
    ("nh-clock-skew-munge", "input.slurmctld.log", [("clock", "munge-expired", "unknown", "fix-clock", "")]),
    ("nh-clock-skew-munge", "input.trinity.log", [("clock", "munge-expired", "unknown", "fix-clock", "")]),
    ("nh-fm-restart-without-reset", "input.nccl.log", [("nccl", "warning", "application", "none", "node-a")]),
    ("nh-nhc-timeout-no-check-name", "input.slurmd.log", [("healthcheck", "killed", "unknown", "none", "")]),
    ("nh-nhc-timeout-no-check-name", "input.syslog", [("healthcheck", "timeout", "unknown", "none", "")] * 2),
    ("sl-kill-task-failed", "input.slurmd.log", [("scheduler", "kill-task-failed", "unknown", "observe", "cn006")]),
    (
        "sl-low-realmemory",
        "input.slurmctld.log",
        [("scheduler", "low-realmemory", "unknown", "fix-config", name) for name in ("node-120", "hb-2")],
    ),
    (
        "sl-prolog-error-missing-dir",
        "input.slurmd.log",
        [("scheduler", "prolog-failed", "unknown", "fix-config", "/etc/slurm/prolog")],
    ),
    (
        "sl-topology-unknown-nodes",
        "input.slurm.log",
        [("scheduler", "unknown-node", "unknown", "fix-config", f"node-{n}") for n in (942, 587, 934)],
    ),
    ("tr-ckpt-stall-ace", "input.log", [("nccl", "collective-timeout", "symptom", "observe", "7")]),
    ("tr-nccl-shm-permission", "input.nccl.log", [("nccl", "warning", "application", "none", "node08")] * 2),
    ("tr-torchrun-agent-host-lost", "input.log", [("job", "agent-lost", "symptom", "observe", "node-b_3427_0")]),
    (
        "pw-psu-failed-ipmi",
        "input.sel.txt",
        [
            ("power", "psu-failed", "origin", "replace", "Power Supply #0xc4"),
            ("power", "redundancy-lost", "symptom", "check-power", "Power Unit #0x44"),
        ],
    ),
    ("nh-xid79-blocks-whole-node", "input.kubelet-event.txt", [("driver", "gpu-lost", "origin", "reboot", "")]),
    (
        "nh-xid79-blocks-whole-node",
        "input.nvidia-smi.txt",
        [("driver", "gpu-lost", "origin", "reboot", "0000:c1:00.0")],
    ),
    (
        "nh-driver-lib-mismatch-unattended",
        "input.nvidia-smi.txt",
        [("driver", "version-mismatch", "origin", "reload-driver", "")],
    ),
    (
        "k8-containers-lose-gpu-daemon-reload",
        "input.container.txt",
        [("driver", "container-lost-gpu", "symptom", "restart-app", "")],
    ),
    (
        "nh-fabric-manager-missing-802",
        "input.gpu_burn.txt",
        [("fabric", "not-initialised", "symptom", "fix-config", "")],
    ),
    ("nh-dkms-module-for-old-kernel", "input.txt", [("driver", "module-missing", "origin", "reload-driver", "")] * 2),
    ("nh-xid94-capacity-not-restored", "input.device-plugin.log", []),
]


@pytest.mark.parametrize(("case", "file", "expected"), OTHERS, ids=[f"{case}/{file}" for case, file, _ in OTHERS])
def test_what_other_programs_say(case: str, file: str, expected: list[tuple[str, ...]]) -> None:
    """Logs of programs other than the kernel explain; none of them may hold a node by itself."""
    found = classify(case, file)
    said = [(e.verdict.kind, e.verdict.code, e.verdict.role, e.verdict.action, e.verdict.component) for e in found]
    assert said == expected
    assert not any(e.trusted or e.holds for e in found)


def test_a_health_check_that_took_over_a_persons_drain() -> None:
    """The hung check and the resume that it did on its own are both seen."""
    found = classify("nh-nhc-resumed-admin-drain", "input.nhc.log")
    assert [e.verdict.code for e in found].count("resumed") == 1
    assert found[-1].verdict.component == "wn-2-10"
    assert {e.verdict.code for e in found} == {"hung", "resumed"}
