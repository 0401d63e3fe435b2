"""The systemd unit is one that systemd accepts, and agrees with the program."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from docs.tree import leaves
from nodeworthy.cli.places import SYSTEM_SOCKET, SYSTEM_STATE
from nodeworthy.wiring.config import DEFAULT

UNIT = Path(__file__).parents[2] / "packaging" / "nodeworthy.service"


def setting(name: str) -> str:
    match = re.search(rf"^{name}=(.*)$", UNIT.read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert match, f"{name} is not set"
    return match[1]


def test_systemd_accepts_the_unit(tmp_path: Path) -> None:
    """`systemd-analyze verify` has nothing to say (the program's path is replaced: it need not be installed)."""
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not installed")
    unit = tmp_path / "nodeworthy.service"
    unit.write_text(UNIT.read_text(encoding="utf-8").replace("/usr/bin/nodeworthy", "/bin/true"))
    result = subprocess.run(["systemd-analyze", "verify", str(unit)], capture_output=True, text=True, timeout=60)
    complaints = [line for line in result.stderr.splitlines() if unit.name in line]
    assert complaints == []
    assert result.returncode == 0, result.stderr


def test_unit_agrees_with_the_program() -> None:
    """Directories, the configuration's path and the command are those that the program uses by default."""
    assert f"/run/{setting('RuntimeDirectory')}/nodeworthy.sock" == SYSTEM_SOCKET
    assert f"/var/lib/{setting('StateDirectory')}" == SYSTEM_STATE
    assert setting("Environment") == f"NODEWORTHY_CONFIG={DEFAULT}"
    assert setting("ExecStart").split()[1:] == ["serve"]
    assert ("serve",) in [leaf.path for leaf in leaves()]


def test_unit_uses_the_dead_man() -> None:
    """systemd waits for READY=1, and restarts what no longer feeds its watchdog; no root, no capability."""
    assert setting("Type") == "notify"
    assert int(setting("WatchdogSec")) >= 30
    assert setting("Restart") == "on-failure"
    assert setting("User") == "nodeworthy"
    assert setting("CapabilityBoundingSet") == ""
    assert setting("NoNewPrivileges") == "yes"
