"""Findings → the holds they ask for. Pure: the same findings, holds, policy and time give the same holds.

A true finding of a check with an effect asks for one hold on its component. Self-evident evidence asks at once;
shareable evidence first waits out the settle window, visibly. A hold ends when its finding ends. While the finding
can only be said as last known nothing moves: what was decided stands, what was not waits for sight, and nothing new is
held, because "cannot see" is neither "broken" nor "fine". In observe mode every hold is in the state `would`: it is
shown and nothing is written outside.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import replace

from nodeworthy.decide.policy import Policy
from nodeworthy.model.catalogue import Catalogue
from nodeworthy.model.finding import Finding, Incident, Locality, Verdict
from nodeworthy.model.hold import Effect, Hold, HoldState, Owner, OwnerKind

OURS = Owner(OwnerKind.NODEWORTHY, "")
SETTLING = "settling"


def hold_key(finding_key: str, since: float) -> str:
    """Stable: `h-` and twelve hex digits of what is held, why and since when.

    The record allows an open hold for a key. Among 1,000 open ones two share 48 bits with a probability of 2e-9 (of
    24 bits it would be 3 %): n²/2 divided by the number of keys.
    """
    return "h-" + hashlib.sha256(f"{finding_key}|{since:.3f}".encode()).hexdigest()[:12]


def want(
    findings: Mapping[str, Finding],
    catalogue: Catalogue,
    incidents: Iterable[Incident],
    held: Mapping[str, Hold],
    policy: Policy,
    now: float,
) -> dict[str, Hold]:
    """All holds in force after this turn, by finding key; those that just ended are `lifted` with their time."""
    shared = {key: incident for incident in incidents if incident.origin for key in incident.findings}
    wanted: dict[str, Hold] = {}
    for key, finding in findings.items():
        check = catalogue.checks.get(finding.check)
        if finding.verdict is not Verdict.TRUE or check is None or not check.effect:
            continue
        before = held.get(key)
        if before is not None and before.state is HoldState.LIFTED:
            before = None
        if before is None and finding.unknown is not None:
            continue
        decided = before is not None and not before.waiting_for
        wanted[key] = Hold(
            key=before.key if before else hold_key(key, finding.since),
            subject=finding.component,
            effect=Effect(check.effect),
            owner=OURS,
            state=HoldState.WOULD,
            reason=finding.summary,
            since=before.since if before else now,
            evidence=finding.evidence,
            because=(key,),
            clears=finding.clears or check.clears,
            waiting_for=_waiting_for(
                finding, shared.get(key), (before.since if before else now) + policy.settle_s, now, decided
            ),
        )
    for key, hold in held.items():
        if key not in wanted and hold.state is not HoldState.LIFTED:
            wanted[key] = replace(hold, state=HoldState.LIFTED, ended=now, waiting_for="")
    return wanted


def _waiting_for(finding: Finding, shared: Incident | None, settled: float, now: float, decided: bool) -> str:
    """`settled`: when the window ends, which began when the finding opened and not when its debounce began."""
    if finding.unknown is not None:
        return "" if decided else f"sight: what it rests on cannot be seen now ({finding.unknown.value})"
    if finding.locality is Locality.SELF_EVIDENT:
        return ""
    if shared is not None:
        return f"the origin of incident {shared.key}: {shared.origin} is suspected, not this node"
    left = settled - now
    return f"a common cause, for {left:.0f} s more ({SETTLING})" if left > 0 else ""
