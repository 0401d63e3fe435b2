"""Node states in every form that Slurm prints: a base state plus flags.

    scontrol        MIXED+DRAIN+NOT_RESPONDING, older ones IDLE*+DRAIN
    --json          ["MIXED", "DRAIN"], in 22.05 "mixed" and ["DRAIN"]
    sinfo, events   drng*, drained, BOOT^, inval

The first two say base and flags. The last form is one word that Slurm chose by a long list of rules, which
loses information: "drain" does not say whether the node is idle or down, so its base is UNKNOWN here; "drng"
says that it is busy but not how far, which is MIXED here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from nodeworthy.errors import Garbled
from nodeworthy.model.scheduler import BaseState


class State(NamedTuple):
    base: BaseState
    flags: frozenset[str]


# One-character suffixes (man sinfo, NODE STATE CODES).
SUFFIXES = {
    "*": "NOT_RESPONDING",
    "~": "POWERED_DOWN",
    "#": "POWERING_UP",
    "!": "POWER_DOWN",
    "%": "POWERING_DOWN",
    "$": "MAINTENANCE",
    "@": "REBOOT_REQUESTED",
    "^": "REBOOT_ISSUED",
    "-": "PLANNED",
    "+": "COMPLETING",
}

_B = BaseState
# What one word of `sinfo %t` / `%T` and of accounting events stands for (slurm_protocol_defs.c,
# node_state_string and node_state_string_compact, 22.05 to 26.05).
WORDS: dict[str, tuple[BaseState, tuple[str, ...]]] = {
    "ALLOC": (_B.ALLOCATED, ()),
    "MIX": (_B.MIXED, ()),
    "UNK": (_B.UNKNOWN, ()),
    "FUTR": (_B.FUTURE, ()),
    "DRAIN": (_B.UNKNOWN, ("DRAIN",)),
    "DRAINED": (_B.UNKNOWN, ("DRAIN",)),
    "DRNG": (_B.MIXED, ("DRAIN",)),
    "DRAINING": (_B.MIXED, ("DRAIN",)),
    "FAIL": (_B.UNKNOWN, ("FAIL",)),
    "FAILG": (_B.ALLOCATED, ("FAIL",)),
    "FAILING": (_B.ALLOCATED, ("FAIL",)),
    "COMP": (_B.IDLE, ("COMPLETING",)),
    "COMPLETING": (_B.IDLE, ("COMPLETING",)),
    "MAINT": (_B.IDLE, ("MAINTENANCE",)),
    "RESV": (_B.IDLE, ("RESERVED",)),
    "RESERVED": (_B.IDLE, ("RESERVED",)),
    "PLND": (_B.IDLE, ("PLANNED",)),
    "PLANNED": (_B.IDLE, ("PLANNED",)),
    "BLOCK": (_B.IDLE, ("BLOCKED",)),
    "BLOCKED": (_B.IDLE, ("BLOCKED",)),
    "INVAL": (_B.UNKNOWN, ("INVALID_REG",)),
    "BOOT": (_B.UNKNOWN, ("REBOOT_REQUESTED",)),
    "REBOOT": (_B.UNKNOWN, ("REBOOT_REQUESTED",)),
    "POW_UP": (_B.UNKNOWN, ("POWERING_UP",)),
    "POW_DN": (_B.UNKNOWN, ("POWER_DOWN",)),
    "POWRING_DN": (_B.UNKNOWN, ("POWERING_DOWN",)),
    "POWERED_DN": (_B.UNKNOWN, ("POWERED_DOWN",)),
    "NO_RESPOND": (_B.UNKNOWN, ("NOT_RESPONDING",)),
}
# Flags that were renamed: older word → the one used here (that of the JSON output).
RENAMED = {"MAINT": "MAINTENANCE", "REBOOT": "REBOOT_REQUESTED", "NO_RESPOND": "NOT_RESPONDING", "POWER": "POWER_DOWN"}

_BASES = {state.value: state for state in BaseState}
_WORD = re.compile(r"([A-Za-z_]+)([*~#!%$@^+-]*)$")
_MAX_LENGTH = 400


@lru_cache(maxsize=4096)
def from_text(text: str) -> State:
    """The state that a text stands for. Raises Garbled when it is none."""
    # "alloc+" ends in the suffix for completing; any other plus joins a flag
    parts = text.removesuffix("+").split("+") if len(text) <= _MAX_LENGTH else []
    found = [_WORD.match(part) for part in parts]
    if not found or not all(found):
        raise Garbled(f"not a Slurm node state: {text[:80]!r}")
    words = [match[1].upper() for match in found if match]
    flags = {SUFFIXES[mark] for match in found if match for mark in match[2]}
    if text.endswith("+"):
        flags.add("COMPLETING")
    if words[0] in _BASES:
        base = _BASES[words[0]]
    elif words[0] in WORDS:
        base, implied = WORDS[words[0]]
        flags.update(implied)
    else:
        raise Garbled(
            f"unknown Slurm node state: {text[:80]!r}", hint="a newer Slurm? The first word is the base state"
        )
    flags.update(RENAMED.get(word, word) for word in words[1:])
    if "REBOOT_ISSUED" in flags and words[0] == "BOOT":
        flags.discard("REBOOT_REQUESTED")
    return State(base, frozenset(flags))


def from_words(words: Iterable[str]) -> State:
    """The state of a JSON list: base state and flags in any order. Raises Garbled without a base state."""
    known = [word.upper() for word in words]
    bases = [word for word in known if word in _BASES]
    if len(bases) != 1:
        raise Garbled(f"a node state needs exactly one base state: {known[:12]!r}")
    return State(_BASES[bases[0]], frozenset(RENAMED.get(word, word) for word in known if word != bases[0]))
