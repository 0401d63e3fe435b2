"""What the command line says when there is nobody, or somebody else, at the socket."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from nodeworthy.cli import client as client_module
from nodeworthy.cli import places
from nodeworthy.cli.client import Client, segment
from nodeworthy.cli.places import find_socket, user_socket
from nodeworthy.errors import Garbled, NodeworthyError, NotAllowed, TimedOut, Unreachable


@contextmanager
def answering(path: Path, answer: bytes | None) -> Iterator[None]:
    """A server that says `answer` and hangs up; None: it accepts and stays silent."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        done = threading.Event()

        def run() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(65536)
                if answer is None:
                    done.wait(20)
                else:
                    connection.sendall(answer)

        thread = threading.Thread(target=run)
        thread.start()
        yield
        done.set()
        thread.join(20)


def http_answer(body: bytes, status: str = "200 OK", length: int | None = None) -> bytes:
    size = len(body) if length is None else length
    return f"HTTP/1.1 {status}\r\ncontent-length: {size}\r\n\r\n".encode() + body


def test_absent_socket_says_how_to_start_one(tmp_path: Path) -> None:
    """Nobody there: what is missing, and the command that starts it."""
    with pytest.raises(Unreachable) as error:
        Client(str(tmp_path / "none.sock")).get("/v1/status")
    assert "there is no socket" in str(error.value)
    assert "nodeworthy serve" in error.value.hint


def test_dead_socket_says_where_to_look(tmp_path: Path) -> None:
    """A left-over socket is not "not running": it has stopped, and the journal tells why."""
    path = tmp_path / "dead.sock"
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))
    with pytest.raises(Unreachable) as error:
        Client(str(path)).get("/v1/status")
    assert "has stopped" in str(error.value)
    assert "journalctl" in error.value.hint


def test_no_permission_names_the_group(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody who may not use the socket learns how to be allowed, with exit code 4."""

    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(client_module, "connect", refuse)
    with pytest.raises(NotAllowed) as error:
        Client(str(tmp_path / "x.sock")).get("/v1/status")
    assert error.value.exit_code == 4
    assert "group" in error.value.hint


def test_silence_is_a_time_out(tmp_path: Path) -> None:
    """A server that accepts and says nothing is given up after the time-out."""
    path = tmp_path / "silent.sock"
    with answering(path, None), pytest.raises(TimedOut, match=r"within 0\.2 s"):
        Client(str(path), timeout_s=0.2).get("/v1/status")


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"SSH-2.0-OpenSSH_9.2\r\n",
        http_answer(b"<html>hello</html>"),
        http_answer(b"[1, 2]"),
        http_answer(b'{"as_of": ', length=5000),
        http_answer(b"\xff\xfe\x00"),
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
    ],
    ids=["nothing", "ssh", "html", "list", "cut", "bytes", "chunks"],
)
def test_anything_else_at_the_socket_is_garbled(tmp_path: Path, answer: bytes) -> None:
    """Half an answer, another protocol, another document: an error of the tree, never a traceback."""
    path = tmp_path / "odd.sock"
    with answering(path, answer), pytest.raises(NodeworthyError) as error:
        Client(str(path), timeout_s=5).get("/v1/status")
    assert isinstance(error.value, (Garbled, Unreachable))


def test_error_without_problem_document_is_still_an_error(tmp_path: Path) -> None:
    """A status of 502 with an unknown body says its status."""
    path = tmp_path / "odd.sock"
    with answering(path, http_answer(b"{}", "502 Bad Gateway")), pytest.raises(NodeworthyError, match="status 502"):
        Client(str(path)).get("/v1/status")


def test_causes_of_a_server_error_are_kept(tmp_path: Path) -> None:
    """The chain of causes arrives in order."""
    body = b'{"code": "NW-3200", "detail": "a", "causes": ["b", "c"], "hint": "h"}'
    path = tmp_path / "odd.sock"
    with answering(path, http_answer(body, "504 Gateway Timeout")), pytest.raises(TimedOut) as error:
        Client(str(path)).get("/v1/status")
    assert error.value.chain() == ["a", "b", "c"]
    assert error.value.hint == "h"


def test_socket_is_found_where_it_is_likeliest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment wins; then the system's; the user's own only if it alone is there."""
    monkeypatch.setattr(places, "SYSTEM_SOCKET", str(tmp_path / "system.sock"))
    runtime = {"XDG_RUNTIME_DIR": str(tmp_path)}
    assert find_socket({"NODEWORTHY_SOCKET": "/x.sock", **runtime}) == "/x.sock"
    assert find_socket(runtime) == str(tmp_path / "system.sock")
    (tmp_path / "nodeworthy.sock").touch()
    assert find_socket(runtime) == user_socket(runtime) == str(tmp_path / "nodeworthy.sock")
    (tmp_path / "system.sock").touch()
    assert find_socket(runtime) == str(tmp_path / "system.sock")


def test_names_are_quoted_in_paths() -> None:
    """A name from a person never changes the path that is asked for."""
    assert segment("a/../b?x=1#y z") == "a%2F..%2Fb%3Fx=1%23y%20z".replace("=", "%3D")
