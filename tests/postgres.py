"""A private PostgreSQL for tests: real binaries, a temporary directory, a Unix socket and nothing else.

Use: `from tests.postgres import postgres_server, postgres_url` in a conftest.py; a test that asks for
`postgres_url` gets the URL of an empty database of its own, and is skipped, with the reason, where the
Debian package `postgresql` is not installed.
"""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

_NUMBERS = itertools.count(1)


def binaries() -> Path | None:
    """The folder with the newest initdb, or None."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[4]))
    if found:
        return found[-1].parent
    named = shutil.which("initdb")
    return Path(named).resolve().parent if named else None


class Server:
    """A running server; `database()` makes an empty database and gives its URL."""

    def __init__(self, folder: Path, bin: Path) -> None:
        self.folder, self.bin = folder, bin
        root = os.geteuid() == 0
        # the server refuses to run as root; the package brings the user postgres
        self._as: dict[str, object] = {"user": "postgres", "group": "postgres", "extra_groups": []} if root else {}
        if root:
            shutil.chown(folder, "postgres", "postgres")

    def _run(self, program: str, *arguments: str) -> None:
        command = [str(self.bin / program), *arguments]
        subprocess.run(command, check=True, cwd=self.folder, timeout=120, stdout=subprocess.DEVNULL, **self._as)  # type: ignore[call-overload]

    def start(self) -> None:
        self._run("initdb", "-D", "data", "-U", "app", "--auth=trust", "-E", "UTF8", "--no-locale", "--no-sync")
        self.resume()

    def resume(self) -> None:
        settings = f"-c listen_addresses='' -k {self.folder} -c fsync=off -c max_connections=50"
        self._run("pg_ctl", "-D", "data", "-w", "-l", "log", "-o", settings, "start")

    def stop(self) -> None:
        self._run("pg_ctl", "-D", "data", "-w", "-m", "immediate", "stop")

    def database(self) -> str:
        name = f"test{next(_NUMBERS)}"
        with psycopg.connect(f"host={self.folder} user=app dbname=postgres", autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        return f"postgresql://app@/{name}?host={self.folder}"


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Server]:
    found = binaries()
    if found is None:
        pytest.skip("PostgreSQL is not installed (apt-get install postgresql)")
    # a short path: a Unix socket's name has at most 107 bytes
    with tempfile.TemporaryDirectory(prefix="nwpg-", dir="/tmp") as folder:
        server = Server(Path(folder), found)
        server.start()
        try:
            yield server
        finally:
            server.stop()


@pytest.fixture
def postgres_url(postgres_server: Server) -> str:
    return postgres_server.database()
