"""Fixtures of the command line's tests: a small fleet served on a socket, and a way to call commands."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from nodeworthy.api.app import create_app
from nodeworthy.cli import words
from nodeworthy.cli.main import cli
from tests.serving import serving
from tests.views_in_memory import NOW, MemoryViews

Call = Callable[..., Result]


@pytest.fixture
def views() -> MemoryViews:
    return MemoryViews()


@pytest.fixture
def call(views: MemoryViews, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Call]:
    """Calls `nodeworthy …` against the small fleet, with the clock standing at its night."""
    monkeypatch.setattr(words, "now", lambda: NOW)
    stop = asyncio.Event()
    with serving(create_app(views, stop=stop), tmp_path / "api.sock", stop) as path:
        monkeypatch.setenv("NODEWORTHY_SOCKET", str(path))
        yield lambda *args: CliRunner().invoke(cli, list(args))
