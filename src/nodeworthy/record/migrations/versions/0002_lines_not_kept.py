"""How many more lines an event stands for."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # SQLite writes an added column behind the constraints; made anew, the table is to the letter what `tables` says
    with op.batch_alter_table("events") as table:
        table.add_column(sa.Column("more", sa.Integer(), nullable=True))
