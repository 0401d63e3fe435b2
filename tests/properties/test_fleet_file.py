"""Fleet files: what is written reads back, an old file keeps its comments, and garbage is only ever BadFile."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from nodeworthy.adapters.files.fleet import parse_fleet
from nodeworthy.adapters.files.fleet_csv import parse_csv
from nodeworthy.adapters.files.fleet_write import fleet_text
from nodeworthy.errors import BadFile, BadRequest
from nodeworthy.model.fleet import Fleet, Names, Node, NodeClass
from nodeworthy.model.nodeset import fold, unfold
from tests.properties.inputs import fewer

HOST = st.from_regex(r"[a-z]{1,2}-?[0-9]{0,3}(\.x)?", fullmatch=True).filter(lambda n: not n.endswith("-"))
TEXT = st.text(st.characters(codec="utf-8", exclude_categories=("Cs",)), min_size=1, max_size=8)
CLASSES = [
    NodeClass("h100x8", 8, "h100", 64, 2_000_000, 2, {"pcie_gen": 5, "site.key": "a b", "ok": True, "rate": 0.5}),
    NodeClass("cpu"),
]


@st.composite
def fleets(draw: st.DrawFn) -> Fleet:
    """Fleets with every field in use, regular and irregular ones."""
    names = draw(st.lists(HOST, min_size=1, max_size=12, unique=True))
    if draw(st.booleans()):
        first, count = draw(st.integers(0, 98)), draw(st.integers(1, 30))
        width = draw(st.integers(1, 4))
        names += [n for n in (f"r{k:0{width}d}" for k in range(first, first + count)) if n not in names]
    nodes = {}
    for number, name in enumerate(names):
        regular = draw(st.booleans())
        made = Names(
            {"a": name} if regular else draw(st.dictionaries(st.sampled_from(["a", "b.c"]), st.just(f"s{number}"))),
            (f"{name}.org",) if regular else draw(st.sampled_from([(), (f"log{number}",), ("{name}", f"x[{number}]")])),
            (f"{name}:9400",) if regular else tuple(draw(st.lists(TEXT, max_size=2))),
            f"10.0.0.{number}" if draw(st.booleans()) else "",
        )
        domains = {"leaf": f"leaf{number // 4}"} if regular else draw(st.dictionaries(TEXT, TEXT, max_size=2))
        labels = draw(st.dictionaries(TEXT, TEXT, max_size=1))
        serial = f"S{number}" if draw(st.booleans()) else ""
        nodes[name] = Node(name, draw(st.sampled_from(["h100x8", "cpu"])), serial, made, domains, labels)
    return Fleet(draw(TEXT), {c.name: c for c in CLASSES}, nodes)


@fewer(5)
@given(fleets())
def test_written_reads_back(fleet: Fleet) -> None:
    """Writing and reading again gives the same fleet, and writing over it changes not one letter."""
    text = fleet_text(fleet)
    assert parse_fleet(text) == fleet
    assert fleet_text(fleet, text) == text


@fewer(10)
@given(fleets(), fleets())
def test_rewritten_reads_back(old: Fleet, new: Fleet) -> None:
    """Any fleet can be written over any other; it reads back, and the file's first comment stays."""
    text = fleet_text(new, "# ours, and it stays\n" + fleet_text(old))
    assert parse_fleet(text) == new
    assert text.startswith("# ours, and it stays\n")


KEYS = st.sampled_from(
    [
        "name",
        "classes",
        "nodes",
        "domains",
        "node",
        "names",
        "class",
        "serial",
        "labels",
        "gpus",
        "expect",
        "each",
        "n1",
    ]
)
VALUES = st.recursive(
    st.one_of(
        st.integers(), st.booleans(), st.floats(), TEXT, st.sampled_from(["n[1-3]", "h100", "n[1", "n[1-99999999]"])
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(KEYS, inner, max_size=4)),
    max_leaves=12,
)


def as_toml(value: object) -> str:
    """Any value as TOML text."""
    if isinstance(value, dict):
        return "{" + ", ".join(f'"{k}" = {as_toml(v)}' for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(as_toml(v) for v in value) + "]"
    if isinstance(value, bool):
        return str(value).lower()
    return repr(value) if isinstance(value, (int, float)) else "'" + str(value).replace("'", "") + "'"


@given(st.dictionaries(KEYS, VALUES, max_size=5))
def test_wrong_values_are_problems(document: dict[str, object]) -> None:
    """Any values under any keys are a fleet, or problems with a file and a message."""
    text = "\n".join(f"{key} = {as_toml(value)}" for key, value in document.items())
    try:
        parse_fleet(text)
    except BadFile as error:
        assert error.problems
        assert all(p.file == "fleet.toml" and p.message for p in error.problems)


@given(
    st.one_of(st.text(max_size=200), st.from_regex(r"(\[\[?[a-z.\"]*\]?\]?\n|[a-z]+ ?= ?[\"\[{}0-9a-z,\]]*\n){1,8}"))
)
def test_garbage_is_a_bad_file(text: str) -> None:
    """Any text is a fleet or BadFile, for the fleet file and for CSV."""
    for parse in (parse_fleet, parse_csv):
        try:
            parse(text)
        except BadFile as error:
            assert error.problems


@given(st.lists(HOST, max_size=30, unique=True))
def test_fold_and_unfold(names: list[str]) -> None:
    """Unfolding what was folded gives exactly the same names."""
    assert set(unfold(fold(names))) == set(names)


@given(st.text(alphabet="n0189[]-,/@!*&^ é\0", max_size=24))
def test_any_text_is_a_node_set_or_refused(text: str) -> None:
    """No text breaks the node-set parser."""
    try:
        names = unfold(text)
    except BadRequest as error:
        assert str(error)
    else:
        assert all(isinstance(name, str) for name in names)
