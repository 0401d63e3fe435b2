"""Intervals against published values and against simulation."""

from __future__ import annotations

import numpy as np
import pytest

from nodeworthy.reports.audit.reliability import (
    mean_repair,
    median_repair,
    mtbf,
    poisson_excess,
    rate_per_1000_node_days,
    share,
)


def test_mtbf_has_the_exact_poisson_interval() -> None:
    """Garwood's table: 10 events have a 95 % interval of 4.795 to 18.39."""
    between = mtbf(1000.0, 10)
    assert between.value == pytest.approx(100)
    assert between.low == pytest.approx(1000 / 18.39, rel=1e-3)
    assert between.high == pytest.approx(1000 / 4.795, rel=1e-3)


def test_no_failures_have_a_lower_end_only() -> None:
    """Nothing happened in 369 days: with 97.5 % confidence at least 100 days between failures (chi-square/2 =
    3.689)."""
    between = mtbf(368.9, 0)
    assert (between.value, between.high) == (None, None)
    assert between.low == pytest.approx(100, rel=1e-3)


def test_nothing_observed_is_not_known() -> None:
    """Without time in service there is no figure at all."""
    assert mtbf(0.0, 0).low is None
    assert share(0, 0).value is None
    assert median_repair([], [5.0]).value is None
    assert mean_repair([]).value is None


def test_the_published_rate_is_reproduced() -> None:
    """6.50 failures per 1,000 node-days is one failure per 154 node-days (arXiv:2410.21680)."""
    rate = rate_per_1000_node_days(154_000, 1001)
    assert rate.value == pytest.approx(6.5)
    assert (rate.low or 0) < 6.5 < (rate.high or 0)


def test_outages_that_still_last_raise_the_median() -> None:
    """Leaving out what is not finished would make repairs look faster than they are."""
    finished = [1.0, 2.0, 3.0, 4.0, 5.0]
    assert median_repair(finished, []).value == 3.0
    assert median_repair(finished, [10.0, 10.0, 10.0]).value == 4.0
    assert median_repair(finished, [10.0] * 6).value is None


def test_the_mean_interval_covers_as_often_as_it_says() -> None:
    """Log-normal repairs, true mean known: Cox's interval holds it in about 95 % of samples of 20."""
    rng = np.random.default_rng(1)
    true = float(np.exp(1.0 + 0.5))
    held = 0
    for _ in range(400):
        e = mean_repair(list(rng.lognormal(1.0, 1.0, 20)))
        held += (e.low or 0) <= true <= (e.high or 0)
    assert 0.91 <= held / 400 <= 0.99


def test_wilson_share() -> None:
    """Wilson 1927: 0 of 10 has an upper end of 27.8 %."""
    assert share(0, 10).high == pytest.approx(0.2775, abs=1e-3)


def test_poisson_tail() -> None:
    """P(at least 3 | mean 1) = 1 - 2.5/e."""
    assert poisson_excess(np.array([3]), np.array([1.0]))[0] == pytest.approx(1 - 2.5 / np.e)
