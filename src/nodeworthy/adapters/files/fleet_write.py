"""Write `fleet.toml`, new or over an old one.

An old file is edited, not replaced: nodes stay in the group in which somebody put them, lines that are still
true are not touched, and so comments and order survive. Writing is atomic, and the old file is kept beside.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, MutableMapping, Sequence
from pathlib import Path
from typing import Any, Final

import tomlkit
from tomlkit.items import AoT, Table

from nodeworthy.adapters.files.fleet import parse_fleet, read_groups, spread
from nodeworthy.adapters.files.fleet_layout import Old, Plain, domain_lines, domains_of, layout
from nodeworthy.errors import BadRequest, Broken
from nodeworthy.model.fleet import Fleet
from nodeworthy.model.nodeset import fold, unfold
from nodeworthy.model.order import natural
from nodeworthy.model.toml_text import read_toml

_MANY: Final = 100  # more new lines than this are added to a table as text
# how many levels of [tables] each top key gets; below them entries are on one line
_LEVELS: Final = {"classes": 2, "domains": 2, "node": 1}


def fleet_text(fleet: Fleet, old: str | None = None) -> str:
    """The fleet as TOML; with `old`, that text with only the changes made. It reads back as the same fleet."""
    if old is None:
        document = tomlkit.document()
        document.add(tomlkit.comment("What there should be. Check it with: nodeworthy fleet check"))
        plain = layout(fleet)
    else:
        before = read_toml(old, "fleet.toml")
        document = tomlkit.parse(old)
        plain = layout(fleet, _arrangement(before))
        plain["domains"] = _keep_true_lines(before.get("domains", {}), fleet)
        plain = {key: value for key, value in plain.items() if value or key in document}
    _update(document, plain)
    text = tomlkit.dumps(document)
    if parse_fleet(text) != fleet:
        raise Broken("the fleet file as written would not read back as the same fleet; nothing was written")
    return text


def write_file(path: Path, text: str) -> Path | None:
    """Write atomically. An old file is kept as NAME.bak, which is returned."""
    mode = 0o644
    backup = None
    try:
        if path.exists():
            mode = path.stat().st_mode & 0o777
            backup = path.with_name(path.name + ".bak")
            _replace(backup, path.read_bytes(), mode)
        _replace(path, text.encode(), mode)
    except OSError as error:
        raise BadRequest(f"cannot write {path}: {error.strerror}", hint="choose another place with --to") from error
    return backup


def _replace(path: Path, content: bytes, mode: int) -> None:
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        Path(name).chmod(mode)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _arrangement(document: Mapping[str, Any]) -> Old:
    """How a file that is known to be well arranges its nodes."""
    homes = {n: i for i, group in enumerate(document.get("nodes", [])) for n in unfold(group["names"])}
    return Old(homes, read_groups(document).nodes, document.get("node", {}))


def _keep_true_lines(old: Mapping[str, Mapping[str, Any]], fleet: Fleet) -> Plain:
    """Lines of old domain tables that are still true, then lines for what they do not cover."""
    tables: Plain = {}
    for kind, members in domains_of(fleet).items():
        kept: Plain = {}
        rest = {domain: set(nodes) for domain, nodes in members.items()}
        for key, value in old.get(kind, {}).items():
            stated = _stated(key, value)
            if all(rest.get(domain, set()) >= set(nodes) for domain, nodes in stated.items()):
                kept[key] = value
                for domain, nodes in stated.items():
                    rest[domain] -= set(nodes)
        left = domain_lines({domain: sorted(nodes, key=natural) for domain, nodes in rest.items() if nodes})
        for key, value in left.items():
            if key in kept:
                both = {*members[key]} if key in members else set()
                value = fold(sorted(both, key=natural))
            kept[key] = value
        tables[kind] = kept
    return tables


def _stated(key: str, value: Any) -> dict[str, tuple[str, ...]]:
    """The domains of one line of a file that is known to be well."""
    if isinstance(value, str):
        return {key: unfold(value)}
    nodes, each = unfold(value["nodes"]), value.get("each")
    if each is None:
        return {key: nodes}
    return {domain: nodes[k * each : (k + 1) * each] for k, domain in enumerate(unfold(key))}


def _update(target: MutableMapping[str, Any], plain: Mapping[str, Any], levels: int | None = None) -> None:
    """Make a tomlkit table say `plain`, touching only what differs. `levels`: see _LEVELS; None at the top."""
    for key in [k for k in target if k not in plain]:
        del target[key]
    for key, value in plain.items():
        below = _LEVELS.get(key, 0) if levels is None else levels - 1
        present = target.get(key)
        if isinstance(value, Mapping) and isinstance(present, MutableMapping):
            if below == 1 and isinstance(present, Table) and len(value) > len(present) + _MANY:
                target[key] = present = _lengthened(present, {k: v for k, v in value.items() if k not in present})
            _update(present, value, below)
        elif isinstance(present, AoT):
            _update_groups(present, value)
        elif key not in target or present != value:
            target[key] = _item(value, below)


def _lengthened(table: Table, more: Mapping[str, Any]) -> Table:
    """A table with many lines more. tomlkit looks through all of a table for each line that it is given, so they
    are written as text and read at once."""
    if any(isinstance(entry, Table) for entry in table.values()):
        return table
    lines = [f"{tomlkit.key(key).as_string()} = {_item(value, 0).as_string()}\n" for key, value in more.items()]
    body = table.as_string()
    gap = "" if body.endswith("\n") or not body else "\n"
    made = tomlkit.parse(f"[t]\n{body}{gap}{''.join(lines)}")["t"]
    assert isinstance(made, Table)
    made.trivia.indent, made.trivia.comment_ws = table.trivia.indent, table.trivia.comment_ws
    made.trivia.comment, made.trivia.trail = table.trivia.comment, table.trivia.trail
    return made


def _update_groups(groups: AoT, tables: Sequence[Plain | None]) -> None:
    """Old groups are edited in place, emptied ones go, new ones are put at the end."""
    old = len(groups)
    for index in reversed(range(old)):
        table = tables[index]
        if table is None:
            del groups[index]
        else:
            order = unfold(table["names"])
            kept = {
                k: groups[index][k] for k in table if k in groups[index] and _same(groups[index][k], table[k], order)
            }
            _update(groups[index], {**table, **kept}, 1)
    for table in tables[old:]:
        groups.append(_item(table, 1))


def _same(old: object, new: object, names: Sequence[str]) -> bool:
    """Whether two texts give the same names to the nodes, however they are written."""
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        return old.keys() == new.keys() and all(_same(old[key], new[key], names) for key in new)
    if isinstance(old, list) or isinstance(new, list):
        one = [list(x) if isinstance(x, list) else [x] for x in (old, new)]
        return len(one[0]) == len(one[1]) and all(_same(a, b, names) for a, b in zip(*one, strict=True))
    if not isinstance(old, str) or not isinstance(new, str):
        return old == new
    try:
        return old == new or spread(old, names) == spread(new, names)
    except BadRequest:
        return False


def _item(value: Any, levels: int) -> Any:
    """A value as tomlkit writes it: tables while there are levels, then one line."""
    if isinstance(value, Mapping):
        if levels == 1 and len(value) > _MANY:
            return _lengthened(tomlkit.table(), value)
        only_tables = levels > 1 and all(isinstance(v, Mapping) for v in value.values())
        table = tomlkit.table(is_super_table=only_tables) if levels > 0 else tomlkit.inline_table()
        for key, entry in value.items():
            table[key] = _item(entry, levels - 1)
        return table
    if isinstance(value, list) and any(isinstance(v, Mapping) for v in value):
        groups = tomlkit.aot()
        for group in value:
            if group is not None:
                groups.append(_item(group, 1))
        return groups
    return tomlkit.item(value)
