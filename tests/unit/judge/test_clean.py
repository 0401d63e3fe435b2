"""Border cleaning: what sources print, and what is left of it."""

from __future__ import annotations

import math

import polars as pl
import pytest

from nodeworthy.adapters.files.catalogue import load
from nodeworthy.judge.clean import clean, guard
from nodeworthy.model.catalogue import SourceField

SIGNALS = load().signals
DCGM = SourceField("dcgm", "X")


def cleaned(signal: str, raw: list[float | None], field: SourceField = DCGM) -> list[object]:
    frame = pl.DataFrame({"raw": raw}, schema={"raw": pl.Float64})
    return frame.select(clean(pl.col("raw"), SIGNALS[signal], field))["raw"].to_list()


def read(signal: str, raw: list[str | None]) -> list[object]:
    frame = pl.DataFrame({"raw": raw}, schema={"raw": pl.String})
    return frame.select(clean(pl.col("raw"), SIGNALS[signal], SourceField("nvidia_smi", "x"), text=True))[
        "raw"
    ].to_list()


def test_blank_values_of_dcgm_are_unknown() -> None:
    """The int32, int64 and float64 marks for "no value" are never measurements; their neighbours may be."""
    blanks = [0x7FFFFFF0, 0x7FFFFFF1, 0x7FFFFFF3, 0x7FFFFFFFFFFFFFF0, 140737488355328.0, 140737488355330.0]
    assert cleaned("ecc_corrected_volatile", [float(b) for b in blanks]) == [None] * 6
    assert cleaned("ecc_corrected_volatile", [0x7FFFFFEF, 140737488355328.0 - 1]) == [0x7FFFFFEF, 140737488355327]
    other = SourceField("node_exporter", "x")
    assert cleaned("ecc_corrected_volatile", [float(0x7FFFFFF0)], other) == [0x7FFFFFF0]


@pytest.mark.parametrize("odd", [math.nan, math.inf, -math.inf, None])
def test_what_is_no_number_is_unknown(odd: float | None) -> None:
    """NaN, infinity and nothing are unknown in every type."""
    assert cleaned("gpu_temperature", [odd]) == [None]
    assert cleaned("ecc_corrected_volatile", [odd]) == [None]
    assert cleaned("row_remap_failed", [odd]) == [None]


def test_ranges_types_and_sentinels() -> None:
    """Out of range, a fraction of an integer, a switch that is neither 0 nor 1, a sentinel: unknown; 0 stays 0."""
    assert cleaned("gpu_temperature", [-41.0, -40.0, 0.0, 150.0, 151.0]) == [None, -40.0, 0.0, 150.0, None]
    assert cleaned("ecc_corrected_volatile", [0.0, 1.5, -1.0]) == [0, None, None]
    assert cleaned("row_remap_failed", [0.0, 1.0, 2.0]) == [False, True, None]
    assert cleaned("memory_temperature", [0.0, 70.0]) == [None, 70.0]
    assert cleaned("fabric_manager_status", [0.0, 3.0, 5.0]) == [None, 3, None]


def test_units_are_those_of_the_signal() -> None:
    """Millijoule, nanosecond and byte per second become joule, second and gigabit per second."""
    for signal, raw, value in (("energy", 2500.0, 2.5), ("thermal_violation", 3e9, 3.0), ("ib_rate", 5e10, 400.0)):
        field = SIGNALS[signal].fields[0]
        assert cleaned(signal, [raw], field) == pytest.approx([value])


def test_texts_of_tools() -> None:
    """Numbers with blanks around them, words for switches, and the many ways to say "not available"."""
    assert read("gpu_temperature", [" 61 ", "[N/A]", "N/A", "61 C", "", None]) == [61.0, None, None, None, None, None]
    assert read("persistence_mode", ["Enabled", "disabled", "1", "maybe"]) == [True, False, True, None]
    assert read("gpu_model", ["NVIDIA H100", "[N/A]", " "]) == ["NVIDIA H100", None, None]


def test_the_guard_catches_what_an_adapter_forgot() -> None:
    """A column that is called clean and is not becomes unknown where it cannot be, and keeps the rest."""
    heat = SIGNALS["gpu_temperature"]
    assert guard(pl.Series("t", [60.0, math.nan, math.inf, 1e9]), heat).to_list() == [60.0, None, None, None]
    assert guard(pl.Series("t", [60, 61]), heat).to_list() == [60.0, 61.0]
    assert guard(pl.Series("t", ["60", "x"]), heat).to_list() == [None, None]
    assert guard(pl.Series("t", [1.0, 0.0, 7.0]), SIGNALS["row_remap_failed"]).to_list() == [True, False, None]
    assert guard(pl.Series("t", [1.0, 2.5]), SIGNALS["recovery_action"]).to_list() == [1, None]
    assert guard(pl.Series("t", [True]), heat).to_list() == [None]
