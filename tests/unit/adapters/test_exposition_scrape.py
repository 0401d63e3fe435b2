"""The scraper against real sockets: what it reads, and what it says of targets that fail."""

from __future__ import annotations

import asyncio
import gzip
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from labs.exporter import Exporters
from nodeworthy.adapters.clock import SystemClock
from nodeworthy.adapters.exposition.scrape import Limits, ScrapeTelemetry, Target
from nodeworthy.errors import BadRequest, Garbled, Refused, TimedOut, Unreachable
from tests.telemetry_words import SIGNALS, cell, read

NODES = ("n1", "n2", "n3")
QUICK = Limits(timeout_s=2.0, deadline_s=6.0)


def resolve(name: str) -> str | None:
    return name if name in NODES else None


def scraper(targets: list[Target], limits: Limits = QUICK) -> ScrapeTelemetry:
    return ScrapeTelemetry(targets, SIGNALS, resolve, SystemClock(), limits=limits)


def targets_of(lab: Exporters, kind: str = "dcgm") -> list[Target]:
    return [Target(lab.page_url(n, kind), f"{n}:9400") for n in NODES]


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


@contextmanager
def raw_server(answer: bytes, hold: bool = False) -> Iterator[str]:
    """A server that says exactly these bytes to each connection."""
    listener = socket.create_server(("127.0.0.1", 0))
    done = threading.Event()

    def serve() -> None:
        while not done.is_set():
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection:
                connection.recv(65536)
                connection.sendall(answer)
                if hold:
                    done.wait(10)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/metrics"
    finally:
        done.set()
        listener.close()


@contextmanager
def http_server(body: bytes, headers: dict[str, str]) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/metrics"
    finally:
        server.shutdown()
        server.server_close()


def test_a_healthy_lab_is_read_without_problems() -> None:
    """Two exporters on each of three nodes become frames of GPUs, ports and nodes, with nothing to complain of."""
    with Exporters(NODES) as lab:
        before = time.time()
        batch = read(scraper(targets_of(lab) + targets_of(lab, "node")))
    assert batch.problems == () and batch.unknown_names == ()
    assert batch.frames["gpu"].height == 24 and batch.frames["nic"].height == 24 and batch.frames["node"].height == 3
    assert cell(batch, "gpu", "n2", "3", "power_draw") == pytest.approx(67.041)
    assert cell(batch, "nic", "n2", "mlx5_7", "ib_state") == 4
    assert cell(batch, "node", "n2", "", "kernel_release") == "5.15.0-1042-nvidia"
    assert before <= batch.frames["gpu"]["seen"].min() <= time.time()  # type: ignore[operator]


def test_a_dead_target_is_a_problem_of_that_target_alone() -> None:
    """Refused, hung up, silent, HTTP 500 and an HTML page: each is named with its reason, the healthy one is read."""
    with Exporters(NODES) as lab:
        lab.lab.lie("n2", "error")
        targets = [
            *targets_of(lab),
            Target(f"http://127.0.0.1:{free_port()}/metrics", "refused:1"),
        ]
        lab.lab.lie("n3", "html")
        batch = read(scraper(targets))
        assert batch.frames["gpu"]["node"].unique().to_list() == ["n1"]
        said = "\n".join(batch.problems)
        assert "1 exporters gave no page: HTTP status 500: n2:9400" in said
        assert "no connection" in said and "refused:1" in said
        assert "not a metrics page" in said and "n3:9400" in said
        lab.lab.lie("n2", "down")
        lab.lab.lie("n3", "slow")
        said = "\n".join(read(scraper(targets[:3], Limits(timeout_s=0.5, deadline_s=3.0))).problems)
        assert "the connection failed" in said and "n2:9400" in said
        assert "no page within 0.5 s: n3:9400" in said


@pytest.mark.parametrize(
    ("lie", "error"),
    [("down", Unreachable), ("error", Refused), ("html", Garbled), ("garbage", Garbled), ("slow", TimedOut)],
)
def test_when_all_are_dead_reading_fails_with_the_reason(lie: str, error: type[Exception]) -> None:
    """No page at all is never an empty answer."""
    with Exporters(NODES) as lab:
        lab.lab.lie("n[1-3]", lie)
        with pytest.raises(error, match="none of 3 exporters gave a page") as caught:
            read(scraper(targets_of(lab), Limits(timeout_s=0.5, deadline_s=3.0)))
    assert "curl http" in caught.value.hint  # type: ignore[attr-defined]


def test_the_deadline_holds_however_many_are_silent() -> None:
    """Ten silent exporters, one at a time: reading ends at the deadline, not after ten time-outs."""
    with Exporters(NODES) as lab:
        lab.lab.lie("n2", "slow")
        targets = [Target(lab.page_url("n1"), "n1"), *(Target(lab.page_url("n2"), f"n2:{k}") for k in range(10))]
        start = time.monotonic()
        batch = read(scraper(targets, Limits(timeout_s=0.6, deadline_s=1.5, at_once=1)))
        assert time.monotonic() - start < 3.0
    assert batch.frames["gpu"].height == 8
    assert any("within 1.5 s for all" in p for p in batch.problems)


def test_a_page_that_breaks_off_keeps_its_whole_lines() -> None:
    """The connection ends before Content-Length: what is whole is kept, what is cut is dropped and said."""
    line = b'DCGM_FI_DEV_GPU_TEMP{gpu="%d",Hostname="n1"} 41\n'
    body = line % 0 + line % 1 + line[:-2] % 2
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 100000\r\n\r\n"
    with raw_server(head + body) as url:
        batch = read(scraper([Target(url, "n1:9400")]))
    assert batch.frames["gpu"]["index"].to_list() == ["0", "1"]
    assert any("n1:9400: the page ends before its end" in p for p in batch.problems)


def test_gzip_is_unpacked_and_its_size_is_limited() -> None:
    """A packed page is read; one that unpacks to more than the limit is refused before it fills the memory."""
    page = b'DCGM_FI_DEV_GPU_TEMP{gpu="0",Hostname="n1"} 41\n'
    with http_server(gzip.compress(page), {"Content-Encoding": "gzip", "Content-Type": "text/plain"}) as url:
        assert cell(read(scraper([Target(url)])), "gpu", "n1", "0", "gpu_temperature") == 41.0
    bomb = gzip.compress(b"# padding\n" * 3_000_000)
    limits = Limits(timeout_s=5.0, page_bytes=1_000_000)
    with (
        http_server(bomb, {"Content-Encoding": "gzip"}) as url,
        pytest.raises(Garbled, match="larger than 1000000 bytes"),
    ):
        read(scraper([Target(url)], limits))


def test_a_page_that_claims_gzip_and_is_not_is_garbled() -> None:
    """A wrong Content-Encoding is the target's fault and named so."""
    with (
        http_server(b"not packed", {"Content-Encoding": "gzip"}) as url,
        pytest.raises(Garbled, match="cannot be unpacked"),
    ):
        read(scraper([Target(url)]))


def test_names_that_the_fleet_does_not_declare_are_listed() -> None:
    """A page of an unknown node is no row of any node."""
    with Exporters(["n1", "x9"]) as lab:
        batch = read(scraper([Target(lab.page_url("n1"), "n1"), Target(lab.page_url("x9"), "x9:9400")]))
    assert batch.unknown_names == ("x9",)
    assert batch.frames["gpu"]["node"].unique().to_list() == ["n1"]


def test_a_target_that_says_it_is_another_node_is_not_believed() -> None:
    """Asked as n1, it says it is n2: nobody's numbers, and a problem of the source."""
    with Exporters(NODES) as lab:
        batch = read(scraper([Target(lab.page_url("n2"), "n1:9400"), Target(lab.page_url("n3"), "n3:9400")]))
    assert batch.frames["gpu"]["node"].unique().to_list() == ["n3"]
    assert any("name two nodes at once" in p and "n1:9400 (is n1) says it is n2" in p for p in batch.problems)


def test_signals_that_vanish_are_a_problem_of_the_source() -> None:
    """After an exporter's upgrade a field has another name: said at the next reading, with the new name."""
    with Exporters(NODES) as lab:
        telemetry = scraper(targets_of(lab))
        assert read(telemetry).problems == ()
        lab.lab.lie("n[1-3]", "renamed")
        batch = read(telemetry)
    assert batch.frames == {}
    said = "\n".join(batch.problems)
    assert "n1:9400: none of its" in said and "DCGM_FI_V2_DEV_GPU_TEMP" not in batch.unknown_names
    assert "signals were reported before and now by nobody" in said and "names not understood: DCGM_FI_V2_" in said


def test_a_wrong_address_is_the_users_error() -> None:
    """What is no URL is refused before anything is asked."""
    with pytest.raises(BadRequest, match="not the address of an exporter"):
        Target("n1:9400/metrics")
    with pytest.raises(BadRequest, match="no exporter to read"):
        scraper([])


def test_two_readings_at_once_do_not_disturb_each_other() -> None:
    """The port may be read again while a slow reading is under way."""
    with Exporters(NODES) as lab:
        telemetry = scraper(targets_of(lab))

        async def both() -> list[int]:
            batches = await asyncio.gather(telemetry.read(), telemetry.read())
            return [b.frames["gpu"].height for b in batches]

        assert asyncio.run(both()) == [24, 24]


def test_a_reading_that_is_called_off_leaves_nothing_behind() -> None:
    """When the caller gives up, its requests end with it."""
    with Exporters(NODES) as lab:
        lab.lab.lie("n[1-3]", "slow")

        async def give_up() -> set[asyncio.Task[object]]:
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(scraper(targets_of(lab)).read(), 0.3)
            await asyncio.sleep(0.1)
            return asyncio.all_tasks() - {asyncio.current_task()}  # type: ignore[arg-type]

        assert asyncio.run(give_up()) == set()
