"""Sphinx's settings: the manual from the Markdown below this folder, with a plain theme and nothing from the network.

A page under reference/ names in a comment what it lists (`% generated: tables`); `generate.py` writes that part anew in
every build, so that it cannot go stale.
"""

import re
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]
import generate  # noqa: E402

from fishpool import __version__  # noqa: E402

project = "fishpool"
version = release = __version__
language = "en-gb"
extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
myst_heading_anchors = 4
nitpicky = True

html_theme = "alabaster"
html_theme_options = {
    "description": "A laboratory for social dilemmas between agents",
    "fixed_sidebar": True,
    "page_width": "72rem",
    "sidebar_width": "17rem",
    "font_family": "Georgia, serif",
    "show_powered_by": False,
}
html_sidebars = {"**": ["about.html", "searchfield.html", "navigation.html"]}
html_css_files = ["tables.css"]
html_static_path = ["static"]
html_copy_source = False
html_show_copyright = False
smartquotes = False


def fill(app: Any, page: str, source: list[str]) -> None:
    """Put what a page asks for in the place of its comment."""
    source[0] = re.sub(r"^% generated: (\w+)$", lambda mark: generate.PARTS[mark[1]](), source[0], flags=re.MULTILINE)


def setup(app: Any) -> None:
    app.connect("source-read", fill)
    app.connect("env-before-read-docs", lambda app, env, pages: pages.extend({*generated()} - {*pages}))


def generated() -> list[str]:
    """The pages with a generated part, which are read in every build."""
    pages = HERE.glob("reference/*.md")
    return [f"reference/{page.stem}" for page in pages if "\n% generated: " in page.read_text(encoding="utf-8")]
