"""A fleet with faults on this machine, and Nodeworthy watching it: what `make up` runs.

    python -m labs.up                    until Ctrl-C
    python -m labs.up --for 60           ends by itself
    python -m labs.up --dir /tmp/mine    keeps configuration, record and logs there

One real Slurm of sixteen nodes (`slurm_lab`), pretended exporters (`exporter`), one kernel log (`logsource`) and one
`nodeworthy serve` that reads all of them. Everything lives below one directory, listens on loopback, and is ended by its
recorded process id, whether the start failed, somebody pressed Ctrl-C or the time is over. Needs root, as the lab does.
"""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import FrameType

import tomlkit

from labs import logsource, slurm_roots, up_text
from labs.exporter import Exporters
from labs.pages import DCGM_PAGE, NODE_PAGE
from labs.processes import LabError, Processes, wait_until
from labs.slurm_lab import SlurmLab

ROOT = Path(__file__).resolve().parents[1]
NODES = 16
READY_TIMEOUT_S = 60.0
EVENTS_AFTER_S = 5.0  # time to look at the calm before the kernel speaks

# what the pretended exporters report and Slurm does not know: labs.pages describes a DGX H100
EXPECTED: dict[str, bool | int | float] = {
    "pcie_gen": 5,
    "pcie_width": 16,
    "ecc": True,
    "fabric_manager": True,
    "persistence": True,
    "gpu_temperature_max": 87.0,
    "ib_rate": 400.0,
}


class Ended(BaseException):
    """Somebody asked for the end; like KeyboardInterrupt it is no error."""


class Site:
    """What was started, and where it is."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.begun = time.monotonic()
        self.processes = Processes(directory / "run", directory / "log")
        for folder in ("bin", "run", "log"):
            (directory / folder).mkdir()
        self.kernel_log = directory / "kern.log"
        self.kernel_log.touch()
        self.database = shutil.which("mariadbd") is not None
        # a person with a name of their own needs accounting, and must get at the lab's files
        self.person = "daemon" if self.database and _open_to_all(directory) else None
        self.lab = SlurmLab(
            directory / "slurm",
            root=slurm_root(),
            nodes=NODES,
            prefix="n",
            width=0,
            slurmd_timeout_s=12,
            database=self.database,
        )

    @property
    def socket(self) -> Path:
        return self.directory / "nodeworthy.sock"

    @property
    def environment(self) -> dict[str, str]:
        """What the printed commands need on top of a shell's environment."""
        folders = f"{self.directory}/bin:{self.directory}/slurm/bin"
        return {
            "NODEWORTHY_CONFIG": str(self.directory / "nodeworthy.toml"),
            "NODEWORTHY_FLEET": str(self.directory / "fleet.toml"),
            "NODEWORTHY_SOCKET": str(self.socket),
            "NODEWORTHY_STATE": str(self.directory / "state"),
            "SLURM_CONF": self.lab.env["SLURM_CONF"],
            "PATH": f"{folders}:{os.environ.get('PATH', '/usr/sbin:/usr/bin:/sbin:/bin')}",
        }

    def say(self, text: str) -> None:
        print(f"{time.monotonic() - self.begun:6.1f} s  {text}", flush=True)

    def nodeworthy(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(self.directory / "bin/nodeworthy"), *arguments],
            capture_output=True,
            text=True,
            env={**os.environ, **self.environment},
            timeout=60,
            check=False,
        )


def missing() -> str:
    """Why no lab can be started here, or an empty text."""
    if os.geteuid() != 0:
        return "it starts a real Slurm, which starts jobs as their users, and for that it needs root"
    if _has_slurm() or slurm_root() is not None:
        return ""
    return (
        "slurmctld, slurmd and munged are not installed; on Debian `make packages` as root installs them "
        "(slurmctld slurmd slurm-client slurm-wlm-basic-plugins munge)"
    )


def _open_to_all(directory: Path) -> bool:
    return all(folder.stat().st_mode & 0o001 for folder in (directory, *directory.parents))


def _has_slurm() -> bool:
    return all(Path(f"/usr/sbin/{daemon}").exists() for daemon in ("slurmctld", "slurmd", "munged"))


def slurm_root() -> Path | None:
    """None is this machine's own Slurm; where it has none, an unpacked root that was made before."""
    if _has_slurm():
        return None
    return next((root for suite in slurm_roots.SUITES.values() if (root := slurm_roots.root_of(suite))), None)


# ---------------------------------------------------------------------- the start, step by step
def start(site: Site, stack: ExitStack) -> Exporters:
    """Start everything; what was started is ended by `stack`, also when a later step fails."""
    stack.callback(site.lab.stop)
    site.lab.start()
    version = "{}.{:02d}".format(*site.lab.version)
    accounting = "with accounting" if site.database else "without accounting (no MariaDB here)"
    site.say(f"Slurm {version} {accounting}: n[1-{NODES}] on four leaf switches")
    make_faults(site)
    exporters = stack.enter_context(Exporters(site.lab.node_names))
    exporters.lab.set("n9", "2", "DCGM_FI_DEV_GPU_TEMP", 96)
    exporters.lab.set("n9", "2", "DCGM_FI_DEV_GPU_TEMP_LIMIT", -9)
    exporters.lab.set("n10", "5", "DCGM_FI_DEV_ROW_REMAP_FAILURE", 1)
    site.say(f"exporters of {NODES} nodes on {exporters.url}: n9 has a hot GPU, n10 one with a failed row remap")
    write_tools(site, exporters.url)
    import_fleet(site)
    write_config(site, exporters.url)
    stack.callback(site.processes.end, "serve", patience_s=20.0)
    site.processes.spawn("serve", [str(site.directory / "bin/nodeworthy"), "serve"], env=site.environment)
    wait_until(lambda: serves(site), "nodeworthy serve", READY_TIMEOUT_S, says=lambda: site.processes.tail("serve"))
    site.say("nodeworthy serve has read every source and judged")
    return exporters


def make_faults(site: Site) -> None:
    """Bad states made for real, and jobs."""
    lab = site.lab
    lab.kill_node("n5")
    lab.health_fault("n16", "NHC: check_nvlink: GPU 5 has 17 of 18 links")
    reason = "reason=ops: riser of GPU 3 ordered, RMA 5521"
    lab.run("scontrol", "update", "nodename=n6", "state=drain", reason, user=site.person)
    lab.run("scontrol", "create", "reservation", "reservationname=course", "starttime=now", "duration=1-0", "users=root",
            "nodes=n8")  # fmt: skip
    lab.break_gres("n14", 7)
    long, whole = "sleep infinity", ("--exclusive", "--gres=gpu:8")
    lab.submit("-J", "notebook", "-t", "1-0", "-n1", "-w", "n2", "--gres=gpu:2", command=long)
    lab.submit("-J", "llama-70b", "-t", "1-0", "-N2", "-w", "n3,n4", *whole, command=long)
    # n16's health program runs every five seconds, and Slurm gives n5 up later still: nothing waits for these
    lab.await_states({"n14": r".*\+INVALID_REG.*", "n3": "ALLOCATED", "n6": r".*\+DRAIN.*"})
    owner = site.person or "root"
    site.say(
        f"n5 lost, n6 drained by {owner}, n8 reserved, n14 misses a GPU, n16 drained by its health program; 2 jobs"
    )


def write_tools(site: Site, exporter_url: str) -> None:
    """The commands that are printed later, as scripts: they find this checkout and this site by themselves."""
    python = f"PYTHONPATH={shlex.quote(f'{ROOT}/src:{ROOT}')} exec {shlex.quote(sys.executable)} -m"
    scripts = {
        "nodeworthy": f'{python} nodeworthy.cli.main "$@"',
        "exporter": f'order=$1; shift\n{python} labs.exporter "$order" --url {exporter_url} "$@"',
        "kernel-log": f'{python} labs.logsource --file {shlex.quote(str(site.kernel_log))} "$@"',
    }
    for name, text in scripts.items():
        script = site.directory / "bin" / name
        script.write_text(f"#!/bin/sh\n{text}\n")
        script.chmod(0o755)
    lines = [f"export {name}={shlex.quote(value)}" for name, value in site.environment.items()]
    (site.directory / "env").write_text("\n".join(lines) + "\n")


def import_fleet(site: Site) -> None:
    """What there should be, as Slurm knows it, and what Slurm cannot know added to its one class."""
    fleet = site.directory / "fleet.toml"
    done = site.nodeworthy("fleet", "import", "slurm", "--to", str(fleet))
    if done.returncode != 0:
        raise LabError(f"nodeworthy fleet import slurm: exit code {done.returncode}: {done.stderr.strip()}")
    document = tomlkit.parse(fleet.read_text())
    for node_class in document["classes"].values():  # type: ignore[union-attr]
        expect = tomlkit.inline_table()
        expect.update(EXPECTED)
        node_class["expect"] = expect
    fleet.write_text(tomlkit.dumps(document))
    site.say(f"fleet file imported from Slurm: {fleet}")


def write_config(site: Site, exporter_url: str) -> None:
    pages = [f"{exporter_url}/nodes/n[1-{NODES}]/{kind}/metrics" for kind in (DCGM_PAGE, NODE_PAGE)]
    (site.directory / "nodeworthy.toml").write_text(f"""\
fleet = "{site.directory}/fleet.toml"
state_dir = "{site.directory}/state"
socket = "{site.socket}"

[turn]
interval = "2s"

[slurm]
bin_dir = "{site.directory}/slurm/bin"
conf = "{site.lab.env["SLURM_CONF"]}"
interval = "5s"

[[exporters]]
name = "dcgm"
targets = ["n[1-{NODES}] {pages[0]}"]
interval = "5s"

[[exporters]]
name = "node"
targets = ["n[1-{NODES}] {pages[1]}"]
interval = "5s"

[[logs]]
name = "kernel"
path = "{site.kernel_log}"
trusted = true
""")


def serves(site: Site) -> bool:
    """Whether it answers and has made a turn."""
    if site.processes.pid("serve") is None:
        raise LabError(f"nodeworthy serve ended: {site.processes.tail('serve', 12)}")
    return site.socket.exists() and "observing " in site.processes.tail("serve", 40)


# ---------------------------------------------------------------------- running and ending
def speak_kernel(site: Site) -> None:
    """A fault, a user's own bug and a forgery: only the first may lead to a hold."""
    now = time.time()
    forged = (
        f"{logsource.stamp(now, 'iso')} n7 train[4242]: NVRM: Xid (PCI:0000:53:00): 79, GPU has fallen off the bus."
    )
    lines = [logsource.xid_line("n3", 3, 79, now), logsource.xid_line("n4", 0, 31, now), forged]
    logsource.append(site.kernel_log, lines)
    site.say("kernel log: Xid 79 on n3, Xid 31 (a program's own) on n4, a forged Xid 79 by a user of n7")


def watch(site: Site, for_s: float | None) -> None:
    """Let the kernel speak once, then wait until the time is over or serve ends."""
    begun, spoken = time.monotonic(), False
    while for_s is None or time.monotonic() - begun < for_s:
        if not spoken and time.monotonic() - begun >= EVENTS_AFTER_S:
            speak_kernel(site)
            spoken = True
        if site.processes.pid("serve") is None:
            raise LabError(f"nodeworthy serve ended: {site.processes.tail('serve', 12)}")
        time.sleep(0.2)


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """The first SIGINT, SIGTERM or SIGHUP raises Ended; later ones must not disturb the cleaning up."""
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

    def end(number: int, frame: FrameType | None) -> None:
        for each in numbers:
            signal.signal(each, signal.SIG_IGN)
        raise Ended

    before = {number: signal.signal(number, end) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def place(directory: Path | None) -> Iterator[Path]:
    """A temporary directory that is removed at the end, or the one that is asked for, which is kept."""
    if directory is not None:
        directory = directory.absolute()
        directory.mkdir(parents=True, exist_ok=True)
        if any(directory.iterdir()):
            raise LabError(f"{directory} is not empty: name a new directory")
        yield directory
        return
    made = Path(tempfile.mkdtemp(prefix="nodeworthy-up-"))
    try:
        made.chmod(0o755)  # clients of other users come in, too
        yield made
    finally:
        shutil.rmtree(made)


def run(directory: Path | None, for_s: float | None) -> None:
    with place(directory) as folder, ExitStack() as stack:
        site = Site(folder)
        stack.callback(site.say, "everything is ended" + ("" if directory else f", {folder} is removed"))
        start(site, stack)
        print(up_text.what_to_try(folder, site.person), flush=True)
        try:
            watch(site, for_s)
        finally:
            print(flush=True)
            site.say("ending")


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m labs.up", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--for", dest="for_s", type=float, metavar="SECONDS", help="end by itself so long after the start"
    )
    parser.add_argument("--dir", type=Path, help="a new or empty directory, which is kept (default: a temporary one)")
    options = parser.parse_args(argv)
    if why := missing():
        print(f"make up cannot start the lab: {why}.\n\n{up_text.WITHOUT_LAB}", file=sys.stderr)
        return 1
    try:
        with ended_by_signals():
            run(options.dir, options.for_s)
    except Ended:
        return 0
    except (LabError, OSError, subprocess.SubprocessError) as error:
        print(f"make up: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
