"""The meeting place of observers and turn: handed over once, given back whole, and old words are not the present."""

from __future__ import annotations

import pytest

from nodeworthy.observe.snapshot import Seen, Snapshot, SourceReading
from tests.pictures import START, node, scheduler, xid


def reading(kind: str = "scheduler", **more: object) -> SourceReading:
    return SourceReading("s", kind, 30.0, START, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("last_ok", "after", "lost"),
    [
        (None, 89.0, False),
        (None, 91.0, True),
        (START + 100, 189.0, False),
        (START + 100, 191.0, True),
        (START + 100, 95.0, False),
        (START + 3600, 100.0, True),
    ],
)
def test_lost(last_ok: float | None, after: float, lost: bool) -> None:
    """Three rounds without an answer lose a source, from the start too; and an answer from far ahead tells no age."""
    assert reading(last_ok=last_ok).lost(START + after) is lost


def test_events_are_handed_over_once_and_given_back_in_order() -> None:
    """A second turn does not get them again; what is given back comes before what came since."""
    first, second = xid("n1", START), xid("n2", START + 1)
    snapshot = Snapshot(events=[first])

    seen = snapshot.take()
    snapshot.events.append(second)
    assert seen.events == (first,)
    snapshot.put_back(seen.events)
    assert snapshot.take().events == (first, second)
    assert snapshot.take().events == ()


def test_a_view_does_not_change_with_the_snapshot() -> None:
    """What a turn took stays as it was when observers write on."""
    snapshot = Snapshot(sources={"s": reading()}, cursors={"log": {"offset": 1}})
    seen = snapshot.take()
    snapshot.sources["t"], snapshot.cursors["log"] = reading(), {"offset": 2}

    assert (set(seen.sources), seen.cursors["log"]) == ({"s"}, {"offset": 1})


def seen(**sources: SourceReading) -> Seen:
    return Seen(scheduler([node("n1")]), (), (), {}, sources)


def test_the_last_word_of_a_silent_scheduler_is_not_the_present() -> None:
    """Within three rounds it is, after them it is not, with the reason in words."""
    failing = seen(s=reading(last_ok=START, problem="connection refused"))

    assert failing.current(START + 60).scheduler is not None
    assert failing.current(START + 100).scheduler is None
    assert failing.why_no_scheduler(START + 100) == "the scheduler is not seen: connection refused"
    hanging = seen(s=reading(last_ok=START))
    assert "does not answer in time" in hanging.why_no_scheduler(START + 100)
    assert "not answered yet" in Seen(None, (), (), {}, {"s": reading()}).why_no_scheduler(START)
    assert seen().why_no_scheduler(START) == "no scheduler is configured"


def test_who_is_silent() -> None:
    """Schedulers and logs are silent, telemetry is down; also where nothing but time tells so."""
    both = seen(log=reading("log", last_ok=START), dcgm=reading("exporter", last_ok=START))

    assert [s.kind for s in both.silent(START + 100)] == ["log"]
    assert both.down(START + 100) == {"s": "it does not answer in time"}
    assert (both.silent(START + 5), both.down(START + 5)) == ([], {})
