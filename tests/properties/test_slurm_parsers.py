"""Slurm's answers: a cut one is an error, and a wrong type in any field is a whole result or a clear WorldError."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeworthy.adapters.slurm import documents
from nodeworthy.errors import WorldError
from tests.properties import parsers

PARSERS = {parser.name: parser for parser in parsers.PARSERS}


def survives(parse: Callable[[str], object], answer: str) -> object:
    """The result, or the WorldError with a sentence; anything else fails the test."""
    try:
        return parse(answer)
    except WorldError as error:
        assert str(error) and len(str(error)) < 1000
        return error


@pytest.mark.parametrize("name", ["nodes", "jobs", "partitions", "reservations", "nodes, JSON", "jobs, JSON"])
def test_cut_answers_are_errors(name: str) -> None:
    """An answer that ends inside a record, wherever: an error, never fewer nodes, jobs, partitions or reservations."""
    parser = PARSERS[f"Slurm {name}"]
    good = parser.good
    for cut in range(1, len(good)):
        shorter = good[:cut]
        between_records = "JSON" not in name and good.startswith(shorter.rstrip("\n") + "\n")
        if between_records and (name == "jobs" or shorter.endswith("\n")):
            continue  # nothing in the text can tell; the exit code of the command does
        if shorter.rstrip("\n") != good.rstrip("\n"):
            assert isinstance(survives(parser.read, shorter), WorldError), shorter[-40:]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
NODE_KEYS = ["name", "state", "state_flags", "gres", "gres_used", "cpus", "real_memory", "features", "partitions"]
NODE_KEYS += ["reason", "reason_set_by_user", "reason_changed_at", "boot_time", "version", "reservation", "sockets"]
JOB_KEYS = ["job_id", "job_state", "nodes", "tres_alloc_str", "tres_per_node", "node_count", "name", "array_job_id"]
JOB_KEYS += ["array_task_id", "array_task_string", "user_name", "start_time", "end_time", "state_reason", "partition"]


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
