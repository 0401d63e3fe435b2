"""nodeworthy.toml: defaults that work, every problem at its line, no secrets."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import tomlkit
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from nodeworthy.cli.main import cli
from nodeworthy.errors import BadFile
from nodeworthy.wiring import config, paths
from nodeworthy.wiring.config import load, parse
from nodeworthy.wiring.reference import settings_rows
from nodeworthy.wiring.settings import Settings, unfold_addresses


def problems(text: str) -> list[tuple[int | None, str, str, str]]:
    with pytest.raises(BadFile) as error:
        parse(text, "nodeworthy.toml")
    return [(p.line, p.field, p.message, p.remedy) for p in error.value.problems]


def test_no_file_at_all_is_a_working_configuration(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Without a file: observe mode, Slurm every 30 s from PATH, nothing else."""
    monkeypatch.delenv("NODEWORTHY_CONFIG", raising=False)
    monkeypatch.setattr(config, "DEFAULT", str(tmp_path / "none.toml"))
    found, warnings = load()
    assert (found.mode, found.slurm.enabled, found.slurm.interval, found.exporters, warnings) == (
        "observe",
        True,
        30.0,
        (),
        (),
    )
    monkeypatch.delenv("NODEWORTHY_STORE", raising=False)
    assert found.store_url == f"{found.state_dir}/record.db"


def test_store_commands_use_the_store_that_serve_uses(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Backups are of the configured store; NODEWORTHY_STORE wins for both."""
    file = tmp_path / "n.toml"
    file.write_text(f'store = "sqlite:///{tmp_path}/mine.db"\n')
    monkeypatch.delenv("NODEWORTHY_STORE", raising=False)
    monkeypatch.setenv("NODEWORTHY_CONFIG", str(file))
    assert paths.store_url() == load()[0].store_url == f"sqlite:///{tmp_path}/mine.db"
    monkeypatch.setenv("NODEWORTHY_STORE", "postgresql://h/d")
    assert paths.store_url() == load()[0].store_url == "postgresql://h/d"


def test_environment_names_the_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """NODEWORTHY_CONFIG is read where no file is given; a file that is named must be there."""
    file = tmp_path / "n.toml"
    file.write_text('[slurm]\ninterval = "1m"\n')
    monkeypatch.setenv("NODEWORTHY_CONFIG", str(file))
    assert load()[0].slurm.interval == 60
    monkeypatch.setenv("NODEWORTHY_CONFIG", str(tmp_path / "none"))
    with pytest.raises(BadFile, match="No such file"):
        load()


def test_ordinary_users_get_paths_they_can_write(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Without root, and where the system's directories are not ours, everything lies in the user's own."""
    monkeypatch.setattr(paths.os, "geteuid", lambda: 1000)
    monkeypatch.setattr(paths.os, "access", lambda *_: False)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.delenv("NODEWORTHY_SOCKET", raising=False)
    monkeypatch.delenv("NODEWORTHY_STATE", raising=False)
    assert Settings().socket == tmp_path / "nodeworthy.sock"
    assert Settings().state_dir == tmp_path / "state" / "nodeworthy"


WRONG = """\
mode = "act"
store = "postgresql://u:secret@h/db"
fleeet = "x"

[slurm]
interval = "2s"
timeout = 30

[[exporters]]
name = "dcgm"
targets = ["http://n[1-2]:9400/metrics"]

[[exporters]]
name = "node"
targets = ["n1:9100"]

[[logs]]
host = "n1"
"""


def test_everything_wrong_is_told_at_once_with_its_line() -> None:
    """Each problem has line, setting, what is wrong and what it is for; the secret is not repeated."""
    found = problems(WRONG)
    assert [(line, field) for line, field, _, _ in found] == [
        (1, "mode"),
        (2, "store"),
        (3, "fleeet"),
        (6, "slurm.interval"),
        (7, "slurm.timeout"),
        (15, "exporters[1].targets"),
        (17, "logs[0].path"),
    ]
    assert found[2][3] == "did you mean fleet?"
    assert all(message and remedy for _, _, message, remedy in found)
    assert not any("secret" in " ".join(map(str, problem)) for problem in found)


@pytest.mark.parametrize(
    ("text", "line", "word"),
    [
        ("mode = observe\n", 1, "not TOML"),
        ('\n\n[slurm]\ninterval = "30s\n', 4, "not TOML"),
        ("[slurm]\n[slurm]\n", 2, "not TOML"),
        ('[turn]\ninterval = "0s"\n', 2, "between 1s and 5m"),
        ('[turn]\ninterval = "soon"\n', 2, "not a duration"),
        ("[policy]\nshared_share = 1.5\n", 2, "less than or equal to 1"),
        ('[[prometheus]]\nurl = "ftp://x"\n', 2, "address"),
        ('[[prometheus]]\nurl = "http://u:p@x:9090"\n', 2, "password"),
        ('[[prometheus]]\nurl = "http://token@x:9090"\n', 2, "password"),
        ('[[prometheus]]\nurl = "http://x:9090/?token=secret"\n', 2, "password"),
        ('[[exporters]]\nname = "a"\ntargets = ["http://x/metrics?access_token=1"]\n', 3, "password"),
        ('store = "postgresql://u@h/d?sslmode=require&password=s"\n', 1, "password"),
        ('[slurm]\nenvironment = {SLURM_JWT = "ey"}\n', 2, "SLURM_JWT"),
        ('[[exporters]]\nname = "a"\n[[exporters]]\nname = "b"\ntargets = ["http://x"]\n', 1, "targets"),
        ('[[exporters]]\nname = "a"\ntargets = ["http://n[1-"]\n', 3, "node set"),
        ("slurm = 5\n", 1, "dictionary"),
    ],
)
def test_each_kind_of_mistake_is_placed(text: str, line: int, word: str) -> None:
    """Syntax, ranges, units, addresses, passwords, types: the right line and a word that helps."""
    found = problems(text)
    assert found[0][0] == line
    assert word in " ".join(str(part) for part in found[0])


@pytest.mark.parametrize("name", ["slurm", "turn", "retention", "api"])
@pytest.mark.parametrize(
    "section",
    [
        '[[exporters]]\ntargets = ["http://x"]\n',
        '[[prometheus]]\nurl = "http://x"\n',
        '[[logs]]\npath = "/var/log/x"\n',
    ],
)
def test_a_source_cannot_speak_for_us(section: str, name: str) -> None:
    """An exporter called `slurm` would overwrite the scheduler's reading, one called `turn` keep a dead turn alive."""
    ((_, _, message, _),) = problems(f'{section}name = "{name}"\n')
    assert repr(name) in message
    assert parse(f'[[exporters]]\ntargets = ["http://x"]\nname = "{name}-exporter"\n', "n.toml")


def test_two_sources_of_one_name_are_refused() -> None:
    """A name tells sources apart in every finding, so it must."""
    text = '[[prometheus]]\nurl = "http://a"\n[[prometheus]]\nurl = "http://b"\n'
    assert "two sources are called 'prometheus'" in problems(text)[0][2]


def test_a_secret_that_others_can_read_is_an_error(tmp_path: Path) -> None:
    """A token file must be mode 0600; its content is never shown."""
    token = tmp_path / "token"
    token.write_text("hunter2")
    token.chmod(0o640)
    text = f'[[prometheus]]\nurl = "http://x:9090"\ntoken_file = "{token}"\n'
    ((line, field, message, remedy),) = problems(text)
    assert (line, field, remedy) == (3, "prometheus[0].token_file", f"chmod 0600 {token}")
    token.chmod(0o600)
    found, warnings = parse(text, "n.toml")
    assert warnings == ()
    assert "hunter2" not in found.model_dump_json() + message


def test_log_that_is_not_there_yet_is_a_warning(tmp_path: Path) -> None:
    """A log file may come later; a fleet file that is named must be there."""
    _, warnings = parse(f'[[logs]]\npath = "{tmp_path}/kern.log"\ntrusted = true\n', "n.toml")
    assert [(w.line, w.field) for w in warnings] == [(2, "logs[0].path")]
    assert problems(f'fleet = "{tmp_path}/fleet.toml"\n')[0][1] == "fleet"


def test_trust_in_a_central_file_must_be_stated(tmp_path: Path) -> None:
    """A sender to a file of many hosts chooses all that is in a line; a node's own file is its own."""
    log = tmp_path / "kern.log"
    log.touch()

    def read(more: str) -> tuple[bool, list[str]]:
        found, warnings = parse(f'[[logs]]\npath = "{log}"\n{more}\n', "n.toml")
        return found.logs[0].is_trusted, [f"{w.line} {w.field} {w.remedy}" for w in warnings]

    trusted, warned = read("")
    assert not trusted
    assert len(warned) == 1 and warned[0].startswith("1 logs[0] trusted = true if")
    assert read("trusted = true") == (True, [])
    assert read("trusted = false") == (False, [])
    assert read('host = "n1"') == (True, [])
    assert read('host = "n1"\ntrusted = false') == (False, [])


def test_node_sets_in_targets_are_unfolded() -> None:
    """One address a node; IPv6 addresses stay what they are."""
    targets = ["http://n[1-2]:9400/metrics", "http://[::1]:9100/metrics", "https://gw/[x]"]
    assert unfold_addresses(targets) == (
        "http://n1:9400/metrics",
        "http://n2:9400/metrics",
        "http://[::1]:9100/metrics",
        "https://gw/[x]",
    )


def test_what_is_shown_can_be_read_again(tmp_path: Path) -> None:
    """`config show` prints a file that means the same."""
    file = tmp_path / "n.toml"
    file.write_text('[[exporters]]\nname = "dcgm"\ntargets = ["http://n[1-2]:9400/metrics"]\ninterval = "1m30s"\n')
    result = CliRunner().invoke(cli, ["config", "show", str(file)])
    assert result.exit_code == 0
    assert parse(result.stdout, "shown.toml")[0] == load(file)[0]


def test_check_exits_0_2_3(tmp_path: Path) -> None:
    """Valid, wrong, valid with warnings; as JSON each problem is an item."""
    file = tmp_path / "n.toml"

    def check(text: str, *options: str) -> tuple[int, str]:
        file.write_text(text)
        result = CliRunner().invoke(cli, ["config", "check", str(file), *options])
        return result.exit_code, result.stdout

    assert check('[slurm]\ninterval = "30s"\n') == (0, "")
    assert check(f'[[logs]]\npath = "{tmp_path}/none"\n')[0] == 3
    code, text = check(WRONG)
    assert code == 2
    assert f"error: {file}:6: slurm.interval: must be at least 5s" in text
    code, text = check(WRONG, "-o", "json")
    assert [item["line"] for item in json.loads(text)["items"]] == [1, 2, 3, 6, 7, 15, 17]


def test_explain_tells_every_setting() -> None:
    """Each setting has a type, a default and a purpose; a wrong name is an error."""
    rows = list(settings_rows())
    assert len(rows) > 30
    assert all(row["description"] and row["type"] for row in rows), [r["setting"] for r in rows if not r["description"]]
    result = CliRunner().invoke(cli, ["config", "explain", "slurm.interval"])
    assert "30s" in result.stdout
    assert CliRunner().invoke(cli, ["config", "explain", "nope"]).exception is not None


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**31), 2**31)
    | st.floats(allow_nan=False)
    | st.text("ab\0[]-:/5s", max_size=12),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text("abc", min_size=1, max_size=3), inner, max_size=3)
    ),
    max_leaves=5,
)


@given(st.dictionaries(st.sampled_from(sorted(Settings.model_fields)), VALUES, max_size=4))
def test_wrong_types_anywhere_are_a_bad_file(document: dict[str, object]) -> None:
    """Each setting with a value of any type: settings, or BadFile with the setting's name."""
    document = {k: v for k, v in document.items() if v is not None}
    try:
        text = tomlkit.dumps(document)
    except (ValueError, TypeError, tomlkit.exceptions.TOMLKitError):
        return  # not every value has a TOML form (null in a list)
    try:
        parse(text, "n.toml")
    except BadFile as error:
        assert all(str(problem) for problem in error.problems)
