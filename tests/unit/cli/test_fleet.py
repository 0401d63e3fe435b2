"""`nodeworthy fleet`: what people type, what they get, and the exit codes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from nodeworthy.commands.fleet import fleet
from nodeworthy.errors import BadFile, BadRequest, NotKnown

CSV = "name,class,gpus,gpu_type,rack,serial\nn1,h100,8,h100,r1,S1\nn2,h100,8,h100,r1,S2\nn3,cpu,0,,r2,S3\n"
Run = Callable[..., Result]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """The command, in an empty directory with an inventory."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("NODEWORTHY_FLEET", raising=False)
    Path("nodes.csv").write_text(CSV)

    def command(*words: str, code: int = 0, text: str | None = None) -> Result:
        result = CliRunner().invoke(fleet, words, input=text)
        if result.exception and not isinstance(result.exception, SystemExit):
            raise result.exception
        assert result.exit_code == code, result.output
        return result

    return command


def test_import_check_show_nodes(run: Run) -> None:
    """From an inventory to a fleet file, and what it says."""
    assert "3 nodes: 2 × h100, 1 × cpu" in run("import", "csv", "nodes.csv").stdout
    assert "3 nodes in 2 classes" in run("check").stderr
    shown = json.loads(run("show", "-o", "json").stdout)
    assert shown["schema"] == "nodeworthy.fleet/1" and shown["nodes"] == 3
    assert {row["class"]: (row["nodes"], row["nodeset"], row["rack"]) for row in shown["items"]} == {
        "h100": (2, "n[1-2]", 1),
        "cpu": (1, "n3", 1),
    }
    assert run("nodes", "-l", "rack=r1", "-o", "nodeset").stdout == "n[1-2]\n"
    assert run("nodes", "n[2-3]", "-l", "class=cpu", "-o", "name").stdout == "n3\n"
    assert json.loads(run("nodes", "n1", "--json").stdout)["items"][0]["serial"] == "S1"
    with pytest.raises(NotKnown, match=r"n\[8-9\]"):
        run("nodes", "n[1,8-9]")
    with pytest.raises(BadRequest, match="key=value"):
        run("nodes", "-l", "rack")


def test_check_tells_everything_and_exits_3(run: Run) -> None:
    """A bad file: a row a problem, exit code 3, and other commands refuse it."""
    Path("fleet.toml").write_text('[[nodes]]\nnames = "n[1"\nclass = "x"\n')
    rows = json.loads(run("check", "-o", "json", code=3).stdout)["items"]
    assert [(row["line"], row["field"]) for row in rows] == [(2, "nodes.0.names"), (3, "nodes.0.class")]
    assert all(row["file"] == "fleet.toml" and row["remedy"] for row in rows)
    with pytest.raises(BadFile):
        run("show")


def test_check_tells_names_that_two_nodes_claim(run: Run) -> None:
    """A name declared for two nodes is no error of the format, and still not well."""
    Path("fleet.toml").write_text(
        '[classes.c]\n[[nodes]]\nnames = "n[1-2]"\nclass = "c"\nsyslog = "x{name}"\n[node.n1]\nsyslog = "xn2"\n'
    )
    (row,) = json.loads(run("check", "-o", "json", code=3).stdout)["items"]
    assert row["field"] == "syslog:xn2" and "n1, n2" in row["message"]


def test_import_never_replaces_silently(run: Run) -> None:
    """A different file that exists is shown as a diff and left alone, until --force, which keeps the old one."""
    run("import", "csv", "nodes.csv")
    before = Path("fleet.toml").read_text()
    run("import", "csv", "nodes.csv")
    Path("nodes.csv").write_text(CSV.replace("n3", "n4"))
    refused = run("import", "csv", "nodes.csv", code=5)
    assert '+names = "n4"' in refused.stderr and "refused" in refused.stderr
    assert Path("fleet.toml").read_text() == before
    assert 'names = "n4"' in run("import", "csv", "nodes.csv", "--to", "-").stdout
    written = json.loads(run("import", "csv", "nodes.csv", "--force", "--json").stdout)
    assert written["backup"] == "fleet.toml.bak" and Path("fleet.toml.bak").read_text() == before


def test_diff_and_write(run: Run) -> None:
    """Differences are gathered, exit code 3; --write takes them over and keeps comments; then there are none."""
    run("import", "csv", "nodes.csv")
    assert "no difference" in run("diff", "csv", "nodes.csv").stderr
    Path("fleet.toml").write_text("# ours\n" + Path("fleet.toml").read_text())
    Path("nodes.csv").write_text(CSV.replace(",r1,", ",r9,").replace("n3,cpu,0,,r2,S3", "n7,cpu,0,,r2,S7"))
    rows = json.loads(run("diff", "csv", "nodes.csv", "--json", code=3).stdout)["items"]
    assert {(r["change"], r["nodes"], r["was"], r["now"]) for r in rows} == {
        ("moved", "n[1-2]", "rack r1", "rack r9"),
        ("gone", "n3", "cpu", ""),
        ("added", "n7", "", "cpu"),
    }
    run("diff", "csv", "nodes.csv", "--write")
    assert Path("fleet.toml").read_text().startswith("# ours\n")
    assert run("nodes", "-o", "nodeset").stdout == "n[1-3,7]\n"
    run("diff", "csv", "nodes.csv", "--write", "--prune")
    assert run("nodes", "-o", "nodeset").stdout == "n[1-2,7]\n"
    run("diff", "csv", "nodes.csv")


def test_fold_and_unfold(run: Run) -> None:
    """Node sets both ways, from words and from standard input."""
    assert run("fold", "n1", "n2", "n10").stdout == "n[1-2,10]\n"
    assert run("fold", text="n1,n2\nn3\n").stdout == "n[1-3]\n"
    assert run("unfold", "n[01-03]").stdout == "n01\nn02\nn03\n"
    assert json.loads(run("unfold", "n[1-2]", "--json").stdout)["items"] == [{"name": "n1"}, {"name": "n2"}]
    with pytest.raises(BadRequest, match="not a node set"):
        run("unfold", "n[1-")


def test_every_command_has_help_with_an_example(run: Run) -> None:
    """Each verb says what it does, with an example."""
    for words in ("check", "show", "nodes", "fold", "unfold", "import csv", "import slurm", "diff csv", "diff slurm"):
        assert "Example:" in run(*words.split(), "--help").stdout, words
