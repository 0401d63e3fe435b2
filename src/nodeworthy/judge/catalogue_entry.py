"""One table of a catalogue file, read field by field; what is wrong is added to the list of problems."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from nodeworthy.errors import Problem


@dataclass
class Entry:
    """`line` is where the table starts, `lines` where each of its keys stands."""

    file: str
    layer: str
    row: Mapping[str, object]
    line: int | None
    lines: Mapping[str, int]
    problems: list[Problem]
    good: bool = field(default=True)

    @property
    def place(self) -> str:
        return self.file if self.line is None else f"{self.file}:{self.line}"

    @property
    def name(self) -> str:
        return str(self.row.get("id", ""))

    def problem(self, key: str, message: str, remedy: str = "") -> None:
        self.good = False
        where = f"{self.name}.{key}" if self.name and key != "id" else key
        self.problems.append(Problem(self.file, self.lines.get(key, self.line), where, message, remedy))

    def allow(self, *keys: str) -> None:
        for key in self.row:
            if key not in keys:
                self.problem(key, "is not known here", "known are " + ", ".join(keys))

    def text(self, key: str, *, required: bool = True) -> str:
        value = self.row.get(key, "")
        if not isinstance(value, str):
            self.problem(key, f"must be a string, not {value!r}", "put it in quotes")
            return ""
        if required and not value.strip():
            self.problem(key, "is missing", f'add {key} = "…"')
        return value.strip()

    def choice(self, key: str, allowed: tuple[str, ...], default: str | None = None) -> str:
        value = self.row.get(key, default)
        if value not in allowed:
            self.problem(
                key, f"{value!r} is not possible" if key in self.row else "is missing", "one of " + ", ".join(allowed)
            )
            return allowed[0]
        return str(value)

    def number(self, key: str, default: float | None = None) -> float | None:
        value = self.row.get(key, default)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, (int, float)) or value != value:
            self.problem(key, f"must be a number, not {value!r}", "write a plain number")
            return default
        return float(value)

    def flag(self, key: str) -> bool:
        value = self.row.get(key, False)
        if not isinstance(value, bool):
            self.problem(key, f"must be true or false, not {value!r}", "write true or false")
        return value is True

    def texts(self, key: str) -> tuple[str, ...]:
        value = self.row.get(key, [])
        if not isinstance(value, list) or not all(isinstance(v, str) for v in value):
            self.problem(key, "must be a list of strings", 'for example ["79"]')
            return ()
        return tuple(value)
