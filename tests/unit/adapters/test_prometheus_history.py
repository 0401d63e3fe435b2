"""Hours of a fleet from a server that is slow, dead, partial, garbled or overloaded: what was read stands, the rest is said."""

from __future__ import annotations

import asyncio
import json
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs

import polars as pl
import pytest
from click.testing import CliRunner

from labs.metrics_servers import free_port
from nodeworthy.adapters.files.catalogue import load
from nodeworthy.adapters.prometheus.api import Series, read_range
from nodeworthy.adapters.prometheus.history import History, HistoryLimits, PrometheusHistory
from nodeworthy.adapters.prometheus.node_hours import NodeHours, questions
from nodeworthy.commands.audit import audit
from nodeworthy.errors import BadRequest, Garbled, Refused, TimedOut, Unreachable, WorldError

HOUR = 3600
FIRST = 1_790_000_000 // 86400 * 24
Form = Mapping[str, str]
Answer = Callable[[Form], tuple[object, ...]]


@contextmanager
def server(answer: Answer, seen: list[tuple[str, str]] | None = None) -> Iterator[str]:
    """A Prometheus that answers (status, body) or (status, body, pause) to a question's form."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
            if seen is not None:
                seen.append((self.path, self.headers.get("Authorization", "")))
            status, body, *pause = answer({k: v[0] for k, v in form.items()})
            time.sleep(pause[0] if pause else 0)  # type: ignore[arg-type]
            self.send_response(status)  # type: ignore[arg-type]
            self.send_header("Content-Length", str(len(body)))  # type: ignore[arg-type]
            self.end_headers()
            with suppress(ConnectionError):
                self.wfile.write(body)  # type: ignore[arg-type]

        def log_message(self, format: str, *args: object) -> None:
            pass

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{http.server_address[1]}"
    finally:
        http.shutdown()
        http.server_close()


def matrix(*result: object, **more: object) -> bytes:
    return json.dumps({"status": "success", "data": {"resultType": "matrix", "result": result}, **more}).encode()


def span(form: Form) -> tuple[int, int]:
    """The hours that a question asks for, as (first, last exclusive) after FIRST."""
    return int(form["start"]) // HOUR - 1 - FIRST, int(form["end"]) // HOUR - FIRST


def constant(form: Form, value: str = "1", **labels: str) -> bytes:
    """One series with a value in every hour that is asked for."""
    stamps = range(int(form["start"]), int(form["end"]) + 1, int(form["step"]))
    return matrix({"metric": labels or {"Hostname": "n1"}, "values": [[t, value] for t in stamps]})


def read(url: str, hours: int = 72, nodes: int = 10, **limits: object) -> tuple[History, list[float]]:
    """The hours after FIRST at which the one question was answered."""
    got: list[float] = []

    def keep(answers: Mapping[str, Sequence[Series]]) -> None:
        got.extend(t / HOUR - 1 - FIRST for s in answers["q"] for t in s.at.tolist())

    reader = PrometheusHistory(url, HistoryLimits(**limits))  # type: ignore[arg-type]
    history = asyncio.run(reader.read({"g": ({"q": "up"}, keep)}, FIRST, FIRST + hours, nodes))
    return history, got


def test_every_hour_is_asked_for_once_and_the_newest_first() -> None:
    """A first hour alone, then pieces of a day at most; with many nodes, smaller pieces."""
    asked: list[tuple[int, int]] = []

    def answer(form: Form) -> tuple[object, ...]:
        asked.append(span(form))
        return 200, constant(form)

    with server(answer) as url:
        history, got = read(url)
        assert asked == [(71, 72), (47, 71), (23, 47), (0, 23)]
        assert sorted(got) == list(range(72))
        assert history.read == {"g": set(range(FIRST, FIRST + 72))} and history.problems == []
        asked.clear()
        read(url, hours=12, nodes=50_000)
    assert asked == [(11, 12), (6, 11), (1, 6), (0, 1)]


def test_a_question_that_is_too_much_is_asked_in_halves() -> None:
    """The server loads six hours at most: everything is read all the same."""

    def answer(form: Form) -> tuple[object, ...]:
        first, last = span(form)
        if last - first > 6:
            return 422, b'{"status":"error","errorType":"execution","error":"query would load too many samples"}'
        return 200, constant(form)

    with server(answer) as url:
        history, got = read(url)
    assert sorted(got) == list(range(72)) and history.problems == []


def test_hours_that_fail_are_unread_and_the_rest_stands() -> None:
    """One hour cannot be had; it is missing from what was read and its reason is said."""

    def answer(form: Form) -> tuple[object, ...]:
        first, last = span(form)
        return (503, b"no healthy upstream") if first <= 30 < last else (200, constant(form))

    with server(answer) as url:
        history, got = read(url)
    assert set(range(72)) - {h - FIRST for h in history.read["g"]} == {30}
    assert sorted(got) == [h for h in range(72) if h != 30]
    assert len(history.problems) == 1 and "no healthy upstream" in history.problems[0]


def test_a_server_that_dies_on_the_way_leaves_what_was_read() -> None:
    """Three hours that fail end it: nobody waits for months of failures."""
    asked: list[tuple[int, int]] = []

    def answer(form: Form) -> tuple[object, ...]:
        asked.append(span(form))
        return (200, constant(form)) if asked[-1][0] >= 23 else (500, b"out of memory")

    with server(answer) as url:
        history, _ = read(url)
    assert {h - FIRST for h in history.read["g"]} == set(range(23, 72))
    assert len(asked) < 20 and "out of memory" in history.problems[0]


def test_the_time_given_is_kept() -> None:
    """A slow server: the newest hours are read, then it is said that time ran out."""
    begin = time.monotonic()
    with server(lambda form: (200, constant(form), 0.4)) as url:
        history, got = read(url, hours=24 * 30, timeout_s=5.0, deadline_s=1.5)
    assert time.monotonic() - begin < 4
    assert max(got) == 24 * 30 - 1 and 0 < len(got) < 24 * 30
    assert any("ran out" in p or "no answer within" in p for p in history.problems)


@pytest.mark.parametrize(
    ("answer", "error", "words"),
    [
        ((200, b'{"status":"success","data":{"resultType":"matrix","result":[{"me'), Garbled, "not whole JSON"),
        ((200, b"<html>login</html>"), Garbled, "not whole JSON"),
        ((200, b'{"status":"success","data":{"resultType":"vector","result":[]}}'), Garbled, "not a matrix"),
        ((200, matrix({"metric": {"Hostname": 7}, "values": []})), Garbled, "unexpected shape"),
        ((200, matrix({"metric": {}, "values": [[1, "soon"]]})), Garbled, "unexpected shape"),
        ((200, matrix(warnings=["store-2 is unavailable"])), Garbled, "store-2 is unavailable"),
        ((200, matrix(isPartial=True)), Garbled, "partial"),
        ((200, b" " * 5000), Garbled, "larger than 4000"),
        ((401, b"Unauthorized"), Refused, "401"),
        ((500, b'{"status":"error","errorType":"internal","error":"disk is full"}'), Refused, "disk is full"),
        ((200, matrix(), 3.0), TimedOut, "no answer within"),
    ],
)
def test_a_first_hour_that_fails_is_the_end_of_it(
    answer: tuple[object, ...], error: type[WorldError], words: str
) -> None:
    """One question, one reason; an answer that may lack half of the fleet is none."""
    asked: list[tuple[str, str]] = []
    with server(lambda form: answer, asked) as url, pytest.raises(error, match=words):
        read(url, timeout_s=0.5, answer_bytes=4000)
    assert len(asked) == 1


def test_nobody_there() -> None:
    """A closed port."""
    with pytest.raises(Unreachable, match="cannot be reached"):
        read(f"http://127.0.0.1:{free_port()}")


def test_a_user_in_the_address_is_sent_and_never_printed() -> None:
    """Basic authentication goes in its header; messages hold the bare address."""
    asked: list[tuple[str, str]] = []
    with server(lambda form: (401, b"Unauthorized"), asked) as url, pytest.raises(Refused):
        read(url.replace("http://", "http://ann:s3cret@"))
    assert asked == [("/api/v1/query_range", "Basic YW5uOnMzY3JldA==")]
    reader = PrometheusHistory("https://ann:s3cret@prometheus:9090/base/")
    assert reader.url == "https://prometheus:9090/base"
    with pytest.raises(BadRequest) as caught:
        PrometheusHistory("ann:s3cret@prometheus")
    assert "s3cret" not in str(caught.value) + caught.value.hint


def test_numbers_that_are_none_are_left_out() -> None:
    """NaN and infinities are unknown, never zero."""
    series, _ = read_range(200, matrix({"metric": {}, "values": [[1, "NaN"], [2, "+Inf"], [3, "0.5"]]}))
    assert (series[0].at.tolist(), series[0].value.tolist()) == ([3.0], [0.5])


def test_the_questions_add_up_on_the_server() -> None:
    """A row per node, GPUs told by their label across series, both names of a field, MIG apart, harmful bits only."""
    asked = questions(load().signals, 'cluster="a"')
    busy, clocks = asked["use"]["busy"], asked["throttling"]["throttled"]
    assert busy.startswith("sum by (Hostname, instance) (")
    assert 'DCGM_FI_DEV_GPU_UTIL{gpu!="",GPU_I_ID="",cluster="a"}[1h]' in busy
    assert " or (" in busy and "DCGM_FI_DEV_GPU_UTIL_RATIO" in busy
    assert busy.endswith(">= 0 <= 100) / 100")
    assert 'GPU_I_ID!=""' in asked["use"]["mig"] and 'GPU_I_ID!=""' not in asked["use"]["present"]
    # the second is any of 0x20, 0x40 and 0x80, and no other bit
    assert re.findall(r"% \d+ >= bool \d+", clocks) == ["% 16 >= bool 8", "% 256 >= bool 32"]


def answers(**counts: Sequence[tuple[str, str, float]]) -> dict[str, tuple[Series, ...]]:
    """Question → series of one hour, from (Hostname, instance, value)."""
    made: dict[str, tuple[Series, ...]] = {}
    for name in ("busy", "seen", "present", "mig"):
        body = matrix(
            *(
                {"metric": {"Hostname": h, "instance": i}, "values": [[(FIRST + 1) * HOUR, str(v)]]}
                for h, i, v in counts.get(name, ())
            )
        )
        made[name] = read_range(200, body)[0]
    return made


@pytest.mark.parametrize(
    ("sources", "busy", "seen"),
    [
        ([("n1:1", 4, 2.0)], 2.0, 4),
        ([("n1:1", 4, 2.0), ("n1:2", 4, 1.0)], 3.0, 8),  # an exporter per half
        ([("n1:1", 8, 4.0), ("n1:2", 8, 4.0)], 4.0, 8),  # scraped twice
    ],
)
def test_several_sources_of_a_node(sources: list[tuple[str, int, float]], busy: float, seen: int) -> None:
    """They add up while the node has so many GPUs, and are two views of the same ones otherwise."""
    known = NodeHours(lambda name: "n1" if name == "n1" else None, pl.DataFrame({"node": ["n1"], "gpus": [8]}))
    counts = [("n1", i, float(n)) for i, n, _ in sources]
    known.keep_use(answers(busy=[("n1", i, b) for i, _, b in sources], seen=counts, present=counts))
    assert known.node_hours.select("hour", "busy", "seen").rows() == [(FIRST, busy, seen)]


def test_strangers_and_torn_names_are_listed() -> None:
    """Never guessed: a name of no node, and a source that is two nodes at once."""
    known = NodeHours(
        lambda name: name if name in ("n1", "n2") else None, pl.DataFrame({"node": ["n1", "n2"], "gpus": [8, 8]})
    )
    present = [("n1", "n2:9400", 8.0), ("x9", "x9:9400", 8.0), ("", "n2:9400", 8.0)]
    known.keep_use(answers(present=present))
    assert known.node_hours["node"].to_list() == ["n2"]
    assert known.unknown_names == {"x9"}
    assert any("two nodes at once" in p for p in known.problems)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ((503, b"no healthy upstream"), "no healthy upstream"),
        ((200, b'{"status":"success","data"'), "not whole JSON"),
        ((200, matrix(isPartial=True)), "partial"),
        ((200, matrix(), 5.0), "no answer within"),
    ],
)
def test_the_audit_succeeds_without_the_part_that_failed(
    answer: tuple[object, ...], words: str, tmp_path: Path
) -> None:
    """Exit code 6, the reason under "Not known", everything else as without a metrics server."""
    (tmp_path / "nodes").write_text(
        "NodeName=n1 Gres=gpu:8 RealMemory=1 State=DOWN Partitions=p Reason=Xid 79 [root@1790000000]\n"
    )
    options = [
        "slurm",
        f"--nodes={tmp_path / 'nodes'}",
        "--until=2026-09-30",
        "--since=2d",
        "-o",
        "json",
        "--timeout=1",
    ]
    with server(lambda form: answer) as url:
        done = CliRunner().invoke(audit, [*options, "--prometheus", url])
    plain = json.loads(CliRunner().invoke(audit, options).stdout)
    document = json.loads(done.stdout)
    assert done.exit_code == 6
    assert document["utilisation"] is None
    said = [gap["what"] for gap in document["gaps"] if "metrics server" in gap["what"]]
    assert len(said) == 1 and words in said[0]
    assert {k: v for k, v in document.items() if k != "gaps"} == {k: v for k, v in plain.items() if k != "gaps"}


def test_an_empty_server_is_said(tmp_path: Path) -> None:
    """No telemetry of these nodes is a gap, not an idle fleet."""
    (tmp_path / "nodes").write_text("NodeName=n1 Gres=gpu:8 RealMemory=1 State=IDLE Partitions=p\n")
    (tmp_path / "jobs").write_text(
        f"JobIDRaw|User|State|Start|End|NNodes|NodeList|AllocTRES\n1|a|COMPLETED|{FIRST * HOUR}|{(FIRST + 4) * HOUR}|1|n1|gres/gpu=8\n"
    )
    options = ["slurm", f"--nodes={tmp_path / 'nodes'}", f"--jobs={tmp_path / 'jobs'}", "--since=2d", "-o", "json"]
    with server(lambda form: (200, matrix())) as url:
        document = json.loads(CliRunner().invoke(audit, [*options, "--prometheus", url]).stdout)
    use = document["utilisation"]
    assert (use["idle_gpu_hours"], use["busy_gpu_hours"], use["dark_gpu_hours"]) == (0, 0, 32)
    assert any("no GPU telemetry of these nodes" in gap["what"] for gap in document["gaps"])


def test_a_wrong_address_is_the_users_error() -> None:
    """Refused before anything is read."""
    done = CliRunner().invoke(audit, ["slurm", "--prometheus", "prometheus:9090"])
    assert isinstance(done.exception, BadRequest)
