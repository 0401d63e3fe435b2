"""The reads of the API over its real socket: answers, filters, pages, problems."""

from __future__ import annotations

import http.client
import json
from typing import Any

import pytest

from nodeworthy.cli.client import Client, connect
from nodeworthy.errors import BadRequest, NotKnown
from nodeworthy.model.status import NodeState
from tests.views_in_memory import NOW, XID, MemoryViews, node

READS = (
    "/v1/about",
    "/v1/status",
    "/v1/doctor",
    "/v1/nodes",
    "/v1/nodes/n2",
    "/v1/nodes/n2/explain",
    "/v1/nodes/n2/history",
    "/v1/findings",
    f"/v1/findings/{XID}",
    "/v1/incidents",
    "/v1/incidents/i-1",
    "/v1/would",
    "/v1/ledger",
)


def raw(
    client: Client, path: str, headers: dict[str, str] | None = None, method: str = "GET"
) -> tuple[int, Any, bytes]:
    connection = connect(client.path, 10)
    connection.request(method, path, headers=headers or {})
    response = connection.getresponse()
    body = response.read()
    connection.close()
    return response.status, response.headers, body


@pytest.mark.parametrize("path", READS)
def test_every_answer_says_as_of_and_its_sources(client: Client, path: str) -> None:
    """No answer comes without the moment it is true for and the age of what it rests on."""
    answer = client.get(path)
    assert answer["as_of"] == NOW - 2
    assert [(s["name"], s["age_s"]) for s in answer["sources"]] == [("slurm", 4.0), ("dcgm", 95.0), ("kernel log", 1.0)]


def test_a_node_is_explained_with_all_blocks(client: Client) -> None:
    """An explanation has because, evidence, rejected causes, what clears it and what is next."""
    answer = client.get("/v1/nodes/n2/explain")
    assert answer["because"][0].startswith("GPU 5 fell off the bus")
    assert {e["source"] for e in answer["evidence"]} == {"kernel log", "dcgm"}
    assert answer["rejected"] and answer["clears"] and answer["next"]
    assert answer["well"] is False


def test_what_is_not_known_is_null_and_never_zero(client: Client) -> None:
    """The GPUs and jobs of a node that is dark are null."""
    (dark,) = client.get("/v1/nodes", {"nodes": "n5"})["items"]
    assert dark["gpus_seen"] is None
    assert dark["jobs"] is None


@pytest.mark.parametrize(
    ("params", "names"),
    [
        ({"nodes": "n[1-2]"}, ["n1", "n2"]),
        ({"state": ["failed", "out"]}, ["n3", "n4"]),
        ({"label": ["rack=r2"]}, ["n5"]),
        ({"label": ["rack=r1", "class=h100x8"], "state": "serving"}, ["n1"]),
        ({"nodes": ""}, []),
        ({"label": "rack=nowhere"}, []),
    ],
)
def test_filters_add_up(client: Client, params: dict[str, object], names: list[str]) -> None:
    """Node sets, labels and states restrict together; an empty node set is nothing, not everything."""
    assert [n["name"] for n in client.get("/v1/nodes", params)["items"]] == names


def test_names_nobody_declared_are_told(client: Client) -> None:
    """A filter by names says which of them are not known."""
    answer = client.get("/v1/nodes", {"nodes": "n1,x[1-2]"})
    assert answer["not_known"] == ["x1", "x2"]
    assert len(answer["items"]) == 1


def test_pages_cover_the_list_exactly_once(client: Client, views: MemoryViews) -> None:
    """Following cursors gives each node once, in order, with the total said on each page."""
    views.nodes_ = tuple(node(f"n{k:04}", NodeState.SERVING, "IDLE") for k in range(250))
    names: list[str] = []
    params: dict[str, object] = {"limit": 100}
    while True:
        page = client.get("/v1/nodes", params)
        assert page["total"] == 250
        names += [n["name"] for n in page["items"]]
        if page["next_cursor"] is None:
            break
        params["cursor"] = page["next_cursor"]
    assert names == [f"n{k:04}" for k in range(250)]


def test_cursor_stays_right_while_the_list_changes(client: Client, views: MemoryViews) -> None:
    """The node under a cursor may vanish between two pages: nothing is skipped or repeated."""
    first = client.get("/v1/nodes", {"limit": 2})
    views.nodes_ = tuple(n for n in views.nodes_ if n.name != "n2")
    second = client.get("/v1/nodes", {"limit": 2, "cursor": first["next_cursor"]})
    assert [n["name"] for n in second["items"]] == ["n3", "n4"]


def test_key_with_slash_is_one_key(client: Client) -> None:
    """A finding of a GPU has a slash in its key and is found by it."""
    assert client.get(f"/v1/findings/{XID}")["finding"]["component"] == "n2/gpu5"


@pytest.mark.parametrize(
    ("path", "status", "code", "word"),
    [
        ("/v1/nodes/nobody", 404, "NW-5000", "nobody"),
        ("/v1/findings/x@y", 404, "NW-5000", "x@y"),
        ("/v1/nodes?nodes=n[1-", 400, "NW-2000", "node set"),
        ("/v1/nodes?label=rack", 400, "NW-2000", "key=value"),
        ("/v1/nodes?limit=0", 400, "NW-2000", "query.limit"),
        ("/v1/nodes?limit=many", 400, "NW-2000", "query.limit"),
        ("/v1/nodes?state=lovely", 400, "NW-2000", "query.state"),
        ("/v1/nodes?cursor=%00%ff", 400, "NW-2000", "cursor"),
        ("/v1/would?since=yesterday", 400, "NW-2000", "query.since"),
        ("/v1/would?since=nan", 400, "NW-2000", "query.since"),
        ("/v1/ledger?after=99999999999999999999", 400, "NW-2000", "query.after"),
        ("/v1/ledger?subject=a%00b", 400, "NW-2000", "query.subject"),
        ("/v1/nope", 404, "NW-5000", "/v1/nope"),
    ],
)
def test_errors_are_problem_documents(client: Client, path: str, status: int, code: str, word: str) -> None:
    """What is wrong is said as RFC 9457: media type, status, stable code, a sentence and a hint."""
    got, headers, body = raw(client, path)
    document = json.loads(body)
    assert got == status == document["status"]
    assert headers["content-type"] == "application/problem+json"
    assert document["code"] == code
    assert document["type"] == f"urn:nodeworthy:problem:{code}"
    assert word in document["detail"] + document["hint"]
    assert document["hint"]


def test_wrong_fields_are_pointed_at(client: Client) -> None:
    """Each wrong parameter of a request is named."""
    _, _, body = raw(client, "/v1/nodes?limit=0&state=lovely")
    assert [e["field"] for e in json.loads(body)["errors"]] == ["query.state.0", "query.limit"]


def test_a_defect_is_ours_and_tells_no_secrets(client: Client, views: MemoryViews) -> None:
    """An exception of ours becomes NW-9000 without its text; the API goes on."""

    def broken() -> None:
        raise RuntimeError("secret detail")

    views.status = broken  # type: ignore[method-assign,assignment]
    status, _, body = raw(client, "/v1/status")
    assert status == 500
    assert json.loads(body)["code"] == "NW-9000"
    assert b"secret" not in body
    assert client.get("/v1/about")["version"]


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
def test_nothing_can_be_written(client: Client, method: str) -> None:
    """The API has reads only."""
    for path in ("/v1/nodes", "/v1/nodes/n1", "/v1/status"):
        status, _, body = raw(client, path, method=method)
        assert status == 405
        assert json.loads(body)["status"] == 405


def test_client_raises_the_servers_own_error(client: Client) -> None:
    """The command line gets the error of the tree back, with its hint."""
    with pytest.raises(NotKnown) as unknown:
        client.get("/v1/nodes/nobody")
    assert "nobody" in str(unknown.value)
    assert unknown.value.hint == "`nodeworthy node list -o name` prints all names"
    with pytest.raises(BadRequest):
        client.get("/v1/nodes", {"nodes": "n[1-"})


def test_client_collects_all_pages(client: Client, views: MemoryViews) -> None:
    """A list of more than one page is one list for the command line."""
    views.nodes_ = tuple(node(f"n{k:04}", NodeState.SERVING, "IDLE") for k in range(2100))
    answer = client.pages("/v1/nodes")
    assert len({n["name"] for n in answer["items"]}) == 2100
    assert "next_cursor" not in answer


def test_health_follows_the_loops_and_the_first_turn(client: Client, views: MemoryViews) -> None:
    """/healthz is 200 with no stalled loop; /readyz is 503 before the first turn."""
    assert raw(client, "/healthz")[0] == 200
    assert raw(client, "/readyz")[0] == 200
    views.as_of = None
    status, _, body = raw(client, "/readyz")
    assert (status, json.loads(body)) == (503, {"ready": False})


def test_connection_is_kept_for_several_requests(client: Client) -> None:
    """HTTP/1.1 keep-alive works over the Unix socket."""
    connection = connect(client.path, 10)
    for _ in range(3):
        connection.request("GET", "/healthz")
        response = connection.getresponse()
        assert response.status == 200
        response.read()
    assert isinstance(connection, http.client.HTTPConnection)
    connection.close()
