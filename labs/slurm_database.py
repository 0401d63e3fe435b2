"""Accounting for a Slurm lab: a private MariaDB and a slurmdbd on it."""

from __future__ import annotations

import shutil
import socket
import subprocess
from typing import TYPE_CHECKING

from labs.processes import LabError

if TYPE_CHECKING:
    from labs.slurm_lab import SlurmLab

ACCOUNT = "lab-acct"


def start(lab: SlurmLab) -> None:
    """Start both and add the cluster, an account, and root and daemon as its administrators.

    `daemon` is there so that a mark can be made by a user other than root."""
    if shutil.which("mariadbd") is None:
        raise LabError("accounting needs mariadb-server-core and mariadb-client-core")
    _start_mariadb(lab)
    lab.processes.spawn("slurmdbd", [f"{lab.directory}/bin/enter", "/usr/sbin/slurmdbd", "-D"])
    lab.wait_for("slurmdbd", lambda: _listens(lab.place.dbd_port), 60)
    lab.wait_for("slurmdbd", lambda: lab.try_run("sacctmgr", "-i", "add", "cluster", "lab") is not None, 30)
    lab.run("sacctmgr", "-i", "add", "account", ACCOUNT, "description=lab", "organization=lab")
    lab.run("sacctmgr", "-i", "add", "user", "root,daemon", f"account={ACCOUNT}", "adminlevel=admin")


def _start_mariadb(lab: SlurmLab) -> None:
    folder = lab.directory / "db"
    (folder / "data").mkdir(parents=True)
    (folder / "tmp").mkdir()
    sock = folder / "mysqld.sock"
    install = ["mariadb-install-db", "--no-defaults", "--user=root", f"--datadir={folder}/data", "--skip-test-db"]
    done = subprocess.run(
        [*install, "--auth-root-authentication-method=socket"], capture_output=True, text=True, timeout=120, check=False
    )
    if done.returncode != 0:
        raise LabError(f"mariadb-install-db failed: {done.stderr or done.stdout}")
    lab.processes.spawn(
        "mariadbd",
        [
            "mariadbd",
            "--no-defaults",
            "--user=root",
            f"--datadir={folder}/data",
            f"--tmpdir={folder}/tmp",
            f"--socket={sock}",
            "--bind-address=127.0.0.1",
            f"--port={lab.place.database_port}",
            f"--pid-file={lab.directory}/run/mariadbd.selfpid",
            "--skip-name-resolve",
            "--skip-log-bin",
            "--innodb-buffer-pool-size=64M",
            "--innodb-log-file-size=32M",
            "--innodb-lock-wait-timeout=900",
            "--innodb-flush-log-at-trx-commit=0",
            "--max-allowed-packet=16M",
        ],
    )

    def ask(sql: str) -> int:
        argv = ["mariadb", "--no-defaults", f"--socket={sock}", "-e", sql]
        return subprocess.run(argv, capture_output=True, timeout=30, check=False).returncode

    lab.wait_for("mariadbd", lambda: ask("select 1") == 0, 60)
    if ask(
        "create database slurm_acct_db; create user slurm@'127.0.0.1' identified by 'slurm';"
        "grant all on slurm_acct_db.* to slurm@'127.0.0.1';"
    ):
        raise LabError("MariaDB refused to make the accounting database")


def _listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True
