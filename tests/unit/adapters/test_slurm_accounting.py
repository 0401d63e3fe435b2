"""Accounting text of three Slurm versions, and what is known to go wrong in it."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import polars as pl
import pytest

from nodeworthy.adapters.slurm.accounting import (
    gaps_of_settings,
    local_seconds,
    purge_days,
    read_events,
    read_jobs,
    records_begin,
)

VERSIONS = ("22.05", "24.11", "26.05")
BERLIN = ZoneInfo("Europe/Berlin")
HEADER = "JobIDRaw|User|State|Start|End|NNodes|NodeList|AllocTRES|FailedNode\n"


def jobs(tmp_path: Path, *lines: str, header: str = HEADER) -> tuple[pl.DataFrame, str]:
    path = tmp_path / "jobs"
    path.write_text(header + "".join(line + "\n" for line in lines))
    table = read_jobs(path, ZoneInfo("UTC"))
    return table.frame, " ".join(gap.what for gap in table.gaps)


@pytest.mark.parametrize("version", VERSIONS)
def test_real_events(shared: Path, version: str) -> None:
    """Every event with a node is read; the cluster's registration is none; states become kinds."""
    table = read_events(shared / "samples/slurm" / version / "sacctmgr-events.txt", BERLIN)
    kinds = {(node, kind) for node, kind in table.frame.select("node", "kind").iter_rows()}
    assert table.frame.height == 13
    assert {("gpu00005", "down"), ("gpu00006", "drain"), ("gpu00010", "reboot"), ("gpu00012", "fail")} <= kinds
    assert {("gpu00014", "invalid"), ("gpu00015", "down"), ("cloud00003", "powered")} <= kinds
    lost = table.frame.filter(pl.col("node") == "gpu00006").row(0, named=True)
    assert (lost["reason"], lost["author"]) == ("GPU 3 fell off the bus [ops]", "root")
    assert any("no time zone" in gap.what for gap in table.gaps)


@pytest.mark.parametrize("version", VERSIONS)
def test_real_jobs_with_every_column(shared: Path, version: str) -> None:
    """A hundred columns in any order, free text among them: the columns are found by name."""
    table = read_jobs(shared / "samples/slurm" / version / "sacct-X-all.txt", BERLIN)
    rows = {row["job"]: row for row in table.frame.iter_rows(named=True)}
    assert rows[1]["gpus"] == 1
    assert (rows[4]["width"], rows[4]["gpus"]) == (4, 32)
    killed = [row for row in rows.values() if row["state"] == "NODE_FAIL"]
    assert killed and killed[0]["nodelist"] == "gpu00005"
    assert not any("could not be parsed" in gap.what for gap in table.gaps)
    assert any("FailedNode" in gap.what for gap in table.gaps) == (version == "22.05")


def test_steps_are_no_jobs(shared: Path) -> None:
    """A saved file without -X holds `1.batch`: not a job, and not an error."""
    path = shared / "samples/slurm/22.05/sacct.txt"
    table = read_jobs(path, BERLIN)
    ids = [line.partition("|")[0] for line in path.read_text().splitlines()[1:]]
    assert table.frame.height == sum("." not in one for one in ids) < len(ids)
    assert not any("could not be parsed" in gap.what for gap in table.gaps)


def test_both_runs_of_a_requeued_job_are_kept(tmp_path: Path) -> None:
    """Without the first run nobody sees that a node killed it."""
    frame, _ = jobs(
        tmp_path,
        "7|a|NODE_FAIL|100000|100900|2|n[1-2]|gres/gpu=16|n2",
        "7|a|COMPLETED|101000|109000|2|n[3-4]|gres/gpu=16|",
    )
    assert frame["state"].cast(pl.String).to_list() == ["NODE_FAIL", "COMPLETED"]
    assert frame["failed_node"].to_list() == ["n2", None]


def test_gpus_are_unknown_where_nobody_counts_them(tmp_path: Path) -> None:
    """No job with gres/gpu: not accounted, so unknown; one job with it: the others used none."""
    none, _ = jobs(tmp_path, "1|a|COMPLETED|100000|100900|1|n1|cpu=4,mem=1G|", "2|a|COMPLETED|100000|100900|1|n1||")
    assert none["gpus"].to_list() == [None, None]
    some, _ = jobs(
        tmp_path, "1|a|COMPLETED|100000|100900|1|n1|cpu=4,mem=1G|", "2|a|COMPLETED|100000|100900|1|n1|gres/gpu=4|"
    )
    assert some["gpus"].to_list() == [0.0, 4.0]


def test_typed_gpus_are_not_counted_twice(tmp_path: Path) -> None:
    """`gres/gpu:h100=4,gres/gpu=4` are four; types alone are added up."""
    frame, _ = jobs(
        tmp_path,
        "1|a|COMPLETED|100000|100900|1|n1|billing=1,gres/gpu:h100=4,gres/gpu=4,node=1|",
        "2|a|COMPLETED|100000|100900|1|n1|gres/gpu:a100=2,gres/gpu:h100=1|",
    )
    assert frame["gpus"].to_list() == [4.0, 3.0]


def test_what_is_no_time_is_counted(tmp_path: Path) -> None:
    """Broken times and ends before starts cost their line, and are said."""
    frame, said = jobs(
        tmp_path,
        "1|a|COMPLETED|100000|100900|1|n1||",
        "2|a|COMPLETED|yesterday|100900|1|n1||",
        "3|a|COMPLETED|100900|100000|1|n1||",
        "4|a|COMPLETED|100000|99999999999999|1|n1||",
        "5|a|PENDING|Unknown|Unknown|1|None assigned||",
        "6|a|CANCELLED by 0|None|100900|1|None assigned||",
        "7|a|COMPLETED|100000",
    )
    assert frame["job"].to_list() == [1, 4, 5, 6]
    assert frame["end"].to_list() == [100900, None, None, 100900]
    assert "3 of 7 lines" in said


def test_lines_of_other_separators_and_line_ends_are_read(tmp_path: Path) -> None:
    """--delimiter, Windows line ends, warnings before the header."""
    for separator in ("\x1f", "\t", ";"):
        text = "sacct: warning: something\n" + HEADER + "1|a|COMPLETED|100000|100900|1|n1|gres/gpu=2|\r\n"
        (tmp_path / "jobs").write_text(text.replace("|", separator))
        frame = read_jobs(tmp_path / "jobs").frame
        assert frame.row(0)[:5] == (1, "a", "COMPLETED", 100000, 100900)


def test_local_times_know_summer_and_winter() -> None:
    """The same wall clock is another second in July and in December."""
    for stamp, hours in ((datetime(2026, 7, 1, 12, tzinfo=UTC), 2), (datetime(2026, 12, 1, 12, tzinfo=UTC), 1)):
        naive = int(stamp.timestamp())
        assert local_seconds(naive, BERLIN) == naive - hours * 3600


def test_times_with_a_zone_given_are_read_in_it(tmp_path: Path) -> None:
    """`--timezone` decides what a time without zone means, for jobs and for events alike."""
    (tmp_path / "jobs").write_text(HEADER + "1|a|COMPLETED|2026-07-01T12:00:00|2026-07-01T13:00:00|1|n1||\n")
    (tmp_path / "events").write_text(
        "Cluster|NodeName|TimeStart|TimeEnd|State|Reason|User\nc|n1|2026-07-01T12:00:00|Unknown|DOWN*|x|root(0)\n"
    )
    assert read_jobs(tmp_path / "jobs", BERLIN).frame["start"].to_list() == [1782900000]
    assert read_events(tmp_path / "events", BERLIN).frame["start"].to_list() == [1782900000]


def test_an_unknown_state_is_kept_as_unknown(tmp_path: Path) -> None:
    """A newer Slurm may print words that we do not know: neither in service nor broken."""
    (tmp_path / "events").write_text(
        "Cluster|NodeName|TimeStart|TimeEnd|State|Reason|User\nc|n1|100000|100900|NEWSTATE|x|root(0)\n"
    )
    assert read_events(tmp_path / "events").frame["kind"].to_list() == ["unknown"]


def test_settings_that_hide_things_are_said() -> None:
    """Purged events, hidden jobs and GPUs that nobody counts."""
    config = {"AccountingStorageTRES": "cpu,mem,node", "PrivateData": "jobs,usage"}
    gaps = gaps_of_settings(config, {"PurgeEventAfter": "1 months", "PurgeJobAfter": "NONE"}, 0.0, 90 * 86400.0)
    said = " ".join(gap.what for gap in gaps)
    assert "gres/gpu" in said
    assert "PrivateData=jobs" in said
    assert "PurgeEventAfter=1 months" in said
    assert "PurgeJobAfter" not in said
    assert [purge_days(t) for t in ("24 hours*", "30 days", "12 months", "NONE")] == [
        1.0,
        30.0,
        pytest.approx(365.28),
        None,
    ]


def test_a_history_that_begins_late_is_said() -> None:
    """Before the first record nothing is known, which is not the same as nothing happened."""
    frame = pl.DataFrame({"start": [50 * 86400]})
    assert "begin 50 days after" in records_begin(frame, 0, 90 * 86400, "events")[0].what
    assert records_begin(frame, 49 * 86400, 90 * 86400, "events") == []


def test_a_cluster_without_any_job_or_event_is_read(tmp_path: Path) -> None:
    """A header and nothing else is an empty history, not an error."""
    frame, _ = jobs(tmp_path)
    assert frame.height == 0
    (tmp_path / "events").write_text("Cluster|NodeName|TimeStart|TimeEnd|State|User|Reason\n")
    assert read_events(tmp_path / "events").frame.height == 0
