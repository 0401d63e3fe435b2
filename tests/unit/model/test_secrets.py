"""Secrets in addresses are found and are not shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from nodeworthy.errors import NodeworthyError
from nodeworthy.model.secrets import holds_secret, names_secret, redacted
from nodeworthy.record.engine import parse_url, shown
from nodeworthy.record.store import open_store

SECRET = [
    "postgresql://u:hush@h/d",
    "postgresql://u@h/d?password=hush",
    "postgresql://u@h/d?sslmode=require&password=hush&x=1",
    "postgresql://u:a@hush@h/d",
    "http://hush@host:9090/path",
    "https://u:hush@host",
    "http://host/metrics?token=hush",
    "http://host/metrics?a=1&api_key=hush#part",
    "http://host/?Access_Token=hush",
]
PLAIN = [
    "postgresql://u@h/d?passfile=/etc/nodeworthy/pass",
    "postgresql://u@h/d?sslkey=/etc/key.pem&sslmode=require",
    "sqlite:////var/lib/nodeworthy/record.db",
    "http://n1:9400/metrics?collect=gpu",
    "",
]


@pytest.mark.parametrize("url", SECRET)
def test_a_secret_is_found_and_hidden(url: str) -> None:
    """As password, as the user of a web address, as a parameter."""
    assert holds_secret(url)
    assert "hush" not in redacted(url)
    assert "***" in redacted(url)


@pytest.mark.parametrize("url", PLAIN)
def test_what_is_no_secret_stays(url: str) -> None:
    """Users of databases, and files that hold secrets, may be named."""
    assert not holds_secret(url)
    assert redacted(url) == url


def test_names_of_secrets() -> None:
    """Variables and parameters by their last word."""
    assert all(map(names_secret, ["SLURM_JWT", "password", "API_KEY", "x-auth", "token"]))
    assert not any(map(names_secret, ["SLURM_CLUSTERS", "passfile", "sslkey", "keyspace", "monkey", "tokens_seen"]))


def test_the_store_never_tells_its_password(tmp_path: Path) -> None:
    """Neither what is shown of a store nor the error where it cannot be reached."""
    url = f"postgresql://u@/d?host={tmp_path}&password=hush"
    assert "hush" not in shown(parse_url(url))
    with pytest.raises(NodeworthyError) as error:
        open_store(url)
    assert "hush" not in str(error.value) + error.value.hint
