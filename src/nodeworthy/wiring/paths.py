"""Where things are when nobody says otherwise: the state directory, the store and the local socket.

The system's places where we may write there (root, or the service's own user), else the user's own. The
environment wins over the configuration: NODEWORTHY_STATE, NODEWORTHY_STORE, NODEWORTHY_SOCKET.
"""

from __future__ import annotations

import os
from pathlib import Path

from nodeworthy.cli import places


def state_dir() -> Path:
    """NODEWORTHY_STATE, or /var/lib/nodeworthy where we may write there, or ~/.local/state/nodeworthy."""
    named = os.environ.get("NODEWORTHY_STATE")
    if named:
        return Path(named).expanduser()
    return Path(places.SYSTEM_STATE if _ours(Path(places.SYSTEM_STATE)) else places.user_state_dir())


def socket_path() -> Path:
    """NODEWORTHY_SOCKET, or below /run where we may write there, or below the user's runtime directory."""
    named = os.environ.get("NODEWORTHY_SOCKET")
    if named:
        return Path(named).expanduser()
    system = Path(places.SYSTEM_SOCKET)
    return system if _ours(system.parent) else Path(places.user_socket())


def store_url() -> str:
    """The store that `serve` uses here: NODEWORTHY_STORE, or what the configuration says."""
    from nodeworthy.wiring.config import load

    return os.environ.get("NODEWORTHY_STORE") or load()[0].store_url


def _ours(directory: Path) -> bool:
    return os.geteuid() == 0 or os.access(directory, os.W_OK)
