"""CSV inventories: headers as people call them, and every mistake by line."""

from __future__ import annotations

import pytest

from nodeworthy.adapters.files.fleet_csv import parse_csv, read_csv
from nodeworthy.decide.fleet_import import Listed
from nodeworthy.errors import BadFile
from nodeworthy.model.fleet import Names

WELL = """\
Node Name;Serial-Number;GPUs;GPU Type;cores;Memory_MB;Rack;domain:cdu;label:owner;scheduler:alps;BMC;syslog;price
n1;"S;1";8;h100;64;2000000;r1;c1;physics;gpu1;10.0.0.1;"l1
l2";5
;;;;;;;;;;;;

n2;;0;;;;;;;;;;
"""


def test_headers_delimiters_quotes() -> None:
    """Headers in any spelling, a semicolon, quoted delimiters and line ends, empty cells and rows."""
    listed, notes = parse_csv(WELL)
    names = Names({"alps": "gpu1"}, ("l1", "l2"), (), "10.0.0.1")
    domains = {"rack": "r1", "cdu": "c1"}
    assert listed[0] == Listed("n1", "", 8, "h100", 64, 2_000_000, None, "S;1", names, domains, {"owner": "physics"})
    assert listed[1] == Listed("n2", gpus=0)
    assert notes == ("columns not taken over: 'price' (label:NAME in the header keeps one as a label)",)


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_delimiters(delimiter: str) -> None:
    """Each usual delimiter is found by itself."""
    listed, _ = parse_csv("name,class\nn1,h100\n".replace(",", delimiter))
    assert (listed[0].name, listed[0].node_class) == ("n1", "h100")


def test_byte_order_mark_and_crlf(tmp_path) -> None:  # type: ignore[no-untyped-def]
    """What spreadsheets put at the start and at the ends of lines does no harm."""
    path = tmp_path / "n.csv"
    path.write_bytes("\ufeffname,class\r\nn1,h100\r\n".encode())
    assert [n.name for n in read_csv(path)[0]] == ["n1"]


@pytest.mark.parametrize(
    ("text", "line", "field", "words"),
    [
        ("", 1, "", "no column names the nodes"),
        ("foo,class\nn1,a\n", 1, "", "call one of them: name"),
        ("name,rack\nn1,a\n", 1, "", "neither the class nor the GPUs"),
        ("name,class\n", 1, "", "no rows"),
        ("name,host,class\nn1,n1,a\n", 1, "host", "both mean name"),
        ("name,class\nn1,a\nn2\n", 3, "class", "neither class nor GPUs"),
        ("name,class\nn1,a\n,a\n", 3, "name", "missing"),
        ("name,class\nn1,a\nn 2,a\n", 3, "name", "not a node name"),
        ("name,class\nn1,a\nn1,a\n", 3, "name", "already on line 2"),
        ("name,class,serial\nn1,a,S\nn2,a,S\n", 3, "serial", "already on line 2"),
        ("name,gpus\nn1,eight\n", 2, "gpus", "not a number"),
        ("name,gpus\nn1,8.0\n", 2, "gpus", "not a number"),
        ("name,gpus\nn1,1024\n", 2, "gpus", "1024 GPUs in one node"),
        ("name,gpus,cpus\nn1,8,0\n", 2, "cpus", "not a number from 1 up"),
        ("name,class\nn1,a,b\n", 2, "", "3 cells, the header has 2"),
        ('name,class\nn1,"a\n', 2, "", "not CSV"),
        ("name,class,gpus\nn1,a,8\nn2,a,4\n", 3, "gpus", "4 here and 8 on line 2"),
    ],
)
def test_each_problem_has_its_line(text: str, line: int, field: str, words: str) -> None:
    """Each mistake is told with its line, its column, and what to do."""
    with pytest.raises(BadFile) as error:
        parse_csv(text, "n.csv")
    (problem,) = error.value.problems
    assert (problem.file, problem.line, problem.field) == ("n.csv", line, field)
    assert words in str(problem) and problem.remedy


def test_all_problems_at_once() -> None:
    """Mistakes in several rows are told together."""
    with pytest.raises(BadFile) as error:
        parse_csv("name,gpus\nn1,x\nn2,y\n,8\n")
    assert [p.line for p in error.value.problems] == [2, 3, 4]
