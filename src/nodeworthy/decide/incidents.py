"""Findings → incidents: what is one problem is shown as one.

Two groupings, both plain: all adverse findings of one node are one incident of that node; and where one shareable
check is true on most nodes of a declared failure domain, those findings are one incident of the domain, and the
nodes are not suspected. Which component of the domain it was is not claimed here. A lost source is one incident.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Container, Iterable, Mapping

from nodeworthy.decide.policy import Policy
from nodeworthy.model.finding import Finding, Incident, Locality, Severity, Verdict
from nodeworthy.model.fleet import Fleet

ORDER = (Severity.FATAL, Severity.ERROR, Severity.WARNING, Severity.INFO)


def incident_key(name: str) -> str:
    """Stable, and as long as a hold's key (see `hold_key`)."""
    return "i-" + hashlib.sha256(name.encode()).hexdigest()[:12]


def group(findings: Mapping[str, Finding], fleet: Fleet, policy: Policy, blind: Container[str] = ()) -> list[Incident]:
    """The present incidents, worst and oldest first. `blind` nodes that show nothing are no evidence either way."""
    adverse = {k: findings[k] for k in sorted(findings) if findings[k].verdict is Verdict.TRUE}
    incidents: list[Incident] = []
    taken: set[str] = set()
    for domain, keys in _shared(adverse, fleet, policy, blind):
        fresh = [k for k in keys if k not in taken]
        taken.update(fresh)
        if fresh:
            incidents.append(_domain_incident(domain, [adverse[k] for k in fresh], fleet))
    by_node: dict[str, list[Finding]] = defaultdict(list)
    for key, finding in adverse.items():
        if key not in taken:
            where = finding.component
            by_node[where.node if where.of_node else str(where)].append(finding)
    incidents.extend(_node_incident(name, members) for name, members in by_node.items())
    return sorted(incidents, key=lambda i: (ORDER.index(i.severity), i.since, i.key))


def _shared(
    adverse: Mapping[str, Finding], fleet: Fleet, policy: Policy, blind: Container[str]
) -> Iterable[tuple[tuple[str, str, str], list[str]]]:
    """(check, domain kind, domain name) with the findings there, where enough of the domain shows the check.

    The smallest domain that explains a symptom comes first: a leaf before the whole room.
    """
    members: dict[tuple[str, str, str], list[str]] = defaultdict(list)
    for key, finding in adverse.items():
        node = fleet.nodes.get(finding.component.node)
        if finding.locality is Locality.SHAREABLE and node is not None:
            for kind, name in node.domains.items():
                members[(finding.check, kind, name)].append(key)
    domains = {(kind, name): fleet.domain(kind, name) for _, kind, name in members}
    found = []
    for domain, keys in members.items():
        nodes = {adverse[k].component.node for k in keys}
        size = sum(name in nodes or name not in blind for name in domains[domain[1:]])
        if len(nodes) >= policy.shared_nodes and len(nodes) / size >= policy.shared_share:
            found.append((size, domain, keys))
    return [(domain, keys) for _, domain, keys in sorted(found, key=lambda item: (item[0], item[1]))]


def _domain_incident(domain: tuple[str, str, str], members: list[Finding], fleet: Fleet) -> Incident:
    check, kind, name = domain
    nodes = sorted({f.component.node for f in members})
    total = len(fleet.domain(kind, name))
    return Incident(
        key=incident_key("/".join(domain)),
        title=f"{check} on {len(nodes)} of {total} nodes of {kind} {name}",
        severity=_worst(members),
        since=min(f.since for f in members),
        findings=tuple(f.key for f in members),
        nodes=tuple(nodes),
        origin=f"{kind} {name}",
        explanation=f"{len(nodes)} of {total} nodes that share {kind} {name} show the same symptom; a part that they "
        "share is likelier than as many faults at once. What would decide: the state of that part itself.",
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
