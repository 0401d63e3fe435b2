"""Reading `nodeworthy.toml`: all that is wrong at once, each with its line, field and remedy."""

from __future__ import annotations

import difflib
import os
import stat
import typing
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from nodeworthy.adapters.files.fleet import ENVIRONMENT as ENVIRONMENT_FLEET
from nodeworthy.adapters.files.fleet import HERE
from nodeworthy.adapters.files.positions import line_of, positions
from nodeworthy.errors import BadFile, Problem
from nodeworthy.model.toml_text import read_toml
from nodeworthy.wiring.settings import Settings

ENVIRONMENT = "NODEWORTHY_CONFIG"
DEFAULT = "/etc/nodeworthy/nodeworthy.toml"
NOBODY_ELSE = 0o077


def load(path: str | Path | None = None) -> tuple[Settings, tuple[Problem, ...]]:
    """The settings, and warnings about what is valid and yet will not work as it stands here.

    `path` None: the file that NODEWORTHY_CONFIG names, or /etc/nodeworthy/nodeworthy.toml if it is there, or
    else the defaults. Raises BadFile with everything that is wrong.
    """
    if path is None:
        named = os.environ.get(ENVIRONMENT)
        if not named and not Path(DEFAULT).exists():
            return Settings(), ()
        path = named or DEFAULT
    settings, problems = parse(_read(Path(path)), str(path))
    beside = Path(path).absolute().with_name(HERE.name)
    if settings.fleet is None and ENVIRONMENT_FLEET not in os.environ and beside.is_file():
        settings = settings.model_copy(update={"fleet": beside})
    return settings, problems


def _read(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        problem = Problem(str(path), None, "", f"not UTF-8 at byte {error.start}", "save the file as UTF-8")
        raise BadFile([problem]) from error
    except OSError as error:
        remedy = "name the file with --config, or leave it away to run with the defaults"
        raise BadFile([Problem(str(path), None, "", error.strerror or str(error), remedy)]) from error


def parse(text: str, name: str) -> tuple[Settings, tuple[Problem, ...]]:
    """As `load`, of a text; `name` is the file's name in what is said about it."""
    document = read_toml(text, name, remedy='texts stand in quotes: socket = "/run/x.sock"')
    places = positions(text, document)
    try:
        settings = Settings.model_validate(document)
    except ValidationError as error:
        problems = [_problem(name, item, places, document) for item in error.errors(include_url=False)]
        raise BadFile(sorted(problems, key=lambda p: (p.line or 0, p.field)), hint=_HINT) from error
    found = [
        (Problem(name, line_of(places, place), _dotted(place), message, remedy), fatal)
        for place, message, remedy, fatal in _outside(settings)
    ]
    wrong = [problem for problem, fatal in found if fatal]
    if wrong:
        raise BadFile(wrong, hint=_HINT)
    return settings, tuple(problem for problem, fatal in found if not fatal)


_HINT = "`nodeworthy config explain` tells what each setting is for"


def _problem(
    name: str, item: Mapping[str, Any], places: Mapping[tuple[str | int, ...], int], document: Mapping[str, Any]
) -> Problem:
    place = tuple(item["loc"])
    message = str(item["msg"]).removeprefix("Value error, ")
    remedy = ""
    if item["type"] == "extra_forbidden":
        message, remedy = "there is no such setting", _nearest(place)
    elif item["type"] == "missing":
        message, remedy = "is missing", _purpose(place)
    else:
        message = message[:1].lower() + message[1:]
        remedy = _purpose(place)
    return Problem(name, line_of(places, place), _dotted(place), message, remedy)


def _section(place: Sequence[str | int]) -> type[BaseModel]:
    """The model that holds the last part of a place (as far as it is one)."""
    model: type[BaseModel] = Settings
    for part in place[:-1]:
        field = model.model_fields.get(str(part))
        inner = field and section_of(field.annotation)
        if inner:
            model = inner
    return model


def section_of(annotation: Any) -> type[BaseModel] | None:
    """The section a field holds, directly or in a list; None for a plain setting."""
    if typing.get_origin(annotation) is None:
        return annotation if isinstance(annotation, type) and issubclass(annotation, BaseModel) else None
    return next(filter(None, map(section_of, typing.get_args(annotation))), None)


def _nearest(place: Sequence[str | int]) -> str:
    known = list(_section(place).model_fields)
    near = difflib.get_close_matches(str(place[-1]), known, n=1)
    return f"did you mean {near[0]}?" if near else "known here: " + ", ".join(known)


def _purpose(place: Sequence[str | int]) -> str:
    field = _section(place).model_fields.get(str(place[-1])) if place else None
    return (field.description or "").rstrip(".") if field else ""


def _dotted(place: Sequence[str | int]) -> str:
    """`exporters[0].interval`"""
    text = ""
    for part in place:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


_NOT_STATED = "a central file whose trust is not stated: its lines are shown and hold no node"
_STATE_IT = "trusted = true if it is fed from kernel transport by relays that you trust, else trusted = false"

Outside = tuple[tuple[str | int, ...], str, str, bool]


def _outside(settings: Settings) -> Iterator[Outside]:
    """What the file says about files and directories, compared with what is there: (place, what, remedy, fatal)."""
    for index, group in enumerate(settings.exporters):
        yield from _secret(("exporters", index, "headers_file"), group.headers_file)
        yield from _readable(("exporters", index, "ca_file"), group.ca_file)
    for index, server in enumerate(settings.prometheus):
        yield from _secret(("prometheus", index, "token_file"), server.token_file)
        yield from _readable(("prometheus", index, "ca_file"), server.ca_file)
    for index, log in enumerate(settings.logs):
        yield from _readable(("logs", index, "path"), log.path, fatal=False)
        if log.trusted is None and not log.host:
            yield ("logs", index), _NOT_STATED, _STATE_IT, False
    for index, path in enumerate(settings.catalogue):
        yield from _readable(("catalogue", index), path)
    yield from _readable(("fleet",), settings.fleet)
    yield from _readable(("slurm", "conf"), settings.slurm.conf, fatal=False)
    if settings.slurm.bin_dir is not None and not (settings.slurm.bin_dir / "scontrol").exists():
        yield ("slurm", "bin_dir"), f"there is no scontrol in {settings.slurm.bin_dir}", "", False


def _readable(place: tuple[str | int, ...], path: Path | None, *, fatal: bool = True) -> Iterator[Outside]:
    if path is None:
        return
    if not path.exists():
        yield place, f"{path} is not there", "create it, or correct the path", fatal
    elif not os.access(path, os.R_OK):
        yield place, f"{path} may not be read by uid {os.geteuid()}", "give it a group that Nodeworthy is in", fatal


def _secret(place: tuple[str | int, ...], path: Path | None) -> Iterator[Outside]:
    """A secret that others can read is no secret: that is an error, not a warning."""
    yield from _readable(place, path)
    if path is not None and path.exists() and stat.S_IMODE(path.stat().st_mode) & NOBODY_ELSE:
        yield place, f"{path} holds a secret and others may read it", f"chmod 0600 {path}", True
