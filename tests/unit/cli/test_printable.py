"""Text from outside is shown, never obeyed: no command sends a terminal anything to act on."""

from __future__ import annotations

import json
import re
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from nodeworthy.cli import ledger as ledger_module
from nodeworthy.cli import watch as watch_module
from nodeworthy.cli import words
from nodeworthy.cli.main import cli, fail
from nodeworthy.cli.printable import cleaned, printable, say
from nodeworthy.errors import BadRequest, NotKnown, Unreachable
from tests.unit.cli.conftest import Call
from tests.views_in_memory import XID, MemoryViews

# retitle the window, clear the screen, forge a line, go back to its beginning, turn the rest around, an 8-bit CSI
EVIL = "\x1b]0;owned\x07\x1b[2J\nFORGED all is well\rFORGED\u202egnp.\x9b2J"
PAGES = (
    ["status"], ["node", "list"], ["node", "list", "-o", "wide"], ["node", "list", "-o", "csv"],
    ["node", "list", "-o", "name"], ["node", "show", "n2"], ["node", "show", "n3"],
    ["node", "explain", "n2"], ["node", "explain", "n5"], ["node", "history", "n2"],
    ["node", "history", "n2", "-o", "csv"], ["finding", "list"], ["finding", "list", "-o", "wide"],
    ["finding", "show", XID], ["incident", "list"], ["incident", "show", "i-1"], ["would"], ["would", "--brief"],
    ["would", "-o", "wide"], ["ledger", "tail"], ["ledger", "tail", "-o", "wide"], ["doctor"], ["doctor", "-o", "wide"],
)  # fmt: skip


def evil(value: Any) -> Any:
    """An answer in which every free text ends in what a terminal would act on."""
    if isinstance(value, str) and not isinstance(value, Enum):
        return value + EVIL
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **{f.name: evil(getattr(value, f.name)) for f in fields(value)})
    if isinstance(value, (list, tuple)):
        return type(value)(evil(item) for item in value)
    if isinstance(value, dict):
        return type(value)({evil(key): evil(item) for key, item in value.items()})
    return value


class EvilViews:
    """The small fleet, told by somebody hostile."""

    def __init__(self) -> None:
        self.told = MemoryViews()

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.told, name)
        return (lambda *args, **kwargs: evil(found(*args, **kwargs))) if callable(found) else found


@pytest.fixture
def views() -> EvilViews:
    """What `call` asks."""
    return EvilViews()


def assert_tame(text: str, *, coloured: bool = False) -> None:
    """Only printable characters and ends of lines, and no line that somebody else began."""
    if coloured:
        text = re.sub(r"\x1b\[[0-9;]*m", "", text)
    wild = sorted({c for c in text if not c.isprintable() and c != "\n"})
    assert wild == []
    assert [line for line in text.split("\n") if line.lstrip().startswith("FORGED")] == []


def ended_well(result: Result) -> None:
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception


@pytest.mark.parametrize("arguments", PAGES, ids=" ".join)
def test_no_page_sends_a_terminal_anything_to_act_on(
    call: Call, arguments: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Job names, reasons, host names, log lines: what is dangerous in them is shown as an escape."""
    monkeypatch.setattr(words, "colour_wanted", lambda: True)
    result = call(*arguments)
    ended_well(result)
    assert "owned" in result.stdout
    assert_tame(result.stdout, coloured=True)
    assert_tame(result.stderr, coloured=True)


@pytest.mark.parametrize("output", ["json", "jsonl", "yaml"])
def test_machines_get_the_text_whole_and_escaped_by_the_format(call: Call, output: str) -> None:
    """Nothing is lost for programs, and even their formats are safe to look at."""
    result = call("node", "list", "-o", output)
    ended_well(result)
    assert_tame(result.stdout.replace("\n    FORGED", ""))  # YAML goes on inside its quotes
    read = yaml.safe_load(result.stdout) if output == "yaml" else None
    if output == "json":
        read = json.loads(result.stdout)
    names = [n["name"] for n in read["items"]] if read else [json.loads(x)["name"] for x in result.stdout.splitlines()]
    assert "n1" + EVIL in names


def test_a_watch_is_as_safe_as_a_page(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """`--watch` prints what the page prints, and errors of the world on the side."""

    def interrupt(_seconds: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(watch_module.time, "sleep", interrupt)
    result = call("status", "--watch", "1")
    assert "owned" in result.stdout
    assert_tame(result.stdout)

    def lost() -> int:
        raise Unreachable(EVIL)

    with CliRunner().isolation() as (_, err, _mixed), pytest.raises(KeyboardInterrupt):
        watch_module.repeat(1.0, lost)
    said = err.getvalue().decode()
    assert "owned" in said
    assert_tame(said)


def test_a_followed_ledger_cannot_be_forged(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """A summary of two lines is one line of the ledger."""

    def interrupt(_seconds: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(ledger_module, "_RECONNECT_S", 0.0)
    monkeypatch.setattr(ledger_module.time, "sleep", interrupt)
    monkeypatch.setattr(ledger_module.Client, "events", lambda _self, _after: iter(()))
    result = call("ledger", "tail", "-f")
    assert len(result.stdout.splitlines()) == 3
    assert "owned" in result.stdout
    assert_tame(result.stdout)


def test_an_error_is_shown_not_obeyed(capsys: pytest.CaptureFixture[str]) -> None:
    """Errors quote what others said, causes and hints too; a second line cannot pass for another error."""
    error = BadRequest("a" + EVIL, hint="b" + EVIL)
    error.__cause__ = NotKnown("c" + EVIL)
    with pytest.raises(SystemExit):
        fail(error)
    said = capsys.readouterr().err
    assert all(f"{c}\\x1b]0;owned" in said for c in "abc")
    assert_tame(said.replace("\n    FORGED", ""))


@pytest.mark.parametrize("options", [[], ["-o", "wide"], ["--summary"], ["--summary", "-o", "wide"], ["--json"]])
def test_log_lines_do_not_reach_the_terminal(tmp_path: Path, options: list[str]) -> None:
    """Any process may choose the name that the kernel writes into its line."""
    said = f"NVRM: Xid (PCI:0000:9b:00): 79, pid=12, name=py{EVIL}, GPU has fallen off the bus."
    journal = {
        "_TRANSPORT": "kernel",
        "_HOSTNAME": "n2" + EVIL,
        "MESSAGE": said,
        "__REALTIME_TIMESTAMP": "1764520000000000",
    }
    line = "Nov 30 10:00:00 n1 kernel: " + said.replace("\n", " ").replace("\r", " ")
    (tmp_path / "log").write_text(f"{line}\n{json.dumps(journal)}\n")
    result = CliRunner().invoke(cli, ["log", "classify", *options, str(tmp_path / "log")])
    ended_well(result)
    assert "n1" in result.stdout
    assert "n2" in result.stdout
    assert_tame(result.stdout)
    assert_tame(result.stderr)


@pytest.mark.parametrize("options", [[], ["-o", "wide"], ["-o", "csv"], ["-o", "name"]])
def test_an_audit_of_hostile_records(tmp_path: Path, options: list[str]) -> None:
    """A reason with ESC in it is read by root on the page about nodes that need a person."""
    reason = "broken " + EVIL.replace("\n", " ").replace("\r", " ")
    (tmp_path / "nodes").write_text(
        f"NodeName=n1 Gres=gpu:8 RealMemory=1000 State=IDLE+DRAIN Partitions=p Reason={reason} [root@1780000000]\n"
    )
    files = ["--nodes", str(tmp_path / "nodes"), "--until", "2026-09-01", "--markdown", str(tmp_path / "a.md")]
    result = CliRunner().invoke(cli, ["audit", "slurm", *files, "--cluster", "lab" + EVIL, *options])
    ended_well(result)
    assert "n1" in result.stdout
    assert_tame(result.stdout)
    assert_tame(result.stderr)
    assert_tame((tmp_path / "a.md").read_text())


FLEET = """
name = "lab"
[classes.a]
gpus = 8
[[nodes]]
names = "n[1-2]"
class = "a"
labels = {{ pool = "{0}" }}
[domains.rack]
"{0}" = "n[1-2]"
"""


@pytest.mark.parametrize("arguments", [["nodes"], ["nodes", "-o", "wide"], ["show"], ["check"]], ids=" ".join)
def test_a_fleet_file_is_text_of_others_too(tmp_path: Path, arguments: list[str]) -> None:
    """Racks and labels come from inventories that many may edit."""
    (tmp_path / "fleet.toml").write_text(FLEET.format(json.dumps(EVIL)[1:-1].replace("\\u009b", "\\u009B")))
    result = CliRunner().invoke(cli, ["fleet", *arguments, "--fleet", str(tmp_path / "fleet.toml")])
    ended_well(result)
    assert_tame(result.stdout)
    assert_tame(result.stderr)


def test_what_is_wrong_in_a_file_is_shown_not_obeyed(tmp_path: Path) -> None:
    """`config check` quotes the settings it refuses."""
    (tmp_path / "c.toml").write_text(
        '"evil' + "\\u001b[2J" + '" = 1\n[slurm]\ninterval = "x\\u001b]0;owned\\u0007\\nFORGED"\n'
    )
    result = CliRunner().invoke(cli, ["config", "check", str(tmp_path / "c.toml")])
    assert result.exit_code == 2
    assert "evil" in result.stdout
    assert_tame(result.stdout)
    assert_tame(result.stderr)


def test_what_is_ours_passes() -> None:
    """Words of any language, signs, colours of our own and the ends of our lines are left alone."""
    own = "● 61 °C · Zürich 東京\n\x1b[31m✗ failed\x1b[0m"
    with CliRunner().isolation(color=True) as (out, _, _mixed):
        say(own)
    assert out.getvalue().decode() == own + "\n"
    assert printable("Zürich 東京 °C") == "Zürich 東京 °C"
    assert printable("\udcff\u2028\u200f") == "\\udcff\\u2028\\u200f"
    assert cleaned({"a\x1b": ["b\n", 1, None, 2.5]}) == {"a\\x1b": ["b\\n", 1, None, 2.5]}


def test_nothing_prints_behind_the_back_of_say() -> None:
    """Every way of printing for people is `say`; the exceptions are counted and have their reason."""
    sources = Path(cli.callback.__code__.co_filename).parents[1]  # type: ignore[union-attr]
    around = {
        str(path.relative_to(sources))
        for folder in ("cli", "commands", "wiring", "service", "adapters")
        for path in sorted((sources / folder).rglob("*.py"))
        if re.search(r"\bclick\.echo\(|\bprint\(|stdout(\.buffer)?\.write\(", path.read_text())
    }
    assert around == {
        "cli/completion.py",  # the shell's own script
        "cli/printable.py",  # `say`
        "commands/audit_render/terminal.py",  # Rich, into text that `say` prints
        "commands/log.py",  # a million lines of cells that are printable already
        "commands/log_view.py",  # how far reading is, on one line that is written over
    }
