"""Slurm's text answers: `scontrol -o show …`, `squeue -O`, `scontrol show topology|config|ping`.

Text is the default for everything that is polled: at 10,000 nodes `scontrol -o -d show nodes` takes a tenth of
the time of its JSON. The price is a format without escapes, so this file is careful about three things:

- *Free text* (reason, comment, extra, operating system) may contain anything, also `State=`. Keys are
  therefore read only from the part before it, and the reason ends at its `[user@time]`.
- *Half an answer* must not look like a smaller fleet: an answer that does not end with a line end, a record
  without its state, a name that comes twice are `Garbled`.
- *Job names are written by users.* A name with line ends or separators could pretend to be another job, so
  jobs are asked for with a separator that is new and random for each call.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import TypeVar

from nodeworthy.adapters.slurm import states, values
from nodeworthy.errors import BadRequest, Garbled
from nodeworthy.model.nodeset import unfold
from nodeworthy.model.scheduler import Job, Mark, Partition, Reservation, SchedulerNode, TopologyUnit

_KEY = re.compile(r"(?:^| )([A-Za-z][\w/:]*)=(\S*)")
_FREE_TEXT = re.compile(r" (?:Reason|Comment|Extra)=")
_TIME = r"\d{1,17}|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d|Unknown|None|N/A"
_REASON = re.compile(
    rf" Reason=(.*?) \[([^\s@\]]{{1,256}})@({_TIME})\](?= {{2,}}| Comment=| Extra=| ?$)(.*)$", re.DOTALL
)
_REASON_ALONE = re.compile(r" Reason=(.*?)(?= Comment=| Extra=| ReservationName=|$)", re.DOTALL)
_OTHER_TEXT = re.compile(r" (?:Comment|Extra|ReservationName)=.*$", re.DOTALL)
_RESERVATION = re.compile(r" ReservationName=(\S+) ?$")
_EXCERPT = 120
_HOST_LIST = re.compile(r"(?:[\w.\-,]|\[\d{1,9}(?:-\d{1,9})?(?:,\d{1,9}(?:-\d{1,9})?)*\])+", re.ASCII)
_BRACKETS = re.compile(r"\[([\d,\-]+)\](\d*)")
_DIGITS = 9  # of a number in a name, together with the digits behind its bracket
MOST_NAMES = 1_000_000
"""No Slurm has that many nodes (its own limit is 64 k); a longer range is damage that would eat the memory."""
_Record = TypeVar("_Record", Partition, Reservation)


def _excerpt(text: str) -> str:
    return repr(text if len(text) <= _EXCERPT else text[:_EXCERPT] + "…")


def _records(answer: str, first_key: str) -> Iterator[str]:
    """One-line records that begin with `first_key=`; a line that does not goes on with the one before."""
    if not answer.endswith("\n"):
        raise Garbled(f"the answer is cut: it ends in {_excerpt(answer[-_EXCERPT:])}", hint="ask again")
    record = ""
    for line in answer.split("\n"):
        if line.startswith(first_key):
            if record:
                yield record
            record = line
        elif not line.strip():
            continue
        elif not record:
            raise Garbled(f"expected a line that begins with {first_key}, got {_excerpt(line)}")
        else:
            record += " " + line
    if record:
        yield record


def _keys(record: str) -> dict[str, str]:
    """Keys and values of a record's machine-written part; where one comes twice the first counts."""
    return dict(reversed(_KEY.findall(record)))


def fold_out(text: str | None) -> tuple[str, ...]:
    """The names of a Slurm host list; none for Slurm's words for nothing."""
    known = values.text(text)
    if known is None:
        return ()
    if "[" not in known:
        return values.names(known)
    if not _HOST_LIST.fullmatch(known) or _count(known) > MOST_NAMES:
        raise Garbled(f"not a host list: {_excerpt(known)}")
    try:
        return unfold(known)
    except BadRequest as error:
        raise Garbled(f"not a host list: {_excerpt(known)}") from error


def _count(host_list: str) -> int:
    """An upper bound of how many names a host list stands for, without making them."""
    total = 1
    for inside, behind in _BRACKETS.findall(host_list):
        ends = [part.partition("-") for part in inside.split(",")]
        if max(len(last or first) for first, _, last in ends) + len(behind) > _DIGITS:
            return MOST_NAMES + 1
        total *= sum(max(1, int(last or first) - int(first) + 1) for first, _, last in ends) or 1
    return total


# ---------------------------------------------------------------------- nodes
def nodes(answer: str) -> dict[str, SchedulerNode]:
    """`scontrol -o [-d] show nodes`. Raises Garbled for anything that is not a whole answer."""
    found: dict[str, SchedulerNode] = {}
    for record in _records(answer, "NodeName="):
        one = _node(record)
        if one.name in found:
            raise Garbled(f"node {one.name!r} comes twice in one answer")
        found[one.name] = one
    if not found and "No nodes" not in answer:
        raise Garbled("the answer names no node", hint="may this user see nodes? PrivateData=nodes hides them")
    return found


def _node(record: str) -> SchedulerNode:
    free = _FREE_TEXT.search(record)
    head = record[: free.start()] if free else record
    start = head.find(" OS=")
    if start >= 0:  # free text in the middle
        end = head.find(" RealMemory=", start)
        head = head[:start] + (head[end:] if end > 0 else "")
    keys = _keys(head)
    if not keys.get("NodeName") or not keys.get("State") or "RealMemory" not in keys:
        raise Garbled(f"a node without its name, state or memory: {_excerpt(record)}")
    state = states.from_text(keys["State"])
    configured, used = values.gpus(keys.get("Gres")), values.gpus(keys.get("GresUsed"))
    tail = record[free.start() :] if free else ""
    reservation = values.text(keys.get("ReservationName"))
    if reservation is None and (last := _RESERVATION.search(tail, len(tail) - 300 if len(tail) > 300 else 0)):
        reservation = last[1]
    return SchedulerNode(
        name=keys["NodeName"],
        base=state.base,
        flags=state.flags,
        mark=mark(tail) if tail else None,
        partitions=values.names(keys.get("Partitions")),
        reservation=reservation,
        cpus=values.number(keys.get("CPUTot")),
        memory_mb=values.number(keys.get("RealMemory")),
        sockets=values.number(keys.get("Sockets")),
        gpus=configured.count,
        gpu_type=configured.type,
        gpus_used=used.count,
        features=values.names(keys.get("AvailableFeatures")),
        address=values.text(keys.get("NodeAddr")),
        hostname=values.text(keys.get("NodeHostName")),
        boot_at=values.time(keys.get("BootTime")),
        slurmd_start_at=values.time(keys.get("SlurmdStartTime")),
        version=values.text(keys.get("Version")),
    )


def mark(tail: str) -> Mark | None:
    """The reason with its author and time in ` Reason=text [user@time]`, which more text may follow."""
    found = _REASON.search(tail)
    if found is None:
        alone = _REASON_ALONE.search(tail)
        reason = values.text(alone[1].strip()) if alone else None
        return Mark(reason, None, None) if reason else None
    more = _OTHER_TEXT.sub("", found[4])
    lines = [found[1], *(part for part in re.split(r"\s{2,}", more) if part.strip())]
    return Mark("\n".join(line.rstrip() for line in lines), values.text(found[2]), values.time(found[3]))


# ---------------------------------------------------------------------- partitions, reservations
def partitions(answer: str) -> tuple[Partition, ...]:
    """`scontrol -o -a show partition`."""
    if answer.strip() == "No partitions in the system":
        return ()
    found = []
    for record in _records(answer, "PartitionName="):
        keys = _keys(record)
        if "State" not in keys or "Nodes" not in keys:
            raise Garbled(f"a partition without nodes or state: {_excerpt(record)}")
        members = fold_out(keys["Nodes"])
        found.append(Partition(keys["PartitionName"], members, keys["State"], keys.get("Default") == "YES"))
    return _unless_empty(tuple(found), answer, "partition")


def reservations(answer: str) -> tuple[Reservation, ...]:
    """`scontrol -o -a show reservation`."""
    if answer.strip() == "No reservations in the system":
        return ()
    found = []
    for record in _records(answer, "ReservationName="):
        keys = _keys(record)
        if "State" not in keys or "Nodes" not in keys:
            raise Garbled(f"a reservation without nodes or state: {_excerpt(record)}")
        found.append(
            Reservation(
                name=keys["ReservationName"],
                nodes=fold_out(keys["Nodes"]),
                flags=frozenset(values.names(keys.get("Flags"))),
                users=values.names(keys.get("Users")),
                start_at=values.time(keys.get("StartTime")),
                end_at=values.time(keys.get("EndTime")),
                active=keys["State"] == "ACTIVE",
            )
        )
    return _unless_empty(tuple(found), answer, "reservation")


def _unless_empty(found: tuple[_Record, ...], answer: str, what: str) -> tuple[_Record, ...]:
    if not found:
        raise Garbled(f"expected {what}s, got {_excerpt(answer)}")
    return found


# ---------------------------------------------------------------------- topology
def topology(answer: str) -> tuple[TopologyUnit, ...]:
    """`scontrol show topology`: switches of a tree, or blocks and the blocks made of blocks.

    No topology is an empty answer; text that is neither is Garbled."""
    found = []
    for line in answer.splitlines():
        if not line.strip():
            continue
        keys = _keys(line.strip())
        nodes = fold_out(keys.get("Nodes"))
        if name := keys.get("SwitchName"):
            level = values.number(keys.get("Level")) or 0
            found.append(TopologyUnit(name, "switch", level, nodes, fold_out(keys.get("Switches"))))
        elif name := keys.get("BlockName"):
            found.append(TopologyUnit(name, "block", 0, nodes))
        elif name := keys.get("AggregatedBlock"):
            found.append(TopologyUnit(name, "block", 1, nodes, fold_out(name)))
        else:
            raise Garbled(f"not a line of a topology: {_excerpt(line)}")
    return _with_levels(found)


def _with_levels(units: list[TopologyUnit]) -> tuple[TopologyUnit, ...]:
    """Blocks of blocks come in several sizes; their level is one more than that of the next smaller size."""
    sizes = sorted({len(unit.nodes) for unit in units if unit.kind == "block" and unit.level})
    return tuple(
        replace(unit, level=sizes.index(len(unit.nodes)) + 1) if unit.kind == "block" and unit.level else unit
        for unit in units
    )


# ---------------------------------------------------------------------- jobs
JOB_FIELDS = (
    "JobArrayID",
    "Name",
    "UserName",
    "State",
    "Partition",
    "NodeList",
    "NumNodes",
    "tres-alloc",
    "tres-per-node",
    "tres-per-job",
    "Reason",
    "StartTime",
    "EndTime",
)


def job_format(separator: str) -> str:
    """The `squeue -O` format of JOB_FIELDS; `separator` ends each field and must begin with a letter."""
    return ",".join(f"{field}:{separator}" for field in JOB_FIELDS)


def jobs(answer: str, separator: str) -> tuple[Job, ...]:
    """`squeue -a -h -O job_format(separator)`."""
    *pieces, rest = answer.split(separator)
    width = len(JOB_FIELDS)
    if rest.strip() or len(pieces) % width:
        raise Garbled(f"the job list is cut: it ends in {_excerpt(answer[-_EXCERPT:])}", hint="ask again")
    return tuple(_job(dict(zip(JOB_FIELDS, pieces[i : i + width], strict=True))) for i in range(0, len(pieces), width))


def _job(fields: dict[str, str]) -> Job:
    job_id = fields["JobArrayID"].lstrip("\n")
    if not job_id[:1].isdigit():
        raise Garbled(f"not a job id: {_excerpt(job_id)}")
    return Job(
        job_id=job_id,
        name=fields["Name"],
        user=fields["UserName"],
        state=fields["State"],
        partition=fields["Partition"],
        nodes=fold_out(fields["NodeList"]),
        gpus=_job_gpus(fields),
        reason=values.text(fields["Reason"]),
        start_at=values.time(fields["StartTime"]),
        end_at=values.time(fields["EndTime"]),
    )


def _job_gpus(fields: dict[str, str]) -> int | None:
    """Allocated GPUs where accounting tracks them, else what was asked for; None where neither says."""
    allocated = values.tres_gpus(fields["tres-alloc"])
    if allocated is not None:
        return allocated
    per_node, count = values.text(fields["tres-per-node"]), values.number(fields["NumNodes"])
    if per_node is not None and count is not None:
        one = values.gpus(per_node).count
        return None if one is None else one * count
    per_job = values.text(fields["tres-per-job"])
    return values.gpus(per_job).count if per_job is not None else None


# ---------------------------------------------------------------------- controller
def config(answer: str) -> dict[str, str]:
    """`scontrol show config` as key → text."""
    found = dict(re.findall(r"^([A-Za-z_]\w*)[ \t]+= ?([^\n]*)$", answer, re.MULTILINE))
    if "SLURM_VERSION" not in found:
        raise Garbled(f"expected Slurm's configuration, got {_excerpt(answer)}")
    return {key: value.strip() for key, value in found.items()}


def ping(answer: str) -> dict[str, bool]:
    """`scontrol ping`: controller host → whether it is up."""
    found = re.findall(r"Slurmctld\(\w+\) at (\S+) is (UP|DOWN)", answer)
    if not found:
        raise Garbled(f"expected the state of slurmctld, got {_excerpt(answer)}")
    return {host: word == "UP" for host, word in found}
