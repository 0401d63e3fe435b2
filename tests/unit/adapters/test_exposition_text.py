"""The parser of metrics pages: what is read, what is counted as unreadable, and that it is fast."""

from __future__ import annotations

import math
import time
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from benchmarks.exposition import page as big_page
from benchmarks.exposition import ratio
from nodeworthy.observe.exposition import Page, parse
from tests.telemetry_words import shared_file

DATA = Path(__file__).parents[2] / "data" / "exposition"


def rows(page: Page) -> list[tuple[str, dict[str, str], float, float]]:
    """(name, labels, value, at) of every sample."""
    s = page.samples
    return [
        (s.names[n], dict(s.places[p].labels), v, t)
        for n, p, v, t in zip(s.name, s.place, s.value.tolist(), s.at.tolist(), strict=True)
    ]


def one(line: str, **more: object) -> tuple[str, dict[str, str], float, float]:
    page = parse(line + "\n", at=7.0, **more)  # type: ignore[arg-type]
    assert page.unreadable == 0
    (row,) = rows(page)
    return row


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("up 1", ("up", {}, 1.0)),
        ("up\t1", ("up", {}, 1.0)),
        ("  up   1  ", ("up", {}, 1.0)),
        ("up{} 1", ("up", {}, 1.0)),
        ('a{b="c"}1', ("a", {"b": "c"}, 1.0)),
        ('a {b="c"} 1', ("a", {"b": "c"}, 1.0)),
        ('a{ b = "c" , d="e" } 1', ("a", {"b": "c", "d": "e"}, 1.0)),
        ('a{b="c",} 1', ("a", {"b": "c"}, 1.0)),
        ('a{b="} 5"} 6', ("a", {"b": "} 5"}, 6.0)),
        ('a{b="{x=\\"y\\"}"} 6', ("a", {"b": '{x="y"}'}, 6.0)),
        ('a{b="C:\\\\DIR\\\\F"} 6', ("a", {"b": "C:\\DIR\\F"}, 6.0)),
        ('a{b="two\\nlines"} 6', ("a", {"b": "two\nlines"}, 6.0)),
        ('a{b="back\\\\nslash"} 6', ("a", {"b": "back\\nslash"}, 6.0)),
        ('a{b="# not a comment"} 6', ("a", {"b": "# not a comment"}, 6.0)),
        ('a{b="x",c="Grüße 世界"} 6', ("a", {"b": "x", "c": "Grüße 世界"}, 6.0)),
        ('a{b=""} +Inf', ("a", {"b": ""}, math.inf)),
        ("a -Inf", ("a", {}, -math.inf)),
        ("a 1.458255915e9", ("a", {}, 1458255915.0)),
        ("a -3.1E-7", ("a", {}, -3.1e-7)),
        ("a:b:c 9223372036854775792", ("a:b:c", {}, 9223372036854775792.0)),
        ('a_bucket{le="+Inf"} 5 # {trace_id="KOO5S4vxi0o"} 0.67', ("a_bucket", {"le": "+Inf"}, 5.0)),
        ('a 5 # {trace_id="x"} 0.67 1520879607.789', ("a", {}, 5.0)),
        ("up 1\r", ("up", {}, 1.0)),
    ],
)
def test_a_wellformed_line_is_read(line: str, expected: tuple[str, dict[str, str], float]) -> None:
    """Every form of a sample that the format allows gives its name, labels and number."""
    assert one(line)[:3] == expected


def test_nan_is_read_as_nan() -> None:
    """NaN is a number of the format; what it means is decided later."""
    assert math.isnan(one('a{b="c"} NaN')[2])


@pytest.mark.parametrize(
    "line",
    [
        "a",
        "a b",
        "a 1_000",
        "a 0x10",
        "a 0x1p3",
        "a ٣",
        "a} 1",
        "a{ 1",
        'a{b="c" 1',
        'a{b="c"d="e"} 1',
        'a{b="c",b="d"} 1',
        "a{b=c} 1",
        'a{1b="c"} 1',
        "1a 1",
        "a 1 2 3",
        "a 1 soon",
        "a,b 1",
        "<html><body> 1",
        "a\x001",
        "\x00\x00\x00",
        "{} 1",
    ],
)
def test_a_malformed_line_is_counted_and_costs_nothing_else(line: str) -> None:
    """A line that is no sample is counted and shown; its neighbours are still read."""
    page = parse(f'good{{x="1"}} 1\n{line}\ngood{{x="2"}} 2\n', at=0.0)
    assert page.unreadable == 1
    assert page.example == line.strip(" \t\r")[:80]
    assert [(r[1]["x"], r[2]) for r in rows(page)] == [("1", 1.0), ("2", 2.0)]
    assert "1 lines are not exposition text" in page.problems()[0]


def test_comments_help_and_type_are_not_samples() -> None:
    """Text after `#` is never a sample, whatever it looks like."""
    page = parse("# HELP a 5 } {\n# TYPE a gauge\n#a 5\n\na 1\n# b 2\n", at=0.0)
    assert [r[0] for r in rows(page)] == ["a"]
    assert page.unreadable == 0 and not page.cut


def test_time_stamps_are_milliseconds_in_the_text_format() -> None:
    """A sample's own time wins over the time of asking, sample by sample."""
    page = parse('a{b="c"} 1 1395066363000\na{b="d"} 2\n', at=7.0)
    assert [r[3] for r in rows(page)] == [1395066363.0, 7.0]


def test_time_stamps_are_seconds_in_openmetrics() -> None:
    """OpenMetrics, told by its content type or its `# EOF`, counts seconds."""
    assert [r[3] for r in rows(parse("a 1 1520879607.789\n# EOF\n", at=7.0))] == [1520879607.789]
    assert [r[3] for r in rows(parse("a 1 1520879607.789\n# EOF", at=7.0, openmetrics=True))] == [1520879607.789]


def test_openmetrics_without_eof_is_cut() -> None:
    """An OpenMetrics page must say that it has ended."""
    assert parse("a 1\n", at=0.0, openmetrics=True).cut
    assert not parse("a 1\n# EOF\n", at=0.0, openmetrics=True).cut


def test_a_line_without_its_line_feed_is_dropped() -> None:
    """`8` may be the start of `85`: the last line of a page that was cut is no value."""
    page = parse('a{b="c"} 85\na{b="d"} 8', at=0.0)
    assert [r[1]["b"] for r in rows(page)] == ["c"]
    assert page.cut and "ends before its end" in page.problems()[0]


def test_a_page_cut_anywhere_never_gives_a_wrong_number() -> None:
    """Whatever prefix of a real page arrives, each sample read from it is one of the whole page's."""
    text = (DATA / "dcgm-two-gpus.prom").read_text()
    whole = {(r[0], tuple(r[1].items()), r[2]) for r in rows(parse(text, at=0.0))}
    for end in range(0, len(text), 7):
        page = parse(text[:end], at=0.0)
        assert {(r[0], tuple(r[1].items()), r[2]) for r in rows(page)} <= whole
        assert page.unreadable == 0


def test_only_wanted_names_are_kept_and_the_others_are_named() -> None:
    """Names that nobody asked for are told apart from lines that cannot be read."""
    page = parse("a 1\nb 2\n{c} d\n", at=0.0, names={"a"})
    assert [r[0] for r in rows(page)] == ["a"]
    assert page.other_names == {"b"} and page.unreadable == 1


def test_prose_is_not_taken_for_metrics() -> None:
    """When nothing wanted is found, every line is looked at strictly."""
    page = parse("Service temporarily unavailable\nplease try again\n", at=0.0, names={"a"})
    assert page.unreadable == 2 and not page.other_names


def test_the_label_cache_is_shared_between_pages() -> None:
    """A label set is read once for all pages that use one cache."""
    cache: dict[str, object] = {}
    first = parse('a{b="c"} 1\n', at=0.0, cache=cache)  # type: ignore[arg-type]
    second = parse('z{b="c"} 1\n', at=0.0, target="n2", cache=cache)  # type: ignore[arg-type]
    assert list(cache) == ['b="c"']
    assert first.samples.places[0].labels is second.samples.places[0].labels
    assert second.samples.places[0].target == "n2"


@pytest.mark.parametrize(
    "line",
    [
        "a" * 1_000_000,
        "{" * 1_000_000,
        "}" * 1_000_000,
        "a{" + 'b="c",' * 170_000 + "} 1",
        'a{b="' + "x" * 1_000_000,
        'a{b="' + "\\" * 1_000_000,
        "a" + " " * 1_000_000 + "1 2 3",
        "a " + "1" * 1_000_000 + "x",
        "a 1 # " + "{" * 1_000_000,
        'a{b="' + '"} {"' * 200_000,
        "\x00" * 1_000_000,
    ],
    ids=range(11),
)
def test_a_line_of_a_million_characters_takes_no_longer_than_its_length(line: str) -> None:
    """No input makes the parser crawl: a million characters are read or refused in well under two seconds."""
    start = time.process_time()
    page = parse(f"{line}\nb 1\n", at=0.0)
    assert time.process_time() - start < 2.0
    assert rows(page)[-1][0] == "b"


@pytest.mark.parametrize("name", ["dcgm-two-gpus.prom", "node-exporter-1.5.prom"])
def test_real_pages_are_read_as_prometheus_client_reads_them(name: str) -> None:
    """On pages of real exporters ours and the reference parser agree to the last sample."""
    text = (DATA / name).read_text()
    # the reference parser gives every counter the suffix of OpenMetrics
    theirs = [
        (s.name.removesuffix("_total"), s.labels, s.value)
        for f in text_string_to_metric_families(text)
        for s in f.samples
    ]
    assert [(r[0].removesuffix("_total"), *r[1:3]) for r in rows(parse(text, at=0.0))] == theirs
    assert len(theirs) > 30


def test_the_page_of_eight_real_gpus_is_read_whole() -> None:
    """A published excerpt of a page of eight H100s: thirty lines, thirty samples, eight GPUs."""
    page = parse(shared_file("samples/dcgm/dcgm-exporter-8xh100.prom").read_text(), at=0.0)
    assert len(page.samples) == 30 and not page.problems()
    assert {r[1]["gpu"] for r in rows(page)} == set("01234567")


def test_it_is_many_times_as_fast_as_the_reference_parser() -> None:
    """The same pages, measured alternately: at least fifteen times as many samples a second (35-60 measured)."""
    client, ours = ratio([big_page(n) for n in range(40)])
    assert ours / client > 15


def test_a_page_cut_within_a_comment_is_cut() -> None:
    """What would have followed the comment is missing, and nothing else would tell; `# EOF` needs no line end."""
    assert parse("node_load1 1\n# TYPE node_m", at=0.0).cut
    assert not parse("node_load1 1\n# TYPE node_m gauge\n", at=0.0).cut
    assert not parse("node_load1 1\n# EOF", at=0.0).cut
