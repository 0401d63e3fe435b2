"""`nodeworthy_node` runs on nodes with Python 3.9: its grammar, and nothing but the standard library."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[3] / "src" / "nodeworthy_node"
SOURCES = sorted(PACKAGE.rglob("*.py"))


def names(path: Path) -> set[str]:
    """The top-level packages that a module imports."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module.partition(".")[0])
    return found


def test_there_is_something_to_check() -> None:
    """The package is where this test looks for it."""
    assert len(SOURCES) > 5


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_grammar_of_python_39(path: Path) -> None:
    """Each module parses with the grammar of Python 3.9."""
    ast.parse(path.read_text("utf-8"), feature_version=(3, 9))


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_standard_library_only(path: Path) -> None:
    """Each module imports the standard library and its own package, and knows nothing of the rest."""
    assert names(path) - set(sys.stdlib_module_names) <= {"nodeworthy_node"}


def test_features_of_python_39() -> None:
    """No function, argument or annotation of a later Python is used at run time (as vermin finds them)."""
    pytest.importorskip("vermin")
    command = [
        sys.executable,
        "-c",
        "import vermin; vermin.main()",
        "--no-tips",
        "--eval-annotations",
        "-t=3.9-",
        "--violations",
        str(PACKAGE),
    ]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_no_union_with_a_bar_at_run_time() -> None:
    """`X | Y` between types needs Python 3.10 wherever it is evaluated: it is not used, not even in annotations."""
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            annotation = getattr(node, "annotation", None) or getattr(node, "returns", None)
            if annotation is not None and not isinstance(annotation, ast.Constant):
                bars = [n for n in ast.walk(annotation) if isinstance(n, ast.BinOp) and isinstance(n.op, ast.BitOr)]
                assert not bars, f"{path}:{annotation.lineno}"
