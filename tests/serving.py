"""The real API on a real Unix socket in a thread, for tests of the API and the command line."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fastapi import FastAPI

from nodeworthy.api.server import listening, serve


@contextmanager
def serving(app: FastAPI, path: Path, stop: asyncio.Event | None = None) -> Iterator[Path]:
    """Serves `app` at `path` until the block ends, and then sets `stop`."""
    loop = asyncio.new_event_loop()
    stop = stop or asyncio.Event()

    def run(listener: socket.socket) -> None:
        loop.run_until_complete(serve(app, listener, stop))

    with listening(path) as listener:
        thread = threading.Thread(target=run, args=(listener,))
        thread.start()
        try:
            yield path
        finally:
            loop.call_soon_threadsafe(stop.set)
            thread.join(timeout=20)
            loop.close()
    assert not thread.is_alive()
