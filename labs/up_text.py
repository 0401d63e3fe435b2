"""What `labs.up` prints. Every line that starts with four spaces and no `#` is a command; tests run them all."""

from __future__ import annotations

import shlex
from pathlib import Path

WITHOUT_LAB = """\
What works without it, from files:

    nodeworthy audit slurm --jobs jobs.gz --events events.txt --nodes nodes.txt     # docs/how-to/audit.md
    nodeworthy log classify /var/log/kern.log                                       # docs/how-to/log.md
    nodeworthy catalogue list"""

_TRY = """
Nodeworthy watches sixteen pretended nodes. In a second terminal:

    . {env}

Look:

    nodeworthy status                       # what needs a person, worst first (exit code 3: not all is well)
    nodeworthy node list                    # every node: state, owner, reason
    nodeworthy node explain n6              # drained by {person}: whose it is, and that it is left alone
    nodeworthy node explain n14             # Slurm refuses it: it registers 7 of its 8 GPUs
    nodeworthy node explain n10             # a GPU whose row remap failed, seen by its exporter
    nodeworthy node explain n9              # a hot GPU: it counts once it was hot for two minutes
    nodeworthy finding list                 # what the checks say
    nodeworthy would                        # what it would do; a few seconds from now also for n3
    nodeworthy doctor                       # does Nodeworthy itself see everything?
    nodeworthy audit slurm --since 1d       # what was lost, to what
    sinfo -R                                # what Slurm alone shows

Make a fault, then ask `nodeworthy would`, `nodeworthy node explain n12`:

    kernel-log xid --node n12 --gpu 3 79                           # the kernel says it: a hold within 2 s
    kernel-log user --node n13 "NVRM: Xid (PCI:0000:53:00): 79"    # a user says it: no hold
    exporter set --node n11 --part 1 DCGM_FI_DEV_ROW_REMAP_FAILURE 1
    exporter set --node n11 --part 1 DCGM_FI_DEV_ROW_REMAP_FAILURE -     # healthy again
    scontrol update nodename=n15 state=drain reason="my drain"     # owned by you, shown as such

Make it blind: nothing turns bad, what cannot be seen is unknown, and the source is named:

    exporter lie --node "n[1-4]" down       # also: garbage, nan, stale, half, renamed, slow …
    nodeworthy status                       # at once their last values count; two minutes on they are unknown
    exporter lie --node "n[1-4]" none

Files: {directory} (nodeworthy.toml, fleet.toml, kern.log, log/serve.out).
Ctrl-C here ends everything."""


def what_to_try(directory: Path, user: str | None) -> str:
    """`user`: who drained n6, or None where only root could."""
    person = f"a person ({user})" if user else "root, which proves nobody"
    return _TRY.format(env=shlex.quote(str(directory / "env")), directory=directory, person=person)
