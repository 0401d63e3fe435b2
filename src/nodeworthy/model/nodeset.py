"""Node sets: fold and unfold names as ClusterShell does, without its group files.

>>> fold(["n1", "n2", "n3"])
'n[1-3]'
>>> unfold("n[01-03],login")
('login', 'n01', 'n02', 'n03')
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet, NodeSetException, set_std_group_resolver
from ClusterShell.RangeSet import RangeSetException

from nodeworthy.errors import BadRequest

set_std_group_resolver(RESOLVER_NOGROUP)

# ClusterShell makes every name as it parses, so a slip like n[1-999999999] would take the machine's memory
LIMIT: Final = 1_000_000
_HINT = "write it as n1,n[3-5],rack[1-2]-n[01-18]"
# both read a text once, whatever stands in it: a million brackets or commas cost a moment
_BRACKET = re.compile(r"\[([^\[\]]*)\]")
_PART = re.compile(r"(?:[^,\[]|\[[^\]]*\]?)+")
_RANGE = re.compile(r"^\s*(\d+)\s*-\s*(\d+)\s*(?:/\s*(\d+)\s*)?$")


def _at_most(text: str) -> int:
    """No fewer names than `text` stands for, told without making them."""
    total = 1
    for bracket in _BRACKET.findall(text):
        size = 0
        for part in bracket.split(","):
            match = _RANGE.match(part)
            size += 1 if match is None else max(1, abs(int(match[2]) - int(match[1])) + 1)
        total *= size
    return total


def _parse(text: str) -> Any:
    # int() of Python refuses numbers of more than 4,300 digits, and no host name has more than 253 characters
    if re.search(r"\d{19}", text):
        raise BadRequest("not a node set: a number in it has more than 18 digits", hint=_HINT)
    if "[" in text and max(map(_at_most, _PART.findall(text))) > LIMIT:
        raise BadRequest(f"not a node set: {text[:80]!r} stands for more than {LIMIT:,} names", hint=_HINT)
    try:
        return NodeSet(text, autostep=None, resolver=RESOLVER_NOGROUP)
    except (NodeSetException, RangeSetException, ValueError, AssertionError) as error:
        # ClusterShell asserts that a range is no larger than 10⁹; digits after a bracket, n[1-2]999999999, make one
        reason = str(error)[:200]  # ClusterShell repeats the text, which may be a million characters long
        raise BadRequest(f"not a node set: {text[:80]!r}: {reason}", hint=_HINT) from error


def unfold(text: str) -> tuple[str, ...]:
    """All names of a node set, sorted as ClusterShell sorts them. Raises BadRequest on bad syntax."""
    return tuple(str(name) for name in _parse(text))


def fold(names: Iterable[str]) -> str:
    """The shortest node set with exactly these names. Raises BadRequest if one is no name."""
    return str(_parse(",".join(names)))
