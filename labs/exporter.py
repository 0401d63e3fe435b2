"""Pretended exporters of many nodes on one loopback port, for a lab.

  python -m labs.exporter serve --nodes n[1-16] --port 9400
  python -m labs.exporter set  --url http://127.0.0.1:9400 --node n3 --part 3 DCGM_FI_DEV_GPU_TEMP 93
  python -m labs.exporter lie  --url http://127.0.0.1:9400 --node n[1-4] stale
  python -m labs.exporter lie  --url http://127.0.0.1:9400 --node n[1-4] none

Each node has /nodes/NODE/dcgm/metrics and /nodes/NODE/node/metrics. /sd is a target list for Prometheus'
http_sd_configs, /targets the same as lines "NAME URL". All nodes are well until something is set. `lie` makes
a node's exporters fail in one of the ways of the field (see LIES).
"""

from __future__ import annotations

import argparse
import json
import re
import threading
import time
import urllib.request
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from labs.pages import DCGM_PAGE, NODE_PAGE, Setting, Settings, page
from nodeworthy.model.nodeset import unfold

_PATH = re.compile(r"/nodes/([^/]+)/(dcgm|node)/metrics")
_VALUE = re.compile(r"(?m)^([a-zA-Z_][^#\n]*) (\S+)$")


def _stamped(text: str, at: float) -> str:
    return _VALUE.sub(lambda m: f"{m[1]} {m[2]} {int(at * 1000)}", text)


def _changed(text: str, value: Callable[[str], str]) -> str:
    return _VALUE.sub(lambda m: f"{m[1]} {value(m[2])}", text)


def _duplicated(text: str) -> str:
    """Every series twice, the second time with another value."""
    return _VALUE.sub(lambda m: f"{m[0]}\n{m[1]} {float(m[2]) + 1}", text)


# lie → the text in place of the healthy page, given the page and the time
LIES: dict[str, Callable[[str, float], str]] = {
    "garbage": lambda text, now: "\x00\x7f\x01 {{{ not a page\n" * 40,
    "html": lambda text, now: "<html><body><h1>502 Bad Gateway</h1></body></html>\n",
    "nan": lambda text, now: _changed(text, lambda value: "NaN"),
    "blank": lambda text, now: _changed(text, lambda value: "9223372036854775794"),
    "stale": lambda text, now: _stamped(text, now - 3600),
    "future": lambda text, now: _stamped(text, now + 3600),
    "half": lambda text, now: text[: len(text) // 2],
    "renamed": lambda text, now: re.sub(r"(?m)^(# \w+ )?(DCGM_FI_|node_)(\w+)", r"\1\2V2_\3", text),
    "duplicate": lambda text, now: _duplicated(text),
    "empty": lambda text, now: "",
}
# lies told by the connection: the exporter hangs up, says HTTP 500, or never answers
CONNECTION_LIES = ("down", "error", "slow")


@dataclass
class Lab:
    """The lab's state; changed by requests, read by pages."""

    nodes: tuple[str, ...]
    values: dict[Setting, float] = field(default_factory=dict)
    lies: dict[str, str] = field(default_factory=dict)
    closing: threading.Event = field(default_factory=threading.Event)

    def set(self, node: str, part: str, metric: str, value: float | None) -> None:
        """Set a number; None goes back to the healthy one."""
        for name in unfold(node):
            if value is None:
                self.values.pop((name, part, metric), None)
            else:
                self.values[name, part, metric] = value

    def lie(self, node: str, kind: str) -> None:
        if kind not in (*LIES, *CONNECTION_LIES, "none"):
            raise ValueError(f"no such lie: {kind}")
        for name in unfold(node):
            self.lies[name] = kind

    def text(self, kind: str, node: str, now: float) -> str:
        healthy = page(kind, node, now, Settings(self.values))
        tell = LIES.get(self.lies.get(node, "none"))
        return tell(healthy, now) if tell else healthy


class _Handler(BaseHTTPRequestHandler):
    lab: Lab
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        match = _PATH.fullmatch(self.path)
        if match and match[1] in self.lab.nodes:
            self._page(match[1], match[2])
        elif self.path == "/sd":
            self._say(200, "application/json", json.dumps(self._discovery()))
        elif self.path == "/targets":
            self._say(200, "text/plain", "".join(f"{name} {url}\n" for name, url in self._targets()))
        else:
            self._say(404, "text/plain", "try /targets\n")

    def do_POST(self) -> None:
        try:
            order = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))))
            if self.path == "/set":
                value = order["value"]
                self.lab.set(
                    order["node"], order.get("part", ""), order["metric"], None if value is None else float(value)
                )
            elif self.path == "/lie":
                self.lab.lie(order["node"], order["kind"])
            else:
                raise ValueError("try /set or /lie")
        except (KeyError, TypeError, ValueError) as error:
            self._say(400, "text/plain", f"{type(error).__name__}: {error}\n")
        else:
            self._say(200, "text/plain", "done\n")

    def _page(self, node: str, kind: str) -> None:
        lie = self.lab.lies.get(node)
        if lie == "down":
            self.close_connection = True
        elif lie == "error":
            self._say(500, "text/plain", "the exporter lost its library\n")
        elif lie == "slow":
            self.lab.closing.wait(60)
            self.close_connection = True
        else:
            self._say(200, "text/plain; version=0.0.4; charset=utf-8", self.lab.text(kind, node, time.time()))

    def _base(self) -> str:
        host, port = self.server.server_address[:2]
        return f"{host!s}:{port}"

    def _targets(self) -> list[tuple[str, str]]:
        base = self._base()
        return [
            (n, f"http://{base}/nodes/{n}/{kind}/metrics") for n in self.lab.nodes for kind in (DCGM_PAGE, NODE_PAGE)
        ]

    def _discovery(self) -> list[dict[str, Any]]:
        ports = {DCGM_PAGE: 9400, NODE_PAGE: 9100}
        return [
            {
                "targets": [self._base()],
                "labels": {
                    "__metrics_path__": f"/nodes/{n}/{kind}/metrics",
                    "instance": f"{n}:{port}",
                    "exporter": kind,
                },
            }
            for n in self.lab.nodes
            for kind, port in ports.items()
        ]

    def _say(self, status: int, content_type: str, text: str) -> None:
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Pages are asked for all the time; nobody wants a line for each."""


class Exporters:
    """The lab's server in a thread of this process: `with Exporters(["n1"]) as lab: …`."""

    def __init__(self, nodes: Sequence[str], port: int = 0) -> None:
        self.lab = Lab(tuple(nodes))
        handler = type("Handler", (_Handler,), {"lab": self.lab})
        self._server = ThreadingHTTPServer(("127.0.0.1", port), handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Exporters:
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.lab.closing.set()
        self._server.shutdown()
        self._server.server_close()

    def page_url(self, node: str, kind: str = DCGM_PAGE) -> str:
        return f"{self.url}/nodes/{node}/{kind}/metrics"


def _post(url: str, order: dict[str, Any]) -> None:
    request = urllib.request.Request(url, json.dumps(order).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=10) as answer:
        print(answer.read().decode().strip())


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m labs.exporter", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    serve = commands.add_parser("serve", help="serve the pages of all nodes until interrupted")
    serve.add_argument("--nodes", required=True, help="a node set: n[1-16]")
    serve.add_argument("--port", type=int, default=9400, help="on loopback; 0 takes a free one (default 9400)")
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--url", default="http://127.0.0.1:9400", help="the running lab (default port 9400)")
    common.add_argument("--node", required=True, help="a node set: n3, n[1-4]")
    setting = commands.add_parser("set", parents=[common], help="set a number of a node")
    setting.add_argument("--part", default="", help="GPU index (3) or device (mlx5_0); all parts if left out")
    setting.add_argument("metric")
    setting.add_argument("value", help="a number, NaN, or - for the healthy one")
    lie = commands.add_parser("lie", parents=[common], help="let a node's exporters fail; none ends it")
    lie.add_argument("kind", choices=[*LIES, *CONNECTION_LIES, "none"])
    return parser


def main(argv: Sequence[str] | None = None) -> None:
    options = _parser().parse_args(argv)
    if options.command == "serve":
        with Exporters(unfold(options.nodes), options.port) as exporters:
            print(f"{len(exporters.lab.nodes)} nodes; targets: {exporters.url}/targets", flush=True)
            try:
                threading.Event().wait()
            except KeyboardInterrupt:
                print("stopped")
    elif options.command == "set":
        value = None if options.value == "-" else float(options.value)
        order = {"node": options.node, "part": options.part, "metric": options.metric, "value": value}
        _post(f"{options.url}/set", order)
    else:
        _post(f"{options.url}/lie", {"node": options.node, "kind": options.kind})


if __name__ == "__main__":
    main()
