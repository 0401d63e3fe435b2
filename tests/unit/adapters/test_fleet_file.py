"""The fleet file: what it says, what is wrong with it and where, and what stays when it is written anew."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from nodeworthy.adapters.files.fleet import find_fleet, load_fleet, parse_fleet
from nodeworthy.adapters.files.fleet_write import fleet_text, write_file
from nodeworthy.errors import BadFile, BadRequest, NotKnown, Problem
from nodeworthy.model.fleet import Fleet, Names, Node, NodeClass

WELL = """\
name = "alps"

# measured at delivery
[classes.h100]
gpus = 8
gpu_type = "h100"
memory_mb = 2000000
[classes.h100.expect]
pcie_gen = 5  # SXM

[classes.login]

[[nodes]]
# the first delivery
names = "gpu[1-4],gpu[5-8]"
class = "h100"
scheduler = { alps = "n[01-08]" }
exporter = ["{name}:9400", "{name}:9100"]
bmc = "10.0.0.[1-8]"
labels = { owner = "physics" }

[[nodes]]
names = "login1"
class = "login"

[domains.rack]
"r[1-3]" = { nodes = "gpu[1-8]", each = 3 }

[domains.feed]
A = "gpu[1-8]"  # east
B = { nodes = "login1" }

[node.gpu3]
serial = "S3"
exporter = "odd:1"
labels = { note = "loaner" }
"""


def problems(text: str) -> list[Problem]:
    with pytest.raises(BadFile) as error:
        parse_fleet(text, "f.toml")
    return error.value.problems


def test_all_that_a_file_says() -> None:
    """Groups, patterns, paired sets, domains by line and by count, and exceptions come to nodes."""
    fleet = parse_fleet(WELL)
    assert fleet.name == "alps"
    assert fleet.classes["h100"] == NodeClass("h100", 8, "h100", None, 2_000_000, None, {"pcie_gen": 5})
    gpu2 = Names({"alps": "n02"}, (), ("gpu2:9400", "gpu2:9100"), "10.0.0.2")
    assert fleet.nodes["gpu2"] == Node("gpu2", "h100", "", gpu2, {"rack": "r1", "feed": "A"}, {"owner": "physics"})
    assert fleet.domain("rack", "r3") == ("gpu7", "gpu8")
    gpu3 = fleet.nodes["gpu3"]
    assert (gpu3.serial, gpu3.names.exporter, gpu3.names.bmc) == ("S3", ("odd:1",), "10.0.0.3")
    assert gpu3.labels == {"owner": "physics", "note": "loaner"}
    assert fleet.nodes["login1"].domains == {"feed": "B"}


@pytest.mark.parametrize(
    ("old", "new", "line", "field", "words"),
    [
        ("gpus = 8", "gpu = 8", 5, "classes.h100.gpu", "did you mean 'gpus'"),
        ("gpus = 8", "gpus = true", 5, "classes.h100.gpus", "should be int, is bool"),
        ("gpus = 8", "gpus = 4096", 5, "classes.h100.gpus", "4096 GPUs in one node"),
        ("gpus = 8\n", "", 5, "classes.h100.gpu_type", "has no GPUs"),
        ("memory_mb = 2000000", "memory_mb = -1", 7, "classes.h100.memory_mb", "cannot be -1"),
        ("pcie_gen = 5", "gpus = 5", 9, "classes.h100.expect.gpus", "move it up"),
        ("pcie_gen = 5", 'pcie_gen = "5"', 9, "classes.h100.expect.pcie_gen", "should be int"),
        ('class = "h100"', 'class = "h10"', 16, "nodes.0.class", "did you mean 'h100'"),
        ('names = "login1"', 'names = "gpu8"', 23, "nodes.1.names", "declared twice"),
        ('names = "login1"', 'names = "login[1"', 23, "nodes.1.names", "not a node set"),
        ('names = "login1"', 'names = "login[1-9999999]"', 23, "nodes.1.names", "more than 1,000,000"),
        ('names = "login1"', 'names = "a b"', 23, "nodes.1.names", "not a node name"),
        ('names = "login1"\n', "", 22, "nodes.1", "'names' is missing"),
        ('"10.0.0.[1-8]"', '"10.0.0.[1-7]"', 19, "nodes.0.bmc", "7 names, the group has 8"),
        ('"10.0.0.[1-8]"', '"10.0.0.1{name}"', None, "", ""),
        ("each = 3", "each = 2", 27, "domains.rack.r[1-3]", "do not fill 3 domains"),
        ('A = "gpu[1-8]"', 'A = "gpu[1-9]"', 30, "domains.feed.A", "'gpu9' is not in any"),
        ('B = { nodes = "login1" }', 'B = "gpu1"', 31, "domains.feed.B", "also in feed 'A'"),
        ("[node.gpu3]", "[node.gpu33]", 33, "node.gpu33", "did you mean 'gpu3'"),
        ('serial = "S3"', 'serail = "S3"', 34, "node.gpu3.serail", "did you mean 'serial'"),
        ('exporter = "odd:1"', 'bmc = "10.0.0.4"', 35, "node.gpu3.bmc", "of gpu3 and of gpu4"),
        ('{ note = "loaner" }', "{ note = 1 }", 36, "node.gpu3.labels.note", "should be a text"),
        ('name = "alps"', "name = alps", 1, "", "not TOML"),
        ('name = "alps"', "nmae = 'alps'", 1, "nmae", "did you mean 'name'"),
    ],
)
def test_each_problem_has_its_place(old: str, new: str, line: int | None, field: str, words: str) -> None:
    """Each mistake is told with its line, its field, and what to do."""
    text = WELL.replace(old, new, 1)
    assert text != WELL
    if line is None:
        parse_fleet(text)
        return
    found = problems(text)
    (problem,) = [p for p in found if p.field.startswith(field) and words in str(p)][:1]
    assert (problem.file, problem.line) == ("f.toml", line), [str(p) for p in found]
    assert problem.remedy


def test_all_problems_at_once() -> None:
    """Several mistakes are told together, in the order of the file."""
    text = WELL.replace("gpus = 8", "gpu = 8").replace('"login1"', '"login[1"').replace("serial", "sreial")
    lines = [p.line for p in problems(text)]
    assert lines == sorted(lines, key=lambda line: line or 0) and {5, 23, 34} <= set(lines)


def test_a_serial_twice() -> None:
    """A serial is of one node."""
    (problem,) = problems(WELL + '[node.gpu4]\nserial = "S3"\n')
    assert "'S3' is of gpu3 and of gpu4" in problem.message and problem.line == 38


def test_lines_inside_texts_are_not_keys() -> None:
    """A line in a multi-line text that looks like a key does not lead the line numbers astray."""
    text = 'name = """\nclasses.a.gpus = "x"\n"""\n[classes.a]\ngpus = "x"\n'
    (problem,) = problems(text)
    assert problem.line in (2, 5)  # both are that path; the message names the field
    assert problem.field == "classes.a.gpus"


@pytest.mark.parametrize("content", [b"\xff\xfe", b"name = '\x00'", b"[[[", b"a = 1\na = 2"])
def test_unreadable_files(tmp_path: Path, content: bytes) -> None:
    """Bytes that are no TOML are a bad file."""
    path = tmp_path / "f.toml"
    path.write_bytes(content)
    with pytest.raises(BadFile):
        load_fleet(path)


def test_a_missing_file(tmp_path: Path) -> None:
    """A file that is not there, and a directory, are told as such."""
    for path in (tmp_path / "none.toml", tmp_path):
        with pytest.raises(BadRequest, match="cannot read"):
            load_fleet(path)


def test_where_the_file_is_looked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As given, then $NODEWORTHY_FLEET, then ./fleet.toml."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("NODEWORTHY_FLEET", raising=False)
    if not Path("/etc/nodeworthy/fleet.toml").exists():
        with pytest.raises(NotKnown):
            find_fleet()
    (tmp_path / "fleet.toml").touch()
    assert find_fleet() == Path("fleet.toml")
    monkeypatch.setenv("NODEWORTHY_FLEET", "/x/y.toml")
    assert find_fleet() == Path("/x/y.toml")
    assert find_fleet("z.toml") == Path("z.toml")


def test_writing_over_changes_nothing_that_is_true() -> None:
    """A hand-made file written over with the same fleet keeps every letter, however it says things."""
    assert fleet_text(parse_fleet(WELL), WELL) == WELL


def test_comments_and_arrangement_stay() -> None:
    """One node added, one moved: only the lines that say so change."""
    old = parse_fleet(WELL)
    nodes = dict(old.nodes)
    nodes["gpu8"] = Node("gpu8", "h100", "", old.nodes["gpu8"].names, {"rack": "r3", "feed": "B"}, {"owner": "physics"})
    nodes["login2"] = Node("login2", "login", domains={"feed": "B"})
    text = fleet_text(Fleet("alps", old.classes, nodes), WELL)
    for kept in (
        "# measured at delivery",
        "pcie_gen = 5  # SXM",
        "# the first delivery",
        'names = "gpu[1-4],gpu[5-8]"',
    ):
        assert kept in text
    assert 'names = "login[1-2]"' in text
    assert 'A = "gpu[1-7]"  # east' in text
    assert "[node.gpu3]" in text and 'exporter = "odd:1"' in text
    assert parse_fleet(text).nodes == nodes


def regular(count: int, serials: bool = False) -> Fleet:
    nodes = {}
    for k in range(count):
        name = f"gpu{k + 1:05d}"
        names = Names({"alps": name}, (f"{name}.x.org",), (f"{name}:9400",), f"{name}-bmc")
        domains = {"rack": f"r{k // 32 + 1:03d}", "leaf": f"leaf{k // 16 + 1:04d}"}
        nodes[name] = Node(name, "h100", f"S{k}" if serials else "", names, domains)
    return Fleet("alps", {"h100": NodeClass("h100", 8, "h100")}, nodes)


def test_ten_thousand_nodes_are_a_few_dozen_lines() -> None:
    """10,000 regular nodes in 313 racks and 625 leaves: under 40 lines, read in under a second."""
    fleet = regular(10_000)
    text = fleet_text(fleet)
    assert len(text.splitlines()) < 40
    best = float("inf")
    for _ in range(5):
        start = time.perf_counter()
        assert parse_fleet(text) == fleet
        best = min(best, time.perf_counter() - start)
    assert best < 1.0


def test_racks_in_names_are_one_line() -> None:
    """Nodes named after rack and place, as r012-n07, are one line for all full racks and one for the last."""
    place = [(k // 32, k % 32) for k in range(1000)]
    nodes = {f"r{r:03d}-n{n:02d}": Node(f"r{r:03d}-n{n:02d}", "c", domains={"rack": f"r{r:03d}"}) for r, n in place}
    text = fleet_text(Fleet("f", {"c": NodeClass("c")}, nodes))
    assert '"r[000-030]" = {nodes = "r[000-030]-n[00-31]", each = 32}' in text
    assert 'r031 = "r031-n[00-07]"' in text
    assert parse_fleet(text).nodes == nodes


def test_ten_thousand_serials_are_a_line_each() -> None:
    """With a serial for each node the file has a line more for each, and is still read in under two seconds."""
    fleet = regular(10_000, serials=True)
    text = fleet_text(fleet)
    assert len(text.splitlines()) < 10_040
    start = time.perf_counter()
    assert parse_fleet(text) == fleet
    assert time.perf_counter() - start < 2.0


def test_a_name_that_cannot_be_written_is_refused() -> None:
    """A node's name that would read back as something else is an error and not a damaged file."""
    for name in ("a,b", "n[1", "@x"):
        with pytest.raises((BadRequest, BadFile)):
            fleet_text(Fleet("f", {"c": NodeClass("c")}, {name: Node(name, "c")}))


def test_atomic_write_keeps_the_old_file(tmp_path: Path) -> None:
    """The old content and mode stay in FILE.bak; nothing else is left behind."""
    path = tmp_path / "fleet.toml"
    assert write_file(path, "one") is None
    path.chmod(0o640)
    backup = write_file(path, "two")
    assert backup == tmp_path / "fleet.toml.bak"
    assert (path.read_text(), backup.read_text()) == ("two", "one")
    assert path.stat().st_mode & 0o777 == 0o640
    assert sorted(p.name for p in tmp_path.iterdir()) == ["fleet.toml", "fleet.toml.bak"]
    with pytest.raises(BadRequest, match="cannot write"):
        write_file(tmp_path / "none" / "fleet.toml", "x")


def test_serials_come_to_a_big_fleet_later() -> None:
    """2,000 serials learnt later are lines added to the table that is there, under its comments."""
    old = fleet_text(regular(2000)) + '\n[node]  # by hand\n# the odd one\ngpu00007 = { serial = "S6" }\n'
    text = fleet_text(regular(2000, serials=True), old)
    assert "[node]  # by hand\n# the odd one\ngpu00007" in text
    assert parse_fleet(text) == regular(2000, serials=True)
    assert len(text.splitlines()) < 2040


def test_a_misspelt_expectation_is_a_slip_and_an_own_one_is_not() -> None:
    """`nvlink` is close to what the checks know and is refused; a site's own word passes."""
    text = '[classes.c]\ngpus = 8\nexpect = {{ {} }}\n[[nodes]]\nnames = "n1"\nclass = "c"\n'

    with pytest.raises(BadFile) as caught:
        parse_fleet(text.format("nvlink = 18"))
    assert "did you mean 'nvlinks'" in str(caught.value)

    assert parse_fleet(text.format("burn_in_hours = 48")).classes["c"].expect == {"burn_in_hours": 48}


@pytest.mark.parametrize("nics", ['"mlx5_[0-"', '"p[1-99999]"', "-1", "100000", "inf", "1.5", "true"])
def test_nics_that_cannot_be_counted(nics: str) -> None:
    """The ports of a class are a node set or a number of them; anything else is refused where it stands."""
    (problem,) = problems(WELL.replace("pcie_gen = 5  # SXM", f"nics = {nics}"))
    assert (problem.line, problem.field) == (9, "classes.h100.expect.nics")


def test_nics_as_a_node_set() -> None:
    """One port, several, or a range of them are fine."""
    for nics in ("mlx5_[0-7]", "mlx5_0,bond0", "p[1-256]"):
        fleet = parse_fleet(WELL.replace("pcie_gen = 5  # SXM", f'nics = "{nics}"'))
        assert fleet.classes["h100"].expect["nics"] == nics
