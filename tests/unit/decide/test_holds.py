"""Findings → holds: at once, after settling, kept while unknown, lifted when false."""

from dataclasses import replace

from nodeworthy.decide.holds import hold_key, want
from nodeworthy.decide.incidents import incident_key
from nodeworthy.decide.policy import Policy
from nodeworthy.model.catalogue import Catalogue, Check
from nodeworthy.model.finding import ComponentRef, Finding, Incident, Locality, Severity, UnknownReason, Verdict
from nodeworthy.model.hold import HoldState

BUS = Check(id="gpu.bus", version="1", title="fell off", kind="gpu", condition="x > 0", effect="no-new-work")
LINK = replace(BUS, id="nic.link", effect="no-multi-node")
INFO = replace(BUS, id="gpu.info", effect="")
CATALOGUE = Catalogue({}, {}, {c.id: c for c in (BUS, LINK, INFO)}, "r")
POLICY = Policy(settle_s=60)


def finding(check: str, verdict: Verdict = Verdict.TRUE, **changes: object) -> Finding:
    base = Finding(check, ComponentRef("n3", "gpu", "3"), verdict, Severity.FATAL, 1.0, 100.0, "Xid 79 on gpu3")
    return replace(base, **changes)  # type: ignore[arg-type]


def run(*findings: Finding, held: dict | None = None, incidents: tuple[Incident, ...] = (), now: float = 101.0) -> dict:
    return want({f.key: f for f in findings}, CATALOGUE, incidents, held or {}, POLICY, now)


def test_self_evident_evidence_holds_at_once() -> None:
    """The hold carries the finding, waits for nothing and is only a would."""
    (hold,) = run(finding("gpu.bus")).values()

    assert (hold.state, hold.waiting_for, hold.because) == (HoldState.WOULD, "", ("gpu.bus@n3/gpu3",))
    assert str(hold.subject) == "n3/gpu3"


def test_a_check_without_effect_holds_nothing() -> None:
    """Information is not a reason to take a node out."""
    assert run(finding("gpu.info")) == {}


def test_unknown_and_false_open_nothing() -> None:
    """Blind means still: neither verdict makes a hold."""
    assert run(finding("gpu.bus", Verdict.UNKNOWN), finding("nic.link", Verdict.FALSE)) == {}


def test_shareable_evidence_settles_first() -> None:
    """A link finding waits visibly for the settle window, from when it opened and not from when its debounce began."""
    link = finding("nic.link", locality=Locality.SHAREABLE)

    opened = run(link, now=300.0)
    assert "60 s" in next(iter(opened.values())).waiting_for
    assert "10 s" in next(iter(run(link, held=opened, now=350.0).values())).waiting_for
    assert next(iter(run(link, held=opened, now=361.0).values())).waiting_for == ""


def test_a_shared_symptom_waits_for_its_origin() -> None:
    """While a domain is suspected the node's own hold waits for that incident, however long."""
    link = finding("nic.link", locality=Locality.SHAREABLE)
    incident = Incident("i-1", "", Severity.ERROR, 100, (link.key,), ("n3",), "leaf leaf0001", "")

    (hold,) = run(link, incidents=(incident,), now=9999.0).values()

    assert "leaf leaf0001 is suspected" in hold.waiting_for


def test_a_hold_keeps_its_key_and_start() -> None:
    """The same cause turn after turn is one hold."""
    first = run(finding("gpu.bus"), now=101.0)
    second = run(finding("gpu.bus"), held=first, now=200.0)

    assert [(h.key, h.since) for h in second.values()] == [(h.key, h.since) for h in first.values()]


def test_a_hold_survives_blindness_and_ends_with_its_cause() -> None:
    """What was decided stands while it is unseen; a finding that ended lifts it once, with the time."""
    unseen = finding("gpu.bus", unknown=UnknownReason.STALE)
    held = run(finding("gpu.bus"))

    blind = run(unseen, held=held, now=200.0)
    assert [(h.state, h.waiting_for) for h in blind.values()] == [(HoldState.WOULD, "")]
    assert run(unseen) == {}, "what is only remembered opens no hold"

    lifted = run(held=blind, now=300.0)
    assert [(h.state, h.ended) for h in lifted.values()] == [(HoldState.LIFTED, 300.0)]
    assert run(held=lifted, now=400.0) == {}, "a lifted hold is reported once"


def test_what_was_not_decided_waits_for_sight() -> None:
    """A hold that still settled when sight was lost decides nothing until it is seen again, however long that takes."""
    link = finding("nic.link", locality=Locality.SHAREABLE)
    settling = run(link)

    blind = run(replace(link, unknown=UnknownReason.SOURCE_DOWN), held=settling, now=9000.0)
    assert "cannot be seen now (source down)" in next(iter(blind.values())).waiting_for
    assert next(iter(run(link, held=blind, now=9001.0).values())).waiting_for == ""


def test_a_check_that_is_gone_lifts_its_holds() -> None:
    """A hold whose check the catalogue no longer has ends, with its time."""
    held = run(finding("gpu.bus"))

    (lifted,) = want({}, Catalogue({}, {}, {}, "r"), (), held, POLICY, 200.0).values()
    assert (lifted.state, lifted.ended) == (HoldState.LIFTED, 200.0)


def test_keys_of_many_holds_and_incidents_differ() -> None:
    """Ten thousand at once: with 24 bits some would share a key, and the record takes one open hold for a key."""
    keys = [f"check-{k % 40}@n{k}/gpu{k % 8}" for k in range(10_000)]
    assert len({hold_key(key, 1_764_520_000.0) for key in keys}) == len(keys)
    assert len({incident_key(key) for key in keys}) == len(keys)
