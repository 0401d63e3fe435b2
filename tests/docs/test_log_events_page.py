"""The reference page of log events is what the data say."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from nodeworthy.adapters.files.log_rules import built_in

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "reference" / "log-events.md"


def test_page_is_up_to_date() -> None:
    """`python -m docs.generate` would change nothing."""
    code = "import runpy; print(runpy.run_path('docs/generate_log_events.py')['page'](), end='')"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env={"PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == PAGE.read_text("utf-8")


def test_page_names_every_rule() -> None:
    """No rule is missing."""
    text = PAGE.read_text("utf-8")
    assert all(f"| `{rule['id']}` |" in text for rule in built_in()["rules"])
