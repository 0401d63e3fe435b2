"""Every setting as a row (name, type, default, purpose): for `config explain` and the reference page."""

from __future__ import annotations

import types
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from nodeworthy.model.duration import format_duration
from nodeworthy.wiring.config import section_of
from nodeworthy.wiring.settings import Settings

_COMPUTED = {"state_dir", "socket"}  # their defaults depend on who runs it; the description says how


def settings_rows(model: type[BaseModel] = Settings, prefix: str = "") -> Iterator[dict[str, str]]:
    """In the order of the file. A list of sections is written `exporters[].name`."""
    for name, field in model.model_fields.items():
        inner = section_of(field.annotation)
        if inner is not None:
            listed = field.annotation is not inner
            yield from settings_rows(inner, f"{prefix}{name}{'[]' if listed else ''}.")
        else:
            yield {
                "setting": prefix + name,
                "type": _type(field),
                "default": _default(name, field),
                "description": field.description or "",
            }


def _type(field: FieldInfo) -> str:
    if any(isinstance(item, type(_duration_marker())) for item in field.metadata):
        return "duration"
    return _word(field.annotation)


def _duration_marker() -> Any:
    from nodeworthy.wiring.settings import Duration

    return typing.get_args(Duration)[1]


def _word(annotation: Any) -> str:
    if typing.get_origin(annotation) is typing.Literal:
        return " or ".join(f'"{value}"' for value in typing.get_args(annotation))
    if typing.get_origin(annotation) in (types.UnionType, typing.Union):
        return next(_word(part) for part in typing.get_args(annotation) if part is not type(None))
    if typing.get_origin(annotation) is tuple:
        return f"list of {_word(typing.get_args(annotation)[0])}s"
    if typing.get_origin(annotation) is dict:
        return "table of texts"
    words = {str: "text", int: "integer", float: "number", bool: "true or false", Path: "path"}
    return words[annotation]


def _default(name: str, field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    if name in _COMPUTED:
        return "see right"
    value = field.get_default(call_default_factory=True)
    if value is None or value is PydanticUndefined or value in ("", (), {}):
        return "unset"
    if _type(field) == "duration":
        return format_duration(value)
    return {True: "true", False: "false"}.get(value, str(value)) if isinstance(value, bool) else str(value)
