"""The log grammar's data: TOML files of the package, and a site's own file above them.

A site file has the same form (`[[rule]]`, `[xid.N]`, `[sxid.N]`). A rule with the id of a built-in rule replaces it;
others come first, so that a site can be more exact than we are. Fields of a code are replaced one by one.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from nodeworthy.errors import BadFile, Problem
from nodeworthy.model.toml_text import read_toml
from nodeworthy_node.log.grammar import Grammar

FILES = ("log_rules.toml", "xid.toml", "sxid.toml")


@cache
def built_in() -> Mapping[str, Any]:
    """The package's own rules and code tables, in the form that `Grammar.from_mapping` takes."""
    folder = resources.files("nodeworthy") / "catalogue"
    rules, xid, sxid = (tomllib.loads((folder / name).read_text("utf-8")) for name in FILES)
    return {
        "rules": rules["rule"],
        "actions": rules.get("actions", {}),
        "proofs": rules.get("proofs", {}),
        "xid": {**dict.fromkeys(_codes(xid["unused"]["codes"]), xid["unused"]), **xid["xid"]},
        "nvlink5": xid["nvlink5"],
        "registers74": xid["registers74"],
        "sxid": sxid["sxid"],
        "sources": {"xid": xid["source"], "sxid": sxid["source"]},
    }


def load_grammar(site: Path | None = None) -> Grammar:
    """The grammar, with a site's file above it if given. Raises BadFile with the file and what is wrong in it."""
    return _default() if site is None else _build(_layered(site), str(site))


@cache
def _default() -> Grammar:
    return _build(built_in(), "log_rules.toml")


def _build(mapping: Mapping[str, Any], file: str) -> Grammar:
    try:
        return Grammar.from_mapping(mapping)
    except (ValueError, KeyError, TypeError) as error:
        raise BadFile(
            [Problem(file, None, "", str(error))], hint="see docs/reference/log-events.md for the form"
        ) from error


def _layered(site: Path) -> Mapping[str, Any]:
    try:
        text = site.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadFile([Problem(str(site), None, "", f"cannot be read: {error}")]) from error
    own = read_toml(text, str(site))
    unknown = sorted(set(own) - {"rule", "xid", "sxid"})
    if unknown:
        remedy = "use [[rule]], [xid.N] or [sxid.N]"
        raise BadFile([Problem(str(site), None, name, "no such table", remedy) for name in unknown])
    mine = own.get("rule", [])
    if not isinstance(mine, list) or not all(isinstance(rule, dict) for rule in mine):
        raise BadFile([Problem(str(site), None, "rule", "is not a list of tables", "write each as [[rule]]")])
    base = built_in()
    replaced = {rule.get("id") for rule in mine}
    merged = {**base, "rules": [*mine, *(rule for rule in base["rules"] if rule["id"] not in replaced)]}
    for table in ("xid", "sxid"):
        codes = own.get(table, {})
        if not isinstance(codes, dict) or not all(isinstance(code, dict) for code in codes.values()):
            raise BadFile([Problem(str(site), None, table, "is not a table of codes", f"write each as [{table}.79]")])
        merged[table] = {
            **base[table],
            **{code: {**base[table].get(code, _BLANK), **new} for code, new in codes.items()},
        }
    return merged


_BLANK = {"meaning": "", "role": "unknown", "severity": "warning", "action": "observe", "proof": "none"}


def _codes(ranges: str) -> list[str]:
    """`1-3,7` → ["1", "2", "3", "7"]."""
    codes: list[str] = []
    for part in ranges.split(","):
        first, _, last = part.partition("-")
        codes += [str(code) for code in range(int(first), int(last or first) + 1)]
    return codes
