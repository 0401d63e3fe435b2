"""Opening logs: plain and compressed files, standard input; and what is known about them from outside."""

from __future__ import annotations

import bz2
import gzip
import lzma
import sys
from collections.abc import Callable, Mapping
from datetime import tzinfo
from pathlib import Path
from typing import BinaryIO, cast
from zoneinfo import ZoneInfo

from nodeworthy.errors import BadRequest
from nodeworthy_node.log import Reference

COMPRESSED: Mapping[str, Callable[[Path], object]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
LOCAL_ZONE = Path("/etc/localtime")
KERNEL_STAT = Path("/proc/stat")
# what reading a damaged or vanishing file raises, compressed or not
DAMAGED = (OSError, EOFError, lzma.LZMAError)


def open_log(name: str) -> BinaryIO:
    """Open a file for reading bytes, decompressed by its suffix; `-` is standard input. Raises BadRequest."""
    if name == "-":
        return sys.stdin.buffer
    path = Path(name)
    try:
        opener = COMPRESSED.get(path.suffix)
        if opener is not None:
            return cast(BinaryIO, opener(path))
        return cast(BinaryIO, path.open("rb", buffering=0))  # reads are large: a buffer would only copy
    except OSError as error:
        raise BadRequest(
            f"{name} cannot be read: {error.strerror}", hint="name a log file, or - for standard input"
        ) from error


def reference(name: str, now: float, zone: tzinfo, boot: float | None) -> Reference:
    """No line of a file is later than its last change, so the year of `Aug 17 06:18:01` follows from that."""
    if name != "-" and Path(name).is_file():
        now = min(now, Path(name).stat().st_mtime)
    return Reference(now=now, tz=zone, boot=boot)


def local_zone() -> tzinfo:
    """The zone of this machine, with its summer time; UTC where the machine does not say."""
    try:
        with LOCAL_ZONE.open("rb") as file:
            return ZoneInfo.from_file(file, key="local")
    except (OSError, ValueError):
        return ZoneInfo("UTC")


def boot_time() -> float | None:
    """When this machine started, POSIX seconds (`btime` in /proc/stat)."""
    try:
        lines = KERNEL_STAT.read_text().splitlines()
    except OSError:
        return None
    return next((float(line.split()[1]) for line in lines if line.startswith("btime ")), None)
