"""The parts of the lab that must never harm: what it ends, and what it leaves behind."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from labs import slurm_roots
from labs.processes import LabError, Processes, start_ticks
from labs.slurm_config import LabOptions, LabPlace, gres_conf, slurm_conf, topology_conf
from labs.slurm_lab import SlurmLab


@pytest.fixture
def processes(tmp_path: Path) -> Processes:
    return Processes(tmp_path, tmp_path)


def test_only_what_was_started_is_ended(processes: Processes) -> None:
    """A recorded process is ended; one that has only the same process id is not touched."""
    processes.spawn("mine", ["sleep", "60"])
    assert processes.pid("mine") is not None
    processes.end("mine")
    assert processes.pid("mine") is None
    with subprocess.Popen(["sleep", "60"]) as other:
        ticks = start_ticks(other.pid)
        assert ticks is not None
        (processes.run / "theirs.pid").write_text(f"{other.pid} {ticks - 1}\n")
        processes.end("theirs")
        assert other.poll() is None, "a process that this lab did not start was ended"
        other.kill()


def test_one_that_does_not_listen_is_ended_all_the_same(processes: Processes) -> None:
    """A process that ignores the request to end is ended after the time given."""
    code = (
        "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('ready', flush=True); time.sleep(60)"
    )
    processes.spawn("stubborn", [sys.executable, "-c", code])
    while "ready" not in processes.tail("stubborn"):
        assert processes.pid("stubborn") is not None
    processes.end("stubborn", patience_s=0.2)
    assert processes.pid("stubborn") is None


def test_a_folder_of_others_is_left_alone(tmp_path: Path) -> None:
    """Start refuses a folder with something in it, and stop removes only what start has marked."""
    (tmp_path / "precious").write_text("x")
    lab = SlurmLab(tmp_path)
    with pytest.raises(LabError):
        lab.start()
    lab.stop()
    assert (tmp_path / "precious").read_text() == "x"


@pytest.fixture
def fake_debootstrap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A debootstrap that makes a root in no time, and fails for the suite `broken`."""
    tool = tmp_path / "bin/debootstrap"
    tool.parent.mkdir()
    tool.write_text(
        '#!/bin/sh\nfor last; do :; done\nmkdir -p "$last/usr/sbin" "$last/var/cache/apt/archives"\n'
        'case "$*" in *broken*) exit 1;; esac\n: > "$last/usr/sbin/slurmctld"\necho made >> "$COUNT"\n'
    )
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tool.parent}:/usr/bin:/bin")
    monkeypatch.setenv("COUNT", str(tmp_path / "count"))
    monkeypatch.setenv("NODEWORTHY_SLURM_ROOTS", str(tmp_path / "roots"))
    monkeypatch.setattr("os.geteuid", lambda: 0)
    return tmp_path


def test_bootstrap_is_atomic_and_done_once(fake_debootstrap: Path) -> None:
    """A root appears whole; a second call finds it; one that fails leaves nothing behind."""
    roots = fake_debootstrap / "roots"
    assert slurm_roots.bootstrap("trixie") == slurm_roots.bootstrap("trixie") == roots / "trixie"
    assert (fake_debootstrap / "count").read_text() == "made\n"
    with pytest.raises(LabError, match="broken"):
        slurm_roots.bootstrap("broken")
    assert [path.name for path in roots.iterdir()] == ["trixie"]


@pytest.mark.parametrize("version", [(22, 5), (24, 11), (26, 5)])
def test_configuration_listens_on_loopback_only(tmp_path: Path, version: tuple[int, int]) -> None:
    """Every version's configuration keeps to loopback and below the lab's own folder."""
    options = LabOptions(nodes=3, phantom=2500, cloud=2, database=True, leaf=2)
    place = LabPlace(tmp_path, options, version, "/usr/lib/slurm", 20000)
    conf = slurm_conf(place)
    assert "NoCtldInAddrAny,NoInAddrAny" in conf and "AccountingStorageHost=127.0.0.1" in conf
    assert conf.count("NodeAddr=127.0.0.1") == conf.count("NodeName=") == 5  # real, cloud, three groups of phantoms
    assert "/etc/slurm" not in conf.replace(str(tmp_path), "")
    assert "HealthCheckProgram" not in conf, "one slurmd would run it for a thousand phantoms"
    assert ("PrivateData=cloud" in conf) == (version < (23, 2))
    topology = topology_conf(place)
    assert topology is not None and topology.count("SwitchName=leaf") == 2 + 1 + 1250
    assert "nvidia[0-6]" in gres_conf(place, {"gpu00001": 7})
