"""Whatever is asked, the API answers a document or a problem, and never a defect."""

from __future__ import annotations

import asyncio
from urllib.parse import quote

import httpx
from hypothesis import given
from hypothesis import strategies as st

from nodeworthy.api import pages
from nodeworthy.api.app import create_app
from nodeworthy.model.status import NodeState
from tests.properties.inputs import fewer
from tests.views_in_memory import NODES, MemoryViews, node

APP = create_app(MemoryViews())


def get(path: str, parameters: dict[str, object] | None = None) -> httpx.Response:
    async def ask() -> httpx.Response:
        transport = httpx.ASGITransport(APP, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            return await client.get(path, params=parameters)  # type: ignore[arg-type]

    return asyncio.run(ask())


# surrogates cannot be sent; everything else can
TEXT = st.text(st.characters(exclude_categories=("Cs",)), max_size=40)
NAMES = TEXT | st.sampled_from(["n1", "n[1-3]", "n[1-", "n[3-1]", "@all", "*", "n1,,n2", "n[1-2]&n2", "n[0-3/2]"])
PARAMETERS = st.fixed_dictionaries(
    {},
    optional={
        "nodes": NAMES,
        "label": st.lists(TEXT | st.just("rack=r1"), max_size=3),
        "state": TEXT | st.sampled_from([s.value for s in NodeState]),
        "verdict": TEXT,
        "cursor": TEXT,
        "limit": TEXT | st.integers(-(10**20), 10**20).map(str),
        "since": TEXT | st.sampled_from(["nan", "inf", "-1", "1e400"]),
        "after": TEXT | st.integers(-(10**20), 10**20).map(str),
        "subject": TEXT,
    },
)
PATHS = st.sampled_from(["nodes", "findings", "incidents", "would", "ledger", "nodes/n2/history", "status"])


@fewer(2)
@given(PATHS, PARAMETERS)
def test_any_parameters_get_an_answer_or_a_problem(path: str, parameters: dict[str, object]) -> None:
    """200 with as_of, or 4xx as a problem document with a hint."""
    response = get(f"/v1/{path}", parameters)
    document = response.json()
    if response.status_code == 200:
        assert "as_of" in document
    else:
        assert 400 <= response.status_code < 500, document
        assert response.headers["content-type"] == "application/problem+json"
        assert document["hint"]


@fewer(2)
@given(st.sampled_from(["nodes", "findings", "incidents"]), TEXT.filter(lambda t: t not in ("", ".", "..")))
def test_any_name_in_a_path_is_known_or_not_known(kind: str, name: str) -> None:
    """A name of any characters is looked up as it is; what is not there is 404."""
    response = get(f"/v1/{kind}/{quote(name, safe='')}")
    assert response.status_code in (200, 404), response.text
    assert response.json()


@given(st.lists(st.text(min_size=1), unique=True, max_size=30), st.integers(1, 10))
def test_pages_give_every_item_once(names: list[str], limit: int) -> None:
    """Any keys, any page size: following cursors gives the sorted list."""
    views = MemoryViews()
    views.nodes_ = tuple(node(name, NodeState.SERVING, "IDLE") for name in names)
    answer = views.nodes(None, {}, frozenset())
    found: list[str] = []
    cursor: str | None = None
    while True:
        try:
            page = pages.cut(answer, lambda item: item.name, cursor, limit)
        except UnicodeEncodeError:
            assert any("\ud800" <= letter <= "\udfff" for name in names for letter in name)
            return  # a lone surrogate is no name that any source can give
        found += [item.name for item in page.items]
        cursor = page.next_cursor
        if cursor is None:
            break
    assert found == sorted(names)


def test_the_small_fleet_is_what_the_tests_think() -> None:
    """One node in each state."""
    assert {n.state for n in NODES} == set(NodeState)
