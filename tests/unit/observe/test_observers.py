"""Observers outlive whatever an adapter does, write it down, and end at once when they are cancelled."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import polars as pl
import pytest

from nodeworthy.errors import Unreachable
from nodeworthy.model.event import LogEvent
from nodeworthy.observe import observers as module
from nodeworthy.observe import snapshot as snapshot_module
from nodeworthy.observe.observers import Observers
from nodeworthy.observe.snapshot import Snapshot, SourceReading
from nodeworthy.ports import TelemetryBatch
from tests.pictures import START, node, scheduler, telemetry, xid


class Clock:
    """Time goes on with each sleep."""

    def __init__(self) -> None:
        self.at = START

    def now(self) -> float:
        return self.at

    def monotonic(self) -> float:
        return self.at

    async def sleep(self, seconds: float) -> None:
        self.at += seconds
        await asyncio.sleep(0)


class Port:
    """An adapter that does one thing after another, and then waits for ever."""

    source = "x"

    def __init__(self, *does: object) -> None:
        self.does = list(does)
        self.unknown_names: tuple[str, ...] = ()

    def read(self) -> Any:
        if not self.does:
            return asyncio.Event().wait()
        now = self.does.pop(0)
        if isinstance(now, Sync):
            raise now.error

        async def answer() -> object:
            if isinstance(now, BaseException):
                raise now
            return await now() if callable(now) else now

        return answer()

    def cursor(self) -> Mapping[str, object]:
        return {"left": len(self.does)}


class Sync:
    """Raises before there is anything to await."""

    def __init__(self, error: Exception) -> None:
        self.error = error


Watch = Callable[[Observers, Port], Any]
WATCHES: dict[str, Watch] = {
    "slurm": lambda o, port: o.watch_scheduler("slurm", port, 30.0),
    "dcgm": lambda o, port: o.watch_telemetry("dcgm", "exporter", port, 15.0),
    "log": lambda o, port: o.watch_log("log", port, 0.25),
}
GOOD: dict[str, object] = {
    "slurm": scheduler([node("n1")]),
    "dcgm": telemetry(["n1"], START),
    "log": [xid("n1", START)],
}


def play(name: str, *does: object) -> tuple[Snapshot, list[SourceReading], list[str]]:
    """The snapshot after the port did all that, the reading after each answer, and who woke or beat."""
    port, snapshot, calls = Port(*does), Snapshot(), list[str]()
    readings: list[SourceReading] = []

    async def run() -> None:
        clock = Clock()

        async def sleep(seconds: float) -> None:
            readings.append(snapshot.sources[name])
            clock.at += seconds
            await asyncio.sleep(0)

        clock.sleep = sleep  # type: ignore[method-assign]
        seen = Observers(snapshot, clock, lambda: calls.append("wake"), lambda _: calls.append("beat"))
        watching = asyncio.create_task(WATCHES[name](seen, port))
        while len(readings) < len(does) and not watching.done():
            await asyncio.sleep(0.001)
        assert not watching.done(), "the watch ended"
        watching.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(watching, 1.0)

    asyncio.run(run())
    return snapshot, readings, calls


@pytest.mark.parametrize("name", WATCHES)
@pytest.mark.parametrize(
    ("bad", "said"),
    [
        (Unreachable("no route to it"), "no route to it"),
        (OSError(5, "Input/output error"), "Input/output error"),
        (TimeoutError(), "did not answer in time"),
        (ValueError("odd"), "defect in the adapter: ValueError: odd"),
        (asyncio.CancelledError(), "defect in the adapter: CancelledError"),
        (RecursionError(), "defect in the adapter: RecursionError"),
        (Sync(KeyError("x")), "defect in the adapter: KeyError"),
        (None, "NoneType"),
        (17, "int"),
        ("text", "str"),
        ([1, 2], "list"),
    ],
)
def test_a_bad_answer_is_a_failure_and_not_the_end(name: str, bad: object, said: str) -> None:
    """After it the source is asked again, and a good answer makes it well; what was known before stays."""
    snapshot, (good, failed, well), calls = play(name, GOOD[name], bad, GOOD[name])

    assert good.problem == "" and good.last_ok is not None
    assert said in failed.problem
    assert failed.last_ok == good.last_ok
    assert well.problem == "" and well.last_ok is not None and well.last_ok > good.last_ok
    assert calls.count("beat") >= 3, "a failing source still has a loop that lives"
    if name == "log":
        assert len(snapshot.events) == 2 and snapshot.cursors["log"] == {"left": 0}


def test_a_hanging_adapter_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that never answers is given up after the hard limit, and asked again."""
    monkeypatch.setattr(module, "HARD_LIMIT_S", 0.05)

    _, (hung, well), _ = play("slurm", asyncio.Event().wait, GOOD["slurm"])
    assert "did not answer in time" in hung.problem
    assert well.problem == ""


def test_frames_without_keys_do_not_reach_the_turn() -> None:
    """A batch whose frames lack their keys would make every turn fail: it is the source's failure."""
    snapshot, (reading,), _ = play("dcgm", TelemetryBatch("dcgm", START, {"gpu": pl.DataFrame({"x": [1]})}))
    assert "lack node, index or seen" in reading.problem
    assert snapshot.batches == {}


def test_a_cursor_that_fails_brings_no_events() -> None:
    """Events and the cursor behind them come together or not at all: else a restart would read them again."""

    class Odd(Port):
        def cursor(self) -> Mapping[str, object]:
            raise RuntimeError("no cursor")

    snapshot = Snapshot()

    async def run() -> None:
        seen = Observers(snapshot, Clock(), lambda: None, lambda _: None)
        watching = asyncio.create_task(seen.watch_log("log", Odd(GOOD["log"]), 0.25))
        while snapshot.sources.get("log") is None or not snapshot.sources["log"].problem:
            await asyncio.sleep(0.001)
        watching.cancel()

    asyncio.run(run())
    assert (snapshot.events, snapshot.cursors) == ([], {})


def test_a_log_is_not_read_on_while_its_lines_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """With too many events waiting the file is left alone and the source says why; after a turn it is read again."""
    monkeypatch.setattr(snapshot_module, "MOST_EVENTS", 3)
    lines: Sequence[LogEvent] = [xid("n1", START + n) for n in range(4)]
    port, snapshot = Port(lines, lines), Snapshot()

    async def run() -> str:
        seen = Observers(snapshot, Clock(), lambda: None, lambda _: None)
        watching = asyncio.create_task(seen.watch_log("log", port, 0.25))
        while not snapshot.full:
            await asyncio.sleep(0)
        for _ in range(50):
            await asyncio.sleep(0)
        held, said = len(snapshot.events), snapshot.sources["log"].problem
        assert held == 4
        snapshot.take()
        while not snapshot.full:
            await asyncio.sleep(0)
        watching.cancel()
        return said

    assert "wait for a turn" in asyncio.run(run())
    assert port.does == []


def test_the_first_nodes_and_all_lines_wake_the_turn() -> None:
    """A first scheduler answer and new lines should not wait; a second answer and a quiet log may."""
    assert play("slurm", GOOD["slurm"], GOOD["slurm"])[2].count("wake") == 1
    assert play("log", [], GOOD["log"], [])[2].count("wake") == 1
    assert play("dcgm", GOOD["dcgm"])[2].count("wake") == 0
