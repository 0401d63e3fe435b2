"""The real Prometheus and the real VictoriaMetrics, scraping the lab's exporters, read by the adapter."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from labs.exporter import Exporters
from labs.metrics_servers import NotHere, free_port, prometheus, until, victoria_metrics
from nodeworthy.adapters.clock import SystemClock
from nodeworthy.adapters.exposition.scrape import ScrapeTelemetry, Target
from nodeworthy.adapters.prometheus.telemetry import Limits, PrometheusTelemetry
from nodeworthy.errors import Refused, Unreachable
from tests.telemetry_words import SIGNALS, cell, read, reason

NODES = ("n1", "n2", "n3")
SERVERS = {"prometheus": prometheus, "victoria-metrics": victoria_metrics}


def resolve(name: str) -> str | None:
    return name if name in NODES else None


class World:
    """A lab with its server."""

    def __init__(self, lab: Exporters, url: str) -> None:
        self.lab, self.url = lab, url

    def telemetry(self, **more: object) -> PrometheusTelemetry:
        return PrometheusTelemetry(self.url, SIGNALS, resolve, SystemClock(), **more)  # type: ignore[arg-type]

    def wait_for_rows(self, rows: int = 3) -> None:
        def complete() -> bool:
            frames = read(self.telemetry()).frames
            return "gpu" in frames and frames["gpu"].height == 8 * rows and frames["node"].height == rows

        until(f"the scrape of {rows} nodes", complete)


@pytest.fixture(scope="module", params=list(SERVERS))
def world(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with ExitStack() as stack:
        lab = stack.enter_context(Exporters([*NODES, "x9"]))
        try:
            url = stack.enter_context(SERVERS[request.param](tmp_path_factory.mktemp(request.param), lab.url))
        except NotHere as why:
            pytest.skip(str(why))
        world = World(lab, url)
        world.wait_for_rows()
        yield world


@pytest.fixture(autouse=True)
def all_well(world: World) -> Iterator[None]:
    yield
    world.lab.lab.lie("n[1-3]", "none")
    world.lab.lab.values.clear()


@pytest.mark.parametrize("federate", [False, True], ids=["query", "federate"])
def test_it_says_what_the_exporters_say(world: World, federate: bool) -> None:
    """Through the server come the same rows and values as from the pages themselves."""
    pages = [Target(world.lab.page_url(n, kind), n) for n in NODES for kind in ("dcgm", "node")]
    direct = read(ScrapeTelemetry(pages, SIGNALS, resolve, SystemClock()))
    through = read(world.telemetry(federate=federate))
    moving = ["seen", "energy", "gpu_temperature"]
    assert through.problems == ()
    for kind in ("gpu", "nic", "node"):
        ours, theirs = (b.frames[kind].sort("node", "index").drop(moving, strict=False) for b in (through, direct))
        assert ours.equals(theirs), kind


def test_undeclared_instances_are_listed(world: World) -> None:
    """The server knows a node that the fleet does not."""
    assert read(world.telemetry()).unknown_names == ("x9",)


@pytest.mark.parametrize("federate", [False, True], ids=["query", "federate"])
def test_seen_is_the_time_of_the_scrape(world: World, federate: bool) -> None:
    """Not of the question: it moves on with each scrape and lies in the past."""
    first = read(world.telemetry(federate=federate))
    seen = cell(first, "gpu", "n1", "0", "seen")
    assert isinstance(seen, float) and time.time() - 10 < seen < time.time()
    until("the next scrape", lambda: cell(read(world.telemetry()), "gpu", "n1", "0", "seen") > seen)  # type: ignore[operator]


def test_a_dead_exporter_does_not_stay_fresh(world: World) -> None:
    """Its last values keep their own time, while the others go on; a plain query would show them as new."""
    world.lab.lab.lie("n2", "down")
    died = time.time()
    until("a scrape of n1", lambda: cell(read(world.telemetry()), "gpu", "n1", "0", "seen") > died + 2)  # type: ignore[operator]
    batch = read(world.telemetry())
    assert cell(batch, "gpu", "n2", "0", "seen") <= died + 1  # type: ignore[operator]
    assert cell(batch, "gpu", "n1", "0", "seen") > died + 2  # type: ignore[operator]


def test_a_fault_that_is_set_arrives(world: World) -> None:
    """A temperature set in the lab is read through the server."""
    world.lab.lab.set("n3", "5", "DCGM_FI_DEV_GPU_TEMP", 93.0)
    until("the temperature", lambda: cell(read(world.telemetry()), "gpu", "n3", "5", "gpu_temperature") == 93.0)
    assert cell(read(world.telemetry()), "gpu", "n3", "4", "gpu_temperature") < 40  # type: ignore[operator]


def test_blanks_are_unknown_through_the_server_too(world: World) -> None:
    """DCGM's marks for no value pass a database unharmed and are still no values."""
    world.lab.lab.set("n1", "2", "DCGM_FI_DEV_POWER_USAGE", 9223372036854775794.0)
    until("the mark", lambda: cell(read(world.telemetry()), "gpu", "n1", "2", "power_draw") is None)
    assert reason(read(world.telemetry()), "n1", "2", "power_draw") == "sentinel"


def test_matchers_narrow_what_is_asked(world: World) -> None:
    """Label matchers are part of the query."""
    batch = read(world.telemetry(matchers='exporter="node"'))
    assert "gpu" not in batch.frames and batch.frames["node"].height == 3


def test_one_metric_at_a_time_gives_the_same(world: World) -> None:
    """How the questions are cut does not change the answer."""
    one, many = read(world.telemetry(limits=Limits(names_per_query=1))), read(world.telemetry())
    assert one.frames["gpu"].columns == many.frames["gpu"].columns
    assert one.frames["gpu"].height == many.frames["gpu"].height == 24


def test_a_query_that_is_refused_says_why(world: World) -> None:
    """A matcher that is no PromQL: the server's own words reach the user."""
    with pytest.raises(Refused, match="HTTP status 4"):
        read(world.telemetry(matchers='job="'))


def test_a_dead_exporter_is_gone_from_federation(world: World) -> None:
    """There a series ends with its exporter: the nodes that are missing are said."""
    telemetry = world.telemetry(federate=True)
    assert set(read(telemetry).frames["gpu"]["node"]) == set(NODES)
    world.lab.lab.lie("n2", "down")
    died = time.time()

    def gone_or_old() -> bool:
        frame = read(telemetry).frames["gpu"].filter(node="n2")
        return frame.height == 0 or time.time() > died + 4

    until("the end of n2", gone_or_old)
    batch = read(telemetry)
    rows = batch.frames["gpu"].filter(node="n2")
    if rows.height:  # kept for a while by servers without staleness marks, and then with its own time
        assert rows["seen"].max() <= died + 1  # type: ignore[operator]
    else:
        assert any("gpu data of 1 nodes were there before: n2" in p for p in batch.problems)


def test_a_wrong_path_and_a_dead_server_are_told_apart(world: World, tmp_path: Path) -> None:
    """404 is an answer; a closed port is none."""
    with pytest.raises(Refused, match="HTTP status 4"):
        read(PrometheusTelemetry(f"{world.url}/nowhere", SIGNALS, resolve, SystemClock()))
    with pytest.raises(Unreachable, match="cannot be reached"):
        read(PrometheusTelemetry(f"http://127.0.0.1:{free_port()}", SIGNALS, resolve, SystemClock()))


def test_no_series_at_all_is_said(world: World) -> None:
    """A server that has none of the metrics gives an empty answer and a problem, not a healthy fleet."""
    batch = read(world.telemetry(matchers='job="nobody"'))
    assert batch.frames == {}
    assert any("no sample of any signal" in p for p in batch.problems)
