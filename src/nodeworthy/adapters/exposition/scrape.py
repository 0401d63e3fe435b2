"""Ask many exporters for their pages, at once and in bounded time.

A target that does not answer is a problem of that target, with its reason, and never an empty answer. Only
when no target at all gave a page does reading fail. Pages are read in a thread, so that the event loop goes
on. For more than some hundreds of nodes ask the Prometheus that scrapes them anyway (adapters/prometheus).
"""

from __future__ import annotations

import asyncio
import dataclasses
import ssl
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

import httpx

from nodeworthy.errors import BadRequest, Garbled, Refused, TimedOut, Unreachable, WorldError
from nodeworthy.model.catalogue import Signal
from nodeworthy.observe.components import Resolve, some
from nodeworthy.observe.coverage import Coverage
from nodeworthy.observe.exposition import CACHE_LIMIT, LabelCache, Page, parse
from nodeworthy.observe.samples import join
from nodeworthy.observe.telemetry import exposed, names_of, to_batch
from nodeworthy.ports import Clock, TelemetryBatch

_ACCEPT = "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=1"


@dataclass(frozen=True, slots=True)
class Target:
    """An exporter. `name` is what the fleet calls it (an exporter name of a node); by default host:port."""

    url: str
    name: str = ""

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise BadRequest(f"not the address of an exporter: {self.url!r}", hint="write it as http://n1:9400/metrics")
        if not self.name:
            object.__setattr__(self, "name", parts.netloc.rpartition("@")[2])


@dataclass(frozen=True, slots=True)
class Limits:
    """How long and how much: seconds per target, seconds for all, targets at once, bytes per unpacked page."""

    timeout_s: float = 5.0
    deadline_s: float = 20.0
    at_once: int = 64
    page_bytes: int = 32 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class _Answer:
    target: Target
    body: bytes
    at: float
    content_type: str
    broken_off: bool


class ScrapeTelemetry:
    """The Telemetry port over exporters' own pages."""

    def __init__(
        self,
        targets: Sequence[Target],
        signals: Sequence[Signal],
        resolve: Resolve,
        clock: Clock,
        *,
        source: str = "exporters",
        limits: Limits | None = None,
        headers: Mapping[str, str] | None = None,
        verify: ssl.SSLContext | bool = True,
    ) -> None:
        if not targets:
            raise BadRequest("no exporter to read", hint="name at least one, as http://n1:9400/metrics")
        self.source = source
        self._targets, self._signals, self._resolve, self._clock = tuple(targets), exposed(signals), resolve, clock
        self._limits = limits or Limits()
        self._headers = {"Accept": _ACCEPT, "Accept-Encoding": "gzip", **(headers or {})}
        self._verify = verify
        self._cache: LabelCache = {}
        self._coverage = Coverage()

    async def read(self) -> TelemetryBatch:
        """One page of every target. Raises WorldError if none gave one."""
        answers, failures = await self._fetch_all()
        batch, garbled = await asyncio.to_thread(self._understand, answers)
        failures.update(garbled)
        if len(failures) == len(self._targets):
            raise _worst(failures)
        return dataclasses.replace(batch, problems=(*_in_words(failures), *batch.problems))

    async def _fetch_all(self) -> tuple[list[_Answer], dict[Target, WorldError]]:
        limits = self._limits
        gate = asyncio.Semaphore(limits.at_once)
        pool = httpx.Limits(max_connections=limits.at_once, max_keepalive_connections=limits.at_once)
        async with httpx.AsyncClient(
            timeout=limits.timeout_s, limits=pool, headers=self._headers, verify=self._verify, trust_env=False
        ) as client:

            async def one(target: Target) -> _Answer:
                async with gate:
                    return await self._fetch(client, target)

            tasks = {asyncio.create_task(one(t)): t for t in self._targets}
            try:
                done, pending = await asyncio.wait(tasks, timeout=limits.deadline_s)
            finally:  # also when this reading itself is called off
                for task in tasks:
                    task.cancel()
            await asyncio.gather(*pending, return_exceptions=True)
        answers: list[_Answer] = []
        late = TimedOut(f"not asked or not answered within {limits.deadline_s:g} s for all")
        failures: dict[Target, WorldError] = {tasks[t]: late for t in pending}
        for task in done:
            error = task.exception()
            if error is None:
                answers.append(task.result())
            elif isinstance(error, WorldError):
                failures[tasks[task]] = error
            else:
                raise error
        return answers, failures

    async def _fetch(self, client: httpx.AsyncClient, target: Target) -> _Answer:
        """One page, or a WorldError. A body that breaks off is kept: its whole lines are true."""
        chunks: list[bytes] = []
        size = 0
        broken_off = False
        try:
            async with asyncio.timeout(self._limits.timeout_s), client.stream("GET", target.url) as response:
                if response.status_code != 200:
                    raise Refused(f"HTTP status {response.status_code}")
                content_type = response.headers.get("content-type", "")
                try:
                    async for chunk in response.aiter_bytes():
                        size += len(chunk)
                        if size > self._limits.page_bytes:
                            raise Garbled(f"the page is larger than {self._limits.page_bytes} bytes")
                        chunks.append(chunk)
                except (httpx.RemoteProtocolError, httpx.ReadError):
                    broken_off = True
        except (TimeoutError, httpx.TimeoutException) as error:
            raise TimedOut(f"no page within {self._limits.timeout_s:g} s") from error
        except httpx.DecodingError as error:
            raise Garbled("the page cannot be unpacked") from error
        except httpx.ConnectError as error:
            raise Unreachable(f"no connection: {_cause(error)}") from error
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise Unreachable(f"the connection failed: {_cause(error)}") from error
        if broken_off and not chunks:
            raise Unreachable("the connection broke off before the page")
        return _Answer(target, b"".join(chunks), self._clock.now(), content_type, broken_off)

    def _understand(self, answers: Sequence[_Answer]) -> tuple[TelemetryBatch, dict[Target, WorldError]]:
        names = names_of(self._signals)
        if len(self._cache) > CACHE_LIMIT:
            self._cache.clear()
        pages: list[Page] = []
        problems: list[str] = []
        garbled: dict[Target, WorldError] = {}
        for answer in answers:
            try:
                page = read_page(answer.body, answer.content_type, answer.at, answer.target.name, names, self._cache)
            except Garbled as error:
                garbled[answer.target] = error
                continue
            said = complaints(page) or (("the connection broke off",) if answer.broken_off else ())
            problems += [f"{answer.target.name}: {sentence}" for sentence in said]
            pages.append(page)
        batch = to_batch(
            join([page.samples for page in pages]),
            self._signals,
            self._resolve,
            source=self.source,
            at=self._clock.now(),
            problems=problems,
        )
        gone = self._coverage.missing(batch, frozenset().union(*(page.other_names for page in pages)))
        return dataclasses.replace(batch, problems=(*batch.problems, *gone)), garbled


def read_page(
    body: bytes, content_type: str, at: float, target: str, names: frozenset[str], cache: LabelCache | None = None
) -> Page:
    """The page in an answer. Raises Garbled if there is not one readable line in it."""
    kind = content_type.partition(";")[0].strip().lower()
    if kind in ("text/html", "application/json") or body.lstrip()[:1] == b"<":
        raise Garbled(f"not a metrics page: {kind or 'no content type'}, begins with {_start(body)!r}")
    text = body.decode("utf-8", errors="replace")
    openmetrics = True if kind == "application/openmetrics-text" else None
    page = parse(text, at=at, target=target, names=names, openmetrics=openmetrics, cache=cache)
    if not len(page.samples) and not page.other_names and page.unreadable:
        raise Garbled(f"not a metrics page: begins with {_start(body)!r}")
    return page


def _start(body: bytes) -> str:
    return body[:40].decode("utf-8", errors="replace")


def complaints(page: Page) -> tuple[str, ...]:
    """What is wrong with a page that could be read, in sentences."""
    if len(page.samples):
        return page.problems()
    if page.other_names:
        names = some(sorted(page.other_names))
        return (*page.problems(), f"none of its {len(page.other_names)} metrics is understood: {names}")
    return (*page.problems(), "the page holds no metrics")


def _cause(error: Exception) -> str:
    return str(error) or type(error).__name__


def _in_words(failures: Mapping[Target, WorldError]) -> list[str]:
    """One sentence per reason, with the targets it is true of."""
    by_reason: dict[str, list[str]] = defaultdict(list)
    for target, error in failures.items():
        by_reason[str(error)].append(target.name)
    return [
        f"{len(names)} exporters gave no page: {reason}: {some(sorted(names))}" for reason, names in by_reason.items()
    ]


def _worst(failures: Mapping[Target, WorldError]) -> WorldError:
    """The error when nothing answered: of the common kind, if there is one, with every reason."""
    kinds = {type(error) for error in failures.values()}
    kind = kinds.pop() if len(kinds) == 1 else Unreachable
    return kind(
        f"none of {len(failures)} exporters gave a page: " + "; ".join(_in_words(failures)),
        hint="ask one by hand: curl " + next(iter(failures)).url,
    )
