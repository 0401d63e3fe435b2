"""Real Prometheus and VictoriaMetrics for a lab: on loopback, in a folder of their own, ended by process.

The programs are Debian packages (`prometheus`, `victoria-metrics`). One that is not installed is unpacked,
not installed, into a cache folder (NODEWORTHY_CACHE, default ~/.cache/nodeworthy), so that no service starts.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path


class NotHere(RuntimeError):
    """The program is neither installed nor obtainable; the message says why."""


def cache_folder() -> Path:
    return Path(os.environ.get("NODEWORTHY_CACHE", Path.home() / ".cache" / "nodeworthy"))


def find_program(package: str) -> Path:
    """The program of a Debian package that is called like the package."""
    installed = shutil.which(package)
    if installed:
        return Path(installed)
    root = cache_folder() / "debian" / package
    program = root / "usr" / "bin" / package
    if not program.exists():
        root.mkdir(parents=True, exist_ok=True)
        for command in (["apt-get", "download", package], ["sh", "-c", f"dpkg -x {package}_*.deb ."]):
            done = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=120, check=False)
            if done.returncode != 0:
                raise NotHere(
                    f"{package} is not installed, and {' '.join(command)} failed: {done.stderr.strip()[-200:]}"
                )
    return program


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


def until(what: str, true: Callable[[], bool], seconds: float = 30.0) -> None:
    """Wait until something holds; an error that says what did not come."""
    end = time.monotonic() + seconds
    while not true():
        if time.monotonic() > end:
            raise TimeoutError(f"{what} did not come within {seconds:g} s")
        time.sleep(0.05)


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=1) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


@contextmanager
def running(argv: Sequence[str], folder: Path, ready: str) -> Iterator[None]:
    with (folder / "output.log").open("ab") as out:
        process = subprocess.Popen(argv, stdout=out, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, cwd=folder)
        try:
            until(f"{argv[0]} (see {folder}/output.log)", lambda: process.poll() is not None or _answers(ready))
            if process.poll() is not None:
                raise RuntimeError(f"{argv[0]} ended with {process.returncode}; see {folder}/output.log")
            yield
        finally:
            process.terminate()
            process.wait(timeout=20)


def _scrape_config(folder: Path, lab_url: str, interval_s: int) -> Path:
    file = folder / "scrape.yml"
    file.write_text(
        f"global: {{scrape_interval: {interval_s}s, scrape_timeout: {interval_s}s}}\n"
        "scrape_configs:\n"
        "- job_name: gpu\n"
        f"  http_sd_configs: [{{url: '{lab_url}/sd', refresh_interval: 5s}}]\n"
    )
    return file


@contextmanager
def prometheus(folder: Path, lab_url: str, interval_s: int = 1) -> Iterator[str]:
    """A Prometheus that scrapes the lab's exporters; its address."""
    url = f"http://127.0.0.1:{free_port()}"
    argv = [
        str(find_program("prometheus")),
        f"--config.file={_scrape_config(folder, lab_url, interval_s)}",
        f"--storage.tsdb.path={folder}/data",
        f"--web.listen-address={url.removeprefix('http://')}",
    ]
    with running(argv, folder, f"{url}/-/ready"):
        yield url


@contextmanager
def victoria_metrics(folder: Path, lab_url: str, interval_s: int = 1) -> Iterator[str]:
    """A VictoriaMetrics that scrapes the lab's exporters; its address."""
    url = f"http://127.0.0.1:{free_port()}"
    argv = [
        str(find_program("victoria-metrics")),
        "-promscrape.config.strictParse=false",  # it does not know http_sd's refresh_interval
        f"-promscrape.config={_scrape_config(folder, lab_url, interval_s)}",
        f"-storageDataPath={folder}/data",
        f"-httpListenAddr={url.removeprefix('http://')}",
        "-retentionPeriod=1d",
    ]
    with running(argv, folder, f"{url}/health"):
        yield url
