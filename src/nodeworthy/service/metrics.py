"""Our own metrics: is Nodeworthy itself well, and what does it say in numbers.

The turn and the observers report what takes time; all else is read from `Views` when somebody scrapes. What
is not known has no sample: a missing series can be alerted on (`absent`), a 0 would be a lie. `METRICS` is the
whole list; docs/reference/metrics.md is generated from it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from nodeworthy import __version__
from nodeworthy.model.finding import Severity
from nodeworthy.model.status import NodeState
from nodeworthy.service.views import LoopView, SourceState, StatusAnswer, Views


class Metric(NamedTuple):
    name: str
    kind: str
    labels: tuple[str, ...]
    help: str


METRICS: tuple[Metric, ...] = (
    Metric("nodeworthy_build_info", "gauge", ("version", "mode", "fleet"), "Always 1; what runs here."),
    Metric("nodeworthy_turns_total", "counter", ("outcome",), "Turns made, by outcome: ok or failed."),
    Metric("nodeworthy_turn_duration_seconds", "histogram", (), "How long a turn takes."),
    Metric(
        "nodeworthy_reads_total", "counter", ("source", "outcome"), "Readings of a source, by outcome: ok or failed."
    ),
    Metric("nodeworthy_read_duration_seconds", "histogram", ("source",), "How long a reading of a source takes."),
    Metric(
        "nodeworthy_snapshot_timestamp_seconds",
        "gauge",
        (),
        "When what is shown was judged. Missing before the first turn.",
    ),
    Metric(
        "nodeworthy_loop_age_seconds", "gauge", ("loop",), "Time since a loop last beat. Missing before its first beat."
    ),
    Metric("nodeworthy_loop_stalled", "gauge", ("loop",), "1 while a loop is over its budget."),
    Metric(
        "nodeworthy_source_age_seconds",
        "gauge",
        ("source", "kind"),
        "Time since a source's last good answer. Missing if there was none.",
    ),
    Metric("nodeworthy_source_ok", "gauge", ("source", "kind"), "1 while a source answers in full and in time."),
    Metric(
        "nodeworthy_nodes",
        "gauge",
        ("state",),
        "Nodes by state: serving, suspect, out, failed, unknown. Missing while no fleet is known.",
    ),
    Metric("nodeworthy_gpus", "gauge", (), "Declared GPUs. Missing where the declaration does not say."),
    Metric("nodeworthy_findings", "gauge", ("severity",), "Findings that are true, by severity."),
    Metric("nodeworthy_findings_unknown", "gauge", (), "Findings without an answer. They are neither faults nor fine."),
    Metric("nodeworthy_incidents", "gauge", (), "Open incidents."),
    Metric("nodeworthy_would_holds", "gauge", (), "Holds that it would have now, in observe mode."),
    Metric("nodeworthy_needs", "gauge", ("severity",), "Things that need a person, by severity."),
)

_HELP = {metric.name: metric.help for metric in METRICS}
# a turn's budget is 3 s at 10,000 nodes; a reading's time-out is 30 s
_TURN_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 3.0, 5.0, 10.0)
_READ_BUCKETS = (0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class Metrics:
    """What the loops report. `registry` is what `/metrics` prints; `watch` adds what is read from the views."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._turns = Counter("nodeworthy_turns", _HELP["nodeworthy_turns_total"], ["outcome"], registry=self.registry)
        self._turn_s = Histogram(
            "nodeworthy_turn_duration_seconds",
            _HELP["nodeworthy_turn_duration_seconds"],
            buckets=_TURN_BUCKETS,
            registry=self.registry,
        )
        self._reads = Counter(
            "nodeworthy_reads", _HELP["nodeworthy_reads_total"], ["source", "outcome"], registry=self.registry
        )
        self._read_s = Histogram(
            "nodeworthy_read_duration_seconds",
            _HELP["nodeworthy_read_duration_seconds"],
            ["source"],
            buckets=_READ_BUCKETS,
            registry=self.registry,
        )

    def turn_made(self, took_s: float, *, ok: bool) -> None:
        self._turns.labels("ok" if ok else "failed").inc()
        self._turn_s.observe(took_s)

    def source_read(self, source: str, took_s: float, *, ok: bool) -> None:
        self._reads.labels(source, "ok" if ok else "failed").inc()
        self._read_s.labels(source).observe(took_s)

    def watch(self, views: Views, loops: Callable[[], tuple[LoopView, ...]]) -> None:
        """From now on `/metrics` also tells what `views` and the dead-man's `loops` say at that moment."""
        self.registry.register(_Shown(views, loops))


class _Shown(Collector):
    def __init__(self, views: Views, loops: Callable[[], tuple[LoopView, ...]]) -> None:
        self._views = views
        self._loops = loops

    def describe(self) -> Iterable[GaugeMetricFamily]:
        """Nothing: so that registering asks nothing of views that have not seen a turn yet."""
        return ()

    def collect(self) -> Iterable[GaugeMetricFamily]:
        loops = self._loops()
        yield _gauge("nodeworthy_loop_age_seconds", [((v.name,), v.age_s) for v in loops])
        yield _gauge("nodeworthy_loop_stalled", [((v.name,), float(v.stalled)) for v in loops])
        status = self._views.status()
        yield _gauge("nodeworthy_build_info", [((__version__, status.mode, status.fleet), 1.0)])
        yield _gauge("nodeworthy_snapshot_timestamp_seconds", [((), status.as_of)])
        sources = [((s.name, s.kind), s) for s in status.sources]
        yield _gauge("nodeworthy_source_age_seconds", [(names, s.age_s) for names, s in sources])
        yield _gauge("nodeworthy_source_ok", [(names, float(s.state is SourceState.OK)) for names, s in sources])
        if status.as_of is not None:  # before the first turn nothing is known of the fleet
            yield from _fleet(status)


def _fleet(status: StatusAnswer) -> Iterable[GaugeMetricFamily]:
    states = NodeState if status.nodes is not None else ()
    yield _gauge("nodeworthy_nodes", [((s.value,), status.by_state.get(s, 0)) for s in states])
    yield _gauge("nodeworthy_gpus", [((), status.gpus)])
    yield _gauge("nodeworthy_findings", [((s.value,), status.findings.get(s, 0)) for s in Severity])
    yield _gauge("nodeworthy_findings_unknown", [((), status.findings_unknown)])
    yield _gauge("nodeworthy_incidents", [((), status.incidents)])
    yield _gauge("nodeworthy_would_holds", [((), status.would)])
    needs = [need.severity for need in status.needs]
    yield _gauge("nodeworthy_needs", [((s.value,), needs.count(s)) for s in Severity])


_LABELS = {metric.name: metric.labels for metric in METRICS}


def _gauge(name: str, samples: Iterable[tuple[tuple[str, ...], float | None]]) -> GaugeMetricFamily:
    family = GaugeMetricFamily(name, _HELP[name], labels=_LABELS[name])
    for labels, value in samples:
        if value is not None:
            family.add_metric(labels, value)
    return family
