"""Write kernel log lines as a central rsyslog writes them, for a lab.

  python -m labs.logsource --file kern.log xid --node n3 --gpu 3 79
  python -m labs.logsource --file kern.log line --node n3 "mlx5_core 0000:18:00.0: Port module event: module 0, Cable error"
  python -m labs.logsource --file kern.log user --node n3 "NVRM: Xid (PCI:0000:53:00): 79, forged by a tenant"

`--format iso` writes RFC 3339 time stamps (rsyslog's default since version 8), `traditional` the old ones.
Each call appends whole lines and flushes them.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Sequence
from pathlib import Path

from labs.pages import GPUS, PCI_BUSES

_UNKNOWN = "pid='<unknown>', name=<unknown>, "
# what the driver says after the code
XID_TEXTS = {
    31: "pid=12345, name=python3, Ch 00000008, intr 00000000. MMU Fault: ENGINE GRAPHICS GPCCLIENT_T1_0 faulted @ "
    "0x7fc1_23456000. Fault is of type FAULT_PTE ACCESS_TYPE_VIRT_READ",
    48: _UNKNOWN
    + "An uncorrectable double bit error (DBE) has been detected on GPU in the framebuffer at partition 6.",
    63: _UNKNOWN + "Row Remapper: New row marked for remapping, reset gpu to activate.",
    64: _UNKNOWN + "Row Remapper: Error marking row for remapping.",
    74: _UNKNOWN + "NVLink: fatal error detected on link 14(0x0, 0x0, 0x10000, 0x0, 0x0, 0x0, 0x0)",
    79: _UNKNOWN + "GPU has fallen off the bus.",
    94: "pid=789012, name=process, Contained ECC error.",
    95: _UNKNOWN + "Uncontained: LTC TAG (0x2, 0x1). RST: Yes, D-RST: No",
    119: "pid=2024380, name=nvidia-smi, Timeout after 6s of waiting for RPC response from GPU4 GSP! Expected function "
    "103 (GSP_RM_ALLOC) (0x2081 0x4).",
}


def stamp(at: float, style: str) -> str:
    """The time as rsyslog writes it, in UTC."""
    moment = time.gmtime(at)
    if style == "traditional":
        return f"{time.strftime('%b', moment)} {moment.tm_mday:2d} {time.strftime('%H:%M:%S', moment)}"
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', moment)}.{int(at % 1 * 1e6):06d}+00:00"


def kernel_line(node: str, message: str, at: float, style: str = "iso") -> str:
    """A line of the kernel: only the kernel facility gets this tag and the seconds since boot."""
    return f"{stamp(at, style)} {node} kernel: [{at % 10_000_000:12.6f}] {message}"


def xid_line(node: str, gpu: int, code: int, at: float, style: str = "iso") -> str:
    text = XID_TEXTS.get(code, _UNKNOWN + "an error")
    return kernel_line(node, f"NVRM: Xid (PCI:0000:{PCI_BUSES[gpu].lower()}:00): {code}, {text}", at, style)


def append(file: Path, lines: Sequence[str]) -> None:
    """Append in one write, so that a reader never finds half a line of ours."""
    with file.open("ab") as out:
        out.write("".join(line + "\n" for line in lines).encode())
        out.flush()
        os.fsync(out.fileno())


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m labs.logsource", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--file", type=Path, required=True, help="the log file to append to")
    parser.add_argument("--format", choices=("iso", "traditional"), default="iso", help="time stamps (default iso)")
    commands = parser.add_subparsers(dest="command", required=True)
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--node", required=True, help="the host that says it")
    common.add_argument("--count", type=int, default=1, help="how many times (default 1)")
    xid = commands.add_parser("xid", parents=[common], help="an Xid of the NVIDIA driver")
    xid.add_argument("--gpu", type=int, required=True, choices=range(GPUS))
    xid.add_argument("code", type=int)
    line = commands.add_parser("line", parents=[common], help="any message of the kernel")
    line.add_argument("message")
    user = commands.add_parser("user", parents=[common], help="any message of a user's program (not of the kernel)")
    user.add_argument("message")
    return parser


def main(argv: Sequence[str] | None = None) -> None:
    options = _parser().parse_args(argv)
    at = time.time()
    if options.command == "xid":
        text = xid_line(options.node, options.gpu, options.code, at, options.format)
    elif options.command == "line":
        text = kernel_line(options.node, options.message, at, options.format)
    else:
        text = f"{stamp(at, options.format)} {options.node} train[4242]: {options.message}"
    append(options.file, [text] * options.count)


if __name__ == "__main__":
    main()
