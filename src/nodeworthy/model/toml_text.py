"""TOML as plain objects, whatever the text: one reader for every file that people write.

`tomllib` raises more than its own error: ValueError on a number of more digits than Python reads, RecursionError on a
hundred thousand brackets; and a key of a hundred thousand parts costs it minutes and gigabytes. All of these are the
file's mistake, and told as such.
"""

from __future__ import annotations

import re
import tomllib
from typing import Any, Final

from nodeworthy.errors import BadFile, Problem

KEY_PARTS: Final = 200
"""More parts than this in one dotted key are no key that a person wrote (ours have at most four)."""

_DEEP_KEY = re.compile(rf"(?:\.[^.\n,=\[\]{{}}#]{{1,100}}){{{KEY_PARTS}}}")
_WHERE = re.compile(r"\s*\(at (?:line (\d+))?[^)]*\)$")


def read_toml(text: str, file: str, *, remedy: str = "correct the line; see toml.io", hint: str = "") -> dict[str, Any]:
    """The document. Raises BadFile, with the line where the reader tells it; `file` is only for messages."""
    if deep := _DEEP_KEY.search(text):
        line = text.count("\n", 0, deep.start()) + 1
        problem = Problem(file, line, "", f"not TOML that we read: a key of more than {KEY_PARTS} parts", remedy)
        raise BadFile([problem], hint=hint)
    try:
        return tomllib.loads(text)
    except RecursionError as error:
        raise BadFile([Problem(file, None, "", "not TOML: nested too deeply", remedy)], hint=hint) from error
    except ValueError as error:  # TOMLDecodeError is one
        found = _WHERE.search(str(error))
        line_or_end = int(found[1]) if found and found[1] else text.count("\n") + 1 if found else None
        message = _WHERE.sub("", str(error))
        raise BadFile([Problem(file, line_or_end, "", f"not TOML: {message}", remedy)], hint=hint) from error
