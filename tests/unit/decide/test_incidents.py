"""Findings → incidents: one problem is shown as one."""

from nodeworthy.decide.incidents import group
from nodeworthy.decide.policy import Policy
from nodeworthy.model.catalogue import Catalogue, Check
from nodeworthy.model.finding import ComponentRef, Finding, Locality, Severity, Verdict
from nodeworthy.model.fleet import Fleet, Node, NodeClass

FLEET = Fleet(
    "lab",
    {"c": NodeClass("c", gpus=8)},
    {f"n{i}": Node(f"n{i}", "c", domains={"leaf": "leaf1" if i <= 4 else "leaf2", "room": "a"}) for i in range(1, 17)},
)


def finding(
    check: str, node: str, locality: Locality = Locality.SHAREABLE, kind: str = "nic", since: float = 5
) -> Finding:
    component = ComponentRef(node, kind, "0")
    return Finding(check, component, Verdict.TRUE, Severity.ERROR, 1, since, f"{check} on {node}", locality=locality)


def check(name: str, causes: tuple[str, ...] = ()) -> Check:
    return Check(id=name, version="1", title=name, kind="nic", condition="x > 0", causes=causes)


CATALOGUE = Catalogue({}, {}, {c.id: c for c in (check("hot", ("cooling", "gpu")), check("fan", ("fan",)))}, "r")


def incidents(*findings: Finding, fleet: Fleet = FLEET, unanswered: frozenset[str] = frozenset()) -> list:
    return group(
        {f.key: f for f in findings}, fleet, Policy(), CATALOGUE, lambda check: fleet.nodes.keys() - unanswered
    )


def test_one_leaf_is_one_incident_and_its_nodes_are_not_suspected() -> None:
    """Three of four nodes of a leaf show a dead link: the leaf is named, not the room and not the nodes."""
    (incident,) = incidents(*(finding("nic.link", f"n{i}") for i in (1, 2, 3)))

    assert incident.origin == "leaf leaf1"
    assert incident.nodes == ("n1", "n2", "n3")
    assert "3 of 4" in incident.title


def test_scattered_symptoms_stay_with_their_nodes() -> None:
    """One node of each leaf is two incidents, with no domain suspected."""
    found = incidents(finding("nic.link", "n1"), finding("nic.link", "n9"))

    assert [(i.origin, i.nodes) for i in found] == [("", ("n1",)), ("", ("n9",))]


def test_self_evident_faults_are_never_pooled() -> None:
    """Three GPUs that fell off their buses are three faults, wherever they are."""
    found = incidents(*(finding("gpu.bus", f"n{i}", Locality.SELF_EVIDENT, "gpu") for i in (1, 2, 3)))

    assert len(found) == 3


def test_all_findings_of_a_node_are_one_incident() -> None:
    """The title is the worst and oldest, and says how many more there are."""
    (incident,) = incidents(finding("nic.link", "n1", since=9), finding("nic.mtu", "n1", since=5))

    assert incident.title == "n1: nic.mtu on n1 and 1 more"
    assert incident.since == 5


def test_a_lost_source_accuses_no_node() -> None:
    """The incident names the source and has no nodes."""
    lost = Finding(
        "source.lost", ComponentRef("", "source", "dcgm"), Verdict.TRUE, Severity.ERROR, 1, 5, "dcgm is silent"
    )

    (incident,) = incidents(lost)

    assert incident.nodes == ()
    assert "dcgm" in incident.origin


def test_blind_nodes_are_no_evidence_against_a_shared_cause() -> None:
    """Three of eight nodes show a symptom and five cannot be seen: nobody is known to be well, so it is shared."""
    fleet = Fleet("f", {}, {f"n{i}": Node(f"n{i}", "", domains={"leaf": "l1"}) for i in range(8)})
    findings = [finding("link", f"n{i}") for i in range(3)]

    assert len(incidents(*findings, fleet=fleet)) == 3
    (shared,) = incidents(*findings, fleet=fleet, unanswered=frozenset(f"n{i}" for i in range(3, 8)))
    assert shared.origin == "leaf l1"


def test_a_domain_is_suspected_of_what_it_can_cause_only() -> None:
    """Heat is not a leaf's doing; a fan is its own node's; where rack and loop fit equally, both are named."""
    places = {"leaf": "l1", "rack": "r1", "loop": "c1"}
    fleet = Fleet("f", {}, {f"n{i}": Node(f"n{i}", "", domains=places) for i in range(4)})

    (heat,) = incidents(*(finding("hot", f"n{i}") for i in range(3)), fleet=fleet)
    assert heat.origin == "loop c1 or rack r1"
    assert "cannot be told" in heat.explanation

    assert [i.origin for i in incidents(*(finding("fan", f"n{i}") for i in range(3)), fleet=fleet)] == ["", "", ""]
