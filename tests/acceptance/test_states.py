"""Acceptance 1: sixteen nodes in sixteen states, made for real, on each Slurm version: what is said of each.

`node list`, `node explain` and `audit slurm` must agree with what was done to the nodes, in state, cause and owner.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass

import pytest

from labs.slurm_states import ExpectedNode
from tests.acceptance.conftest import PERSON, States
from tests.acceptance.site import ROOT, Answer

pytestmark = [pytest.mark.slurm, pytest.mark.slow]


@dataclass(frozen=True)
class Said:
    """What a person should read of a node: its word, whose doing, and sentences of `node explain`."""

    state: str
    owner: tuple[str, str] | None = None  # kind, name
    reads: tuple[str, ...] = ()


ROOT_WROTE = ("someone", "root")
HAND = ("person", PERSON)
SLURM = ("scheduler", "slurm")

SAID = {
    "n1": Said(
        "serving",
        reads=("n1 is SERVING", "nobody holds it", "nothing that was looked at speaks against it", "nothing to do"),
    ),
    "n2": Said("serving", reads=("n2 is SERVING", "MIXED", "2 GPUs")),
    "n3": Said("serving", reads=("ALLOCATED", "16 GPUs")),
    "n4": Said("serving", reads=("ALLOCATED",)),
    "n5": Said(
        "failed",
        SLURM,
        ("n5 is FAILED", "Not responding", "Node did not answer", "see whether the machine runs", "ReturnToService"),
    ),
    "n6": Said(
        "out",
        HAND,
        (
            "n6 is OUT",
            "GPU 3 fell off the bus [ops]",
            "daemon wrote the mark, which is read as: A GPU is lost (Xid 79, fallen off the bus)",
            "daemon lifts their mark; no machine will",
            "ask daemon",
        ),
    ),
    "n7": Said("out", HAND, ("ECC errors", "GPU memory errors", "1 job to end before it is empty", "ondrain")),
    "n8": Said(
        "out",
        ("reservation", "demo"),
        ("n8 is out: reservation demo", "the reservation ends, or is deleted", "scontrol show reservation demo"),
    ),
    "n9": Said(
        "out", ("reservation", "service"), ("maintenance reservation service", "scontrol show reservation service")
    ),
    "n10": Said("out", ROOT_WROTE, ("reboot issued", "firmware", "wait for its boot", "ResumeTimeout")),
    "n11": Said(
        "out",
        ROOT_WROTE,
        ("reboot requested: kernel update", "1 job to end", "Slurm reboots it when its jobs have ended"),
    ),
    "n12": Said("out", ROOT_WROTE, ("failing soon", "which proves nobody: ask around")),
    "n13": Said("out", ROOT_WROTE, ("NVLink replay errors", "NVLink", "onfailing")),
    "n14": Said(
        "failed",
        SLURM,
        (
            "n14 is FAILED",
            "reported lower than configured (7 < 8)",
            "Fewer GPUs than configured",
            "mend the cause that the reason names",
        ),
    ),
    "n15": Said("failed", ROOT_WROTE, ("pulled for RMA", "which proves nobody")),
    "n16": Said("out", ("health program", "health check"), ("health: Xid 79 on GPU 5", "see what health check found")),
}


def owner(said: Said, expected: ExpectedNode) -> tuple[str, str] | None:
    """Without accounting the lab has no operator but root, and root proves nobody."""
    return ROOT_WROTE if said.owner == HAND and expected.owner == "someone" else said.owner


def test_node_list_says_state_and_owner_of_each(states: States) -> None:
    """Every one of the sixteen has the right word, the right owner and Slurm's own state beside it."""
    nodes = states.site.nodes()
    assert set(nodes) == set(states.expected) == set(SAID)
    for name, said in SAID.items():
        node, expected = nodes[name], states.expected[name]
        assert (name, node["state"]) == (name, said.state)
        found = node["owner"] and (node["owner"]["kind"], node["owner"]["name"])
        assert (name, found) == (name, owner(said, expected))
        assert (name, node["scheduler_state"]) == (name, expected.state)
        if expected.reason is not None:
            assert expected.reason in node["reason"], name
        if said.state != "serving":
            assert node["next"], name


def test_node_list_is_read_by_people(states: States) -> None:
    """In the table what failed stands first and what serves last, each with its reason."""
    lines = states.site.run("node", "list").stdout.splitlines()[1:]
    order = [line.split()[0] for line in lines]
    assert [SAID[name].state for name in order] == ["failed"] * 3 + ["out"] * 9 + ["serving"] * 4
    by_name = dict(zip(order, lines, strict=True))
    assert "pulled for RMA" in by_name["n15"]
    assert "health program" in by_name["n16"]


def test_explain_tells_cause_owner_and_next_step(states: States) -> None:
    """`node explain` of each node says why, whose it is, what clears it and what to do, in words."""
    for name, said in SAID.items():
        read = states.site.text("node", "explain", name)
        wanted = said.reads
        if states.expected[name].owner == "someone":
            wanted = tuple(text for text in wanted if PERSON not in text)
        for text in wanted:
            assert text in read, f"{name}: {text!r} is not in {read}"
        answer = states.site.get(f"/v1/nodes/{name}/explain")
        assert answer["because"] or said.state == "serving", name
        assert answer["next"] or said.state == "serving", name


def test_status_puts_the_failed_first_and_judges_nobody(states: States) -> None:
    """The failed nodes need a person; what people do on purpose does not, and nothing would be held."""
    status = states.site.ask("status")
    assert status["by_state"] == {"serving": 4, "suspect": 0, "out": 9, "failed": 3, "unknown": 0}
    assert {n["subject"] for n in status["needs"] if n["severity"] == "error"} == {"n5", "n14", "n15"}
    assert status["would"] == 0
    assert states.site.adverse() == {}
    assert states.site.run("status").returncode == 3
    assert {i["name"]: i["state"] for i in states.site.ask("doctor")["items"]}["server"] == "ok"


def audit(states: States) -> Answer:
    """`audit slurm` as somebody on a login node runs it: no server, no fleet file, no configuration."""
    lab = states.watched.lab
    kept = {k: v for k, v in os.environ.items() if not k.startswith("NODEWORTHY_")}
    environment = {**kept, **lab.env, "PYTHONPATH": str(ROOT / "src")}
    command = [sys.executable, "-m", "nodeworthy.cli.main", "audit", "slurm", "--since", "1d", "-o", "json"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False, cwd="/")
    assert done.returncode == 0 or not lab.options.database, done.stderr
    answer = json.loads(done.stdout)
    assert isinstance(answer, dict)
    return answer


def test_audit_says_cause_and_owner_of_each(states: States) -> None:
    """The audit lists exactly the nodes that a mark keeps out, with the cause and owner of each."""
    out = {row["node"]: row for row in audit(states)["out_now"]}
    marked = {name: node for name, node in states.expected.items() if node.cause}
    assert set(out) == set(marked)
    for name, expected in marked.items():
        row = out[name]
        assert (name, row["state"], row["cause"], row["owner"]) == (
            name,
            expected.state,
            expected.cause,
            expected.owner,
        )
        assert row["reason"] == expected.reason
        assert row["busy"] == (expected.gpus_used > 0)


def test_nothing_was_written_to_slurm(states: States) -> None:
    """slurmctld counts its requests: not one that may change something came since serve began to look."""
    assert states.watched.written_by_others() == {}
