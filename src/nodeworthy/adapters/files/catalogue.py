"""Catalogue files: the built-in layer (package data) and a site's own directories."""

from __future__ import annotations

import importlib.resources
from collections.abc import Sequence
from pathlib import Path

from nodeworthy.errors import BadFile, BadRequest, Problem
from nodeworthy.judge.catalogue import BUILT_IN, CatalogueText, build
from nodeworthy.model.catalogue import Catalogue

# tables of the built-in folder that are not signals or checks, but data of other parts (the Xid table)
TABLES = ("signals.toml", "features.toml", "expectations.toml")


def load(layers: Sequence[Path] = ()) -> Catalogue:
    """The built-in catalogue with a site's layers over it, in their order; a layer is called by its path.

    Raises BadFile with all problems, BadRequest where a directory cannot be read.
    """
    return build([*built_in(), *(text for layer in layers for text in site(layer))])


def built_in() -> list[CatalogueText]:
    """The texts that are shipped with the package."""
    folder = importlib.resources.files("nodeworthy") / "catalogue"
    files = [folder / name for name in TABLES]
    files += sorted((f for f in (folder / "checks").iterdir() if f.name.endswith(".toml")), key=lambda f: f.name)
    return [CatalogueText(f"{BUILT_IN}/{f.name}", BUILT_IN, f.read_text(encoding="utf-8")) for f in files]


def site(path: Path) -> list[CatalogueText]:
    """The texts of a site's layer: a directory (all *.toml below it) or one file."""
    try:
        files = sorted(path.rglob("*.toml")) if path.is_dir() else [path]
        return [CatalogueText(str(f), str(path), _decode(f)) for f in files]
    except OSError as error:
        raise BadRequest(
            f"cannot read the catalogue layer {path}: {error.strerror}", hint="check path and rights"
        ) from error


def _decode(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8")
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise BadFile([Problem(str(path), line, "", "is not UTF-8", "save it as UTF-8")]) from error
