"""A big fleet for measurements: declared nodes, a scheduler that lists them, telemetry of all, and the whole service.

Values are those of the lab's pages of a healthy node, read once by the real parser and repeated for every node, so the
catalogue, the cleaning and the checks are the real ones. Time is moved by hand; what the turn takes is real.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import polars as pl

from labs.pages import BOOTED_AT, DCGM_PAGE, NODE_PAGE, Settings, page
from nodeworthy.adapters.files.catalogue import load as load_catalogue
from nodeworthy.decide.policy import Policy
from nodeworthy.judge.features import Windows
from nodeworthy.model.catalogue import Signal
from nodeworthy.model.event import LogEvent
from nodeworthy.model.fleet import Fleet, Node, NodeClass
from nodeworthy.model.identity import Resolver
from nodeworthy.model.scheduler import BaseState, Mark, SchedulerNode, SchedulerSnapshot
from nodeworthy.observe.exposition import parse
from nodeworthy.observe.samples import join
from nodeworthy.observe.snapshot import Snapshot, SourceReading
from nodeworthy.observe.telemetry import exposed, names_of, to_batch
from nodeworthy.ports import TelemetryBatch
from nodeworthy.record.history import History
from nodeworthy.record.store import SqlStore, open_store
from nodeworthy.service.engine import Engine
from nodeworthy.service.facts import Facts
from nodeworthy.service.picture import World
from nodeworthy.wiring.reasons import shipped_reasons
from nodeworthy.wiring.world import first_picture, fleet_of, save_world

START = 1_795_000_000.0
EVERY_S = 15.0
GPUS = 8
LEAF = 32


class HandClock:
    """Implements `ports.Clock`: the time of day stands until it is moved, durations are real."""

    def __init__(self, now: float = START) -> None:
        self.time = now

    def now(self) -> float:
        return self.time

    def monotonic(self) -> float:
        return time.perf_counter()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(0)


def names(count: int) -> list[str]:
    return [f"n{number:05}" for number in range(1, count + 1)]


def fleet(count: int) -> Fleet:
    """Nodes of eight H100 on leaves of 32."""
    shape = NodeClass("h100x8", gpus=GPUS, gpu_type="h100", cpus=64, memory_mb=2_000_000, expect={"nics": GPUS})
    nodes = {n: Node(n, shape.name, domains={"leaf": f"leaf{i // LEAF:03}"}) for i, n in enumerate(names(count))}
    return Fleet("big", {shape.name: shape}, nodes)


def scheduler(count: int, now: float, drained: Sequence[str] = ()) -> SchedulerSnapshot:
    """Every node idle, but for those that somebody drained."""
    mark = Mark("NHC: check_fs_mount /scratch", "root", now - 60)
    out = frozenset(drained)

    def node(name: str) -> SchedulerNode:
        return SchedulerNode(
            name,
            BaseState.IDLE,
            frozenset({"DRAIN"}) if name in out else frozenset(),
            mark if name in out else None,
            partitions=("batch",),
            cpus=64,
            memory_mb=2_000_000,
            sockets=2,
            gpus=GPUS,
            gpu_type="h100",
            gpus_used=0,
            address=name,
            hostname=name,
            boot_at=BOOTED_AT,
            slurmd_start_at=BOOTED_AT + 60,
            version="24.11.5",
        )

    return SchedulerSnapshot("big", "24.11.5", now, {name: node(name) for name in names(count)})


def batches(
    signals: Sequence[Signal], nodes: Sequence[str], now: float, settings: Settings | None = None
) -> list[TelemetryBatch]:
    """What the exporters of all nodes say at `now`: a page of one node, read once, with each node's name on it."""
    wanted = exposed(signals)
    found = []
    for kind, source in ((DCGM_PAGE, "dcgm"), (NODE_PAGE, "node")):
        text = page(kind, "model", now, settings or Settings())
        samples = join([parse(text, at=now, names=names_of(wanted), target="model").samples])
        one = to_batch(samples, wanted, lambda name: name, source=source, at=now)
        frames = {kind: _repeated(frame, nodes) for kind, frame in one.frames.items()}
        found.append(replace(one, frames=frames))
    return found


def _repeated(frame: pl.DataFrame, nodes: Sequence[str]) -> pl.DataFrame:
    every = pl.DataFrame({"node": pl.Series(list(nodes), dtype=pl.String)}).join(frame.drop("node"), how="cross")
    columns = every.select(frame.columns)
    if "gpu_uuid" in columns.columns:
        columns = columns.with_columns(pl.concat_str("gpu_uuid", pl.lit("-"), "node"))
    return columns


@dataclass
class Site:
    """The service without observers and API: what they would fill in and ask is done by hand."""

    engine: Engine
    snapshot: Snapshot
    clock: HandClock
    store: SqlStore
    signals: tuple[Signal, ...]

    def turn(self, after_s: float = EVERY_S) -> float:
        """Seconds of one whole turn: names, facts, judge, decide, changes and commit."""
        self.clock.time += after_s
        for name, reading in self.snapshot.sources.items():
            self.snapshot.sources[name] = replace(reading, last_ok=self.clock.time, last_try=self.clock.time)
        asyncio.run(self.engine.step())
        health = self.engine.health
        if health.failure or health.took_s is None:
            raise SystemExit(f"the turn failed: {health.failure}")
        return health.took_s

    def see(self, scheduler: SchedulerSnapshot | None = None, telemetry: Sequence[TelemetryBatch] = ()) -> None:
        if scheduler is not None:
            self.snapshot.scheduler = scheduler
            self._answered("slurm", "scheduler")
        for batch in telemetry:
            self.snapshot.batches[batch.source] = batch
            self._answered(batch.source, "exporter")

    def hear(self, events: Sequence[LogEvent]) -> None:
        self.snapshot.events.extend(events)
        self._answered("log", "log")

    def _answered(self, name: str, kind: str) -> None:
        self.snapshot.sources[name] = SourceReading(name, kind, EVERY_S, self.clock.time, self.clock.time)


@contextmanager
def site(folder: Path, declared: Fleet | None) -> Iterator[Site]:
    """A service over SQLite and a history in `folder`. Without a declared fleet it is what the scheduler lists."""
    store = open_store(str(folder / "record.db"))
    clock, catalogue = HandClock(), load_catalogue(())
    known = declared or Fleet("", {}, {})
    world = World(known, catalogue, Policy(), shipped_reasons(), Resolver(known))
    windows, snapshot = Windows(catalogue), Snapshot()
    facts = Facts(windows, History(folder / "history", windows.signals()))
    engine = Engine(
        picture=first_picture(world, store.load(), store, clock.now()),
        facts=facts,
        snapshot=snapshot,
        store=store,
        clock=clock,
        interval_s=EVERY_S,
        beat=lambda: None,
        keep_world=lambda world, now: save_world(world, store, now),
        fleet_of=None if declared else fleet_of,
    )
    try:
        yield Site(engine, snapshot, clock, store, tuple(catalogue.signals.values()))
    finally:
        facts.close()
        store.close()
