"""A storm of lines in bounded space: of lines that say the same of one component, a minute keeps the first ones.

What says the same: host, node, GPU, component, kind, code, rule and trust are equal (trust too, so that lines that a
user forged cannot crowd out the kernel's). The last line that is kept of a minute counts those that are not (`more`),
so nothing is lost but their wording. A GPU that says a thousand lines a second takes 29,000 rows a day instead of
86 million. Runs on a connection that holds the write lock.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

import sqlalchemy as sa

from nodeworthy.model.event import LogEvent
from nodeworthy.record import tables

# As many as the judge looks at for one check and component: after a restart it can still tell "20 within the minute".
A_MINUTE: Final = 20
MINUTE_S: Final = 60.0
SAME: Final = ("host", "node", "gpu", "component", "kind", "code", "rule", "trusted")

Same = tuple[Any, ...]


def thinned(connection: sa.Connection, events: Sequence[LogEvent]) -> list[LogEvent]:
    """The events to keep, in their order, after counting the others: in the last one kept, here or in the store."""
    wanted: dict[tuple[int, Same], list[int]] = defaultdict(list)
    for place, event in enumerate(events):
        wanted[int(event.at // MINUTE_S), _same(event)].append(place)
    kept = dict(enumerate(events))
    there = _there(connection, sorted({minute for minute, _ in wanted}))
    for group, places in wanted.items():
        count, last_row = there.get(group, (0, 0))
        room = max(0, A_MINUTE - count)
        for place in places[room:]:
            del kept[place]
        over = sum(1 + events[place].more for place in places[room:])
        if over and room:
            last = places[room - 1]
            kept[last] = replace(events[last], more=events[last].more + over)
        elif over:
            table = tables.events
            more = sa.func.coalesce(table.c.more, 0) + over
            connection.execute(table.update().where(table.c.id == last_row).values(more=more))
    return list(kept.values())


def _same(event: LogEvent) -> Same:
    return tuple(
        tables.clean_text(value) if isinstance(value, str) else value for value in (getattr(event, n) for n in SAME)
    )


def _there(connection: sa.Connection, minutes: Sequence[int]) -> dict[tuple[int, Same], tuple[int, int]]:
    """(minute, what is the same) → how many rows there are of it, and the number of the last one."""
    table = tables.events
    same = [table.c[name] for name in SAME]
    found: dict[tuple[int, Same], tuple[int, int]] = {}
    for minute in minutes:
        start = minute * MINUTE_S
        query = sa.select(*same, sa.func.count(), sa.func.max(table.c.id)).group_by(*same)
        query = query.where(table.c.at >= start, table.c.at < start + MINUTE_S)
        for *values, count, last in connection.execute(query):
            found[minute, tuple(values)] = (count, last)
    return found
