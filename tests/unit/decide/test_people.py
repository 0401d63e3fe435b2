"""What people did, and how it compares with what we would have done."""

from nodeworthy.decide.people import Act, Agreement, acts, compare
from nodeworthy.model.record import NodeState as Transition


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
    assert acts([seen(50, None, "UP"), seen(100, 40)])[0].at == 50
    assert acts([seen(100, 400)])[0].at == 100
    assert acts([seen(100, None)])[0].at == 100


def test_what_machines_wrote_is_nobodys_act() -> None:
    """A drain that Slurm itself set is not counted as a person's."""
    steps = history((10, "UP+DRAIN", "Kill task failed", "root"))

    assert acts(steps, foreign=["Kill task failed"]) == []


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
    assert compare(100, None, [], now=200).agreement is Agreement.TOO_EARLY
    assert compare(100, None, [], now=100 + 3600).agreement is Agreement.NOT
    assert compare(100, 300, [out], now=9000).agreement is Agreement.TOO_EARLY, "it had ended before they acted"
