"""What would be written to the scheduler, and when nothing would be."""

from __future__ import annotations

import shlex
from dataclasses import replace

from nodeworthy.decide.marks import classify
from nodeworthy.decide.would import Intention, intention, mark_text
from nodeworthy.model.finding import ComponentRef
from nodeworthy.model.hold import Effect, Hold, HoldState, Owner, OwnerKind
from nodeworthy.model.scheduler import SchedulerNode
from nodeworthy.wiring.reasons import shipped_reasons
from tests.pictures import node

HOLD = Hold(
    "h-abc123", ComponentRef("n1"), Effect.NO_NEW_WORK, Owner(OwnerKind.NODEWORTHY, ""), HoldState.WOULD,
    "it's hot; don't", 1.0, because=("hot@n1",),
)  # fmt: skip


def meant(hold: Hold, one: SchedulerNode | None) -> Intention:
    return intention(hold, one, classify(one, shipped_reasons().normalise) if one else None)


def test_a_drain_is_said_as_a_command_that_can_be_pasted() -> None:
    """The shell reads exactly our mark as the reason, also with quotes in it."""
    said = meant(HOLD, node("n1"))

    assert said.verb == "drain"
    assert shlex.split(said.sentence) == [
        "scontrol", "update", "nodename=n1", "state=drain", f"reason={mark_text(HOLD)}",
    ]  # fmt: skip
    assert mark_text(HOLD) == "nw:h-abc123 it's hot; don't"


def test_a_gpu_takes_its_node_with_it() -> None:
    """Slurm's mark is of the whole node: the part is in the text, and what leaves besides is said; jobs run on."""
    hold = replace(HOLD, subject=ComponentRef("n1", "gpu", "3"))
    said = meant(hold, node("n1", "ALLOCATED"))

    assert mark_text(hold).endswith("[gpu3]")
    assert "all of n1 leaves" in said.sentence and "run on to their end" in said.sentence


def test_nothing_is_written_over_another() -> None:
    """A person's, a machine's and our own mark each leave the slot as it is, and so does a drain without a reason."""
    taken = meant(HOLD, node("n1", "IDLE", "DRAIN", reason="bad dimm", user="alice"))
    copied = meant(HOLD, node("n1", "IDLE", "DRAIN", reason="nw:h-abc123 copied", user="alice"))
    ours = meant(HOLD, node("n1", "IDLE", "DRAIN", reason="nw:h-abc123 it is hot", user="nodeworthy"))
    bare = meant(HOLD, node("n1", "IDLE", "DRAIN"))
    leftover = meant(HOLD, node("n1", reason="old words"))

    assert {i.verb for i in (taken, copied, ours, bare, leftover)} == {"hold"}
    assert "slot is taken ('bad dimm')" in taken.sentence
    assert "slot is taken" in copied.sentence, "alice's text that looks like ours is hers"
    assert "a mark of ours" in ours.sentence
    assert "kept off it already" in bare.sentence
    assert "slot is taken ('old words')" in leftover.sentence


def test_not_yet_not_seen_and_over() -> None:
    """A hold that waits says for what, one without a scheduler says so, one that ended does nothing."""
    assert meant(replace(HOLD, waiting_for="a common cause"), node("n1")).verb == "wait"
    assert "not seen, or does not list" in meant(HOLD, None).sentence
    assert meant(replace(HOLD, state=HoldState.LIFTED), node("n1")) == Intention("hold", "it has ended")


def test_an_effect_that_a_drain_cannot_express_drains_nothing() -> None:
    """A sick NIC asks to keep multi-node work away; draining the node for it would take all of it out."""
    narrow = replace(HOLD, effect=Effect.NO_MULTI_NODE)

    said = meant(narrow, node("n1"))

    assert said.verb == "hold"
    assert "no-multi-node" in said.sentence
