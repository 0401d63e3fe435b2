"""Looking for many fixed strings at once: Hyperscan where it is installed, else one regular expression.

Hyperscan is a library for x86-64; elsewhere (and on nodes) the standard library does the same, slower.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache

from nodeworthy_node.log.scan import Find, find_with_re


def finder(literals: Sequence[str]) -> Find:
    """The fastest `Find` that this machine has."""
    return _finder(tuple(literals))


@cache
def _finder(literals: tuple[str, ...]) -> Find:
    try:
        import hyperscan  # noqa: PLC0415 - only on x86-64
    except ImportError:
        return find_with_re(literals)
    database = hyperscan.Database(mode=hyperscan.HS_MODE_BLOCK)
    expressions = [re.escape(literal).encode() for literal in literals]
    database.compile(expressions=expressions, ids=list(range(len(expressions))), elements=len(expressions))

    def find(block: bytes) -> Iterable[int]:
        places: list[int] = []
        note = places.append

        def matched(_id: int, _start: int, end: int, _flags: int, _context: object) -> None:
            note(end - 1)

        database.scan(block, match_event_handler=matched)
        return places

    return find
