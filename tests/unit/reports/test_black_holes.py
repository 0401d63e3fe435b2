"""Black holes are named when several users' jobs die there and not elsewhere; never for one user's own errors."""

from __future__ import annotations

from itertools import count

from nodeworthy.reports.audit.report import build
from tests.unit.reports.audit_data import fleet, given, job, jobs

NODES = 40
NUMBERS = count(1)


def normal(users: int = 12, each: int = 40) -> list[tuple[object, ...]]:
    """Everybody runs everywhere and mostly succeeds."""
    rows = []
    for u in range(users):
        for k in range(each):
            fails = (u * each + k) % 50 == 0
            rows.append(
                job(next(NUMBERS), f"u{u}", "FAILED" if fails else "COMPLETED", 5 * k + u / 10, 30 if fails else 7200,
                    f"n{(u * 7 + k) % NODES + 1}")
            )  # fmt: skip
    return rows


def dead(
    node: str, user: str, times: int, at: float = 300.0, state: str = "FAILED", seconds: float = 5
) -> list[tuple[object, ...]]:
    return [job(next(NUMBERS), user, state, at + k / 60, seconds, node) for k in range(times)]


def holes(rows: list[tuple[object, ...]]) -> list[str]:
    audit = build(given(None, jobs(*rows), fleet(size=NODES)))
    return [hole.node for hole in audit.black_holes]


def test_a_node_where_everybodys_jobs_die_is_named() -> None:
    """Eight users' jobs die at once on n9 and nowhere else."""
    rows = normal() + [row for u in range(8) for row in dead("n9", f"u{u}", 3)]
    assert holes(rows) == ["n9"]


def test_one_users_broken_array_names_nobody() -> None:
    """A thousand fast failures of one user on one node, who ran nowhere else."""
    assert holes(normal() + dead("n9", "newcomer", 1000)) == []


def test_users_who_fail_everywhere_explain_their_own_failures() -> None:
    """Five users break everything they start; that six of their jobs met on n9 is no sign."""
    rows = normal()
    for u in range(5):
        for k in range(1, NODES + 1):
            rows += dead(f"n{k}", f"clumsy{u}", 1, at=200 + k * 2)
    rows += [row for u in range(5) for row in dead("n9", f"clumsy{u}", 20)]
    assert holes(rows) == []


def test_jobs_that_people_cancelled_are_no_sign() -> None:
    """Cancelling early says nothing of the node."""
    rows = normal() + [row for u in range(8) for row in dead("n9", f"u{u}", 3, state="CANCELLED")]
    assert holes(rows) == []


def test_slow_failures_are_no_sign() -> None:
    """A program that fails after an hour failed by itself."""
    rows = normal() + [row for u in range(8) for row in dead("n9", f"u{u}", 3, seconds=3600)]
    assert holes(rows) == []


def test_jobs_on_several_nodes_blame_none_of_them() -> None:
    """Which of the nodes broke a job of several cannot be told here."""
    rows = normal() + [
        job(next(NUMBERS), f"u{u}", "FAILED", 300 + u, 5, "n[9-10]", width=2) for u in range(8) for _ in range(3)
    ]
    assert holes(rows) == []
