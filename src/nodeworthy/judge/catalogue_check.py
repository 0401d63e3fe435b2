"""A `[[check]]` table → `Check`, its condition read and typed against the columns that exist."""

from __future__ import annotations

from collections.abc import Mapping

from nodeworthy.judge.catalogue_entry import Entry
from nodeworthy.model.catalogue import Check, EventMatch
from nodeworthy.model.fact import KINDS
from nodeworthy.model.finding import Locality, Severity, Trust
from nodeworthy.model.hold import Effect
from nodeworthy_node import conditions

_TYPES = {"int": conditions.NUMBER, "float": conditions.NUMBER, "bool": conditions.BOOLEAN, "str": conditions.STRING}
LINES_KEPT = 20  # judge.events keeps so many lines per check and component, so no count can ask for more
EFFECTS = ("", *(effect.value for effect in Effect))
_KEYS = (
    "id", "version", "title", "kind", "condition", "event", "applies", "for_s", "clear_s", "severity", "trust", "locality",
    "causes", "effect", "action", "proof", "clears", "help", "source",
)  # fmt: skip


def check_of(entry: Entry, columns: Mapping[str, Mapping[str, str]]) -> Check | None:
    """The check of one table, or None after its problems were noted. `columns`: kind → name → type."""
    entry.allow(*_KEYS)
    kind = entry.choice("kind", KINDS)
    condition, event = entry.text("condition", required=False), _event(entry)
    if bool(condition) == (event is not None):
        entry.problem("condition", "exactly one of condition and event is needed", "remove one, or add one")
    if condition:
        _condition(entry, "condition", condition, columns[kind])
    applies = entry.text("applies", required=False)
    if applies:
        _condition(entry, "applies", applies, {n: t for n, t in columns[kind].items() if n.startswith("class.")})
    made = Check(
        id=entry.text("id"),
        version=entry.text("version"),
        title=entry.text("title"),
        kind=kind,
        condition=condition or None,
        event=event,
        applies=applies,
        for_s=_seconds(entry, "for_s"),
        clear_s=_seconds(entry, "clear_s"),
        severity=Severity(entry.choice("severity", tuple(Severity), Severity.WARNING)),
        trust=Trust(entry.choice("trust", tuple(Trust), Trust.SHADOW)),
        locality=Locality(entry.choice("locality", tuple(Locality), Locality.SELF_EVIDENT)),
        causes=entry.texts("causes"),
        effect=entry.choice("effect", EFFECTS, ""),
        action=entry.text("action"),
        proof=entry.text("proof", required=False),
        clears=entry.text("clears"),
        help=entry.text("help"),
        source=entry.text("source"),
        layer=entry.layer,
    )
    if made.effect and not made.proof:
        entry.problem(
            "proof", "a check that asks for a hold needs a proof", "name the test that must pass before a return"
        )
    return made if entry.good else None


def _seconds(entry: Entry, key: str) -> float:
    value = entry.number(key, 0.0)
    if value is None or not 0 <= value < float("inf"):
        entry.problem(key, "must be 0 or more seconds", "leave it out for 0")
        return 0.0
    return value


def _event(entry: Entry) -> EventMatch | None:
    row = entry.row.get("event")
    if row is None:
        return None
    if not isinstance(row, dict):
        entry.problem("event", "must be a table", 'for example { kind = "xid", codes = ["79"] }')
        return None
    inner = Entry(entry.file, entry.layer, {"id": entry.name, **row}, entry.lines.get("event"), {}, entry.problems)
    inner.allow("id", "kind", "codes", "rules", "count", "window_s")
    count, window = inner.number("count", 1), _seconds(inner, "window_s")
    if count is None or not 1 <= count <= LINES_KEPT or count != int(count):
        inner.problem("count", f"must be a whole number from 1 to {LINES_KEPT}", "leave it out for 1")
        count = 1
    match = EventMatch(inner.text("kind"), inner.texts("codes"), inner.texts("rules"), int(count), window)
    entry.good = entry.good and inner.good
    return match


def _condition(entry: Entry, key: str, text: str, columns: Mapping[str, str]) -> None:
    try:
        condition = conditions.parse(text)
    except conditions.ConditionError as error:
        entry.problem(key, str(error))
        return
    for name in condition.names:
        if name not in columns:
            entry.problem(key, f"{name} is not known here", _remedy(name, key))
        elif columns[name] == "counter":
            entry.problem(
                key, f"{name} is a counter, which never goes back", "use a feature of it, for example an increase"
            )
    types = {name: _TYPES[columns[name]] for name in condition.names if columns.get(name) in _TYPES}
    for misfit in condition.type_errors(types):
        entry.problem(key, str(misfit))


def _remedy(name: str, key: str) -> str:
    if key == "applies":
        return "applies may look at class.NAME only"
    if name.startswith("class."):
        return "declare it as an [[expectation]]"
    return "nodeworthy catalogue list signals"
