"""Whatever Slurm answers, the parsers give a whole result or a clear WorldError, and never another exception."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nodeworthy.adapters.slurm import answers, documents, states, text, values
from nodeworthy.errors import WorldError

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
SEPARATOR = "xSEP"
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
PARSERS: dict[str, tuple[Callable[[str], object], str]] = {
    "nodes": (text.nodes, NODES),
    "partitions": (text.partitions, PARTITIONS),
    "reservations": (text.reservations, RESERVATIONS),
    "topology": (text.topology, TOPOLOGY),
    "jobs": (lambda answer: text.jobs(answer, SEPARATOR), JOBS),
    "config": (text.config, "ClusterName = lab\nSLURM_VERSION = 22.05.8\n"),
    "ping": (text.ping, "Slurmctld(primary) at vm is UP\n"),
    "json nodes": (documents.nodes, DOCUMENT),
    "json jobs": (documents.jobs, DOCUMENT),
    "answers": (answers.nodes, NODES),
    "json version": (documents.version, DOCUMENT),
}
every_parser = pytest.mark.parametrize("name", PARSERS)
many = settings(max_examples=1200, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def survives(parse: Callable[[str], object], answer: str) -> object:
    """The result, or the WorldError with a sentence; anything else fails the test."""
    try:
        return parse(answer)
    except WorldError as error:
        assert str(error) and len(str(error)) < 1000
        return error


@every_parser
def test_good_answers(name: str) -> None:
    """The answers that the tests below damage are read when whole."""
    parse, good = PARSERS[name]
    assert parse(good)


@every_parser
@many
@given(answer=st.text(max_size=400))
def test_any_text(name: str, answer: str) -> None:
    """Any text at all."""
    survives(PARSERS[name][0], answer)


@every_parser
@many
@given(data=st.data())
def test_damaged_answers(name: str, data: st.DataObject) -> None:
    """Good answers with a piece cut out, doubled, or replaced by other text, NUL and brackets included."""
    parse, good = PARSERS[name]
    start = data.draw(st.integers(0, len(good)))
    end = data.draw(st.integers(start, min(len(good), start + 60)))
    middle = data.draw(
        st.one_of(
            st.just(""),
            st.just(good[start:end] * 2),
            st.text(max_size=30),
            st.sampled_from(
                ["\0", "\n", "[", "]", "[1-", "n[0-999999999]", "=", "(null)", " State=", "\\xff", "🙂", "9" * 30]
            ),
        )
    )
    survives(parse, good[:start] + middle + good[end:])


@pytest.mark.parametrize("name", ["nodes", "jobs", "partitions", "reservations", "json nodes", "json jobs"])
@given(data=st.data())
@many
def test_cut_answers_are_errors(name: str, data: st.DataObject) -> None:
    """An answer that ends inside a record is an error: never fewer nodes, jobs, partitions or reservations."""
    parse, good = PARSERS[name]
    cut = data.draw(st.integers(1, len(good) - 1))
    shorter = good[:cut]
    between_records = not name.startswith("json") and good.startswith(shorter.rstrip("\n") + "\n")
    if between_records and (name == "jobs" or shorter.endswith("\n")):
        return  # nothing in the text can tell; the exit code of the command does
    assert isinstance(survives(parse, shorter), WorldError)


@every_parser
@pytest.mark.parametrize("filler", ["a", " ", "[", "=", " [a@1]", "Reason=", " x=", "\0", "+", "n[1-", "\n "])
def test_huge_lines(name: str, filler: str) -> None:
    """A million characters on one line cost time in proportion, and are no trap for a pattern."""
    parse, good = PARSERS[name]
    huge = (filler * (1_000_000 // len(filler) + 1))[:1_000_000]
    half = len(good) // 2
    survives(parse, huge)
    survives(parse, good[:half] + huge + good[half:])


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
NODE_KEYS = ["name", "state", "state_flags", "gres", "gres_used", "cpus", "real_memory", "features", "partitions"]
NODE_KEYS += ["reason", "reason_set_by_user", "reason_changed_at", "boot_time", "version", "reservation", "sockets"]
JOB_KEYS = ["job_id", "job_state", "nodes", "tres_alloc_str", "tres_per_node", "node_count", "name", "array_job_id"]
JOB_KEYS += ["array_task_id", "array_task_string", "user_name", "start_time", "end_time", "state_reason", "partition"]


@many
@given(
    node=st.fixed_dictionaries({}, optional=dict.fromkeys(NODE_KEYS, JSON)),
    job=st.fixed_dictionaries({}, optional=dict.fromkeys(JOB_KEYS, JSON)),
    meta=JSON,
)
def test_wrong_types_in_json(node: dict[str, object], job: dict[str, object], meta: object) -> None:
    """Any type in any field of a document."""
    whole = {"name": "n1", "state": ["IDLE"]} | node
    document = json.dumps({"meta": meta, "nodes": [whole, node], "jobs": [{"job_id": 1, "job_state": "RUNNING"} | job]})
    survives(documents.nodes, document)
    survives(documents.jobs, document)
    survives(documents.version, document)


@many
@given(value=st.text(max_size=60))
def test_single_values(value: str) -> None:
    """Single values are read or null; a state is read or garbled."""
    values.gpus(value)
    values.time(value)
    values.number(value)
    values.tres_gpus(value)
    survives(states.from_text, value)
