"""The API: reads under `/v1`, health and metrics beside it. It asks `Views` and adds nothing of its own.

Nothing here changes anything: every route is a GET. Routes are plain functions, so a slow read of the store
runs in a worker thread and cannot hold up the turn.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import asdict
from typing import Annotated, Any

from fastapi import FastAPI, Header, Path, Query, Request, Response
from fastapi.responses import JSONResponse, StreamingResponse
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder
from starlette.concurrency import run_in_threadpool

from nodeworthy import __version__
from nodeworthy.api import pages, problems
from nodeworthy.errors import BadRequest
from nodeworthy.model.finding import Verdict
from nodeworthy.model.nodeset import unfold
from nodeworthy.model.status import NodeState
from nodeworthy.service.views import (
    AboutAnswer,
    DoctorAnswer,
    ExplainAnswer,
    FindingAnswer,
    FindingsAnswer,
    HistoryAnswer,
    IncidentAnswer,
    IncidentsAnswer,
    LedgerAnswer,
    LoopView,
    Names,
    NodeAnswer,
    NodesAnswer,
    StatusAnswer,
    Views,
    WouldAnswer,
)

Sleep = Callable[[float], Awaitable[None]]

DESCRIPTION = (
    "What Nodeworthy knows of the fleet. Reads only. Times are POSIX seconds (UTC); null means not known. "
    "Every answer carries `as_of` and its sources with their age. Errors are RFC 9457 problem documents."
)

_LAST_SEQUENCE = 2**63 - 1  # the largest that both databases can hold

Nodes = Annotated[str | None, Query(description="Only these nodes: a node set such as `n[1-3],login1`.")]
Label = Annotated[
    list[str] | None, Query(description="Only nodes with this label, as `key=value`; repeat for more (all must match).")
]
Cursor = Annotated[str | None, Query(description="Go on after a page: its `next_cursor`, unchanged.")]
Limit = Annotated[int, Query(ge=1, le=pages.LIMIT_MAX, description="At most this many items.")]
Since = Annotated[
    float | None, Query(allow_inf_nan=False, description="Only what is at or after this time (POSIX seconds).")
]
After = Annotated[
    int | None,
    Query(
        ge=-pages.LIMIT_MAX,
        le=_LAST_SEQUENCE,
        description="Only entries with a greater sequence. Negative: that many from the end.",
    ),
]
Subject = Annotated[
    str | None, Query(max_length=300, pattern=r"^[^\x00]*$", description="Only entries about this subject.")
]
NodeName = Annotated[str, Path(description="A node's name.")]
Key = Annotated[str, Path(description="The item's `key`, verbatim.")]

_FAILURES: dict[int | str, dict[str, Any]] = {
    "4XX": {
        "description": "The request is wrong, or names something that is not known.",
        "content": {problems.MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/ProblemDocument"}}},
    },
    "5XX": {
        "description": "An outside system or Nodeworthy itself failed.",
        "content": {problems.MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/ProblemDocument"}}},
    },
}


def create_app(
    views: Views,
    *,
    registry: CollectorRegistry | None = None,
    loops: Callable[[], tuple[LoopView, ...]] = tuple,
    sleep: Sleep = asyncio.sleep,
    stop: asyncio.Event | None = None,
) -> FastAPI:
    """The application over `views`.

    `registry`: what `/metrics` prints. `loops`: the dead-man's view of our loops, for `/healthz`. `sleep`:
    the Clock port's, used between two looks at the ledger for event streams. `stop`: once it is set, event
    streams end by themselves (give `server.serve` the same one).
    """
    app = FastAPI(
        title="Nodeworthy",
        version=__version__,
        description=DESCRIPTION,
        openapi_url="/v1/openapi.json",
        docs_url=None,
        redoc_url=None,
        responses=_FAILURES,
        generate_unique_id_function=lambda route: route.name,
    )
    problems.install(app)
    _health_routes(app, views, registry or CollectorRegistry(), loops)
    _status_routes(app, views)
    _node_routes(app, views)
    _finding_routes(app, views)
    _ledger_routes(app, views, sleep, stop or asyncio.Event())
    _with_problem_schema(app)
    return app


def create_metrics_app(
    views: Views, registry: CollectorRegistry, loops: Callable[[], tuple[LoopView, ...]] = tuple
) -> FastAPI:
    """Only `/metrics`, `/healthz` and `/readyz`: what may be served on TCP, where nobody knows who asks."""
    app = FastAPI(title="Nodeworthy metrics", version=__version__, openapi_url=None, docs_url=None, redoc_url=None)
    problems.install(app)
    _health_routes(app, views, registry, loops)
    return app


def _health_routes(
    app: FastAPI, views: Views, registry: CollectorRegistry, loops: Callable[[], tuple[LoopView, ...]]
) -> None:
    @app.get("/healthz", tags=["health"], summary="Are all our loops alive?")
    def healthz() -> JSONResponse:
        """200 while every loop beats within its budget, 503 with the names of those that do not."""
        stalled = [loop.name for loop in loops() if loop.stalled]
        return JSONResponse({"ok": not stalled, "stalled": stalled}, status_code=503 if stalled else 200)

    @app.get("/readyz", tags=["health"], summary="Has the first turn been made?")
    def readyz() -> JSONResponse:
        """200 once there is a judged snapshot to read, 503 before."""
        ready = views.about().as_of is not None
        return JSONResponse({"ready": ready}, status_code=200 if ready else 503)

    @app.get("/metrics", tags=["health"], summary="Our own metrics", response_class=Response)
    def metrics(request: Request) -> Response:
        """Prometheus text or OpenMetrics, as `Accept` asks. Documented in docs/reference/metrics.md."""
        encode, media_type = choose_encoder(request.headers.get("accept", ""))
        return Response(encode(registry), headers={"content-type": media_type})


def _status_routes(app: FastAPI, views: Views) -> None:
    @app.get("/v1/about", tags=["health"], summary="Who answers, and who you are to it")
    def about(request: Request, response: Response) -> AboutAnswer:
        """Version, fleet, mode and the server's clock. The header `Nodeworthy-Actor` names you as the kernel does."""
        actor = getattr(request.state, "actor", None)
        if actor is not None:
            response.headers["Nodeworthy-Actor"] = f"{actor.user} (uid {actor.uid})"
        return views.about()

    @app.get("/v1/status", tags=["status"], summary="What needs a person, first")
    def status() -> StatusAnswer:
        """Counts, what needs somebody (worst first), what is unknown, sources, and the health of the turn."""
        return views.status()

    @app.get("/v1/doctor", tags=["status"], summary="Checks of Nodeworthy itself")
    def doctor() -> DoctorAnswer:
        """Whether Nodeworthy can see and work: sources, permissions, clock, store, disk, files, versions."""
        return views.doctor()


def _node_routes(app: FastAPI, views: Views) -> None:
    @app.get("/v1/nodes", tags=["nodes"], summary="List nodes")
    def nodes(
        nodes: Nodes = None,
        label: Label = None,
        state: Annotated[list[NodeState] | None, Query(description="Only nodes in one of these states.")] = None,
        cursor: Cursor = None,
        limit: Limit = pages.LIMIT,
    ) -> NodesAnswer:
        """Sorted by name. Names that nobody has declared are in `not_known`."""
        answer = views.nodes(_names(nodes), _labels(label), frozenset(state or ()))
        return pages.cut(answer, lambda node: node.name, cursor, limit)

    @app.get("/v1/nodes/{name}", tags=["nodes"], summary="Show one node")
    def node(name: NodeName) -> NodeAnswer:
        """Everything known of a node: state, marks with their owners, findings, jobs, unknowns."""
        return views.node(name)

    @app.get("/v1/nodes/{name}/explain", tags=["nodes"], summary="Explain one node")
    def explain(name: NodeName) -> ExplainAnswer:
        """Because, evidence, not, waiting for, what clears it, next."""
        return views.explain(name)

    @app.get("/v1/nodes/{name}/history", tags=["nodes"], summary="What happened to one node")
    def history(name: NodeName, since: Since = None, limit: Limit = pages.LIMIT) -> HistoryAnswer:
        """The newest entries of the ledger about this node, oldest first."""
        return views.history(name, since, limit)


def _finding_routes(app: FastAPI, views: Views) -> None:
    @app.get("/v1/findings", tags=["findings"], summary="List findings")
    def findings(
        nodes: Nodes = None,
        label: Label = None,
        verdict: Annotated[list[Verdict] | None, Query(description="Default: true and unknown.")] = None,
        cursor: Cursor = None,
        limit: Limit = pages.LIMIT,
    ) -> FindingsAnswer:
        """Present answers of checks, sorted by key."""
        answer = views.findings(_names(nodes), _labels(label), frozenset(verdict or ()))
        return pages.cut(answer, lambda finding: finding.key, cursor, limit)

    @app.get("/v1/findings/{key:path}", tags=["findings"], summary="Show one finding")
    def finding(key: Key) -> FindingAnswer:
        """A finding with its evidence, and what its check means and rests on."""
        return views.finding(key)

    @app.get("/v1/incidents", tags=["incidents"], summary="List incidents")
    def incidents(cursor: Cursor = None, limit: Limit = pages.LIMIT) -> IncidentsAnswer:
        """Findings that share an origin, sorted by key."""
        return pages.cut(views.incidents(), lambda incident: incident.key, cursor, limit)

    @app.get("/v1/incidents/{key:path}", tags=["incidents"], summary="Show one incident")
    def incident(key: Key) -> IncidentAnswer:
        """An incident with its findings and why they belong together."""
        return views.incident(key)

    @app.get("/v1/would", tags=["would"], summary="What it would have done")
    def would(
        nodes: Nodes = None, label: Label = None, since: Since = None, cursor: Cursor = None, limit: Limit = pages.LIMIT
    ) -> WouldAnswer:
        """Holds, drains and waits of observe mode, against what people did. `agreement` counts all, not the page."""
        answer = views.would(_names(nodes), _labels(label), since)
        return pages.cut(answer, lambda item: item.key, cursor, limit)


def _ledger_routes(app: FastAPI, views: Views, sleep: Sleep, stop: asyncio.Event) -> None:
    @app.get("/v1/ledger", tags=["ledger"], summary="Read the ledger")
    def ledger(
        after: After = 0,
        subject: Subject = None,
        limit: Limit = pages.LIMIT,
    ) -> LedgerAnswer:
        """What happened, in commit order. Go on with `after` = `last`."""
        return views.ledger(after or 0, limit, subject)

    @app.get("/v1/events", tags=["ledger"], summary="Follow the ledger", response_class=StreamingResponse)
    async def events(
        after: After = None,
        last_event_id: Annotated[
            str | None, Header(description="As a browser sends it when it reconnects; wins over `after`.")
        ] = None,
    ) -> StreamingResponse:
        """Server-sent events: `id` is the ledger's sequence, `event` the entry's kind, `data` the entry as JSON.

        Without a place to start, begins with what happens next. A comment line every 15 s keeps it open.
        """
        start = await run_in_threadpool(_start, views, after, last_event_id)
        return StreamingResponse(_stream(views, start, sleep, stop), media_type="text/event-stream")


_LOOK_S = 0.5  # between two looks at the ledger
_HEARTBEAT_LOOKS = 30  # looks without news until a comment line is sent: 15 s
_CHUNK = 500


def _start(views: Views, after: int | None, last_event_id: str | None) -> int:
    if last_event_id is not None:
        if not last_event_id.isascii() or not last_event_id.isdecimal() or len(last_event_id) > 18:
            raise BadRequest(f"not a sequence: {last_event_id!r}", hint="send back the `id` of an event")
        return int(last_event_id)
    if after is None:
        return views.ledger(-1, 1).last
    if after < 0:
        first = views.ledger(after, 1).items
        return first[0].sequence - 1 if first else 0
    return after


async def _stream(views: Views, after: int, sleep: Sleep, stop: asyncio.Event) -> AsyncIterator[str]:
    yield ": nodeworthy ledger\n\n"
    quiet = 0
    while not stop.is_set():
        answer = await run_in_threadpool(views.ledger, after, _CHUNK)
        for entry in answer.items:
            data = json.dumps(asdict(entry), default=str)
            kind = " ".join(entry.kind.split())  # a line break would end the field, and let a kind forge an event
            yield f"id: {entry.sequence}\nevent: {kind}\ndata: {data}\n\n"
        after = answer.last
        quiet = 0 if answer.items else quiet + 1
        if quiet and quiet % _HEARTBEAT_LOOKS == 0:
            yield ": still here\n\n"
        if len(answer.items) < _CHUNK:
            await sleep(_LOOK_S)


def _names(selector: str | None) -> Names:
    return None if selector is None else unfold(selector)


def _labels(pairs: list[str] | None) -> Mapping[str, str]:
    labels = {}
    for pair in pairs or ():
        key, equals, value = pair.partition("=")
        if not equals or not key:
            raise BadRequest(f"not a label: {pair!r}", hint="write it as key=value, for example rack=r12")
        labels[key] = value
    return labels


def _with_problem_schema(app: FastAPI) -> None:
    """FastAPI collects schemas from routes alone; the problem document is in none of them."""
    generate = app.openapi

    def openapi() -> dict[str, Any]:
        document = generate()
        schemas = document.setdefault("components", {}).setdefault("schemas", {})
        for model in (problems.ProblemDocument, problems.ProblemField):
            schema = model.model_json_schema(ref_template="#/components/schemas/{model}")
            schema.pop("$defs", None)
            schemas[model.__name__] = schema
        for path in document["paths"].values():
            for operation in path.values():
                operation["responses"].pop("422", None)  # we answer 400 with a problem document
        for unused in ("HTTPValidationError", "ValidationError"):
            schemas.pop(unused, None)
        return document

    app.openapi = openapi  # type: ignore[method-assign]
