"""Small sites for tests of the turn and of what is said of it: what each source says is given, all else is real.

`Site.turn` does what the engine does with a snapshot, without threads and clocks: names are the fleet's already.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

import polars as pl

from nodeworthy.adapters.files.catalogue import load
from nodeworthy.decide.policy import Policy
from nodeworthy.judge.features import Windows
from nodeworthy.model.catalogue import Catalogue
from nodeworthy.model.event import LogEvent, Role
from nodeworthy.model.fleet import Fleet, Node, NodeClass
from nodeworthy.model.identity import Resolver
from nodeworthy.model.record import Memory, Outcome, Page
from nodeworthy.model.scheduler import BaseState, Job, Mark, SchedulerNode, SchedulerSnapshot
from nodeworthy.observe.snapshot import Seen, SourceReading
from nodeworthy.ports import Store, TelemetryBatch
from nodeworthy.service.changes import changes
from nodeworthy.service.facts import Facts
from nodeworthy.service.picture import Picture, World
from nodeworthy.service.turn import turn
from nodeworthy.wiring.reasons import shipped_reasons
from nodeworthy.wiring.world import first_picture

START = 1_796_000_000.0
BOOT = START - 86400.0
STEP = 15.0
GPUS = 2
NOTHING = Memory({}, {}, {}, {}, {}, {}, 0)


@lru_cache(maxsize=1)
def catalogue() -> Catalogue:
    return load()


def fleet(count: int = 4) -> Fleet:
    """`n1`…: two GPUs and one port each, all on one leaf."""
    node_class = NodeClass("h", gpus=GPUS, expect={"nics": "mlx5_[0-0]", "gpu_temperature_max": 90.0})
    nodes = {f"n{i}": Node(f"n{i}", "h", domains={"leaf": "leaf1"}) for i in range(1, count + 1)}
    return Fleet("lab", {"h": node_class}, nodes)


def world(declared: Fleet | None = None) -> World:
    declared = fleet() if declared is None else declared
    return World(declared, catalogue(), Policy(), shipped_reasons(), Resolver(declared))


def node(
    name: str,
    base: str = "IDLE",
    *flags: str,
    reason: str | None = None,
    user: str | None = "root",
    at: float | None = START - 600,
    boot_at: float | None = BOOT,
    reservation: str | None = None,
) -> SchedulerNode:
    mark = None if reason is None else Mark(reason, user, at)
    return SchedulerNode(
        name, BaseState(base), frozenset(flags), mark, gpus=GPUS, boot_at=boot_at, reservation=reservation
    )


def scheduler(nodes: Iterable[SchedulerNode], at: float = START, jobs: Sequence[Job] = ()) -> SchedulerSnapshot:
    return SchedulerSnapshot("c", "24.11", at, {n.name: n for n in nodes}, tuple(jobs))


def job(job_id: str, *nodes: str) -> Job:
    return Job(job_id, "train", "bob", "RUNNING", "gpu", nodes)


def xid(name: str, at: float, code: str = "79", place: str = "0000:17:00", **more: object) -> LogEvent:
    event = LogEvent(
        at, name, place, "xid", code, Role.ORIGIN, "fatal", "reboot", "gpu", True, f"xid-{code}",
        f"NVRM: Xid (PCI:{place}): {code}, GPU has fallen off the bus.", node=name, source="kern.log", read_at=at,
    )  # fmt: skip
    return replace(event, **more)  # type: ignore[arg-type]


def telemetry(
    names: Iterable[str], at: float, bad: Iterable[str] = (), ports_down: Iterable[str] = (), source: str = "dcgm"
) -> TelemetryBatch:
    """What an exporter says of the named nodes; GPU 1 of the `bad` has failed to remap a row."""
    names, bad, down = list(names), set(bad), set(ports_down)
    keys = [(name, str(i)) for name in names for i in range(GPUS)]
    gpus = pl.DataFrame(
        {
            "node": [k[0] for k in keys],
            "index": [k[1] for k in keys],
            "seen": [at] * len(keys),
            "gpu_temperature": [60.0] * len(keys),
            "row_remap_failed": [k[0] in bad and k[1] == "1" for k in keys],
            "gpu_pci_address": [f"0000:{0x17 + int(i):02x}:00.0" for _, i in keys],
        },
        schema_overrides={"node": pl.String, "index": pl.String, "seen": pl.Float64, "row_remap_failed": pl.Boolean,
                          "gpu_temperature": pl.Float64, "gpu_pci_address": pl.String},
    )  # fmt: skip
    ports = pl.DataFrame(
        {"node": names, "index": ["mlx5_0"] * len(names), "seen": [at] * len(names),
         "ib_state": [1 if n in down else 4 for n in names]},
        schema={"node": pl.String, "index": pl.String, "seen": pl.Float64, "ib_state": pl.Int64},
    )  # fmt: skip
    return TelemetryBatch(source, at, {"gpu": gpus, "nic": ports})


SOURCES = {"slurm": "scheduler", "dcgm": "exporter", "kern.log": "log"}


@dataclass
class Site:
    """`store` keeps what the turns say, if there is one. A source that is not given in a turn does not answer in it."""

    world: World = field(default_factory=world)
    now: float = START
    store: Store | None = None
    picture: Picture | None = None
    outcomes: list[Outcome] = field(default_factory=list)
    readings: dict[str, SourceReading] = field(default_factory=dict)
    _scheduler: SchedulerSnapshot | None = None
    _batch: TelemetryBatch | None = None

    def __post_init__(self) -> None:
        self.start()

    def start(self) -> None:
        """As after a start of the process: all that is known is in the store."""
        memory = NOTHING if self.store is None else self.store.load()
        self.picture = first_picture(self.world, memory, self.store or Empty(), self.now)
        self.readings = {n: SourceReading(n, kind, STEP, self.now) for n, kind in SOURCES.items()}
        self.facts = Facts(Windows(self.world.catalogue))
        self._scheduler = self._batch = None

    def seen(
        self,
        nodes: Iterable[SchedulerNode] | None,
        batch: TelemetryBatch | None,
        events: Sequence[LogEvent] | None,
        jobs: Sequence[Job] = (),
    ) -> Seen:
        answered = {"slurm": nodes is not None, "dcgm": batch is not None, "kern.log": events is not None}
        for name, reading in self.readings.items():
            ok = answered[name]
            self.readings[name] = replace(
                reading,
                last_try=self.now,
                last_ok=self.now if ok else reading.last_ok,
                problem="" if ok else "no route",
            )
        if nodes is not None:
            self._scheduler = scheduler(nodes, self.now, jobs)
        self._batch = batch or self._batch
        return Seen(
            self._scheduler, (self._batch,) if self._batch else (), tuple(events or ()), {}, dict(self.readings)
        )

    def turn(
        self,
        nodes: Iterable[SchedulerNode] | None = None,
        batch: TelemetryBatch | None = None,
        events: Sequence[LogEvent] | None = (),
        jobs: Sequence[Job] = (),
        step: float = STEP,
    ) -> Picture:
        """The next picture, `step` seconds later."""
        self.now += step
        return self.judge(self.seen(nodes, batch, events, jobs))

    def judge(self, seen: Seen) -> Picture:
        assert self.picture is not None
        seen = seen.current(self.now)
        before, frames = self.picture, self.facts.frames(self.world, seen, self.now)
        self.picture = turn(self.world, before, seen, frames, self.now)
        outcome = changes(before, self.picture)
        self.outcomes.append(outcome)
        if self.store is not None:
            self.store.commit_turn(outcome)
        return self.picture

    def kinds(self) -> list[str]:
        """The kinds of the last turn's ledger entries."""
        return [entry.kind for entry in self.outcomes[-1].entries]


class Empty:
    """A store that has nothing: a first start."""

    def events(self, **_: object) -> object:
        return Page(())

    def entries(self, **_: object) -> list[object]:
        return []

    def note(self, _: str) -> None:
        return None


def story(picture: Picture) -> Mapping[str, object]:
    """What a picture says, without frames and without the order of its mappings."""
    return {
        name: getattr(picture, name)
        for name in ("findings", "unknown", "incidents", "holds", "marks", "statuses", "transitions", "jobs", "boots",
                     "told", "lost", "revisions", "events")
    }  # fmt: skip
