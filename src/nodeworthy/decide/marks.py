"""Whose mark is it, what does it say, and does it still make sense (design law 3).

Slurm has one reason slot per node and its user id proves nobody: slurmctld, hooks and everybody with `sudo` all
write as root. So the owner is told by both, text and user:

- a user id that belongs to a person is that person, whatever the text, ours copied included: a person's hold is never
  lifted by a machine;
- a text that begins as ours is ours (what we wrote is compared verbatim before anything is lifted);
- a text that only Slurm writes is the scheduler's, a signed text its program's;
- anything else written as root is *someone*.

*Contradictory* and *orphaned* are reasons to look, never to lift: a mark hides whatever came after it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from nodeworthy.model.hold import Owner, OwnerKind
from nodeworthy.model.reason import NO_REASON, ReasonCause, ReasonKind
from nodeworthy.model.scheduler import BaseState, SchedulerNode, SchedulerSnapshot

SCHEDULER_NAME = "slurm"
OUR_USER = "nodeworthy"  # that the unit serves as; without our text, somebody used our account
SYSTEM_USERS = frozenset({"root", "slurm", "0", ""})
"""User ids that daemons and hooks write as. Sites with another SlurmUser add it."""

MARKED_FLAGS = frozenset({"DRAIN", "FAIL", "INVALID_REG"})
POWER_FLAGS = frozenset({"POWERED_DOWN", "POWERING_DOWN", "POWER_DOWN", "POWERING_UP", "POWER_UP", "CLOUD"})
REBOOT_FLAGS = frozenset({"REBOOT_ISSUED", "REBOOT_REQUESTED"})
REBOOT_CAUSES = frozenset({"reboot", "reboot-timeout", "unexpected-reboot", "maintenance"})
REGISTRATION_CAUSES = frozenset({"gres-count", "gres-other", "low-memory", "low-cpus", "low-tmpdisk"})

Normalise = Callable[[str], ReasonCause]


@dataclass(frozen=True, slots=True)
class MarkView:
    """What is known of the mark on a node.

    `cause` and `title` are of the normalised reason. `age_s` is None where the time of the mark is not known.
    `contradictory` are sentences that tell which two statements exclude each other; `orphaned_because` tell why
    nobody may be going to lift this mark.
    """

    owner: Owner
    cause: str
    title: str
    kind: ReasonKind
    reason: str
    user: str | None
    at: float | None
    age_s: float | None = None
    contradictory: tuple[str, ...] = ()
    orphaned_because: tuple[str, ...] = ()

    @property
    def orphaned(self) -> bool:
        return bool(self.orphaned_because)


def classify(
    node: SchedulerNode,
    normalise: Normalise,
    now: float | None = None,
    system_users: frozenset[str] = SYSTEM_USERS,
) -> MarkView | None:
    """The mark on `node`; None where there is none: no reason, and no state that would need one.

    `normalise` is `judge.reasons.Reasons.normalise`; `now` (POSIX seconds) is for the age alone.
    """
    mark = node.mark
    if mark is None and not node.flags & MARKED_FLAGS and node.base is not BaseState.DOWN:
        return None
    reason = mark.reason if mark else ""
    user = mark.user if mark else None
    at = mark.at if mark else None
    said = normalise(reason)
    if said.kind is ReasonKind.UNKNOWN and node.flags & REBOOT_FLAGS:
        said = normalise("reboot requested")  # the text does not say why, but the state says what for
    return MarkView(
        owner=owner_of(said, user, node.flags, system_users),
        cause=said.cause,
        title=said.title,
        kind=said.kind,
        reason=reason,
        user=user,
        at=at,
        age_s=None if at is None or now is None else max(0.0, now - at),
        contradictory=_contradictory(node, said, reason),
        orphaned_because=_orphaned(node, said, at),
    )


def read_marks(scheduler: SchedulerSnapshot | None, normalise: Normalise, now: float) -> dict[str, MarkView]:
    """The marks of all nodes that have one. What Slurm's own daemons write is nobody's act, whoever they run as."""
    if scheduler is None:
        return {}
    users = SYSTEM_USERS | scheduler.daemon_users
    found = ((name, classify(node, normalise, now, users)) for name, node in scheduler.nodes.items())
    return {name: mark for name, mark in found if mark is not None}


def owner_of(
    said: ReasonCause, user: str | None, flags: Collection[str], system_users: frozenset[str] = SYSTEM_USERS
) -> Owner:
    """Whose mark it is, by its normalised reason, the user id it was written as and the state of the node."""
    if user is not None and user not in system_users | {OUR_USER}:
        return Owner(OwnerKind.PERSON, user)
    if said.owner is OwnerKind.NODEWORTHY:
        return Owner(OwnerKind.NODEWORTHY, said.writer)
    if user == OUR_USER:
        return Owner(OwnerKind.PERSON, user)
    if said.owner is OwnerKind.SCHEDULER:
        return Owner(OwnerKind.SCHEDULER, SCHEDULER_NAME)
    if said.owner is OwnerKind.HEALTH_PROGRAM:
        return Owner(OwnerKind.HEALTH_PROGRAM, said.writer)
    if said == NO_REASON and ("INVALID_REG" in flags or "NOT_RESPONDING" in flags):
        return Owner(OwnerKind.SCHEDULER, SCHEDULER_NAME)  # states that nobody but Slurm sets
    return Owner(OwnerKind.SOMEONE, user or "")


def _contradictory(node: SchedulerNode, said: ReasonCause, reason: str) -> tuple[str, ...]:
    found = []
    out = bool(node.flags & (MARKED_FLAGS | REBOOT_FLAGS | {"MAINTENANCE"})) or node.base in (
        BaseState.DOWN,
        BaseState.ERROR,
        BaseState.UNKNOWN,
    )
    if reason and not out and not node.flags & (POWER_FLAGS | {"NOT_RESPONDING"}):
        found.append("it carries a reason and yet is in service")
    if node.has("INVALID_REG") and said != NO_REASON and said.cause not in REGISTRATION_CAUSES:
        found.append(
            "it registers less than configured, which its reason does not say: there are two causes in one slot"
        )
    if said.cause in REGISTRATION_CAUSES and node.has("DRAIN") and not node.has("INVALID_REG"):
        found.append("its reason says that it registered too little, its state that it now registers enough")
    return tuple(found)


def _orphaned(node: SchedulerNode, said: ReasonCause, at: float | None) -> tuple[str, ...]:
    found = []
    drained = node.has("DRAIN") or node.has("FAIL")
    if drained and said == NO_REASON:
        found.append("nobody said why")
    if said.cause == "not-responding" and node.base is not BaseState.DOWN and not node.has("NOT_RESPONDING"):
        found.append("the node answers again")
    if not drained or at is None:
        return tuple(found)
    if said.cause in REGISTRATION_CAUSES and node.slurmd_start_at is not None and node.slurmd_start_at > at:
        found.append(
            "its slurmd has started again after the mark (compare what the node has now with what is configured)"
        )
    if said.cause in REBOOT_CAUSES and not node.flags & REBOOT_FLAGS and node.boot_at is not None and node.boot_at > at:
        found.append("it has booted since the mark that speaks of a reboot")
    return tuple(found)
