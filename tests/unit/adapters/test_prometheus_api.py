"""What Prometheus' HTTP API may answer, and what we make of it: nothing half is taken for whole."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs

import pytest

from nodeworthy.adapters.clock import SystemClock
from nodeworthy.adapters.prometheus.api import chunks, expression, read_answer, read_federation
from nodeworthy.adapters.prometheus.telemetry import Limits, PrometheusTelemetry
from nodeworthy.errors import BadRequest, Garbled, Refused, TimedOut, WorldError
from tests.telemetry_words import SIGNALS, cell, read

TEMP = "DCGM_FI_DEV_GPU_TEMP"


def series(value: str, at: float, **labels: str) -> dict[str, object]:
    return {"metric": {"__name__": TEMP, **labels}, "values": [[at - 15, "1"], [at, value]]}


def matrix(*result: object, **more: object) -> bytes:
    return json.dumps({"status": "success", "data": {"resultType": "matrix", "result": result}, **more}).encode()


@contextmanager
def server(answer: object) -> Iterator[str]:
    """A Prometheus that answers (status, body), or (status, body, pause), to what `answer(query)` says."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
            status, body, *pause = answer(form["query"][0])  # type: ignore[operator]
            time.sleep(pause[0] if pause else 0)
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            with suppress(ConnectionError):
                self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{http.server_address[1]}"
    finally:
        http.shutdown()
        http.server_close()


def telemetry(url: str, **limits: object) -> PrometheusTelemetry:
    return PrometheusTelemetry(
        url,
        SIGNALS,
        lambda name: name if name == "n1" else None,
        SystemClock(),
        limits=Limits(**limits),  # type: ignore[arg-type]
    )


def test_the_newest_sample_of_a_series_is_taken_with_its_time() -> None:
    """Of the raw samples of a window the last counts, with the time at which it was scraped."""
    samples = read_answer(200, matrix(series("41", 1000.5, gpu="0", Hostname="n1"))).samples
    assert (samples.names, samples.value.tolist(), samples.at.tolist()) == ((TEMP,), [41.0], [1000.5])
    assert samples.places[0].labels == {"gpu": "0", "Hostname": "n1"}


def test_numbers_are_read_as_the_api_writes_them() -> None:
    """NaN and infinities come as words."""
    values = read_answer(200, matrix(*(series(v, 1.0, gpu=v) for v in ("NaN", "+Inf", "-Inf", "1e-3")))).samples.value
    assert [str(v) for v in values.tolist()] == ["nan", "inf", "-inf", "0.001"]


def test_native_histograms_are_passed_over() -> None:
    """A series without plain values is none of ours."""
    assert len(read_answer(200, matrix({"metric": {"__name__": "h"}, "histograms": []})).samples) == 0


@pytest.mark.parametrize(
    ("status", "body", "error", "words"),
    [
        (200, b"", Garbled, "not whole JSON"),
        (200, b'{"status":"success","data":{"resultType":"matrix","result":[{"me', Garbled, "not whole JSON"),
        (200, b"<html>login</html>", Garbled, "not whole JSON"),
        (200, b"[]", Garbled, "not a JSON object"),
        (200, b'{"status":"success"}', Garbled, "not a matrix"),
        (200, b'{"status":"success","data":{"resultType":"vector","result":[]}}', Garbled, "not a matrix"),
        (200, b'{"status":"success","data":{"resultType":"matrix","result":null}}', Garbled, "not a matrix"),
        (200, matrix({"metric": {}, "values": [[1, "1"]]}), Garbled, "unexpected shape"),
        (200, matrix({"metric": {"__name__": "a"}, "values": [[1]]}), Garbled, "unexpected shape"),
        (200, matrix({"metric": {"__name__": "a"}, "values": [[1, "soon"]]}), Garbled, "unexpected shape"),
        (200, matrix({"metric": {"__name__": "a", "gpu": 0}, "values": [[1, "1"]]}), Garbled, "unexpected shape"),
        (200, matrix("a"), Garbled, "unexpected shape"),
        (200, b'{"status":"error","errorType":"internal","error":"disk is full"}', Refused, "disk is full"),
        (400, b'{"status":"error","errorType":"bad_data","error":"parse error"}', Refused, "parse error"),
        (422, b'{"status":"error","errorType":"execution","error":"too many samples"}', Refused, "too many samples"),
        (503, b'{"status":"error","errorType":"timeout","error":"query timed out"}', TimedOut, "ran out of time"),
        (503, b'{"status":"error","errorType":"canceled","error":"query was canceled"}', TimedOut, "ran out of time"),
        (503, b"no healthy upstream", Refused, "no healthy upstream"),
        (504, b"<html>gateway</html>", TimedOut, "ran out of time"),
        (401, b"Unauthorized", Refused, "401"),
        (404, b"404 page not found", Refused, "404"),
    ],
)
def test_every_failure_has_its_name(status: int, body: bytes, error: type[WorldError], words: str) -> None:
    """An answer that is no answer raises what fits, with the server's words; it is never an empty fleet."""
    with pytest.raises(error, match=words):
        read_answer(status, body)


def test_a_page_of_federation_keeps_the_samples_times() -> None:
    """`/federate` stamps each sample in milliseconds."""
    line = f'{TEMP}{{gpu="0",instance="n1:9400"}} 41 1796000000123\n'.encode()
    answer = read_federation(200, b"# TYPE x untyped\n" + line, 7.0, {})
    assert (answer.samples.value.tolist(), answer.samples.at.tolist(), answer.warnings) == (
        [41.0],
        [1796000000.123],
        (),
    )
    assert "ends before its end" in read_federation(200, line + line[:-9], 7.0, {}).warnings[0]


@pytest.mark.parametrize(
    ("status", "body", "error"),
    [(404, b"404 page not found", Refused), (200, b"<html>\n<p>login\n", Garbled), (400, b"parse error", Refused)],
)
def test_a_federation_that_is_none_says_so(status: int, body: bytes, error: type[WorldError]) -> None:
    """A server without `/federate` is refused or garbled, never empty."""
    with pytest.raises(error):
        read_federation(status, body, 7.0, {})


def test_warnings_and_partial_answers_become_problems() -> None:
    """Half the storage did not answer: the data that came are used, and it is said that they are not all."""
    now = time.time()
    body = matrix(series("41", now, gpu="0", Hostname="n1"), warnings=["store-2 is unavailable"], isPartial=True)
    with server(lambda query: (200, body)) as url:
        batch = read(telemetry(url))
    assert cell(batch, "gpu", "n1", "0", "gpu_temperature") == 41.0
    assert "prometheus warns: store-2 is unavailable" in batch.problems
    assert any("partial" in p for p in batch.problems)


def test_a_question_that_fails_costs_only_its_metrics() -> None:
    """One of several queries is refused: the others count, the metrics that are missing are named."""
    now = time.time()

    def answer(query: str) -> tuple[int, bytes]:
        if TEMP in query:
            return 200, matrix(series("41", now, gpu="0", Hostname="n1"))
        return 422, b'{"status":"error","errorType":"execution","error":"too many samples"}'

    with server(answer) as url:
        batch = read(telemetry(url, names_per_query=1))
    assert cell(batch, "gpu", "n1", "0", "gpu_temperature") == 41.0
    assert any("1 metrics could not be asked for" in p and "node_load1" in p for p in batch.problems)
    assert not any("now by nobody" in p for p in batch.problems)


def test_a_silent_server_times_out_within_the_deadline() -> None:
    """However many questions there are, reading ends in time."""
    start = time.monotonic()
    with server(lambda query: (200, matrix(), 2.0)) as url, pytest.raises(TimedOut):
        read(telemetry(url, timeout_s=0.3, deadline_s=0.8, names_per_query=1, at_once=1))
    assert time.monotonic() - start < 4.0


def test_an_answer_without_end_is_refused() -> None:
    """An answer larger than the limit is not taken into memory."""
    with server(lambda query: (200, b" " * 3_000_000)) as url, pytest.raises(Garbled, match="larger than 1000000"):
        read(telemetry(url, answer_bytes=1_000_000))


def test_the_question_asks_for_raw_samples_of_a_window() -> None:
    """The window is the oldest age that counts and a slack; the names are in one pattern; matchers follow."""
    asked: list[str] = []

    def answer(query: str) -> tuple[int, bytes]:
        asked.append(query)
        return 200, matrix()

    with server(answer) as url:
        read(telemetry(url, names_per_query=100))
        read(telemetry(url, names_per_query=100, window_s=40.0))
    query, narrow = asked
    assert narrow.endswith("[40s]")
    assert query.startswith('{__name__=~"DCGM_EXP_CLOCK_EVENTS_COUNT|') and query.endswith('"}[150s]')
    assert "|gpus" not in query
    assert expression(["a", "b"], window_s=90, matchers='job="x"') == '{__name__=~"a|b",job="x"}[90s]'


def test_names_that_are_no_metrics_are_not_asked_for() -> None:
    """A field name with a blank or a quote never reaches a query."""
    assert chunks(["b", "a", "mig.mode", 'x"}', "c", "a"], 2) == [("a", "b"), ("c",)]


def test_a_wrong_address_is_the_users_error() -> None:
    """What is no URL is refused before anything is asked."""
    with pytest.raises(BadRequest, match="not the address"):
        telemetry("prometheus:9090")
