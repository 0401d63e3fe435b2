"""Real metrics servers that hold a past: months of samples written into them before anybody asks.

Prometheus gets blocks made by `promtool tsdb create-blocks-from openmetrics`, VictoriaMetrics its import by HTTP. Both
keep nothing but what was given, and scrape nothing.
"""

from __future__ import annotations

import shutil
import subprocess
import urllib.request
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from labs.metrics_servers import NotHere, find_program, free_port, running, until

Sample = tuple[str, dict[str, str], float, float]
"""Metric, labels, time (POSIX seconds), value."""


def _lines(samples: Iterable[Sample], scale: int) -> Iterator[str]:
    """Lines of exposition text, metric by metric, as OpenMetrics wants them. `scale`: stamps per second."""
    for name, labels, at, value in sorted(samples, key=lambda s: (s[0], sorted(s[1].items()), s[2])):
        inside = ",".join(f'{k}="{v}"' for k, v in labels.items())
        yield f"{name}{{{inside}}} {value!r} {round(at * scale) if scale > 1 else at}"


@contextmanager
def prometheus_with(folder: Path, samples: Iterable[Sample]) -> Iterator[str]:
    """A Prometheus that knows these samples; its address."""
    server = find_program("prometheus")
    promtool = shutil.which("promtool") or str(server.with_name("promtool"))
    if not Path(promtool).exists():
        raise NotHere("promtool is not here")
    text = folder / "history.om"
    text.write_text("\n".join([*_lines(samples, 1), "# EOF"]) + "\n")
    argv = [promtool, "tsdb", "create-blocks-from", "openmetrics", str(text), str(folder / "data")]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False)
    if done.returncode:
        raise RuntimeError(f"promtool: {done.stderr[-400:]}")
    (folder / "nothing.yml").write_text("scrape_configs: []\n")
    address = f"127.0.0.1:{free_port()}"
    argv = [
        str(server), f"--config.file={folder}/nothing.yml", f"--storage.tsdb.path={folder}/data",
        "--storage.tsdb.retention.time=50y", f"--web.listen-address={address}",
    ]  # fmt: skip
    with running(argv, folder, f"http://{address}/-/ready"):
        yield f"http://{address}"


@contextmanager
def victoria_metrics_with(folder: Path, samples: Iterable[Sample]) -> Iterator[str]:
    """A VictoriaMetrics that knows these samples; its address."""
    address = f"127.0.0.1:{free_port()}"
    url = f"http://{address}"
    argv = [
        str(find_program("victoria-metrics")), f"-storageDataPath={folder}/data", f"-httpListenAddr={address}",
        "-retentionPeriod=50y", "-search.disableCache",
    ]  # fmt: skip
    body = "\n".join(_lines(samples, 1000)).encode()
    with running(argv, folder, f"{url}/health"):
        request = urllib.request.Request(f"{url}/api/v1/import/prometheus", data=body, method="POST")
        with urllib.request.urlopen(request, timeout=30):
            pass
        urllib.request.urlopen(f"{url}/internal/force_flush", timeout=30).close()
        counted = f"{url}/api/v1/query?query=count(%7B__name__%3D~%22.%2B%22%7D%5B50y%5D)"
        until("the import", lambda: b'"value"' in urllib.request.urlopen(counted, timeout=5).read())
        yield url
