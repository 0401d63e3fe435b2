"""The checks of ourselves: is it the fleet, or is it us?

Wiring adds those that look at the outside (the store can be written, the disk has room); each is a function that
answers with a `CheckView`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from nodeworthy.judge.explain import names_of
from nodeworthy.model.fact import CLASS_PREFIX, class_column
from nodeworthy.service.engine import TurnHealth
from nodeworthy.service.picture import Picture
from nodeworthy.service.views import CheckState, CheckView, LoopView, SourceState, SourceView

SelfCheck = Callable[[], CheckView]


def run(
    picture: Picture,
    health: TurnHealth,
    sources: Sequence[SourceView],
    loops: Sequence[LoopView],
    checks: Sequence[SelfCheck],
    now: float,
) -> tuple[CheckView, ...]:
    return (
        _turn(health, now),
        *_sources(sources, picture),
        *_loops(loops),
        *_broken_checks(picture),
        *_expectations(picture),
        *map(_guarded, checks),
    )


def _guarded(check: SelfCheck) -> CheckView:
    """A check of ourselves that breaks is a failure of ours, and no reason to say nothing of the others."""
    try:
        return check()
    except Exception as error:  # noqa: BLE001  whatever it is, doctor answers
        said = f"a check of ourselves broke: {type(error).__name__}: {error}"
        return CheckView("doctor", CheckState.FAIL, said, "report it with the log")


def _turn(health: TurnHealth, now: float) -> CheckView:
    """A turn that is done has been committed: its age says when the record last took a write."""
    committed = "none was committed yet" if health.at is None else f"the last commit was {now - health.at:.0f} s ago"
    if health.failure:
        return CheckView("turn", CheckState.FAIL, f"the last turn failed: {health.failure}; {committed}",
                         "report it with the log; the last good picture is shown until a turn succeeds")  # fmt: skip
    if health.at is None:
        return CheckView("turn", CheckState.UNKNOWN, "no turn has been made yet", "wait for the first reading")
    return CheckView(
        "turn", CheckState.OK, f"turn {health.number} took {(health.took_s or 0) * 1000:.0f} ms; {committed}"
    )


def _sources(sources: Sequence[SourceView], picture: Picture) -> Iterator[CheckView]:
    if not sources:
        yield CheckView("sources", CheckState.FAIL, "no source is configured", "nodeworthy config explain")
    for source in sources:
        name = f"source {source.name}"
        reading = picture.seen.sources.get(source.name)
        strangers = reading.unknown_names if reading else ()
        match source.state:
            case SourceState.OK if source.problem:
                yield CheckView(
                    name,
                    CheckState.WARN,
                    f"answers, but: {source.problem}",
                    "see what it says; what it cannot tell is unknown",
                )
            case SourceState.OK if strangers:
                shown = ", ".join(strangers[:5]) + (" …" if len(strangers) > 5 else "")
                yield CheckView(name, CheckState.WARN, f"names {len(strangers)} hosts that the fleet does not: {shown}",
                                "add their names to the fleet file, or take them out of the source")  # fmt: skip
            case SourceState.OK:
                yield CheckView(name, CheckState.OK, f"answered {source.age_s or 0:.0f} s ago")
            case SourceState.NEVER:
                yield CheckView(name, CheckState.UNKNOWN, "has not answered yet", _remedy(source.kind))
            case _:
                yield CheckView(name, CheckState.FAIL, f"{source.state}: {source.problem or 'no answer in time'}",
                                _remedy(source.kind))  # fmt: skip


def _remedy(kind: str) -> str:
    return {
        "scheduler": "try `scontrol ping` as the user that serves",
        "exporter": "fetch one of its pages with curl from this host",
        "prometheus": "try its /api/v1/query from this host",
        "log": "check the path and that the user that serves may read it",
    }.get(kind, "")


def _loops(loops: Sequence[LoopView]) -> Iterator[CheckView]:
    stalled = [loop.name for loop in loops if loop.stalled]
    if stalled:
        yield CheckView("loops", CheckState.FAIL, f"stalled: {', '.join(stalled)}", "restart; report it with the log")
    else:
        yield CheckView("loops", CheckState.OK, f"all {len(loops)} loops beat")


def _expectations(picture: Picture) -> Iterator[CheckView]:
    """What the classes could say more, so that more checks apply."""
    fleet, catalogue = picture.world.fleet, picture.world.catalogue
    conditions = [check.condition for check in catalogue.checks.values() if check.condition is not None]
    wanted = {n for condition in conditions for n in names_of(condition) if n.startswith(CLASS_PREFIX)}
    for node_class in fleet.classes.values():
        known = {class_column(name) for name, value in node_class.attributes().items() if value is not None}
        missing = sorted(name.removeprefix(CLASS_PREFIX) for name in wanted - known)
        if missing:
            said = f"{len(missing)} expectations are not declared, so the checks that need them do not apply"
            yield CheckView(f"class {node_class.name}", CheckState.OK, f"{said}: {', '.join(missing)}",
                            "declare those that you know under `expect` in the fleet file")  # fmt: skip


def _broken_checks(picture: Picture) -> Iterator[CheckView]:
    if picture.judged.failures:
        names = ", ".join(sorted(picture.judged.failures))
        yield CheckView("checks", CheckState.FAIL, f"cannot be evaluated, their answers are unknown: {names}",
                        "nodeworthy catalogue check")  # fmt: skip
    else:
        yield CheckView("checks", CheckState.OK, f"{len(picture.world.catalogue.checks)} checks can be evaluated")
