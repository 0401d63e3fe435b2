"""A site for acceptance: `nodeworthy serve` as a process of its own, asked with the real command line.

Nothing of the program is imported where it is asked: what a person would see is what the tests see.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from labs.exporter import Exporters
from labs.slurm_lab import SlurmLab
from nodeworthy.cli.client import connect

ROOT = Path(__file__).parents[2]
START_S = 60.0
END_S = 10.0
READY = "INFO nodeworthy: observing "

Answer = Mapping[str, Any]


def await_true(
    what: str,
    condition: Callable[[], Any],
    timeout_s: float,
    every_s: float = 0.3,
    says: Callable[[], object] = lambda: "",
) -> Any:
    """What the condition gives once it is true; fails with what was waited for, and what `says` tells then."""
    deadline = time.monotonic() + timeout_s
    while not (found := condition()):
        assert time.monotonic() < deadline, f"not within {timeout_s:g} s: {what}; {says()}"
        time.sleep(every_s)
    return found


@dataclass
class Site:
    """One `serve` in its own directory. `start`, `stop`, `kill` may be called again and again."""

    directory: Path
    lab: SlurmLab | None = None
    exporters: Exporters | None = None
    more: str = ""
    """More lines for the top of the configuration."""
    source_a_node: bool = False
    """One source for each node, instead of one for all dcgm-exporters and one for all node_exporters."""
    environment: dict[str, str] = field(default_factory=dict)
    process: subprocess.Popen[bytes] | None = None

    @property
    def kern(self) -> Path:
        return self.directory / "kern.log"

    @property
    def socket(self) -> Path:
        return self.directory / "nw.sock"

    @property
    def config(self) -> Path:
        return self.directory / "nodeworthy.toml"

    @property
    def log(self) -> str:
        """What serve itself logged."""
        path = self.directory / "serve.log"
        return path.read_text() if path.exists() else ""

    def _env(self) -> dict[str, str]:
        ours = ("NODEWORTHY_", "SLURM_CONF")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
        path = os.pathsep.join([str(ROOT / "src"), *([p] if (p := os.environ.get("PYTHONPATH")) else [])])
        return {**kept, "PYTHONPATH": path, "NODEWORTHY_SOCKET": str(self.socket), **self.environment}

    def configure(self) -> None:
        sections = [
            f'state_dir = "{self.directory}/state"\nsocket = "{self.socket}"\n{self.more}\n[turn]\ninterval = "1s"\n',
            self._slurm(),
            f'[[logs]]\nname = "kern"\npath = "{self.kern}"\ntrusted = true\n',
        ]
        for name, targets in self._telemetry().items():
            sections.append(
                f'[[exporters]]\nname = "{name}"\ninterval = "2s"\ntimeout = "3s"\ntargets = {json.dumps(targets)}\n'
            )
        self.config.write_text("\n".join(sections))
        self.kern.touch()

    def _telemetry(self) -> dict[str, list[str]]:
        """Source → its targets."""
        if self.exporters is None:
            return {}
        page, names = self.exporters.page_url, self.exporters.lab.nodes
        if self.source_a_node:
            return {f"of-{name}": [f"{name} {page(name, kind)}" for kind in ("dcgm", "node")] for name in names}
        return {kind: [f"{name} {page(name, kind)}" for name in names] for kind in ("dcgm", "node")}

    def _slurm(self) -> str:
        if self.lab is None:
            return "[slurm]\nenabled = false\n"
        lab = self.lab.directory
        return f'[slurm]\ninterval = "5s"\ntimeout = "5s"\nbin_dir = "{lab}/bin"\nconf = "{lab}/etc/slurm.conf"\n'

    # the process

    def start(self) -> Site:
        """Start serve and return once it is ready, as it tells systemd, and every source has been tried."""
        self.configure()
        ready_before = self.log.count(READY)
        assert len(os.fsencode(self.socket)) <= 107
        with (self.directory / "serve.log").open("ab") as log:
            command = [sys.executable, "-m", "nodeworthy.cli.main", "serve", "--config", str(self.config)]
            self.process = subprocess.Popen(command, env=self._env(), stdout=log, stderr=log, cwd="/")
        await_true("serve looks at every source", self._looking, START_S, 0.1, lambda: self.log)
        await_true("serve is ready", lambda: self.log.count(READY) > ready_before, START_S, 0.1, lambda: self.log)
        return self

    def _looking(self) -> bool:
        assert self.process is not None
        assert self.process.poll() is None, f"serve ended: {self.log}"
        try:
            status = self.get("/v1/status")
        except OSError:
            return False
        tried = all(source["state"] != "never" for source in status["sources"])
        return status["as_of"] is not None and tried and len(status["sources"]) == self._sources()

    def _sources(self) -> int:
        return 1 + (self.lab is not None) + len(self._telemetry())

    def stop(self) -> float:
        """End it as systemd does; how long that took, in seconds."""
        assert self.process is not None
        begun = time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(timeout=END_S)
        assert code == 0, f"serve ended with {code}: {self.log}"
        assert not self.socket.exists()
        assert "Traceback" not in self.log, self.log
        return time.monotonic() - begun

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.wait(timeout=END_S)

    def __enter__(self) -> Site:
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self.process is not None and self.process.poll() is None:
            if kind is None:
                self.stop()
            else:
                self.kill()

    # questions

    def get(self, path: str) -> Answer:
        """The API's answer; for what must be asked more often than a command can start."""
        connection = connect(str(self.socket), 30)
        try:
            connection.request("GET", path)
            response = connection.getresponse()
            body = response.read()
            assert response.status == 200, body
            answer = json.loads(body)
        finally:
            connection.close()
        assert isinstance(answer, dict)
        return answer

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "nodeworthy.cli.main", *arguments]
        return subprocess.run(
            command, env=self._env(), capture_output=True, text=True, timeout=60, check=False, cwd="/"
        )

    def text(self, *arguments: str) -> str:
        """What a person reads, on one line: how it wraps is no matter here."""
        done = self.run(*arguments)
        assert done.returncode in (0, 3), done.stderr
        return " ".join(done.stdout.split())

    def ask(self, *arguments: str) -> Answer:
        done = self.run(*arguments, "-o", "json")
        assert done.returncode in (0, 3), done.stderr
        answer = json.loads(done.stdout)
        assert isinstance(answer, dict)
        return answer

    def nodes(self) -> dict[str, Answer]:
        return {item["name"]: item for item in self.ask("node", "list")["items"]}

    def holds(self, *arguments: str) -> dict[str, Answer]:
        """Component → what would be held."""
        return {item["component"]: item for item in self.ask("would", *arguments)["items"]}

    def adverse(self) -> dict[str, Answer]:
        """Key → every finding that speaks against a node."""
        items = self.get("/v1/findings?limit=1000")["items"]
        return {f["key"]: f for f in items if f["verdict"] == "true" and not f["component"].startswith("source:")}

    def blind_sources(self) -> dict[str, Answer]:
        """Source → the finding that names it; more than one would be a defect."""
        items = [f for f in self.get("/v1/findings?limit=1000")["items"] if f["check"] == "source-blind"]
        assert len({f["component"] for f in items}) == len(items), items
        return {f["component"].removeprefix("source:"): f for f in items}

    def entries(self, node: str | None = None, kinds: Iterable[str] = ()) -> list[Answer]:
        """The ledger, oldest first."""
        wanted = set(kinds)
        items = self.get("/v1/ledger?after=0&limit=1000")["items"]
        return [e for e in items if (node is None or e["subject"] in (node,)) and (not wanted or e["kind"] in wanted)]
