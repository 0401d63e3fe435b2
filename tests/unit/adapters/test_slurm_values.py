"""Single values: nulls, times, GRES, states."""

from __future__ import annotations

import time

import pytest

from nodeworthy.adapters.slurm import states, values
from nodeworthy.errors import Garbled
from nodeworthy.model.scheduler import BaseState


@pytest.mark.parametrize(
    ("gres", "count", "kind"),
    [
        ("gpu:h100:8", 8, "h100"),
        ("gpu:h100:8(S:0-1)", 8, "h100"),
        ("gpu:h100:4(IDX:0,2-3,7)", 4, "h100"),
        ("gpu:8", 8, None),
        ("gpu", 1, None),
        ("gpu:(null):0(IDX:N/A)", 0, None),
        ("gpu:a100:2,gpu:v100:6,nic:4", 8, "a100,v100"),
        ("gpu:nvidia_h100_80gb_hbm3_1g.10gb:7(S:0)", 7, "nvidia_h100_80gb_hbm3_1g.10gb"),
        ("nic:mlx:2,shard:64", 0, None),
        ("gpu:h100:1K", 1024, "h100"),
        ("gres:gpu:2", 2, None),
        ("gres/gpu:h100:8", 8, "h100"),
        ("(null)", 0, None),
        ("N/A", None, None),
        (None, None, None),
        ("gpu:h100:8x", None, None),
    ],
)
def test_gpus_of_a_gres(gres: str | None, count: int | None, kind: str | None) -> None:
    """Counts and types of every GRES form; a missing field is unknown, no GRES is none."""
    assert values.gpus(gres) == values.Gpus(count, kind)


@pytest.mark.parametrize("word", ["(null)", "None", "Unknown", "N/A", "n/a", "NONE", ""])
def test_words_for_nothing(word: str) -> None:
    """Slurm's words for nothing are null as text, name, number and time, never a value."""
    assert values.text(word) is None
    assert values.names(word) == ()
    assert values.number(word) is None
    assert values.time(word) is None


def test_times(monkeypatch: pytest.MonkeyPatch) -> None:
    """Seconds are taken as they are; the standard format is local time, also across a change of clocks."""
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    values._standard_time.cache_clear()
    try:
        assert values.time("1796061062") == 1796061062.0
        assert values.time("2026-07-01T12:00:00") == 1782900000.0  # UTC+2
        assert values.time("2026-12-01T12:00:00") == 1796122800.0  # UTC+1
    finally:
        monkeypatch.undo()
        time.tzset()
        values._standard_time.cache_clear()


@pytest.mark.parametrize(
    "odd", ["0", "4294967294", "18446744073709551614", "tomorrow", "2026-13-01T00:00:00", "9" * 400]
)
def test_odd_times_are_unknown(odd: str) -> None:
    """Slurm's sentinels for no time and infinity, and garbage, are unknown, not a date far away."""
    assert values.time(odd) is None


@pytest.mark.parametrize(
    ("text", "base", "flags"),
    [
        ("IDLE", "IDLE", ()),
        ("MIXED+DRAIN+NOT_RESPONDING", "MIXED", ("DRAIN", "NOT_RESPONDING")),
        ("IDLE+MAINTENANCE+RESERVED", "IDLE", ("MAINTENANCE", "RESERVED")),
        ("DOWN*+DRAIN", "DOWN", ("DRAIN", "NOT_RESPONDING")),
        ("idle~", "IDLE", ("POWERED_DOWN",)),
        ("alloc+", "ALLOCATED", ("COMPLETING",)),
        ("mix-", "MIXED", ("PLANNED",)),
        ("drng@", "MIXED", ("DRAIN", "REBOOT_REQUESTED")),
        ("BOOT^", "UNKNOWN", ("REBOOT_ISSUED",)),
        ("boot", "UNKNOWN", ("REBOOT_REQUESTED",)),
        ("drained*", "UNKNOWN", ("DRAIN", "NOT_RESPONDING")),
        ("INVAL", "UNKNOWN", ("INVALID_REG",)),
        ("failg", "ALLOCATED", ("FAIL",)),
        ("maint", "IDLE", ("MAINTENANCE",)),
        ("unk*", "UNKNOWN", ("NOT_RESPONDING",)),
        ("IDLE+CLOUD+POWERING_DOWN", "IDLE", ("CLOUD", "POWERING_DOWN")),
        ("IDLE+SOME_NEW_FLAG", "IDLE", ("SOME_NEW_FLAG",)),
    ],
)
def test_state_texts(text: str, base: str, flags: tuple[str, ...]) -> None:
    """Long, compact and event forms give base and flags; a flag of a newer Slurm is kept."""
    assert states.from_text(text) == (BaseState(base), frozenset(flags))


@pytest.mark.parametrize("text", ["", "+", "FLYING", "IDLE DRAIN", "IDLE+", "\0", "A" * 10_000, "DRAIN+\N{SNOWMAN}"])
def test_no_state_is_garbled(text: str) -> None:
    """What is no state is an error that shows it, except IDLE+ which means completing."""
    if text == "IDLE+":
        assert states.from_text(text).flags == {"COMPLETING"}
        return
    with pytest.raises(Garbled, match="state"):
        states.from_text(text)


@pytest.mark.parametrize("words", [[], ["DRAIN"], ["IDLE", "DOWN"], ["?"]])
def test_json_state_needs_one_base(words: list[str]) -> None:
    """A JSON state without exactly one base state is garbled."""
    with pytest.raises(Garbled):
        states.from_words(words)


def test_json_state_of_all_versions() -> None:
    """22.05's lower-case base with separate flags, and the later list, mean the same."""
    assert states.from_words(["mixed", "DRAIN"]) == states.from_words(["MIXED", "DRAIN"])
