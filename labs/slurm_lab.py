"""A private, throw-away Slurm cluster with fake GPUs on one machine, for tests and for trying things out.

    with SlurmLab(directory, nodes=16).start() as lab:
        lab.run("scontrol", "show", "nodes")
        lab.kill_node("gpu00005")

    python -m labs.slurm_lab start --dir /tmp/lab --nodes 16
    eval "$(python -m labs.slurm_lab env --dir /tmp/lab)"
    python -m labs.slurm_lab stop --dir /tmp/lab

Real slurmctld and slurmd, a real munge, on request a real slurmdbd on a real MariaDB; what is played is the
number of machines and their GPUs (`slurm_config`). Needs root, because slurmd starts jobs as their user. All
state, logs, sockets and process records are below the lab's directory; nothing in /etc is read or written
and every listener is on loopback. `processes` says how things are ended.
"""

from __future__ import annotations

import dataclasses
import json
import os
import re
import secrets
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

from labs import slurm_config, slurm_database, slurm_roots
from labs.processes import LabError, Processes, free_ports, leftovers, wait_until
from labs.slurm_config import LabOptions, LabPlace

MARK = ".slurm-lab"
SCRIPTS = Path(__file__).parent / "slurm_scripts"
LONGEST_DIRECTORY = 55
"""A job step's socket lies below the directory, and the kernel allows its path 107 characters."""
HOOKS = ("resume", "suspend", "reboot", "health")
CLIENTS = ("sacct", "sacctmgr", "salloc", "sbatch", "scancel", "scontrol", "sdiag", "sinfo", "sprio", "squeue", "srun")

# Message types at slurmctld that change nothing: questions, and what its own daemons send. Every other type
# counts as a write, so that a kind of write that nobody thought of is counted rather than overlooked.
_READS = re.compile(
    r"^REQUEST_(\w+_INFO(_SINGLE)?|PING|JOB_READY|CONFIG|NODE_ALIAS_ADDRS|LICENSE_INFO|SHARE_INFO|HOSTLIST_EXPANSION)$"
    r"|^(MESSAGE|ACCOUNTING|RESPONSE)_\w+$"
    r"|^REQUEST_(COMPLETE_\w+|STEP_COMPLETE|PERSIST_INIT\w*|CONTROL_STATUS|NODE_REGISTRATION_STATUS)$"
)
_COUNTER = re.compile(r"^\s+(\w+)\s+\(\s*\d+\)\s+count:(\d+)", re.MULTILINE)


class SlurmLab:
    """One lab. Nodes are named prefix + number (`gpu00001`, or `n1` with prefix="n", width=0)."""

    def __init__(self, directory: Path | str, *, root: Path | str | None = None, **options: Any) -> None:
        self.directory = Path(directory).absolute()
        self.options = LabOptions(root=str(Path(root).resolve()) if root else None, **options)
        self.processes = Processes(self.directory / "run", self.directory / "log")
        self._place: LabPlace | None = None

    @classmethod
    def attach(cls, directory: Path | str) -> SlurmLab:
        """A lab that somebody started, for instance the command line."""
        record = Path(directory) / "lab.json"
        if not record.exists():
            raise LabError(f"no lab in {directory}")
        known = json.loads(record.read_text())
        lab = cls(directory, **known["options"])
        lab._place = LabPlace(lab.directory, lab.options, tuple(known["version"]), known["plugins"], known["port"])
        return lab

    # ------------------------------------------------------------------ facts
    @property
    def place(self) -> LabPlace:
        if self._place is None:
            raise LabError("the lab was not started")
        return self._place

    @property
    def version(self) -> tuple[int, int]:
        return self.place.version

    @property
    def env(self) -> dict[str, str]:
        """What a client of this lab needs on top of its environment."""
        return {
            "SLURM_CONF": f"{self.directory}/etc/slurm.conf",
            "PATH": f"{self.directory}/bin:{os.environ.get('PATH', '/usr/sbin:/usr/bin:/sbin:/bin')}",
        }

    @property
    def node_names(self) -> list[str]:
        return self.options.real_names()

    def name(self, number: int) -> str:
        return self.options.name(number)

    # ------------------------------------------------------------------ life
    def start(self, timeout_s: float = 120.0) -> Self:
        """Start everything and return once every node is idle."""
        if os.geteuid() != 0:
            raise LabError("a Slurm lab needs root")
        if (self.directory / "etc/slurm.conf").exists():
            raise LabError(f"{self.directory} holds a lab already: stop it first")
        if self.directory.exists() and not (self.directory / MARK).exists() and any(self.directory.iterdir()):
            raise LabError(f"{self.directory} is neither empty nor a lab")
        shutil.rmtree(self.directory, ignore_errors=True)  # what a start that failed left to be looked at
        self._make_folders()
        try:
            self._place = self._look_around()
            self._write_files()
            self._start_daemons()
            self._wait_for_idle(timeout_s)
        except BaseException:
            self.stop(keep_logs=True)
            raise
        return self

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self, keep_logs: bool = False) -> None:
        """End what this lab started and remove its directory. Does nothing where no lab is."""
        if not (self.directory / MARK).exists():
            return
        (self.directory / "run").mkdir(exist_ok=True)
        (self.directory / "run/stopping").touch()  # nodectl starts nothing from here on
        if self._place is not None and self.processes.pid("slurmctld") is not None:
            self._cancel_jobs()
        # the controller first: while slurmds vanish under it, it waits for their answers before it ends
        self.processes.end("slurmctld")
        slurmds = [name for name in self.processes.names() if name.startswith("slurmd-")]
        self.processes.end(*slurmds)
        for name in ("slurmdbd", "munged", "mariadbd"):
            self.processes.end(name)
        for pid in list(leftovers(self.directory / "etc/slurm.conf", self.directory / "log")):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if keep_logs:
            (self.directory / "etc/slurm.conf").unlink(missing_ok=True)
        else:
            shutil.rmtree(self.directory)

    def _cancel_jobs(self) -> None:
        with suppress(LabError):
            for state in ("pending", "suspended", "running"):
                self.run("scancel", f"--state={state}", timeout_s=10)
            if not self.run("squeue", "-h", "-t", "running,completing,suspended", "-o", "%i", timeout_s=5).strip():
                return
            time.sleep(1.0)

    def _make_folders(self) -> None:
        self.directory.mkdir(parents=True, exist_ok=True)
        (self.directory / MARK).touch()
        self.directory.chmod(0o755)
        for folder in ("bin", "etc", "run", "log", "munge", "state/ctld", "state/slurmd", "rundir", "hook", "health"):
            (self.directory / folder).mkdir(parents=True, exist_ok=True)
        (self.directory / "dev").mkdir(exist_ok=True)
        (self.directory / "munge").chmod(0o711)
        (self.directory / "rundir/.slurm-lab-inside").touch()

    def _look_around(self) -> LabPlace:
        version, plugins = slurm_roots.installed(self.options.root or "")
        return LabPlace(self.directory, self.options, version, plugins, free_ports(self.options.ports()))

    def _write_files(self) -> None:
        place, lab = self.place, self.directory
        for device in range(self.options.gpus):
            (lab / f"dev/nvidia{device}").symlink_to("/dev/null")
        first_phantoms = [self.options.name(first, "ph") for first, _ in self.options.phantom_groups()]
        for name in [*self.node_names, *self.options.cloud_names(), *first_phantoms]:
            (lab / "state/slurmd" / name).mkdir()
        for key, size in (("etc/jwt_hs256.key", 32), ("munge/munge.key", 128)):
            (lab / key).touch(mode=0o600)
            (lab / key).write_bytes(secrets.token_bytes(size))
        etc = {"slurm.conf": slurm_config.slurm_conf(place), "gres.conf": slurm_config.gres_conf(place)}
        if topology := slurm_config.topology_conf(place):
            etc["topology.conf"] = topology
        if place.version >= (23, 2):
            etc["cgroup.conf"] = "CgroupPlugin=disabled\n"
        for name, text in etc.items():
            (lab / "etc" / name).write_text(text)
        if self.options.database:
            (lab / "etc/slurmdbd.conf").touch(mode=0o600)
            (lab / "etc/slurmdbd.conf").write_text(slurm_config.slurmdbd_conf(place))
        for script in SCRIPTS.iterdir():
            text = script.read_text().replace("@LAB@", str(lab)).replace("@ROOT@", self.options.root or "")
            self._script(("hook/" if script.name in HOOKS else "bin/") + script.name, text)
        for client in CLIENTS:
            if Path(f"{self.options.root or ''}/usr/bin/{client}").exists():
                self._script(f"bin/{client}", f'#!/bin/sh\nexec {lab}/bin/enter /usr/bin/{client} "$@"\n')
        record = {
            "options": dataclasses.asdict(self.options),
            "version": place.version,
            "plugins": place.plugins,
            "port": place.port,
        }
        (lab / "lab.json").write_text(json.dumps(record, indent=1) + "\n")

    def _script(self, name: str, text: str) -> None:
        path = self.directory / name
        path.write_text(text)
        path.chmod(0o755)

    def _start_daemons(self) -> None:
        lab, enter = self.directory, f"{self.directory}/bin/enter"
        munge = lab / "munge"
        self.processes.spawn(
            "munged",
            [
                enter,
                "/usr/sbin/munged",
                "--foreground",
                "--force",  # a folder that only root may enter (pytest's) is no error here
                "--num-threads=4",
                f"--key-file={munge}/munge.key",
                f"--socket={munge}/munge.socket",
                f"--pid-file={munge}/munged.pid",
                f"--log-file={munge}/munged.log",
                f"--seed-file={munge}/munged.seed",
            ],
        )
        self.wait_for("munged", lambda: (munge / "munge.socket").exists(), 15)
        if self.options.database:
            slurm_database.start(self)
        self.start_controller()
        first_phantoms = [self.options.name(first, "ph") for first, _ in self.options.phantom_groups()]
        if names := [*self.node_names, *first_phantoms]:
            self._nodectl("start", *names)

    def start_controller(self) -> None:
        """Start slurmctld and wait until it answers."""
        self.processes.spawn(
            "slurmctld", [f"{self.directory}/bin/enter", "/usr/sbin/slurmctld", "-D", "-f", self.env["SLURM_CONF"]]
        )
        self.wait_for("slurmctld", lambda: self.try_run("scontrol", "ping") is not None, 30)

    def stop_controller(self) -> None:
        """End slurmctld; the slurmds go on. For tests of a dead controller."""
        self.processes.end("slurmctld")

    def wait_for(self, daemon: str, condition: Any, timeout_s: float) -> None:
        def ready() -> bool:
            if self.processes.pid(daemon) is None:
                raise LabError(f"{daemon} ended: {self.processes.tail(daemon)}")
            return bool(condition())

        wait_until(ready, daemon, timeout_s, says=lambda: self.processes.tail(daemon))

    def _wait_for_idle(self, timeout_s: float) -> None:
        wanted = self.options.nodes + self.options.phantom

        def idle() -> bool:
            said = self.try_run("sinfo", "-h", "-p", "batch", "-t", "idle", "-o", "%D %t") or ""
            counts = [line.split() for line in said.splitlines()]
            return sum(int(words[0]) for words in counts if len(words) == 2 and words[1] == "idle") >= wanted

        wait_until(idle, f"{wanted} idle nodes", timeout_s, says=lambda: f"see {self.directory}/log")

    # ------------------------------------------------------------------ use
    def run(self, *argv: str, timeout_s: float = 60.0, user: str | None = None) -> str:
        """A client's standard output. `user` runs it as another user of this machine."""
        if user is not None:
            argv = ("enter", "setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", *argv)
        try:
            done = subprocess.run(
                [f"{self.directory}/bin/{argv[0]}", *argv[1:]],
                capture_output=True,
                text=True,
                env={**os.environ, **self.env},
                cwd="/",
                timeout=timeout_s,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise LabError(f"{shlex.join(argv)}: no answer within {timeout_s:g} s") from error
        if done.returncode != 0:
            raise LabError(f"{shlex.join(argv)}: exit code {done.returncode}: {done.stderr.strip()}")
        return done.stdout

    def try_run(self, *argv: str) -> str | None:
        try:
            return self.run(*argv)
        except LabError:
            return None

    def _nodectl(self, action: str, *names: str) -> None:
        self.run("nodectl", action, *names)

    def start_node(self, *names: str) -> None:
        self._nodectl("start", *names)

    def boot_node(self, *names: str) -> None:
        """Start slurmd so that it reports a fresh boot time."""
        self._nodectl("boot", *names)

    def stop_node(self, *names: str) -> None:
        self._nodectl("stop", *names)

    def kill_node(self, *names: str) -> None:
        """The node is lost: slurmd ends without a word."""
        self._nodectl("kill", *names)

    def break_gres(self, name: str, count: int) -> None:
        """Restart the node so that it registers `count` GPUs: fewer than configured is INVALID_REG."""
        own = self.directory / f"etc-{name}"
        shutil.rmtree(own, ignore_errors=True)
        shutil.copytree(self.directory / "etc", own)
        (own / "gres.conf").write_text(slurm_config.gres_conf(self.place, {name: count}))
        self.stop_node(name)
        self.start_node(name)

    def mend_gres(self, name: str) -> None:
        """Restart the node with all of its GPUs. Its mark stays until somebody resumes it."""
        shutil.rmtree(self.directory / f"etc-{name}", ignore_errors=True)
        self.stop_node(name)
        self.start_node(name)

    def health_fault(self, name: str, text: str) -> None:
        """The health program of that node finds a fault and drains it with `text`."""
        (self.directory / f"health/{name}.bad").write_text(text)

    def heal(self, name: str) -> None:
        (self.directory / f"health/{name}.bad").unlink(missing_ok=True)

    def hang_reboot(self, name: str, hang: bool = True) -> None:
        """The next reboots of that node never come back."""
        mark = self.directory / f"health/{name}.noreboot"
        if hang:
            mark.touch()
        else:
            mark.unlink(missing_ok=True)

    def node_states(self) -> dict[str, str]:
        """State of every node as scontrol prints it."""
        said = self.run("scontrol", "-o", "show", "nodes")
        return dict(re.findall(r"^NodeName=(\S+) .*? State=(\S+)", said, re.MULTILINE))

    def await_states(self, patterns: Mapping[str, str], timeout_s: float = 30.0) -> None:
        """Wait until the state of each node matches its whole pattern."""
        states: dict[str, str] = {}

        def missing() -> list[str]:
            return [name for name, pattern in patterns.items() if not re.fullmatch(pattern, states.get(name, ""))]

        def there() -> bool:
            states.update(self.node_states())
            return not missing()

        def says() -> str:
            return "; ".join(f"{name} is {states.get(name)}, not {patterns[name]}" for name in missing())

        wait_until(there, "the states", timeout_s, every_s=0.5, says=says)

    def await_state(self, name: str, pattern: str, timeout_s: float = 30.0) -> None:
        self.await_states({name: pattern}, timeout_s)

    def submit(self, *options: str, command: str = "sleep 900") -> str:
        """Submit a batch job; returns its id."""
        if len(str(self.directory)) > LONGEST_DIRECTORY:
            raise LabError(f"jobs cannot run below {self.directory}: take a directory with a shorter name")
        return self.run("sbatch", "--parsable", "-o", "/dev/null", *options, "--wrap", command).strip()

    def requests(self) -> dict[str, int]:
        """Requests that slurmctld has answered since its start, by message type (`sdiag`)."""
        table = self.run("sdiag").partition("statistics by message type")[2].partition("statistics by user")[0]
        return {name: int(count) for name, count in _COUNTER.findall(table)}

    def update_requests(self) -> dict[str, int]:
        """Those of them that may change something: writes, submissions, reconfigurations.

        A read-only program leaves this unchanged: compare before and after. Changes that the lab itself
        makes (health_fault, cloud hooks) and jobs count too."""
        return {name: count for name, count in self.requests().items() if not _READS.match(name)}

    def make_states(self, wait_lost: bool = True) -> dict[str, Any]:
        """Drive nodes 1 to 16 into the states that `labs.slurm_states` describes."""
        from labs.slurm_states import make_states

        return make_states(self, wait_lost=wait_lost)


if __name__ == "__main__":
    from labs.slurm_command_line import main

    sys.exit(main())
