"""How often nodes fail and how long they stay out, with intervals that say how little we know.

- **MTBF** (mean time between failures of a node) = node-time in service / number of failures. Failures that are
  independent of each other are Poisson; the exact two-sided interval of their mean (Garwood 1936) gives
  `2T / chi2(1 - a/2, 2r + 2) <= MTBF <= 2T / chi2(a/2, 2r)`; with no failure the upper end is not known.
  The rate is also given per 1,000 node-days, the unit of Kokolis et al., "Revisiting Reliability in Large-Scale
  Machine Learning Research Clusters" (HPCA 2025, arXiv:2410.21680: 6.50 and 2.34 on two clusters).
- **Time to repair**: outages that still last are censored, not left out. The median is that of the Kaplan-Meier curve,
  its interval the inverted pointwise band (log-log transform; Brookmeyer and Crowley 1982).
- **MTTR** (mean) over finished outages. Repair times are close to log-normal, so its interval is Cox's for a
  log-normal mean in the form of Olsson (2005): `exp(m + s2/2 +- t * sqrt(s2/n + s2^2 / (2(n-1))))`.
- **Shares** have Wilson's interval (1927).
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

LEVEL = 0.95


@dataclass(frozen=True, slots=True)
class Estimate:
    """A figure with the ends of its 95 % interval; None where the data do not say."""

    value: float | None
    low: float | None
    high: float | None
    n: int


def mtbf(in_service: float, failures: int, level: float = LEVEL) -> Estimate:
    """Mean time between failures, in the unit of `in_service`. See the module for the source."""
    if in_service <= 0:
        return Estimate(None, None, None, failures)
    alpha = 1 - level
    low = 2 * in_service / float(stats.chi2.ppf(1 - alpha / 2, 2 * failures + 2))
    if failures == 0:
        return Estimate(None, low, None, 0)
    high = 2 * in_service / float(stats.chi2.ppf(alpha / 2, 2 * failures))
    return Estimate(in_service / failures, low, high, failures)


def rate_per_1000_node_days(node_days: float, failures: int) -> Estimate:
    """Failures per 1,000 node-days with the same exact interval as `mtbf`."""
    between = mtbf(node_days, failures)
    if between.low is None:
        return Estimate(None, None, None, failures)
    low = 0.0 if between.high is None else 1000 / between.high
    return Estimate(1000 * failures / node_days, low, 1000 / between.low, failures)


def median_repair(finished: Sequence[float], still_out: Sequence[float]) -> Estimate:
    """Kaplan-Meier median of the time out, in the unit given; None where less than half have returned."""
    n = len(finished) + len(still_out)
    if not finished:
        return Estimate(None, None, None, n)
    data = stats.CensoredData(uncensored=np.asarray(finished, float), right=np.asarray(still_out, float))
    curve = stats.ecdf(data).sf
    with np.errstate(all="ignore"), warnings.catch_warnings():
        # Where everybody or nobody has returned the band has no value; NaN compares false below, as it should.
        warnings.simplefilter("ignore", RuntimeWarning)
        band = curve.confidence_interval(LEVEL, method="log-log")
    times = curve.quantiles
    return Estimate(
        _first_below_half(times, curve.probabilities),
        _first_below_half(times, band.low.probabilities),
        _first_below_half(times, band.high.probabilities),
        n,
    )


def _first_below_half(times: np.ndarray, survival: np.ndarray) -> float | None:
    below = np.flatnonzero(survival <= 0.5)
    return float(times[below[0]]) if below.size else None


def mean_repair(finished: Sequence[float]) -> Estimate:
    """Mean of finished outages with Cox's log-normal interval (Olsson 2005)."""
    values = np.asarray([v for v in finished if v > 0], float)
    n = int(values.size)
    if n == 0:
        return Estimate(None, None, None, 0)
    mean = float(values.mean())
    if n < 3:
        return Estimate(mean, None, None, n)
    logs = np.log(values)
    m, s2 = float(logs.mean()), float(logs.var(ddof=1))
    t = float(stats.t.ppf(0.5 + LEVEL / 2, n - 1))
    half = t * math.sqrt(s2 / n + s2 * s2 / (2 * (n - 1)))
    return Estimate(mean, _exp(m + s2 / 2 - half), _exp(m + s2 / 2 + half), n)


def _exp(x: float) -> float | None:
    return math.exp(x) if x < 700 else None


def share(hits: int, trials: int, level: float = LEVEL) -> Estimate:
    """A share with Wilson's interval."""
    if trials <= 0:
        return Estimate(None, None, None, 0)
    interval = stats.binomtest(hits, trials).proportion_ci(level, method="wilson")
    return Estimate(hits / trials, float(interval.low), float(interval.high), trials)


def poisson_excess(observed: np.ndarray, expected: np.ndarray) -> np.ndarray:
    """P(at least `observed` events | a Poisson mean of `expected`), elementwise."""
    return np.asarray(stats.poisson.sf(np.asarray(observed, float) - 1, np.maximum(expected, 1e-12)))
