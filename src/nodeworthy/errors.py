"""Every error a person may see, as one tree.

    NodeworthyError            NW-1000
    ├── BadRequest             NW-2000   yours: the command, file or value is wrong; nothing was done
    │   └── BadFile            NW-2100   a file is wrong at a place we can name (file, line, field)
    ├── WorldError             NW-3000   theirs: an outside system failed us
    │   ├── Unreachable        NW-3100   it could not be reached at all
    │   ├── TimedOut           NW-3200   it did not answer in time
    │   ├── Refused            NW-3300   it answered and said no
    │   └── Garbled            NW-3400   it answered something we cannot read
    ├── NotAllowed             NW-4000   a guard, a role or a policy says no
    ├── NotKnown               NW-5000   the thing asked for is not known to us
    └── Broken                 NW-9000   ours: a defect in Nodeworthy

Each error carries a stable `code`, one sentence (`str(error)`) and a `hint`: what to do next. A layer
that adds a fact raises a new error `from` the old one; the edge prints the whole chain once. Judgement
never raises on odd data: it answers *unknown* with a reason.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

LINE_LIMIT: Final = 1000


def _shown(sentence: str) -> str:
    """Errors quote what they could not read, and that may be a line of a million characters."""
    lines = sentence.split("\n")
    return "\n".join(
        line if len(line) <= LINE_LIMIT else f"{line[:LINE_LIMIT]}… ({len(line):,} characters)" for line in lines
    )


class NodeworthyError(Exception):
    """Root of the tree. `exit_code` is the process exit code when it reaches the command line."""

    code: ClassVar[str] = "NW-1000"
    exit_code: ClassVar[int] = 1

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(_shown(message))
        self.hint = hint

    def chain(self) -> list[str]:
        """The sentences of this error and of all that caused it, outermost first."""
        sentences: list[str] = []
        error: BaseException | None = self
        while error is not None:
            sentence = _shown(str(error)) or type(error).__name__
            if sentence not in sentences:
                sentences.append(sentence)
            error = error.__cause__
        return sentences


class BadRequest(NodeworthyError):
    code = "NW-2000"
    exit_code = 2


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong in a file: where, what, and what to do about it."""

    file: str
    line: int | None
    field: str
    message: str
    remedy: str = ""

    def __str__(self) -> str:
        where = self.file if self.line is None else f"{self.file}:{self.line}"
        field = f" {self.field}:" if self.field else ""
        remedy = f" ({self.remedy})" if self.remedy else ""
        return f"{where}:{field} {self.message}{remedy}"


class BadFile(BadRequest):
    code = "NW-2100"

    def __init__(self, problems: list[Problem], *, hint: str = "") -> None:
        super().__init__("\n".join(str(p) for p in problems), hint=hint)
        self.problems = problems


class WorldError(NodeworthyError):
    code = "NW-3000"


class Unreachable(WorldError):
    code = "NW-3100"


class TimedOut(WorldError):
    code = "NW-3200"


class Refused(WorldError):
    code = "NW-3300"


class Garbled(WorldError):
    code = "NW-3400"


class NotAllowed(NodeworthyError):
    code = "NW-4000"
    exit_code = 4


class NotKnown(NodeworthyError):
    code = "NW-5000"


class Broken(NodeworthyError):
    code = "NW-9000"
