"""The search of the built documentation, asked as people ask: ``python3 run.py python -m tests.docs.site.search``.

Types each question into the field of the front page in a headless browser, prints the first three pages that are
found, and exits with 1 if fewer than ``ENOUGH`` questions have their page among them.
"""

import sys
import time

from tests.docs.site.widths import SITE, open_page
from tests.report.browser import PATIENCE, Page, find_browser

ENOUGH = 18
QUESTIONS = {
    "how many queries do I need": {"plan"},
    "deploy opensearch": {"production"},
    "solr ltr export": {"production"},
    "data larger than memory": {"scale"},
    "learn from clicks": {"clicks", "notebooks/clicks"},
    "install": {"install"},
    "lightgbm model certificate": {"migrate", "notebooks/from_lightgbm"},
    "ndcg ties": {"measures"},
    "compare two rankers significance": {"compare"},
    "which ranker should I use": {"choose_ranker"},
    "custom loss": {"losses"},
    "missing values": {"features"},
    "categorical features": {"features", "boosting"},
    "explain ranking shap": {"explain"},
    "onnx": {"production"},
    "online learning": {"online"},
    "tune hyperparameters": {"choose_ranker"},
    "train on a dask cluster": {"scale"},
    "query weights": {"data"},
    "combine bm25 and vector scores": {"hybrid"},
}
TYPE = """
(() => {
  const field = document.querySelector("input[name=q]");
  field.focus();
  return document.activeElement === field;
})()
"""
FOUND = """
/finished|did not match/.test(document.querySelector("#search-results .search-summary")?.textContent ?? "")
  ? [...document.querySelectorAll("#search-results li > a")].map((link) => link.getAttribute("href"))
  : null
"""


def found(page: Page) -> list[str] | None:
    """The links of the results; None before they are all there."""
    try:
        links: list[str] | None = page.run(FOUND)
    except AssertionError as error:
        if "navigated" in str(error):  # on its way to the page of results
            return None
        raise
    return links


def answers(page: Page, question: str) -> list[str]:
    """The pages that the search finds, in its order, each once."""
    open_page(page, SITE / "index.html")
    if not page.run(TYPE):
        raise AssertionError("the front page has no field for a search")
    page.call("Input.insertText", text=question)
    for kind in ("keyDown", "keyUp"):
        page.call("Input.dispatchKeyEvent", type=kind, key="Enter", code="Enter", windowsVirtualKeyCode=13, text="\r")
    until = time.monotonic() + PATIENCE
    while (links := found(page)) is None:
        if time.monotonic() > until:
            raise AssertionError(f"no answer to {question!r} after {PATIENCE} s")
        time.sleep(0.05)
    return list(dict.fromkeys(link.partition("#")[0].partition("?")[0].removesuffix(".html") for link in links))


def missed(questions: dict[str, set[str]] = QUESTIONS) -> dict[str, list[str]]:
    """The questions whose page is not among the first three, with the three."""
    browser = find_browser()
    if browser is None:
        raise SystemExit("needs a browser: chromium on the path, or RANKWISE_BROWSER")
    with Page(browser) as page:
        first = {question: answers(page, question)[:3] for question in questions}
    return {question: pages for question, pages in first.items() if not questions[question] & set(pages)}


def main() -> int:
    without = missed()
    for question, pages in without.items():
        print(f"{question}: {', '.join(pages) or 'nothing'}, not {' or '.join(sorted(QUESTIONS[question]))}")
    right = len(QUESTIONS) - len(without)
    print(f"{right} of {len(QUESTIONS)} questions have their page among the first three")
    return 0 if right >= ENOUGH else 1


if __name__ == "__main__":
    sys.exit(main())
