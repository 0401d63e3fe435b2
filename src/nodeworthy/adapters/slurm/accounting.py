"""Slurm's accounting as frames: `sacct` and `sacctmgr show event`, live or saved to files.

What their text is like, and what follows:

- `-P` separates with `|` and quotes nothing, while job names, comments and submit lines may hold `|` and line ends.
  So we ask for fields that cannot hold them, put free text (Reason) last, and check every line: as many fields as the
  header, a number as job id, times that are times. What fails is counted and said, never guessed.
- Times are POSIX seconds where `SLURM_TIME_FORMAT=%s` was in force (22.05 to 26.05 honour it in both commands),
  otherwise the local time of the machine that printed them, without zone: then the reader must be told the zone or
  takes its own.
- `sacct` reports an unknown field on stderr with exit code 0, so fields are probed with `--helpformat` first:
  `FailedNode` exists from 23.02.
- Without `-D` a requeued job hides its earlier attempts, among them the one that a node killed.
- In `sacctmgr show event` a row without a node is the registration of the cluster; an open event ends `Unknown`.
- A job without `gres/gpu` in AllocTRES used no GPU where other jobs have one, and is unknown where none has.
"""

from __future__ import annotations

import gzip
import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import IO
from zoneinfo import ZoneInfo

import polars as pl

from nodeworthy.adapters.slurm import states
from nodeworthy.adapters.slurm.command import SlurmCommand
from nodeworthy.errors import BadFile, Garbled, Problem
from nodeworthy.reports.audit.inputs import EVENTS, Gap
from nodeworthy.reports.audit.outages import kind_of

SEPARATORS = ("\x1f", "\x1e", "\t", "|", ";", "^")
NO_TIME = ("Unknown", "None", "", "0", "(null)", "N/A")
JOB_FIELDS = ("JobIDRaw", "User", "State", "Start", "End", "NNodes", "NodeList", "AllocTRES")
EVENT_FIELDS = ("Cluster", "NodeName", "TimeStart", "TimeEnd", "State", "User", "Reason")
NOT_IN_A_LINE = "\x01"
"""A character that no line of text holds: the CSV reader, told to split there, hands us whole lines. A line that does
hold it is cut there, has too few fields and is counted."""
EPOCH_CEILING = 4_102_444_800  # 2100-01-01; a greater "time" is a sentinel


@dataclass(frozen=True, slots=True)
class Table:
    """A frame and what could not be read of it."""

    frame: pl.DataFrame
    gaps: tuple[Gap, ...] = ()


def read_jobs(path: Path, zone: ZoneInfo | None = None) -> Table:
    """A saved `sacct -P` (also `.gz`), of any fields in any order that hold those we need. Raises BadFile."""
    header, separator, skip = _header(path, ("state", "start", "end", "nodelist"))
    names = [h.strip().lower() for h in header]
    missing = [f for f in ("state", "start", "end", "nodelist") if f not in names]
    id_field = "jobidraw" if "jobidraw" in names else "jobid"
    if id_field not in names:
        missing.append("jobidraw")
    if missing:
        raise BadFile(
            [Problem(str(path), skip, ",".join(missing), "is not among the columns", f"save `{sacct_example()}`")]
        )
    lines = pl.scan_csv(
        path, separator=NOT_IN_A_LINE, quote_char=None, has_header=False, skip_rows=skip, encoding="utf8-lossy",
        schema={"line": pl.String}, truncate_ragged_lines=True, extra_columns="ignore",
    )  # fmt: skip
    fields = pl.col("line").str.strip_suffix("\r").str.split(separator)
    picked = lines.select(fields.alias("f")).select(
        pl.col("f").list.len().alias("n"), *(_field(names, key) for key in (id_field, *_WANTED) if key in names)
    )
    for absent in [key for key in _WANTED if key not in names]:
        picked = picked.with_columns(pl.lit(None, pl.String).alias(absent))
    raw = _typed(picked, id_field, len(names)).collect(engine="streaming")
    return _jobs(raw, names, zone, path.name)


_WANTED = ("user", "state", "start", "end", "nnodes", "nodelist", "alloctres", "failednode")


def _field(names: list[str], key: str) -> pl.Expr:
    return pl.col("f").list.get(names.index(key), null_on_oob=True).alias(key)


def _typed(lines: pl.LazyFrame, id_field: str, width: int) -> pl.LazyFrame:
    """Narrow columns, so that millions of jobs fit: times as text only where they are not numbers."""
    total = pl.col("alloctres").str.extract(r"(?:^|,)gres/gpu=(\d+)").cast(pl.Float32)
    typed = pl.col("alloctres").str.extract_all(r"(?:^|,)gres/gpu:[^=,]+=\d+").list.eval(
        pl.element().str.extract(r"=(\d+)$").cast(pl.Float32)
    )  # fmt: skip
    gpus = pl.coalesce(total, pl.when(pl.col("alloctres").str.contains("gres/gpu:")).then(typed.list.sum()))
    return lines.select(
        pl.col(id_field).str.extract(r"^(\d+)").cast(pl.Int64, strict=False).alias("job"),
        pl.col(id_field).str.contains(".", literal=True).alias("step"),
        pl.col("user").cast(pl.Categorical),
        pl.col("state").str.extract(r"^([A-Z_]+)").cast(pl.Categorical).alias("state"),
        *(_seconds(c) for c in ("start", "end")),
        *(_odd_time(c).alias(f"{c}_text") for c in ("start", "end")),
        pl.col("nnodes").cast(pl.Int32, strict=False).alias("width"),
        pl.col("nodelist").cast(pl.Categorical),
        gpus.alias("gpus"),
        (pl.col("alloctres").fill_null("") != "").alias("has_tres"),
        pl.when(pl.col("failednode") != "").then(pl.col("failednode")).cast(pl.Categorical).alias("failed_node"),
        (pl.col("n") == width).alias("whole"),
    )


def _seconds(column: str) -> pl.Expr:
    number = pl.col(column).cast(pl.Int64, strict=False)
    return pl.when((number > 0) & (number < EPOCH_CEILING)).then(number).alias(column)


def _odd_time(column: str) -> pl.Expr:
    """The text of a time that is neither a number nor one of Slurm's words for "no time"."""
    text = pl.col(column)
    return pl.when(text.cast(pl.Int64, strict=False).is_null() & ~text.is_in(NO_TIME)).then(text)


def _jobs(raw: pl.DataFrame, names: list[str], zone: ZoneInfo | None, where: str) -> Table:
    gaps: list[Gap] = []
    local = raw["start_text"].null_count() + raw["end_text"].null_count() < 2 * raw.height
    for column in ("start", "end"):
        raw = _with_local_times(raw, column, zone)
    steps = pl.col("step").fill_null(False) & pl.col("job").is_not_null() & pl.col("whole")
    bad = ~pl.col("whole") | pl.col("job").is_null() | pl.col("state").is_null()
    bad = (bad | pl.col("start_bad") | pl.col("end_bad") | (pl.col("end") < pl.col("start"))).fill_null(False)
    unread = raw.filter(bad & ~steps).height
    if unread:
        gaps.append(
            Gap(
                f"{unread:,} of {raw.height:,} lines of {where} could not be parsed",
                "these jobs are left out (line ends or separators in names and comments, or cut lines)",
            )
        )
    if local:
        gaps.append(_zone_gap(where, zone))
    if "failednode" not in names:
        gaps.append(
            Gap("sacct has no FailedNode here (before Slurm 23.02)", "a killed job of several nodes blames no node")
        )
    counted = raw["gpus"].is_not_null().any()
    gpus = pl.when(pl.col("gpus").is_null() & pl.col("has_tres") & counted).then(0.0).otherwise(pl.col("gpus"))
    # Without NNodes a list of one name is one node; how many others hold is not needed.
    width = pl.coalesce(
        "width", pl.when(~pl.col("nodelist").cast(pl.String).str.contains(r"[\[,]")).then(1).otherwise(2)
    )
    frame = raw.filter(~steps & ~bad).select(
        "job", "user", "state", "start", "end", width.cast(pl.Int32).alias("width"), "nodelist",
        gpus.cast(pl.Float32).alias("gpus"), pl.col("failed_node").cast(pl.String),
    )  # fmt: skip
    return Table(frame, tuple(gaps))


def _with_local_times(raw: pl.DataFrame, column: str, zone: ZoneInfo | None) -> pl.DataFrame:
    """Fills `column` from its text and adds `<column>_bad`. Offsets are looked up once per hour, not per job."""
    text = pl.col(f"{column}_text")
    naive = text.str.to_datetime("%Y-%m-%dT%H:%M:%S", strict=False).dt.epoch("s")
    raw = raw.with_columns(naive.alias("naive")).with_columns((pl.col("naive") // 3600).alias("hour"))
    hours = raw["hour"].drop_nulls().unique()
    offsets = pl.DataFrame(
        {"hour": hours, "offset": [local_seconds(int(h) * 3600, zone) - int(h) * 3600 for h in hours]},
        schema={"hour": pl.Int64, "offset": pl.Int64},
    )
    raw = raw.join(offsets, on="hour", how="left", maintain_order="left")
    return raw.with_columns(
        pl.coalesce(column, pl.col("naive") + pl.col("offset")).alias(column),
        (text.is_not_null() & pl.col("naive").is_null()).alias(f"{column}_bad"),
    ).drop("naive", "hour", "offset", f"{column}_text")


def local_seconds(naive: int, zone: ZoneInfo | None) -> int:
    """POSIX seconds of a wall-clock reading given as if it were UTC. `zone` None: this machine's."""
    wall = datetime.fromtimestamp(naive, UTC).replace(tzinfo=None)
    return int((wall.replace(tzinfo=zone) if zone is not None else wall.astimezone()).timestamp())


def read_events(path: Path, zone: ZoneInfo | None = None) -> Table:
    """A saved `sacctmgr -P show event` (also `.gz`). Raises BadFile."""
    header, separator, skip = _header(path, ("nodename", "timestart", "timeend", "state"))
    with _open(path) as stream:
        for _ in range(skip):
            stream.readline()
        return parse_events(stream, header, separator, zone, path.name)


def parse_events(
    lines: Iterable[str], header: Sequence[str], separator: str, zone: ZoneInfo | None, where: str
) -> Table:
    """Event lines to a frame (EVENTS). A separator inside Reason belongs to Reason."""
    names = [h.strip().lower() for h in header]
    missing = [f for f in ("nodename", "timestart", "timeend", "state") if f not in names]
    if missing:
        raise BadFile([Problem(where, 1, ",".join(missing), "is not among the columns", f"save `{events_example()}`")])
    width = len(names)
    text_at = names.index("reason") if "reason" in names else width - 1
    at = {key: names.index(key) for key in ("nodename", "timestart", "timeend", "state")}
    user_at = names.index("user") if "user" in names else None
    rows: list[tuple[str, int, int | None, str, str, str, str | None]] = []
    unread = total = 0
    zoned = _Times(zone)
    for line in lines:
        parts = line.rstrip("\r\n").split(separator)
        if parts == [""]:
            continue
        total += 1
        extra = len(parts) - width
        if extra < 0:
            unread += 1
            continue
        if extra:
            parts[text_at : text_at + extra + 1] = [separator.join(parts[text_at : text_at + extra + 1])]
        if not parts[at["nodename"]]:
            continue
        try:
            start, end = zoned.seconds(parts[at["timestart"]]), zoned.seconds(parts[at["timeend"]])
        except ValueError:
            unread += 1
            continue
        if start is None or (end is not None and end < start):
            unread += 1
            continue
        author = parts[user_at].partition("(")[0].strip() if user_at is not None else ""
        reason = parts[text_at] if "reason" in names else ""
        state = parts[at["state"]]
        rows.append((parts[at["nodename"]], start, end, state, _kind(state), reason, author or None))
    gaps = [Gap(f"{unread:,} of {total:,} lines of {where} could not be parsed", "these events are left out")]
    gaps = gaps if unread else []
    if zoned.used:
        gaps.append(_zone_gap(where, zone))
    return Table(pl.DataFrame(rows, schema=dict(EVENTS), orient="row"), tuple(gaps))


@lru_cache(maxsize=1024)
def _kind(state: str) -> str:
    try:
        read = states.from_text(state)
    except Garbled:
        return "unknown"
    return kind_of(read.base, read.flags)


class _Times:
    """Reads Slurm's times; remembers whether any needed a time zone."""

    def __init__(self, zone: ZoneInfo | None) -> None:
        self.zone = zone
        self.used = False

    def seconds(self, text: str) -> int | None:
        if text in NO_TIME:
            return None
        if text.isascii() and text.isdigit():
            value = int(text[:12])
            return value if value < EPOCH_CEILING else None
        wall = datetime.fromisoformat(text)
        self.used = True
        if wall.tzinfo is None and self.zone is not None:
            wall = wall.replace(tzinfo=self.zone)
        return int(wall.timestamp())


def _zone_gap(where: str, zone: ZoneInfo | None) -> Gap:
    name = str(zone) if zone is not None else "this machine's zone"
    return Gap(
        f"times in {where} have no time zone",
        f"they were read as {name}; SLURM_TIME_FORMAT=%s when saving (or --timezone) leaves no question",
    )


def _open(path: Path) -> IO[str]:
    if path.suffix == ".gz":
        return gzip.open(path, "rt", encoding="utf-8", errors="backslashreplace")
    return path.open(encoding="utf-8", errors="backslashreplace", newline="\n")


def _header(path: Path, needed: Sequence[str]) -> tuple[list[str], str, int]:
    """The header, its separator and the number of lines up to and with it: the first lines may be warnings."""
    try:
        with _open(path) as stream:
            for number, line in zip(range(1, 21), stream, strict=False):
                text = line.rstrip("\r\n")
                for separator in SEPARATORS:
                    names = [n.strip().lower() for n in text.split(separator)]
                    if len(names) > 1 and sum(n in names for n in needed) >= 2:
                        return text.split(separator), separator, number
    except (OSError, EOFError) as error:
        raise BadFile([Problem(str(path), None, "", f"cannot be read: {error}")]) from error
    raise BadFile(
        [Problem(str(path), 1, "header", "no line names the columns", "save with a header, without -n or --noheader")],
        hint=f"jobs: `{sacct_example()}`; events: `{events_example()}`",
    )


def sacct_example() -> str:
    return "SLURM_TIME_FORMAT=%s sacct -a -X -D -P -S now-90days -o " + ",".join((*JOB_FIELDS, "FailedNode"))


def events_example() -> str:
    return "SLURM_TIME_FORMAT=%s sacctmgr -P show event start=now-90days format=" + ",".join(EVENT_FIELDS)


def fetch_jobs(slurm: SlurmCommand, since: float, until: float, spool: Path) -> Table:
    """All jobs of the period that we may see, by one `sacct`, spooled to `spool`. Raises WorldError."""
    known = {word.lower() for word in slurm.run_sync("sacct", "--helpformat").split()}
    fields = [f for f in (*JOB_FIELDS, "FailedNode") if f.lower() in known]
    slurm.spool_to(
        spool, "sacct", "--allusers", "--allocations", "--duplicates", "--parsable2", "--noconvert",
        "--delimiter=\x1f", f"--starttime={_local(since)}", f"--endtime={_local(until)}",
        f"--format={','.join(fields)}",
    )  # fmt: skip
    return read_jobs(spool)


def fetch_events(slurm: SlurmCommand, since: float, until: float) -> Table:
    """All node events of the period. Raises WorldError."""
    lines: Iterator[str] = slurm.stream_lines(
        "sacctmgr", "--parsable2", "--readonly", "show", "event", f"start={_local(since)}", f"end={_local(until)}",
        f"format={','.join(EVENT_FIELDS)}",
    )  # fmt: skip
    header = next(lines, "")
    if "NodeName" not in header:
        raise Garbled(f"sacctmgr answered without a header: {header[:200]!r}")
    return parse_events(lines, header.split("|"), "|", None, "sacctmgr")


def _local(at: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(at))


def database_settings(slurm: SlurmCommand) -> dict[str, str]:
    """`sacctmgr show config`: among others what is purged when. Raises WorldError."""
    found: dict[str, str] = {}
    for line in slurm.run_sync("sacctmgr", "--readonly", "show", "config").splitlines():
        key, separator, value = line.partition("=")
        if separator:
            found.setdefault(key.strip(), value.strip())
    return found


def gaps_of_settings(config: dict[str, str], database: dict[str, str], since: float, until: float) -> list[Gap]:
    """What the configuration keeps from an audit."""
    gaps: list[Gap] = []
    tres = config.get("AccountingStorageTRES", "")
    if tres and "gres/gpu" not in tres:
        gaps.append(Gap("AccountingStorageTRES has no gres/gpu", "jobs have no GPU counts"))
    private = {p.strip() for p in config.get("PrivateData", "").split(",")} | {
        p.strip() for p in database.get("PrivateData", "").split(",")
    }
    for what, hidden in (("jobs", "other people's jobs"), ("events", "node events"), ("nodes", "nodes")):
        if what in private:
            gaps.append(Gap(f"PrivateData={what}", f"{hidden} are hidden from accounts without operator rights"))
    for key, what in (("PurgeEventAfter", "events"), ("PurgeJobAfter", "jobs")):
        days = purge_days(database.get(key, ""))
        if days is not None and until - days * 86400 > since:
            gaps.append(Gap(f"{key}={database[key]}", f"{what} older than that are gone, part of the window is empty"))
    return gaps


def purge_days(text: str) -> float | None:
    """Days in `12 months`, `30days`, `24 hours*`; None for NONE or what cannot be read."""
    found = re.search(r"[0-9]{1,6}", text)
    if found is None:
        return None
    unit = text.lower()
    factor = 1 / 24 if "hour" in unit else 1.0 if "day" in unit else 30.44
    return int(found[0]) * factor


def records_begin(frame: pl.DataFrame, since: int, until: int, what: str) -> list[Gap]:
    """Says so when the first record is much later than the window's beginning."""
    first = frame["start"].min() if frame.height else None
    if isinstance(first, int) and first > since + max(86400, (until - since) * 0.1):
        days = (first - since) / 86400
        return [
            Gap(
                f"the {what} begin {days:.0f} days after the window",
                "before that nothing is known, not nothing happened",
            )
        ]
    return []


def left_authors(authors: Iterable[str], known: Callable[[str], bool]) -> frozenset[str]:
    """Authors of marks without an account here, by `known` (on a login node: the name service)."""
    return frozenset(a for a in authors if a and not known(a))
