"""A site's catalogue that is stricter than the built-in one, so that blindness is tested in seconds.

Every value of an exporter is too old after eight seconds, and every check opens and closes at once: whatever a lie
makes true for one turn alone is a finding, with no debounce to hide it.
"""

from __future__ import annotations

import tomllib
from pathlib import Path

import tomlkit

import nodeworthy

FOLDER = Path(nodeworthy.__file__).parent / "catalogue"
MAX_AGE_S = 8


def strict_layer() -> str:
    """The layer as TOML."""
    signals = tomllib.loads((FOLDER / "signals.toml").read_text())["signal"]
    for signal in signals:
        if not signal["id"].startswith("scheduler_"):  # read every 5 s
            signal["max_age_s"] = MAX_AGE_S
    checks = [
        {**check, "for_s": 0, "clear_s": 0}
        for file in sorted((FOLDER / "checks").glob("*.toml"))
        for check in tomllib.loads(file.read_text())["check"]
        if "condition" in check
    ]
    return tomlkit.dumps({"signal": signals, "check": checks})
