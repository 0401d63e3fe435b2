"""Errors as `application/problem+json` (RFC 9457), made from the error tree in one place.

`type` is the stable code as a URN; `code`, `hint`, `causes` and
`errors` (field pointers) are extension members.
"""

from __future__ import annotations

import http
import logging
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException

from nodeworthy.errors import BadRequest, Broken, NodeworthyError, NotAllowed, NotKnown, TimedOut, WorldError

log = logging.getLogger(__name__)

MEDIA_TYPE = "application/problem+json"

# most special first: the first class that fits wins
STATUS: tuple[tuple[type[NodeworthyError], int], ...] = (
    (BadRequest, 400),
    (NotKnown, 404),
    (NotAllowed, 403),
    (TimedOut, 504),
    (WorldError, 502),
    (NodeworthyError, 500),
)


class ProblemField(BaseModel):
    """One wrong field of a request."""

    field: str = Field(description="Where it is: query.limit, path.name, header.last-event-id.")
    message: str


class ProblemDocument(BaseModel):
    """RFC 9457 problem details, with the stable code of the error tree."""

    type: str = Field(description="`urn:nodeworthy:problem:CODE`; the codes are listed in nodeworthy.errors.")
    title: str = Field(description="The HTTP status in words.")
    status: int
    detail: str = Field(description="One sentence: what is wrong.")
    code: str
    hint: str = Field(default="", description="What to do next.")
    causes: list[str] = Field(default_factory=list, description="What it follows from, outermost first.")
    errors: list[ProblemField] = Field(default_factory=list)


def problem(status: int, error: NodeworthyError, fields: list[ProblemField] | None = None) -> JSONResponse:
    detail, *causes = error.chain()
    document = ProblemDocument(
        type=f"urn:nodeworthy:problem:{error.code}",
        title=http.HTTPStatus(status).phrase,
        status=status,
        detail=detail,
        code=error.code,
        hint=error.hint,
        causes=causes,
        errors=fields or [],
    )
    return JSONResponse(document.model_dump(), status_code=status, media_type=MEDIA_TYPE)


def install(app: FastAPI) -> None:
    """Make every error of `app` a problem document."""

    @app.exception_handler(NodeworthyError)
    async def ours(_request: Request, error: NodeworthyError) -> JSONResponse:
        status = next(status for kind, status in STATUS if isinstance(error, kind))
        return problem(status, error)

    @app.exception_handler(RequestValidationError)
    async def invalid(_request: Request, error: RequestValidationError) -> JSONResponse:
        fields = [_field(item) for item in error.errors()]
        sentence = "; ".join(f"{f.field}: {f.message}" for f in fields)
        return problem(400, BadRequest(sentence, hint="see /v1/openapi.json for what is allowed"), fields)

    @app.exception_handler(HTTPException)
    async def plain(request: Request, error: HTTPException) -> JSONResponse:
        kind = NotKnown if error.status_code == 404 else BadRequest
        sentence = f"{error.detail}: {request.method} {request.url.path}"
        return problem(error.status_code, kind(sentence, hint="see /v1/openapi.json for what there is"))

    @app.exception_handler(Exception)
    async def broken(request: Request, error: Exception) -> JSONResponse:
        log.error("defect while answering %s %s", request.method, request.url.path, exc_info=error)
        defect = Broken("a defect in Nodeworthy", hint="please report it with the log of `nodeworthy serve`")
        return problem(500, defect)


def _field(item: Any) -> ProblemField:
    return ProblemField(field=".".join(str(part) for part in item["loc"]), message=str(item["msg"]))
