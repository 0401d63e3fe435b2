"""Window features: gains that survive resets, flickers, gaps, swaps and restarts."""

from __future__ import annotations

import polars as pl
import pytest

from nodeworthy.judge.features import Windows
from nodeworthy.judge.frames import build
from nodeworthy.model.catalogue import Catalogue, Feature, Signal
from nodeworthy.model.fleet import Fleet, Node, NodeClass
from nodeworthy.ports import TelemetryBatch

SIGNALS = {
    "errors": Signal("errors", "gpu", "int", "errors", "", counter=True, minimum=0),
    "load": Signal("load", "gpu", "float", "percent", ""),
    "gpu_uuid": Signal("gpu_uuid", "gpu", "str", "", ""),
}


def windows(function: str, window: float = 600.0, signal: str = "errors") -> Windows:
    feature = Feature("f", "gpu", signal, function, window)
    return Windows(Catalogue(SIGNALS, {"f": feature}, {}, f"test-{function}-{window}-{signal}"))


def fleet(*nodes: str) -> Fleet:
    return Fleet("t", {"h": NodeClass("h", gpus=1)}, {n: Node(n, "h") for n in nodes or ("n0",)})


def feed(
    windows: Windows,
    values: list[float | None],
    *,
    step: float = 60.0,
    start: float = 1_000_000.0,
    signal: str = "errors",
    uuids: list[str] | None = None,
) -> list[float | None]:
    answers: list[float | None] = []
    for turn, value in enumerate(values):
        now = start + step * turn
        uuid = uuids[turn] if uuids else "GPU-a"
        table = pl.DataFrame(
            {"node": ["n0"], "index": ["0"], "seen": [now], signal: [value], "gpu_uuid": [uuid]},
            schema_overrides={signal: pl.Float64},
        )
        frames = build(fleet(), windows.catalogue, [TelemetryBatch("dcgm", now, {"gpu": table})], now)
        answers.append(windows.update(frames).tables["gpu"].frame["f"][0])
    return answers


@pytest.mark.parametrize(
    ("values", "gained"),
    [
        ([5, 5, 7], 2),
        ([5, 7, 1, 3], 5),  # reset: 2, then 1 since the reset, then 2
        ([505, 0, 505, 505], 0),  # a flicker to zero and back is no error
        ([505, 0, 506, 507], 2),
        ([5, None, 7], 2),
        ([0, 0, 0], 0),
        ([7], None),
        ([None, None], None),
        ([5, 7, None], None),  # unknown now: unknown, whatever the window says
    ],
)
def test_increase_survives_resets_flickers_and_gaps(values: list[float | None], gained: float | None) -> None:
    """A counter's gain over the window is what it really gained."""
    assert feed(windows("increase"), values)[-1] == gained


def test_a_gain_leaves_the_window() -> None:
    """Ten minutes after its last error an increase over ten minutes is 0 again."""
    answers = feed(windows("increase"), [0.0, 3.0, *[3.0] * 14])
    assert answers[1] == 3.0
    assert answers[9] == 3.0
    assert answers[13] == 0.0


def test_a_gap_longer_than_the_window_gains_nothing() -> None:
    """What happened at an unknown time within a long gap is not evidence of now."""
    assert feed(windows("increase"), [0.0, *[None] * 15, 900.0])[-1] is None
    assert feed(windows("increase"), [0.0, *[None] * 15, 900.0, 901.0])[-1] == 1.0


def test_a_swapped_gpu_starts_clean() -> None:
    """Another UUID at the index is another asset: the old one's errors are not its own."""
    answers = feed(windows("increase"), [0.0, 9.0, 40.0, 40.0], uuids=["GPU-a", "GPU-a", "GPU-b", "GPU-b"])
    assert answers == [None, 9.0, None, 0.0]


def test_rates_need_half_of_their_window() -> None:
    """A rate over a few seconds says nothing; over half a window it is gain by time."""
    answers = feed(windows("rate"), [60.0 * i for i in range(11)])
    assert answers[1] is None
    assert answers[4] is None
    assert answers[5] == pytest.approx(1.0)
    assert feed(windows("rate_per_minute"), [60.0 * i for i in range(11)])[-1] == pytest.approx(60.0)


def test_minimum_maximum_mean_and_changes_of_gauges() -> None:
    """The other functions of a window do what their names say."""
    values: list[float | None] = [50.0, 10.0, 90.0, 50.0, 50.0, 50.0, 50.0]
    assert feed(windows("minimum", signal="load"), values, signal="load")[-1] == 10.0
    assert feed(windows("maximum", signal="load"), values, signal="load")[-1] == 90.0
    assert feed(windows("mean", signal="load"), values, signal="load")[-1] == pytest.approx(50.0)
    assert feed(windows("changes", signal="load"), values, signal="load")[-1] == 3.0
    assert feed(windows("minimum", signal="load"), values[:3], signal="load")[-1] is None


def test_rows_keep_their_windows_when_the_fleet_changes() -> None:
    """A node that is added before another in the fleet file does not inherit its errors."""
    given = windows("increase")
    feed(given, [0.0, 9.0])
    now = 1_000_120.0
    table = pl.DataFrame({"node": ["n0", "a0"], "index": ["0", "0"], "seen": [now] * 2, "errors": [9.0, 4.0]})
    frames = build(fleet("a0", "n0"), given.catalogue, [TelemetryBatch("dcgm", now, {"gpu": table})], now)
    result = given.update(frames).tables["gpu"].frame
    assert dict(zip(result["node"], result["f"], strict=True)) == {"a0": None, "n0": 9.0}


def test_a_clock_that_goes_back_neither_loses_nor_doubles_a_gain() -> None:
    """The turn after the step takes nothing; from the next one on the counter goes on from where it was."""
    given = windows("increase")
    assert feed(given, [0.0, 5.0]) == [None, 5.0]
    assert feed(given, [50.0, 51.0], start=999_000.0) == [5.0, 51.0]


def test_a_window_goes_on_ageing_after_the_clock_went_back() -> None:
    """An old gain leaves the window a window later, and not when the clock is back where it was."""
    given = windows("increase")
    feed(given, [0.0, 5.0])
    assert feed(given, [5.0] * 14, start=900_000.0)[-1] == 0.0


def read_every(given: Windows, scrapes: list[float], turn_s: float = 5.0, scrape_s: float = 15.0) -> list[float | None]:
    """The feature at each turn, when turns come more often than scrapes and read the last one again."""
    answers: list[float | None] = []
    for turn in range(int(len(scrapes) * scrape_s / turn_s)):
        now = 1_000_000.0 + turn * turn_s
        scrape = int(turn * turn_s // scrape_s)
        seen = 1_000_000.0 + scrape * scrape_s
        table = pl.DataFrame(
            {"node": ["n0"], "index": ["0"], "seen": [seen], "errors": [scrapes[scrape]], "gpu_uuid": ["GPU-a"]}
        )
        frames = build(fleet(), given.catalogue, [TelemetryBatch("dcgm", seen, {"gpu": table})], now)
        answers.append(given.update(frames).tables["gpu"].frame["f"][0])
    return answers


@pytest.mark.parametrize(
    ("scrapes", "gained"),
    [
        ([2.0, 0.0, 2.0, 2.0], 0.0),  # one scrape that says 0 is a flicker, however often it is read
        ([505.0, 0.0, 506.0], 1.0),
        ([2.0, 2.0, 3.0], 1.0),  # one gain, read three times
        ([5.0, 7.0, 1.0, 3.0], 5.0),  # a reset that the next scrape confirms
    ],
)
def test_a_scrape_that_is_read_again_is_no_new_sample(scrapes: list[float], gained: float) -> None:
    """Only another scrape confirms a reset; reading the same one in three turns does not."""
    answers = read_every(windows("increase"), scrapes)
    assert answers[-1] == gained
    assert max(a for a in answers if a is not None) == gained


def test_a_rate_counts_the_time_between_scrapes() -> None:
    """A gain of 15 a scrape is one a second, with turns of five seconds too."""
    assert read_every(windows("rate"), [15.0 * n for n in range(40)])[-1] == pytest.approx(1.0)
