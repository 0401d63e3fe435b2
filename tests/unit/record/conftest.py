"""Fixtures of the record's tests."""

from __future__ import annotations

from tests.postgres import postgres_server, postgres_url  # noqa: F401  (fixtures)
