"""Blindness: in each way a source can fail or lie, nothing adverse is said of any node; the source is named.

Pages of the lab's exporters pass the real parser, the real mapping, the built-in catalogue and the judge, in
turns of a minute with no waiting: two turns of health, then ten of the lie.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import pytest

from labs.exporter import LIES
from labs.pages import DCGM_PAGE, NODE_PAGE, Settings, page
from nodeworthy.adapters.exposition.scrape import complaints, read_page
from nodeworthy.adapters.files.catalogue import load
from nodeworthy.errors import Garbled
from nodeworthy.judge.frames import build
from nodeworthy.judge.judge import Judgement, JudgeState, judge
from nodeworthy.model.finding import UnknownReason, Verdict
from nodeworthy.model.fleet import Fleet, Node, NodeClass
from nodeworthy.observe.coverage import Coverage
from nodeworthy.observe.samples import join
from nodeworthy.observe.telemetry import exposed, names_of, to_batch
from nodeworthy.ports import TelemetryBatch
from tests.telemetry_words import cell

START = 1_796_000_000.0
SOURCE = "exporters"
CATALOGUE = load()
SIGNALS = exposed(CATALOGUE.signals.values())
NAMES = names_of(SIGNALS)
EXPECTED = {
    "nics": "mlx5_[0-7]",
    "pcie_gen": 5,
    "pcie_width": 16,
    "ecc": True,
    "persistence": True,
    "gpu_temperature_max": 85.0,
    "memory_temperature_max": 95.0,
    "power_limit": 700.0,
    "ib_rate": 400.0,
    "fabric_manager": True,
}
FLEET = Fleet(
    "lab",
    {"h100": NodeClass("h100", gpus=8, gpu_type="h100", memory_mb=2_000_000, expect=EXPECTED)},
    {f"n{i}": Node(f"n{i}", "h100", domains={"rack": f"r{i // 4}"}) for i in range(8)},
)
RACK = FLEET.domain("rack", "r0")
Lie = Callable[[str, float], str]


@dataclass
class Site:
    """A fleet whose exporters are read and judged once a minute. `lies`: node → what its pages become."""

    now: float = START
    lies: dict[str, Lie] = field(default_factory=dict)
    silent: set[str] = field(default_factory=set)
    settings: Settings = field(default_factory=Settings)
    state: JudgeState = field(default_factory=JudgeState)
    readings: list[TelemetryBatch] = field(default_factory=list)
    coverage: Coverage = field(default_factory=Coverage)
    down: dict[str, str] = field(default_factory=dict)

    def turn(self) -> Judgement:
        self.now += 60
        pages, problems, failed = [], [], 0
        for node in FLEET.nodes:
            for kind in (DCGM_PAGE, NODE_PAGE):
                text = page(kind, node, self.now, self.settings)
                text = self.lies[node](text, self.now) if node in self.lies else text
                try:
                    if node in self.silent:
                        raise Garbled("no connection")
                    read = read_page(text.encode(), "text/plain", self.now, node, NAMES)
                except Garbled as error:
                    problems.append(f"{node}: {error}")
                    failed += 1
                else:
                    problems += [f"{node}: {p}" for p in complaints(read)]
                    pages.append(read)
        self.down = {SOURCE: "no exporter gave a page"} if failed == 2 * len(FLEET.nodes) else {}
        if not self.down:
            batch = to_batch(
                join([p.samples for p in pages]),
                SIGNALS,
                lambda name: name if name in FLEET.nodes else None,
                source=SOURCE,
                at=self.now,
                problems=problems,
            )
            others = frozenset().union(*(p.other_names for p in pages))
            gone = self.coverage.missing(batch, others)
            self.readings.append(
                TelemetryBatch(SOURCE, batch.at, batch.frames, (*batch.problems, *gone), unknown=batch.unknown)
            )
        judgement = judge(
            CATALOGUE, build(FLEET, CATALOGUE, self.readings[-3:], self.now, down=self.down), self.state, self.now
        )
        self.state = judgement.state
        return judgement

    @property
    def batch(self) -> TelemetryBatch:
        return self.readings[-1]


def adverse(judgement: Judgement) -> list[str]:
    """Findings that hold against a node or a part of it."""
    return [
        f"{f.check} {f.component}"
        for f in judgement.findings
        if f.verdict is Verdict.TRUE and f.component.kind in ("node", "gpu", "nic")
    ]


def accused_sources(judgement: Judgement) -> list[str]:
    return [f.component.node for f in judgement.findings if f.component.kind == "source"]


def healthy() -> Site:
    site = Site()
    for _ in range(2):
        judgement = site.turn()
        assert adverse(judgement) == [] and accused_sources(judgement) == []
    assert site.batch.problems == ()
    return site


def test_a_real_fault_is_still_found() -> None:
    """The site can see: a GPU that is set too hot is found, so that silence elsewhere means something."""
    site = healthy()
    site.settings = Settings({("n2", "3", "DCGM_FI_DEV_GPU_TEMP"): 95.0})
    found = [adverse(site.turn()) for _ in range(10)][-1]
    assert found and all(line.endswith("n2/gpu3") for line in found)


@pytest.mark.parametrize("nodes", [tuple(FLEET.nodes), RACK], ids=["all", "one rack"])
@pytest.mark.parametrize("lie", ["silence", *LIES])
def test_no_lie_of_a_source_is_a_fault_of_a_node(lie: str, nodes: tuple[str, ...]) -> None:
    """Ten minutes of each lie, on all nodes and on one rack: no adverse finding, and one that names the source."""
    site = healthy()
    if lie == "silence":
        site.silent = set(nodes)
    else:
        site.lies = dict.fromkeys(nodes, LIES[lie])
    for _ in range(10):
        judgement = site.turn()
        assert adverse(judgement) == []
    assert accused_sources(judgement) == [SOURCE]
    assert judgement.unknown, "what cannot be seen is counted as unknown"


def lied(lie: str, nodes: tuple[str, ...] = ("n0",), turns: int = 1) -> Site:
    site = healthy()
    site.lies = dict.fromkeys(nodes, LIES[lie])
    for _ in range(turns):
        site.turn()
    return site


def problems_of(site: Site) -> str:
    return "\n".join(site.batch.problems)


def reasons(site: Site, node: str) -> Mapping[str, int]:
    """Reason → how many cells of a node were emptied for it."""
    assert site.batch.unknown is not None
    counted = site.batch.unknown.filter(node=node)["reason"].value_counts()
    return dict(counted.iter_rows())


def test_silence_of_all_is_no_batch_at_all() -> None:
    """When nobody answers there is no new reading, and the source is down."""
    site = healthy()
    site.silent = set(FLEET.nodes)
    before = len(site.readings)
    judgement = site.turn()
    assert len(site.readings) == before and site.down
    assert [f.unknown for f in judgement.findings if f.component.kind == "source"] == [UnknownReason.SOURCE_DOWN]


def test_silence_of_a_rack_leaves_its_rows_out() -> None:
    """Nodes that did not answer have no rows; the others have theirs."""
    site = healthy()
    site.silent = set(RACK)
    site.turn()
    assert set(site.batch.frames["gpu"]["node"]) == set(FLEET.nodes) - set(RACK)
    assert all(f"{node}: no connection" in problems_of(site) for node in RACK)


def test_garbage_and_html_are_said_to_be_no_pages() -> None:
    """Bytes that are no exposition text are a problem with the first of them shown."""
    for lie in ("garbage", "html"):
        site = lied(lie)
        assert "n0: not a metrics page" in problems_of(site)
        assert "n0" not in set(site.batch.frames["gpu"]["node"])


@pytest.mark.parametrize("lie", ["nan", "blank"])
def test_nan_and_blanks_are_rows_of_unknowns(lie: str) -> None:
    """The rows are there, were seen now, and hold no number; each cell says that the source had none."""
    site = lied(lie)
    assert cell(site.batch, "gpu", "n0", "0", "seen") == site.now
    assert cell(site.batch, "gpu", "n0", "0", "gpu_temperature") is None
    assert cell(site.batch, "gpu", "n1", "0", "gpu_temperature") is not None
    assert cell(site.batch, "gpu", "n0", "0", "gpu_uuid") is not None, "labels are still true"
    assert reasons(site, "n0").get("sentinel", 0) > 8 * 30


@pytest.mark.parametrize(("lie", "offset"), [("stale", -3600.0), ("future", 3600.0)])
def test_stale_and_future_pages_keep_their_own_time(lie: str, offset: float) -> None:
    """The values are passed on with the time that the source stamped; the judge decides that they do not count."""
    site = lied(lie)
    assert cell(site.batch, "gpu", "n0", "0", "seen") == pytest.approx(site.now + offset)
    assert cell(site.batch, "gpu", "n1", "0", "seen") == site.now


def test_half_a_page_keeps_whole_lines_and_says_so() -> None:
    """What came whole is used, the line that was cut is not, and the page is said to be short."""
    site = lied("half")
    assert "n0: the page ends before its end" in problems_of(site)
    frame = site.batch.frames["gpu"].filter(node="n0")
    whole = page(DCGM_PAGE, "n0", site.now, Settings())
    assert frame.height == 8 and "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL" in whole[len(whole) // 2 :]
    assert frame["gpu_temperature"].null_count() == 0
    assert frame["ecc_uncorrected_volatile"].null_count() == 8


def test_renamed_fields_are_missed_once_nobody_has_them() -> None:
    """All exporters rename: the signals that are gone are named, with names that nobody understands."""
    site = lied("renamed", tuple(FLEET.nodes))
    assert site.batch.frames == {}
    assert "signals were reported before and now by nobody" in problems_of(site)
    assert "names not understood: DCGM_FI_V2_" in problems_of(site)


def test_duplicates_that_differ_are_nobodys_value() -> None:
    """Every series twice with two values: all cells of the node are unknown, the words of its labels are not."""
    site = lied("duplicate")
    assert cell(site.batch, "gpu", "n0", "0", "gpu_temperature") is None
    assert cell(site.batch, "gpu", "n0", "0", "gpu_uuid") is not None
    assert "duplicates that differ: n0/gpu0" in problems_of(site)
    assert set(reasons(site, "n0")) == {"unreadable"}
