"""The event stream: resumable by ledger sequence, nothing missed, nothing twice."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.client import HTTPResponse

import pytest

from nodeworthy.api.app import _HEARTBEAT_LOOKS, _stream
from nodeworthy.cli.client import Client, connect
from tests.views_in_memory import MemoryViews, entries


@contextmanager
def stream(client: Client, query: str = "", headers: dict[str, str] | None = None) -> Iterator[HTTPResponse]:
    connection = connect(client.path, 10)
    connection.request("GET", "/v1/events" + query, headers=headers or {})
    yield connection.getresponse()
    connection.close()


def take(response: HTTPResponse, number: int) -> list[dict[str, str]]:
    """So many events: their fields."""
    events: list[dict[str, str]] = []
    fields: dict[str, str] = {}
    while len(events) < number:
        line = response.readline().decode().rstrip("\n")
        if not line and fields:
            events.append(fields)
            fields = {}
        elif line and not line.startswith(":"):
            key, _, value = line.partition(": ")
            fields[key] = value
    return events


def test_events_carry_sequence_kind_and_entry(client: Client) -> None:
    """id is the sequence, event the kind, data the whole entry."""
    with stream(client, "?after=0") as response:
        assert response.headers["content-type"].startswith("text/event-stream")
        (first, *_) = take(response, 3)
    assert (first["id"], first["event"]) == ("1", "finding.opened")
    assert json.loads(first["data"])["summary"] == "entry 1"


def test_a_client_that_reconnects_goes_on_where_it_was(client: Client, views: MemoryViews) -> None:
    """Last-Event-ID resumes exactly after that entry, and wins over the query."""
    views.ledger_ = entries(2000)
    with stream(client, "?after=0") as response:
        seen = [int(e["id"]) for e in take(response, 700)]
    with stream(client, "?after=0", {"Last-Event-ID": str(seen[-1])}) as response:
        seen += [int(e["id"]) for e in take(response, 1300)]
    assert seen == list(range(1, 2001))


def test_without_a_start_only_what_comes_is_sent(client: Client, views: MemoryViews) -> None:
    """A new follower gets the next entry, not the past."""
    with stream(client) as response:
        response.readline()  # the greeting: the start is fixed now
        views.ledger_ = entries(4)
        assert [e["id"] for e in take(response, 1)] == ["4"]


def test_negative_start_counts_from_the_end(client: Client, views: MemoryViews) -> None:
    """after=-2 begins with the last two entries."""
    views.ledger_ = entries(10)
    with stream(client, "?after=-2") as response:
        assert [e["id"] for e in take(response, 2)] == ["9", "10"]


@pytest.mark.parametrize("wrong", ["abc", "", "-1", "1e3", "9" * 30])
def test_bad_event_id_is_a_problem(client: Client, wrong: str) -> None:
    """A Last-Event-ID that is no sequence is refused, not taken for 0."""
    with stream(client, headers={"Last-Event-ID": wrong}) as response:
        assert response.status == 400
        assert json.loads(response.read())["code"] == "NW-2000"


def test_a_line_break_in_an_entry_does_not_break_the_stream(client: Client, views: MemoryViews) -> None:
    """A summary with line breaks (a log line) stays one event."""
    first, second, *_ = entries(2)
    views.ledger_ = [replace(first, summary="one\n\nevent: forged\ndata: {}\n\n"), second]
    with stream(client, "?after=0") as response:
        events = take(response, 2)
    assert [e["event"] for e in events] == ["finding.opened", "finding.opened"]
    assert json.loads(events[0]["data"])["summary"].startswith("one\n\nevent: forged")


def test_a_kind_with_a_line_break_cannot_forge_an_event(client: Client, views: MemoryViews) -> None:
    """What stands in the event field is one line whatever the entry's kind is."""
    first, *_ = entries(1)
    views.ledger_ = [replace(first, kind="a\ndata: {}\n\nid: 99")]
    with stream(client, "?after=0") as response:
        (event,) = take(response, 1)
    assert event["id"] == "1"
    assert json.loads(event["data"])["sequence"] == 1


def test_heartbeat_keeps_a_quiet_stream_open() -> None:
    """After 30 looks without news a comment line is sent."""

    async def run() -> list[str]:
        sent: list[str] = []
        looks = 0

        async def sleep(seconds: float) -> None:
            nonlocal looks
            assert seconds == pytest.approx(0.5)
            looks += 1

        async for part in _stream(MemoryViews(), 3, sleep, asyncio.Event()):
            sent.append(part)
            if len(sent) == 3:
                break
        assert looks == 2 * _HEARTBEAT_LOOKS - 1
        return sent

    assert asyncio.run(run()) == [": nodeworthy ledger\n\n", ": still here\n\n", ": still here\n\n"]


def test_command_line_follows_the_stream(client: Client, views: MemoryViews) -> None:
    """The client's iterator gives entries as dictionaries, in order."""
    views.ledger_ = entries(5)
    events = client.events(2)
    assert [next(events)["sequence"] for _ in range(3)] == [3, 4, 5]
    events.close()  # type: ignore[attr-defined]
