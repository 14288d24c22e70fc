"""Sphinx's settings. Build with ``python3 run.py docs``; a warning is an error."""

import json
import logging
import re
import sys
from pathlib import Path
from typing import Any

from docutils.nodes import Text, literal_block
from docutils.nodes import reference as reference_node
from sphinx.addnodes import pending_xref

from rankwise import __version__

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from docs.site import reference  # noqa: E402  found from the folder above

project = "rankwise"
author = "rankwise contributors"
copyright = "rankwise contributors"
version = release = __version__

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_design",
    "docs.site.formulas",
]
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

# Notebooks run at every build, in an empty folder; a cell that fails, or takes too long, fails the build.
# `python3 run.py docs -D nb_execution_mode=off` leaves them out while other pages are written.
nb_execution_mode = "force"
nb_execution_in_temp = True
nb_execution_raise_on_error = True
nb_execution_timeout = 120
nb_merge_streams = True
logging.getLogger("traitlets").setLevel(logging.WARNING)  # a line for each notebook is no news

# Docstrings are numpydoc, with the types in words; those of signatures would say it twice, and longer.
napoleon_google_docstring = False
napoleon_use_ivar = True
napoleon_attr_annotations = False
autodoc_member_order = "bysource"
autodoc_typehints = "none"
autodoc_preserve_defaults = True
autodoc_default_options = {"members": True}
maximum_signature_line_length = 100

html_theme = "furo"
pygments_dark_style = "a11y-high-contrast-dark"
html_title = "rankwise"
html_static_path = ["_static"]
html_favicon = "_static/favicon.svg"
html_css_files = ["site.css"]
html_js_files = [("versions.js", {"defer": "defer"})]
html_extra_path = ["versions.json"]
html_search_scorer = str(HERE / "site" / "scorer.js")  # what the search shows first
templates_path = ["_templates"]
html_sidebars = {
    "**": [
        "sidebar/brand.html",
        "version_switch.html",
        "sidebar/search.html",
        "sidebar/scroll-start.html",
        "sidebar/navigation.html",
        "sidebar/scroll-end.html",
    ]
}


def known_versions() -> list[dict[str, str]]:
    """The versions of docs/versions.json, and this one if it is not among them."""
    versions: list[dict[str, str]] = json.loads((HERE / "versions.json").read_text(encoding="utf-8"))
    if release not in [one["version"] for one in versions]:
        versions.insert(0, {"version": release, "folder": release})
    return versions


html_context = {"versions": known_versions()}


def one_entry_per_attribute(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Attributes that share an entry, ``low, high : float``, get one each: Sphinx would take the first for a type."""
    section, rewritten, waiting = "", [], list(lines)
    while waiting:
        line = waiting.pop(0)
        if waiting and re.fullmatch("-{3,}", waiting[0]):
            section = line
        shared = re.fullmatch(r"(\w+(?:, \w+)+)( : .+)?", line)
        if not (shared and section == "Attributes"):
            rewritten.append(line)
            continue
        meaning = []
        while waiting and (waiting[0].startswith(" ") or not waiting[0]):
            meaning.append(waiting.pop(0))
        for each in shared[1].split(", "):
            rewritten += [f"{each}{shared[2] or ''}", *meaning]
    lines[:] = rewritten


def without_routing(app: Any, what: str, name: str, obj: Any, skip: bool, options: Any) -> bool | None:
    """scikit-learn gives every estimator methods for metadata routing, which rankers have no use for."""
    routing = name == "get_metadata_routing" or (name.startswith("set_") and name.endswith("_request"))
    return True if routing else None


def whole_sentence_of_property(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Napoleon takes what stands before a colon in the first line of a property for its type; here it is a sentence."""
    if what in ("attribute", "property"):
        lines.insert(0, "")


def without_false_links(app: Any, doctree: Any) -> None:
    """No links but those that are meant.

    In ``array-like, shape (n_documents,)`` no word is a class, and Sphinx would link each to an attribute of that name;
    docutils takes nDCG@10 for an address of mail, and the address of one's own machine for one to visit.
    """
    for link in list(doctree.findall(pending_xref)):
        if link["reftype"] == "class" and link["reftarget"].rpartition(".")[2][:1].islower():
            link.replace_self(link.children)
    for link in list(doctree.findall(reference_node)):
        if link.get("refuri", "").startswith(("mailto:", "http://127.0.0.1")):
            link.replace_self(link.children)


def without_last_empty_line(app: Any, doctree: Any) -> None:
    """Examples end with an empty line, which doctest needs and readers do not."""
    for block in doctree.findall(literal_block):
        block.rawsource = block.rawsource.rstrip()
        block[:] = [Text(block.astext().rstrip())]


def setup(app: Any) -> None:
    app.connect("builder-inited", lambda app: reference.write())
    app.connect("autodoc-skip-member", without_routing)
    app.connect("autodoc-process-docstring", one_entry_per_attribute, priority=400)  # before napoleon, at 500
    app.connect("autodoc-process-docstring", whole_sentence_of_property, priority=400)
    app.connect("doctree-read", without_false_links)
    app.connect("doctree-read", without_last_empty_line)
