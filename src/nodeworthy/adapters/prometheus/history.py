"""Hours of a fleet from a metrics server, a piece of time per question, the newest first.

A question covers so many hours that its answer stays near ANSWER_POINTS values. A question that is too much for the
server (it times out, or the server refuses to load so many samples) is asked again in halves. When the time given runs
out, or nothing works any more, what was read stands and the rest is *unread*: never an hour without telemetry.

One hour is asked first: a server that cannot answer that is not asked for months. Only the questions of one piece
are asked at once (Prometheus computes each on one core), because the server has other work. An answer with warnings (half of its storage was away) is not used: what is missing from it
would look like GPUs that are gone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import httpx

from nodeworthy.adapters.prometheus.api import Series, read_range
from nodeworthy.adapters.prometheus.transport import fetch
from nodeworthy.errors import BadRequest, Garbled, Refused, TimedOut, Unreachable, WorldError

HOUR = 3600
ANSWER_POINTS = 250_000
"""About 8 MB of JSON."""
LONGEST = 24
MOST_FAILURES = 3
"""Single hours that the server could not answer before it is left alone."""


@dataclass(frozen=True, slots=True)
class HistoryLimits:
    """Seconds per question, seconds for all of them, bytes per answer."""

    timeout_s: float = 60.0
    deadline_s: float = 900.0
    answer_bytes: int = 256 * 1024 * 1024


Keep = Callable[[Mapping[str, Sequence[Series]]], None]
"""Takes the answers to a group's questions over one piece of time: question → series."""


@dataclass(slots=True)
class History:
    """What became of the reading. `read[group]`: the hours answered (their beginnings, in hours since 1970)."""

    read: dict[str, set[int]] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)


class PrometheusHistory:
    """`url` is the server's address before `/api/v1`; `http://user:password@host` is sent as basic authentication."""

    def __init__(self, url: str, limits: HistoryLimits | None = None) -> None:
        try:
            address = httpx.URL(url)
        except (httpx.InvalidURL, TypeError) as error:
            raise _bad_address() from error
        if address.scheme not in ("http", "https") or not address.host:
            raise _bad_address()
        self._auth = (address.username, address.password) if address.userinfo else None
        plain = str(address.copy_with(username=None, password=None)) if address.userinfo else url
        self.url = plain.rstrip("/")
        self._limits = limits or HistoryLimits()

    async def read(
        self, groups: Mapping[str, tuple[Mapping[str, str], Keep]], first: int, last: int, nodes: int
    ) -> History:
        """Ask for the hours `first` to `last` (exclusive; hours since 1970) of about `nodes` nodes, group after group,
        and hand each piece on at once, because all of them are too much to keep. The hours of a group are read where all its questions were answered. What could not be read is missing
        from `History.read`, with the reason in `problems`. Raises WorldError if the newest hour of the first group
        cannot be had."""
        found = History()
        async with httpx.AsyncClient(timeout=self._limits.timeout_s, auth=self._auth, trust_env=False) as client:
            until = asyncio.get_running_loop().time() + self._limits.deadline_s
            size = max(1, min(LONGEST, ANSWER_POINTS // max(1, nodes)))
            for number, (name, (questions, keep)) in enumerate(groups.items()):
                group = _Group(self, client, found, name, questions, keep, until)
                if number == 0:
                    await group.ask(last - 1, last)
                await group.pieces(first, last - (number == 0), size)
        return found

    async def ask(
        self, client: httpx.AsyncClient, query: str, first: int, last: int, left_s: float
    ) -> tuple[Series, ...]:
        """One question over the hours `first` to `last`. Raises WorldError; an answer with warnings is Garbled."""
        timeout_s = min(self._limits.timeout_s, left_s)
        form = {
            "query": query, "start": str((first + 1) * HOUR), "end": str(last * HOUR), "step": str(HOUR),
            "timeout": f"{max(1, int(timeout_s))}s",
        }  # fmt: skip
        address = f"{self.url}/api/v1/query_range"
        try:
            async with asyncio.timeout(timeout_s):
                status, body = await fetch(client, self._limits.answer_bytes, method="POST", url=address, data=form)
        except TimeoutError as error:
            raise TimedOut(f"no answer within {timeout_s:.1f} s") from error
        series, warnings = await asyncio.to_thread(read_range, status, body)
        if warnings:
            raise Garbled(f"the answer may not be whole: {warnings[0][:200]}")
        return series


@dataclass(slots=True)
class _Group:
    """Questions that count together, piece by piece."""

    server: PrometheusHistory
    client: httpx.AsyncClient
    found: History
    name: str
    questions: Mapping[str, str]
    keep: Keep
    until: float
    failures: int = 0

    def left_s(self) -> float:
        return self.until - asyncio.get_running_loop().time()

    async def ask(self, first: int, last: int) -> None:
        """All questions over some hours; handed on only if all were answered."""
        got = await asyncio.gather(
            *(self.server.ask(self.client, query, first, last, self.left_s()) for query in self.questions.values()),
            return_exceptions=True,
        )
        answers: dict[str, Sequence[Series]] = {}
        for name, answer in zip(self.questions, got, strict=True):
            if isinstance(answer, BaseException):
                raise answer
            answers[name] = answer
        await asyncio.to_thread(self.keep, answers)
        self.found.read.setdefault(self.name, set()).update(range(first, last))

    async def pieces(self, first: int, last: int, size: int) -> None:
        """All hours, newest first. Never raises: what fails is said."""
        waiting = [(max(first, end - size), end) for end in range(last, first, -size)][::-1]
        while waiting and self.failures < MOST_FAILURES:
            begin, end = waiting.pop()
            try:
                if self.left_s() <= 0:
                    raise Unreachable("the time for reading from the metrics server ran out")
                await self.ask(begin, end)
            except Unreachable as error:
                self._failed(error)
                return
            except (TimedOut, Refused, Garbled) as error:
                if end - begin > 1:
                    middle = (begin + end) // 2
                    waiting += [(begin, middle), (middle, end)]
                else:
                    self._failed(error)

    def _failed(self, error: WorldError) -> None:
        self.failures += 1
        if self.failures == 1:
            self.found.problems.append(f"{self.name}: {error}")


def _bad_address() -> BadRequest:
    return BadRequest("not the address of a Prometheus", hint="write it as http://prometheus:9090")
