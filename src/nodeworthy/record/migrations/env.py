"""What Alembic runs for every upgrade: the steps, in the transaction of the connection that we hand it."""

from __future__ import annotations

from alembic import context

# SQLite's DDL is transactional once the transaction is opened by hand, as `engine` does
context.configure(connection=context.config.attributes["connection"], transactional_ddl=True)
context.run_migrations()
