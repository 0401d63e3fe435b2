"""What a reason text of a scheduler's node means, once normalised."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from nodeworthy.model.hold import OwnerKind


class ReasonKind(StrEnum):
    """FAULT: something broke. PLANNED: somebody chose it. UNKNOWN: the text does not tell."""

    FAULT = "fault"
    PLANNED = "planned"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class ReasonCause:
    """`cause` is a stable id, `title` what people read. `owner` is who writes such a text, None where the text
    does not say; `writer` is the name under which a program signs (NHC)."""

    cause: str
    title: str
    kind: ReasonKind
    owner: OwnerKind | None = None
    writer: str = ""


NO_REASON = ReasonCause("no-reason", "No reason given", ReasonKind.UNKNOWN)
UNCLEAR = ReasonCause("unclear", "The reason does not say", ReasonKind.UNKNOWN)
HEALTH_CHECK = ReasonCause("health-check", "A health check failed", ReasonKind.FAULT)
