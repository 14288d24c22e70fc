"""Formulas of the documentation become MathML, and one that cannot is refused."""

import html
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from math_core import LatexError

import docs.site.formulas
from docs.site.formulas import mathml

ROOT = Path(__file__).parents[3]
INLINE = r":math:`([^`]+)`"
BLOCK = r"^( *)\.\. math::(.*(?:\n(?:\1 +.*|(?=\n\1 +)))*)"


def formulas():
    """Every formula of the pages and of the docstrings, and whether it stands on a line of its own."""
    for path in sorted((ROOT / "src").rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        yield from ((found, False) for found in re.findall(INLINE, text))
        yield from ((found, True) for _, found in re.findall(BLOCK, text, re.MULTILINE))
    for path in sorted((ROOT / "docs").rglob("*.md")):
        yield from ((found, True) for found in re.findall(r"^\$\$(.+?)\$\$", path.read_text(encoding="utf-8"), re.M))


FORMULAS = sorted(set(formulas()))


def parsed(text):
    """An element of HTML; the parser of XML knows five of HTML's names of characters."""
    return ElementTree.fromstring(re.sub(r"&(?!lt;|gt;|amp;)\w+;", lambda name: html.unescape(name[0]), text))


def test_there_are_formulas():
    assert len(FORMULAS) > 40
    assert [latex for latex, _ in FORMULAS if not latex.strip()] == []


@pytest.mark.parametrize(("latex", "display"), FORMULAS)
def test_every_formula_is_converted(latex, display):
    drawn = parsed(mathml(latex, display))
    assert drawn.tag == "math"
    assert drawn.get("display", "inline") == ("block" if display else "inline")
    assert len(drawn) > 0


def test_the_parts_of_a_formula_are_there():
    drawn = parsed(mathml(r"\frac{1}{n} \sum_q \sqrt{x_q}", display=True))
    found = {part.tag for part in drawn.iter()}
    assert {"mfrac", "msqrt", "msub", "munder"} <= found
    assert "".join(drawn.itertext()) == "1n∑qxq"


@pytest.mark.parametrize("latex", [r"\nosuchcommand x", r"\frac{1}{2", "x_"])
def test_a_formula_that_cannot_be_converted_is_refused(latex):
    with pytest.raises(LatexError):
        mathml(latex, display=False)


def test_a_build_warns_of_a_formula_that_cannot_be_converted(tmp_path):
    from sphinx.application import Sphinx

    (tmp_path / "index.rst").write_text("x\n=\n\n:math:`a < b` and :math:`\\nosuch`\n\n.. math:: c^2\n")
    (tmp_path / "conf.py").write_text(f"extensions = [{docs.site.formulas.__name__!r}]\n")
    with open(tmp_path / "warnings", "w+") as warnings:
        folders = (tmp_path, tmp_path, tmp_path / "out", tmp_path / "trees")
        Sphinx(*folders, "html", status=None, warning=warnings).build()
        warnings.seek(0)
        said = warnings.read()
    page = (tmp_path / "out" / "index.html").read_text()
    assert "index.rst:4: WARNING" in said
    assert "nosuch" in said
    assert page.count("<math") == 2
    assert "<code>\\nosuch</code>" in page
    assert "mathjax" not in page.lower()
