"""On which line of a TOML text a key stands.

`tomllib` reads fast and tells no positions; `tomlkit` tells none either. So the lines are scanned for table
headers and keys, and a place is believed only if that path exists in what was parsed: a line inside a
multi-line string may look like a key, but it names no path of the document. Used only once something is wrong.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping

Path = tuple[str | int, ...]

_KEY = r"""(?:[A-Za-z0-9_-]+|"(?:[^"\\\n]|\\.)*"|'[^'\n]*')"""
_DOTTED = rf"{_KEY}(?:\s*\.\s*{_KEY})*"
_LINE = re.compile(rf"^\s*(?:\[\[\s*(?P<array>{_DOTTED})\s*\]\]|\[\s*(?P<table>{_DOTTED})\s*\]|(?P<key>{_DOTTED})\s*=)")


def positions(text: str, document: Mapping[str, object]) -> dict[Path, int]:
    """Path → line number (from 1) of its first mention. Array elements are counted: ("nodes", 0, "class")."""
    found: dict[Path, int] = {}
    seen: dict[Path, int] = {}
    table: Path = ()
    for number, line in enumerate(text.split("\n"), start=1):
        match = _LINE.match(line)
        if match is None:
            continue
        path: Path
        if match["array"]:
            name = _parts(match["array"])
            seen[name] = seen.get(name, -1) + 1
            table = path = (*name, seen[name])
        elif match["table"]:
            table = path = _inside_arrays(_parts(match["table"]), seen)
        else:
            path = (*table, *_parts(match["key"]))
        for length in range(1, len(path) + 1):
            if _exists(document, path[:length]):
                found.setdefault(path[:length], number)
    return found


def line_of(places: Mapping[Path, int], path: Path) -> int | None:
    """The line of a path, or of the nearest thing that holds it."""
    for length in range(len(path), 0, -1):
        if path[:length] in places:
            return places[path[:length]]
    return None


def _parts(dotted: str) -> tuple[str, ...]:
    """The parts of a dotted key, quotes undone by the TOML reader itself."""
    try:
        node: object = tomllib.loads(f"{dotted}=0")
    except tomllib.TOMLDecodeError:
        return (dotted,)
    parts: list[str] = []
    while isinstance(node, dict):
        key, node = next(iter(node.items()))
        parts.append(key)
    return tuple(parts)


def _inside_arrays(name: tuple[str, ...], seen: Mapping[Path, int]) -> Path:
    """[nodes.labels] after [[nodes]] belongs to the latest element."""
    path: Path = ()
    for part in name:
        path = (*path, part)
        if path in seen:
            path = (*path, seen[path])
    return path


def _exists(document: object, path: Path) -> bool:
    node = document
    for part in path:
        if isinstance(node, list):
            node = dict(enumerate(node))
        if not isinstance(node, Mapping) or part not in node:
            return False
        node = node[part]
    return True
