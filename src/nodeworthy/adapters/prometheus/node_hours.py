"""What to ask a metrics server so that months of ten thousand nodes become a few numbers per node and hour.

The server does the adding up; raw samples of that span never travel. Each question is a PromQL expression that is
evaluated at the end of an hour over the samples of that hour, and answers with a series per (`Hostname`, `instance`).

- A GPU is told by its `gpu` label. Its mean over the hour is the sum of its samples over their number, *across* all its
  series, because a series ends and another begins whenever a label of the workload changes (job, pod, container): a mean
  of means would count both as a whole hour, and a sum would count the GPU twice.
- A GPU whose mean is out of the signal's range (a vendor's mark for "no value", NaN) is left out: not seen, not idle.
- Where a signal has an old and a new name, the one named first in the catalogue counts, GPU by GPU.
- A GPU is *seen* when its utilisation is usable, and *present* when it says anything, of which its temperature (or else
  a usable utilisation) is taken as proof: every exporter has it.
- Rows of MIG instances (`GPU_I_ID`) have no utilisation of the whole GPU and are not counted with GPUs; nodes with such
  rows are told apart.
- Clock event reasons are a bit mask and PromQL has no bit operations, so bits are read by modulo: of what is left of the
  mask below the highest harmful bit, three neighbouring bits are set where it is at least the lowest of them. The mask is looked at
  every 10 minutes: reading each sample by itself would make the server keep all of them in memory.

PromQL: https://prometheus.io/docs/prometheus/latest/querying/operators/ and …/functions/ (sum_over_time)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import polars as pl

from nodeworthy.adapters.prometheus.api import Series
from nodeworthy.adapters.prometheus.history import HOUR
from nodeworthy.model.catalogue import Signal, SourceField
from nodeworthy.model.fact import NODE
from nodeworthy.observe.components import Resolve, find_components
from nodeworthy.observe.samples import Place, Samples
from nodeworthy.reports.audit.inputs import NODE_HOURS, SLOWED

HARMFUL = ((0x8, 0x8), (0x20, 0x80))
"""Runs of neighbouring bits (lowest, highest): hardware slowdown; thermal slowdown by software (0x20) and by hardware
(0x40), power brake (0x80). Clocks are lowered against the will of everybody. Not idle (0x1), application clocks (0x2),
the power cap (0x4, normal at full load), sync boost (0x10) or display (0x100). NVML: nvmlClocksEventReasons."""
LOOK_MINUTES = 10
_NODE = "by (Hostname, instance)"
_GPU = "by (Hostname, instance, gpu)"
_EXPORTER = "dcgm"


def questions(signals: Mapping[str, Signal], matchers: str = "") -> dict[str, dict[str, str]]:
    """Group → name → PromQL; the questions of a group count together. `busy`: GPU-hours in which a kernel ran; `seen`, `present`: GPUs; `mig`: rows of MIG instances;
    `throttled`: share of the looks at which a GPU of the node was slowed (asked only where the catalogue has it)."""
    load = signals["gpu_utilisation"]
    proof = signals.get("gpu_temperature", load)
    asked = {
        "busy": f"sum {_NODE} ({_usable(load, matchers, _mean)}) / 100",
        "seen": f"count {_NODE} ({_usable(load, matchers, _rough_mean)})",
        "present": f"count {_NODE} ({_any(proof, matchers, whole=True)})",
        "mig": f"count {_NODE} ({_any(load, matchers, whole=False)})",
    }
    if "clock_event_reasons" not in signals:
        return {"use": asked}
    return {"use": asked, "throttling": {"throttled": _slowed(signals["clock_event_reasons"], matchers)}}


def _fields(signal: Signal) -> Sequence[SourceField]:
    return [f for f in signal.fields if f.source == _EXPORTER]


def _series(name: str, matchers: str, whole: bool) -> str:
    more = f",{matchers}" if matchers else ""
    return f'{name}{{gpu!="",GPU_I_ID{"=" if whole else "!="}""{more}}}'


def _mean(hour: str) -> str:
    """Of each GPU, across its series."""
    return f"sum {_GPU} (sum_over_time({hour})) / sum {_GPU} (count_over_time({hour}))"


def _rough_mean(hour: str) -> str:
    """As good for telling a vendor's mark and NaN from a value, at half the cost."""
    return f"avg {_GPU} (avg_over_time({hour}))"


def _usable(signal: Signal, matchers: str, mean: Callable[[str], str]) -> str:
    """The mean of each GPU's hour, within the signal's range."""
    means = []
    for field in _fields(signal):
        value = mean(f"{_series(field.name, matchers, whole=True)}[1h]")
        means.append(f"({value})" if field.scale == 1.0 else f"({field.scale!r} * {value})")
    return f"({' or '.join(means)}) >= {signal.minimum or 0:g} <= {signal.maximum or 100:g}"


def _any(signal: Signal, matchers: str, *, whole: bool) -> str:
    """A row for each GPU with any sample in the hour."""
    names = [f.name for f in _fields(signal)]
    return " or ".join(f"count {_GPU} (count_over_time({_series(n, matchers, whole)}[1h]))" for n in names)


def _slowed(signal: Signal, matchers: str) -> str:
    mask = " or ".join(_series(f.name, matchers, whole=True) for f in _fields(signal))
    mask = f"(({mask}) >= 0 <= {signal.maximum or 65535:g})"
    bits = " + ".join(f"({mask} % {2 * high} >= bool {low})" for low, high in HARMFUL)
    return f"avg_over_time((max {_NODE} (clamp_max({bits}, 1)))[1h:{LOOK_MINUTES}m])"


class NodeHours:
    """Turns answers into rows per node and hour, piece by piece. `gpus`: frame `node, gpus`, null where not known.

    Several sources of one node in one hour are added up as long as they have no more GPUs than the node (an exporter
    per half); otherwise they are two views of the same GPUs (two scrapes, or an exporter that got another address
    within the hour), and their mean counts.
    """

    def __init__(self, resolve: Resolve, gpus: pl.DataFrame) -> None:
        self._resolve, self._gpus = resolve, gpus
        self._used: list[pl.DataFrame] = [_none(NODE_HOURS)]
        self._slowed: list[pl.DataFrame] = [_none(SLOWED)]
        self.clocks_known = False
        self.unknown_names: set[str] = set()
        self.problems: set[str] = set()

    def keep_use(self, answers: Mapping[str, Sequence[Series]]) -> None:
        """The answers of the group `use` over some hours."""
        frames = self._by_node(answers)
        rows = pl.concat([frames[n].select("source", "node", "hour") for n in ("present", "seen", "mig")]).unique()
        for name, frame in frames.items():
            rows = rows.join(
                frame.select("source", "hour", pl.col("value").alias(name)), on=["source", "hour"], how="left"
            )
        counts = ["busy", "seen", "present"]
        merged = rows.group_by("node", "hour").agg(
            *(pl.col(c).fill_null(0.0).sum() for c in counts),
            *(pl.col(c).fill_null(0.0).mean().alias(f"{c}_mean") for c in counts),
            pl.col("mig").is_not_null().any().alias("partitioned"),
            pl.len().alias("sources"),
        )
        merged = merged.join(self._gpus, on="node", how="left")
        several = (pl.col("sources") > 1) & (pl.col("present") > pl.col("gpus").fill_null(0))
        merged = merged.with_columns(pl.when(several).then(f"{c}_mean").otherwise(c).alias(c) for c in counts)
        merged = merged.with_columns(pl.max_horizontal("present", "seen").alias("present"))
        merged = merged.with_columns(pl.col("seen", "present").round().clip(0, 65535))
        self._used.append(_as(merged, NODE_HOURS))

    def keep_throttling(self, answers: Mapping[str, Sequence[Series]]) -> None:
        """The answers of the group `throttling`."""
        rows = self._by_node(answers)["throttled"]
        self.clocks_known = self.clocks_known or rows.height > 0
        slowed = rows.filter(pl.col("value") > 0).group_by("node", "hour").agg(pl.col("value").max().alias("share"))
        self._slowed.append(_as(slowed, SLOWED))

    @property
    def node_hours(self) -> pl.DataFrame:
        return pl.concat(self._used)

    @property
    def slowed(self) -> pl.DataFrame | None:
        return pl.concat(self._slowed) if self.clocks_known else None

    def _by_node(self, answers: Mapping[str, Sequence[Series]]) -> dict[str, pl.DataFrame]:
        """Question → `source, node, hour, value`, of sources that are one node of the fleet."""
        codes: dict[tuple[tuple[str, str], ...], int] = {}
        frames = {name: _frame(series, codes) for name, series in answers.items()}
        found = find_components(_places([dict(key) for key in codes]), self._resolve)
        self.unknown_names.update(found.unknown_names)
        self.problems.update(found.problems)
        nodes = [found.keys[NODE][p][0] if p >= 0 else None for p in found.of_place[NODE]]
        owner = pl.DataFrame(
            {"source": range(len(nodes)), "node": nodes}, schema={"source": pl.Int64, "node": pl.String}
        ).drop_nulls()
        return {name: frame.join(owner, on="source") for name, frame in frames.items()}


def _frame(series: Sequence[Series], codes: dict[tuple[tuple[str, str], ...], int]) -> pl.DataFrame:
    """`source, hour, value`. An answer is evaluated at the end of its hour; hours are named by their beginning."""
    sources = [codes.setdefault(tuple(sorted(one.labels.items())), len(codes)) for one in series]
    none = np.zeros(0)
    return pl.DataFrame(
        {
            "source": np.repeat(np.array(sources, dtype=np.int64), [len(one.at) for one in series]),
            "hour": (np.concatenate([none, *(one.at for one in series)]) / HOUR).round().astype(np.int64) - 1,
            "value": np.concatenate([none, *(one.value for one in series)]),
        }
    )


def _none(schema: Mapping[str, type[pl.DataType]]) -> pl.DataFrame:
    return pl.DataFrame(schema=dict(schema))


def _as(frame: pl.DataFrame, schema: Mapping[str, type[pl.DataType]]) -> pl.DataFrame:
    return frame.select(pl.col(name).cast(kind) for name, kind in schema.items())


def _places(labels: Sequence[Mapping[str, str]]) -> Samples:
    """A sample of every source, so that their names are resolved like those of any other metrics."""
    count = len(labels)
    return Samples(
        names=("present",),
        places=[Place(one) for one in labels],
        name=np.zeros(count, dtype=np.int64),
        place=np.arange(count, dtype=np.int64),
        value=np.ones(count),
        at=np.zeros(count),
    )
