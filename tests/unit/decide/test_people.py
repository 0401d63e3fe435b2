"""What people did, and how it compares with what we would have done."""

from collections.abc import Sequence

from nodeworthy.decide import people
from nodeworthy.decide.marks import owner_of
from nodeworthy.decide.people import Act, Agreement, compare
from nodeworthy.model.record import Transition
from nodeworthy.wiring.reasons import shipped_reasons

NORMALISE = shipped_reasons().normalise


def acts(steps: Sequence[Transition]) -> list[Act]:
    return people.acts(steps, lambda t: owner_of(NORMALISE(t.reason), t.user, t.flags))


def history(*steps: tuple[float, str, str, str]) -> list[Transition]:
    return [Transition("n3", state, tuple(state.split("+")[1:]), at, reason, user) for at, state, reason, user in steps]


def test_a_drain_and_a_resume_are_two_acts() -> None:
    """The node left at 10 with a reason and came back at 50 without a name."""
    steps = history((0, "UP", "", ""), (10, "UP+DRAIN", "bad dimm", "alice"), (50, "UP", "", ""))

    assert acts(steps) == [Act("took out", "alice", 10, "bad dimm"), Act("put back", "someone", 50)]


def test_a_mark_is_as_old_as_it_says() -> None:
    """A drain from before our first look counts from its own time; one that claims to be older than our last look, at
    which the node was in service, or younger than now, does not."""

    def seen(at: float, reason_at: float | None, state: str = "UP+DRAIN") -> Transition:
        return Transition("n3", state, (), at, "bad dimm", "alice", reason_at)

    assert acts([seen(100, 40)])[0].at == 40
    assert acts([seen(50, None, "UP"), seen(100, 40)])[0].at == 100
    assert acts([seen(100, 400)])[0].at == 100
    assert acts([seen(100, None)])[0].at == 100


def test_what_machines_wrote_is_nobodys_act() -> None:
    """A drain that Slurm itself set is not counted as a person's."""
    steps = history((10, "UP+DRAIN", "Kill task failed", "root"))

    assert acts(steps) == []


def test_each_reason_of_the_past_is_read_by_itself() -> None:
    """A machine's drain of last week, of which nothing is left in the slot, is not taken for a person's."""
    steps = history(
        (10, "UP+DRAIN", "Kill task failed", "root"), (20, "UP", "", ""), (30, "UP+DRAIN", "bad dimm", "alice")
    )

    assert acts(steps) == [Act("put back", "someone", 20), Act("took out", "alice", 30, "bad dimm")]


def test_a_person_who_writes_over_a_machine_takes_it_out() -> None:
    """The later reason erases the earlier: from then on it is the person's."""
    steps = history((10, "UP+DRAIN", "NHC: check_fs_mount", "root"), (20, "UP+DRAIN", "alice has it", "alice"))

    assert acts(steps) == [Act("took out", "alice", 20, "alice has it")]


def test_a_node_that_comes_back_by_itself_was_put_back_by_nobody() -> None:
    """Slurm marks it down and takes it up again; no person did anything."""
    steps = history((10, "DOWN+NOT_RESPONDING", "Not responding", "slurm"), (20, "UP", "", ""))

    assert acts(steps) == []


def test_root_proves_nobody() -> None:
    """A mark that sudo wrote is somebody's act, and says of whom it is not known."""
    assert acts(history((10, "UP+DRAIN", "looks odd", "root")))[0].who == "someone (as root)"


def test_the_time_of_a_mark_is_the_slots() -> None:
    """A drain that we saw a minute late happened when the slot says; an older mark of the slot tells nothing."""
    late = Transition("n3", "UP+DRAIN", ("DRAIN",), 70, "x", "alice", reason_at=10)
    before = Transition("n3", "UP", (), 5)

    assert acts([before, late])[0].at == 10
    assert acts([Transition("n3", "UP", (), 50), late])[0].at == 70


def test_a_changed_reason_of_a_drained_node_is_no_second_act() -> None:
    """Only going out and coming back count."""
    steps = history((10, "UP+DRAIN", "a", "alice"), (20, "DOWN+DRAIN", "b", "bob"))

    assert [a.at for a in acts(steps)] == [10]


def test_comparisons() -> None:
    """Each of the five answers, with its lead: positive when we would have been first."""
    out, back = Act("took out", "alice", 400, "x"), Act("put back", "someone", 500)

    before = compare(500, None, [out], now=600)
    assert (before.agreement, before.lead_s) == (Agreement.BEFORE, -100)
    after = compare(100, None, [out], now=600)
    assert (after.agreement, after.lead_s) == (Agreement.AFTER, 300)
    assert compare(100, None, [out, back], now=600).agreement is Agreement.RESUMED
    assert compare(450, None, [out, back], now=600).agreement is Agreement.RESUMED, "they put it back under our hold"
    assert compare(100, 550, [out, back], now=600).agreement is Agreement.AFTER, "they repaired it, and it cleared"
    assert compare(100, 550, [back], now=600).agreement is Agreement.RESUMED
    assert compare(100, None, [out, back], now=600).lead_s is None
    assert compare(100, None, [], now=200).agreement is Agreement.TOO_EARLY
    assert compare(100, None, [], now=100 + 3600).agreement is Agreement.NOT
    assert compare(100, 300, [out], now=9000).agreement is Agreement.TOO_EARLY, "it had ended before they acted"
