"""Serves the API on a Unix socket, and knows who asks.

The kernel tells the peer's process, user and group (SO_PEERCRED, unix(7)); nobody can forge them, so the
local actor needs no password. A small protocol class puts them into the connection's state as `actor`. The
right to connect is the right to write the socket file: mode 0660, so its owner and group.

One instance per socket: a lock file beside it is held for as long as the process lives (flock(2) dies with
its holder), so a socket file without a holder is a left-over and is replaced, and a second instance is refused.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import pwd
import shutil
import socket
import stat
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from nodeworthy.errors import BadRequest, NotAllowed

_UCRED = struct.Struct("3i")  # pid, uid, gid
_DRAIN_S = 2  # how long open answers may go on after we were asked to stop


@dataclass(frozen=True, slots=True)
class Actor:
    """Who is at the other end of a local connection. `user` is the uid's name here, or the number."""

    pid: int
    uid: int
    gid: int
    user: str


def peer(connection: socket.socket) -> Actor:
    """The process at the other end of a Unix connection, as the kernel knows it."""
    raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _UCRED.size)
    pid, uid, gid = _UCRED.unpack(raw)
    try:
        user = pwd.getpwuid(uid).pw_name
    except KeyError:
        user = str(uid)
    return Actor(pid, uid, gid, user)


class PeerProtocol(HttpToolsProtocol):
    """uvicorn's HTTP protocol, with `request.state.actor`."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        connection = transport.get_extra_info("socket")
        if connection is not None and connection.family == socket.AF_UNIX:
            self.app_state = {**self.app_state, "actor": peer(connection)}


@contextlib.contextmanager
def listening(path: Path, mode: int = 0o660, group: str = "") -> Iterator[socket.socket]:
    """A listening Unix socket at `path`, for this instance alone, for its owner and `group`. Removes it at the end.

    Raises `NotAllowed` if another instance lives or the directory may not be written, `BadRequest` if the
    path is unusable (too long, or a file that is not a socket).
    """
    lock_path = path.with_name(path.name + ".lock")
    try:
        path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        lock = os.open(lock_path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise NotAllowed(
            f"cannot write to {path.parent}: {error.strerror}", hint="choose another `socket` in the configuration"
        ) from error
    try:
        _take(lock, path)
        _clear(path)
        with _bound(path, mode, group) as listener:
            try:
                yield listener
            finally:
                path.unlink(missing_ok=True)
    finally:
        os.close(lock)


def _take(lock: int, path: Path) -> None:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        holder = os.pread(lock, 32, 0).decode(errors="replace").strip()
        raise NotAllowed(
            f"another `nodeworthy serve` (process {holder or 'unknown'}) already serves {path}",
            hint="stop it first, or give this one another `socket` and `store`",
        ) from error
    os.ftruncate(lock, 0)
    os.pwrite(lock, f"{os.getpid()}\n".encode(), 0)


def _clear(path: Path) -> None:
    """Remove a left-over socket (we hold the lock, so nobody serves it), never anything else."""
    try:
        kind = path.lstat().st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(kind):
        raise BadRequest(f"{path} exists and is not a socket", hint="remove it, or choose another `socket`")
    path.unlink()


def _bound(path: Path, mode: int, group: str) -> socket.socket:
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
    try:
        # nobody can connect before listen(), so the mode is right before the first connection
        listener.bind(str(path))
        path.chmod(mode)
        if group:
            _give(path, group)
        listener.listen(128)
        listener.setblocking(False)
    except OSError as error:
        listener.close()
        raise BadRequest(
            f"cannot listen on {path}: {error}", hint="a socket path has at most 107 bytes, in a writable directory"
        ) from error
    return listener


def _give(path: Path, group: str) -> None:
    try:
        shutil.chown(path, group=group)
    except (LookupError, PermissionError) as error:
        raise BadRequest(
            f"cannot give {path} to the group {group!r}: {error}",
            hint="`socket_group` must exist, and Nodeworthy must be a member of it",
        ) from error


def tcp_listener(address: str) -> socket.socket:
    """A listening TCP socket at HOST:PORT (`metrics_listen`); an IPv6 host stands in brackets."""
    host, _, port = address.rpartition(":")
    try:
        listener = socket.create_server((host.strip("[]"), int(port)), family=_family(host))
    except (OSError, ValueError, OverflowError) as error:
        raise BadRequest(
            f"cannot listen on {address!r}: {error}", hint="write `metrics_listen` as 127.0.0.1:9465, on a free port"
        ) from error
    listener.setblocking(False)
    return listener


def _family(host: str) -> socket.AddressFamily:
    return socket.AF_INET6 if host.startswith("[") else socket.AF_INET


class _Server(uvicorn.Server):
    """uvicorn without its signal handlers: signals belong to the whole process, not to its API."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


async def serve(app: FastAPI, listener: socket.socket, stop: asyncio.Event) -> None:
    """Answer on `listener` until `stop` is set; then finish what is being answered within two seconds."""
    config = uvicorn.Config(
        app,
        http=PeerProtocol,
        ws="none",
        lifespan="off",
        log_config=None,
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=_DRAIN_S,
    )
    server = _Server(config)

    async def watch() -> None:
        await stop.wait()
        server.should_exit = True

    watcher = asyncio.create_task(watch(), name="api-stop")
    try:
        await server.serve(sockets=[listener])
    finally:
        watcher.cancel()
