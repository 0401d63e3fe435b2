"""Other Slurm versions: unpacked Debian roots, made once by debootstrap and kept.

    /var/cache/nodeworthy/slurm/trixie   Slurm 24.11
    /var/cache/nodeworthy/slurm/sid      Slurm 26.05 (sid moves)

NODEWORTHY_SLURM_ROOTS names another folder for them. A root needs no lasting mounts: each command enters it
in a mount namespace of its own (`slurm_scripts/enter`).
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from labs.processes import LabError

SUITES = {"24.11": "trixie", "26.05": "sid"}
PACKAGES = (
    "slurmctld",
    "slurmd",
    "slurm-client",
    "slurmdbd",
    "slurm-wlm-basic-plugins",
    "slurm-wlm-jwt-plugin",
    "munge",
)
BOOTSTRAP_TIMEOUT_S = 900


def roots_folder() -> Path:
    return Path(os.environ.get("NODEWORTHY_SLURM_ROOTS", "/var/cache/nodeworthy/slurm"))


def root_of(suite: str) -> Path | None:
    """The unpacked root of a Debian suite, or None when it was not made here."""
    root = roots_folder() / suite
    return root if (root / "usr/sbin/slurmctld").exists() else None


def installed(root: str) -> tuple[tuple[int, int], str]:
    """Version and plugin folder (seen from inside) of the Slurm below `root`; "" is this machine."""
    if not Path(f"{root}/usr/sbin/slurmctld").exists():
        raise LabError(f"no slurmctld under {root or '/'}: install slurmctld and slurmd, or bootstrap a root")
    argv = ["chroot", root, "slurmctld", "-V"] if root else ["/usr/sbin/slurmctld", "-V"]
    said = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=30).stdout
    found = re.search(r"(\d+)\.(\d+)", said)
    if found is None:
        raise LabError(f"slurmctld -V said {said!r}")
    for kind in ("slurm-wlm", "slurm"):
        for folder in sorted(Path(f"{root}/usr/lib").glob(f"*/{kind}")):
            return (int(found[1]), int(found[2])), "/" + str(folder).removeprefix(root).lstrip("/")
    raise LabError("no Slurm plugins: install slurm-wlm-basic-plugins")


def bootstrap(suite: str) -> Path:
    """Unpack Slurm of that suite unless it is there. Atomic: a root appears whole or not at all."""
    if (root := root_of(suite)) is not None:
        return root
    if shutil.which("debootstrap") is None:
        raise LabError("debootstrap is not installed: apt-get install debootstrap")
    if os.geteuid() != 0:
        raise LabError("debootstrap needs root")
    folder = roots_folder()
    folder.mkdir(parents=True, exist_ok=True)
    unpacked = Path(tempfile.mkdtemp(prefix=f".{suite}-", dir=folder))
    try:
        unpacked.chmod(0o755)
        subprocess.run(
            ["debootstrap", "--variant=minbase", f"--include={','.join(PACKAGES)}", suite, str(unpacked)],
            check=True,
            stdout=sys.stderr,
            timeout=BOOTSTRAP_TIMEOUT_S,
        )
        for archive in (unpacked / "var/cache/apt/archives").glob("*.deb"):
            archive.unlink()
        try:
            unpacked.rename(folder / suite)
        except OSError:  # somebody else was faster: theirs is as good
            if root_of(suite) is None:
                raise
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
        raise LabError(f"debootstrap of {suite} failed: {error}") from error
    finally:
        if unpacked.exists():
            shutil.rmtree(unpacked)
    root = root_of(suite)
    if root is None:
        raise LabError(f"debootstrap of {suite} left no slurmctld")
    return root
