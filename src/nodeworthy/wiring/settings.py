"""The settings of `nodeworthy.toml`: names, types, defaults and what each is for.

Durations are written as people write them (`30s`, `2h30m`, `400d`). Every setting has a default that works:
with no file at all Nodeworthy reads the Slurm whose commands are on PATH and nothing else. No secret stands
in the file: secrets are read from files of their own, which nobody else may read. docs/reference/settings.md
is generated from these models.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer, field_validator, model_validator

from nodeworthy.errors import BadRequest
from nodeworthy.model.duration import format_duration, parse_duration
from nodeworthy.model.nodeset import unfold
from nodeworthy.model.secrets import holds_secret, names_secret
from nodeworthy.wiring import paths

# the scheduler's reading, and our own loops: a source of the same name would speak for them
RESERVED = frozenset({"slurm", "turn", "retention", "api"})


def _seconds(value: object) -> object:
    if not isinstance(value, str):
        raise ValueError('a duration is a text with its unit, such as "30s" or "2h30m"')
    try:
        return parse_duration(value)
    except BadRequest as error:
        raise ValueError(f"{error}; {error.hint}") from error


# seconds; written as 30s, 2h30m, 400d
Duration = Annotated[float, BeforeValidator(_seconds), PlainSerializer(format_duration, return_type=str)]


def _no_secret_in(url: str) -> str:
    if holds_secret(url):
        raise ValueError("a password or token does not belong into this file; put it into a file of its own, mode 0600")
    return url


def _web_address(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"{parts.scheme or 'this'} is not an address; write it as http://HOST:PORT/PATH")
    return _no_secret_in(url)


def unfold_targets(targets: Iterable[str]) -> tuple[tuple[str, str], ...]:
    """(name, address) of every exporter; the name is empty where the address alone tells who it is.

    `n[1-2] http://gateway/n[1-2]/metrics` names each page of a gateway: both node sets unfold side by side.
    """
    found: list[tuple[str, str]] = []
    for target in targets:
        words = target.split()
        if len(words) == 1:
            found += [("", address) for address in unfold_addresses(words)]
            continue
        if len(words) != 2:
            raise ValueError(f"{target!r}: write an address, or a name and an address")
        names = unfold(words[0])
        addresses = _unfold_anywhere(words[1])
        if len(names) != len(addresses):
            raise ValueError(f"{target!r}: {len(names)} names and {len(addresses)} addresses")
        found += zip(names, addresses, strict=True)
    return tuple(found)


def _unfold_anywhere(address: str) -> list[str]:
    """One address for each name of the node set in it, wherever in the address it stands."""
    before, bracket, rest = address.partition("[")
    inside, closing, after = rest.partition("]")
    if not bracket or not closing:
        return [address]
    return [f"{before}{part}{after}" for part in unfold(f"[{inside}]")]


def unfold_addresses(targets: Iterable[str]) -> tuple[str, ...]:
    """`http://n[1-2]:9400/metrics` → one address a node. An IPv6 address in brackets stays what it is."""
    found: list[str] = []
    for target in targets:
        scheme, slashes, rest = target.partition("://")
        host, port_and_path = _split_host(rest)
        names = (host,) if host.startswith("[") or "[" not in host else unfold(host)
        found += [f"{scheme}{slashes}{name}{port_and_path}" for name in names]
    return tuple(found)


def _split_host(rest: str) -> tuple[str, str]:
    """`n[1-2]:9400/metrics` → (`n[1-2]`, `:9400/metrics`)"""
    depth = 0
    for place, letter in enumerate(rest):
        depth += (letter == "[") - (letter == "]")
        if depth == 0 and letter in ":/":
            return rest[:place], rest[place:]
    return rest, ""


class Section(BaseModel):
    """What all sections share: an unknown setting is an error (a misspelt one would be silently ignored)."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Turn(Section):
    """The turn: how often everything is judged and decided anew."""

    interval: Duration = Field(
        default=5.0, description="Time between two turns. A trusted log line starts one at once."
    )

    @field_validator("interval")
    @classmethod
    def not_too_often(cls, value: float) -> float:
        if not 1 <= value <= 300:
            raise ValueError("must be between 1s and 5m")
        return value


class Slurm(Section):
    """The scheduler. Only reads; needs no more rights than `scontrol show node` and `squeue` of an ordinary user."""

    enabled: bool = Field(default=True, description="Whether there is a Slurm to read.")
    cluster: str = Field(default="", description="Name of the cluster; empty: as the controller says.")
    bin_dir: Path | None = Field(
        default=None, description="Where `scontrol`, `squeue` and `sinfo` are; unset: on PATH."
    )
    conf: Path | None = Field(
        default=None, description="slurm.conf of this cluster (SLURM_CONF); unset: Slurm's own default."
    )
    environment: dict[str, str] = Field(
        default_factory=dict, description="More environment for the Slurm commands, such as SLURM_CLUSTERS."
    )
    interval: Duration = Field(
        default=30.0, description="Time between two readings. At least 5s: the controller has other work than us."
    )
    timeout: Duration = Field(
        default=30.0, description="How long one command may take before the controller counts as silent."
    )

    @field_validator("environment")
    @classmethod
    def no_secrets(cls, value: dict[str, str]) -> dict[str, str]:
        secrets = sorted(filter(names_secret, value))
        if secrets:
            raise ValueError(
                f"a secret ({secrets[0]}) does not belong into this file; set it in the service's own environment"
            )
        return value

    @field_validator("interval")
    @classmethod
    def gentle(cls, value: float) -> float:
        if value < 5:
            raise ValueError("must be at least 5s, so that reading never burdens the controller")
        return value


class Exporters(Section):
    """A group of exporters that are read directly (dcgm-exporter, node_exporter). Up to some hundred nodes;
    beyond that ask the Prometheus that reads them anyway."""

    name: str = Field(description="What this source is called, for example `dcgm`.")
    targets: tuple[str, ...] = Field(
        description="Addresses, such as `http://n1:9400/metrics`. A node set in it is unfolded: `http://n[1-16]:9400/metrics`. Behind a gateway say whose page it is: `n[1-16] http://gateway/n[1-16]/metrics`.",
    )
    interval: Duration = Field(default=15.0, description="Time between two readings.")
    timeout: Duration = Field(default=5.0, description="How long one exporter may take.")
    headers_file: Path | None = Field(
        default=None, description="File (mode 0600) with `Name: value` lines to send, for exporters that want a token."
    )
    ca_file: Path | None = Field(default=None, description="Certificates to trust instead of the system's.")

    @field_validator("targets")
    @classmethod
    def addresses(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if not value:
            raise ValueError("name at least one target")
        try:
            for _, address in unfold_targets(value):
                _web_address(address)
        except BadRequest as error:
            raise ValueError(f"{error}; {error.hint}") from error
        return value

    @property
    def unfolded(self) -> tuple[tuple[str, str], ...]:
        """Every exporter's name (empty: as its address says) and address, node sets unfolded."""
        return unfold_targets(self.targets)

    @field_validator("interval")
    @classmethod
    def gentle(cls, value: float) -> float:
        if value < 1:
            raise ValueError("must be at least 1s")
        return value


class Prometheus(Section):
    """A Prometheus or VictoriaMetrics that knows the fleet's signals."""

    name: str = Field(default="prometheus", description="What this source is called.")
    url: str = Field(description="Its address, such as `http://prometheus:9090`.")
    interval: Duration = Field(default=15.0, description="Time between two queries.")
    timeout: Duration = Field(default=10.0, description="How long one query may take.")
    federate: bool = Field(
        default=False,
        description="Read `/federate` instead of the query API: several times faster on large fleets, where it is allowed.",
    )
    token_file: Path | None = Field(default=None, description="File (mode 0600) with a bearer token.")
    ca_file: Path | None = Field(default=None, description="Certificates to trust instead of the system's.")

    @field_validator("url")
    @classmethod
    def address(cls, value: str) -> str:
        return _web_address(value)


class Logs(Section):
    """A log file to follow: a node's own (name its `host`) or a central one of many hosts."""

    path: Path = Field(
        description="The file. It is followed through rotation, and from where it was left after a restart."
    )
    name: str = Field(default="", description="What this source is called; empty: the path.")
    host: str = Field(default="", description="Whose log this is; empty: each line names its host (a central file).")
    start: Literal["end", "beginning"] = Field(
        default="end", description="Where to begin in a file that was never read before."
    )
    trusted: bool | None = Field(
        default=None,
        description="Whether its kernel lines came by kernel transport (imklog, journald) through relays that you trust, so that no user can forge them; only such lines hold nodes. Unset: true with `host`, false for a central file, where every sender chooses tag, facility and host.",
    )

    @property
    def is_trusted(self) -> bool:
        """Trust in a central file must be stated; a node's own file is written by its own syslog or journal."""
        return bool(self.host) if self.trusted is None else self.trusted

    @property
    def called(self) -> str:
        """The source's one name: in the record, in the status and in every event."""
        return self.name or str(self.path)


class Retention(Section):
    """How long what has ended is kept. What is open is never removed."""

    record: Duration = Field(default=400 * 86400.0, description="Findings, holds, states, events and ledger entries.")
    history: Duration = Field(default=2 * 86400.0, description="Telemetry history for rates and windows.")
    every: Duration = Field(default=86400.0, description="Time between two clean-ups.")

    @field_validator("every")
    @classmethod
    def sane(cls, value: float) -> float:
        if value < 60:
            raise ValueError("must be at least 1m")
        return value


class PolicySettings(Section):
    """What decisions may depend on."""

    settle: Duration = Field(
        default=60.0,
        description="How long evidence that may have a shared cause (link, heat, power) is watched before it counts.",
    )
    shared_nodes: int = Field(
        default=3, ge=2, description="From how many nodes on one symptom is taken for their domain's."
    )
    shared_share: float = Field(default=0.5, gt=0, le=1, description="… and from what share of the domain's nodes on.")


class Settings(Section):
    """All of `nodeworthy.toml`."""

    mode: Literal["observe"] = Field(
        default="observe", description="What may be done outside. `observe`: nothing is written."
    )
    fleet: Path | None = Field(
        default=None,
        description="The fleet file (`nodeworthy fleet import`); unset: fleet.toml beside this file, /etc/nodeworthy/fleet.toml, else as Slurm says.",
    )
    catalogue: tuple[Path, ...] = Field(
        default=(), description="Catalogue files of the site, laid over the built-in ones in this order."
    )
    state_dir: Path = Field(
        default_factory=paths.state_dir,
        description="Where Nodeworthy keeps what it must not forget (default: /var/lib/nodeworthy, or the user's own state directory).",
    )
    store: str = Field(
        default="",
        description="The record: `sqlite:///PATH` or `postgresql://USER@HOST/DB?passfile=FILE`; empty: record.db in `state_dir`. NODEWORTHY_STORE wins over it.",
    )
    socket: Path = Field(
        default_factory=paths.socket_path,
        description="The API's Unix socket (default: /run/nodeworthy/nodeworthy.sock, or the user's own).",
    )
    socket_group: str = Field(
        default="", description="Group that may use the socket; empty: the group Nodeworthy runs as."
    )
    metrics_listen: str = Field(
        default="",
        description="HOST:PORT where `/metrics`, `/healthz` and `/readyz` alone are also served, for Prometheus; empty: nowhere.",
    )
    turn: Turn = Field(default_factory=Turn)
    slurm: Slurm = Field(default_factory=Slurm)
    exporters: tuple[Exporters, ...] = ()
    prometheus: tuple[Prometheus, ...] = ()
    logs: tuple[Logs, ...] = ()
    retention: Retention = Field(default_factory=Retention)
    policy: PolicySettings = Field(default_factory=PolicySettings)

    @field_validator("store")
    @classmethod
    def no_secret(cls, value: str) -> str:
        return _no_secret_in(value)

    @field_validator("socket")
    @classmethod
    def short(cls, value: Path) -> Path:
        if len(os.fsencode(value)) > 107:
            raise ValueError("a socket's path has at most 107 bytes (unix(7)); choose a shorter one")
        return value

    @model_validator(mode="after")
    def names_differ(self) -> Settings:
        names = [e.name for e in self.exporters] + [p.name for p in self.prometheus]
        names += [log.called for log in self.logs]
        reserved = sorted(RESERVED.intersection(names))
        if reserved:
            raise ValueError(
                f"{reserved[0]!r} is what a part of Nodeworthy itself is called; give the source another `name`"
            )
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"two sources are called {twice[0]!r}; give each a `name` of its own")
        return self

    @property
    def store_url(self) -> str:
        """The store, filled in: NODEWORTHY_STORE wins over the file, and `state_dir` holds the default."""
        return os.environ.get("NODEWORTHY_STORE") or self.store or str(self.state_dir / "record.db")
