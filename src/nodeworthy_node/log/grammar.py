"""The log grammar: from a line to an event, by rules that are data.

A rule names fixed `literals` (a line that holds none of any rule's literals is nothing to us, which is what
makes gigabytes cheap), a `pattern` with named groups, and what a match means. Two rules stand above all:
- A kernel rule must match from the first character of a kernel message. A process name, a USB product string or
  a command line that merely contains `NVRM: Xid` is not the driver speaking.
- A line that another program wrote is not the kernel, whatever it quotes: it is reported with `trusted` false and
  role "unknown", so it explains and never holds (design law 14).

Codes with tables of their own (Xid, SXid) go through a decoder, which reads what the driver wrote beyond the code.
Verdicts of messages are remembered (bounded), because in a storm the same message comes a million times.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Callable, Optional

from nodeworthy_node.log import sxid, xid
from nodeworthy_node.log.event import ROLES, SEVERITIES, UNKNOWN, Event, Verdict
from nodeworthy_node.log.lines import Line

# what is matched of one message; real kernel messages end at about 1 kB (LOG_LINE_MAX in kernel/printk)
MAX_MESSAGE = 4096
# how many messages are remembered, and up to which length: together at most some 20 MB
REMEMBERED = 8192
REMEMBERED_LENGTH = 1024

# not seen before, as opposed to seen and meaning nothing
_NEW: Any = object()

Decoder = Callable[["re.Match[str]", Mapping[str, Any], Verdict], Optional[Verdict]]
Said = Optional[tuple["Rule", Verdict]]
DECODERS: Mapping[str, Decoder] = {"xid": xid.decode, "sxid": sxid.decode}


@dataclass(frozen=True)
class Rule:
    """How one kind of line is recognised, and what it means. `kernel`: only the kernel can say this.

    `identifiers`: for other lines, the programs that say it (empty: any).
    """

    id: str
    kind: str
    literals: tuple[str, ...]
    pattern: "re.Pattern[str]"
    kernel: bool
    identifiers: tuple[str, ...]
    verdict: Verdict
    decoder: str = ""


class Grammar:
    """Rules and code tables, ready to classify. Build it with `from_mapping`."""

    def __init__(self, rules: Sequence[Rule], tables: Mapping[str, Any]) -> None:
        self.rules = tuple(rules)
        self.tables = tables
        self._literals = [(literal, rule) for rule in self.rules for literal in rule.literals]
        self._remembered: dict[tuple[str, Optional[bool], str], Said] = {}

    @classmethod
    def from_mapping(cls, mapping: Mapping[str, Any]) -> "Grammar":
        """`{"rules": [...], "xid": {...}, "sxid": {...}}`, as the TOML files of the catalogue read.

        Raises ValueError that names the rule and the field.
        """
        for table in ("xid", "sxid"):
            for code, entry in mapping[table].items():
                _check_words(f"{table}.{code}", entry)
        return cls([_rule(entry) for entry in mapping["rules"]], mapping)

    @property
    def literals(self) -> tuple[str, ...]:
        """All fixed strings, one of which is in every line that can be an event."""
        return tuple(sorted({literal for literal, _ in self._literals}))

    def classify(self, line: Line) -> Optional[Event]:
        """The event of a line, or None: it means nothing to us, or only continues the event of another line."""
        key = (line.message, line.kernel, line.identifier)
        said = self._remembered.get(key, _NEW)
        if said is _NEW:
            said = self._verdict(line)
            if len(line.message) <= REMEMBERED_LENGTH:
                if len(self._remembered) >= REMEMBERED:
                    self._remembered.clear()
                self._remembered[key] = said
        if said is None:
            return None
        rule, verdict = said
        return Event(
            time=line.time,
            host=line.host,
            verdict=verdict,
            trusted=rule.kernel and line.kernel is True,
            message=line.message[:MAX_MESSAGE],
            time_note=line.note,
            uptime=line.uptime,
            boot_id=line.boot_id,
        )

    def _verdict(self, line: Line) -> Said:
        message = line.message[:MAX_MESSAGE]
        tried: Optional[Rule] = None
        for literal, rule in self._literals:
            if rule is tried or literal not in message:
                continue
            tried = rule
            if not rule.kernel and rule.identifiers and line.identifier not in rule.identifiers:
                continue
            quoted = rule.kernel and line.kernel is False
            found = rule.pattern.search(message) if quoted or not rule.kernel else rule.pattern.match(message)
            if found is None:
                continue
            verdict = self._matched(rule, found)
            if verdict is None:
                return None
            return rule, _quoted(verdict, line) if quoted else verdict
        return None

    def _matched(self, rule: Rule, found: "re.Match[str]") -> Optional[Verdict]:
        groups = {name: text for name, text in found.groupdict().items() if text}
        verdict = rule.verdict._replace(
            code=groups.pop("code", rule.verdict.code),
            component=xid.pci(groups.pop("component", rule.verdict.component)),
            details=groups,
        )
        if rule.decoder:
            return DECODERS[rule.decoder](found, self.tables, verdict)
        return verdict


def _quoted(verdict: Verdict, line: Line) -> Verdict:
    details = {**verdict.details, "said_by": line.identifier or "a program other than the kernel"}
    return verdict._replace(role=UNKNOWN, action="none", proof="none", details=details)


def _check_words(name: str, entry: Mapping[str, Any]) -> None:
    """Roles and severities are closed lists: everything that follows from an event depends on them."""
    for field, words in (("role", ROLES), ("severity", SEVERITIES)):
        word = entry.get(field, words[-1])
        if word not in words:
            raise ValueError(f"{name}: {field}: {word!r} is none of {', '.join(words)}")


def _rule(entry: Mapping[str, Any]) -> Rule:
    name = str(entry.get("id", "?"))
    missing = [key for key in ("id", "kind", "literals", "pattern", "transport", "meaning") if not entry.get(key)]
    if missing:
        raise ValueError(f"log rule {name}: {', '.join(missing)} is missing")
    _check_words(f"log rule {name}", entry)
    try:
        pattern = re.compile(entry["pattern"])
    except re.error as error:
        raise ValueError(f"log rule {name}: pattern: {error}") from error
    decoder = str(entry.get("decoder", ""))
    if decoder and decoder not in DECODERS:
        raise ValueError(f"log rule {name}: decoder: {decoder!r} is none of {', '.join(sorted(DECODERS))}")
    verdict = Verdict(
        kind=entry["kind"],
        code=str(entry.get("code", name)),
        component=str(entry.get("component", "")),
        role=entry.get("role", UNKNOWN),
        severity=entry.get("severity", "warning"),
        action=entry.get("action", "none"),
        proof=entry.get("proof", "none"),
        meaning=entry["meaning"],
        rule=name,
    )
    literals: list[str] = list(entry["literals"])
    return Rule(
        id=name,
        kind=entry["kind"],
        literals=tuple(literals),
        pattern=pattern,
        kernel=entry["transport"] == "kernel",
        identifiers=tuple(entry.get("identifiers", ())),
        verdict=verdict,
        decoder=decoder,
    )
