"""Asks a running `nodeworthy serve` over its Unix socket.

`http.client` and nothing more: start-up time counts, and the answers are plain JSON. (It is imported when a
question is asked, because it costs a third of what `--help` may take.) Everything that can go wrong between
two processes on one machine gets its own sentence and its own next step.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, cast

import click

from nodeworthy.cli.places import find_socket
from nodeworthy.errors import (
    BadRequest,
    Broken,
    Garbled,
    NodeworthyError,
    NotAllowed,
    NotKnown,
    Refused,
    TimedOut,
    Unreachable,
)

if TYPE_CHECKING:
    from http.client import HTTPConnection, HTTPResponse

Command = TypeVar("Command", bound=Callable[..., Any])
Params = Mapping[str, object]

PAGE = 1000


def connect(path: str, timeout_s: float | None) -> HTTPConnection:
    """An HTTP connection over the Unix socket at `path`. Raises OSError as connect(2) does."""
    import socket
    from http.client import HTTPConnection

    connection = HTTPConnection("localhost", timeout=timeout_s)
    connection.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
    try:
        connection.sock.settimeout(timeout_s)
        connection.sock.connect(path)
    except OSError:
        connection.close()
        raise
    return connection


class Client:
    """One conversation with one instance. `timeout_s` bounds every wait for it."""

    _KINDS: ClassVar[Mapping[str, type[NodeworthyError]]] = {
        kind.code: kind for kind in (BadRequest, NotAllowed, NotKnown, Refused, TimedOut, Unreachable, Garbled, Broken)
    }

    def __init__(self, path: str, timeout_s: float = 10.0) -> None:
        self.path = path
        self.timeout_s = timeout_s

    def get(self, path: str, params: Params | None = None) -> dict[str, Any]:
        """The JSON answer of a read. Raises the server's own error, or one that says why there is no answer."""
        from http.client import HTTPException

        connection, response = self._request(path, params, self.timeout_s)
        try:
            body = response.read()
        except (OSError, HTTPException) as error:
            raise self._lost(error) from error
        finally:
            connection.close()
        document = _parse(body, self.path)
        if response.status >= 400:
            raise self._problem(response.status, document)
        return document

    def pages(self, path: str, params: Params | None = None) -> dict[str, Any]:
        """All pages of a list as one answer."""
        answer = self.get(path, {**(params or {}), "limit": PAGE})
        cursor = answer.get("next_cursor")
        while cursor:
            page = self.get(path, {**(params or {}), "limit": PAGE, "cursor": cursor})
            answer["items"].extend(page["items"])
            cursor = page.get("next_cursor")
        answer.pop("next_cursor", None)
        return answer

    def events(self, after: int) -> Iterator[dict[str, Any]]:
        """Entries of the ledger as they happen, from `after` on. Ends when the server ends the stream."""
        from http.client import HTTPException

        # the server sends a comment every 15 s; twice that without a byte is a dead stream
        connection, response = self._request("/v1/events", {"after": after}, max(self.timeout_s, 30.0))
        try:
            if response.status >= 400:
                raise self._problem(response.status, _parse(response.read(), self.path))
            for line in response:
                if line.startswith(b"data: "):
                    yield _parse(line[6:], self.path)
        except (OSError, HTTPException) as error:
            raise self._lost(error) from error
        finally:
            connection.close()

    def _request(self, path: str, params: Params | None, timeout_s: float) -> tuple[HTTPConnection, HTTPResponse]:
        from http.client import HTTPException
        from urllib.parse import urlencode

        query = urlencode({k: v for k, v in (params or {}).items() if v is not None}, doseq=True)
        connection: HTTPConnection | None = None
        try:
            connection = connect(self.path, timeout_s)
            connection.request("GET", path + ("?" + query if query else ""), headers={"Accept": "application/json"})
            return connection, connection.getresponse()
        except (OSError, HTTPException) as error:
            if connection is not None:
                connection.close()
            raise self._lost(error) from error

    def _lost(self, error: Exception) -> NodeworthyError:
        if isinstance(error, FileNotFoundError):
            return Unreachable(
                f"no Nodeworthy is running here: there is no socket {self.path}",
                hint="start one with `nodeworthy serve` (or `systemctl start nodeworthy`), or name its socket with "
                "--socket or NODEWORTHY_SOCKET",
            )
        if isinstance(error, ConnectionRefusedError):
            return Unreachable(
                f"Nodeworthy has stopped: its socket {self.path} is there and nobody answers",
                hint="see why with `journalctl -u nodeworthy -n 50`, then `systemctl restart nodeworthy`",
            )
        if isinstance(error, PermissionError):
            return NotAllowed(
                f"you may not use {self.path}",
                hint="ask to be put into the group that owns the socket (`ls -l` shows it), or use sudo",
            )
        if isinstance(error, TimeoutError):
            return TimedOut(
                f"Nodeworthy did not answer on {self.path} within {self.timeout_s:g} s",
                hint="wait longer with --timeout, or look at `journalctl -u nodeworthy -n 50`",
            )
        if not isinstance(error, OSError):
            return Garbled(
                f"what answers on {self.path} broke off or does not speak HTTP ({type(error).__name__})",
                hint="is this the socket of a Nodeworthy? `nodeworthy doctor` tells",
            )
        return Unreachable(f"lost Nodeworthy on {self.path}: {error}", hint="try again; is it being restarted?")

    def _problem(self, status: int, document: Mapping[str, Any]) -> NodeworthyError:
        kind = self._KINDS.get(str(document.get("code")), NodeworthyError)
        detail = str(document.get("detail") or f"HTTP status {status}")
        error = kind(detail, hint=str(document.get("hint") or ""))
        cause: NodeworthyError | None = None
        for sentence in reversed(document.get("causes") or []):
            outer = NodeworthyError(str(sentence))
            outer.__cause__ = cause
            cause = outer
        error.__cause__ = cause
        return error


def _parse(body: bytes, where: str) -> dict[str, Any]:
    try:
        document = json.loads(body)
    except ValueError as error:
        raise Garbled(
            f"the answer from {where} is not JSON: {body[:80]!r}", hint="is this the socket of a Nodeworthy?"
        ) from error
    if not isinstance(document, dict):
        raise Garbled(f"the answer from {where} is not an object: {body[:80]!r}")
    return document


def segment(name: str) -> str:
    """A name as a part of a path."""
    from urllib.parse import quote

    return quote(name, safe="@:")


def client_options(command: Command) -> Command:
    """Adds `--socket` and `--timeout` to a command; the callback gets a `client`."""

    @functools.wraps(command)
    def with_client(*args: Any, socket_path: str | None, timeout: float, **kwargs: Any) -> Any:
        return command(*args, client=Client(socket_path or find_socket(), timeout), **kwargs)

    decorated = click.option(
        "--timeout", type=click.FloatRange(min=0.1), default=10.0, show_default=True, help="Seconds to wait."
    )(with_client)
    decorated = click.option(
        "--socket",
        "socket_path",
        type=click.Path(),
        help="Socket of the instance to ask (default: NODEWORTHY_SOCKET, or /run/nodeworthy/nodeworthy.sock).",
    )(decorated)
    return cast(Command, decorated)
