"""Checks of ourselves that look at the outside: the store, the disk, the fleet file."""

from __future__ import annotations

import shutil
from pathlib import Path

from nodeworthy.errors import NodeworthyError
from nodeworthy.ports import Clock, Store
from nodeworthy.service.selfcheck import SelfCheck
from nodeworthy.service.views import CheckState, CheckView
from nodeworthy.wiring.settings import Settings

LOW_SHARE = 0.05  # our judgement: below five percent free a disk fills faster than anybody reacts
LOW_BYTES = 1 << 30


def all_of(settings: Settings, store: Store, clock: Clock, declared: bool) -> list[SelfCheck]:
    return [
        lambda: store_check(store),
        lambda: disk_check(settings.state_dir),
        lambda: fleet_check(declared),
    ]


def store_check(store: Store) -> CheckView:
    """Whether the record answers. Asking writes nothing and counts nothing: that it can be written is shown by the
    turn, whose every round commits."""
    try:
        sequence = store.sequence()
    except NodeworthyError as error:
        return CheckView(
            "store", CheckState.FAIL, f"cannot be read: {error}", error.hint or "check its disk and rights"
        )
    return CheckView("store", CheckState.OK, f"answers; ledger at {sequence}")


def disk_check(directory: Path) -> CheckView:
    try:
        usage = shutil.disk_usage(directory)
    except OSError as error:
        return CheckView("disk", CheckState.UNKNOWN, f"cannot look at {directory}: {error.strerror}", "check the path")
    said = f"{usage.free / 2**30:.1f} GiB of {usage.total / 2**30:.0f} GiB free at {directory}"
    if usage.free < LOW_BYTES or usage.free < LOW_SHARE * usage.total:
        return CheckView("disk", CheckState.WARN, said, "make room, or shorten `retention`")
    return CheckView("disk", CheckState.OK, said)


def fleet_check(declared: bool) -> CheckView:
    if declared:
        return CheckView("fleet", CheckState.OK, "the fleet is declared in a fleet file")
    return CheckView(
        "fleet",
        CheckState.WARN,
        "no fleet file: the fleet is what Slurm lists, so a node that Slurm forgets is not missed",
        "nodeworthy fleet import slurm --to fleet.toml",
    )
