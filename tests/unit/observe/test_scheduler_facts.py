"""What the scheduler says of hardware is telemetry like any other's."""

from __future__ import annotations

from dataclasses import replace

from nodeworthy.model.scheduler import SOURCE
from nodeworthy.observe.scheduler_facts import facts_of
from tests.pictures import START, catalogue, node, scheduler


def test_a_row_a_node() -> None:
    """Each node with what Slurm says it has, as of the reading; what it does not say is null, never 0."""
    batch = facts_of(scheduler([node("n1"), replace(node("n2"), gpus=None)]), catalogue().signals.values())
    frame = batch.frames["node"]

    assert (batch.source, batch.at) == (SOURCE, START)
    assert frame["node"].to_list() == ["n1", "n2"]
    assert frame["seen"].to_list() == [START, START]
    assert frame["scheduler_gpus"].to_list() == [2, None]


def test_no_nodes() -> None:
    """An empty answer has the columns and no rows."""
    assert facts_of(scheduler([]), catalogue().signals.values()).frames["node"].height == 0
