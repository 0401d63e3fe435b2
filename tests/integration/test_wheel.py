"""The wheel holds all that the commands read: they work from it alone, in a folder without this checkout."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Builds the wheel with the build backend of this environment (no network) and unpacks it."""
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)], cwd=ROOT, check=True,
                   capture_output=True, timeout=120)  # fmt: skip
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder / "site")
    return folder / "site"


@pytest.fixture
def run(unpacked: Path, tmp_path: Path) -> Run:
    def run(*arguments: str, given: str | None = None) -> subprocess.CompletedProcess[str]:
        environment = {k: v for k, v in os.environ.items() if not k.startswith(("NODEWORTHY_", "SLURM_"))}
        environment |= {"PYTHONPATH": str(unpacked), "NODEWORTHY_STATE": str(tmp_path / "state")}
        start = "import nodeworthy, sys; assert nodeworthy.__file__.startswith(sys.argv.pop(1)), nodeworthy.__file__; "
        return subprocess.run(
            [sys.executable, "-c", start + "from nodeworthy.cli.main import main; main()", str(unpacked), *arguments],
            cwd=tmp_path, env=environment, input=given, capture_output=True, text=True, timeout=90, check=False,
        )  # fmt: skip

    return run


def test_files_that_are_no_python_are_in_the_wheel(unpacked: Path) -> None:
    """Every data file below src is packed, and nothing of tests, labs or docs is."""
    wanted = {
        path.relative_to(ROOT / "src")
        for path in (ROOT / "src").rglob("*")
        if path.suffix in {".toml", ".j2", ".json", ".py", ".typed"}
    }
    packed = {path.relative_to(unpacked) for path in unpacked.rglob("*") if path.is_file()}
    assert wanted - packed == set()
    assert {path.parts[0] for path in packed if "dist-info" not in path.parts[0]} == {"nodeworthy", "nodeworthy_node"}


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--help",), "Commands:"),
        (("catalogue", "list"), "xid-79"),
        (("fleet", "fold", "n1", "n2", "n3"), "n[1-3]"),
        (("config", "explain", "slurm"), "interval"),
    ],
)
def test_commands_run_from_the_wheel(run: Run, arguments: tuple[str, ...], says: str) -> None:
    """Commands that need no service work, with the catalogue that was packed."""
    done = run(*arguments)
    assert done.returncode == 0, done.stderr
    assert says in done.stdout + done.stderr


def test_log_classify_runs_from_the_wheel(run: Run) -> None:
    """The rules are packed: a kernel line becomes an event."""
    line = "2026-11-30T12:00:00.000000+00:00 n3 kernel: [ 123.456789] NVRM: Xid (PCI:0000:86:00): 79, GPU has fallen off the bus."
    done = run("log", "classify", "--json", "-", given=line + "\n")
    assert done.returncode == 0, done.stderr
    assert '"code":79' in done.stdout.replace(" ", "").replace('"79"', "79")


def test_serve_once_runs_from_the_wheel(run: Run, tmp_path: Path) -> None:
    """The migrations are packed: a new record is made, a turn is taken, and the declared nodes are unknown."""
    (tmp_path / "fleet.toml").write_text('[classes.c]\ngpus = 8\n[[nodes]]\nnames = "n[1-2]"\nclass = "c"\n')
    config = tmp_path / "nodeworthy.toml"
    config.write_text(
        f'fleet = "{tmp_path}/fleet.toml"\nstate_dir = "{tmp_path}/state"\nsocket = "{tmp_path}/s"\n[slurm]\nenabled = false\n'
    )
    done = run("serve", "--config", str(config), "--once")
    assert done.stdout.startswith("2 nodes: 2 unknown"), done.stderr
    assert done.returncode == 3  # unknown is not well
    assert (tmp_path / "state/record.db").exists()
