"""`nodeworthy log`: output forms, filters, exit codes, streams, and that it starts fast and light."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from nodeworthy.cli.main import cli
from nodeworthy.errors import BadRequest, NotKnown

SRC = Path(__file__).resolve().parents[3] / "src"
LINES = """\
2026-11-30T17:30:00+00:00 n3 kernel: NVRM: Xid (PCI:0000:04:00): 79, pid=1, name=p, GPU has fallen off the bus.
2026-11-30T17:30:10+00:00 n3 kernel: NVRM: Xid (PCI:0000:04:00): 79, pid=1, name=p, GPU has fallen off the bus.
2026-11-30T17:30:20+00:00 n4 kernel: NVRM: Xid (PCI:0000:05:00): 31, pid=7, name=train, MMU Fault
2026-11-30T17:30:30+00:00 n4 alice: NVRM: Xid (PCI:0000:05:00): 79, forged
2026-11-30T17:31:30+00:00 n5 kernel: mlx5_core 0000:98:00.0 ens1np0: Link down
2026-11-30T17:31:40+00:00 n5 systemd[1]: Started something.
"""


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "nodeworthy.cli.main", "log", *arguments]


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(SRC)}


def run(*arguments: str, text: str = "") -> Result:
    return CliRunner().invoke(cli, ["log", *arguments], input=text)


def rows(result: Result) -> list[dict[str, object]]:
    assert result.exit_code == 0, result.output
    return [json.loads(line) for line in result.stdout.splitlines()]


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "central.log"
    path.write_text(LINES)
    return str(path)


def test_json_is_one_object_a_line(file: str) -> None:
    """Every event is a line of JSON with the promised keys."""
    found = rows(run("classify", file, "--json"))
    assert len(found) == 5
    assert found[0]["time"] == "2026-11-30T17:30:00.000000Z"
    assert (found[0]["host"], found[0]["code"], found[0]["trusted"]) == ("n3", "79", True)
    assert (found[3]["role"], found[3]["trusted"]) == ("unknown", False)


def test_table_leaves_out_repeats(file: str) -> None:
    """For people, the same thing within a minute is one row, and what is left out is said."""
    result = run("classify", file)
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[0].split()[:3] == ["TIME", "(UTC)", "HOST"]
    assert len(lines) == 5
    assert "1 repeats within a minute not shown" in result.stderr
    assert "unknown?" in lines[3]
    assert len(run("classify", file, "--all").stdout.splitlines()) == 6


def test_repeats_show_again_after_a_minute(tmp_path: Path) -> None:
    """A storm is a row a minute."""
    path = tmp_path / "storm.log"
    path.write_text(
        "".join(
            f"2026-11-30T17:{s // 60:02d}:{s % 60:02d}+00:00 n3 kernel: NVRM: Xid (PCI:0000:04:00): 94, pid={s}, name=p, Ch 8\n"
            for s in range(300)
        )
    )
    assert len(run("classify", str(path)).stdout.splitlines()) == 1 + 5


@pytest.mark.parametrize(
    ("arguments", "count"),
    [
        (("--kind", "xid"), 4),
        (("--kind", "xid", "--kind", "link"), 5),
        (("--role", "origin"), 2),
        (("--host", "n[45]"), 3),
        (("--since", "2026-11-30T17:31:00Z"), 1),
        (("--since", "2026-11-30T17:31:00"), 1),
        (("--since", "1d"), None),
    ],
)
def test_filters(file: str, arguments: tuple[str, ...], count: int | None) -> None:
    """Filters keep what matches."""
    found = rows(run("classify", file, "--json", *arguments))
    assert count is None or len(found) == count


def test_summary_counts(file: str) -> None:
    """Counts by host, component and code, the worst first."""
    result = run("classify", file, "--summary", "-o", "json")
    items = json.loads(result.stdout)["items"]
    assert (items[0]["host"], items[0]["code"], items[0]["count"]) == ("n3", "79", 2)
    assert items[0]["last"] - items[0]["first"] == 10
    assert sum(item["count"] for item in items) == 5
    assert "2026-11-30 17:30:10" in run("classify", file, "--summary").stdout


def test_check_exits_3_on_what_may_hold(file: str, tmp_path: Path) -> None:
    """`--check` is for scripts: 3 when a trusted origin is there, 0 when only others are."""
    assert run("classify", file, "--check").exit_code == 3
    harmless = tmp_path / "harmless.log"
    harmless.write_text("".join(LINES.splitlines(keepends=True)[2:]))
    assert run("classify", str(harmless), "--check").exit_code == 0
    assert run("classify", file).exit_code == 0


def test_standard_input(file: str) -> None:
    """Without a file, and with `-`, standard input is read."""
    assert len(rows(run("classify", "--json", text=LINES))) == 5
    assert len(rows(run("classify", "-", "--json", text=LINES))) == 5


def test_several_files_and_compression(file: str, tmp_path: Path) -> None:
    """Several files are read in order, compressed ones by their suffix."""
    packed = tmp_path / "central.log.1.gz"
    packed.write_bytes(gzip.compress(LINES.encode()))
    assert len(rows(run("classify", str(packed), file, "--json"))) == 10


def test_a_damaged_file_does_not_lose_the_others(file: str, tmp_path: Path) -> None:
    """A compressed file that breaks off is said and gives exit code 6; what could be read is there."""
    packed = tmp_path / "a.log.gz"
    packed.write_bytes(gzip.compress(LINES.encode() * 50)[:-20])
    result = run("classify", str(packed), file, "--json")
    assert result.exit_code == 6
    assert "reading broke off" in result.stderr
    assert len(result.stdout.splitlines()) >= 5


@pytest.mark.parametrize(
    "arguments",
    [("nowhere.log",), ("--tz", "Nowhere/City"), ("--since", "soon"), ("--boot", "then"), ("--rules", "/nowhere.toml")],
)
def test_wrong_arguments_are_named(file: str, arguments: tuple[str, ...]) -> None:
    """What cannot be read or understood is an error of the user's, before anything is printed."""
    result = run("classify", file, *arguments)
    assert isinstance(result.exception, BadRequest)
    assert result.exception.exit_code == 2
    assert arguments[-1] in str(result.exception)
    assert result.stdout == ""


def test_since_is_of_the_grammar_of_every_command(tmp_path: Path) -> None:
    """Compound ages, `now-…` and `@seconds` are times here, too."""
    at = time.time() - 2 * 3600
    path = tmp_path / "kern.log"
    path.write_text(f"{datetime.fromtimestamp(at, UTC).isoformat()} n3 kernel: NVRM: Xid (PCI:0000:04:00): 79, x\n")
    assert [len(rows(run("classify", str(path), "--json", "--since", since))) for since in
            ("2h30m", "now-2h30m", f"@{at - 5:.0f}", "1h45m")] == [1, 1, 1, 0]  # fmt: skip


def test_relative_times_with_a_boot_time(tmp_path: Path) -> None:
    """`--boot` turns the kernel's counter into time; without it the counter is shown."""
    path = tmp_path / "dmesg"
    path.write_text("[  600.000000] NVRM: Xid (PCI:0000:04:00): 79, x\n")
    (row,) = rows(run("classify", str(path), "--json", "--boot", "2026-11-30T17:20:00Z"))
    assert row["time"] == "2026-11-30T17:30:00.000000Z"
    assert "boot+600.000s" in run("classify", str(path)).stdout


def test_year_from_the_files_last_change(tmp_path: Path) -> None:
    """A classic line of an old file gets the year in which the file was last written."""
    path = tmp_path / "old.log"
    path.write_text("Aug 17 06:18:01 n3 kernel: NVRM: Xid (PCI:0000:04:00): 79, x\n")
    os.utime(path, (1724000000, 1724000000))  # 2024-08-18
    (row,) = rows(run("classify", str(path), "--json", "--tz", "UTC"))
    assert row["time"] == "2024-08-17T06:18:01.000000Z"
    assert row["time_note"] == "year and zone assumed"


def test_bare_kernel_output_can_be_vouched_for(tmp_path: Path) -> None:
    """`--from-kernel` trusts lines without a head."""
    path = tmp_path / "dmesg-t"
    path.write_text("NVRM: Xid (PCI:0000:04:00): 79, x\n")
    assert rows(run("classify", str(path), "--json"))[0]["trusted"] is False
    assert rows(run("classify", str(path), "--json", "--from-kernel"))[0]["trusted"] is True


def test_the_tag_alone_may_be_distrusted(file: str) -> None:
    """`--distrust-tag` takes the trust from lines that only a tag makes the kernel's."""
    assert not any(row["trusted"] for row in rows(run("classify", file, "--json", "--distrust-tag")))


def test_a_reader_that_goes_away(file: str) -> None:
    """`| head -1` ends quietly."""
    text = " ".join(f"'{part}'" for part in command("classify", *[file] * 200, "--json", "-q"))
    done = subprocess.run(
        f"{text} | head -1", shell=True, env=environment(), capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
    assert done.stdout.count("\n") == 1


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("xid-79", ["fell off the bus", "reboot", "may hold"]),
        ("XID:63", ["gpud: fatal", "NVIDIA: ignore", "never by itself"]),
        ("sxid-20034", ["potentially fatal"]),
        ("edac-ue", ["memory module", "replace"]),
    ],
)
def test_explain(code: str, words: list[str]) -> None:
    """A code is explained with what to do, and with those who say otherwise."""
    result = run("explain", code)
    assert result.exit_code == 0
    assert all(word in result.stdout for word in words)
    document = json.loads(run("explain", code, "--json").stdout)
    assert document["schema"] == "nodeworthy.log-code/1"
    assert document["source"]


def test_explain_an_unknown_code() -> None:
    """What is not in the tables is not made up."""
    result = run("explain", "xid-9999")
    assert isinstance(result.exception, NotKnown)


def test_rules_are_listed() -> None:
    """All rules, with their meaning."""
    items = json.loads(run("rules", "-o", "json").stdout)["items"]
    assert len(items) > 100
    assert "xid" in run("rules").stdout


@pytest.mark.parametrize("verb", ["classify", "explain", "rules"])
def test_help_has_an_example(verb: str) -> None:
    """Every command shows how it is used."""
    assert "Example: " in run(verb, "--help").stdout


def test_a_followed_pipe_answers_at_once() -> None:
    """`tail -f | nodeworthy log classify -` gives an event while the pipe is still open."""
    process = subprocess.Popen(
        command("classify", "-", "--json"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment()
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(LINES.splitlines(keepends=True)[0].encode())
        process.stdin.flush()
        assert json.loads(process.stdout.readline())["code"] == "79"
        assert process.poll() is None
    finally:
        process.stdin.close()
        assert process.wait(30) == 0
        process.stdout.close()


def test_it_does_not_import_what_is_heavy(file: str) -> None:
    """Neither Polars nor other heavy packages are loaded to classify a log."""
    code = (
        "import sys; from nodeworthy.cli.main import cli; "
        f"cli.main(['log','classify',{file!r},'-q'], standalone_mode=False); "
        "print(sorted({'polars','numpy','fastapi','pydantic','sqlalchemy','rich','yaml','asyncio'} & set(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], env=environment(), capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "[]"


def test_it_starts_fast(file: str) -> None:
    """The whole command on a small file costs little more than Python itself (processor time, best of five)."""

    def cost(arguments: list[str]) -> float:
        best = float("inf")
        for _ in range(5):
            before = os.times()
            subprocess.run(arguments, env=environment(), capture_output=True, check=True)
            after = os.times()
            best = min(
                best, after.children_user - before.children_user + after.children_system - before.children_system
            )
        return best

    bare = cost([sys.executable, "-c", "import click, json, re"])
    assert cost(command("classify", file)) - bare < 0.25


def test_reading_is_not_slowed_by_time(file: str) -> None:
    """A small file is done at once (a guard against anything that waits)."""
    start = time.monotonic()
    assert run("classify", file).exit_code == 0
    assert time.monotonic() - start < 5
