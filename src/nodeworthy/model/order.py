"""Names in the order people expect: n2 before n10.

>>> sorted(["n10", "n2", "login"], key=natural)
['login', 'n2', 'n10']
"""

from __future__ import annotations

import re

_DIGITS = re.compile(r"(\d+)")


def natural(name: str) -> tuple[tuple[int, int, str], ...]:
    """A sort key that compares runs of digits as numbers."""
    return tuple((1, int(part), "") if part.isdecimal() else (0, 0, part) for part in _DIGITS.split(name) if part)
