"""Samples: what a metrics source said, in columns, before anybody asked what it means.

Ten thousand nodes say millions of numbers at a time, so a sample is not an object: it is a position in four
arrays. A *place* is who said it: the labels of a series together with the target that was asked. There are
far fewer places than samples (a GPU says sixty things with the same labels), so all work on labels is done
once per place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Place:
    """The labels of a series. `target` names who was asked; empty when the source answers for many."""

    labels: Mapping[str, str]
    target: str = ""


@dataclass(frozen=True, slots=True)
class Samples:
    """Columns of equal length. `name` and `place` are positions in `names` and `places`.

    `at` is the sample's own time in POSIX seconds where it has one, else the time at which it was asked for.
    """

    names: Sequence[str]
    places: Sequence[Place]
    name: Ints
    place: Ints
    value: Floats
    at: Floats

    def __len__(self) -> int:
        return len(self.value)


def join(parts: Sequence[Samples]) -> Samples:
    """All samples of several answers in one."""
    codes: dict[str, int] = {}
    places: list[Place] = []
    name, place = [], []
    for part in parts:
        renumbered = np.array([codes.setdefault(n, len(codes)) for n in part.names], dtype=np.int64)
        name.append(renumbered[part.name] if len(part) else part.name)
        place.append(part.place + len(places))
        places.extend(part.places)
    return Samples(
        names=tuple(codes),
        places=places,
        name=np.concatenate([np.empty(0, np.int64), *name]),
        place=np.concatenate([np.empty(0, np.int64), *place]),
        value=np.concatenate([np.empty(0, np.float64), *(p.value for p in parts)]),
        at=np.concatenate([np.empty(0, np.float64), *(p.at for p in parts)]),
    )
