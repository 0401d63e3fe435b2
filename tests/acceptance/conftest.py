"""Shared by all acceptance tests: labs that are watched, and the proof that nothing was written to them."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from labs.exporter import Exporters
from labs.slurm_lab import SlurmLab
from labs.slurm_states import ExpectedNode
from tests.acceptance.site import Site
from tests.conftest import SLURM_VERSIONS, Labs, why_no_slurm
from tests.postgres import postgres_server, postgres_url

__all__ = ["postgres_server", "postgres_url"]

PERSON = "daemon"  # an operator of the lab's accounting, who stands for a person with a name of their own


@dataclass
class Watched:
    """A lab that serve watches. All changes that the tests make as people are made and counted here."""

    lab: SlurmLab
    before: Counter[str]
    by_people: Counter[str] = field(default_factory=Counter)

    def update(self, node: str, state: str, reason: str = "", user: str | None = None) -> None:
        """A person changes a node with scontrol."""
        why = [f"reason={reason}"] if reason else []
        self.lab.run("scontrol", "update", f"nodename={node}", f"state={state}", *why, user=user)
        self.by_people["REQUEST_UPDATE_NODE"] += 1

    def written_by_others(self) -> Counter[str]:
        """Requests since the start that may change something, without those that people made."""
        now = Counter(self.lab.update_requests())
        now.subtract(self.before)
        now.subtract(self.by_people)
        return Counter({name: count for name, count in now.items() if count})


@pytest.fixture(scope="session")
def watch() -> Iterator[Callable[[SlurmLab], Watched]]:
    """`watch(lab)`: from now on until all tests have ended nobody but the tests' people may write to that Slurm."""
    watched: dict[Path, Watched] = {}

    def begin(lab: SlurmLab) -> Watched:
        if lab.directory not in watched:
            watched[lab.directory] = Watched(lab, Counter(lab.update_requests()))
        return watched[lab.directory]

    yield begin
    for one in watched.values():
        assert not one.written_by_others(), f"Slurm {one.lab.version} was written to"


@pytest.fixture(scope="session")
def place() -> Iterator[Callable[[str], Path]]:
    """`place(name)`: an empty directory with a short path, because a socket's name has at most 107 bytes."""
    with tempfile.TemporaryDirectory(prefix="nwa-", dir="/tmp") as folder:

        def make(name: str) -> Path:
            path = Path(folder) / name
            path.mkdir()
            return path

        yield make


@dataclass
class States:
    """Sixteen nodes in sixteen states on one version, and a serve that watches them."""

    version: str
    site: Site
    watched: Watched
    expected: dict[str, ExpectedNode]


@pytest.fixture(scope="session", params=SLURM_VERSIONS)
def states(
    request: pytest.FixtureRequest,
    slurm_states: Callable[[str], tuple[SlurmLab, dict[str, ExpectedNode]]],
    watch: Callable[[SlurmLab], Watched],
    place: Callable[[str], Path],
) -> Iterator[States]:
    version = str(request.param)
    lab, expected = slurm_states(version)
    watched = watch(lab)
    with Site(place(f"states-{version}"), lab) as site:
        yield States(version, site, watched, expected)


@dataclass
class Ground:
    """A lab of sixteen idle nodes with exporters, for what is done to it."""

    watched: Watched
    exporters: Exporters

    @property
    def lab(self) -> SlurmLab:
        return self.watched.lab


@pytest.fixture(scope="session")
def ground(slurm_lab: Labs, watch: Callable[[SlurmLab], Watched]) -> Iterator[Ground]:
    version = next((one for one in SLURM_VERSIONS if not why_no_slurm(one)), SLURM_VERSIONS[0])
    lab = slurm_lab(version, use="acceptance", prefix="n", width=0, database=True)
    with ExitStack() as stack:
        exporters = stack.enter_context(Exporters(lab.node_names))
        yield Ground(watch(lab), exporters)
