"""The Telemetry port over a Prometheus or VictoriaMetrics: a query to it instead of a second scrape."""

from __future__ import annotations

import asyncio
import dataclasses
import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import httpx

from nodeworthy.adapters.prometheus.api import Answer, chunks, expression, read_answer, read_federation, selector
from nodeworthy.adapters.prometheus.transport import fetch
from nodeworthy.errors import BadRequest, TimedOut, WorldError
from nodeworthy.model.catalogue import Signal
from nodeworthy.observe.components import Resolve, some
from nodeworthy.observe.coverage import Coverage
from nodeworthy.observe.exposition import CACHE_LIMIT, LabelCache
from nodeworthy.observe.samples import join
from nodeworthy.observe.telemetry import exposed, names_of, to_batch
from nodeworthy.ports import Clock, TelemetryBatch

_SLACK_S = 30.0  # two scrapes at the common 15 s


@dataclass(frozen=True, slots=True)
class Limits:
    """Seconds per query, seconds for all, queries at once, metrics per query, bytes per answer.

    `window_s`: how far back to look for the newest sample of a series; None: as long as a value may count (the
    oldest `max_age_s` of the signals) and two scrapes more. A shorter window is a smaller answer.
    """

    timeout_s: float = 10.0
    deadline_s: float = 30.0
    at_once: int = 2
    names_per_query: int = 8
    answer_bytes: int = 1024 * 1024 * 1024
    window_s: float | None = None


class PrometheusTelemetry:
    """`url` is the server's address before `/api/v1`. `matchers` narrow the series, as `cluster="a"`.

    `federate`: read `/federate` instead of the query API; for thousands of nodes, where the server offers it.
    """

    def __init__(
        self,
        url: str,
        signals: Sequence[Signal],
        resolve: Resolve,
        clock: Clock,
        *,
        source: str = "prometheus",
        matchers: str = "",
        federate: bool = False,
        limits: Limits | None = None,
        headers: Mapping[str, str] | None = None,
        verify: ssl.SSLContext | bool = True,
    ) -> None:
        if not url.startswith(("http://", "https://")):
            raise BadRequest(f"not the address of a Prometheus: {url!r}", hint="write it as http://prometheus:9090")
        self.source = source
        self._federate = federate
        self._url = url.rstrip("/") + ("/federate" if federate else "/api/v1/query")
        self._cache: LabelCache = {}
        self._signals, self._resolve, self._clock = exposed(signals), resolve, clock
        self._matchers = matchers
        self._limits = limits or Limits()
        self._headers = dict(headers or {})
        self._verify = verify
        # what is older than its signal's age is unknown anyway; the slack lets stale be told from absent
        oldest = max((s.max_age_s for s in self._signals), default=120.0)
        self._window_s = self._limits.window_s or oldest + _SLACK_S
        self._coverage = Coverage()

    async def read(self) -> TelemetryBatch:
        """The newest samples of all signals. Raises WorldError if no query was answered."""
        if len(self._cache) > CACHE_LIMIT:
            self._cache.clear()
        groups = chunks(names_of(self._signals), self._limits.names_per_query)
        outcomes = await self._ask_all(groups)
        failures = [(g, o) for g, o in zip(groups, outcomes, strict=True) if isinstance(o, WorldError)]
        answers = [o for o in outcomes if isinstance(o, Answer)]
        if not answers:
            raise failures[0][1] if failures else BadRequest("no signal of the catalogue has a metric to ask for")
        problems = [f"{len(g)} metrics could not be asked for: {error}: {some(g)}" for g, error in failures]
        problems += sorted({f"{self.source} warns: {w}" for a in answers for w in a.warnings})
        batch = await asyncio.to_thread(self._understand, answers, problems)
        # what was not answered is no sign that the signal is gone
        gone = () if failures else self._coverage.missing(batch)
        return dataclasses.replace(batch, problems=(*batch.problems, *gone))

    def _understand(self, answers: Sequence[Answer], problems: Sequence[str]) -> TelemetryBatch:
        samples = join([a.samples for a in answers])
        if not len(samples):
            problems = [*problems, f"no sample of any signal in the last {self._window_s:g} s"]
        return to_batch(
            samples, self._signals, self._resolve, source=self.source, at=self._clock.now(), problems=problems
        )

    async def _ask_all(self, groups: Sequence[tuple[str, ...]]) -> list[Answer | WorldError]:
        limits = self._limits
        gate = asyncio.Semaphore(limits.at_once)
        until = asyncio.get_running_loop().time() + limits.deadline_s
        async with httpx.AsyncClient(
            timeout=limits.timeout_s, headers=self._headers, verify=self._verify, trust_env=False
        ) as client:

            async def one(group: tuple[str, ...]) -> Answer | WorldError:
                try:
                    async with asyncio.timeout_at(until), gate, asyncio.timeout(limits.timeout_s):
                        status, body = await fetch(client, limits.answer_bytes, **self._request(group))
                    return await asyncio.to_thread(self._read_one, status, body)
                except TimeoutError:
                    return TimedOut(f"no answer within {limits.timeout_s:g} s (all: {limits.deadline_s:g} s)")
                except WorldError as error:
                    return error

            return await asyncio.gather(*(one(g) for g in groups))

    def _request(self, group: tuple[str, ...]) -> dict[str, Any]:
        """The query goes by POST, because the list of metrics can be long; `/federate` only knows GET."""
        if self._federate:
            return {"method": "GET", "url": self._url, "params": {"match[]": selector(group, self._matchers)}}
        query = expression(group, window_s=self._window_s, matchers=self._matchers)
        timeout = f"{max(1, int(self._limits.timeout_s))}s"
        return {"method": "POST", "url": self._url, "data": {"query": query, "timeout": timeout}}

    def _read_one(self, status: int, body: bytes) -> Answer:
        if self._federate:
            return read_federation(status, body, self._clock.now(), self._cache)
        return read_answer(status, body)
