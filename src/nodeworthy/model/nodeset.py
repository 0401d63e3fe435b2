"""Node sets: fold and unfold names as ClusterShell does, without its group files.

>>> fold(["n1", "n2", "n3"])
'n[1-3]'
>>> unfold("n[01-03],login")
('login', 'n01', 'n02', 'n03')
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet, NodeSetParseError, set_std_group_resolver

from nodeworthy.errors import BadRequest

set_std_group_resolver(RESOLVER_NOGROUP)


def _parse(text: str) -> Any:
    try:
        return NodeSet(text, autostep=None, resolver=RESOLVER_NOGROUP)
    except NodeSetParseError as error:
        raise BadRequest(
            f"not a node set: {text!r}: {error}", hint="write it as n1,n[3-5],rack[1-2]-n[01-18]"
        ) from error


def unfold(text: str) -> tuple[str, ...]:
    """All names of a node set, sorted as ClusterShell sorts them. Raises BadRequest on bad syntax."""
    return tuple(str(name) for name in _parse(text))


def fold(names: Iterable[str]) -> str:
    """The shortest node set with exactly these names."""
    return str(NodeSet.fromlist(list(names), autostep=None, resolver=RESOLVER_NOGROUP))
