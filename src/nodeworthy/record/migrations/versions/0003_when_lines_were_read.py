"""When a line was read, and whether its own time is known."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    with op.batch_alter_table("events") as table:
        table.add_column(sa.Column("read_at", sa.Double(), nullable=True))
        table.add_column(sa.Column("timed", sa.Boolean(), nullable=True))
