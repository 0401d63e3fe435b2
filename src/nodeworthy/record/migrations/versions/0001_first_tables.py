"""The first tables."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
COUNTED = ("boots", "events", "findings", "holds", "ledger", "node_states")


def _boots() -> None:
    op.create_table(
        "boots",
        sa.Column("id", NUMBER, autoincrement=False, nullable=False),
        sa.Column("node", sa.Text(), nullable=False),
        sa.Column("boot_id", sa.Text(), nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_boots"),
    )
    op.create_index("ix_boots_node_id", "boots", ["node", "id"], unique=False)
    op.create_index("ux_boots_node_boot_id", "boots", ["node", "boot_id"], unique=True)


def _counters() -> None:
    op.create_table(
        "counters",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("value", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_counters"),
    )


def _cursors() -> None:
    op.create_table(
        "cursors",
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("cursor", sa.JSON(), nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("source", name="pk_cursors"),
    )


def _events() -> None:
    op.create_table(
        "events",
        sa.Column("id", NUMBER, autoincrement=False, nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        sa.Column("host", sa.Text(), nullable=False),
        sa.Column("component", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("code", sa.Text(), nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("severity", sa.Text(), nullable=False),
        sa.Column("action", sa.Text(), nullable=False),
        sa.Column("proof", sa.Text(), nullable=False),
        sa.Column("trusted", sa.Boolean(), nullable=False),
        sa.Column("rule", sa.Text(), nullable=False),
        sa.Column("message", sa.Text(), nullable=False),
        sa.Column("node", sa.Text(), nullable=True),
        sa.Column("gpu", sa.Integer(), nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_events"),
    )
    op.create_index("ix_events_at", "events", ["at"], unique=False)
    op.create_index("ix_events_node_id", "events", ["node", "id"], unique=False)


def _findings() -> None:
    op.create_table(
        "findings",
        sa.Column("id", NUMBER, autoincrement=False, nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("check_id", sa.Text(), nullable=False),
        sa.Column("node", sa.Text(), nullable=False),
        sa.Column("component", sa.Text(), nullable=False),
        sa.Column("index", sa.Text(), nullable=False),
        sa.Column("verdict", sa.Text(), nullable=False),
        sa.Column("severity", sa.Text(), nullable=False),
        sa.Column("confidence", sa.Double(), nullable=False),
        sa.Column("since", sa.Double(), nullable=False),
        sa.Column("ended", sa.Double(), nullable=True),
        sa.Column("summary", sa.Text(), nullable=False),
        sa.Column("evidence", sa.JSON(), nullable=False),
        sa.Column("unknown", sa.Text(), nullable=True),
        sa.Column("trust", sa.Text(), nullable=False),
        sa.Column("locality", sa.Text(), nullable=False),
        sa.Column("action", sa.Text(), nullable=False),
        sa.Column("proof", sa.Text(), nullable=False),
        sa.Column("clears", sa.Text(), nullable=False),
        sa.Column("rule_version", sa.Text(), nullable=False),
        sa.Column("boot_id", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_findings"),
    )
    op.create_index("ix_findings_ended", "findings", ["ended"], unique=False)
    op.create_index("ix_findings_node_id", "findings", ["node", "id"], unique=False)
    op.create_index(
        "ux_findings_open",
        "findings",
        ["key"],
        unique=True,
        sqlite_where=sa.text("ended IS NULL"),
        postgresql_where=sa.text("ended IS NULL"),
    )


def _holds() -> None:
    op.create_table(
        "holds",
        sa.Column("id", NUMBER, autoincrement=False, nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("node", sa.Text(), nullable=False),
        sa.Column("component", sa.Text(), nullable=False),
        sa.Column("index", sa.Text(), nullable=False),
        sa.Column("effect", sa.Text(), nullable=False),
        sa.Column("owner_kind", sa.Text(), nullable=False),
        sa.Column("owner_name", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("since", sa.Double(), nullable=False),
        sa.Column("ended", sa.Double(), nullable=True),
        sa.Column("evidence", sa.JSON(), nullable=False),
        sa.Column("because", sa.JSON(), nullable=False),
        sa.Column("clears", sa.Text(), nullable=False),
        sa.Column("waiting_for", sa.Text(), nullable=False),
        sa.Column("deadline", sa.Double(), nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_holds"),
    )
    op.create_index("ix_holds_ended", "holds", ["ended"], unique=False)
    op.create_index("ix_holds_node_id", "holds", ["node", "id"], unique=False)
    op.create_index(
        "ux_holds_open",
        "holds",
        ["key"],
        unique=True,
        sqlite_where=sa.text("ended IS NULL"),
        postgresql_where=sa.text("ended IS NULL"),
    )


def _ledger() -> None:
    op.create_table(
        "ledger",
        sa.Column("id", NUMBER, autoincrement=False, nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("node", sa.Text(), nullable=False),
        sa.Column("summary", sa.Text(), nullable=False),
        sa.Column("cause", sa.Text(), nullable=False),
        sa.Column("actor", sa.Text(), nullable=False),
        sa.Column("data", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_ledger"),
    )
    op.create_index("ix_ledger_at", "ledger", ["at"], unique=False)
    op.create_index("ix_ledger_kind_id", "ledger", ["kind", "id"], unique=False)
    op.create_index("ix_ledger_node_id", "ledger", ["node", "id"], unique=False)


def _node_states() -> None:
    op.create_table(
        "node_states",
        sa.Column("id", NUMBER, autoincrement=False, nullable=False),
        sa.Column("node", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("flags", sa.JSON(), nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("user", sa.Text(), nullable=True),
        sa.Column("reason_at", sa.Double(), nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_node_states"),
    )
    op.create_index("ix_node_states_at", "node_states", ["at"], unique=False)
    op.create_index("ix_node_states_node_id", "node_states", ["node", "id"], unique=False)


def _notes() -> None:
    op.create_table(
        "notes",
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("value", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("key", name="pk_notes"),
    )


def _revisions() -> None:
    op.create_table(
        "revisions",
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        sa.Column("content", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("kind", "digest", name="pk_revisions"),
    )


def _sources() -> None:
    op.create_table(
        "sources",
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("health", sa.Text(), nullable=False),
        sa.Column("since", sa.Double(), nullable=False),
        sa.Column("last_seen", sa.Double(), nullable=True),
        sa.Column("problems", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("source", name="pk_sources"),
    )


def upgrade() -> None:
    _boots()
    _counters()
    _cursors()
    _events()
    _findings()
    _holds()
    _ledger()
    _node_states()
    _notes()
    _revisions()
    _sources()
    counters = sa.table("counters", sa.column("name", sa.Text()), sa.column("value", sa.BigInteger()))
    op.bulk_insert(counters, [{"name": name, "value": 0} for name in COUNTED])
