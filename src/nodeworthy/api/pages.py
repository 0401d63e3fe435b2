"""Pages: a list is sorted by key and cut after a key, so a cursor stays right while the list changes.

The cursor is opaque to clients (base64 of the last key); a key that has vanished since is no problem, because
the next page begins with the first key that is greater.
"""

from __future__ import annotations

import base64
import binascii
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

from nodeworthy.errors import BadRequest
from nodeworthy.service.views import ListAnswer

List = TypeVar("List", bound=ListAnswer)
LIMIT = 100
LIMIT_MAX = 1000


def encode(key: str) -> str:
    return base64.urlsafe_b64encode(key.encode()).decode().rstrip("=")


def decode(cursor: str) -> str:
    try:
        return base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True).decode()
    except (binascii.Error, UnicodeDecodeError, ValueError) as error:
        raise BadRequest(f"not a cursor: {cursor!r}", hint="use `next_cursor` of an answer, unchanged") from error


def cut(answer: List, key: Callable[[Any], str], cursor: str | None, limit: int) -> List:
    """The page of `answer` after `cursor`."""
    items: list[Any] = sorted(answer.items, key=key)  # type: ignore[attr-defined]
    start = bisect_right(items, decode(cursor), key=key) if cursor else 0
    page = items[start : start + limit]
    more = start + limit < len(items)
    return replace(answer, items=tuple(page), total=len(items), next_cursor=encode(key(page[-1])) if more else None)  # type: ignore[call-arg]
