"""Puts `nodeworthy serve` together, longhand: this is the one place where everything meets.

Order matters: the store first (what was known), then the world (what is declared), then the first picture from both,
then the observers, the turn and the API. On the way down everything stops at once and the store closes last.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import socket
import sys
from collections.abc import Coroutine
from typing import Any

from nodeworthy.adapters.clock import SystemClock
from nodeworthy.api.app import create_app, create_metrics_app
from nodeworthy.api.server import listening, serve, tcp_listener
from nodeworthy.cli.printable import printable, say
from nodeworthy.errors import BadRequest, NodeworthyError
from nodeworthy.judge.features import Windows
from nodeworthy.model.duration import format_time
from nodeworthy.model.identity import NameKind
from nodeworthy.observe.observers import HARD_LIMIT_S, Observers
from nodeworthy.observe.snapshot import Snapshot
from nodeworthy.record.history import History
from nodeworthy.record.sole import sole
from nodeworthy.record.store import SqlStore, open_store
from nodeworthy.service.deadman import DeadMan, Watchdog, sd_notify, watchdog_interval
from nodeworthy.service.engine import Engine, TurnHealth
from nodeworthy.service.facts import Facts
from nodeworthy.service.live import LiveViews
from nodeworthy.service.metrics import Metrics
from nodeworthy.service.picture import Picture
from nodeworthy.service.views import LoopView
from nodeworthy.wiring import selfchecks, sources
from nodeworthy.wiring.settings import Settings
from nodeworthy.wiring.world import first_picture, fleet_of, load_world, save_world

log = logging.getLogger("nodeworthy")

LOG_INTERVAL_S = 0.25  # a trusted line is to be judged within two seconds of being written
FIRST_SIGHT_S = 30.0  # how long a first reading is waited for
DAY_S = 86400.0

Watch = Coroutine[Any, Any, None]


def run(settings: Settings, *, once: bool = False) -> bool:
    """Serve until SIGTERM or SIGINT; with `once`, read everything once, print the status, and say whether all is well.

    Raises NotAllowed where another one runs on the same store or socket, also with `once`: it would commit lines,
    findings and cursors a second time.
    """
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s: %(message)s", stream=sys.stderr)
    for chatty in ("httpx", "alembic", "uvicorn"):
        logging.getLogger(chatty).setLevel(logging.WARNING)
    try:
        settings.state_dir.mkdir(mode=0o750, parents=True, exist_ok=True)
    except OSError as error:
        raise BadRequest(
            f"cannot make the state directory {settings.state_dir}: {error.strerror}",
            hint="choose another `state_dir` in the configuration",
        ) from error
    with sole(settings.store_url):
        return _run(settings, once)


def _run(settings: Settings, once: bool) -> bool:
    store = open_store(settings.store_url)
    try:
        site = _Site(settings, store)
        try:
            return asyncio.run(_all_of(site, once))
        finally:
            site.facts.close()
    except BaseExceptionGroup as group:
        known = group.subgroup(NodeworthyError)
        if known is None:
            raise
        raise known.exceptions[0] from group
    finally:
        store.close()


async def _all_of(site: _Site, once: bool) -> bool:
    if once:
        return await site.look_once()
    await site.serve()
    return True


class _Site:
    """One running control plane."""

    def __init__(self, settings: Settings, store: SqlStore) -> None:
        self.settings = settings
        self.store = store
        self.clock = SystemClock()
        self.metrics = Metrics()
        self.snapshot = Snapshot()
        self.deadman = DeadMan(self.clock.monotonic, self._loop_changed)
        self.started = self.clock.monotonic()
        self.last_said = next((entry.at for entry in store.entries(limit=1, newest=True)), None)
        world, declared = load_world(settings, store)
        self.memory = store.load()
        windows = Windows(world.catalogue)
        keep_s = settings.retention.history
        self.facts = Facts(windows, History(settings.state_dir / "history", windows.signals(), keep_s=keep_s))
        self.engine = Engine(
            picture=first_picture(world, self.memory, store, self.clock.now()),
            facts=self.facts,
            snapshot=self.snapshot,
            store=store,
            clock=self.clock,
            interval_s=settings.turn.interval,
            beat=lambda: self.deadman.beat("turn"),
            keep_world=lambda world, now: save_world(world, store, now),
            fleet_of=None if declared else fleet_of,
            on_turn=self._turn_made,
        )
        checks = selfchecks.all_of(settings, store, self.clock, declared)
        self.views = LiveViews(self.engine, store, self.clock, self.deadman.loops, checks)
        self.metrics.watch(self.views, self.deadman.loops)

    # the loops

    async def serve(self) -> None:
        """Until SIGTERM or SIGINT. The API answers from the start: before the first turn it says so."""
        with listening(self.settings.socket, group=self.settings.socket_group) as listener:
            stop = asyncio.Event()
            for number in (signal.SIGTERM, signal.SIGINT):
                asyncio.get_running_loop().add_signal_handler(number, stop.set)
            watchdog = Watchdog(self.deadman, watchdog_interval())
            async with asyncio.TaskGroup() as tasks:
                answering = tasks.create_task(self._answer(listener, stop), name="api")
                loops = await self._observe(tasks, stop)
                loops.append(tasks.create_task(self.engine.run(), name="turn"))
                loops.append(tasks.create_task(self._clean_up(), name="retention"))
                watchdog.start()
                sd_notify("READY=1")
                log.info("observing %s; API on %s", self._what(), self.settings.socket)
                await answering
                watchdog.stop()
                for loop in loops:
                    loop.cancel()

    async def look_once(self) -> bool:
        """Read everything once, take a turn, print the status; whether all is well."""
        async with asyncio.TaskGroup() as tasks:
            for loop in await self._observe(tasks, asyncio.Event()):
                loop.cancel()
        status = self.views.status()
        states = ", ".join(f"{count} {state}" for state, count in status.by_state.items() if count)
        lines = [f"{len(self.engine.world.fleet.nodes)} nodes: {states or 'none seen'}"]
        lines += [f"{need.severity}: {need.subject}: {need.summary}" for need in status.needs]
        say("\n".join(map(printable, lines)))
        return status.well

    async def _observe(self, tasks: asyncio.TaskGroup, stop: asyncio.Event) -> list[asyncio.Task[None]]:
        """Start the observers and take the first turns.

        The scheduler comes first: it knows boots and, without a fleet file, the names that the others are to resolve.
        """
        # a turn is due every interval; on 10,000 nodes it takes seconds, on a stalled disk longer
        self.deadman.register("turn", max(6 * self.settings.turn.interval, 60.0))
        observers = Observers(self.snapshot, self.clock, self.engine.wake, self.deadman.beat, self._source_read)
        self._declare_all(observers)
        loops: list[asyncio.Task[None]] = []
        for watch in (self._watch_scheduler, self._watch_others):
            loops += [tasks.create_task(loop, name=name) for name, loop in watch(observers).items()]
            await self._first_sight(stop, len(loops))
            await self.engine.step()
        return loops

    def _declare_all(self, observers: Observers) -> None:
        """Name every source before the first turn: what is known of one that was not read yet still stands."""
        settings = self.settings
        if settings.slurm.enabled:
            observers.declare("slurm", "scheduler", settings.slurm.interval)
        for group in settings.exporters:
            observers.declare(group.name, "exporter", group.interval)
        for site in settings.prometheus:
            observers.declare(site.name, "prometheus", site.interval)
        for file in settings.logs:
            observers.declare(file.called, "log", LOG_INTERVAL_S)

    async def _answer(self, listener: socket.socket, stop: asyncio.Event) -> None:
        """The API on its socket and, if asked for, metrics and health on TCP."""
        registry, loops = self.metrics.registry, self.deadman.loops
        app = create_app(self.views, registry=registry, loops=loops, sleep=self.clock.sleep, stop=stop)
        answering = [serve(app, listener, stop)]
        with contextlib.ExitStack() as open_sockets:
            if self.settings.metrics_listen:
                tcp = open_sockets.enter_context(contextlib.closing(tcp_listener(self.settings.metrics_listen)))
                answering.append(serve(create_metrics_app(self.views, registry, loops), tcp, stop))
            await asyncio.gather(*answering)

    async def _first_sight(self, stop: asyncio.Event, number: int) -> None:
        """Wait until every one of so many sources has answered or failed once."""
        deadline = self.clock.monotonic() + FIRST_SIGHT_S
        while self.clock.monotonic() < deadline and not stop.is_set():
            if sum(s.last_try is not None for s in self.snapshot.sources.values()) >= number:
                return
            await self.clock.sleep(0.05)

    async def _clean_up(self) -> None:
        """Retention. Not before the first good turn, and not while the clock is in doubt: it removes for good."""
        retention = self.settings.retention
        while self.engine.health.at is None:
            await self.clock.sleep(1.0)
        while True:
            now = self.clock.now()
            try:
                if doubt := await asyncio.to_thread(self._clock_doubt, now):
                    log.warning("retention removes nothing: %s", doubt)
                    await self.clock.sleep(retention.every)
                    continue
                removed = await asyncio.to_thread(self.store.prune, now - retention.record, now=now)
            except NodeworthyError as error:  # a store that is locked or full: the next round does it
                log.warning("retention could not clean up: %s", "; ".join(error.chain()))
            else:
                if any(removed.removed.values()):
                    log.info("retention removed %s", dict(removed.removed))
            await self.clock.sleep(retention.every)

    def _clock_doubt(self, now: float) -> str:
        """Why `now` may be wrong by far (a machine whose clock lost its battery), empty where nothing says so.

        What the record said last before this start, and how long we run, tell about what time it is. A clean-up that
        is in the record (ours of before, or one by hand) tells so too.
        """
        if self.last_said is None:
            return ""
        uptime = self.clock.monotonic() - self.started
        cleaned = self.store.entries(limit=1, kinds=("store.pruned",), newest=True)
        known = max([self.last_said + uptime, *(entry.at for entry in cleaned)])
        if now <= known + self.settings.retention.every + DAY_S:
            return ""
        return (
            f"the clock says {format_time(now)} and the record allows for {format_time(known)}; if the clock is right, "
            "run `nodeworthy store prune --older-than 400d` once"
        )

    def _watch_scheduler(self, observers: Observers) -> dict[str, Watch]:
        slurm = self.settings.slurm
        if not slurm.enabled:
            return {}
        self._budget("slurm", slurm.interval)
        return {"slurm": observers.watch_scheduler("slurm", sources.scheduler(slurm, self.clock), slurm.interval)}

    def _watch_others(self, observers: Observers) -> dict[str, Watch]:
        """Name → loop of every configured source but the scheduler."""
        signals = tuple(self.engine.world.catalogue.signals.values())
        exporter_of, syslog_of = self._node_of(NameKind.EXPORTER), self._node_of(NameKind.SYSLOG)
        found: dict[str, Watch] = {}
        for group in self.settings.exporters:
            scraper = sources.exporters(group, signals, exporter_of, self.clock)
            found[group.name] = observers.watch_telemetry(group.name, "exporter", scraper, group.interval)
            self._budget(group.name, group.interval)
        for site in self.settings.prometheus:
            asker = sources.prometheus(site, signals, exporter_of, self.clock)
            found[site.name] = observers.watch_telemetry(site.name, "prometheus", asker, site.interval)
            self._budget(site.name, site.interval)
        for file in self.settings.logs:
            name = file.called
            tail = sources.log_file(file, syslog_of, self.clock, self.memory.cursors.get(name))
            found[name] = observers.watch_log(name, tail, LOG_INTERVAL_S)
            self._budget(name, LOG_INTERVAL_S)
        return found

    def _budget(self, name: str, interval_s: float) -> None:
        """A loop that waits for its source lives: it counts as stalled only after the observer would have given up."""
        self.deadman.register(name, 3 * interval_s + HARD_LIMIT_S + 10.0)

    def _node_of(self, kind: NameKind) -> sources.Resolve:
        """Always asks the present resolver: the fleet may change while we run."""
        return lambda name: self.engine.world.resolver.node(kind, name).node

    # what is told about ourselves

    def _source_read(self, name: str, took_s: float, answered: bool) -> None:
        self.metrics.source_read(name, took_s, ok=answered)

    def _turn_made(self, _: Picture, health: TurnHealth) -> None:
        self.metrics.turn_made(health.took_s or 0.0, ok=not health.failure)

    def _loop_changed(self, loop: LoopView) -> None:
        word = "stalled" if loop.stalled else "beats again"
        self.engine.note("loop.stalled" if loop.stalled else "loop.back", loop.name, f"our loop {loop.name} {word}")

    def _what(self) -> str:
        fleet = self.engine.picture.world.fleet
        return (
            f"{len(fleet.nodes)} nodes of {fleet.name or 'an undeclared fleet'} ({len(self.snapshot.sources)} sources)"
        )
