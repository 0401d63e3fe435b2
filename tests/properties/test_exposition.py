"""Whatever a page holds: the parser ends, tells, never invents, and agrees with the reference parser."""

from __future__ import annotations

import math
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from nodeworthy.adapters.exposition.scrape import read_page
from nodeworthy.adapters.prometheus.api import Answer, read_answer
from nodeworthy.errors import Garbled, WorldError
from nodeworthy.observe.exposition import Page, parse
from nodeworthy.observe.telemetry import exposed, names_of, to_batch
from tests.properties.inputs import fewer
from tests.telemetry_words import SIGNALS

REAL = (Path(__file__).parents[1] / "data" / "exposition" / "dcgm-two-gpus.prom").read_text()
NAMES = names_of(exposed(SIGNALS))
Row = tuple[str, tuple[tuple[str, str], ...], str]

metric_names = st.from_regex(r"[a-zA-Z_:][a-zA-Z0-9_:]{0,20}", fullmatch=True)
label_names = st.from_regex(r"[a-zA-Z_][a-zA-Z0-9_]{0,10}", fullmatch=True)
words = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\x00"), max_size=20)
numbers = st.floats() | st.sampled_from([0.0, 1.0, 2147483632.0, 1e300])
samples = st.tuples(metric_names, st.dictionaries(label_names, words, max_size=5), numbers)


def written(name: str, labels: dict[str, str], number: float) -> str:
    """A sample as the format writes it."""
    inside = ",".join(
        '{}="{}"'.format(k, v.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")) for k, v in labels.items()
    )
    digits = {math.inf: "+Inf", -math.inf: "-Inf"}.get(number, "NaN" if math.isnan(number) else repr(number))
    return f"{name}{{{inside}}} {digits}\n" if labels else f"{name} {digits}\n"


def rows(page: Page) -> list[Row]:
    s = page.samples
    return [
        (s.names[n], tuple(s.places[p].labels.items()), repr(v))
        for n, p, v in zip(s.name, s.place, s.value.tolist(), strict=True)
    ]


@given(st.lists(samples, max_size=12))
def test_what_was_written_is_read(said: list[tuple[str, dict[str, str], float]]) -> None:
    """Any samples, with any text in their labels, come back as they were written."""
    page = parse("".join(written(*sample) for sample in said), at=0.0)
    assert page.unreadable == 0 and not page.cut
    assert rows(page) == [(n, tuple(labels.items()), repr(v)) for n, labels, v in said]


@given(st.lists(samples, min_size=1, max_size=8))
def test_it_agrees_with_the_reference_parser(said: list[tuple[str, dict[str, str], float]]) -> None:
    """prometheus_client reads the same names, labels and numbers from the same text."""
    # it refuses label names that Prometheus reserves for itself; no exporter uses them
    text = "".join(written(*s) for s in said if not any(label.startswith("__") for label in s[1]))
    theirs = [
        (s.name, tuple(s.labels.items()), repr(float(s.value)))
        for family in text_string_to_metric_families(text)
        for s in family.samples
    ]
    assert sorted(rows(parse(text, at=0.0))) == sorted(theirs)


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=300))
def test_no_text_breaks_the_parser(text: str) -> None:
    """Any text is read to its end: each line is a sample, a comment, blank, or counted."""
    page = parse(text, at=0.0)
    lines = [line.strip(" \t\r") for line in text.split("\n")[:-1]]
    assert len(page.samples) + page.unreadable == sum(1 for line in lines if line and line[0] != "#")


@given(
    st.binary(max_size=300),
    st.sampled_from(["", "text/plain", "text/plain; version=0.0.4", "application/openmetrics-text"]),
)
def test_no_bytes_break_a_page(body: bytes, kind: str) -> None:
    """Any body is a page or Garbled, and nothing else."""
    try:
        page = read_page(body, kind, 0.0, "n1", NAMES)
    except Garbled as error:
        assert str(error).startswith("not a metrics page")
    else:
        assert page.unreadable == 0 or len(page.samples) or page.other_names


@given(
    st.integers(0, len(REAL)),
    st.lists(
        st.tuples(st.integers(0, len(REAL)), st.text(st.characters(exclude_categories=["Cs"]), max_size=5)), max_size=5
    ),
)
def test_damage_stays_where_it_is(end: int, wounds: list[tuple[int, str]]) -> None:
    """A real page that is cut and overwritten at places: every line without a wound is read as before."""
    text = REAL[:end]
    for position, junk in wounds:
        text = text[:position] + junk + text[position + len(junk) :]
    sound = set(REAL.split("\n")) & set(text.split("\n")[:-1])
    expected = {row for line in sound for row in rows(parse(line + "\n", at=0.0))}
    assert expected <= set(rows(parse(text, at=0.0)))


@fewer(5)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(sorted(NAMES)),
            st.fixed_dictionaries(
                {},
                optional={
                    "gpu": st.sampled_from(["0", "1", "", "x"]),
                    "Hostname": st.sampled_from(["n1", "n2", "zz", ""]),
                    "instance": st.sampled_from(["n1:9400", "n2", "10.0.0.1:1"]),
                    "UUID": st.sampled_from(["GPU-a", "GPU-b"]),
                    "GPU_I_ID": st.sampled_from(["1", ""]),
                    "device": st.sampled_from(["mlx5_0", ""]),
                    "controller": st.sampled_from(["0", "1"]),
                    "release": words,
                },
            ),
            numbers,
        ),
        max_size=30,
    )
)
def test_no_samples_break_the_mapping(said: list[tuple[str, dict[str, str], float]]) -> None:
    """Any samples give frames with unique rows, of declared nodes only, and no value that is NaN or infinite."""
    page = parse("".join(written(*sample) for sample in said), at=100.0)
    batch = to_batch(page.samples, exposed(SIGNALS), lambda n: n if n in ("n1", "n2") else None, source="s", at=100.0)
    for frame in batch.frames.values():
        assert frame.select("node", "index").is_unique().all()
        assert set(frame["node"]) <= {"n1", "n2"}
        for column in frame.select(pl_floats(frame)):
            assert column.drop_nulls().is_finite().all()


def pl_floats(frame: object) -> list[str]:
    return [name for name, kind in frame.schema.items() if str(kind) == "Float64"]  # type: ignore[attr-defined]


json_values = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["status", "data", "resultType", "result", "metric", "values", "__name__"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(json_values, st.sampled_from([200, 400, 422, 503]))
def test_no_json_breaks_the_api(document: object, status: int) -> None:
    """Any JSON, also well-formed around a wrong kernel, is an answer or a WorldError."""
    import orjson

    bodies = [document, {"status": "success", "data": {"resultType": "matrix", "result": document}}]
    for body in bodies:
        try:
            assert isinstance(read_answer(status, orjson.dumps(body)), Answer)
        except WorldError as error:
            assert str(error)
