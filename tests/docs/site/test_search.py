"""The built search finds the page that a question is about; the questions name pages that exist."""

import pytest

from tests.docs.site.search import ENOUGH, QUESTIONS, missed
from tests.docs.site.widths import SITE
from tests.report.browser import find_browser

DOCS = SITE.parents[1] / "docs"


def why_not():
    """Why the search cannot be asked; empty if it can."""
    if find_browser() is None:
        return "needs a browser: chromium on the path, or RANKWISE_BROWSER"
    index = SITE / "searchindex.js"
    if not index.exists():
        return "needs the built pages: python3 run.py docs"
    if any(page.stat().st_mtime > index.stat().st_mtime for page in DOCS.rglob("*.md")):
        return "the built pages are older than their sources: python3 run.py docs"
    return ""


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_question_has_a_page(question):
    assert any((DOCS / f"{page}.md").exists() for page in QUESTIONS[question])


@pytest.mark.skipif(bool(why_not()), reason=why_not())
def test_the_page_of_a_question_is_among_the_first_three():
    assert len(QUESTIONS) == 20
    without = missed()
    assert len(QUESTIONS) - len(without) >= ENOUGH, without
