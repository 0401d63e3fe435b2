"""Slurm's JSON answers: `scontrol --json show nodes`, `squeue --json`, and 22.05's `sinfo --json`.

JSON is unambiguous and slow (ten times the text), so it is read where somebody has it, not polled. Its shape
changed several times, and every answer says which one it is in its own fields, so each value is read by what it
is, never by a configured version:

    state        "mixed" + state_flags ["DRAIN"]     →  ["MIXED", "DRAIN"]           (23.02)
    numbers      123                                 →  {"set", "infinite", "number"}  (23.02)
    features     "h100,ib"                           →  ["h100", "ib"]                (23.02)
    version      slurmd_version                      →  version                       (23.02)
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson

from nodeworthy.adapters.slurm import states, text, values
from nodeworthy.errors import Garbled, Refused
from nodeworthy.model.scheduler import Job, Mark, SchedulerNode

Record = dict[str, Any]


def is_document(answer: str) -> bool:
    """Whether an answer is JSON at all: some commands print text in spite of --json."""
    return answer.lstrip()[:1] == "{"


def version(answer: str) -> str | None:
    """The release that a document says it comes from."""
    meta = _load(answer).get("meta")
    for key in ("slurm", "Slurm"):
        about = meta.get(key) if isinstance(meta, dict) else None
        if isinstance(about, dict) and isinstance(about.get("release"), str):
            return str(about["release"])
    return None


def nodes(answer: str) -> dict[str, SchedulerNode]:
    """The nodes of a document. Raises Garbled for anything that is not a whole answer, Refused for one that
    carries errors."""
    found: dict[str, SchedulerNode] = {}
    for record in _list(answer, "nodes", "`sinfo --json` since 23.02 is grouped: use `scontrol --json show nodes`"):
        one = _node(record)
        if one.name in found:
            raise Garbled(f"node {one.name!r} comes twice in one answer")
        found[one.name] = one
    return found


def jobs(answer: str) -> tuple[Job, ...]:
    """The jobs of `squeue --json`, those that have ended included (JSON ignores the usual filter)."""
    return tuple(_job(record) for record in _list(answer, "jobs", "expected the output of `squeue --json`"))


def _load(answer: str) -> Record:
    try:
        document = orjson.loads(answer)
    except ValueError as error:
        raise Garbled(f"not whole JSON: {error}", hint="ask again") from error
    if not isinstance(document, dict):
        raise Garbled(f"expected a JSON object, got {type(document).__name__}")
    return document


def _list(answer: str, key: str, hint: str) -> Iterator[Record]:
    document = _load(answer)
    if errors := document.get("errors"):
        raise Refused(f"the answer carries errors: {str(errors)[:300]}")
    records = document.get(key)
    if not isinstance(records, list):
        raise Garbled(f"the document has no list {key!r}; it has {sorted(map(str, document))[:8]}", hint=hint)
    for record in records:
        if not isinstance(record, dict):
            raise Garbled(f"{key}: expected an object, got {type(record).__name__}")
        yield record


def _node(record: Record) -> SchedulerNode:
    name = _text(record, "name")
    if name is None:
        raise Garbled("a node without a name")
    state = states.from_words([*_words(record.get("state")), *_words(record.get("state_flags"))])
    configured, used = values.gpus(_raw(record, "gres")), values.gpus(_raw(record, "gres_used"))
    reason = _text(record, "reason")
    return SchedulerNode(
        name=name,
        base=state.base,
        flags=state.flags,
        mark=None
        if reason is None
        else Mark(reason, _text(record, "reason_set_by_user"), _time(record.get("reason_changed_at"))),
        partitions=_words(record.get("partitions")),
        reservation=_text(record, "reservation"),
        cpus=_number(record.get("cpus")),
        memory_mb=_number(record.get("real_memory")),
        sockets=_number(record.get("sockets")),
        gpus=configured.count,
        gpu_type=configured.type,
        gpus_used=used.count,
        features=_words(record.get("features")),
        address=_text(record, "address"),
        hostname=_text(record, "hostname"),
        boot_at=_time(record.get("boot_time")),
        slurmd_start_at=_time(record.get("slurmd_start_time")),
        version=_text(record, "version") or _text(record, "slurmd_version"),
    )


def _job(record: Record) -> Job:
    job_id, state = _number(record.get("job_id")), _words(record.get("job_state"))
    if job_id is None or not state:
        raise Garbled("a job without id or state")
    return Job(
        job_id=_job_id(record, job_id),
        name=_text(record, "name") or "",
        user=_text(record, "user_name") or "",
        state=state[0],
        partition=_text(record, "partition") or "",
        nodes=text.fold_out(_text(record, "nodes")),
        gpus=_job_gpus(record),
        reason=_text(record, "state_reason"),
        start_at=_time(record.get("start_time")),
        end_at=_time(record.get("end_time")),
    )


def _job_id(record: Record, job_id: int) -> str:
    """As squeue prints it: 15, 15_3 for an element of an array, 15_[4-9] for those that still wait."""
    array, element = _number(record.get("array_job_id")), _number(record.get("array_task_id"))
    waiting = _text(record, "array_task_string")
    if array and element is not None:
        return f"{array}_{element}"
    return f"{array}_[{waiting}]" if array and waiting else str(job_id)


def _job_gpus(record: Record) -> int | None:
    allocated = values.tres_gpus(_text(record, "tres_alloc_str"))
    per_node, count = _text(record, "tres_per_node"), _number(record.get("node_count"))
    if allocated is not None or per_node is None or count is None:
        return allocated
    one = values.gpus(per_node).count
    return None if one is None else one * count


def _raw(record: Record, key: str) -> str | None:
    """A text as it is; None where the key is missing, null or no text."""
    value = record.get(key)
    return value if isinstance(value, str) else None


def _text(record: Record, key: str) -> str | None:
    return values.text(_raw(record, key))


def _words(value: object) -> tuple[str, ...]:
    """A list of words, or one text with commas."""
    if isinstance(value, str):
        return values.names(value)
    return tuple(str(word) for word in value) if isinstance(value, list) else ()


def _number(value: object) -> int | None:
    if isinstance(value, dict):
        value = value.get("number") if value.get("set") is True and not value.get("infinite") else None
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _time(value: object) -> float | None:
    seconds = _number(value)
    return float(seconds) if seconds is not None and 0 < seconds <= values.MAX_TIME else None
