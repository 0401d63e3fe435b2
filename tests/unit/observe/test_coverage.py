"""What a source had and has no more is said, as long as it lasts and not for ever."""

from __future__ import annotations

import polars as pl

from nodeworthy.observe.coverage import FORGET_S, Coverage
from nodeworthy.ports import TelemetryBatch


def batch(at: float, *nodes: str, kind: str = "gpu", **columns: float) -> TelemetryBatch:
    frame = pl.DataFrame({"node": nodes, "index": "0", "seen": at, **columns})
    return TelemetryBatch("s", at, {kind: frame} if nodes else {})


def test_nodes_that_drop_out_are_named_until_they_return() -> None:
    """A rack that leaves the targets is a node set in one sentence."""
    coverage = Coverage()
    assert coverage.missing(batch(0.0, "n1", "n2", "n3", "n4")) == ()
    assert coverage.missing(batch(60.0, "n4")) == ("gpu data of 3 nodes were there before: n[1-3]",)
    assert coverage.missing(batch(120.0, "n4")) == ("gpu data of 3 nodes were there before: n[1-3]",)
    assert coverage.missing(batch(180.0, "n1", "n2", "n3", "n4")) == ()


def test_a_node_is_forgotten_after_a_day() -> None:
    """A node that was taken away for good does not accuse its source for ever."""
    coverage = Coverage()
    coverage.missing(batch(0.0, "n1", "n2"))
    assert coverage.missing(batch(FORGET_S - 1, "n2")) != ()
    assert coverage.missing(batch(FORGET_S + 1, "n2")) == ()


def test_when_everything_is_gone_all_is_said() -> None:
    """An empty batch after a full one misses each signal and each node."""
    coverage = Coverage()
    coverage.missing(batch(0.0, "n1", temperature=41.0))
    signals, nodes = coverage.missing(batch(60.0), other_names={"NEW_NAME"})
    assert signals == "1 signals were reported before and now by nobody: temperature; names not understood: NEW_NAME"
    assert nodes == "gpu data of 1 nodes were there before: n1"


def test_many_missing_nodes_are_cut() -> None:
    """One sentence stays readable."""
    coverage = Coverage()
    coverage.missing(batch(0.0, *(f"n{k:04d}" for k in range(500))))
    (sentence,) = coverage.missing(batch(60.0, "n9999"))
    assert sentence.startswith("gpu data of 500 nodes") and sentence.endswith("n[0000-0199] and 300 more")
