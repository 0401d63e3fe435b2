"""Frame schemas: one columnar frame per kind of component, its rows from the declared fleet.

Key columns of every frame: `node` (str) and `index` (str, "" for the node itself). Further columns: one
per signal or feature, under its id; `class.NAME` per expectation of the node's class; `seen.SOURCE`
(float, POSIX seconds, null = never) per source. A GPU that vanished is a row of nulls, not a missing row.
Frames are Polars frames, but nothing here imports Polars.
"""

from __future__ import annotations

from typing import Final

NODE: Final = "node"
GPU: Final = "gpu"
NIC: Final = "nic"
KINDS: Final = (NODE, GPU, NIC)

KEY_COLUMNS: Final = ("node", "index")
CLASS_PREFIX: Final = "class."
SEEN_PREFIX: Final = "seen."

# the Polars data type of each signal type, by name
DTYPES: Final = {"float": "Float64", "int": "Int64", "bool": "Boolean", "str": "String"}


def seen_column(source: str) -> str:
    return SEEN_PREFIX + source


def class_column(attribute: str) -> str:
    return CLASS_PREFIX + attribute
