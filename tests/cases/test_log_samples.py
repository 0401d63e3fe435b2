"""Real log lines of many clusters, where the samples are at hand."""

from __future__ import annotations

import os
import re
from collections import Counter
from pathlib import Path

import pytest

from nodeworthy.adapters.files.literals import finder
from nodeworthy.adapters.files.log_rules import load_grammar
from nodeworthy_node.log import Event, Reference
from nodeworthy_node.log.scan import Tally, events

ROOT = Path(__file__).resolve().parents[2]
SHARED = Path(os.environ.get("NODEWORTHY_SHARED", ROOT.parent / "shared"))
SAMPLES = SHARED / "samples"

pytestmark = pytest.mark.skipif(not SAMPLES.is_dir(), reason=f"no samples in {SAMPLES}")


def classify(name: str) -> list[Event]:
    grammar = load_grammar()
    with (SAMPLES / name).open("rb") as stream:
        return list(events(stream, finder(grammar.literals), grammar, Reference(now=1796060423.0), Tally()))


def test_every_xid_line_has_its_code() -> None:
    """Each file of Xid lines is named by its code, and each of its lines gets that code, unless it is cut before it."""
    files = sorted((SAMPLES / "xid-lines").glob("xid-*.log"))
    assert len(files) > 20
    for file in files:
        code = str(int(re.findall(r"\d+", file.stem)[0]))
        lines = [line for line in file.read_text("utf-8", "replace").splitlines() if "NVRM: Xid" in line]
        found = classify(f"xid-lines/{file.name}")
        assert len(found) == len(lines), file.name
        assert {event.verdict.code for event in found} == {code}, file.name


def test_switch_lines() -> None:
    """Header lines of switch errors are events; their data and severity lines are not."""
    text = (SAMPLES / "xid-lines" / "sxid.log").read_text()
    headers = [
        line for line in text.splitlines() if "SXid (" in line and ", Data {" not in line and ", Severity " not in line
    ]
    found = classify("xid-lines/sxid.log")
    assert len(found) == len(headers)
    assert all(event.verdict.kind == "sxid" for event in found)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("dmesg/dmesg.decode.iso.log.0", {("xid", "13"): 629, ("xid", "43"): 7}),
        (
            "dmesg/dmesg.decode.iso.log.1",
            {("power", "nic-slot-power"): 12, ("link", "down"): 3, ("link", "up"): 1, ("link", "unplugged"): 2},
        ),
    ],
)
def test_whole_boot_logs(name: str, expected: dict[tuple[str, str], int]) -> None:
    """Two whole logs of real nodes, 3,000 lines: only what is really in them, and no hold from a boot."""
    found = classify(name)
    assert Counter((event.verdict.kind, event.verdict.code) for event in found) == expected
    assert not any(event.holds for event in found)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("dmesg/nccl-segfault-dmesg.log", {("segfault", "segfault"): 2}),
        ("dmesg/dmesg.peermem.log.0", {("driver", "peermem"): 7}),
        ("dmesg/kmsg.2.peermem.log", {("driver", "peermem"): 7}),
        ("dmesg/kmsg.1.log", {}),
        ("syslog-ib-flap/0flap_syslog", {}),
        ("syslog-ib-flap/1dev_6flap_syslog", {("link", "down"): 6, ("link", "up"): 6}),
        ("fabric-manager-log/fabricmanager.log", {("fabric", "switch-error"): 1}),
        ("dmesg/dmesg-erst.txt", {("panic", "bug"): 1, ("panic", "oops"): 1}),
    ],
)
def test_sample(name: str, expected: dict[tuple[str, str], int]) -> None:
    """What is in each sample, and how often."""
    assert Counter((event.verdict.kind, event.verdict.code) for event in classify(name)) == expected


def test_times_of_the_samples() -> None:
    """Absolute stamps become times; the kernel's counter alone does not."""
    assert classify("dmesg/nccl-segfault-dmesg.log")[0].time == pytest.approx(1737434504.28506)
    assert classify("dmesg/kmsg.2.peermem.log")[0].time is None
    assert classify("dmesg/kmsg.2.peermem.log")[0].uptime == pytest.approx(227.996636)
