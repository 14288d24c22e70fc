"""The pictures of the documentation's page on the report: ``python -m tests.report.pictures docs/figures``."""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from PIL import Image

import rankwise as rw
from rankwise._api import compare
from tests.report.browser import Page, find_browser

RANKERS = ("SmoothRank", "RidgeRanker", "RankSVM", "RankBoost", "lightgbm")
OPEN_A_QUERY = "document.querySelector('[data-query]').click()"
CHOOSE_A_DOCUMENT = "document.querySelector('#left-list [data-document=\"0\"]').click()"


def main(folder: Path) -> None:
    """A comparison on made lists, photographed on a desk and on a phone."""
    browser = find_browser()
    if browser is None:
        raise SystemExit("needs a browser: chromium on the path, or RANKWISE_BROWSER")
    lists = rw.make_lists(120, documents=20, random_state=1)
    bm25 = lists.X[:, (lists.feature_names or ()).index("bm25_body")]
    with TemporaryDirectory() as place:
        report = Path(place) / "report.html"
        compare({"bm25": bm25, **{name: name for name in RANKERS}}, lists, ["nDCG@10", "AP"], report=report)
        with Page(browser, width=1280, height=900) as desk:
            desk.open(report)
            take(desk, "#league", folder / "report_league.png")
            desk.run(OPEN_A_QUERY)
            desk.run(CHOOSE_A_DOCUMENT)
            take(desk, "#opened", folder / "report_query.png")
        with Page(browser, width=390, height=844) as phone:
            phone.open(report, scheme="dark")
            take(phone, "#features", folder / "report_phone.png")


def take(page: Page, place: str, path: Path) -> None:
    """What is seen with ``place`` on top, in few enough colours to be a small file."""
    page.run(f"document.querySelector('{place}').scrollIntoView({{block: 'start'}})")
    page.picture(path)
    Image.open(path).convert("RGB").quantize(256, dither=Image.Dither.NONE).save(path, optimize=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
