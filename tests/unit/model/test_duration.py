"""Durations and times as people write them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeworthy.errors import BadRequest
from nodeworthy.model.duration import format_duration, format_time, parse_duration, parse_time

NOW = 1_772_366_400.0  # 2026-03-01T12:00:00Z


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90d", 90 * 86400),
        ("2h30m", 9000),
        ("1w2d3h4m5s", 788645),
        ("1.5h", 5400),
        ("250ms", 0.25),
        (" 45S ", 45),
        ("0s", 0),
        ("1m500ms", 60.5),
    ],
)
def test_durations_are_read(text: str, seconds: float) -> None:
    """Each unit, sums of units, fractions and capitals are read."""
    assert parse_duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "90", "d", "-5m", "5 m", "1m1h", "1h1h", "1y", "1e3s", "٣d", "9" * 1000 + "s"])
def test_what_is_no_duration_is_refused_with_a_hint(text: str) -> None:
    """A bare number, an unknown unit, a wrong order, a sign or a foreign digit is a usage error that says what to write."""
    with pytest.raises(BadRequest) as refused:
        parse_duration(text)
    assert "90d" in refused.value.hint
    assert len(str(refused.value)) < 200


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0s"),
        (45.9, "45s"),
        (60, "1m"),
        (9000, "2h30m"),
        (273_600, "3d4h"),
        (90 * 86400, "90d"),
        (0.25, "250ms"),
        (-60, "-1m"),
    ],
)
def test_durations_are_printed_in_two_units(seconds: float, text: str) -> None:
    """The two largest units are printed, rounded down."""
    assert format_duration(seconds) == text


@given(st.integers(min_value=0, max_value=10**10))
def test_a_printed_duration_is_read_back_within_its_second_unit(seconds: int) -> None:
    """Printing loses at most the units below the second one, and never adds time."""
    back = parse_duration(format_duration(seconds))
    assert back <= seconds
    assert seconds - back < max(3600, 1) if seconds >= 86400 else seconds - back < 60


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("now", NOW),
        ("now-1h", NOW - 3600),
        ("now + 30m", NOW + 1800),
        ("90d", NOW - 90 * 86400),
        ("2026-03-01", NOW - 43200),
        ("2026-03-01T12:00", NOW),
        ("2026-03-01T12:00:00Z", NOW),
        ("2026-03-01 13:00+01:00", NOW),
        ("@1772366400.5", NOW + 0.5),
    ],
)
def test_times_are_read(text: str, at: float) -> None:
    """ISO times are UTC unless they say otherwise; durations are that long ago."""
    assert parse_time(text, now=NOW) == at


@pytest.mark.parametrize(
    "text", ["", "yesterday", "now1h", "now-", "2026-13-01", "@nan", "@-5", "@1e99", "@", "1900-01-01"]
)
def test_what_is_no_time_is_refused_with_a_hint(text: str) -> None:
    """Words, impossible dates and times out of range are usage errors that say what to write."""
    with pytest.raises(BadRequest) as refused:
        parse_time(text, now=NOW)
    assert refused.value.hint


@given(st.integers(min_value=0, max_value=253402300799))
def test_a_printed_time_is_read_back(at: int) -> None:
    """What format_time prints, parse_time reads."""
    assert parse_time(format_time(at), now=0) == at
