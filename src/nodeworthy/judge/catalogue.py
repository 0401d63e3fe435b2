"""Catalogue texts → `Catalogue`, with every problem found at once.

A catalogue is a stack of layers, the built-in one first. Each layer is a set of TOML texts with the tables
`[[signal]]`, `[[feature]]`, `[[expectation]]` and `[[check]]`. A later layer replaces an entry of an earlier
one by its id; within one layer an id may stand only once. Nothing is guessed: an unknown key, a name that no
signal has, a condition of the wrong type and a check without a source are all refused, with file, line,
field and remedy (`errors.BadFile`).

The work is pure: `adapters.files.catalogue` reads the texts.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from nodeworthy.errors import BadFile, Problem
from nodeworthy.judge.catalogue_check import check_of
from nodeworthy.judge.catalogue_entry import Entry
from nodeworthy.judge.features import FUNCTIONS
from nodeworthy.model.catalogue import Catalogue, Check, Expectation, Feature, Signal, SourceField
from nodeworthy.model.fact import DTYPES, KINDS, NODE
from nodeworthy.model.scheduler import FIELDS, SOURCE
from nodeworthy.model.toml_text import read_toml

BUILT_IN = "built-in"
Made = TypeVar("Made")
TABLES = ("signal", "feature", "expectation", "check")
_HEADER = re.compile(r"^\s*\[\[\s*(\w+)\s*\]\]")
_ID = re.compile(r"[a-z][a-z0-9_]*(-[a-z0-9_]+)*")
_RESERVED = frozenset(
    {"node", "index", "class", "seen", "and", "or", "not", "in", "is", "abs", "min", "max", "any_bits"}
)


@dataclass(frozen=True, slots=True)
class CatalogueText:
    """One file: its name for messages, its layer, its text."""

    file: str
    layer: str
    text: str


@dataclass
class _Stack:
    """Entries by table and id; a later layer replaces."""

    problems: list[Problem] = field(default_factory=list)
    entries: dict[str, dict[str, Entry]] = field(default_factory=lambda: {table: {} for table in TABLES})


def build(texts: Sequence[CatalogueText]) -> Catalogue:
    """The catalogue of all layers. Raises BadFile with every problem of every file."""
    stack = _Stack()
    for text in texts:
        _read(text, stack)
    signals = _make(stack, "signal", _signal)
    expectations = _make(stack, "expectation", _expectation)
    features = _make(stack, "feature", lambda entry: _feature(entry, signals))
    names = _columns(signals, features, expectations)
    checks: dict[str, Check] = _make(stack, "check", lambda entry: check_of(entry, names))
    if stack.problems:
        raise BadFile(sorted(stack.problems, key=lambda p: (p.file, p.line or 0)), hint="docs/how-to/checks.md")
    digest = hashlib.sha256()
    for text in texts:
        digest.update(f"{text.layer}\0{text.text}\0".encode())
    return Catalogue(signals, features, checks, digest.hexdigest()[:12], expectations)


def _read(text: CatalogueText, stack: _Stack) -> None:
    try:
        document = read_toml(text.text, text.file)
    except BadFile as error:
        stack.problems += error.problems
        return
    places = _places(text.text)
    for table, rows in document.items():
        if table not in TABLES or not isinstance(rows, list):
            known = ", ".join(f"[[{t}]]" for t in TABLES)
            stack.problems.append(Problem(text.file, None, table, "is not a table of a catalogue", f"write {known}"))
            continue
        for number, row in enumerate(rows):
            start, lines = places.get((table, number), (None, {}))
            entry = Entry(text.file, text.layer, row, start, lines, stack.problems)
            _add(stack.entries[table], entry)


def _add(known: dict[str, Entry], entry: Entry) -> None:
    name = entry.text("id")
    if not name:
        return
    before = known.get(name)
    if before is not None and before.layer == entry.layer:
        entry.problem("id", f"{name} is already defined in {before.place}", "choose another id, or a layer of its own")
    elif not _ID.fullmatch(name) or name in _RESERVED:
        entry.problem("id", f"{name!r} cannot be an id", "use lower-case words, for example gpu_temperature or gpu-hot")
    else:
        known[name] = entry


def _places(text: str) -> dict[tuple[str, int], tuple[int, dict[str, int]]]:
    """(table, how many-th) → its line, and the line of each of its keys."""
    places: dict[tuple[str, int], tuple[int, dict[str, int]]] = {}
    counts: dict[str, int] = {}
    keys: dict[str, int] = {}
    for number, line in enumerate(text.splitlines(), 1):
        header = _HEADER.match(line)
        if header:
            table = header.group(1)
            keys = {}
            places[table, counts.get(table, 0)] = (number, keys)
            counts[table] = counts.get(table, 0) + 1
        elif key := re.match(r"\s*([\w-]+)\s*=", line):
            keys.setdefault(key.group(1), number)
    return places


def _make(stack: _Stack, table: str, maker: Callable[[Entry], Made | None]) -> dict[str, Made]:
    made = {name: maker(entry) for name, entry in stack.entries[table].items()}
    return {name: value for name, value in made.items() if value is not None}


def _columns(
    signals: Mapping[str, Signal], features: Mapping[str, Feature], expectations: Mapping[str, Expectation]
) -> dict[str, dict[str, str]]:
    """Kind → what a condition may name there → its type as signals write it. Raw counters are marked."""
    common = {f"class.{e.id}": e.type for e in expectations.values()}
    columns = {kind: dict(common) for kind in KINDS}
    for signal in signals.values():
        columns[signal.kind][signal.id] = "counter" if signal.counter else signal.type
    for feature in features.values():
        columns[feature.kind][feature.id] = "float"
    return columns


def _signal(entry: Entry) -> Signal | None:
    entry.allow(
        "id", "kind", "type", "unit", "help", "fields", "counter", "minimum", "maximum", "sentinels", "max_age_s", "source"
    )  # fmt: skip
    name, kind, kind_of_value = entry.text("id"), entry.choice("kind", KINDS), entry.choice("type", tuple(DTYPES))
    if "-" in name:
        entry.problem("id", f"{name!r} cannot be used in a condition", "use _ instead of -")
    minimum, maximum = entry.number("minimum"), entry.number("maximum")
    if minimum is not None and maximum is not None and minimum > maximum:
        entry.problem("maximum", "is less than the minimum", "swap them")
    max_age = entry.number("max_age_s", 120.0)
    if max_age is None or max_age <= 0:
        entry.problem("max_age_s", "must be more than 0 seconds", "leave it out for 120")
    sentinels = entry.row.get("sentinels", [])
    if not isinstance(sentinels, list) or not all(isinstance(s, (int, float, str)) for s in sentinels):
        entry.problem("sentinels", "must be a list of numbers or strings", "for example [0.0]")
        sentinels = []
    counter = entry.flag("counter")
    if counter and kind_of_value not in ("int", "float"):
        entry.problem("counter", "only a number can be a counter", 'set type = "int" or "float"')
    fields = _fields(entry)
    _scheduler_fields(entry, fields, kind, kind_of_value)
    result = Signal(
        name,
        kind,
        kind_of_value,
        entry.text("unit", required="unit" not in entry.row),
        entry.text("help"),
        fields,
        counter,
        minimum,
        maximum,
        tuple(sentinels),
        max_age or 120.0,
        entry.text("source"),
    )
    return result if entry.good else None


def _scheduler_fields(entry: Entry, fields: Iterable[SourceField], kind: str, kind_of_value: str) -> None:
    """The scheduler's fields are a closed list, unlike those of an exporter, so a slip is seen here."""
    for given in fields:
        if given.source != SOURCE:
            continue
        there = FIELDS.get(given.name)
        if there is None:
            entry.problem("fields", f"the scheduler has no {given.name!r}", "known are " + ", ".join(FIELDS))
        elif kind != NODE:
            entry.problem("fields", f"slurm:{given.name} is of nodes, not of a {kind}", 'set kind = "node"')
        elif (there, kind_of_value) not in {(there, there), ("int", "float")}:
            entry.problem("fields", f"slurm:{given.name} is {there}, not {kind_of_value}", f'set type = "{there}"')


def _fields(entry: Entry) -> tuple[SourceField, ...]:
    rows = entry.row.get("fields")
    remedy = 'for example ["dcgm:DCGM_FI_DEV_GPU_TEMP"]'
    if not isinstance(rows, list) or not rows:
        entry.problem("fields", "must be a list of the signal's names in its sources", remedy)
        return ()
    fields: list[SourceField] = []
    for row in rows:
        if isinstance(row, str):
            source, _, name = row.partition(":")
            row = {"source": source, "name": name}
        if not isinstance(row, dict) or set(row) - {"source", "name", "scale", "labels", "value_label"}:
            entry.problem("fields", f"{row!r} is not a field", remedy)
            continue
        labels, scale = row.get("labels", {}), row.get("scale", 1.0)
        texts = [row.get("source"), row.get("name"), row.get("value_label", ""), *dict(labels).values()]
        if not all(isinstance(t, str) for t in texts) or not row["source"] or not row["name"]:
            entry.problem("fields", f"{row!r} needs source and name, and strings as labels", remedy)
        elif isinstance(scale, bool) or not isinstance(scale, (int, float)) or scale == 0:
            entry.problem("fields", f"the scale of {row['name']} must be a number other than 0", "leave it out for 1")
        else:
            fields.append(
                SourceField(row["source"], row["name"], float(scale), dict(labels), row.get("value_label", ""))
            )
    return tuple(fields)


def _expectation(entry: Entry) -> Expectation | None:
    entry.allow("id", "type", "unit", "help")
    made = Expectation(
        entry.text("id"),
        entry.choice("type", tuple(DTYPES)),
        entry.text("unit", required="unit" not in entry.row),
        entry.text("help"),
    )
    return made if entry.good else None


def _feature(entry: Entry, signals: Mapping[str, Signal]) -> Feature | None:
    entry.allow("id", "signal", "function", "window_s", "help")
    signal = signals.get(entry.text("signal"))
    function = entry.choice("function", tuple(FUNCTIONS))
    window = entry.number("window_s")
    if signal is None:
        entry.problem("signal", "is not a signal of this catalogue", "nodeworthy catalogue list signals")
    elif signal.type not in ("int", "float"):
        entry.problem("signal", f"{signal.id} is not a number", "features need a number")
    elif signal.counter is not (function in ("increase", "rate", "rate_per_minute")) and function != "changes":
        kind = "a counter" if signal.counter else "not a counter"
        entry.problem(
            "function", f"{function} does not fit: {signal.id} is {kind}", "increase or rate for counters only"
        )
    if window is None or window <= 0:
        entry.problem("window_s", "must be more than 0 seconds", "for example 600")
    if signal is None or not entry.good:
        return None
    return Feature(entry.text("id"), signal.kind, signal.id, function, window or 0.0, entry.text("help"))
