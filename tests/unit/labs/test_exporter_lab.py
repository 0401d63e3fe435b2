"""The pretended exporters and log of a lab, by their command lines: what people and tests rely on."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from labs import exporter, logsource
from labs.pages import DCGM_PAGE, GPU_METRICS, NODE_PAGE, PCI_BUSES, Settings, page, uuid
from nodeworthy.observe.exposition import parse

ROOT = Path(__file__).parents[3]


def get(url: str) -> str:
    with urllib.request.urlopen(url, timeout=10) as answer:
        return str(answer.read().decode())


@pytest.fixture
def lab() -> Iterator[exporter.Exporters]:
    with exporter.Exporters(["n1", "n2", "n3"]) as running:
        yield running


def number(text: str, metric: str, gpu: int) -> float:
    (found,) = re.findall(rf'(?m)^{metric}{{gpu="{gpu}",.*}} (\S+)$', text)
    return float(found)


@pytest.mark.parametrize("kind", [DCGM_PAGE, NODE_PAGE])
def test_pages_are_wellformed(kind: str) -> None:
    """Every line of a page is read, and each metric has its help and type."""
    text = page(kind, "n1", 1_796_000_000.0, Settings())
    read = parse(text, at=0.0)
    assert read.problems() == () and len(read.samples) == sum(1 for x in text.splitlines() if x[0] != "#")
    assert (
        set(read.samples.names)
        == set(re.findall(r"(?m)^# TYPE (\S+)", text))
        == set(re.findall(r"(?m)^# HELP (\S+)", text))
    )


def test_no_two_gpus_of_a_lab_share_a_uuid() -> None:
    """A thousand nodes, eight thousand identities."""
    assert len({uuid(f"n{k}", gpu) for k in range(1000) for gpu in range(8)}) == 8000


def test_numbers_are_set_and_taken_back_at_run_time(
    lab: exporter.Exporters, capsys: pytest.CaptureFixture[str]
) -> None:
    """`set` changes one GPU of one node, a node set, or takes it back; the others stay well."""
    where = ["--url", lab.url]
    exporter.main(["set", *where, "--node", "n3", "--part", "3", "DCGM_FI_DEV_GPU_TEMP", "93"])
    text = get(lab.page_url("n3"))
    assert number(text, "DCGM_FI_DEV_GPU_TEMP", 3) == 93 and number(text, "DCGM_FI_DEV_GPU_TEMP", 2) < 40
    exporter.main(["set", *where, "--node", "n[1-3]", "DCGM_FI_DEV_GPU_UTIL", "97"])
    assert number(get(lab.page_url("n1")), "DCGM_FI_DEV_GPU_UTIL", 7) == 97
    exporter.main(["set", *where, "--node", "n3", "--part", "3", "DCGM_FI_DEV_GPU_TEMP", "-"])
    assert number(get(lab.page_url("n3")), "DCGM_FI_DEV_GPU_TEMP", 3) < 40
    assert capsys.readouterr().out == "done\n" * 3


def test_a_port_is_set_by_its_device(lab: exporter.Exporters) -> None:
    """One InfiniBand port of one node goes down."""
    lab.lab.set("n2", "mlx5_4", "node_infiniband_state_id", 1.0)
    text = get(lab.page_url("n2", NODE_PAGE))
    assert 'node_infiniband_state_id{device="mlx5_4",port="1"} 1\n' in text
    assert 'node_infiniband_state_id{device="mlx5_5",port="1"} 4\n' in text


def test_lies_are_told_and_ended(lab: exporter.Exporters) -> None:
    """`lie` changes what a node's exporters say, `none` ends it, and other nodes are not touched."""
    exporter.main(["lie", "--url", lab.url, "--node", "n[1-2]", "nan"])
    assert number(get(lab.page_url("n1")), "DCGM_FI_DEV_GPU_TEMP", 0) != number(
        get(lab.page_url("n1")), "DCGM_FI_DEV_GPU_TEMP", 0
    )
    assert number(get(lab.page_url("n3")), "DCGM_FI_DEV_GPU_TEMP", 0) < 40
    exporter.main(["lie", "--url", lab.url, "--node", "n[1-2]", "none"])
    assert number(get(lab.page_url("n1")), "DCGM_FI_DEV_GPU_TEMP", 0) < 40


def test_targets_are_listed_for_prometheus_and_for_people(lab: exporter.Exporters) -> None:
    """/sd is an http_sd answer with both exporters of each node; /targets has a line for each."""
    found = json.loads(get(f"{lab.url}/sd"))
    assert {d["labels"]["instance"] for d in found} == {f"n{k}:{p}" for k in (1, 2, 3) for p in (9400, 9100)}
    assert all(get(f"http://{d['targets'][0]}{d['labels']['__metrics_path__']}").startswith("# HELP") for d in found)
    assert len(get(f"{lab.url}/targets").splitlines()) == 6


@pytest.mark.parametrize("order", [b"", b"[]", b'{"node": "n1"}', b'{"node": "n1", "metric": "x", "value": "hot"}'])
def test_a_bad_order_is_refused(lab: exporter.Exporters, order: bytes) -> None:
    """What cannot be understood is HTTP 400 and changes nothing."""
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(urllib.request.Request(f"{lab.url}/set", order), timeout=10)
    assert refused.value.code == 400
    refused.value.close()
    assert lab.lab.values == {}


def test_serve_runs_as_a_command() -> None:
    """`python -m labs.exporter serve` prints where the targets are and ends on an interrupt."""
    command = [sys.executable, "-m", "labs.exporter", "serve", "--nodes", "n[1-2]", "--port", "0"]
    process = subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, text=True, env={"PYTHONPATH": "src", "PATH": "/usr/bin"}
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line.startswith("2 nodes; targets: http://127.0.0.1:")
        assert "n2 http://127.0.0.1" in get(line.split()[-1])
    finally:
        process.terminate()
        process.communicate(timeout=20)


def test_an_xid_line_is_a_kernel_line_with_the_gpus_address(tmp_path: Path) -> None:
    """The log names the PCI address under which the exporter shows the same GPU."""
    file = tmp_path / "kern.log"
    logsource.main(["--file", str(file), "xid", "--node", "n3", "--gpu", "3", "79"])
    logsource.main(["--file", str(file), "--format", "traditional", "xid", "--node", "n3", "--gpu", "3", "79"])
    iso, old = file.read_text().splitlines()
    rest = (
        rf" n3 kernel: \[ *\d+\.\d{{6}}\] NVRM: Xid \(PCI:0000:{PCI_BUSES[3].lower()}:00\): 79, "
        r"pid='<unknown>', name=<unknown>, GPU has fallen off the bus\."
    )
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}\+00:00" + rest, iso)
    assert re.fullmatch(r"[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d" + rest, old)


def test_any_line_can_be_written_by_kernel_or_user(tmp_path: Path) -> None:
    """A user's line has no kernel tag, whatever it claims; --count repeats a line."""
    file = tmp_path / "kern.log"
    logsource.main(["--file", str(file), "line", "--node", "n1", "--count", "2", "mlx5_core: link down"])
    logsource.main(["--file", str(file), "user", "--node", "n1", "NVRM: Xid (PCI:0000:53:00): 79, forged"])
    first, second, forged = file.read_text().splitlines()
    assert first == second and first.endswith("] mlx5_core: link down") and " n1 kernel: " in first
    assert " n1 train[4242]: NVRM: Xid" in forged and "kernel:" not in forged


@pytest.mark.parametrize("module", ["labs.exporter", "labs.logsource"])
def test_help_shows_examples(module: str, capsys: pytest.CaptureFixture[str]) -> None:
    """--help explains itself with commands that can be copied."""
    with pytest.raises(SystemExit) as end:
        sys.modules[module].main(["--help"])
    assert end.value.code == 0
    assert f"python -m {module}" in capsys.readouterr().out


def test_every_metric_of_the_lab_is_one_of_the_catalogue() -> None:
    """What the lab pretends is what the catalogue can read, under a name that exporters print."""
    from nodeworthy.adapters.files.catalogue import load
    from nodeworthy.observe.telemetry import names_of

    assert set(GPU_METRICS) - names_of(load().signals.values()) == set()
