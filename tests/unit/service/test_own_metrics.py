"""Our own metrics: all that is documented is there, and what is not known has no sample."""

from __future__ import annotations

from dataclasses import replace

import pytest
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from nodeworthy.service.metrics import METRICS, Metrics
from nodeworthy.service.views import SourceState, SourceView
from tests.views_in_memory import NOW, MemoryViews


def samples(metrics: Metrics) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    text = generate_latest(metrics.registry).decode()
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


@pytest.fixture
def views() -> MemoryViews:
    return MemoryViews()


@pytest.fixture
def metrics(views: MemoryViews) -> Metrics:
    metrics = Metrics()
    metrics.watch(views, lambda: views.status().turn.loops)
    return metrics


def test_documented_metrics_are_those_that_exist(metrics: Metrics) -> None:
    """Every metric is documented with its labels and type, and every documented one exists."""
    metrics.turn_made(0.04, ok=True)
    metrics.source_read("slurm", 0.2, ok=False)
    found = {}
    for family in text_string_to_metric_families(generate_latest(metrics.registry).decode()):
        name = family.name + ("_total" if family.type == "counter" else "")
        labels = {k for s in family.samples if not s.name.endswith("_created") for k in s.labels} - {"le"}
        if not name.endswith("_created"):
            found[name] = (family.type, labels)
    assert found == {m.name: (m.kind, set(m.labels)) for m in METRICS}


def test_numbers_are_those_of_the_status(metrics: Metrics) -> None:
    """Nodes by state, findings by severity, would-holds, sources and loops say what the status says."""
    got = samples(metrics)
    assert got["nodeworthy_nodes", (("state", "suspect"),)] == 1
    assert got["nodeworthy_findings", (("severity", "fatal"),)] == 1
    assert got["nodeworthy_findings_unknown", ()] == 1
    assert got["nodeworthy_would_holds", ()] == 1
    assert got["nodeworthy_snapshot_timestamp_seconds", ()] == NOW - 2
    assert got["nodeworthy_source_ok", (("kind", "exporter"), ("source", "dcgm"))] == 0
    assert got["nodeworthy_source_age_seconds", (("kind", "exporter"), ("source", "dcgm"))] == 95


def test_before_the_first_turn_the_fleet_has_no_numbers(metrics: Metrics, views: MemoryViews) -> None:
    """Nothing judged yet: no node counts, no zeros."""
    views.as_of = None
    names = {name for name, _ in samples(metrics)}
    assert "nodeworthy_loop_age_seconds" in names
    assert not names & {"nodeworthy_nodes", "nodeworthy_findings", "nodeworthy_snapshot_timestamp_seconds"}


def test_age_of_a_source_never_seen_is_missing(
    metrics: Metrics, views: MemoryViews, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Unknown is the absence of a sample; that it is not ok is said."""
    status = replace(
        views.status(), sources=(SourceView("bmc", "log", SourceState.NEVER, None, None, None),), gpus=None, nodes=None
    )
    monkeypatch.setattr(views, "status", lambda: status)
    got = samples(metrics)
    assert got["nodeworthy_source_ok", (("kind", "log"), ("source", "bmc"))] == 0
    assert ("nodeworthy_source_age_seconds", (("kind", "log"), ("source", "bmc"))) not in got
    assert not {"nodeworthy_gpus", "nodeworthy_nodes"} & {name for name, _ in got}


def test_turns_and_readings_are_counted_by_outcome(metrics: Metrics) -> None:
    """What failed is counted apart from what went well, and times are observed."""
    metrics.turn_made(0.04, ok=True)
    metrics.turn_made(0.04, ok=False)
    metrics.source_read("slurm", 0.2, ok=True)
    got = samples(metrics)
    assert got["nodeworthy_turns_total", (("outcome", "failed"),)] == 1
    assert got["nodeworthy_turn_duration_seconds_count", ()] == 2
    assert got["nodeworthy_read_duration_seconds_bucket", (("le", "0.25"), ("source", "slurm"))] == 1
