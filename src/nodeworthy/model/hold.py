"""Holds: this component must not get this kind of work, because … (design law 3)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from nodeworthy.model.finding import ComponentRef, Evidence


class Effect(StrEnum):
    NO_NEW_WORK = "no-new-work"
    EVICT = "evict"
    PROOF_ONLY = "proof-only"
    NO_MULTI_NODE = "no-multi-node"


class HoldState(StrEnum):
    """`would` is the state of observe mode: decided, shown, and never written outside."""

    WOULD = "would"
    WANTED = "wanted"
    ENFORCED = "enforced"
    LIFTING = "lifting"
    LIFTED = "lifted"


class OwnerKind(StrEnum):
    PERSON = "person"
    SCHEDULER = "scheduler"
    HEALTH_PROGRAM = "health program"
    NODEWORTHY = "nodeworthy"
    RESERVATION = "reservation"  # somebody made it; its own page says who and until when
    SOMEONE = "someone"  # the slot says root or nothing: it proves nobody


@dataclass(frozen=True, slots=True)
class Owner:
    kind: OwnerKind
    name: str

    def __str__(self) -> str:
        if self.kind is OwnerKind.SOMEONE:
            return f"someone (as {self.name})" if self.name else "someone"
        return self.name if self.kind is OwnerKind.PERSON else f"{self.kind.value} {self.name}".strip()


@dataclass(frozen=True, slots=True)
class Hold:
    key: str
    subject: ComponentRef
    effect: Effect
    owner: Owner
    state: HoldState
    reason: str
    since: float
    evidence: tuple[Evidence, ...] = ()
    because: tuple[str, ...] = ()  # finding keys
    clears: str = ""
    waiting_for: str = ""
    deadline: float | None = None
    ended: float | None = None
