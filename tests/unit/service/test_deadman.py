"""The dead-man: stalls are announced once, health follows, systemd is fed only while all loops beat."""

from __future__ import annotations

import socket
import time
from pathlib import Path

import pytest

from nodeworthy.api.app import create_app
from nodeworthy.cli.client import connect
from nodeworthy.service.deadman import DeadMan, Watchdog, sd_notify, watchdog_interval
from nodeworthy.service.views import LoopView
from tests.serving import serving
from tests.views_in_memory import MemoryViews


class Hand:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_stall_is_announced_once_and_so_is_the_recovery() -> None:
    """One entry when a loop goes over its budget, one when it beats again."""
    clock, told = Hand(), list[LoopView]()
    deadman = DeadMan(clock, told.append)
    deadman.register("turn", 15)
    deadman.register("slurm", 90)
    deadman.beat("turn")
    clock.now += 16
    assert [v.name for v in deadman.check()] == ["turn"]
    deadman.check()
    deadman.beat("turn")
    assert deadman.check() == ()
    assert [(v.name, v.stalled) for v in told] == [("turn", True), ("turn", False)]


def test_a_loop_that_never_beats_stalls_too() -> None:
    """The budget also holds for the first beat; until then the age is not known."""
    clock = Hand()
    deadman = DeadMan(clock)
    deadman.register("turn", 15)
    assert deadman.loops() == (LoopView("turn", None, 15, False),)
    clock.now += 15.5
    assert [v.name for v in deadman.check()] == ["turn"]


def test_beating_exactly_in_time_is_fine() -> None:
    """A beat at the budget's edge is no stall."""
    clock = Hand()
    deadman = DeadMan(clock)
    deadman.register("turn", 15)
    clock.now += 15
    assert deadman.check() == ()


def test_unregistered_loop_is_our_defect() -> None:
    """Beating under a wrong name fails loudly instead of watching nothing."""
    with pytest.raises(KeyError):
        DeadMan(Hand()).beat("trun")


def test_systemd_is_fed_only_while_all_loops_beat() -> None:
    """WATCHDOG=1 stops with the first stalled loop and says which; it goes on after the recovery."""
    clock, sent = Hand(), list[str]()

    def notify(message: str) -> bool:
        sent.append(message)
        return True

    deadman = DeadMan(clock)
    deadman.register("turn", 15)
    deadman.register("log", 60)
    watchdog = Watchdog(deadman, notify=notify)
    watchdog.round()
    clock.now += 20
    watchdog.round()
    deadman.beat("turn")
    watchdog.round()
    assert ["WATCHDOG=1" in m for m in sent] == [True, False, True]
    assert sent[1] == "STATUS=stalled: turn"


def test_watchdog_thread_looks_on_its_own() -> None:
    """The thread notices a stall while everything else stands still, and stops when asked."""
    sent: list[str] = []
    deadman = DeadMan(time.monotonic)
    deadman.register("turn", 0.05)
    watchdog = Watchdog(deadman, interval_s=0.02, notify=lambda m: sent.append(m) is None)
    watchdog.start()
    end = time.monotonic() + 10
    while not any("stalled" in m for m in sent) and time.monotonic() < end:
        time.sleep(0.01)
    watchdog.stop()
    assert "STATUS=stalled: turn" in sent


@pytest.mark.parametrize("abstract", [False, True])
def test_notify_speaks_systemds_protocol(tmp_path: Path, abstract: bool) -> None:
    """One datagram to NOTIFY_SOCKET, a path or an abstract name."""
    name = f"@nodeworthy-test-{tmp_path.name}-{id(tmp_path)}" if abstract else str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        systemd.bind("\0" + name[1:] if abstract else name)
        systemd.settimeout(10)
        assert sd_notify("READY=1", {"NOTIFY_SOCKET": name})
        assert systemd.recv(100) == b"READY=1"


def test_notify_without_systemd_is_quiet(tmp_path: Path) -> None:
    """Nobody to tell, or nobody listening, is no failure of ours."""
    assert sd_notify("READY=1", {}) is False
    assert sd_notify("READY=1", {"NOTIFY_SOCKET": str(tmp_path / "none")}) is False


@pytest.mark.parametrize(
    ("environment", "interval"),
    [({}, 5.0), ({"WATCHDOG_USEC": "60000000"}, 30.0), ({"WATCHDOG_USEC": "x"}, 5.0), ({"WATCHDOG_USEC": "0"}, 5.0)],
)
def test_watchdog_interval_is_half_of_what_systemd_allows(environment: dict[str, str], interval: float) -> None:
    """sd_watchdog_enabled(3) recommends half the time-out."""
    assert watchdog_interval(environment) == interval


def test_healthz_is_503_with_the_names_of_stalled_loops(tmp_path: Path) -> None:
    """A load balancer or a probe sees the stall."""
    clock = Hand()
    deadman = DeadMan(clock)
    deadman.register("turn", 15)
    with serving(create_app(MemoryViews(), loops=deadman.loops), tmp_path / "api.sock") as path:

        def ask() -> tuple[int, bytes]:
            connection = connect(str(path), 10)
            connection.request("GET", "/healthz")
            response = connection.getresponse()
            answer = response.status, response.read()
            connection.close()
            return answer

        assert ask() == (200, b'{"ok":true,"stalled":[]}')
        clock.now += 20
        assert ask() == (503, b'{"ok":false,"stalled":["turn"]}')
