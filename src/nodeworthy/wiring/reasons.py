"""The table of reasons that ships with the package."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files

from nodeworthy.judge.reasons import Reasons, build


@cache
def shipped_reasons() -> Reasons:
    """Read once per process."""
    return build(tomllib.loads(files("nodeworthy").joinpath("catalogue/reasons.toml").read_text("utf-8")))
