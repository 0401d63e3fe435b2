"""The catalogue: what is shipped loads, and what is wrong is said with its place."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest

from nodeworthy.adapters.files.catalogue import built_in, load
from nodeworthy.errors import BadFile
from nodeworthy.judge.catalogue import CatalogueText, build
from nodeworthy.model.finding import Trust
from nodeworthy.model.scheduler import FIELDS as SLURM_FIELDS
from nodeworthy.model.scheduler import SchedulerNode
from nodeworthy_node.conditions import parse

CHECK = """
[[check]]
id = "gpu-too-hot"
version = "1"
title = "Too hot"
kind = "gpu"
condition = "gpu_temperature > 90"
action = "Cool it."
clears = "Cooler."
help = "Hot."
source = "test"
"""


def problems(text: str, layer: str = "site") -> list[str]:
    with pytest.raises(BadFile) as caught:
        build([*built_in(), CatalogueText("site.toml", layer, text)])
    return [str(p) for p in caught.value.problems]


def test_the_built_in_catalogue_is_valid_and_of_useful_size() -> None:
    """What is shipped loads without a problem and covers the families that it promises."""
    catalogue = load()
    assert len(catalogue.signals) >= 60
    assert len(catalogue.checks) >= 40
    assert all(check.source and check.action and check.clears and check.help for check in catalogue.checks.values())
    assert all(signal.source and signal.fields for signal in catalogue.signals.values())


def test_conditions_expect_of_classes_not_of_products() -> None:
    """Counts, widths, speeds and versions are compared with the class and never with a number."""
    checks = load().checks
    for name in ("gpu-count-low", "pcie-width-low", "nvlink-count-low", "ib-rate-low", "net-mtu-wrong", "gpu-hot"):
        condition = checks[name].condition
        assert condition is not None
        assert any(n.startswith("class.") for n in parse(condition).names), name


def test_checks_of_telemetry_start_in_shadow() -> None:
    """Trust is earned: only self-evident kernel events may start higher."""
    for check in load().checks.values():
        assert check.trust is Trust.SHADOW if check.event is None else check.trust is not Trust.ACT, check.id


def test_a_site_layer_overrides_by_id_and_is_recorded(tmp_path: Path) -> None:
    """A later layer replaces the earlier entry and the check says where it is from."""
    (tmp_path / "hot.toml").write_text(CHECK.replace("gpu-too-hot", "gpu-hot"))
    before, after = load(), load([tmp_path])
    assert before.checks["gpu-hot"].layer == "built-in"
    assert after.checks["gpu-hot"].layer == str(tmp_path)
    assert after.checks["gpu-hot"].condition == "gpu_temperature > 90"
    assert len(after.checks) == len(before.checks)
    assert after.revision != before.revision


@pytest.mark.parametrize(
    ("change", "place", "message", "remedy"),
    [
        (('"gpu_temperature > 90"', '"gpu_temp > 90"'), "site.toml:7", "gpu_temp is not known", "list signals"),
        (
            ('"gpu_temperature > 90"', '"gpu_uuid > 90"'),
            "site.toml:7",
            "a string is compared with a number",
            "one type",
        ),
        (('"gpu_temperature > 90"', '"ecc_uncorrected_volatile > 0"'), "site.toml:7", "is a counter", "feature"),
        (('"gpu_temperature > 90"', '"gpu_temperature >"'), "site.toml:7", "column 18", "conditions.md"),
        (('"gpu_temperature > 90"', '"1 < 2 or gpu_temperature > 90"'), "site.toml:7", "always true", "remove"),
        (('"gpu_temperature > 90"', '"gpu_temperature > class.hot"'), "site.toml:7", "class.hot is not", "expectation"),
        (('source = "test"', ""), "site.toml:2", "gpu-too-hot.source: is missing", "add source"),
        (('kind = "gpu"', 'kind = "tpu"'), "site.toml:6", "'tpu' is not possible", "node, gpu, nic"),
        (('version = "1"', "version = 1"), "site.toml:4", "must be a string", "quotes"),
        (('help = "Hot."', 'help = "Hot."\nhelf = "x"'), "site.toml:11", "helf: is not known here", "known are id"),
        (('help = "Hot."', 'help = "Hot."\nfor_s = -1'), "site.toml:11", "must be 0 or more seconds", "leave it out"),
        (('help = "Hot."', 'help = "Hot."\neffect = "evict"'), "site.toml:2", "needs a proof", "name the test"),
        (('help = "Hot."', 'help = "Hot."\nevent = {kind = "xid"}'), "site.toml:7", "exactly one of", "remove one"),
        (('id = "gpu-too-hot"', 'id = "GPU hot"'), "site.toml:3", "cannot be an id", "lower-case"),
        (("[[check]]", "[[cheque]]"), "site.toml", "is not a table of a catalogue", "[[check]]"),
        (("[[check]]", "[[check]"), "site.toml:2", "not TOML", "correct the line"),
    ],
)
def test_what_is_wrong_is_said_with_place_and_remedy(
    change: tuple[str, str], place: str, message: str, remedy: str
) -> None:
    """Every mistake names file, line, field and what to write instead."""
    found = problems(CHECK.replace(*change))
    assert any(p.startswith(place) and message in p and remedy in p for p in found), found


def test_all_problems_are_found_at_once() -> None:
    """Two bad checks give at least two problems, in the order of their lines."""
    text = CHECK.replace('kind = "gpu"', 'kind = "x"') + CHECK.replace("gpu-too-hot", "b").replace(
        "gpu_temperature", "y"
    )
    found = problems(text)
    assert len(found) >= 2
    assert found == sorted(found, key=lambda p: int(p.split(":")[1]))


def test_an_id_may_stand_once_in_a_layer() -> None:
    """The same id twice in a layer is a mistake and names the other place."""
    assert any("already defined in site.toml:2" in p for p in problems(CHECK + CHECK))


def test_every_number_has_a_plausible_range() -> None:
    """A number without a largest value would let a vendor's blank value through as a measurement."""
    for signal in load().signals.values():
        if signal.type in ("int", "float"):
            assert signal.minimum is not None, signal.id
            assert signal.maximum is not None, signal.id
            assert signal.maximum < 2**63, signal.id


SLURM_SIGNAL = """
[[signal]]
id = "sched"
kind = "{kind}"
type = "{type}"
unit = ""
help = "x"
fields = ["slurm:{name}"]
source = "test"
"""


@pytest.mark.parametrize(
    ("kind", "kind_of_value", "name", "words"),
    [
        ("node", "int", "gpu_cnt", "known are"),
        ("node", "int", "has", "known are"),
        ("node", "int", "gpu_type", "is str"),
        ("gpu", "int", "gpus", "of nodes"),
    ],
)
def test_a_field_that_the_scheduler_does_not_have_is_refused(
    kind: str, kind_of_value: str, name: str, words: str
) -> None:
    """A slip in a site's catalogue is said when it is checked, and not by every turn."""
    said = problems(SLURM_SIGNAL.format(kind=kind, type=kind_of_value, name=name))
    assert len(said) == 1
    assert words in said[0]
    assert "sched.fields" in said[0]


def test_the_scheduler_fields_are_attributes_of_its_nodes() -> None:
    """Every name that the catalogue accepts is one that a node of the scheduler has."""
    assert set(SLURM_FIELDS) <= {f.name for f in fields(SchedulerNode)}
    text = "".join(
        SLURM_SIGNAL.format(kind="node", type=t, name=n).replace("sched", f"s_{n}") for n, t in SLURM_FIELDS.items()
    )
    built = build([*built_in(), CatalogueText("site.toml", "site", text)])
    assert {f"s_{n}" for n in SLURM_FIELDS} <= set(built.signals)
