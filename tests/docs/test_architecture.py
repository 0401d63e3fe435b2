"""ARCHITECTURE.md describes the folders that are there, and only those."""

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]
# described as a whole, not folder by folder
WHOLE = ("tests", "docs", "labs", "benchmarks", "tools", "packaging")


def folders() -> set[str]:
    """Folders with tracked files: every one under src/ and labs/, and the top ones otherwise."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    found = set()
    for path in map(Path, listed.splitlines()):
        parents = [p.as_posix() for p in path.parents if p != Path()]
        found.update(p for p in parents if p.startswith(("src/", "labs")) or p in WHOLE)
    return found - {"src"}


def test_every_folder_has_its_paragraph() -> None:
    """A new folder needs a paragraph, and a paragraph needs its folder."""
    text = (ROOT / "ARCHITECTURE.md").read_text()

    described = {match.rstrip("/") for match in re.findall(r"^### `([^`]+)`$", text, re.MULTILINE)}

    assert described == folders()


def test_paragraphs_are_not_empty() -> None:
    """Each heading is followed by at least a sentence."""
    text = (ROOT / "ARCHITECTURE.md").read_text()
    sections = re.split(r"^### .*$", text, flags=re.MULTILINE)[1:]

    assert [s for s in sections if len(s.split()) < 5] == []


def test_the_layers_are_those_that_are_enforced() -> None:
    """The drawing names the layers of the import contract in the same order."""
    contract = (ROOT / "pyproject.toml").read_text().split("layers = [", 1)[1].split("]", 1)[0]
    enforced = re.findall(r"[a-z]+", contract)
    drawn = (ROOT / "ARCHITECTURE.md").read_text().split("## Layers", 1)[1].split("`model`", 1)[0]
    block = "\n".join(line for line in drawn.splitlines() if line.startswith("    "))

    assert re.findall(r"[a-z]+", block) == [layer for layer in enforced if layer != "act"]
