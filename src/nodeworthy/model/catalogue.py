"""The catalogue's words: signals (what can be seen) and checks (what is wrong when).

The data are TOML files in `nodeworthy/catalogue/`, layered by a site's own files; `judge.catalogue` reads
and validates them. Every threshold and mapping names its `source` (provenance).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from nodeworthy.model.finding import Locality, Severity, Trust

Value = float | int | str | bool


@dataclass(frozen=True, slots=True)
class SourceField:
    """The name of a signal in one source. Several entries may name the old and the new field.

    `scale` multiplies into the signal's unit. `labels` must be present with these values; `value_label`
    names the label that carries a string value (for *_info series).
    """

    source: str  # "dcgm" | "node_exporter" | …
    name: str
    scale: float = 1.0
    labels: Mapping[str, str] = field(default_factory=dict)
    value_label: str = ""


@dataclass(frozen=True, slots=True)
class Signal:
    """One thing that can be observed of one kind of component.

    `type`: float | int | bool | str. `counter` values are cumulative and may reset; checks use features of
    them, never the raw value. Values outside `minimum..maximum` or in `sentinels` are unknown, never data.
    """

    id: str
    kind: str  # component kind: node | gpu | nic
    type: str
    unit: str
    help: str
    fields: tuple[SourceField, ...] = ()
    counter: bool = False
    minimum: float | None = None
    maximum: float | None = None
    sentinels: tuple[float | str, ...] = ()
    max_age_s: float = 120.0
    source: str = ""


@dataclass(frozen=True, slots=True)
class Feature:
    """A column computed from a signal's bounded history: increase, rate, changes, max, min, mean … over a window."""

    id: str
    kind: str
    signal: str
    function: str
    window_s: float
    help: str = ""


@dataclass(frozen=True, slots=True)
class Expectation:
    """Something a node class may declare; conditions see it as `class.ID`. `type` as for signals."""

    id: str
    type: str
    unit: str
    help: str


@dataclass(frozen=True, slots=True)
class EventMatch:
    """Which classified log events make an event check true."""

    kind: str
    codes: tuple[str, ...] = ()  # empty: any code of the kind
    rules: tuple[str, ...] = ()
    count: int = 1
    window_s: float = 0.0  # 0: since the present boot


@dataclass(frozen=True, slots=True)
class Check:
    """What is wrong, when it is wrong, and what follows from it.

    Exactly one of `condition` (over the columns of the kind's frame, including `class.*` expectations) and
    `event` is set. `applies` is a condition over `class.*` alone; where it is not true the check does not
    apply (which is neither false nor unknown). `for_s` is how long the condition must hold before it is a
    finding; `clear_s` how long it must not hold before the finding ends. `effect` is the hold that a true
    finding asks for, or empty when it only informs.
    """

    id: str
    version: str
    title: str
    kind: str
    condition: str | None = None
    event: EventMatch | None = None
    applies: str = ""
    for_s: float = 0.0
    clear_s: float = 0.0
    severity: Severity = Severity.WARNING
    trust: Trust = Trust.SHADOW
    locality: Locality = Locality.SELF_EVIDENT
    causes: tuple[str, ...] = ()
    effect: str = ""
    action: str = ""
    proof: str = ""
    clears: str = ""
    help: str = ""
    source: str = ""
    layer: str = "built-in"


@dataclass(frozen=True, slots=True)
class Catalogue:
    signals: Mapping[str, Signal]
    features: Mapping[str, Feature]
    checks: Mapping[str, Check]
    revision: str
    expectations: Mapping[str, Expectation] = field(default_factory=dict)
