"""The dead-man: notices that one of our own loops has stopped, and says so while we still can.

Every loop registers with a budget (the longest time between two beats that is still fine) and beats when it
has done its round. `check` compares ages with budgets; a loop that goes over its budget is announced once
(log line, call-back for a ledger entry) and once more when it beats again. While any loop is stalled
`/healthz` answers 503 and systemd's watchdog is not fed, so that systemd restarts us: a control plane that
silently judges nothing is worse than one that is seen to be down.

Whoever calls `check` must not be one of the loops (a blocked event loop cannot check itself): `Watchdog` is
a thread of its own.
"""

from __future__ import annotations

import logging
import os
import socket
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from nodeworthy.service.views import LoopView

log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Loop:
    budget_s: float
    beat_at: float
    beaten: bool = False
    stalled: bool = False


class DeadMan:
    """Ages of all loops. `monotonic` is the Clock port's; may be called from any thread.

    `on_change` gets each loop that stalls or recovers, once (`LoopView.stalled` says which).
    """

    def __init__(self, monotonic: Callable[[], float], on_change: Callable[[LoopView], None] | None = None) -> None:
        self._monotonic = monotonic
        self._on_change = on_change
        self._loops: dict[str, _Loop] = {}
        self._lock = threading.Lock()

    def register(self, name: str, budget_s: float) -> None:
        """A loop that has `budget_s` for its first beat and for each one after it."""
        with self._lock:
            self._loops[name] = _Loop(budget_s, self._monotonic())

    def beat(self, name: str) -> None:
        """The loop has done its round. It must be registered (KeyError otherwise: a defect of ours)."""
        with self._lock:
            loop = self._loops[name]
            loop.beat_at, loop.beaten = self._monotonic(), True

    def loops(self) -> tuple[LoopView, ...]:
        """All loops as they are now. The age is None until a loop has beaten once."""
        now = self._monotonic()
        with self._lock:
            return tuple(self._view(name, loop, now) for name, loop in self._loops.items())

    def check(self) -> tuple[LoopView, ...]:
        """Announce what changed since the last check; returns the loops that are stalled."""
        now = self._monotonic()
        changed: list[LoopView] = []
        with self._lock:
            views = {name: self._view(name, loop, now) for name, loop in self._loops.items()}
            for name, view in views.items():
                if view.stalled is not self._loops[name].stalled:
                    self._loops[name].stalled = view.stalled
                    changed.append(view)
        for view in changed:
            self._announce(view)
        return tuple(view for view in views.values() if view.stalled)

    def _announce(self, view: LoopView) -> None:
        if view.stalled:
            log.error("loop %s has not beaten for more than %.0f s", view.name, view.budget_s)
        else:
            log.warning("loop %s beats again", view.name)
        if self._on_change is not None:
            self._on_change(view)

    @staticmethod
    def _view(name: str, loop: _Loop, now: float) -> LoopView:
        age = now - loop.beat_at
        return LoopView(name, age if loop.beaten else None, loop.budget_s, stalled=age > loop.budget_s)


def sd_notify(message: str, environ: Mapping[str, str] = os.environ) -> bool:
    """Send one datagram (`READY=1`, `WATCHDOG=1`, `STATUS=…`) to systemd; False where nobody listens.

    Protocol: sd_notify(3). A name that begins with `@` is in the abstract name space.
    """
    address = environ.get("NOTIFY_SOCKET", "")
    if not address:
        return False
    if address.startswith("@"):
        address = "\0" + address[1:]
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as channel:
            channel.sendto(message.encode(), address)
    except OSError as error:
        log.warning("cannot notify systemd: %s", error)
        return False
    return True


class Watchdog:
    """A thread that checks the dead-man every `interval_s` and feeds systemd while all loops beat.

    systemd gives its time-out as WATCHDOG_USEC; `interval_s` should be at most half of it (sd_watchdog_enabled(3)).
    """

    def __init__(self, deadman: DeadMan, interval_s: float = 5.0, notify: Callable[[str], bool] = sd_notify) -> None:
        self._deadman = deadman
        self._interval_s = interval_s
        self._notify = notify
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="watchdog", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join(timeout=self._interval_s + 1.0)

    def _run(self) -> None:
        while not self._stop.wait(self._interval_s):
            self.round()

    def round(self) -> None:
        """One look: feed the watchdog, or say why not."""
        stalled = self._deadman.check()
        if stalled:
            self._notify("STATUS=stalled: " + ", ".join(view.name for view in stalled))
        else:
            self._notify("WATCHDOG=1\nSTATUS=all loops beat")


def watchdog_interval(environ: Mapping[str, str] = os.environ, default_s: float = 5.0) -> float:
    """Half of the time systemd allows between two signs of life, or `default_s` where it does not ask."""
    usec = environ.get("WATCHDOG_USEC", "")
    return int(usec) / 2_000_000 if usec.isdigit() and int(usec) > 0 else default_s
