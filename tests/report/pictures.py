"""The pictures of the documentation's page on the report: ``python -m tests.report.pictures docs/figures``."""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from PIL import Image

import rankwise as rw
from rankwise import compare
from rankwise.report.page import write_report
from tests.report.browser import Page, find_browser

RANKERS = ("SmoothRank", "RidgeRanker", "RankSVM", "RankBoost", "lightgbm")
WORDS = "query_words"  # a feature that is the same for all documents of a query
OPEN_A_QUERY = "document.querySelector('[data-query]').click()"
LEFT_IS_LINEAR = "byId('left').value = String(numbers.rankers.indexOf('RidgeRanker')); fillLists()"


def main(folder: Path) -> None:
    """A comparison on made lists, photographed on a desk and on a phone."""
    browser = find_browser()
    if browser is None:
        raise SystemExit("needs a browser: chromium on the path, or RANKWISE_BROWSER")
    lists = rw.make_lists(120, documents=20, random_state=1)
    bm25 = lists.X[:, (lists.feature_names or ()).index("bm25_body")]
    with TemporaryDirectory() as place:
        report = Path(place) / "report.html"
        found = compare({"bm25": bm25, **{name: name for name in RANKERS}}, lists, ["nDCG@10", "AP"])
        words = (lists.feature_names or ()).index(WORDS)
        slices = {
            "words of the query": lambda query: int(query.X[0, words]),
            "has a perfect document": lambda query: bool((query.y == 4).any()),
        }
        write_report(found, report, slices=slices)
        with Page(browser, width=1280, height=900) as desk:
            desk.open(report)
            take(desk, "#results", folder / "report_league.png")
            take(desk, "#slices", folder / "report_slices.png")
        with Page(browser, width=1280, height=1260) as desk:
            desk.open(report)
            desk.run(OPEN_A_QUERY)
            desk.run(LEFT_IS_LINEAR)
            take(desk, "#opened", folder / "report_query.png")
        with Page(browser, width=390, height=844) as phone:
            phone.open(report, scheme="dark")
            take(phone, "#features", folder / "report_phone.png")


def take(page: Page, place: str, path: Path) -> None:
    """What is seen with ``place`` on top, in few enough colors to be a small file."""
    page.run(f"document.querySelector('{place}').scrollIntoView({{block: 'start'}})")
    page.picture(path)
    Image.open(path).convert("RGB").quantize(256, dither=Image.Dither.NONE).save(path, optimize=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
