"""Sphinx's settings. Build with ``python3 run.py docs``; a warning is an error."""

import re
from itertools import pairwise
from typing import Any

from rankwise import __version__

project = "rankwise"
author = "rankwise contributors"
copyright = "rankwise contributors"
version = release = __version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.mathjax"]
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

# Docstrings are numpydoc, and a parameter's line says what it means; the types of arrays, spelt out, would bury it.
napoleon_google_docstring = False
napoleon_use_ivar = True
napoleon_attr_annotations = False
autodoc_member_order = "bysource"
autodoc_typehints = "none"
autodoc_preserve_defaults = True
autodoc_default_options = {"members": True}
maximum_signature_line_length = 100

html_theme = "furo"
html_title = f"rankwise {release}"


def meaning_below_name(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Docstrings here say ``name : meaning`` in one line, where numpydoc has ``name : type`` and the meaning below."""
    section, rewritten = "", []
    for line, below in pairwise([*lines, ""]):
        if re.fullmatch("-{3,}", below):
            section = line
        entry = re.fullmatch(r"(\S.*?) : (.+)", line)
        if entry and section in ("Parameters", "Attributes"):
            # Two attributes that share a meaning get an entry each: Sphinx would take the first for the other's type.
            names = entry[1].split(", ") if section == "Attributes" else [entry[1]]
            for each in names:
                rewritten += [each, f"    {entry[2]}"]
        else:
            rewritten.append(line)
    lines[:] = rewritten


def without_routing(app: Any, what: str, name: str, obj: Any, skip: bool, options: Any) -> bool | None:
    """scikit-learn gives every estimator methods for metadata routing, which rankers have no use for."""
    routing = name == "get_metadata_routing" or (name.startswith("set_") and name.endswith("_request"))
    return True if routing else None


def setup(app: Any) -> None:
    app.connect("autodoc-skip-member", without_routing)
    app.connect("autodoc-process-docstring", meaning_below_name, priority=400)  # before napoleon, at 500
