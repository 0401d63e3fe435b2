"""One question to Prometheus' HTTP API, and what its answer says.

We ask for the raw samples of the last minutes (`{__name__=~"A|B"}[150s]` as an instant query) and keep the
newest of each series. That is one question in which every value carries the time at which it was scraped. A
plain instant query stamps every value with the time of the *question*, so that the last value of a dead
exporter looks fresh for five minutes (Prometheus' lookback), and `timestamp()` refuses several metrics at
once. VictoriaMetrics hides samples younger than 30 s (`-search.latencyOffset`) from plain queries, but not
from this one.

The same samples can be had from `/federate` as text, which is an order of magnitude cheaper for both sides,
carries each sample's time as well, and is not offered by every server that speaks the API.

API: https://prometheus.io/docs/prometheus/latest/querying/api/, …/latest/federation/
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import orjson

from nodeworthy.errors import Garbled, Refused, TimedOut, WorldError
from nodeworthy.observe.exposition import LabelCache, parse
from nodeworthy.observe.samples import Floats, Place, Samples

_METRIC = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")


@dataclass(frozen=True, slots=True)
class Answer:
    samples: Samples
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Series:
    """One series over time. `at` are the steps of the question (POSIX seconds), not times of scrapes."""

    labels: Mapping[str, str]
    at: Floats
    value: Floats


def chunks(names: Iterable[str], size: int) -> list[tuple[str, ...]]:
    """The metrics to ask for, `size` at a time, in stable order. What is no metric's name is left out."""
    known = sorted(n for n in set(names) if _METRIC.fullmatch(n))
    return [tuple(known[i : i + size]) for i in range(0, len(known), size)]


def selector(names: Sequence[str], matchers: str = "") -> str:
    """The series of some metrics. `matchers` are further label matchers, as `job="dcgm",cluster="a"`."""
    more = f",{matchers}" if matchers else ""
    return f'{{__name__=~"{"|".join(names)}"{more}}}'


def expression(names: Sequence[str], *, window_s: float, matchers: str = "") -> str:
    """The PromQL of a question."""
    return f"{selector(names, matchers)}[{max(1, round(window_s))}s]"


def read_answer(status: int, body: bytes) -> Answer:
    """The samples in an answer. Raises the WorldError that fits if it is none."""
    result, warnings = _matrix(status, body)
    with _shapes():
        return Answer(_samples(result), warnings)


def read_range(status: int, body: bytes) -> tuple[tuple[Series, ...], tuple[str, ...]]:
    """The series of a `query_range`, and the server's warnings. Values that are no number (NaN, infinities) are left
    out: they are unknown. Raises the WorldError that fits if the answer is none."""
    result, warnings = _matrix(status, body)
    with _shapes():
        return tuple(_series(one) for one in result), warnings


def read_federation(status: int, body: bytes, at: float, cache: LabelCache) -> Answer:
    """The samples in a page of `/federate`. `at` stands in for a missing time stamp."""
    if status != 200:
        raise _refusal(status, "", body[:120].decode("utf-8", errors="replace"))
    page = parse(body.decode("utf-8", errors="replace"), at=at, openmetrics=False, cache=cache)
    if page.unreadable and not len(page.samples):
        raise Garbled(
            f"the answer is not a metrics page: {page.example!r}", hint="is this a Prometheus with /federate?"
        )
    return Answer(page.samples, page.problems())


def _matrix(status: int, body: bytes) -> tuple[list[dict[str, Any]], tuple[str, ...]]:
    document = _document(status, body)
    data = document.get("data")
    if not isinstance(data, dict) or data.get("resultType") != "matrix" or not isinstance(data.get("result"), list):
        raise Garbled("the answer is not a matrix of samples", hint="is this the address of a Prometheus HTTP API?")
    said = document.get("warnings") or []
    warnings = [str(w) for w in said] if isinstance(said, list) else [str(said)]
    if document.get("isPartial") or data.get("isPartial"):
        warnings.append("the answer is partial: some of its storage did not answer")
    return data["result"], tuple(warnings)


@contextmanager
def _shapes() -> Iterator[None]:
    try:
        yield
    except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
        raise Garbled("a series in the answer has an unexpected shape") from error


def _series(one: dict[str, Any]) -> Series:
    labels = one["metric"]
    if not isinstance(labels, dict) or not all(isinstance(text, str) for text in labels.values()):
        raise TypeError("labels that are no text")
    points = one.get("values") or []
    at = np.array([float(stamp) for stamp, _ in points], dtype=np.float64)
    value = np.array([float(number) for _, number in points], dtype=np.float64)
    known = np.isfinite(value) & np.isfinite(at)
    return Series(labels, at[known], value[known])


def _document(status: int, body: bytes) -> dict[str, Any]:
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        if status != 200:
            raise _refusal(status, "", body[:120].decode("utf-8", errors="replace")) from error
        raise Garbled(f"the answer is not whole JSON ({len(body)} bytes)") from error
    if not isinstance(document, dict):
        raise Garbled("the answer is not a JSON object")
    if status != 200 or document.get("status") != "success":
        raise _refusal(status, str(document.get("errorType", "")), str(document.get("error", "no reason given")))
    return document


def _refusal(status: int, kind: str, reason: str) -> WorldError:
    """What went wrong, by the API's errorType and the HTTP status.

    503 is Prometheus' answer when a query was cut off or ran out of time, 422 when it cannot be executed
    (VictoriaMetrics: also when it cannot be parsed), 504 a proxy's.
    """
    text = " ".join(reason.split())
    if kind in ("timeout", "canceled") or status == 504:
        return TimedOut(f"the query ran out of time: {text}", hint="ask for less at once (names_per_query)")
    hints = {
        401: "give a bearer token or a user",
        403: "the account may not query",
        404: "is this the address of a Prometheus HTTP API? it ends before /api/v1",
    }
    return Refused(f"HTTP status {status}{f' ({kind})' if kind else ''}: {text}", hint=hints.get(status, ""))


def _samples(result: list[dict[str, Any]]) -> Samples:
    names: dict[str, int] = {}
    codes: dict[tuple[tuple[str, str], ...], int] = {}
    places: list[Place] = []
    name, place, value, at = [], [], [], []
    for series in result:
        points = series.get("values")
        if not points:
            continue  # native histograms have no plain values
        labels: dict[str, str] = series["metric"]
        metric = labels.pop("__name__")
        key = tuple(labels.items())
        code = codes.get(key)
        if code is None:
            if not all(isinstance(text, str) for text in labels.values()):
                raise TypeError("a label that is no text")
            code = codes[key] = len(places)
            places.append(Place(labels))
        stamp, number = points[-1]
        name.append(names.setdefault(metric, len(names)))
        place.append(code)
        value.append(float(number))
        at.append(float(stamp))
    return Samples(
        names=tuple(names),
        places=places,
        name=np.array(name, dtype=np.int64),
        place=np.array(place, dtype=np.int64),
        value=np.array(value, dtype=np.float64),
        at=np.array(at, dtype=np.float64),
    )
