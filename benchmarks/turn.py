"""How long one whole turn takes on 10,000 nodes of eight GPUs: names, facts, judge, decide, changes, commit to SQLite.

    python -m benchmarks.turn [--nodes 10000] [--lab] [--profile CASE]

Without --lab the nodes and their telemetry (all signals of the lab's pages) are made up and the turn is the service's
own engine. With --lab a real slurmctld with as many phantom nodes is started (root, Debian's Slurm), read by the real
adapter, and then watched by `nodeworthy serve` as a process, which the real commands ask.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import cProfile
import json
import pstats
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from benchmarks import measure
from benchmarks.big_fleet import EVERY_S, GPUS, Site, batches, fleet, names, scheduler, site
from benchmarks.measure import Figure
from labs.logsource import xid_line
from labs.pages import Settings
from labs.slurm_lab import SlurmLab
from nodeworthy.adapters.clock import SystemClock
from nodeworthy.adapters.files.literals import finder
from nodeworthy.adapters.files.log_rules import load_grammar
from nodeworthy.adapters.logfile import LogFile
from nodeworthy.adapters.slurm.command import SlurmCommand
from nodeworthy.adapters.slurm.scheduler import SlurmScheduler
from nodeworthy.model.event import LogEvent
from nodeworthy.model.identity import NameKind

TARGET_S = 3.0
START_LIMIT_S = 600.0  # nodes whose registration was lost in the crowd are asked again after five minutes
STORM_LINES, STORM_NODES = 10_000, 1_000
HOT = Settings(
    values={("model", "", "DCGM_FI_DEV_GPU_TEMP"): 99.0, ("model", "", "DCGM_FI_DEV_ROW_REMAP_FAILURE"): 1.0}
)


class Turns:
    """Takes turns and says what they took; with `profile` the named case is taken under cProfile."""

    def __init__(self, site: Site, profile: str) -> None:
        self.site = site
        self.profile = profile

    def take(self, case: str, what: str, *, times: int = 1, prepare: Callable[[], None] = lambda: None) -> Figure:
        took: list[tuple[float, float]] = []
        for _ in range(times):
            prepare()
            busy = time.process_time()
            wall = self._profiled() if case == self.profile else self.site.turn()
            took.append((wall, time.process_time() - busy))
        wall, busy = min(took)
        return Figure(what, wall, "s", TARGET_S, beside=f"{measure.number(busy)} s of processor time")

    def _profiled(self) -> float:
        """The turn's own work under cProfile; it runs in a thread, where a profile of this one sees nothing."""
        engine, profile = self.site.engine, cProfile.Profile()
        work = engine._turn_and_commit
        engine._turn_and_commit = lambda *given: profile.runcall(work, *given)  # type: ignore[method-assign]
        took = self.site.turn()
        engine._turn_and_commit = work  # type: ignore[method-assign]
        pstats.Stats(profile).sort_stats("cumulative").print_stats(45)
        return took


def storm(folder: Path, site: Site, nodes: Sequence[str], clock_now: float) -> tuple[list[LogEvent], float]:
    """10,000 Xid lines of 1,000 nodes in one file, read by the real log reader; and the seconds that took."""
    path, grammar = folder / "kern.log", load_grammar()
    some = nodes[:STORM_NODES]
    lines = (xid_line(some[n % len(some)], n % GPUS, 79, clock_now + n / STORM_LINES) for n in range(STORM_LINES))
    path.write_text("".join(line + "\n" for line in lines))
    resolver = site.engine.world.resolver
    tail = LogFile(path, grammar=grammar, find=finder(grammar.literals), clock=site.clock,
                   resolve=lambda name: resolver.node(NameKind.SYSLOG, name).node, from_start=True)  # fmt: skip
    start = time.perf_counter()
    events: list[LogEvent] = []
    while more := asyncio.run(tail.read()):
        events += more
    took = time.perf_counter() - start
    tail.close()
    return events, took


def made_up(count: int, profile: str) -> Iterator[Figure]:
    """Turns over invented nodes with all their telemetry."""
    listed = names(count)
    with tempfile.TemporaryDirectory() as scratch, site(Path(scratch), fleet(count)) as watched:
        turns, clock = Turns(watched, profile), watched.clock

        def see(drained: Sequence[str] = (), settings: Settings | None = None) -> None:
            now = clock.time + EVERY_S
            watched.see(scheduler(count, now, drained), batches(watched.signals, listed, now, settings))

        of = f"{count:,} nodes, {count * GPUS:,} GPUs"
        yield turns.take("first", f"{of}: the first turn, nothing is known", prepare=see)
        yield turns.take("quiet", f"{of}: a turn with new readings, nothing is new", times=5, prepare=see)
        yield turns.take("idle", f"{of}: a turn without new readings", times=5)
        some = listed[: count // 10]
        yield turns.take("changed", f"{of}: {len(some):,} nodes drained", prepare=lambda: see(some))
        yield turns.take("back", f"{of}: and back", prepare=see)
        events, read = storm(Path(scratch), watched, listed, clock.time)
        yield Figure(f"reading {len(events):,} Xid lines of {STORM_NODES:,} nodes", read, "s")
        yield turns.take("storm", f"{of}: with those lines", prepare=lambda: watched.hear(events))
        yield turns.take("after", f"{of}: the turns after them", times=3, prepare=see)
        yield turns.take("all bad", f"{of}: two faults on every GPU, opening", times=1, prepare=lambda: see((), HOT))
        standing = [turns.take(f"bad {n}", f"{of}: two faults on every GPU, standing", prepare=lambda: see((), HOT))
                    for n in range(8)]  # fmt: skip
        worst = max(standing, key=lambda f: f.value)
        yield replace(worst, what=f"{of}: two faults on every GPU, the worst of 8 turns")
        yield Figure(f"{of}: findings that stand then", len(watched.engine.picture.findings), "findings")
        yield turns.take("closing", f"{of}: all well again, closing", prepare=see)
    yield Figure("memory of these turns", measure.memory_mb(), "MB")


def with_lab(count: int, profile: str, running: Path | None) -> Iterator[Figure]:
    """Turns over a real slurmctld, and `serve` on it. `running`: a lab that is there, else one is started."""
    with tempfile.TemporaryDirectory(prefix="nw-turn-") as scratch, contextlib.ExitStack() as then:
        folder = Path(scratch)
        folder.chmod(0o755)
        if running is not None:
            lab = SlurmLab.attach(running)
        else:
            lab = then.enter_context(SlurmLab(folder / "lab", nodes=0, phantom=count, leaf=100).start(START_LIMIT_S))
        yield from _turns_on(lab, lab.options.phantom, folder, profile)
        yield from _serve_on(lab, lab.options.phantom, folder)


def _turns_on(lab: SlurmLab, count: int, folder: Path, profile: str) -> Iterator[Figure]:
    of = f"lab of {count:,} phantom nodes"
    command = SlurmCommand(env=lab.env)

    def read() -> float:
        start = time.perf_counter()
        watched.see(asyncio.run(SlurmScheduler(command, SystemClock()).read()))
        return time.perf_counter() - start

    (folder / "turns").mkdir()
    with site(folder / "turns", None) as watched:
        turns = Turns(watched, profile)
        watched.clock.time = time.time()
        yield Figure(f"{of}: reading all of Slurm", min(read() for _ in range(3)), "s")
        yield turns.take("lab first", f"{of}: the first turn")
        yield turns.take("lab quiet", f"{of}: a turn with a new reading", times=3, prepare=lambda: _unused(read()))
        some = f"ph[00001-{count // 10:05}]"
        lab.run("scontrol", "update", f"nodename={some}", "state=drain", "reason=NHC: check_fs_mount /scratch")
        yield turns.take("lab changed", f"{of}: {count // 10:,} nodes drained", prepare=lambda: _unused(read()))
        lab.run("scontrol", "update", f"nodename={some}", "state=resume")
        yield turns.take("lab back", f"{of}: and back", prepare=lambda: _unused(read()))


def _unused(_: float) -> None:
    """A time that is not a figure."""


def _serve_on(lab: SlurmLab, count: int, folder: Path) -> Iterator[Figure]:
    of = f"serve on {count:,} phantom nodes"
    config, socket = folder / "nodeworthy.toml", folder / "nw.sock"
    environment = "".join(f'{name} = "{value}"\n' for name, value in lab.env.items())
    config.write_text(
        f'state_dir = "{folder}/state"\nsocket = "{socket}"\n[turn]\ninterval = "2s"\n'
        f'[slurm]\ninterval = "5s"\n[slurm.environment]\n{environment}'
    )
    env = {**measure.environment(), "NODEWORTHY_SOCKET": str(socket)}
    command = measure.nodeworthy("serve", "--config", str(config))
    with (folder / "serve.log").open("wb") as log:
        serve = subprocess.Popen(command, env=env, stdout=log, stderr=log)
    try:
        started = time.perf_counter()
        turn = _third_turn(env, socket)
        yield Figure(f"{of}: from its start to the third turn", time.perf_counter() - started, "s")
        yield Figure(f"{of}: a turn, as it says itself", turn, "s", TARGET_S)
        for words in (["status"], ["node", "list"], ["would"], ["node", "explain", "ph00007"], ["doctor"]):
            said = " ".join(words)
            costs = [measure.cost(measure.nodeworthy(*words, "-o", "json"), env=env) for _ in range(3)]
            fastest = min(costs, key=lambda c: c.wall_s)
            size = f"{len(fastest.stdout) / 1e6:.1f} MB of JSON" if len(fastest.stdout) > 1e6 else ""
            yield Figure(f"{of}: nodeworthy {said}", fastest.wall_s, "s", beside=size)
        yield Figure(f"{of}: its memory", measure.memory_mb(serve.pid, "VmRSS"), "MB")
        yield Figure(f"{of}: its greatest memory", measure.memory_mb(serve.pid), "MB")
    finally:
        serve.send_signal(signal.SIGTERM)
        serve.wait(30)


def _third_turn(env: dict[str, str], socket: Path) -> float:
    """Wait for the third turn; the seconds that it took."""
    end = time.monotonic() + 120
    while time.monotonic() < end:
        time.sleep(0.5)
        if not socket.exists():
            continue
        answer = measure.cost(measure.nodeworthy("status", "-o", "json"), env=env)
        turn = json.loads(answer.stdout or b"{}").get("turn", {})
        if turn.get("number", 0) >= 3:
            return float(turn["took_s"])
    raise SystemExit("serve took no turns within two minutes")


def figures(given: argparse.Namespace) -> Iterator[Figure]:
    count = given.nodes or (1_000 if given.small else 10_000)
    yield from made_up(count, given.profile)
    if given.lab or given.lab_at:
        yield from with_lab(count, given.profile, given.lab_at)


def main() -> None:
    options = measure.parser(__doc__)
    options.add_argument("--nodes", type=int, help="how many (10,000; with --small 1,000)")
    options.add_argument("--lab", action="store_true", help="also on a real slurmctld, and serve as a process")
    options.add_argument(
        "--lab-at", type=Path, metavar="DIR", help="the same on a lab that runs there (labs.slurm_lab)"
    )
    options.add_argument("--profile", default="", metavar="CASE", help="show where this case spends its time")
    given = options.parse_args()
    measure.report(figures(given), given)


if __name__ == "__main__":
    main()
