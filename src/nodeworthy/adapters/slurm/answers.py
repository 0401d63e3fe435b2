"""Answers that somebody has already, read by what they are: text or JSON, of any version.

A file that an operator saved, an answer from another machine: nobody has to say which Slurm it came from.
"""

from __future__ import annotations

from nodeworthy.adapters.slurm import documents, text
from nodeworthy.model.scheduler import SchedulerNode


def nodes(answer: str) -> dict[str, SchedulerNode]:
    """`scontrol [-o] [-d] [--json] show nodes`, or 22.05's `sinfo --json`. Raises Garbled or Refused."""
    return documents.nodes(answer) if documents.is_document(answer) else text.nodes(answer)
