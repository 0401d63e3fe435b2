"""Where things are: the state directory, the store and the local socket; the environment says otherwise."""

from __future__ import annotations

import os
from pathlib import Path


def state_dir() -> Path:
    """NODEWORTHY_STATE, or /var/lib/nodeworthy for root, or ~/.local/state/nodeworthy."""
    named = os.environ.get("NODEWORTHY_STATE")
    if named:
        return Path(named).expanduser()
    return Path("/var/lib/nodeworthy") if os.geteuid() == 0 else Path.home() / ".local/state/nodeworthy"


def store_url() -> str:
    """NODEWORTHY_STORE, or a SQLite file in the state directory."""
    return os.environ.get("NODEWORTHY_STORE") or str(state_dir() / "record.db")


def socket_path() -> Path:
    """NODEWORTHY_SOCKET, or below /run for root, or below the user's runtime directory."""
    named = os.environ.get("NODEWORTHY_SOCKET")
    if named:
        return Path(named).expanduser()
    if os.geteuid() == 0:
        return Path("/run/nodeworthy/nodeworthy.sock")
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    return Path(runtime) / "nodeworthy.sock" if runtime else state_dir() / "nodeworthy.sock"
