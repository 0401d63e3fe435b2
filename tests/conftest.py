"""Fixtures that several kinds of tests share: the samples, and real Slurm clusters of three versions."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from labs.slurm_lab import SlurmLab
from labs.slurm_roots import SUITES, root_of

SLURM_VERSIONS = ("22.05", "24.11", "26.05")
Labs = Callable[..., SlurmLab]


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of facts and samples beside the repository (or NODEWORTHY_SHARED)."""
    beside = Path(__file__).resolve().parents[1].parent / "shared"
    folder = Path(os.environ.get("NODEWORTHY_SHARED", beside))
    if not folder.is_dir():
        pytest.skip(f"no shared samples at {folder} (set NODEWORTHY_SHARED)")
    return folder


def slurm_root(version: str) -> Path | None:
    """Where that version's binaries are: None is this machine. Skips, with the reason, what is not here."""
    if os.geteuid() != 0:
        pytest.skip("a Slurm lab needs root")
    if version == "22.05":
        if shutil.which("slurmctld", path="/usr/sbin") is None or shutil.which("munged", path="/usr/sbin") is None:
            pytest.skip("slurmctld and munge are not installed (Debian: slurmctld slurmd slurm-client munge)")
        return None
    root = root_of(SUITES[version])
    if root is None:
        pytest.skip(f"no Slurm {version}: python -m labs.slurm_lab bootstrap --suite {SUITES[version]}")
    return root


@pytest.fixture(scope="session")
def slurm_roots() -> Callable[[str], Path | None]:
    return slurm_root


@pytest.fixture(scope="session")
def slurm_lab() -> Iterator[Labs]:
    """`slurm_lab(version, **options)`: a running lab, the same one for the same arguments, until the tests end.

    Tests that change a lab ask for one of their own, with a `use` that nobody else has."""
    with tempfile.TemporaryDirectory(prefix="nw-slurm-") as folder:
        Path(folder).chmod(0o711)  # munge wants every folder above its socket to be passable
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
            for one in labs.values():
                one.stop()
