"""Where a running Nodeworthy is found: the system's places, or the user's own. Only names; nothing is opened."""

from __future__ import annotations

import os
from collections.abc import Mapping

SYSTEM_STATE = "/var/lib/nodeworthy"
SYSTEM_SOCKET = "/run/nodeworthy/nodeworthy.sock"


def user_state_dir(environ: Mapping[str, str] = os.environ) -> str:
    """Where an instance of an ordinary user keeps its state (XDG base directories)."""
    home = environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")  # noqa: PTH111  (pathlib costs 5 ms)
    return f"{home}/nodeworthy"


def user_socket(environ: Mapping[str, str] = os.environ) -> str:
    """Where an instance of an ordinary user listens: a directory that only this user can write."""
    return f"{environ.get('XDG_RUNTIME_DIR') or user_state_dir(environ)}/nodeworthy.sock"


def find_socket(environ: Mapping[str, str] = os.environ) -> str:
    """NODEWORTHY_SOCKET, or else the system's socket, or else the user's own where only that one exists."""
    chosen = environ.get("NODEWORTHY_SOCKET")
    if chosen:
        return chosen
    own = user_socket(environ)
    return own if os.path.exists(own) and not os.path.exists(SYSTEM_SOCKET) else SYSTEM_SOCKET  # noqa: PTH110
