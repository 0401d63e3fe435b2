"""Writes docs/reference/log-events.md from the catalogue's data: `python -m docs.generate`.

A test holds the page against what this would write, so that the page is never behind the data.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from nodeworthy.adapters.files.log_rules import built_in

PAGE = Path(__file__).parent / "reference" / "log-events.md"

HEAD = """\
# Log events

What `nodeworthy log classify` and the log observer make of log lines. This page is written by
`python -m docs.generate` from `src/nodeworthy/catalogue/{log_rules,xid,sxid}.toml`.

## An event

One JSON object a line (`--json`). Keys are only ever added; what does not apply is left out.

| key | what it is |
|---|---|
| `time` | when the line was written, UTC, ISO 8601; null where that cannot be known (`time_note` says why, or what was assumed) |
| `host` | as the line names it; empty where it names none |
| `component` | a PCI address (in full: `0000:04:00.0`), an interface, a disk, a processor, a server; empty where the line names none |
| `kind`, `code` | what kind of event, and which; code `unknown`: the line is cut or garbled where its code is |
| `role` | `origin`: here it starts · `symptom`: it shows trouble elsewhere · `application`: a program did it · `unknown`: the line alone does not tell |
| `severity` | `info`, `warning`, `error`, `fatal` |
| `action`, `proof` | what to do, and what must pass before the node returns: words of the lists below |
| `trusted` | the line came by kernel transport, so no tenant can have written it |
| `rule` | the rule that recognised it |
| `meaning`, `message` | what it means in a sentence, and the line's own text |
| `uptime`, `boot_id`, `time_note` | seconds since boot, boot id, remark on the time: where the line tells |
| `details` | what was decoded: process, link, registers, recommendation; `said_by` where another program quoted the kernel |

Only an event that is `trusted`, has role `origin` and severity `error` or `fatal` may hold a node by itself.

"""

SITE = """\
## A site's own rules

`nodeworthy log classify --rules site.toml` reads a file of the same form above the built-in rules. A rule with the id of a
built-in rule replaces it; others are tried first. Fields of a code are replaced one by one.

```toml
[[rule]]
id = "cdu-pump"
kind = "cooling"
literals = ["pump failure"]                       # fixed text; a line must hold one of these
pattern = 'cdu: pump failure on (?P<component>\\w+)' # Python regular expression; groups component and code fill these fields
transport = "program"                             # kernel: must match from the start of a kernel message
identifiers = ["cdu"]                             # who says it (syslog tag); leave out for any program
role = "origin"
severity = "error"
action = "ticket"
proof = "none"
meaning = "A pump of the coolant unit failed."

[xid.63]
action = "reset-gpu"
```
"""


def page() -> str:
    data = built_in()
    rules = sorted(data["rules"], key=lambda rule: (rule["kind"], rule["id"]))
    parts = [
        HEAD,
        "## Actions\n\n" + _table(("action", "what it asks for"), data["actions"].items()),
        "## Proofs\n\n" + _table(("proof", "what must pass"), data["proofs"].items()),
        "## Rules\n\nThe first rule that matches decides. `kernel` rules match only from the start of a kernel message.\n\n"
        + _table(RULE_HEADS, (_rule_row(rule) for rule in rules)),
        f"## Xid codes\n\nSource: {data['sources']['xid']}. Meanings and roles are ours.\n\n"
        + _table(CODE_HEADS, (_code_row(code, entry) for code, entry in _by_number(data["xid"]) if "vendor" in entry))
        + "\nOther codes up to 172 are marked as unused by the vendor: role unknown, action ticket.\n\n",
        "### Where sources disagree\n\n"
        + _table(
            ("Xid", "who says what"),
            ((c, "; ".join(e["disputed"])) for c, e in _by_number(data["xid"]) if "disputed" in e),
        ),
        f"## SXid codes\n\nSource: {data['sources']['sxid']}. The word Fatal or Non-fatal in the line goes before this table.\n\n"
        + _table(SXID_HEADS, (_code_row(code, entry, "class") for code, entry in _by_number(data["sxid"]))),
        SITE,
    ]
    return "\n".join(part.rstrip("\n") + "\n" for part in parts)


RULE_HEADS = ("rule", "kind", "code", "said by", "role", "severity", "action", "meaning")
CODE_HEADS = ("code", "role", "severity", "action", "proof", "vendor's action", "meaning")
SXID_HEADS = ("code", "role", "severity", "action", "proof", "class", "meaning")


def _rule_row(rule: Mapping[str, Any]) -> Sequence[str]:
    who = "kernel" if rule["transport"] == "kernel" else ", ".join(rule.get("identifiers", ())) or "any program"
    by_code = "by code"
    code = by_code if "decoder" in rule else rule.get("code", rule["id"])
    words = [str(rule.get(key, by_code)) for key in ("role", "severity", "action")]
    return (f"`{rule['id']}`", rule["kind"], code, who, *words, rule["meaning"])


def _code_row(code: str, entry: Mapping[str, Any], last: str = "vendor") -> Sequence[str]:
    return (
        code,
        *(str(entry[key]) for key in ("role", "severity", "action", "proof")),
        str(entry.get(last) or "-"),
        entry["meaning"],
    )


def _by_number(table: Mapping[str, Mapping[str, Any]]) -> list[tuple[str, Mapping[str, Any]]]:
    return sorted(table.items(), key=lambda item: int(item[0]))


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(heads)} |", "|" + "---|" * len(heads)]
    lines += [f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |" for row in rows]
    return "\n".join(lines) + "\n"
