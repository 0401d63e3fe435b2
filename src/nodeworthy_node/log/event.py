"""What a line is evidence of."""

from collections.abc import Mapping
from typing import Any, NamedTuple, Optional

from nodeworthy_node.log.when import iso_text

ORIGIN, SYMPTOM, APPLICATION, UNKNOWN = "origin", "symptom", "application", "unknown"
INFO, WARNING, ERROR, FATAL = "info", "warning", "error", "fatal"
ROLES = (ORIGIN, SYMPTOM, APPLICATION, UNKNOWN)
SEVERITIES = (INFO, WARNING, ERROR, FATAL)


_NOTHING: Mapping[str, Any] = {}


class Verdict(NamedTuple):
    """What a message means, whoever wrote it and whenever: the part that repeats and is remembered.

    `code` is "unknown" where the kind is plain and the code cannot be read (a cut line). `action` and `proof`
    are words of the catalogue; `details` is what was decoded (process, link, registers, recommendation).
    """

    kind: str
    code: str
    component: str
    role: str
    severity: str
    action: str
    proof: str
    meaning: str
    rule: str
    details: Mapping[str, Any] = _NOTHING


class Event(NamedTuple):
    """A classified line. `trusted`: it came by kernel transport, so that no tenant can have forged it.

    `time` is POSIX seconds or None, with the reason (or what was assumed) in `time_note`.
    """

    time: Optional[float]
    host: str
    verdict: Verdict
    trusted: bool
    message: str
    time_note: str = ""
    uptime: Optional[float] = None
    boot_id: str = ""

    @property
    def holds(self) -> bool:
        """Whether it may hold a node by itself: trusted, the origin, and bad enough (design laws 4 and 14)."""
        return self.trusted and self.verdict.role == ORIGIN and self.verdict.severity in (ERROR, FATAL)

    def as_dict(self) -> dict[str, Any]:
        """One flat object for JSON. Keys are only ever added; what does not apply is left out."""
        said = self.verdict
        row: dict[str, Any] = {
            "time": None if self.time is None else iso_text(self.time),
            "host": self.host,
            "component": said.component,
            "kind": said.kind,
            "code": said.code,
            "role": said.role,
            "severity": said.severity,
            "action": said.action,
            "proof": said.proof,
            "trusted": self.trusted,
            "rule": said.rule,
            "meaning": said.meaning,
            "message": self.message,
        }
        if self.time_note:
            row["time_note"] = self.time_note
        if self.uptime is not None:
            row["uptime"] = self.uptime
        if self.boot_id:
            row["boot_id"] = self.boot_id
        if said.details:
            row["details"] = said.details
        return row
