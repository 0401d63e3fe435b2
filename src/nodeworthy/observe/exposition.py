"""Read a page of the Prometheus text format (0.0.4, and OpenMetrics text as exporters emit it) into columns.

Theory of operation. A page repeats itself: every GPU says sixty things under the same 250 characters of
labels. So a line is only cut (at its last `}` and its first `{`), numbers are read by the hundred, and a
label set is read once per distinct text. That cut is right for every well-formed line without an exemplar,
also when label values hold braces or blanks. Whether it was right is known afterwards: metric names, label
texts and numbers must all be well-formed, and if one of them is not, the whole page is read again by a
strict pattern, line by line, which also finds and counts the lines that cannot be read.

A page may lie. A last line without its line feed may have lost digits (`8` of `85`) and is dropped. Nothing
here raises on content: what could not be read is counted, and the caller decides what the page is worth.

Format: https://prometheus.io/docs/instrumenting/exposition_formats/
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from nodeworthy.observe.samples import Place, Samples

_NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*+")
_PAIR = re.compile(r'[ \t]*+([a-zA-Z_][a-zA-Z0-9_]*+)[ \t]*+=[ \t]*+"((?:[^"\\]++|\\.)*+)"[ \t]*+(,|$)', re.DOTALL)
_ESCAPE = re.compile(r'\\([\\n"])')
_NUMBER = re.compile(r"[-+]?(?:(?:[0-9]++\.?[0-9]*+|\.[0-9]++)(?:e[-+]?[0-9]++)?|inf(?:inity)?|nan)", re.I | re.A)
# name, labels, value, time stamp; then an exemplar, which says nothing of a component
_LINE = re.compile(
    r"[ \t]*+([a-zA-Z_:][a-zA-Z0-9_:]*+)[ \t]*+"
    r'(?:\{((?:[^"}]++|"(?:[^"\\]++|\\.)*+")*+)\}[ \t]*+|(?<=[ \t]))'
    r"([^ \t]++)(?:[ \t]++([^ \t#][^ \t]*+))?[ \t\r]*+(?:(?<=[ \t])#.*)?",
)

LabelCache = dict[str, Mapping[str, str] | None]
CACHE_LIMIT = 500_000  # label sets worth keeping between readings: about 80,000 GPUs with a few pods each


@dataclass(frozen=True, slots=True)
class Page:
    """What one page said. `stamps` holds a sample's own time in POSIX seconds; NaN where it gave none."""

    samples: Samples
    other_names: frozenset[str]  # well-formed, but not asked for
    unreadable: int  # lines that are not exposition text
    example: str  # the first of them
    cut: bool  # the page ended in the middle of a line, or (OpenMetrics) without its `# EOF`

    def problems(self) -> tuple[str, ...]:
        """In words, what of the page could not be used."""
        said = []
        if self.unreadable:
            said.append(f"{self.unreadable} lines are not exposition text, the first: {self.example!r}")
        if self.cut:
            said.append("the page ends before its end; its last line was dropped")
        return tuple(said)


def parse(
    text: str,
    *,
    at: float,
    target: str = "",
    names: Collection[str] | None = None,
    openmetrics: bool | None = None,
    cache: LabelCache | None = None,
) -> Page:
    """Read a page. `at` stands in for samples without a time stamp (seconds).

    `names`: keep these metrics only. `openmetrics`: time stamps are seconds (else milliseconds) and the page
    must end in `# EOF`; None looks at the page. `cache` keeps label sets between pages and readings.
    """
    cache = {} if cache is None else cache
    ended = text.rstrip("\r\n").endswith("# EOF")
    seconds = ended if openmetrics is None else openmetrics
    lines = text.split("\n")
    last = lines.pop()
    # also a comment that was not written to its end: what would have followed it is missing
    cut = last.strip() not in ("", "# EOF") or (seconds and not ended)
    wanted = None if names is None else frozenset(names)
    columns = _quick(lines, wanted, cache)
    if columns is None or not columns.names:  # nothing wanted: is it a page at all?
        columns = _strict(lines, wanted, cache)
    return Page(
        samples=columns.samples(at, target, 1.0 if seconds else 1000.0, cache),
        other_names=frozenset(columns.others),
        unreadable=columns.unreadable,
        example=columns.example,
        cut=cut,
    )


@dataclass(slots=True)
class _Columns:
    names: list[str]
    labels: list[str]  # as written, between the braces
    values: list[float]
    stamps: list[float] | None
    others: set[str]
    unreadable: int = 0
    example: str = ""

    def samples(self, at: float, target: str, per_second: float, cache: LabelCache) -> Samples:
        name_codes = {n: i for i, n in enumerate(dict.fromkeys(self.names))}
        place_codes = {raw: i for i, raw in enumerate(dict.fromkeys(self.labels))}
        if self.stamps is None:
            times = np.full(len(self.values), at)
        else:
            times = np.array(self.stamps, dtype=np.float64) / per_second
            times = np.where(np.isfinite(times), times, at)
        return Samples(
            names=tuple(name_codes),
            places=[Place(cache[raw] or {}, target) for raw in place_codes],
            name=np.fromiter(map(name_codes.__getitem__, self.names), np.int64, len(self.names)),
            place=np.fromiter(map(place_codes.__getitem__, self.labels), np.int64, len(self.labels)),
            value=np.array(self.values, dtype=np.float64),
            at=times,
        )


def _quick(lines: Iterable[str], wanted: frozenset[str] | None, cache: LabelCache) -> _Columns | None:
    """Read a page in which every line is plain; None if any is not."""
    names, labels, tails, others = [], [], [], set()
    for line in lines:
        if not line or line[0] == "#":
            continue
        head, brace, tail = line.rpartition("}")
        if brace:
            name, opened, raw = head.partition("{")
            name = name if opened else line
        else:
            name, _, tail = line.partition(" ")
            raw = ""
        if wanted is None or name in wanted:
            names.append(name)
            labels.append(raw)
            tails.append(tail)
        else:
            others.add(name)
    numbers = _numbers(tails)
    if numbers is None or not all(_NAME.fullmatch(name) for name in {*names, *others}):
        return None
    if any(_labels(raw, cache) is None for raw in dict.fromkeys(labels)):
        return None
    return _Columns(names, labels, *numbers, others)


def _numbers(tails: list[str]) -> tuple[list[float], list[float] | None] | None:
    """Values, and time stamps if there are any, of the ends of lines; None if one is no number."""
    joined = "".join(tails)
    if not joined.isascii() or "_" in joined:
        return None  # Python reads 1_0 and other alphabets as numbers, the format does not
    try:
        return list(map(float, tails)), None
    except ValueError:
        pass
    words = [tail.split() for tail in tails]
    if not all(1 <= len(w) <= 2 for w in words):
        return None
    try:
        return [float(w[0]) for w in words], [float(w[1]) if len(w) > 1 else float("nan") for w in words]
    except ValueError:
        return None


def _strict(lines: Iterable[str], wanted: frozenset[str] | None, cache: LabelCache) -> _Columns:
    """Read a page line by line and count what is not exposition text."""
    stamps: list[float] = []
    columns = _Columns([], [], [], stamps, set())
    for line in _bodies(lines):
        match = _LINE.fullmatch(line)
        raw = (match[2] or "") if match else ""
        if not match or not _NUMBER.fullmatch(match[3]) or not _is_stamp(match[4]) or _labels(raw, cache) is None:
            columns.unreadable += 1
            columns.example = columns.example or line[:80]
        elif wanted is not None and match[1] not in wanted:
            columns.others.add(match[1])
        else:
            columns.names.append(match[1])
            columns.labels.append(raw)
            columns.values.append(float(match[3]))
            stamps.append(float(match[4]) if match[4] else float("nan"))
    return columns


def _bodies(lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        body = line.strip(" \t\r")
        if body and body[0] != "#":
            yield body


def _is_stamp(word: str | None) -> bool:
    return word is None or _NUMBER.fullmatch(word) is not None


def _labels(raw: str, cache: LabelCache) -> Mapping[str, str] | None:
    """The label set written as `raw`; None if it is malformed or names a label twice."""
    if raw not in cache:
        cache[raw] = _read_labels(raw)
    return cache[raw]


def _read_labels(raw: str) -> Mapping[str, str] | None:
    labels: dict[str, str] = {}
    position = 0
    while position < len(raw):
        pair = _PAIR.match(raw, position)
        if pair is None or pair[1] in labels:
            return None if raw.strip(" \t") else {}
        value = pair[2]
        labels[pair[1]] = _ESCAPE.sub(_unescape, value) if "\\" in value else value
        position = pair.end()
        if pair[3] == "," and not raw[position:].strip(" \t"):
            break  # one comma may trail
    return labels


def _unescape(match: re.Match[str]) -> str:
    return "\n" if match[1] == "n" else match[1]
