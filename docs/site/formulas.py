"""Formulas of the documentation as MathML, which browsers draw by themselves.

A page needs no script and no network to show them. A formula that cannot be converted is a warning, with the place
where it stands, and ``python3 run.py docs`` fails on it.
"""

from functools import cache
from html import escape
from typing import Any

from docutils import nodes
from math_core import LatexError, LatexToMathML
from sphinx.util import logging

LOG = logging.getLogger(__name__)


@cache
def _converter() -> LatexToMathML:
    return LatexToMathML(fancy_error=False)


def mathml(latex: str, display: bool) -> str:
    """A formula as an element ``math``, in a line of text or, with ``display``, on a line of its own.

    Raises
    ------
    LatexError
        If there is a command that the converter does not know, or braces do not match.
    """
    return _converter().convert_with_local_state(latex.strip(), displaystyle=display)


def _convert(node: nodes.math | nodes.math_block, display: bool) -> str:
    latex = node.astext()
    try:
        return mathml(latex, display)
    except LatexError as error:
        LOG.warning("the formula %r is not converted to MathML: %s", latex, error, location=node)
        return f"<code>{escape(latex)}</code>"


def _visit_math(translator: Any, node: nodes.math) -> None:
    translator.body.append(_convert(node, display=False))
    raise nodes.SkipNode


def _visit_math_block(translator: Any, node: nodes.math_block) -> None:
    translator.body.append(translator.starttag(node, "div", CLASS="math notranslate"))
    translator.body.append(_convert(node, display=True))
    translator.body.append("</div>\n")
    raise nodes.SkipNode


def setup(app: Any) -> dict[str, bool]:
    """Register the renderer; Sphinx prefers it to MathJax, which it knows by default."""
    app.add_html_math_renderer("mathml", (_visit_math, None), (_visit_math_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
