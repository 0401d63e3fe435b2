"""One reading of the Slurm at hand, for commands that run alone."""

from __future__ import annotations

import asyncio
from pathlib import Path

from nodeworthy.adapters.clock import SystemClock
from nodeworthy.adapters.slurm.command import SlurmCommand
from nodeworthy.adapters.slurm.scheduler import SlurmScheduler
from nodeworthy.model.scheduler import SchedulerSnapshot


def read_slurm(conf: Path | None = None, bin_dir: Path | None = None) -> SchedulerSnapshot:
    """The scheduler now. `conf`: a slurm.conf other than Slurm's own choice. Raises WorldError."""
    command = SlurmCommand(env={"SLURM_CONF": str(conf)} if conf else {}, bin_dir=bin_dir)
    return asyncio.run(SlurmScheduler(command, SystemClock()).read())
