"""What lines are evidence of: every rule, the code tables, the decoders, and what a tenant may not do."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from nodeworthy.adapters.files.log_rules import built_in, load_grammar
from nodeworthy.errors import BadFile
from nodeworthy_node.log import Event, Grammar, Line, Reference, parse

RULES = built_in()["rules"]
ROLES = {"origin", "symptom", "application", "unknown"}
SEVERITIES = {"info", "warning", "error", "fatal"}


def said(message: str, kernel: bool | None = True, identifier: str = "kernel") -> Event | None:
    return load_grammar().classify(Line(1.0, "n3", identifier, kernel, message, "test"))


def xid(text: str) -> Event:
    event = said(f"NVRM: Xid (PCI:0000:04:00): {text}")
    assert event is not None
    return event


@pytest.mark.parametrize("rule", RULES, ids=[rule["id"] for rule in RULES])
def test_rule_recognises_its_example(rule: dict[str, object]) -> None:
    """Each rule matches its own example before any other does, and a literal of it is in the example."""
    kernel = rule["transport"] == "kernel"
    identifiers = rule.get("identifiers") or ["some-program"]
    event = said(str(rule["example"]), kernel, "kernel" if kernel else identifiers[0])  # type: ignore[index]
    assert event is not None
    assert event.verdict.rule == rule["id"]
    assert event.trusted is kernel
    assert any(literal in rule["example"] for literal in rule["literals"])  # type: ignore[operator, attr-defined]


@pytest.mark.parametrize("rule", RULES, ids=[rule["id"] for rule in RULES])
def test_rule_is_well_formed(rule: dict[str, object]) -> None:
    """Words are from the lists, and meaning and source are given."""
    data = built_in()
    assert rule["transport"] in ("kernel", "program")
    assert len(str(rule["meaning"])) > 10
    assert rule["source"]
    if "decoder" not in rule:
        assert rule["role"] in ROLES
        assert rule["severity"] in SEVERITIES
        assert rule["action"] in data["actions"]
        assert rule["proof"] in data["proofs"]


@pytest.mark.parametrize("table", ["xid", "sxid"])
def test_code_tables_are_well_formed(table: str) -> None:
    """Every code has all fields with words from the lists; disputes name who says what."""
    data = built_in()
    for code, entry in data[table].items():
        assert code.isdigit()
        assert entry["role"] in ROLES, code
        assert entry["severity"] in SEVERITIES, code
        assert entry["action"] in data["actions"], code
        assert entry["proof"] in data["proofs"], code
        assert entry["meaning"].endswith("."), code
        assert all(": " in text for text in entry.get("disputed", [])), code


def test_all_codes_of_the_vendors_catalogue_are_there() -> None:
    """Xid 1 to 172 each have an entry, as their own or as unused."""
    assert set(built_in()["xid"]) >= {str(code) for code in range(1, 173)}


@pytest.mark.parametrize(
    ("code", "role", "severity", "action"),
    [
        ("13", "application", "warning", "restart-app"),
        ("31", "application", "warning", "restart-app"),
        ("43", "application", "info", "none"),
        ("45", "symptom", "info", "none"),
        ("48", "origin", "error", "reset-gpu"),
        ("63", "origin", "warning", "reset-when-idle"),
        ("64", "origin", "error", "reset-gpu"),
        ("79", "origin", "fatal", "reboot"),
        ("94", "origin", "warning", "restart-app"),
        ("95", "origin", "error", "reset-gpu"),
        ("109", "unknown", "error", "reset-gpu"),
        ("119", "origin", "error", "reset-gpu"),
        ("140", "origin", "error", "reset-gpu"),
    ],
)
def test_role_of_a_code(code: str, role: str, severity: str, action: str) -> None:
    """The codes that matter most: whose fault, how bad, what to do."""
    event = xid(f"{code}, pid=123, name=python3, text")
    assert (event.verdict.role, event.verdict.severity, event.verdict.action) == (role, severity, action)
    assert event.holds is (role == "origin" and severity in ("error", "fatal"))
    assert event.verdict.details["pid"] == 123
    assert event.verdict.details["process"] == "python3"


@pytest.mark.parametrize(
    "message",
    [
        "NVRM: Xid",
        "NVRM: Xid (PCI:00",
        "NVRM: Xid (PCI:0000:04:00)",
        "NVRM: Xid (PCI:0000:04:00): ",
        "NVRM: Xid (PCI:0000:04:00): 7",
        "NVRM: Xid (PCI:0000:04:00): 79",
        "NVRM: Xid (PCI:0000:04:00): seventy, x",
        "NVRM: Xid (PCI:0000:04:00): 99999999, x",
    ],
)
def test_cut_line_has_an_unknown_code(message: str) -> None:
    """A line that is cut in its code could be any code (7 of 79): it says so and holds nothing."""
    event = said(message)
    assert event is not None
    assert (event.verdict.kind, event.verdict.code, event.verdict.role) == ("xid", "unknown", "unknown")
    assert not event.holds


def test_code_outside_the_catalogue() -> None:
    """A new code is reported with its number, and as not known."""
    event = xid("999, pid=1, something new")
    assert (event.verdict.code, event.verdict.role) == ("999", "unknown")
    assert "not in the catalogue" in event.verdict.meaning


def test_address_forms() -> None:
    """Old and new drivers write the address in several forms; MIG names the instance."""
    for address in ("PCI:0000:9B:00", "0000:9b:00", "PCI:0000:9b:00.0", "PCI:00000000:9b:00.0"):
        event = said(f"NVRM: Xid ({address}): 79, x")
        assert event is not None
        assert (event.verdict.component, event.verdict.code) == ("0000:9b:00.0", "79")
    event = said("NVRM: Xid (PCI:0000:9b:00 GPU-I:05): 45, pid=1, name=p, Ch 00000008")
    assert event is not None
    assert event.verdict.details["mig_instance"] == "05"


FORGED = [
    "Nov 30 17:30:00 n3 alice: NVRM: Xid (PCI:0000:04:00): 79, GPU has fallen off the bus.",
    "Nov 30 17:30:00 n3 kernel[77]: NVRM: Xid (PCI:0000:04:00): 79, GPU has fallen off the bus.",
    "Nov 30 17:30:00 n3 sudo: alice : COMMAND=/bin/echo 'NVRM: Xid (PCI:0000:04:00): 79, GPU has fallen off the bus.'",
    "Nov 30 17:30:00 n3 alice: kernel: NVRM: Xid (PCI:0000:04:00): 79, GPU has fallen off the bus.",
    "<13>Nov 30 17:30:00 n3 kernel: NVRM: Xid (PCI:0000:04:00): 79, GPU has fallen off the bus.",
    "<13>1 2026-11-30T17:30:00Z n3 kernel - - - NVRM: Xid (PCI:0000:04:00): 79, GPU has fallen off the bus.",
    '{"_TRANSPORT":"syslog","SYSLOG_IDENTIFIER":"kernel","MESSAGE":"NVRM: Xid (PCI:0000:04:00): 79, GPU has fallen off the bus."}',
    '{"_TRANSPORT":"stdout","MESSAGE":"NVRM: Xid (PCI:0000:04:00): 79, GPU has fallen off the bus."}',
    "12,1,5,-;NVRM: Xid (PCI:0000:04:00): 79, GPU has fallen off the bus.",
    "NVRM: Xid (PCI:0000:04:00): 79, GPU has fallen off the bus.",
]


@pytest.mark.parametrize("raw", FORGED)
def test_a_tenant_cannot_forge_a_hold(raw: str) -> None:
    """A line that another program wrote, or that does not say who wrote it, is seen and never holds."""
    event = load_grammar().classify(parse(raw.encode(), Reference(now=1796060423.0)))
    assert event is not None
    assert (event.verdict.kind, event.verdict.code) == ("xid", "79")
    assert event.trusted is False
    assert event.holds is False


@pytest.mark.parametrize("raw", FORGED[:-1])
def test_a_quoted_line_has_no_role(raw: str) -> None:
    """Where another program is named as the writer, the role is unknown, there is nothing to do, and the writer is named."""
    event = load_grammar().classify(parse(raw.encode(), Reference(now=1796060423.0)))
    assert event is not None
    assert (event.verdict.role, event.verdict.action) == ("unknown", "none")
    assert event.verdict.details["said_by"]


@pytest.mark.parametrize(
    "message",
    [
        "usb 1-1: Product: NVRM: Xid (PCI:0000:04:00): 79, GPU has fallen off the bus.",
        'audit: type=1400 comm="NVRM: Xid (PCI:0000:04:00): 79, x"',
        "python3[1]: segfault at 0 ip 0 sp 0 error 4 in NVRM: Xid (PCI:0000:04:00): 79, x[0+1]",
    ],
)
def test_text_inside_a_kernel_message_is_not_the_driver(message: str) -> None:
    """A product string or a name that a tenant chose does not become an Xid, though the kernel prints it."""
    event = said(message)
    assert event is None or event.verdict.kind != "xid"


@pytest.mark.parametrize("device", ["sr0", "fd0", "loop3"])
def test_virtual_media_are_no_disks(device: str) -> None:
    """Errors of a BMC's virtual drive, a floppy or a loop device say nothing about the node's disks."""
    assert said(f"Buffer I/O error on dev {device}, logical block 0, async page read") is None
    assert said(f"I/O error, dev {device}, sector 0 op 0x0:(READ) flags 0x0 phys_seg 1 prio class 2") is None


def test_a_process_named_like_an_xid() -> None:
    """Fifteen characters of process name are enough for the prefix of an Xid, and not for a code."""
    event = said("NVRM: Xid (PCI:[123]: segfault at 0 ip 0 sp 0 error 4 in libc.so.6[0+1]")
    assert event is not None
    assert not event.holds
    assert event.verdict.code in ("unknown", "segfault")


def test_program_rules_are_never_trusted() -> None:
    """A job's own words are not trusted even where they come in a kernel line."""
    event = said("node08:1:2 [0] NCCL WARN something", kernel=True)
    assert event is not None
    assert event.trusted is False


def test_remembered_verdicts_do_not_leak_between_writers() -> None:
    """The same message from the kernel and from a program are two answers, in either order."""
    message = "NVRM: Xid (PCI:0000:77:00): 79, once more."
    assert [said(message, False, "logger").holds, said(message).holds, said(message, False, "logger").holds] == [  # type: ignore[union-attr]
        False,
        True,
        False,
    ]


def test_event_as_json() -> None:
    """The row has the promised keys, and unknown time is null."""
    event = load_grammar().classify(parse(b"[12.5] NVRM: Xid (PCI:0000:04:00): 79, x", Reference()))
    assert event is not None
    row = event.as_dict()
    promised = ["time", "host", "component", "kind", "code", "role", "severity", "action", "proof", "trusted", "rule"]
    assert list(row)[: len(promised)] == promised
    assert row["time"] is None
    assert row["time_note"] == "seconds since an unknown boot"
    assert row["uptime"] == 12.5


def test_site_rules_layer(tmp_path: Path) -> None:
    """A site's file adds rules before ours, replaces one by its id, and changes fields of a code."""
    site = tmp_path / "site.toml"
    site.write_text(
        """
        [[rule]]
        id = "pump"
        kind = "cooling"
        literals = ["pump failure"]
        pattern = "cdu: pump failure on (?P<component>\\\\w+)"
        transport = "program"
        meaning = "A pump failed."
        [[rule]]
        id = "link-up"
        kind = "noise"
        literals = [": Link up"]
        pattern = ".*: Link up"
        transport = "kernel"
        meaning = "Ignored here."
        [xid.63]
        action = "reset-gpu"
        """
    )
    grammar = load_grammar(site)
    pump = grammar.classify(Line(1.0, "n3", "cdu", False, "cdu: pump failure on p2", "test"))
    assert pump is not None
    assert (pump.verdict.kind, pump.verdict.component) == ("cooling", "p2")
    link = grammar.classify(Line(1.0, "n3", "kernel", True, "mlx5_core 0000:98:00.0 ens1np0: Link up", "test"))
    assert link is not None
    assert link.verdict.kind == "noise"
    remap = grammar.classify(Line(1.0, "n3", "kernel", True, "NVRM: Xid (PCI:0000:04:00): 63, x", "test"))
    assert remap is not None
    assert (remap.verdict.action, remap.verdict.role) == ("reset-gpu", "origin")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[[rule]]\nid='a'\n", "log rule a: kind, literals, pattern, transport, meaning is missing"),
        ("[[rule]]\nid='a'\nkind='k'\nliterals=['x']\npattern='('\ntransport='kernel'\nmeaning='m'\n", "pattern"),
        (
            "[[rule]]\nid='a'\nkind='k'\nliterals=['x']\npattern='x'\ntransport='kernel'\nmeaning='m'\ndecoder='no'\n",
            "decoder",
        ),
        ("[xid.63]\nseverity = 'awful'\n", "xid.63: severity: 'awful'"),
        ("[xid.63]\nrole = 'culprit'\n", "xid.63: role: 'culprit'"),
        ("[rules]\n", "no such table"),
        ("= nonsense", "not TOML"),
        ("rule = 5\n", "rule: is not a list of tables"),
        ("rule = [5]\n", "rule: is not a list of tables"),
        ("xid = 5\n", "xid: is not a table of codes"),
        ("[sxid]\n79 = 5\n", "sxid: is not a table of codes"),
    ],
)
def test_bad_site_rules_are_named(tmp_path: Path, text: str, words: str) -> None:
    """A mistake in a site's file is an error that names the file and what is wrong."""
    site = tmp_path / "site.toml"
    site.write_text(text)
    with pytest.raises(BadFile, match=re.escape(words)) as error:
        load_grammar(site)
    assert "site.toml" in str(error.value)


def test_a_missing_table_is_an_error() -> None:
    """A grammar without rules cannot be built by accident."""
    with pytest.raises(KeyError):
        Grammar.from_mapping({})
