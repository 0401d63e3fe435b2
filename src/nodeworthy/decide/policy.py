"""The site's policy: the numbers a decision may depend on, with their reasons."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass


@dataclass(frozen=True, slots=True)
class Policy:
    """`settle_s`: how long shareable evidence (link, heat, power, hang) is watched for a common cause before it
    counts against the component that shows it. `shared_nodes` and `shared_share`: from how many nodes, and from
    what share of a failure domain, one symptom is taken for the domain's rather than the nodes' own.

    Defaults are our judgement: a leaf switch or cooling loop reaches all its nodes within a poll or two, and three
    nodes of one domain with the same symptom at once are rarely three faults.
    """

    settle_s: float = 60.0
    shared_nodes: int = 3
    shared_share: float = 0.5

    @property
    def revision(self) -> str:
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()[:12]
