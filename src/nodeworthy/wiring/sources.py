"""The sources of a site, made from its settings: each a port that an observer reads."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from nodeworthy.adapters.exposition.scrape import Limits, ScrapeTelemetry, Target
from nodeworthy.adapters.files.literals import finder
from nodeworthy.adapters.files.log_rules import load_grammar
from nodeworthy.adapters.files.log_source import local_zone
from nodeworthy.adapters.logfile import LogFile
from nodeworthy.adapters.prometheus.telemetry import Limits as QueryLimits
from nodeworthy.adapters.prometheus.telemetry import PrometheusTelemetry
from nodeworthy.adapters.slurm.command import SlurmCommand
from nodeworthy.adapters.slurm.scheduler import SlurmScheduler
from nodeworthy.model.catalogue import Signal
from nodeworthy.ports import Clock
from nodeworthy.wiring.settings import Exporters, Logs, Prometheus, Slurm

Resolve = Callable[[str], str | None]


def scheduler(slurm: Slurm, clock: Clock) -> SlurmScheduler:
    environment = {**slurm.environment, **({"SLURM_CONF": str(slurm.conf)} if slurm.conf else {})}
    command = SlurmCommand(env=environment, timeout_s=slurm.timeout, bin_dir=slurm.bin_dir)
    # a little less than the interval, so that two rounds of the observer never get the same reading
    return SlurmScheduler(command, clock, minimum_interval_s=0.9 * slurm.interval)


def exporters(group: Exporters, signals: Sequence[Signal], resolve: Resolve, clock: Clock) -> ScrapeTelemetry:
    return ScrapeTelemetry(
        [Target(url, name) for name, url in group.unfolded],
        signals,
        resolve,
        clock,
        source=group.name,
        limits=Limits(timeout_s=group.timeout),
        headers=_headers(group.headers_file),
        verify=_trust(group.ca_file),
    )


def prometheus(site: Prometheus, signals: Sequence[Signal], resolve: Resolve, clock: Clock) -> PrometheusTelemetry:
    return PrometheusTelemetry(
        site.url,
        signals,
        resolve,
        clock,
        source=site.name,
        federate=site.federate,
        limits=QueryLimits(timeout_s=site.timeout),
        headers=_bearer(site.token_file),
        verify=_trust(site.ca_file),
    )


def log_file(file: Logs, resolve: Resolve, clock: Clock, cursor: Mapping[str, Any] | None) -> LogFile:
    grammar = load_grammar()
    return LogFile(
        file.path,
        grammar=grammar,
        find=finder(grammar.literals),
        clock=clock,
        resolve=resolve,
        cursor=cursor,
        zone=local_zone(),
        host=file.host,
        from_start=file.start == "beginning",
        trusted=file.is_trusted,
        source=file.called,
    )


def _headers(path: Path | None) -> Mapping[str, str] | None:
    if path is None:
        return None
    pairs = (line.partition(":") for line in path.read_text().splitlines() if ":" in line)
    return {name.strip(): value.strip() for name, _, value in pairs}


def _bearer(path: Path | None) -> Mapping[str, str] | None:
    return None if path is None else {"Authorization": f"Bearer {path.read_text().strip()}"}


def _trust(path: Path | None) -> ssl.SSLContext | bool:
    return True if path is None else ssl.create_default_context(cafile=str(path))
