"""Read nodes from a CSV file, as inventories and spreadsheets export them.

The first row names the columns; case, spaces and dashes do not matter (COLUMNS has what is understood, and
`label:KEY`, `domain:KIND`, `scheduler:CLUSTER` name further ones). The delimiter is found from that row. An
empty cell means "not known". All that is wrong is told at once, by line.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from nodeworthy.adapters.files.fleet import NODE_NAME, read_text
from nodeworthy.decide.fleet_import import Listed
from nodeworthy.errors import BadFile, Problem
from nodeworthy.model.fleet import Names

# column → the headers that mean it
COLUMNS: Final[Mapping[str, tuple[str, ...]]] = {
    "name": ("name", "node", "node_name", "nodename", "host", "hostname", "host_name"),
    "serial": ("serial", "serial_number", "serialnumber", "sn", "service_tag", "chassis_serial"),
    "class": ("class", "node_class"),
    "gpus": ("gpus", "gpu_count", "num_gpus"),
    "gpu_type": ("gpu_type", "gpu_model", "gpu"),
    "cpus": ("cpus", "cores", "cpu_count"),
    "memory_mb": ("memory_mb", "memory_mib", "real_memory", "realmemory"),
    "sockets": ("sockets",),
    "bmc": ("bmc", "bmc_address", "bmc_ip", "ipmi", "ipmi_address", "oob"),
    "syslog": ("syslog", "syslog_host"),
    "exporter": ("exporter", "instance", "exporter_instance"),
}
DOMAINS: Final = ("rack", "leaf", "block", "feed", "loop", "row", "room", "pod")
_NUMBERS: Final = ("gpus", "cpus", "memory_mb", "sockets")
_DELIMITERS: Final = (",", ";", "\t", "|")
_PREFIXES: Final = ("label", "domain", "scheduler")


def read_csv(path: str | Path) -> tuple[list[Listed], tuple[str, ...]]:
    """The nodes of a CSV file, and notes on columns that are not understood. Raises BadFile or BadRequest."""
    return parse_csv(read_text(path), str(path))


def parse_csv(text: str, file: str = "nodes.csv") -> tuple[list[Listed], tuple[str, ...]]:
    """The nodes that a CSV text lists; `file` is only for messages."""
    table = _Table(text, file)
    listed = table.nodes()
    if table.problems:
        raise BadFile(table.problems)
    return listed, tuple(table.notes)


class _Table:
    """Walks the rows and keeps every problem with its line."""

    def __init__(self, text: str, file: str) -> None:
        self.text = text
        self.file = file
        self.problems: list[Problem] = []
        self.notes: list[str] = []

    def wrong(self, line: int | None, field: str, message: str, remedy: str) -> None:
        self.problems.append(Problem(self.file, line, field, message, remedy))

    def rows(self) -> Iterator[tuple[int, list[str]]]:
        """Each row with the line on which it starts; empty rows are skipped."""
        start = next((line for line in self.text.splitlines() if line.strip()), "")
        outside_quotes = re.sub(r'"[^"]*"', "", start)
        delimiter = max(_DELIMITERS, key=outside_quotes.count)
        reader = csv.reader(io.StringIO(self.text, newline=""), delimiter=delimiter, strict=True)
        line = 1
        try:
            for row in reader:
                if any(cell.strip() for cell in row):
                    yield line, [cell.strip() for cell in row]
                line = reader.line_num + 1
        except csv.Error as error:
            self.wrong(line, "", f"not CSV: {error}", "close the quotes; write a quote inside quotes twice")

    def nodes(self) -> list[Listed]:
        rows = self.rows()
        line, header = next(rows, (1, []))
        columns = self.columns(line, header)
        if "name" not in columns or self.problems:
            if not self.problems:
                wanted = ", ".join(COLUMNS["name"])
                self.wrong(line, "", "no column names the nodes", f"call one of them: {wanted}")
            return []
        if not {"class", "gpus"} & columns.keys():
            self.wrong(line, "", "neither the class nor the GPUs of a node are given", "add a column class, or gpus")
            return []
        listed: list[Listed] = []
        lines: dict[tuple[str, str], int] = {}
        for line, row in rows:
            if len(row) > len(header):
                self.wrong(
                    line, "", f"{len(row)} cells, the header has {len(header)}", "put quotes around the delimiter"
                )
                continue
            cells = {column: row[k] for column, k in columns.items() if k < len(row) and row[k]}
            node = self.node(line, cells)
            for kind, value in (("name", node.name), ("serial", node.serial), ("bmc", node.names.bmc.lower())):
                first = lines.setdefault((kind, value), line) if value else line
                if first != line:
                    self.wrong(line, kind, f"{value!r} is already on line {first}", "drop one of the rows")
            listed.append(node)
        if not listed and not self.problems:
            self.wrong(line, "", "no rows after the header", "export the file again")
        self.agree(listed, lines)
        return listed

    def columns(self, line: int, header: list[str]) -> dict[str, int]:
        """Column → position."""
        meaning = {alias: column for column, aliases in COLUMNS.items() for alias in aliases}
        found: dict[str, int] = {}
        ignored = []
        for position, cell in enumerate(header):
            prefix, colon, rest = cell.partition(":")
            plain = re.sub(r"[\s-]+", "_", cell.strip().lower())
            if colon and prefix.strip().lower() in _PREFIXES and rest.strip():
                column = f"{prefix.strip().lower()}:{rest.strip()}"
            elif plain in DOMAINS:
                column = f"domain:{plain}"
            elif plain in meaning:
                column = meaning[plain]
            else:
                ignored.append(cell)
                continue
            if column in found:
                other = header[found[column]]
                self.wrong(line, cell, f"columns {other!r} and {cell!r} both mean {column}", "keep one of them")
            found.setdefault(column, position)
        if any(ignored):
            names = ", ".join(repr(c) for c in ignored if c)
            self.notes.append(f"columns not taken over: {names} (label:NAME in the header keeps one as a label)")
        return found

    def node(self, line: int, cells: Mapping[str, str]) -> Listed:
        """One row as a node; what is wrong with it is told."""
        name = cells.get("name", "")
        if not name:
            self.wrong(line, "name", "the node's name is missing", "fill the cell, or drop the row")
        elif not NODE_NAME.fullmatch(name):
            self.wrong(line, "name", f"not a node name: {name!r}", "use letters, digits, dot, dash and underscore")
        if "class" not in cells and "gpus" not in cells:
            self.wrong(line, "class", "neither class nor GPUs are given", "fill one of the cells (0 for no GPUs)")
        numbers = {key: self.number(line, key, cells.get(key, "")) for key in _NUMBERS}
        if (numbers["gpus"] or 0) > 256:
            self.wrong(line, "gpus", f"{numbers['gpus']} GPUs in one node", "count the GPUs of one node, not of all")
        by_prefix = {
            prefix: {c.partition(":")[2]: v for c, v in cells.items() if c.startswith(prefix + ":")}
            for prefix in _PREFIXES
        }
        names = Names(
            by_prefix["scheduler"],
            tuple(cells.get("syslog", "").split()),
            tuple(cells.get("exporter", "").split()),
            cells.get("bmc", ""),
        )
        return Listed(
            name,
            cells.get("class", ""),
            gpus=numbers["gpus"],
            gpu_type=cells.get("gpu_type", ""),
            cpus=numbers["cpus"],
            memory_mb=numbers["memory_mb"],
            sockets=numbers["sockets"],
            serial=cells.get("serial", ""),
            names=names,
            domains=by_prefix["domain"],
            labels=by_prefix["label"],
        )

    def number(self, line: int, field: str, cell: str) -> int | None:
        if not cell:
            return None
        lowest = 0 if field == "gpus" else 1
        if not re.fullmatch(r"[0-9]{1,12}", cell) or int(cell) < lowest:
            self.wrong(line, field, f"not a number from {lowest} up: {cell!r}", "write digits only, or leave it empty")
            return None
        return int(cell)

    def agree(self, listed: list[Listed], lines: Mapping[tuple[str, str], int]) -> None:
        """Nodes of a class that the file names have the same GPUs, or one of the two is wrong."""
        first: dict[str, Listed] = {}
        for node in listed:
            if not node.node_class:
                continue
            other = first.setdefault(node.node_class, node)
            for key in ("gpus", "gpu_type"):
                mine, theirs = getattr(node, key), getattr(other, key)
                if mine != theirs:
                    at = lines.get(("name", other.name))
                    message = f"class {node.node_class!r} has {mine} here and {theirs} on line {at}"
                    self.wrong(lines.get(("name", node.name)), key, message, "one of the rows is of another class")
