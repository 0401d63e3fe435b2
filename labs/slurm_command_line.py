"""The command line of the Slurm lab (`python -m labs.slurm_lab`)."""

from __future__ import annotations

import argparse
import shlex
import sys
import time
from pathlib import Path

from labs import slurm_lab, slurm_roots
from labs.processes import LabError
from labs.slurm_lab import SlurmLab


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m labs.slurm_lab", description=(slurm_lab.__doc__ or "").partition("\n")[0]
    )
    commands = parser.add_subparsers(dest="command", required=True)
    start = commands.add_parser("start", help="start a lab and print the exports that a client needs")
    for name, default in (("nodes", 16), ("phantom", 0), ("cloud", 0), ("gpus", 8), ("leaf", 4), ("width", 5)):
        start.add_argument(f"--{name}", type=int, default=default)
    start.add_argument("--prefix", default="gpu", help="names are PREFIX and a number of WIDTH digits")
    start.add_argument("--root", help="an unpacked root, or a suite that was bootstrapped (trixie, sid)")
    start.add_argument("--database", action="store_true", help="with slurmdbd and a private MariaDB")
    start.add_argument("--topology", choices=["tree", "block", "none"], default="tree")
    start.add_argument("--states", action="store_true", help="drive the first 16 nodes into many states")
    for name, text in (("stop", "end it"), ("status", "its daemons and nodes"), ("env", "print the exports")):
        commands.add_parser(name, help=text)
    for command in commands.choices.values():
        command.add_argument("--dir", required=True, type=Path)
    bootstrap = commands.add_parser("bootstrap", help="unpack another Slurm version, once")
    bootstrap.add_argument("--suite", required=True, choices=sorted(slurm_roots.SUITES.values()))
    return parser


def _print_env(lab: SlurmLab) -> None:
    print(f"export SLURM_CONF={shlex.quote(lab.env['SLURM_CONF'])}")
    print(f"export PATH={shlex.quote(str(lab.directory / 'bin'))}:$PATH")


def _start(args: argparse.Namespace) -> None:
    begun = time.monotonic()
    root = slurm_roots.root_of(args.root) if args.root in slurm_roots.SUITES.values() else args.root
    if args.root and root is None:
        raise LabError(f"no root for {args.root}: python -m labs.slurm_lab bootstrap --suite {args.root}")
    names = ("nodes", "phantom", "cloud", "gpus", "leaf", "width", "prefix", "database", "topology")
    lab = SlurmLab(args.dir, root=root, **{name: getattr(args, name) for name in names}).start()
    if args.states:
        lab.make_states()
    version = ".".join(f"{part:02d}" for part in lab.version)
    print(f"Slurm {version} is ready in {args.dir} after {time.monotonic() - begun:.1f} s", file=sys.stderr)
    _print_env(lab)


def main() -> int:
    args = _parser().parse_args()
    try:
        match args.command:
            case "start":
                _start(args)
            case "stop":
                SlurmLab.attach(args.dir).stop()
            case "env":
                _print_env(SlurmLab.attach(args.dir))
            case "status":
                lab = SlurmLab.attach(args.dir)
                for name in lab.processes.names():
                    pid = lab.processes.pid(name)
                    print(f"{name} {'dead' if pid is None else f'pid {pid}'}")
                print(lab.try_run("sinfo") or "slurmctld does not answer")
            case "bootstrap":
                print(slurm_roots.bootstrap(args.suite))
    except LabError as error:
        print(f"slurm_lab: {error}", file=sys.stderr)
        return 1
    return 0
