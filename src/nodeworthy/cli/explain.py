"""How a node is shown and explained: written to be read once, at three in the morning, on a small screen.

The first line is the answer (shape, state, since when, why). The second says whether work still lands there
and whose it is. Then, one labelled block each, the same order always: because, evidence, not, unknown, jobs,
waiting, clears, next. A block that is empty is left out, except those whose absence would mislead
(`because`, `next`).
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping
from typing import Any

from nodeworthy.cli import words
from nodeworthy.cli.page import block, width

Answer = Mapping[str, Any]
_CHECKS = 4  # of those that cannot tell, so many are named
_VALUE = 48  # a piece of evidence longer than this gets a line of its own


def show(answer: Answer) -> str:
    """Everything known of a node, in blocks."""
    node = answer["node"]
    return "\n".join(
        [
            *_head(answer),
            *block("is", _identity(answer)),
            *block("slurm" if answer["scheduler"] else "scheduler", _scheduler(answer)),
            *block("held by", [_mark(m) for m in answer["marks"]]),
            *block("findings", [_finding(f) for f in answer["findings"]]),
            *block("would", [_would(w) for w in answer["would"]]),
            *block("incidents", [f"{key}: nodeworthy incident show {key}" for key in answer["incidents"]]),
            *block("unknown", [_unknown(u) for u in answer["unknown"]]),
            *block("jobs", [_job(j) for j in answer["jobs"]] or [_no_jobs(node)]),
            *block("seen by", [words.sources_line(answer["sources"])]),
            *block("why", [] if answer["well"] else [f"nodeworthy node explain {node['name']}"]),
        ]
    )


def explain(answer: Answer) -> str:
    """Because, evidence, not, unknown, jobs, waiting, clears, next."""
    node = answer["node"]
    jobs = [_job(j) for j in answer["jobs"]]
    if answer["jobs"] or node["jobs"] is None:
        jobs = jobs or [_no_jobs(node)]
    return "\n".join(
        [
            *_head(answer),
            *block("scheduler", _scheduler(answer)),
            *block("owner", [_mark(m) for m in answer["marks"]] or [_nobody(answer)]),
            *block("because", answer["because"] or [_no_reason(answer)]),
            *block("evidence", _evidence(answer["evidence"])),
            *block("not", answer["rejected"]),
            *block("unknown", [_unknown(u) for u in answer["unknown"]]),
            *block("jobs", jobs),
            *block("would", [_would(w) for w in answer["would"]]),
            *block("waiting", answer["waiting_for"]),
            *block("clears", answer["clears"] or _clears(answer["marks"])),
            *block("next", answer["next"] or ([node["next"]] if node["next"] else [_no_next(answer)])),
            *block("seen by", [words.sources_line(answer["sources"])]),
        ]
    )


def _head(answer: Answer) -> list[str]:
    node = answer["node"]
    state = node["state"]
    since = "" if node["since"] is None else f" since {words.clock_time(node['since'])} ({words.age(node['since'])})"
    reason = f": {node['reason']}" if node["reason"] else ""
    first = f"{words.GLYPHS[state]} {node['name']} is {state.upper()}{since}{reason}"
    lines = [words.paint(line, state) for line in textwrap.wrap(first, width(), subsequent_indent="  ")]
    as_of = "no turn has been made yet" if answer["as_of"] is None else f"As of {words.ago(answer['as_of'])}"
    return [*lines, f"  {_TAKES_WORK[state]} {as_of}."]


_TAKES_WORK = {
    "serving": "It takes new work, and nothing speaks against that.",
    "suspect": "It still takes new work.",
    "out": "It takes no new work: somebody's mark keeps work off.",
    "failed": "It takes no new work: the scheduler cannot use it.",
    "unknown": "Whether it should take work cannot be told.",
}


def _identity(answer: Answer) -> list[str]:
    node = answer["node"]
    serial = answer["serial"] or words.UNKNOWN
    seen, declared = (words.UNKNOWN if node[k] is None else node[k] for k in ("gpus_seen", "gpus"))
    names = [f"{system}: {name}" for system, name in answer["names"].items()]
    domains = [f"{kind} {name}" for kind, name in sorted(node["domains"].items())]
    labels = [f"{key}={value}" for key, value in sorted(node["labels"].items())]
    first = f"serial {serial}, class {node['node_class'] or words.UNKNOWN}, {seen} of {declared} GPUs seen"
    rest = [", ".join(part) for part in (domains, labels) if part]
    return [first, *rest, *(["known as " + ", ".join(names)] if names else [])]


def _scheduler(answer: Answer) -> list[str]:
    seen = answer["scheduler"]
    if seen is None:
        return ["? the scheduler says nothing about it"]
    partitions = ", ".join(seen["partitions"]) or "no partition"
    lines = [f"{seen['state']} in {seen['cluster']} ({partitions}), seen {words.ago(seen['seen'])}"]
    if seen["reservation"]:
        lines.append(f"in reservation {seen['reservation']}")
    if seen["reason"]:
        who = f", written as {seen['reason_user']}" if seen["reason_user"] else ""
        at = "" if seen["reason_at"] is None else f", {words.ago(seen['reason_at'])}"
        lines.append(f'reason "{seen["reason"]}"{who}{at}')
    return lines


def _mark(mark: Answer) -> str:
    since = "" if mark["since"] is None else f" since {words.clock_time(mark['since'])} ({words.age(mark['since'])})"
    clears = f"; clears: {mark['clears']}" if mark["clears"] else ""
    return f"{words.owner(mark['owner'])}: {mark['what']}{since}: {mark['reason'] or 'no reason given'}{clears}"


def _nobody(answer: Answer) -> str:
    return "nobody holds it; nodeworthy would" if answer["would"] else "nobody holds it"


def _finding(finding: Answer) -> str:
    word = "unknown" if finding["verdict"] == "unknown" else finding["severity"]
    why = f" ({finding['unknown']})" if finding["unknown"] else ""
    since = f"since {words.clock_time(finding['since'])}"
    return f"{words.mark(word)} {finding['component']}: {finding['summary']}{why}, {since}, check {finding['check']}"


def _would(would: Answer) -> str:
    waiting = f", waiting for {would['waiting_for']}" if would["waiting_for"] else ""
    return (
        f"{would['verb']} {would['component']} ({would['effect']}) since {words.clock_time(would['since'])}"
        f"{waiting}: {would['reason']}"
    )


def _evidence(items: Iterable[Answer]) -> list[str]:
    lines = []
    for item in items:
        where = f"{item['source']}, {words.ago(item['seen'])}"
        long = len(item["value"]) > _VALUE
        lines.append(
            f"{item['what']} ({where}):\n  {item['value']}" if long else f"{item['what']}: {item['value']} ({where})"
        )
    return lines


def _unknown(item: Answer) -> str:
    since = "" if item["since"] is None else f" for {words.age(item['since'])}"
    detail = f"; {item['detail']}" if item["detail"] else ""
    names, more = ", ".join(item["checks"][:_CHECKS]), ", …" if len(item["checks"]) > _CHECKS else ""
    checks = f"; checks: {names}{more}" if names else ""
    return f"{item['what']}: {item['reason']}{since}{detail}{checks}"


def _job(job: Answer) -> str:
    gpus = "? GPUs" if job["gpus"] is None else words.count(job["gpus"], "GPU")
    end = "" if job["end_at"] is None else f", time limit {words.ago(job['end_at'])}"
    return f"{job['job_id']} {job['name']} ({job['user']}, {job['state']}) on {job['nodes']}, {gpus}{end}"


def _no_jobs(node: Answer) -> str:
    return "? not known" if node["jobs"] is None else "none"


def _no_reason(answer: Answer) -> str:
    return "nothing speaks against it" if answer["well"] else answer["node"]["reason"] or "? nobody left a reason"


def _clears(marks: Iterable[Answer]) -> list[str]:
    return [mark["clears"] for mark in marks if mark["clears"]]


def _no_next(answer: Answer) -> str:
    return "nothing to do" if answer["well"] else f"see its past: nodeworthy node history {answer['node']['name']}"
