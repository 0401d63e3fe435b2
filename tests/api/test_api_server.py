"""The socket: who may connect, who is there, left-overs, second instances."""

from __future__ import annotations

import asyncio
import grp
import os
import pwd
import shutil
import socket
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from fastapi import FastAPI, Request

from nodeworthy.api.app import create_app, create_metrics_app
from nodeworthy.api.server import listening, peer, serve, tcp_listener
from nodeworthy.cli.client import Client, connect
from nodeworthy.errors import BadRequest, NotAllowed
from nodeworthy.service.deadman import DeadMan
from nodeworthy.service.metrics import Metrics
from tests.serving import serving
from tests.views_in_memory import MemoryViews


def test_socket_is_for_owner_and_group(tmp_path: Path) -> None:
    """The socket has mode 0660 from the moment it can be connected to, and is gone afterwards."""
    path = tmp_path / "sub" / "api.sock"
    with listening(path):
        assert stat.S_IMODE(path.stat().st_mode) == 0o660
    assert not path.exists()


def test_socket_is_gone_also_after_a_failure(tmp_path: Path) -> None:
    """A control plane that fails leaves no socket that looks alive."""
    path = tmp_path / "api.sock"
    with pytest.raises(RuntimeError), listening(path):
        raise RuntimeError("broken")
    assert not path.exists()


def test_socket_can_be_given_to_a_group(tmp_path: Path) -> None:
    """`socket_group` gets the socket; a group that is not there is refused with the reason."""
    path = tmp_path / "api.sock"
    own = grp.getgrgid(os.getgid()).gr_name
    with listening(path, group=own):
        assert path.stat().st_gid == os.getgid()
    with pytest.raises(BadRequest, match="no-such-group"), listening(path, group="no-such-group"):
        pass


def test_actor_is_the_peer_as_the_kernel_knows_it(tmp_path: Path) -> None:
    """The user, uid and process of the client reach the request."""
    app = FastAPI()

    @app.get("/who")
    def who(request: Request) -> dict[str, object]:
        actor = request.state.actor
        return {"uid": actor.uid, "pid": actor.pid, "gid": actor.gid, "user": actor.user}

    with serving(app, tmp_path / "api.sock") as path:
        answer = Client(str(path)).get("/who")
    assert answer == {
        "uid": os.getuid(),
        "pid": os.getpid(),
        "gid": os.getgid(),
        "user": pwd.getpwuid(os.getuid()).pw_name,
    }


def test_actor_is_another_user_when_another_user_connects(tmp_path: Path) -> None:
    """Not the server's own uid is reported, but the connecting process's."""
    if os.geteuid() != 0:
        pytest.skip("needs root to become another user")
    perl = shutil.which("perl")
    if perl is None:
        pytest.skip("needs perl")
    server, client = tmp_path / "peer.sock", 65534
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(server))
        server.chmod(0o666)
        for directory in (tmp_path, *tmp_path.parents[:-1]):
            directory.chmod(directory.stat().st_mode | 0o055)
        listener.listen()
        # the tests' own interpreter may lie where that user cannot read it; perl-base is essential in Debian
        code = "socket(S, PF_UNIX, SOCK_STREAM, 0); connect(S, sockaddr_un($ARGV[0])) or exit 1; sysread(S, $b, 1)"
        process = subprocess.Popen([perl, "-MSocket", "-e", code, str(server)], user=client, group=client)
        listener.settimeout(20)
        connection, _ = listener.accept()
        actor = peer(connection)
        connection.close()
        assert process.wait(timeout=20) == 0
    assert (actor.uid, actor.pid) == (client, process.pid)


def test_the_actor_is_named_in_about(tmp_path: Path) -> None:
    """/v1/about tells a client who it is to the server."""
    with serving(create_app(MemoryViews()), tmp_path / "api.sock") as path:
        connection = connect(str(path), 10)
        connection.request("GET", "/v1/about")
        header = connection.getresponse().headers["nodeworthy-actor"]
        connection.close()
    assert header == f"{pwd.getpwuid(os.getuid()).pw_name} (uid {os.getuid()})"


def test_left_over_socket_is_replaced(tmp_path: Path) -> None:
    """A socket file whose instance was killed does not stop the next one."""
    path = tmp_path / "api.sock"
    code = (
        f"import os; from pathlib import Path; from nodeworthy.api.server import listening\n"
        f"with listening(Path({str(path)!r})): os._exit(9)"
    )
    assert subprocess.run([sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": "src"}).returncode == 9
    assert path.is_socket()
    with serving(create_app(MemoryViews()), path):
        assert Client(str(path)).get("/v1/about")["fleet"] == "lab"


def test_second_instance_is_refused_and_the_first_lives_on(tmp_path: Path) -> None:
    """Another instance on the same socket gets a clear error, and takes nothing away from the first."""
    with serving(create_app(MemoryViews()), tmp_path / "api.sock") as path:
        with pytest.raises(NotAllowed, match=f"process {os.getpid()}") as error, listening(path):
            pass
        assert error.value.exit_code == 4
        assert "another `socket`" in error.value.hint
        assert Client(str(path)).get("/v1/about")["fleet"] == "lab"


def test_a_file_that_is_no_socket_is_never_removed(tmp_path: Path) -> None:
    """A wrong path in the configuration destroys nothing."""
    path = tmp_path / "precious.txt"
    path.write_text("data")
    with pytest.raises(BadRequest, match="is not a socket"), listening(path):
        pass
    assert path.read_text() == "data"


def test_a_path_that_is_too_long_is_said(tmp_path: Path) -> None:
    """A socket's path is limited by the kernel; the error says so."""
    with pytest.raises(BadRequest) as error, listening(tmp_path / ("x" * 120)):
        pass
    assert "107 bytes" in error.value.hint


def test_stop_ends_open_streams_soon(tmp_path: Path) -> None:
    """An open event stream does not keep the server from stopping, and ends in order."""
    stop = asyncio.Event()
    with serving(create_app(MemoryViews(), stop=stop), tmp_path / "api.sock", stop) as path:
        connection = connect(str(path), 10)
        connection.request("GET", "/v1/events")
        response = connection.getresponse()
        response.readline()
    assert response.read().count(b"event: ") == 0  # an ordered end: all chunks came, none was cut
    connection.close()


def test_metrics_listener_serves_health_alone(tmp_path: Path) -> None:
    """On TCP there are metrics and health, and nothing that the socket's mode protects."""
    views, metrics = MemoryViews(), Metrics()
    deadman = DeadMan(lambda: 0.0)
    metrics.watch(views, deadman.loops)
    listener = tcp_listener("127.0.0.1:0")
    port = listener.getsockname()[1]
    loop, stop = asyncio.new_event_loop(), asyncio.Event()
    app = create_metrics_app(views, metrics.registry, deadman.loops)
    thread = threading.Thread(target=lambda: loop.run_until_complete(serve(app, listener, stop)))
    thread.start()
    try:
        import httpx

        with httpx.Client(base_url=f"http://127.0.0.1:{port}", trust_env=False) as client:
            assert 'nodeworthy_nodes{state="suspect"} 1.0' in client.get("/metrics").text
            assert client.get("/healthz").json() == {"ok": True, "stalled": []}
            assert client.get("/v1/status").status_code == 404
            assert client.get("/v1/openapi.json").status_code == 404
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(timeout=20)
        loop.close()


@pytest.mark.parametrize("address", ["", "nohost", "127.0.0.1:99999", "127.0.0.1:x"])
def test_bad_metrics_address_is_refused(address: str) -> None:
    """An address that cannot be listened on is a clear error of the configuration."""
    with pytest.raises(BadRequest, match="cannot listen"):
        tcp_listener(address)
