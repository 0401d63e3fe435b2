"""What is seen of identities, and what is answered: the words of `model.identity`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Protocol, TypeVar

from nodeworthy.model.finding import ComponentRef, Evidence, Finding, Severity, Verdict

# A GPU cannot leave one chassis and work in another sooner: power off, move, power on, POST and boot of a GPU
# server take longer than this. Nearer sightings in two places contradict; later ones are a move. (A bound of
# ours, chosen below any published boot time of an 8-GPU server with its memory training.)
MOVE_S: Final = 600.0


class NameKind(StrEnum):
    """Who calls a node by a name."""

    SCHEDULER = "scheduler"
    SYSLOG = "syslog"
    EXPORTER = "exporter"
    BMC = "bmc"
    BOOT = "boot"
    SERIAL = "serial"


@dataclass(frozen=True, slots=True)
class GpuSeen:
    """A GPU as one source saw it. Empty and None: the source does not say."""

    uuid: str = ""
    pci: str = ""
    index: int | None = None
    serial: str = ""


@dataclass(frozen=True, slots=True)
class Observed:
    """What one source saw together on one machine, which it calls `name`. `at`: POSIX seconds.

    `gpus` None: the source did not look for GPUs; a tuple is all that it found.
    """

    source: str
    at: float
    kind: NameKind
    name: str
    cluster: str = ""
    serial: str = ""
    boot_id: str = ""
    gpus: tuple[GpuSeen, ...] | None = None


@dataclass(frozen=True, slots=True)
class Resolution:
    """The declared node, or None and why not."""

    node: str | None
    why: str = ""


@dataclass(frozen=True, slots=True)
class GpuResolution:
    """The GPU, or None and why not."""

    gpu: GpuSeen | None
    why: str = ""


@dataclass(frozen=True, slots=True)
class Doubt:
    """Something about identity that is not settled. `check`: identity.conflict | identity.unknown."""

    check: str
    subject: str  # "exporter:n1", "gpu:GPU-…": stable over turns
    summary: str
    nodes: tuple[str, ...] = ()
    evidence: tuple[Evidence, ...] = ()

    def finding(self, since: float) -> Finding:
        """As a finding about the identity itself: it blames no node."""
        return Finding(
            check=self.check,
            component=ComponentRef("", "identity", self.subject),
            verdict=Verdict.TRUE,
            severity=Severity.WARNING,
            confidence=1.0,
            since=since,
            summary=self.summary,
            evidence=self.evidence,
            clears="the names agree with the fleet file again",
        )


class Timed(Protocol):
    """Something that was seen at a time."""

    @property
    def at(self) -> float: ...


Seen = TypeVar("Seen", bound=Timed)


def present(sightings: Iterable[Seen]) -> list[Seen]:
    """The sightings that speak of now: those less than MOVE_S older than the newest of them."""
    kept = list(sightings)
    newest = max((s.at for s in kept), default=0.0)
    return [s for s in kept if newest - s.at < MOVE_S]


def conflict(subject: str, summary: str, nodes: Iterable[str] = (), evidence: Iterable[Evidence] = ()) -> Doubt:
    """A contradiction about identity."""
    return Doubt("identity.conflict", subject, summary, tuple(sorted(nodes)), tuple(evidence))
