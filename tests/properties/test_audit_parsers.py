"""Accounting text, whatever its state: a clear error or a frame with its gaps; never a crash, never a silent loss."""

from __future__ import annotations

import tempfile
from pathlib import Path

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from nodeworthy.adapters.slurm.accounting import purge_days, read_events, read_jobs
from nodeworthy.errors import BadFile
from nodeworthy.model.nodeset import fold, unfold
from nodeworthy.reports.audit.hostlists import expand
from nodeworthy.reports.audit.inputs import EVENTS
from tests.properties.inputs import fewer

JOBS_HEADER = "JobIDRaw|User|State|Start|End|NNodes|NodeList|AllocTRES|JobName\n"
EVENTS_HEADER = "Cluster|NodeName|TimeStart|TimeEnd|State|User|Reason\n"
NAMES = st.builds(
    lambda prefix, width, numbers: [f"{prefix}{n:0{width}d}" for n in numbers],
    st.sampled_from(["gpu", "n-", "rack1-n", "a1b"]), st.integers(1, 5), st.sets(st.integers(0, 3000), min_size=1, max_size=12),
)  # fmt: skip
TEXT = st.text(alphabet=st.characters(codec="utf-8"), max_size=200)


FOLDER = tempfile.TemporaryDirectory(prefix="nw-audit-")


def saved(content: str | bytes) -> Path:
    path = Path(FOLDER.name) / "saved.txt"
    path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8", "surrogatepass"))
    return path


@given(NAMES)
def test_the_fast_way_unfolds_as_clustershell_does(names: list[str]) -> None:
    """Folding names and unfolding the column gives the same names back."""
    folded = fold(names)
    assert sorted(expand(pl.Series([folded]))["node"]) == sorted(set(names)) == sorted(unfold(folded))


@given(st.one_of(TEXT, st.from_regex(r"[a-z]{1,5}\[[0-9,\-\[\]]{0,8}\]?", fullmatch=True)))
def test_odd_node_lists_never_raise(text: str) -> None:
    """What is no node list has no nodes; no node has a name with a bracket, a comma or a blank."""
    for name in expand(pl.Series([text], dtype=pl.String))["node"]:
        assert not set(name) & set("[], \t\n")


def test_a_damaged_list_cannot_take_the_memory() -> None:
    """A thousand million nodes are no job's nodes, in one dimension or in two."""
    lists = pl.Series(["n[1-999999999]", "a[1-99999]b[1-99999]", "n[3-1]", "n[1-2]"])
    assert expand(lists).rows() == [("n[1-2]", "n1"), ("n[1-2]", "n2")]


@fewer(10)
@given(st.binary(max_size=2000))
def test_any_bytes_are_a_frame_or_a_named_error(content: bytes) -> None:
    """Without a header it is BadFile that names the file; with one, lines are read or counted."""
    for reader, header in ((read_jobs, JOBS_HEADER), (read_events, EVENTS_HEADER)):
        try:
            reader(saved(content))
        except BadFile as error:
            assert "saved.txt" in str(error)
        table = reader(saved(header.encode() + content))
        assert table.frame.height <= content.count(b"\n") + content.count(b"\r") + 1


@fewer(10)
@given(st.lists(TEXT.map(lambda t: t.replace("\r", "").replace("\x01", "")), min_size=1, max_size=8))
def test_job_names_with_separators_are_counted_never_guessed(names: list[str]) -> None:
    """A name with a separator or a line end costs its own line, is counted, and shifts no other job's fields."""
    lines = [f"{k}|u{k}|COMPLETED|1780000000|1780000100|1|n{k}|gres/gpu=4|{name}" for k, name in enumerate(names)]
    table = read_jobs(saved(JOBS_HEADER + "\n".join(lines) + "\n"))
    whole = [k for k, name in enumerate(names) if "|" not in name and "\n" not in name]
    broken = [k for k, name in enumerate(names) if "\n" in name and "|" not in name.partition("\n")[0]]
    found = set(table.frame["job"].to_list())
    assert set(whole) <= found <= set(whole) | set(broken)
    for job, node, gpus in table.frame.select("job", pl.col("nodelist").cast(pl.String), "gpus").iter_rows():
        assert (node, gpus) == (f"n{job}", 4.0)
    if any("|" in name or "\n" in name for name in names):
        assert any("could not be parsed" in gap.what for gap in table.gaps)


@given(TEXT.map(lambda t: t.replace("\n", " ").replace("\r", " ")))
def test_a_separator_inside_a_reason_stays_in_the_reason(reason: str) -> None:
    """Reason comes last when we ask, and in the middle when people save the default columns."""
    last = read_events(saved(f"{EVENTS_HEADER}c|n1|1780000000|Unknown|DRAIN|root(0)|{reason}\n")).frame
    middle_header = "Cluster|NodeName|TimeStart|TimeEnd|State|Reason|User\n"
    middle = read_events(saved(f"{middle_header}c|n1|1780000000|Unknown|DRAIN|{reason}|root(0)\n")).frame
    for frame in (last, middle):
        assert frame.columns == list(EVENTS)
        assert frame.row(0, named=True) == {
            "node": "n1", "start": 1780000000, "end": None, "state": "DRAIN", "kind": "drain", "reason": reason,
            "author": "root",
        }  # fmt: skip


@given(st.text(max_size=20))
def test_purge_settings_are_days_or_unknown(text: str) -> None:
    """Whatever slurmdbd prints: a number of days or None."""
    days = purge_days(text)
    assert days is None or days >= 0
