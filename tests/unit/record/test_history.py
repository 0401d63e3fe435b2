"""The bounded history: whole segments or none, bounded by age and size, and windows that survive a restart."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from nodeworthy.judge.features import Windows
from nodeworthy.judge.frames import Frames, build, declare
from nodeworthy.model.catalogue import Catalogue, Feature, Signal
from nodeworthy.model.fleet import Fleet, Node, NodeClass
from nodeworthy.ports import TelemetryBatch
from nodeworthy.record.history import History

START = 1_000_000.0
FLEET = Fleet("t", {"h": NodeClass("h", gpus=2)}, {n: Node(n, "h") for n in ("n0", "n1")})
CATALOGUE = Catalogue(
    {"errors": Signal("errors", "gpu", "int", "errors", "", counter=True)},
    {
        "short": Feature("short", "gpu", "errors", "increase", 600.0),
        "long": Feature("long", "gpu", "errors", "increase", 86400.0),
        "rate": Feature("rate", "gpu", "errors", "rate", 3600.0),
    },
    {},
    "history-test",
)


def frames(now: float, errors: int) -> Frames:
    table = pl.DataFrame(
        {"node": ["n0", "n0", "n1"], "index": ["0", "1", "0"], "seen": [now] * 3, "errors": [errors, 0, 2 * errors]}
    )
    return build(FLEET, CATALOGUE, [TelemetryBatch("dcgm", now, {"gpu": table})], now)


def history(folder: Path, **options: float) -> History:
    return History(folder, {"gpu": ("errors",)}, **options)  # type: ignore[arg-type]


def fill(given: History, minutes: int, windows: Windows | None = None) -> Frames:
    result = frames(START, 0)
    for minute in range(minutes):
        result = frames(START + 60.0 * minute, minute)
        given.append(result)
        if windows is not None:
            result = windows.update(result)
    return result


def test_samples_are_written_and_read_back(tmp_path: Path) -> None:
    """What was appended is what scan gives, from disk and memory together, once each."""
    given = history(tmp_path)
    fill(given, 25)
    assert len(given.segments("gpu")) == 2
    read = given.scan("gpu", START, START + 3600).collect()
    assert read.height == 25 * 4
    assert read.filter(node="n1", index="0").sort("at")["errors"].to_list() == [2 * m for m in range(25)]
    assert read.filter(node="n1", index="1")["errors"].null_count() == 25
    assert given.scan("gpu", START + 60, START + 120).collect()["at"].n_unique() == 2


def test_features_go_on_after_a_restart(tmp_path: Path) -> None:
    """Windows that are fed from the history say what the windows before the restart said."""
    before = Windows(CATALOGUE)
    given = history(tmp_path)
    last = fill(given, 120, before)
    given.flush()
    after = Windows(CATALOGUE)
    again = history(tmp_path)
    samples = again.replay(after, declare(FLEET), FLEET.revision, last.at - 1)
    assert 20 < samples <= 120
    result = after.update(frames(last.at, 119)).tables["gpu"].frame
    expected = last.tables["gpu"].frame
    assert result["short"].to_list() == expected["short"].to_list()
    assert result["long"].to_list() == expected["long"].to_list()
    assert result["rate"][0] == pytest.approx(expected["rate"][0], rel=0.1)


def test_a_segment_is_whole_or_not_there(tmp_path: Path) -> None:
    """Left-over temporary files are removed; a damaged segment is left out and said."""
    given = history(tmp_path)
    fill(given, 25)
    first, second = given.segments("gpu")
    first.path.write_bytes(first.path.read_bytes()[:100])
    (tmp_path / "gpu-1-2.tmp").write_bytes(b"half")
    again = history(tmp_path)
    assert list(tmp_path.glob("*.tmp")) == []
    read = again.scan("gpu", 0).collect()
    assert read["at"].min() == second.start
    assert len(again.problems) == 1
    assert first.path.name in again.problems[0]


def test_old_and_surplus_segments_are_removed(tmp_path: Path) -> None:
    """Retention by age removes the old, by size the oldest."""
    given = history(tmp_path, keep_s=1500.0)
    fill(given, 90)
    assert all(s.end >= START + 89 * 60 - 1500 - 600 for s in given.segments())
    newest = given.segments()[-1]
    given.keep_bytes = newest.size
    given.prune(START)
    assert [s.path for s in given.segments()] == [newest.path]


def test_samples_too_close_are_dropped(tmp_path: Path) -> None:
    """The history takes a sample every half minute at most."""
    given = history(tmp_path)
    for now in (START, START + 10, START + 30, START + 25):
        given.append(frames(now, 1))
    assert sorted(given.scan("gpu", 0).collect()["at"].unique()) == [START, START + 30]


def test_a_clock_that_was_set_back_does_not_stop_the_history(tmp_path: Path) -> None:
    """What was kept before the step is written, and sampling goes on at the new time."""
    given = history(tmp_path)
    for now in (START, START + 30, START - 3600, START - 3570):
        given.append(frames(now, 1))
    given.flush()
    assert sorted(given.scan("gpu", 0).collect()["at"].unique()) == [START - 3600, START - 3570, START, START + 30]
    assert all(s.start < s.end for s in given.segments())


def test_a_value_that_was_not_seen_again_is_not_kept_again(tmp_path: Path) -> None:
    """A source that died on a flicker to 0 leaves one sample of it, so that a replay does not take it for a reset."""
    given = history(tmp_path)
    for seen, errors in ((0, 2), (30, 0)):
        given.append(frames(START + seen, errors))
    table = pl.DataFrame({"node": ["n0"], "index": ["0"], "seen": [START + 30], "errors": [0]})
    for now in (START + 60, START + 90):
        given.append(build(FLEET, CATALOGUE, [TelemetryBatch("dcgm", START + 30, {"gpu": table})], now))
    given.append(frames(START + 120, 2))
    kept = given.scan("gpu", 0).filter(node="n0", index="0").sort("at").collect()
    assert kept["errors"].to_list() == [2, 0, None, None, 2]
    windows = Windows(CATALOGUE)
    given.replay(windows, declare(FLEET), FLEET.revision, START + 121)
    assert windows.update(frames(START + 130, 2)).tables["gpu"].frame["short"][0] == 0.0


def test_an_empty_history_is_empty(tmp_path: Path) -> None:
    """Nothing recorded: nothing is read and nothing replayed."""
    given = history(tmp_path / "new" / "folder")
    assert given.scan("gpu", 0).collect().is_empty()
    assert given.replay(Windows(CATALOGUE), declare(FLEET), FLEET.revision, START) == 0


def damaged_page(path: Path) -> None:
    """Overwrite the pages and leave the footer, which says what is where, whole."""
    data = bytearray(path.read_bytes())
    footer = int.from_bytes(data[-8:-4], "little") + 8
    for place in range(4, len(data) - footer):
        data[place] ^= 0xA5
    path.write_bytes(bytes(data))


def column_of_text(path: Path) -> None:
    frame = pl.read_parquet(path)
    frame.with_columns(pl.lit("many").alias("errors")).write_parquet(path)


@pytest.mark.parametrize("damage", [damaged_page, column_of_text])
def test_a_damaged_segment_does_not_stop_the_replay(tmp_path: Path, damage: Callable[[Path], None]) -> None:
    """The segment is put aside and said once; the others are replayed, and the turn goes on."""
    given, live = history(tmp_path), Windows(CATALOGUE)
    last = fill(given, 40, live)
    given.flush()
    first = given.segments("gpu")[0]
    damage(first.path)
    again, windows = history(tmp_path), Windows(CATALOGUE)
    assert again.replay(windows, declare(FLEET), FLEET.revision, last.at + 1) > 10
    assert len(again.problems) == 1
    assert first.path.name in again.problems[0]
    now = frames(last.at + 60, 40)
    short, expected = (w.update(now).tables["gpu"].frame["short"].to_list() for w in (windows, live))
    assert short == expected
    assert short[0] is not None
