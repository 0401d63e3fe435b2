"""How fast metrics pages become frames: `python -m benchmarks.exposition`.

Prints, from one run on one core, samples a second of prometheus_client's parser and of ours on the same
pages, their ratio, series a second of a Prometheus answer, and the time to map a fleet's samples (default 10,000 nodes x 8 GPUs x 60 signals).
"""

from __future__ import annotations

import os

os.environ.setdefault("POLARS_MAX_THREADS", "1")

import time
from collections.abc import Iterator

import orjson
from prometheus_client.parser import text_string_to_metric_families

from benchmarks.measure import Figure, best, parser, report
from nodeworthy.adapters.prometheus.api import read_answer
from nodeworthy.model.catalogue import Signal, SourceField
from nodeworthy.observe.exposition import LabelCache, Page, parse
from nodeworthy.observe.samples import join
from nodeworthy.observe.telemetry import to_batch

GPUS, FIELDS = 8, 60


def page(node: int) -> str:
    """A page of the shape that dcgm-exporter serves (labels of 4.x), 480 samples."""
    lines = []
    for number in range(FIELDS):
        name = f"DCGM_FI_DEV_FIELD_{number:02d}"
        lines.append(f"# HELP {name} A field.\n# TYPE {name} gauge\n")
        lines += [
            f'{name}{{gpu="{g}",UUID="GPU-c4529c8d-69c4-b61d-e0bc-{node:08x}{g:04x}",pci_bus_id="00000000:{g:02X}:00.0",'
            f'device="nvidia{g}",modelName="NVIDIA H100 80GB HBM3",Hostname="n{node}",'
            f'DCGM_FI_DRIVER_VERSION="580.105.08"}} {node % 90 + number / 7:.6f}\n'
            for g in range(GPUS)
        ]
    return "".join(lines)


def signals() -> list[Signal]:
    return [
        Signal(f"s{n:02d}", "gpu", "float", "", "", (SourceField("dcgm", f"DCGM_FI_DEV_FIELD_{n:02d}"),), minimum=0.0)
        for n in range(FIELDS)
    ]


def parse_all(pages: list[str]) -> list[Page]:
    cache: LabelCache = {}
    names = frozenset(s.fields[0].name for s in signals())
    return [parse(text, at=0.0, names=names, cache=cache) for text in pages]


def client_all(pages: list[str]) -> int:
    return sum(len(family.samples) for text in pages for family in text_string_to_metric_families(text))


def ratio(pages: list[str], client_share: int = 10) -> tuple[float, float]:
    """Samples a second of processor time of prometheus_client and of ours, on the same pages."""
    each = GPUS * FIELDS
    few = pages[: max(1, len(pages) // client_share)]
    return len(few) * each / best(lambda: client_all(few), 3, time.process_time), len(pages) * each / best(
        lambda: parse_all(pages), 7, time.process_time
    )


def answer(nodes: int, names: int) -> bytes:
    """A Prometheus answer with ten samples (150 s at 15 s) of each of `names` metrics of all GPUs."""
    values = [[1_796_000_000.0 + 15 * k, "41.5"] for k in range(10)]
    result = [
        {
            "metric": {
                "__name__": f"DCGM_FI_DEV_FIELD_{n:02d}",
                "DCGM_FI_DRIVER_VERSION": "580.105.08",
                "Hostname": f"n{node}",
                "UUID": f"GPU-c4529c8d-69c4-b61d-e0bc-{node:08x}{gpu:04x}",
                "device": f"nvidia{gpu}",
                "gpu": str(gpu),
                "instance": f"n{node}:9400",
                "job": "dcgm",
                "modelName": "NVIDIA H100 80GB HBM3",
                "pci_bus_id": f"00000000:{gpu:02X}:00.0",
            },
            "values": values,
        }
        for n in range(names)
        for node in range(nodes)
        for gpu in range(GPUS)
    ]
    return orjson.dumps({"status": "success", "data": {"resultType": "matrix", "result": result}})


def results(nodes: int) -> Iterator[Figure]:
    few = [page(n) for n in range(200)]
    client, ours = ratio(few)
    beside = f"prometheus_client {client:,.0f}: {ours / client:.0f} times as many"
    yield Figure("metrics pages parsed, one core", ours, "samples/s", 1e6, at_least=True, beside=beside)
    stamped = [text.replace("\n", " 1796000000123\n") for text in few]
    taken = best(lambda: parse_all(stamped))
    yield Figure("the same with time stamps (as /federate)", 200 * GPUS * FIELDS / taken, "samples/s")
    body = answer(500, 8)
    taken = best(lambda: read_answer(200, body))
    yield Figure("a Prometheus answer read", 500 * GPUS * 8 / taken, "series/s", beside=f"{len(body) / 1e6:.0f} MB")
    pages = [p for n in range(0, nodes, 200) for p in parse_all([page(k) for k in range(n, min(n + 200, nodes))])]
    start = time.perf_counter()
    batch = to_batch(join([p.samples for p in pages]), signals(), lambda name: name, source="dcgm", at=1.0)
    taken = time.perf_counter() - start
    count, gpus = nodes * GPUS * FIELDS, batch.frames["gpu"].height
    yield Figure(f"{count:,} samples to a frame of {gpus:,} GPUs", taken, "s")


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--nodes", type=int, help="of the last figure (10,000; with --small 500)")
    given = options.parse_args()
    report(results(given.nodes or (500 if given.small else 10_000)), given)


if __name__ == "__main__":
    main()
