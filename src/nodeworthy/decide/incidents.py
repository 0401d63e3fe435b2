"""Findings → incidents: what is one problem is shown as one.

Two groupings, both plain: all adverse findings of one node are one incident of that node; and where one shareable
check is true on most nodes of a declared failure domain that could cause it, those findings are one incident of the
domain, and the nodes are not suspected. A node of which the check has no answer is no evidence either way. Domains that
explain the same nodes equally well are named together: which it was cannot be told. A lost source is one incident.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping

from nodeworthy.decide.policy import Policy
from nodeworthy.model.catalogue import Catalogue
from nodeworthy.model.finding import Finding, Incident, Locality, Severity, Verdict
from nodeworthy.model.fleet import Fleet

# which kinds of domain a kind of cause can reach; a kind of domain that is not named here may be anything of the site's
REACH: Mapping[str, frozenset[str]] = {
    "switch": frozenset({"leaf", "rail", "block", "rack"}),
    "nvswitch": frozenset({"block", "nvl", "rack"}),
    "cooling": frozenset({"loop", "cdu", "rack", "row", "room"}),
    "power": frozenset({"feed", "pdu", "ups", "rack", "row", "room"}),
}
# causes within one node, or within its own link: no domain shares them
OWN = frozenset({"gpu", "nic", "cable", "fan", "psu", "host", "fabric-manager"})
KNOWN_KINDS = frozenset().union(*REACH.values())

Domain = tuple[str, str]
Answered = Callable[[str], Collection[str]]

ORDER = (Severity.FATAL, Severity.ERROR, Severity.WARNING, Severity.INFO)


def incident_key(name: str) -> str:
    """Stable, and as long as a hold's key (see `hold_key`)."""
    return "i-" + hashlib.sha256(name.encode()).hexdigest()[:12]


def group(
    findings: Mapping[str, Finding], fleet: Fleet, policy: Policy, catalogue: Catalogue, answered: Answered
) -> list[Incident]:
    """The present incidents, worst and oldest first. `answered`: the nodes of which a check has an answer now."""
    adverse = {k: findings[k] for k in sorted(findings) if findings[k].verdict is Verdict.TRUE}
    incidents: list[Incident] = []
    taken: set[str] = set()
    for check, domains, keys in _shared(adverse, fleet, policy, catalogue, answered):
        fresh = [k for k in keys if k not in taken]
        taken.update(fresh)
        if fresh:
            incidents.append(_domain_incident(check, domains, [adverse[k] for k in fresh], fleet))
    by_node: dict[str, list[Finding]] = defaultdict(list)
    for key, finding in adverse.items():
        if key not in taken:
            where = finding.component
            by_node[where.node if where.of_node else str(where)].append(finding)
    incidents.extend(_node_incident(name, members) for name, members in by_node.items())
    return sorted(incidents, key=lambda i: (ORDER.index(i.severity), i.since, i.key))


def _shared(
    adverse: Mapping[str, Finding], fleet: Fleet, policy: Policy, catalogue: Catalogue, answered: Answered
) -> Iterable[tuple[str, list[Domain], list[str]]]:
    """A check, the domains that explain it equally well, and the findings there, where enough of a domain shows it.

    The smallest domain that explains a symptom comes first: a leaf before the whole room.
    """
    members: dict[tuple[str, Domain], list[str]] = defaultdict(list)
    for key, finding in adverse.items():
        node = fleet.nodes.get(finding.component.node)
        if finding.locality is Locality.SHAREABLE and node is not None:
            for kind, name in node.domains.items():
                if _reaches(catalogue, finding.check, kind):
                    members[(finding.check, (kind, name))].append(key)
    seen = {check: answered(check) for check, _ in members}
    equal: dict[tuple[int, str, tuple[str, ...]], list[Domain]] = defaultdict(list)
    for (check, domain), keys in members.items():
        nodes = {adverse[k].component.node for k in keys}
        size = sum(name in nodes or name in seen[check] for name in fleet.domain(*domain))
        if len(nodes) >= policy.shared_nodes and len(nodes) / size >= policy.shared_share:
            equal[(size, check, tuple(keys))].append(domain)
    return [(check, sorted(domains), list(keys)) for (_, check, keys), domains in sorted(equal.items())]


def _reaches(catalogue: Catalogue, check: str, kind: str) -> bool:
    """Whether something that a domain of this kind shares can cause what the check sees."""
    known = catalogue.checks.get(check)
    causes = [c for c in known.causes if c not in OWN] if known else []
    if known is not None and known.causes and not causes:
        return False
    return not causes or kind not in KNOWN_KINDS or any(c not in REACH or kind in REACH[c] for c in causes)


def _domain_incident(check: str, domains: list[Domain], members: list[Finding], fleet: Fleet) -> Incident:
    nodes = sorted({f.component.node for f in members})
    total = len(fleet.domain(*domains[0]))
    origin = " or ".join(f"{kind} {name}" for kind, name in domains)
    told = "" if len(domains) == 1 else " Which of them cannot be told from these nodes."
    return Incident(
        key=incident_key("/".join([check, *(f"{kind}/{name}" for kind, name in domains)])),
        title=f"{check} on {len(nodes)} of {total} nodes of {origin}",
        severity=_worst(members),
        since=min(f.since for f in members),
        findings=tuple(f.key for f in members),
        nodes=tuple(nodes),
        origin=origin,
        explanation=f"{len(nodes)} of {total} nodes that share {origin} show the same symptom; a part that they "
        f"share is likelier than as many faults at once.{told} What would decide: the state of that part itself.",
    )


def _node_incident(name: str, members: list[Finding]) -> Incident:
    first = min(members, key=lambda f: (ORDER.index(f.severity), f.since, f.key))
    more = f" and {len(members) - 1} more" if len(members) > 1 else ""
    is_node = first.component.of_node
    return Incident(
        key=incident_key(name),
        title=f"{name}: {first.summary}{more}",
        severity=_worst(members),
        since=min(f.since for f in members),
        findings=tuple(f.key for f in members),
        nodes=(first.component.node,) if is_node else (),
        origin=name if not is_node else "",
        explanation=first.summary,
    )


def _worst(members: list[Finding]) -> Severity:
    return min((f.severity for f in members), key=ORDER.index)
