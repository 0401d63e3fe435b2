"""Fixtures that several kinds of tests share: the samples, and real Slurm clusters of three versions."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings

from labs.slurm_lab import SlurmLab
from labs.slurm_roots import SUITES, root_of
from labs.slurm_states import ExpectedNode
from nodeworthy.adapters.slurm.command import SlurmCommand

SLURM_VERSIONS = ("22.05", "24.11", "26.05")
Labs = Callable[..., SlurmLab]

# How many inputs every property test gets. `ci` gives the same inputs each time, so that a change that breaks nothing turns
# nothing red; the campaign (pytest --hypothesis-profile=campaign, or python -m benchmarks.properties) looks for new ones.
_every = {
    "deadline": None,
    "database": None,
    "suppress_health_check": [HealthCheck.too_slow, HealthCheck.data_too_large],
}
settings.register_profile("ci", max_examples=300, derandomize=True, **_every)
settings.register_profile(
    "campaign", max_examples=100_000, print_blob=True, phases=[Phase.explicit, Phase.generate, Phase.shrink], **_every
)
settings.load_profile("ci")


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of facts and samples beside the repository (or NODEWORTHY_SHARED)."""
    beside = Path(__file__).resolve().parents[1].parent / "shared"
    folder = Path(os.environ.get("NODEWORTHY_SHARED", beside))
    if not folder.is_dir():
        pytest.skip(f"no shared samples at {folder} (set NODEWORTHY_SHARED)")
    return folder


def why_no_slurm(version: str) -> str:
    """Why that version cannot be started here, or an empty text."""
    if os.geteuid() != 0:
        return "a Slurm lab needs root"
    if version == "22.05":
        here = all(shutil.which(daemon, path="/usr/sbin") for daemon in ("slurmctld", "slurmd", "munged"))
        return "" if here else "slurmctld, slurmd and munge are not installed (Debian packages of these names)"
    suite = SUITES[version]
    return "" if root_of(suite) else f"no Slurm {version} here: python -m labs.slurm_lab bootstrap --suite {suite}"


def slurm_root(version: str) -> Path | None:
    """Where that version's binaries are: None is this machine. Skips, with the reason, what is not here."""
    if reason := why_no_slurm(version):
        pytest.skip(reason)
    return None if version == "22.05" else root_of(SUITES[version])


@pytest.fixture(scope="session")
def slurm_roots() -> Callable[[str], Path | None]:
    return slurm_root


@pytest.fixture(scope="session")
def slurm_lab() -> Iterator[Labs]:
    """`slurm_lab(version, **options)`: a running lab, the same one for the same arguments, until the tests end.

    Tests that change a lab ask for one of their own, with a `use` that nobody else has."""
    with tempfile.TemporaryDirectory(prefix="nw-slurm-") as folder:
        Path(folder).chmod(0o755)  # clients of other users come in, too
        labs: dict[str, SlurmLab] = {}

        def lab(version: str, use: str = "", **options: object) -> SlurmLab:
            key = repr((version, use, sorted(options.items())))
            if key not in labs:
                directory = Path(folder) / f"lab{len(labs)}"
                labs[key] = SlurmLab(directory, root=slurm_root(version), **options).start()
            return labs[key]

        try:
            yield lab
        finally:
            with ThreadPoolExecutor() as pool:
                list(pool.map(SlurmLab.stop, labs.values()))


@pytest.fixture(scope="session")
def slurm_states(slurm_lab: Labs) -> Callable[[str], tuple[SlurmLab, dict[str, ExpectedNode]]]:
    """`slurm_states(version)`: a lab of n1 to n16 in sixteen states, and what to expect of each. For reading only.

    The states take half a minute to make, mostly waiting, so all versions that are here make them at once."""
    made: dict[str, Future[tuple[SlurmLab, dict[str, ExpectedNode]]]] = {}

    def states(version: str) -> tuple[SlurmLab, dict[str, ExpectedNode]]:
        slurm_root(version)
        if not made:
            database = shutil.which("mariadbd") is not None
            here = [one for one in SLURM_VERSIONS if not why_no_slurm(one)]
            labs = {
                one: slurm_lab(one, use="states", prefix="n", width=0, slurmd_timeout_s=9, database=database)
                for one in here
            }
            pool = ThreadPoolExecutor(max_workers=len(here))
            for one, lab in labs.items():
                made[one] = pool.submit(lambda lab=lab: (lab, lab.make_states()))
            pool.shutdown(wait=False)
        return made[version].result()

    return states


def command_for(lab: SlurmLab, timeout_s: float = 60.0) -> SlurmCommand:
    """How our adapters call that lab."""
    return SlurmCommand(env=lab.env, timeout_s=timeout_s)
