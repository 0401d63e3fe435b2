"""An audit as one HTML file: nothing is fetched, nothing runs, it can be mailed and printed."""

from __future__ import annotations

import hashlib
from importlib import resources

from jinja2 import Environment
from markupsafe import Markup

from nodeworthy.commands.audit_render.pictures import pictures
from nodeworthy.commands.audit_render.sections import answer, heading, sections
from nodeworthy.reports.audit.report import Audit

MOST_ROWS = 1000


def document(audit: Audit) -> str:
    """The whole page. Everything from outside is escaped by the template; only our own SVG is markup."""
    source = resources.files("nodeworthy.commands.audit_render").joinpath("audit.html.j2").read_text(encoding="utf-8")
    template = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True).from_string(source)
    first, second = answer(audit)
    drawn: dict[str, list[dict[str, object]]] = {}
    for number, picture in enumerate(pictures(audit)):
        svg = _own_ids(picture.svg, f"p{number}")
        drawn.setdefault(picture.section, []).append({"svg": Markup(svg), "of": picture})
    return template.render(
        audit=audit, heading=heading(audit), first=first, second=second, sections=sections(audit), pictures=drawn,
        most=MOST_ROWS,
    )  # fmt: skip


def _own_ids(svg: str, prefix: str) -> str:
    """Ids are unique in a page, and matplotlib numbers them anew in every picture."""
    tag = prefix + hashlib.sha256(svg.encode()).hexdigest()[:6]
    for mark in ('id="', "url(#", 'href="#'):
        svg = svg.replace(mark, f"{mark}{tag}-")
    return svg
