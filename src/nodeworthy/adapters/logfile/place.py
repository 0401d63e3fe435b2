"""Where reading stands in a log file, in a form that survives restarts and rotation.

A place is (device, inode, offset) and two fingerprints: of the file's first bytes and of the bytes just before the
offset. The inode finds a renamed file; the fingerprints tell whether a file is still the one that was read: an inode
is used again after deletion, a file that was truncated and has grown past the offset looks like the old one by size,
and a compressed copy has neither inode nor size in common with what it was made from.
"""

from __future__ import annotations

import glob
import gzip
import hashlib
import os
import re
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, cast

# bytes in each fingerprint; the stamps of the first lines make two logs differ within these
PRINT = 256
# what rotation appends: .1, .2.gz, -20261130, -20261130-1764523223, .old
_ROTATED = re.compile(r"[.-](?:\d[\d.-]*|old)(?:\.gz)?")


@dataclass(frozen=True, slots=True)
class Place:
    """Up to where a file was read. `offset` is always at the start of a line, unless `skipping` a line that is too long."""

    device: int
    inode: int
    offset: int
    head: str
    tail: str
    skipping: bool = False

    def as_dict(self) -> dict[str, object]:
        return {name: getattr(self, name) for name in self.__slots__}

    @classmethod
    def from_dict(cls, raw: Mapping[str, Any]) -> Place:
        """Raises ValueError, KeyError or TypeError where the mapping is no place."""
        return cls(
            device=int(raw["device"]),
            inode=int(raw["inode"]),
            offset=int(raw["offset"]),
            head=str(raw["head"]),
            tail=str(raw["tail"]),
            skipping=bool(raw.get("skipping", False)),
        )

    def is_in(self, file: BinaryIO) -> bool:
        """Whether an open, seekable file is the one that was read (or a copy of it)."""
        if not self.offset:
            # nothing was read, so there is nothing to compare but the file's identity
            stat = os.fstat(file.fileno())
            return (stat.st_dev, stat.st_ino) == (self.device, self.inode)
        head, tail = ends(file, self.offset)
        return fingerprint(head) == self.head and fingerprint(tail) == self.tail


def ends(file: BinaryIO, offset: int) -> tuple[bytes, bytes]:
    """The first bytes of a file and those before `offset`, as far as it has them."""
    length = min(PRINT, offset)
    file.seek(0)
    head = file.read(length)
    file.seek(offset - length)
    return head, file.read(length)


def fingerprint(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:32]


def rotated(path: Path) -> list[Path]:
    """Files beside a log that rotation may have made of it (`log.1`, `log-20261130`, `log.2.gz`), oldest first."""
    found: list[tuple[float, Path]] = []
    for candidate in path.parent.glob(f"{glob.escape(path.name)}[.-]*"):
        if not _ROTATED.fullmatch(candidate.name, len(path.name)):
            continue
        if candidate.suffix == ".gz" and candidate.with_suffix("").exists():
            continue  # being compressed at this moment: the plain file says it all
        try:
            found.append((candidate.stat().st_mtime, candidate))
        except OSError:
            continue  # gone between listing and looking: compressed or removed just now
    return [candidate for _, candidate in sorted(found)]


def since(path: Path, place: Place) -> Iterator[tuple[BinaryIO, int]]:
    """Open files that hold what was written after `place`, oldest first, with the offset to read from; not `path` itself.

    Nothing at all when the file of the place is not among the rotated ones.
    """
    files = rotated(path)
    for index, candidate in enumerate(files):
        file = _opened(candidate)
        if file is None:
            continue
        if not _holds(file, candidate, place):
            file.close()
            continue
        yield file, place.offset
        for newer in files[index + 1 :]:
            following = _opened(newer)
            if following is not None and not _holds(following, newer, place):
                yield following, 0
        return


def _holds(file: BinaryIO, path: Path, place: Place) -> bool:
    try:
        return place.is_in(file)
    except (OSError, EOFError, zlib.error):
        return False  # a compressed file that is still being written, or damaged


def _opened(path: Path) -> BinaryIO | None:
    try:
        return cast(BinaryIO, gzip.open(path, "rb")) if path.suffix == ".gz" else path.open("rb")
    except OSError:
        return None
