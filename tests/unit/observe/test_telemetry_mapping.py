"""Samples become frames: identity, units, sentinels, duplicates, times. Each rule with the lie it answers."""

from __future__ import annotations

import time

import polars as pl
import pytest

from benchmarks.exposition import page as big_page
from benchmarks.exposition import parse_all
from benchmarks.exposition import signals as big_signals
from nodeworthy.model.catalogue import Signal, SourceField
from nodeworthy.observe.exposition import parse
from nodeworthy.observe.samples import Place, join
from nodeworthy.observe.telemetry import exposed, to_batch
from nodeworthy.ports import TelemetryBatch
from tests.telemetry_words import SIGNALS, cell, nothing, reason

NOW = 1_796_000_000.0


def resolve(name: str) -> str | None:
    return {"n1": "n1", "n2": "n2", "n1.example.org": "n1", "10.0.0.2": "n2"}.get(name)


def batch_of(text: str, *, at: float = NOW, target: str = "", signals: tuple[Signal, ...] = SIGNALS) -> TelemetryBatch:
    page = parse(text, at=at, target=target)
    assert not page.problems()
    return to_batch(page.samples, exposed(signals), resolve, source="exporters", at=NOW)


def gpu(
    metric: str, value: object, *, index: str = "0", node: str = "n1", ms: float | None = None, more: str = ""
) -> str:
    stamp = "" if ms is None else f" {int(ms)}"
    return f'{metric}{{gpu="{index}",Hostname="{node}"{more}}} {value}{stamp}\n'


TEMP, POWER = "DCGM_FI_DEV_GPU_TEMP", "DCGM_FI_DEV_POWER_USAGE"


def test_values_are_in_the_unit_and_type_of_the_signal() -> None:
    """Millijoules become joules, 1 becomes true, a mask stays a whole number."""
    batch = batch_of(
        gpu("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", 5000)
        + gpu("DCGM_FI_DEV_ROW_REMAP_PENDING", 1)
        + gpu("DCGM_FI_DEV_CLOCK_THROTTLE_REASONS", "9.6e1")
        + gpu(TEMP, 41, more=',UUID="GPU-a"')
    )
    assert cell(batch, "gpu", "n1", "0", "energy") == 5.0
    assert cell(batch, "gpu", "n1", "0", "row_remap_pending") is True
    assert cell(batch, "gpu", "n1", "0", "clock_event_reasons") == 96
    types = batch.frames["gpu"].schema
    assert (types["energy"], types["row_remap_pending"], types["clock_event_reasons"], types["gpu_uuid"]) == (
        pl.Float64,
        pl.Boolean,
        pl.Int64,
        pl.String,
    )


def test_old_and_new_names_give_the_same_signal() -> None:
    """A field that was renamed is read under both names; its column is one."""
    old, new = batch_of(gpu(TEMP, 41)), batch_of(gpu(TEMP + "_CELSIUS", 41))
    assert cell(old, "gpu", "n1", "0", "gpu_temperature") == cell(new, "gpu", "n1", "0", "gpu_temperature") == 41.0


def test_when_both_names_are_there_the_newer_sample_wins() -> None:
    """After a rename the old series lingers with its last value; the fresh one is true."""
    text = gpu(TEMP, 90, ms=(NOW - 60) * 1000) + gpu(TEMP + "_CELSIUS", 41, ms=NOW * 1000)
    assert cell(batch_of(text), "gpu", "n1", "0", "gpu_temperature") == 41.0
    assert cell(batch_of(gpu(TEMP, 40) + gpu(TEMP + "_CELSIUS", 41)), "gpu", "n1", "0", "gpu_temperature") == 40.0


BLANKS = (
    *(0x7FFFFFF0 + n for n in range(4)),
    *(0x7FFFFFFFFFFFFFF0 + n for n in range(4)),
    *(2**47 + n for n in range(4)),
)


@pytest.mark.parametrize("blank", BLANKS)
def test_every_blank_of_dcgm_is_unknown(blank: int) -> None:
    """DCGM's marks for "not supported" are no temperatures and no counts, and the reason is kept."""
    batch = batch_of(gpu("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", blank) + gpu(POWER, 70))
    assert cell(batch, "gpu", "n1", "0", "energy") is None
    assert reason(batch, "n1", "0", "energy") == "sentinel"
    assert any("energy: 1 values not used, the source's mark for no value: n1/gpu0" in p for p in batch.problems)


def test_a_large_counter_is_no_blank() -> None:
    """Energy past 2^47 millijoules is energy: only the marks themselves are blanks."""
    batch = batch_of(gpu("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", 2**47 + 100))
    assert cell(batch, "gpu", "n1", "0", "energy") == pytest.approx((2**47 + 100) / 1000)


@pytest.mark.parametrize(
    ("metric", "value", "signal", "why"),
    [
        (TEMP, "NaN", "gpu_temperature", "sentinel"),
        (TEMP, "+Inf", "gpu_temperature", "unreadable"),
        (TEMP, "-274", "gpu_temperature", "unreadable"),
        (TEMP, "65535", "gpu_temperature", "unreadable"),
        ("DCGM_FI_DEV_XID_ERRORS", "79.5", "last_xid", "unreadable"),
        ("DCGM_FI_DEV_ROW_REMAP_PENDING", "2", "row_remap_pending", "unreadable"),
        ("DCGM_FI_DEV_ROW_REMAP_PENDING", "NaN", "row_remap_pending", "sentinel"),
    ],
)
def test_what_cannot_be_is_unknown(metric: str, value: str, signal: str, why: str) -> None:
    """NaN, infinities, impossible numbers and wrong types become null, with the reason, and never 0."""
    batch = batch_of(gpu(metric, value) + gpu(POWER, 70))
    assert cell(batch, "gpu", "n1", "0", signal) is None
    assert reason(batch, "n1", "0", signal) == why
    assert cell(batch, "gpu", "n1", "0", "power_draw") == 70.0


def test_a_speed_of_minus_one_megabit_is_unknown() -> None:
    """The kernel says -1 for a link without speed; node_exporter makes -125000 of it."""
    batch = batch_of('node_network_speed_bytes{device="eth0"} -125000\n', target="n1:9100")
    assert cell(batch, "nic", "n1", "eth0", "net_speed") is None


def test_a_sentinel_of_the_catalogue_is_unknown() -> None:
    """A memory temperature of 0 means that the card has no sensor, if the catalogue says so."""
    signal = Signal("memory_temperature", "gpu", "float", "", "", (SourceField("dcgm", "M"),), sentinels=(0.0,))
    batch = batch_of(gpu("M", 0) + gpu("M", 50, index="1"), signals=(signal,))
    assert cell(batch, "gpu", "n1", "0", "memory_temperature") is None
    assert cell(batch, "gpu", "n1", "1", "memory_temperature") == 50.0


def test_equal_duplicates_are_one_value() -> None:
    """The same number under other workload labels is the same GPU, once."""
    batch = batch_of(gpu(TEMP, 41, more=',pod="a"') + gpu(TEMP, 41, more=',pod="b"'))
    assert batch.frames["gpu"].height == 1 and batch.problems == ()
    assert cell(batch, "gpu", "n1", "0", "gpu_temperature") == 41.0


def test_duplicates_that_differ_are_unknown() -> None:
    """Two equally new values for one cell: neither is believed, and the source is named as the problem."""
    batch = batch_of(gpu(TEMP, 41) + gpu(TEMP, 95) + gpu(TEMP, 40, index="1"))
    assert cell(batch, "gpu", "n1", "0", "gpu_temperature") is None
    assert cell(batch, "gpu", "n1", "1", "gpu_temperature") == 40.0
    assert reason(batch, "n1", "0", "gpu_temperature") == "unreadable"
    assert any("duplicates that differ: n1/gpu0" in p for p in batch.problems)


def test_of_duplicates_with_times_the_newest_is_true() -> None:
    """A series of a pod that has ended lingers beside the present one."""
    text = gpu(TEMP, 95, more=',pod="old"', ms=(NOW - 30) * 1000) + gpu(TEMP, 41, more=',pod="new"', ms=NOW * 1000)
    assert cell(batch_of(text), "gpu", "n1", "0", "gpu_temperature") == 41.0


def test_rows_of_parts_of_a_gpu_are_not_the_gpu() -> None:
    """MIG instances, links and switches do not speak for the whole GPU."""
    batch = batch_of(
        gpu(TEMP, 99, more=',GPU_I_ID="3",GPU_I_PROFILE="1g.6gb"') + gpu(TEMP, 98, more=',nvlink="2"') + gpu(TEMP, 41)
    )
    assert cell(batch, "gpu", "n1", "0", "gpu_temperature") == 41.0
    assert batch.problems == ()


def test_a_series_of_a_gpu_that_was_swapped_is_dropped() -> None:
    """Two UUIDs at one index: the newer series is the GPU that is there; the older says nothing of it."""
    text = gpu(TEMP, 95, more=',UUID="GPU-old"', ms=(NOW - 90) * 1000) + gpu(
        POWER, 1, more=',UUID="GPU-old"', ms=(NOW - 90) * 1000
    )
    batch = batch_of(text + gpu(TEMP, 41, more=',UUID="GPU-new"', ms=NOW * 1000) + gpu(POWER, 70, index="1"))
    assert cell(batch, "gpu", "n1", "0", "gpu_uuid") == "GPU-new"
    assert cell(batch, "gpu", "n1", "0", "gpu_temperature") == 41.0
    assert cell(batch, "gpu", "n1", "0", "power_draw") is None
    assert any("an older series of another UUID" in p for p in batch.problems)


def test_two_uuids_at_one_index_at_once_are_a_doubt() -> None:
    """Equally new, so nobody knows which is there: the row is unknown, not one of the two."""
    batch = batch_of(gpu(TEMP, 95, more=',UUID="GPU-a"') + gpu(TEMP, 41, more=',UUID="GPU-b"'))
    assert cell(batch, "gpu", "n1", "0", "gpu_temperature") is None
    assert any("two UUIDs at one index" in p and "n1/gpu0" in p for p in batch.problems)


def test_one_uuid_on_two_nodes_is_a_doubt() -> None:
    """Two targets reach one exporter: one node's numbers must not judge the other."""
    row = f'{TEMP}{{gpu="0",UUID="GPU-a"}} 95\n'
    pages = [parse(row, at=NOW, target=name) for name in ("n1", "n2")]
    batch = to_batch(join([p.samples for p in pages]), exposed(SIGNALS), resolve, source="s", at=NOW)
    assert cell(batch, "gpu", "n1", "0", "gpu_temperature") is None
    assert cell(batch, "gpu", "n2", "0", "gpu_temperature") is None
    assert any("share a UUID" in p for p in batch.problems)


@pytest.mark.parametrize(
    ("labels", "node"),
    [
        ('Hostname="n1"', "n1"),
        ('Hostname="n1.example.org"', "n1"),
        ('instance="n1:9400"', "n1"),
        ('instance="10.0.0.2:9400"', "n2"),
        ('Hostname="dcgm-exporter-78z52",instance="n1:9400"', "n1"),
        ('Hostname="n1",instance="10.9.9.9:9400"', "n1"),
    ],
)
def test_a_node_is_found_by_hostname_or_instance(labels: str, node: str) -> None:
    """Whichever of the two the fleet knows names the node; a port does not matter."""
    batch = batch_of(f'{TEMP}{{gpu="0",{labels}}} 41\n')
    assert cell(batch, "gpu", node, "0", "gpu_temperature") == 41.0
    assert batch.unknown_names == ()


def test_two_names_of_two_nodes_are_nobody() -> None:
    """Hostname and instance contradict each other: the row is not used, and the names are shown."""
    batch = batch_of(f'{TEMP}{{gpu="0",Hostname="n1",instance="10.0.0.2:9400"}} 41\n')
    assert batch.frames == {}
    assert any("name two nodes at once" in p for p in batch.problems)


def test_an_undeclared_name_is_listed() -> None:
    """A name that the fleet does not declare is listed and never guessed, even when it is almost one."""
    batch = batch_of(gpu(TEMP, 41, node="n11") + gpu(TEMP, 42))
    assert batch.unknown_names == ("n11",)
    assert batch.frames["gpu"]["node"].to_list() == ["n1"]


def test_seen_is_the_samples_own_time() -> None:
    """A page that is stamped an hour back is an hour old, whenever it was fetched."""
    batch = batch_of(gpu(TEMP, 41, ms=(NOW - 3600) * 1000))
    assert cell(batch, "gpu", "n1", "0", "seen") == NOW - 3600
    assert cell(batch, "gpu", "n1", "0", "gpu_temperature") == 41.0


def test_a_cell_older_than_its_row_is_stale() -> None:
    """One metric of an exporter hangs while the others go on: that cell is unknown, the row is fresh."""
    batch = batch_of(gpu(TEMP, 95, ms=(NOW - 200) * 1000) + gpu(POWER, 70, ms=NOW * 1000))
    assert cell(batch, "gpu", "n1", "0", "seen") == NOW
    assert cell(batch, "gpu", "n1", "0", "gpu_temperature") is None
    assert reason(batch, "n1", "0", "gpu_temperature") == "stale"


def test_one_cell_from_the_future_does_not_blind_the_row() -> None:
    """A wrong stamp on one metric is that metric's problem; a row that is wholly ahead keeps its future time."""
    mixed = batch_of(gpu(TEMP, 95, ms=(NOW + 3600) * 1000) + gpu(POWER, 70, ms=NOW * 1000))
    assert cell(mixed, "gpu", "n1", "0", "seen") == NOW
    assert reason(mixed, "n1", "0", "gpu_temperature") == "timestamp in the future"
    ahead = batch_of(gpu(TEMP, 41, ms=(NOW + 3600) * 1000))
    assert cell(ahead, "gpu", "n1", "0", "seen") == NOW + 3600


def test_labels_select_among_series_of_one_name() -> None:
    """Only the series with the labels that the field asks for is the signal."""
    text = (
        'node_filesystem_readonly{device="/dev/sda1",mountpoint="/"} 0\n'
        'node_filesystem_readonly{device="/dev/sr0",mountpoint="/media"} 1\n'
    )
    assert cell(batch_of(text, target="n1"), "node", "n1", "", "root_readonly") is False


def test_a_counter_kept_per_memory_controller_is_added_up() -> None:
    """A node's corrected errors are those of all its controllers."""
    text = (
        'node_edac_correctable_errors_total{controller="0"} 3\nnode_edac_correctable_errors_total{controller="1"} 4\n'
    )
    assert cell(batch_of(text, target="n1"), "node", "n1", "", "edac_corrected") == 7


def test_a_word_is_read_from_its_label() -> None:
    """An info series carries its value in a label; two nodes keep their own."""
    pages = [
        parse(f'node_uname_info{{release="{word}"}} 1\n', at=NOW, target=node)
        for node, word in (("n1", "5.15"), ("n2", "6.8"))
    ]
    batch = to_batch(join([p.samples for p in pages]), exposed(SIGNALS), resolve, source="s", at=NOW)
    assert cell(batch, "node", "n1", "", "kernel_release") == "5.15"
    assert cell(batch, "node", "n2", "", "kernel_release") == "6.8"


def test_other_doors_signals_are_no_columns() -> None:
    """What only the scheduler can say, and what this page does not say, is not a column."""
    batch = batch_of("node_load1 0.5\ngpus 8\n", target="n1")
    assert batch.frames["node"].columns == ["node", "index", "seen", "load_1m"]


def test_nothing_said_is_no_row() -> None:
    """Without samples there are no frames: not rows of zeros."""
    batch = to_batch(nothing(), exposed(SIGNALS), resolve, source="s", at=NOW)
    assert batch.frames == {} and batch.problems == () and batch.unknown is not None and batch.unknown.height == 0


def test_join_keeps_every_sample_with_its_place() -> None:
    """Answers that share names and differ in places are one set of samples, in order."""
    a, b = parse('x{k="1"} 1\n', at=1.0, target="n1").samples, parse('y 2\nx{k="2"} 3\n', at=2.0, target="n2").samples
    both = join([a, b])
    said = [(both.names[n], both.places[p], v) for n, p, v in zip(both.name, both.place, both.value, strict=True)]
    assert said == [
        ("x", Place({"k": "1"}, "n1"), 1.0),
        ("y", Place({}, "n2"), 2.0),
        ("x", Place({"k": "2"}, "n2"), 3.0),
    ]


def test_five_hundred_nodes_are_mapped_at_speed() -> None:
    """240,000 samples of 4,000 GPUs become a frame in under two seconds of processor time (4.8 million took 1.7 s)."""
    pages = parse_all([big_page(n) for n in range(500)])
    samples = join([p.samples for p in pages])
    start = time.process_time()
    batch = to_batch(samples, big_signals(), lambda name: name, source="s", at=1.0)
    assert time.process_time() - start < 2.0
    assert batch.frames["gpu"].shape == (4000, 63)
    assert cell(batch, "gpu", "n42", "7", "s07") == pytest.approx(43.0)
