"""Write docs/reference/checks.md and docs/reference/signals.md from the built-in catalogue.

    PYTHONPATH=src python -m docs.generate

A test holds the pages up to date.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from nodeworthy.commands.catalogue import field_text, when
from nodeworthy.model.catalogue import Catalogue, Check, Signal

HERE = Path(__file__).parent / "reference"
NOTE = "<!-- Written by `python -m docs.generate` from src/nodeworthy/catalogue; do not edit. -->\n"


def pages(catalogue: Catalogue) -> dict[str, str]:
    """File name → text."""
    return {"checks.md": checks_page(catalogue), "signals.md": signals_page(catalogue)}


def checks_page(catalogue: Catalogue) -> str:
    parts = [
        "# Checks\n",
        NOTE,
        "Every check that is shipped, with what makes it true, what it asks for, what ends it, and where its numbers are "
        "from. The same on the command line: `nodeworthy catalogue list checks`, `nodeworthy catalogue show ID`. To "
        "write or change one see [Write your own check](../how-to/checks.md).\n",
        f"{len(catalogue.checks)} checks.\n",
    ]
    for kind in ("node", "gpu", "nic"):
        checks = [c for c in catalogue.checks.values() if c.kind == kind]
        parts.append(f"## {kind}\n")
        parts.append(
            _table(
                ["check", "severity", "asks for", "title"],
                ([f"[{c.id}](#{c.id})", c.severity, c.effect or "–", c.title] for c in checks),
            )
        )
        parts += [_check(c) for c in checks]
    return "\n".join(parts)


def _check(check: Check) -> str:
    rows = {
        "True when": f"`{when(check)}`",
        "Applies where": f"`{check.applies}`" if check.applies else "",
        "For / clears after": f"{check.for_s:g} s / {check.clear_s:g} s" if check.for_s or check.clear_s else "",
        "Severity": check.severity,
        "Asks for": check.effect or "nothing; it informs",
        "Trust": check.trust,
        "Locality": check.locality + (f"; may come from {', '.join(check.causes)}" if check.causes else ""),
        "Do": check.action,
        "Proof": check.proof,
        "Ends when": check.clears,
        "Source": check.source,
    }
    lines = [
        f"### {check.id}\n",
        f"{check.title}. {check.help}\n",
        *(f"- **{k}**: {v}" for k, v in rows.items() if v),
        "",
    ]
    return "\n".join(lines)


def signals_page(catalogue: Catalogue) -> str:
    parts = [
        "# Signals, features and expectations\n",
        NOTE,
        "What conditions may name. A signal lists its names in every source, old and new; values outside its range, "
        "blank values of the vendor, NaN and values older than its maximum age are unknown.\n",
        f"{len(catalogue.signals)} signals.\n",
    ]
    for kind in ("node", "gpu", "nic"):
        parts.append(f"## Signals of a {kind}\n")
        parts += [_signal(s) for s in catalogue.signals.values() if s.kind == kind]
    parts.append("## Features\n\nComputed from the history of a signal; unknown while the signal is unknown.\n")
    parts.append(
        _table(
            ["feature", "of", "function", "window", "what"],
            (
                [f"`{f.id}`", f"`{f.signal}`", f.function, f"{f.window_s:g} s", f.help]
                for f in catalogue.features.values()
            ),
        )
    )
    parts.append("## Expectations\n\nWhat a node class may declare; conditions see them as `class.NAME`.\n")
    parts.append(
        _table(
            ["name", "type", "unit", "what"],
            ([f"`class.{e.id}`", e.type, e.unit or "–", e.help] for e in catalogue.expectations.values()),
        )
    )
    return "\n".join(parts)


def _signal(signal: Signal) -> str:
    span = (
        f"{signal.minimum:g} to {signal.maximum:g}" if signal.minimum is not None and signal.maximum is not None else ""
    )
    facts = [
        signal.type,
        signal.unit,
        "counter (use a feature of it)" if signal.counter else "",
        span,
        f"at most {signal.max_age_s:g} s old",
    ]
    names = "\n".join(f"    - `{field_text(f)}`" for f in signal.fields)
    return f"### {signal.id}\n\n{signal.help}\n\n- {', '.join(f for f in facts if f)}\n- names:\n{names}\n- source: {signal.source}\n"


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    lines += ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]
    return "\n".join(lines) + "\n"
