"""Node sets: fold, unfold, and what is refused before it costs anything."""

from __future__ import annotations

import time

import pytest

from nodeworthy.errors import BadRequest
from nodeworthy.model.nodeset import fold, unfold


@pytest.mark.parametrize(
    ("names", "text"),
    [
        (["n1", "n2", "n3"], "n[1-3]"),
        (["n01", "n1"], "n[1,01]"),
        (["r1-n1", "r1-n2", "r2-n1", "r2-n2"], "r[1-2]-n[1-2]"),
        ([], ""),
    ],
)
def test_fold_and_back(names: list[str], text: str) -> None:
    """Folding gives the short form, unfolding the names again."""
    assert fold(names) == text
    assert sorted(unfold(text)) == sorted(names)


@pytest.mark.parametrize(
    "text",
    ["n[1", "n]1", "n[a-b]", "n[3-1]", "n[1-99999999999]", "n[1-2000000]", "n[1-2000]x[1-2000]", "n" + "1" * 5000],
)
def test_bad_and_boundless_sets_are_refused_at_once(text: str) -> None:
    """Bad syntax and sets that would fill the memory are a BadRequest with a hint, within a second."""
    start = time.perf_counter()
    with pytest.raises(BadRequest, match="not a node set") as error:
        unfold(text)
    assert error.value.hint
    assert time.perf_counter() - start < 1.0


def test_ten_thousand_names_fold_within_seconds() -> None:
    """Folding 10,000 names costs a fraction of a second on an idle machine."""
    names = [f"gpu{k:05d}" for k in range(10_000)]
    start = time.perf_counter()
    assert fold(names) == "gpu[00000-09999]"
    assert time.perf_counter() - start < 3.0


@pytest.mark.parametrize("text", ["[" * 1_000_000, "a[" * 500_000, "n[1-" * 250_000, "n[1-2],[" * 100_000])
def test_a_million_brackets_cost_a_moment(text: str) -> None:
    """The guard against huge sets reads a text once, and the refusal does not repeat a million characters."""
    start = time.process_time()
    with pytest.raises(BadRequest) as refused:
        unfold(text)
    assert time.process_time() - start < 2
    assert len(str(refused.value)) < 1000


@pytest.mark.parametrize("text", ["n[1-2]999999999999", "n[1-2]999999999999999999[1-2]"])
def test_digits_after_a_bracket_cannot_make_a_range_too_large(text: str) -> None:
    """ClusterShell joins them with the range and asserts its size: that is a refusal, too."""
    with pytest.raises(BadRequest, match="not a node set"):
        unfold(text)
