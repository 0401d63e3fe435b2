"""The tables of the record, for SQLite and PostgreSQL alike.

Every table with a history is keyed by a number that Nodeworthy itself hands out from `counters`, under the
one write lock (see `store`), so numbers follow commit order on both databases, have no gaps after a
rollback, are never used twice and travel unchanged in a backup. Times are POSIX seconds (UTC) as doubles.
Open findings and holds are the rows without `ended`; a partial unique index allows one a key.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from typing import Any, Final

import orjson
import sqlalchemy as sa

from nodeworthy.errors import Garbled

NAMING: Final = {"ix": "ix_%(table_name)s_%(column_0_N_name)s", "pk": "pk_%(table_name)s"}
_SURROGATES: Final = re.compile("[\ud800-\udfff]")
_PLAIN: Final = orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_PASSTHROUGH_DATETIME
metadata = sa.MetaData(naming_convention=NAMING)

# SQLite's INTEGER PRIMARY KEY is the row id itself; a BIGINT there would be a second index
Number = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def clean_text(text: str) -> str:
    """Text that every database takes: NUL and lone surrogates (undecodable bytes of a log) become U+FFFD."""
    if "\0" in text:
        text = text.replace("\0", "\ufffd")
    return text if text.isascii() else _SURROGATES.sub("\ufffd", text)


def clean_json(value: Any) -> Any:
    """JSON that every database takes: clean text, and null for NaN and infinities, which JSON cannot say."""
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {clean_text(str(key)): clean_json(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [clean_json(item) for item in value]
    if isinstance(value, (set, frozenset)):
        return [clean_json(item) for item in sorted(value, key=str)]
    return value if value is None or isinstance(value, (bool, int)) else clean_text(str(value))


def dump_json(value: Any) -> str:
    """The cleaned value as JSON. orjson says null for NaN by itself and refuses what it cannot say (odd text, sets,
    huge integers): only that, and text with NUL, takes the slow way."""
    try:
        text = orjson.dumps(value, option=_PLAIN)
    except orjson.JSONEncodeError:
        text = b"\\u0000"
    if b"\\u0000" in text:
        return json.dumps(clean_json(value), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.decode()


def load_json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise Garbled(f"the store holds what is not JSON: {text[:80]!r}", hint="restore a backup") from error


class Words(sa.types.TypeDecorator[str]):
    """Text from outside, cleaned on its way in."""

    impl = sa.Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: sa.Dialect) -> str | None:
        return _clean_or_none(value)


def converter(column: sa.Column[Any] | None) -> Callable[[Any], Any]:
    """What turns a value of a word's field into what the driver takes for this column (None: a plain value)."""
    if column is None:
        return _as_it_is
    if isinstance(column.type, sa.JSON):
        return dump_json
    return _clean_or_none if isinstance(column.type, Words) else _as_it_is


def _clean_or_none(text: str | None) -> str | None:
    return None if text is None else clean_text(text)


def _as_it_is(value: Any) -> Any:
    return value


def _words(name: str, *, null: bool = False) -> sa.Column[str]:
    return sa.Column(name, Words, nullable=null)


def _time(name: str, *, null: bool = False) -> sa.Column[float]:
    return sa.Column(name, sa.Double, nullable=null)


def _json(name: str) -> sa.Column[Any]:
    return sa.Column(name, sa.JSON, nullable=False)


def _number() -> sa.Column[int]:
    return sa.Column("id", Number, primary_key=True, autoincrement=False)


counters = sa.Table(
    "counters",
    metadata,
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("value", sa.BigInteger, nullable=False),
)

ledger = sa.Table(
    "ledger",
    metadata,
    _number(),  # the sequence
    _time("at"),
    _words("kind"),
    _words("subject"),
    _words("node"),  # the subject's node: what comes before its first slash
    _words("summary"),
    _words("cause"),
    _words("actor"),
    _json("data"),
    sa.Index(None, "at"),
    sa.Index(None, "node", "id"),
    sa.Index(None, "kind", "id"),
)

findings = sa.Table(
    "findings",
    metadata,
    _number(),
    _words("key"),
    _words("check_id"),
    _words("node"),
    _words("component"),
    _words("index"),
    _words("verdict"),
    _words("severity"),
    sa.Column("confidence", sa.Double, nullable=False),
    _time("since"),
    _time("ended", null=True),
    _words("summary"),
    _json("evidence"),
    _words("unknown", null=True),
    _words("trust"),
    _words("locality"),
    _words("action"),
    _words("proof"),
    _words("clears"),
    _words("rule_version"),
    _words("boot_id", null=True),
    sa.Index(None, "node", "id"),
    sa.Index(None, "ended"),
)
sa.Index(
    "ux_findings_open",
    findings.c.key,
    unique=True,
    sqlite_where=findings.c.ended.is_(None),
    postgresql_where=findings.c.ended.is_(None),
)

holds = sa.Table(
    "holds",
    metadata,
    _number(),
    _words("key"),
    _words("node"),
    _words("component"),
    _words("index"),
    _words("effect"),
    _words("owner_kind"),
    _words("owner_name"),
    _words("state"),
    _words("reason"),
    _time("since"),
    _time("ended", null=True),
    _json("evidence"),
    _json("because"),
    _words("clears"),
    _words("waiting_for"),
    _time("deadline", null=True),
    sa.Index(None, "node", "id"),
    sa.Index(None, "ended"),
)
sa.Index(
    "ux_holds_open",
    holds.c.key,
    unique=True,
    sqlite_where=holds.c.ended.is_(None),
    postgresql_where=holds.c.ended.is_(None),
)

node_states = sa.Table(
    "node_states",
    metadata,
    _number(),
    _words("node"),
    _words("state"),
    _json("flags"),
    _time("at"),
    _words("reason", null=True),
    _words("user", null=True),
    _time("reason_at", null=True),
    sa.Index(None, "node", "id"),
    sa.Index(None, "at"),
)

events = sa.Table(
    "events",
    metadata,
    _number(),
    _words("source"),
    _time("at"),
    _words("host"),
    _words("component"),
    _words("kind"),
    _words("code"),
    _words("role"),
    _words("severity"),
    _words("action"),
    _words("proof"),
    sa.Column("trusted", sa.Boolean, nullable=False),
    _words("rule"),
    _words("message"),
    _words("node", null=True),
    sa.Column("gpu", sa.Integer, nullable=True),
    sa.Column("more", sa.Integer, nullable=True),  # null is none: rows from before the column
    _time("read_at", null=True),
    sa.Column("timed", sa.Boolean, nullable=True),  # null is yes: rows from before the column
    sa.Index(None, "node", "id"),
    sa.Index(None, "at"),
)

boots = sa.Table(
    "boots",
    metadata,
    _number(),
    _words("node"),
    _words("boot_id"),
    _time("at"),
    sa.Index("ux_boots_node_boot_id", "node", "boot_id", unique=True),
    sa.Index(None, "node", "id"),
)

cursors = sa.Table(
    "cursors",
    metadata,
    sa.Column("source", Words, primary_key=True),
    _json("cursor"),
    _time("at"),
)

sources = sa.Table(
    "sources",
    metadata,
    sa.Column("source", Words, primary_key=True),
    _words("health"),
    _time("since"),
    _time("last_seen", null=True),
    _json("problems"),
)

revisions = sa.Table(
    "revisions",
    metadata,
    sa.Column("kind", Words, primary_key=True),
    sa.Column("digest", Words, primary_key=True),
    _time("at"),
    _json("content"),
)

notes = sa.Table(
    "notes",
    metadata,
    sa.Column("key", Words, primary_key=True),
    _json("value"),
)

# tables whose rows are numbered from `counters`, under their own name
NUMBERED: Final = (ledger, findings, holds, node_states, events, boots)
