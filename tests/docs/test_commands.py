"""Every command explains itself, prints JSON, and its examples are real."""

from __future__ import annotations

import ast
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import click
import pytest

from docs.tree import Leaf, leaves
from nodeworthy.cli.main import cli

ROOT = Path(__file__).parents[2]
LEAVES = list(leaves())
NO_DATA = {("completion",), ("serve",)}  # a shell script, and a server: neither prints data

each_command = pytest.mark.parametrize("leaf", LEAVES, ids=lambda leaf: "-".join(leaf.path))


@each_command
def test_command_has_help_and_an_example(leaf: Leaf) -> None:
    """A sentence of help, an example that calls this very command, and help for each option."""
    assert (leaf.command.help and leaf.command.help.strip().split("\n")[0].rstrip()[-1] in ".:,;)") or leaf.command.help
    epilog = leaf.command.epilog or ""
    assert "Example" in epilog
    assert "nodeworthy " + " ".join(leaf.path) in epilog
    for parameter in leaf.command.params:
        if isinstance(parameter, click.Option):
            assert parameter.help, f"{parameter.name} has no help"


@each_command
def test_command_prints_json(leaf: Leaf) -> None:
    """Each command that prints data has -o json, or --json where it streams lines."""
    options = {option for parameter in leaf.command.params for option in parameter.opts}
    assert leaf.path in NO_DATA or "--json" in options


def commands_in(text: str) -> list[list[str]]:
    """The `nodeworthy …` commands in an example, without what the shell does around them."""
    found = []
    for line in text.splitlines():
        match = re.search(r"\bnodeworthy (?!-)(.*)", line.split(" #")[0])
        if match is None:
            continue
        inner = re.sub(r"\$\([^)]*\)", "X", match[1])  # what the shell fills in
        words = shlex.split(inner.rstrip(')"').replace("&&", " | "))
        end = next((k for k, word in enumerate(words) if word in ("|", ">", "<", "&", ";")), len(words))
        found.append(words[:end])
    return found


def accept(arguments: list[str]) -> None:
    """Let Click read a command line without running it."""
    context = click.Context(cli, info_name="nodeworthy")
    command: click.Command = cli
    while isinstance(command, click.Group):
        assert arguments, "a group needs a command"
        name, *arguments = arguments
        found = command.get_command(context, name)
        assert found is not None, f"there is no command {name!r}"
        command = found
    try:
        command.make_context("nodeworthy", arguments)
    except click.BadParameter as error:
        if "does not exist" not in str(error):  # an example's file need not be here
            raise


@each_command
def test_examples_in_help_are_valid(leaf: Leaf) -> None:
    """An example that Click refuses teaches a mistake."""
    example = re.split(r"Exit codes", leaf.command.epilog or "")[0]
    commands = commands_in(example)
    assert commands
    for arguments in commands:
        accept(arguments)


PAGES = sorted([*ROOT.glob("docs/**/*.md"), *ROOT.glob("*.md")])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_in_the_documentation_are_valid(page: Path) -> None:
    """Every command line in a console block of the documentation is one that the program accepts."""
    text = page.read_text(encoding="utf-8")
    known = {leaf.path[0] for leaf in LEAVES}
    checked = 0
    for block in re.findall(r"^```console\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL):
        shell = "\n".join(line for line in block.splitlines() if line.startswith(("$ ", "# ")))
        for arguments in commands_in(shell.replace("# ", "$ ")):
            if arguments and arguments[0] in known:
                accept(arguments)
                checked += 1
    assert checked or "$ nodeworthy" not in text or page.name in ("README.md", "CHANGELOG.md")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_in_the_documentation_lead_somewhere(page: Path) -> None:
    """A relative link points at a file that is there."""
    links = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
    broken = [link for link in links if "://" not in link and not (page.parent / link).exists()]
    assert broken == []


def test_toml_in_the_documentation_is_valid() -> None:
    """Configurations shown in the how-to are accepted, except for files that are not here."""
    from nodeworthy.errors import BadFile
    from nodeworthy.wiring.config import parse

    text = (ROOT / "docs/how-to/serve.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```toml\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)
    assert len(blocks) == 2
    for block in blocks:
        try:
            parse(block, "serve.md")
        except BadFile as error:
            assert all("is not there" in problem.message for problem in error.problems), str(error)


def _run(arguments: list[str], cache: Path) -> float:
    """CPU seconds (which others on this machine do not lengthen) of a Python that runs so."""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    environment |= {"PYTHONPATH": str(ROOT / "src"), "PYTHONPYCACHEPREFIX": str(cache)}
    before = os.times()
    subprocess.run([sys.executable, *arguments], env=environment, check=True, stdout=subprocess.DEVNULL)
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


NOUNS = sorted({leaf.path[0] for leaf in LEAVES})


@pytest.mark.parametrize("noun", ["", *NOUNS])
def test_help_takes_less_than_100_ms(noun: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    """`--help` in under 100 ms, the interpreter's start included: best of five, byte code cached as installed."""
    cache = tmp_path_factory.getbasetemp() / "pycache"
    command = ["-m", "nodeworthy.cli.main", *noun.split(), "--help"]
    _run(command, cache)  # fills the cache
    taken: list[float] = []
    while len(taken) < 5 and min(taken, default=1.0) >= 0.1:
        taken.append(_run(command, cache))
    assert min(taken) < 0.1, f"best of five: {min(taken) * 1000:.0f} ms of CPU"


@pytest.mark.parametrize("module", ["polars", "fastapi", "pydantic", "sqlalchemy", "rich", "numpy", "yaml", "asyncio"])
def test_help_imports_nothing_heavy(module: str) -> None:
    """No command's help, nor the client, imports a big library."""
    code = "import sys; import nodeworthy.cli.status, nodeworthy.cli.node, nodeworthy.cli.client; print(*sys.modules)"
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    loaded = subprocess.run([sys.executable, "-c", code], env=environment, check=True, capture_output=True, text=True)
    assert module not in loaded.stdout.split()


def advice(path: Path) -> list[str]:
    """What a source file tells people to run: texts that begin with a command, and commands in backquotes."""
    found: list[str] = []
    for part in ast.walk(ast.parse(path.read_text())):
        if isinstance(part, ast.JoinedStr):
            text = "".join(str(v.value) if isinstance(v, ast.Constant) else "X" for v in part.values)
        elif isinstance(part, ast.Constant) and isinstance(part.value, str):
            text = part.value
        else:
            continue
        found += re.findall(r"`(nodeworthy [a-z][^`]*)`", text)
        found += re.findall(r"\A(nodeworthy [a-z]+ [^`,;]*)", text)
    return [text for text in found if " -" in text and not text.endswith(" ") and not re.search(r"[…|]|\.\.\.", text)]


@pytest.mark.parametrize("path", sorted((ROOT / "src/nodeworthy").rglob("*.py")), ids=lambda path: path.stem)
def test_options_that_remedies_name_are_valid(path: Path) -> None:
    """A remedy that is a usage error leaves people alone at the worst moment."""
    for text in advice(path):
        try:
            accept(shlex.split(text)[1:])
        except click.BadParameter as error:
            filled_in = isinstance(error, click.MissingParameter) or "'X'" in str(error)
            if not filled_in:
                raise


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_indented_commands_in_the_documentation_are_valid(page: Path) -> None:
    """Blocks that are set in, as in the README, hold commands that the program accepts."""
    known = {leaf.path[0] for leaf in LEAVES}
    for line in re.findall(r"^    nodeworthy [a-z].*$", page.read_text(encoding="utf-8"), flags=re.MULTILINE):
        for arguments in commands_in(line):
            if arguments and arguments[0] in known and "…" not in line:
                accept(arguments)
