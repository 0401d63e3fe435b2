"""Small tables for the audit's tests: a week of an eight-node fleet, written by hand."""

from __future__ import annotations

from collections.abc import Iterable

import polars as pl

from nodeworthy.model.hold import OwnerKind
from nodeworthy.model.reason import NO_REASON, UNCLEAR, ReasonCause, ReasonKind
from nodeworthy.model.scheduler import BaseState, Mark, SchedulerNode
from nodeworthy.reports.audit.inputs import EVENTS, JOBS, AuditInput, Window

SINCE = 1_780_000_000 // 86400 * 86400
UNTIL = SINCE + 60 * 86400
WINDOW = Window(SINCE, UNTIL)
HOUR = 3600

CAUSES = {
    "xid": ReasonCause("gpu", "GPU fault", ReasonKind.FAULT, OwnerKind.HEALTH_PROGRAM, "check"),
    "not responding": ReasonCause("not-responding", "Node lost", ReasonKind.FAULT, OwnerKind.SCHEDULER),
    "gres/gpu count": ReasonCause("gres-count", "Fewer GPUs", ReasonKind.FAULT, OwnerKind.SCHEDULER),
    "reboot": ReasonCause("reboot", "Reboot", ReasonKind.PLANNED),
    "firmware": ReasonCause("maintenance", "Maintenance", ReasonKind.PLANNED),
}


def normalise(reason: str) -> ReasonCause:
    """Knows five words, which is all these tests need."""
    if reason in ("", "none"):
        return NO_REASON
    return next((cause for word, cause in CAUSES.items() if word in reason.lower()), UNCLEAR)


def event(node: str, start: float, end: float | None, kind: str, reason: str = "xid 79", author: str = "root"):  # type: ignore[no-untyped-def]
    """`start` and `end` in hours after SINCE."""
    stop = None if end is None else int(SINCE + end * HOUR)
    return (node, int(SINCE + start * HOUR), stop, kind.upper(), kind, reason, author)


def events(*rows: tuple[object, ...]) -> pl.DataFrame:
    return pl.DataFrame(list(rows), schema=dict(EVENTS), orient="row")


def job(
    number: int, user: str, state: str, start: float, seconds: float | None, nodes: str, *, width: int = 1,
    gpus: float | None = 8, failed: str | None = None,
):  # type: ignore[no-untyped-def]  # fmt: skip
    begin = int(SINCE + start * HOUR)
    return (number, user, state, begin, None if seconds is None else begin + int(seconds), width, nodes, gpus, failed)


def jobs(*rows: tuple[object, ...]) -> pl.DataFrame:
    frame = pl.DataFrame(list(rows), schema=dict(JOBS), orient="row")
    return frame.with_columns(pl.col("user", "state", "nodelist").cast(pl.Categorical))


def node(
    name: str, base: str = "IDLE", flags: Iterable[str] = (), reason: str | None = None, *, user: str | None = "root",
    at: float | None = None, gpus: int | None = 8, boot_at: float | None = None, gpus_used: int | None = None, slurmd_at: float | None = None,
) -> SchedulerNode:  # fmt: skip
    mark = None if reason is None else Mark(reason, user, None if at is None else SINCE + at * HOUR)
    return SchedulerNode(
        name,
        BaseState(base),
        frozenset(flags),
        mark,
        gpus=gpus,
        boot_at=boot_at,
        gpus_used=gpus_used,
        slurmd_start_at=slurmd_at,
    )


def fleet(*nodes: SchedulerNode, size: int = 8) -> dict[str, SchedulerNode]:
    plain = {f"n{k}": node(f"n{k}") for k in range(1, size + 1)}
    return {**plain, **{n.name: n for n in nodes}}


def given(
    events_: pl.DataFrame | None = None, jobs_: pl.DataFrame | None = None, nodes: dict[str, SchedulerNode] | None = None,
    **more: object,
) -> AuditInput:  # fmt: skip
    return AuditInput("test", WINDOW, fleet() if nodes is None else nodes, events_, jobs_, normalise, **more)  # type: ignore[arg-type]
