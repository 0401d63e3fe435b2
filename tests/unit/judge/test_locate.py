"""From the address in a log line to the GPU that was last seen there."""

from __future__ import annotations

import polars as pl

from nodeworthy.judge.frames import Frames, Table
from nodeworthy.judge.locate import ADDRESS, EMPTY, locate, places
from tests.pictures import START, xid


def frames(*addresses: str | None) -> Frames:
    """Node n1 with a GPU at each of the addresses; None: nothing is known of that GPU now."""
    rows = {"node": ["n1"] * len(addresses), "index": [str(i) for i in range(len(addresses))], ADDRESS: list(addresses)}
    frame = pl.DataFrame(rows, schema=dict.fromkeys(("node", "index", ADDRESS), pl.String))
    return Frames(START, "r", {"gpu": Table(frame)})


def gpu_of(address: str, known: pl.DataFrame) -> int | None:
    (event,) = locate([xid("n1", START, place=address)], known)
    return event.gpu


def test_a_gpu_that_fell_off_is_found_where_it_was() -> None:
    """It is gone from telemetry when its line is read, so its last place counts."""
    known = places(frames("0000:17:00.0", "0000:18:00.0"), EMPTY)
    known = places(frames("0000:17:00.0", None), known)

    assert gpu_of("0000:18:00", known) == 1
    assert places(frames(None, None), known).equals(known), "all silent: all last places stay"


def test_a_place_is_forgotten_when_another_is_seen_in_it() -> None:
    """After a reboot without the first of three GPUs the others move up."""
    known = places(frames("0000:17:00.0", "0000:18:00.0", "0000:19:00.0"), EMPTY)
    known = places(frames("0000:18:00.0", "0000:19:00.0", None), known)

    assert (gpu_of("0000:18:00", known), gpu_of("0000:19:00", known)) == (0, 1)
    assert gpu_of("0000:17:00", known) is None, "which GPU was there has no number now"


def test_what_cannot_be_told_stays_untold() -> None:
    """Two GPUs at one address, an unknown address, no node, and a line that says its GPU itself."""
    twice = places(frames("0000:17:00.0", "0000:17:00.0"), EMPTY)
    known = places(frames("0000:17:00.0"), EMPTY)

    assert gpu_of("0000:17:00", twice) is None
    assert gpu_of("0000:99:00", known) is None
    assert gpu_of("nvlink 3", known) is None
    said = xid("n1", START, gpu=5)
    stranger = xid("n1", START, node=None)
    assert locate([said, stranger], known) == (said, stranger)
    assert gpu_of("0000:17:00", EMPTY) is None


def test_without_gpus_nothing_is_forgotten() -> None:
    """A turn without the signal, or without GPUs at all, leaves the places as they were."""
    known = places(frames("0000:17:00.0"), EMPTY)

    assert places(Frames(START, "r", {}), known) is known
