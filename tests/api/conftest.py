"""Fixtures of the API's tests."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from nodeworthy.api.app import create_app
from nodeworthy.cli.client import Client
from tests.serving import serving
from tests.views_in_memory import MemoryViews


@pytest.fixture
def views() -> MemoryViews:
    return MemoryViews()


@pytest.fixture
def client(views: MemoryViews, tmp_path: Path) -> Iterator[Client]:
    stop = asyncio.Event()
    with serving(create_app(views, stop=stop), tmp_path / "api.sock", stop) as path:
        yield Client(str(path))
