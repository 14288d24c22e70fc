"""The report in a browser: it draws, sorts, finds, opens, saves, turns dark, prints, stays narrow, asks nobody."""

import csv
import io
import time

import numpy as np
import pytest

import rankwise as rw
from rankwise.report.page import write_report
from tests.report.browser import Page, find_browser
from tests.report.conftest import HOSTILE

BROWSER = find_browser()
pytestmark = pytest.mark.skipif(BROWSER is None, reason="needs a browser: chromium on the path, or RANKWISE_BROWSER")


@pytest.fixture(scope="module")
def report(comparison, tmp_path_factory):
    path = tmp_path_factory.mktemp("browser") / "report.html"
    names = comparison.queries.names()
    docid = [str(one) for one in comparison.queries.docid]
    write_report(
        comparison,
        path,
        # the first document has no title
        documents={
            one: {"title": f"Title of {one}", "text": f"word{place}"} for place, one in enumerate(docid) if place
        },
        queries={name: f"text number{place} of it" for place, name in enumerate(names)},
        slices={"parity": {name: "odd" if place % 2 else "even" for place, name in enumerate(names)}},
    )
    return path


@pytest.fixture(scope="module")
def wide(report):
    with Page(BROWSER) as page:
        page.open(report)
        yield page


@pytest.fixture(scope="module")
def narrow(report):
    with Page(BROWSER, width=390, height=844) as page:
        page.open(report, scheme="dark")
        yield page


@pytest.fixture(autouse=True)
def quiet(request):
    """Whatever a test did, the page complained of nothing, asked for nothing, and ran nobody else's code."""
    yield
    for name in {"wide", "narrow"} & set(request.fixturenames):
        page = request.getfixturevalue(name)
        assert page.run("window.broken") is None
        assert page.errors == []
        assert [url.partition(":")[0] for url in page.requests] == ["file"]


def test_every_figure_is_drawn(wide):
    figures = "[...document.querySelectorAll('.figure')]"
    assert wide.run(f"{figures}.every(one => one.querySelector('svg .series, svg .cell'))")
    assert wide.run(f"{figures}.every(one => one.querySelector('svg').getAttribute('aria-label').length > 10)")


def test_a_phone_shows_the_recommendation_and_every_verdict(narrow):
    box = "(one => { const box = one.getBoundingClientRect(); return [box.left, box.right, box.bottom]; })"
    left, right, bottom = narrow.run(f"{box}(document.querySelector('.take'))")
    assert left >= 0
    assert right <= 390
    assert bottom <= 844  # without scrolling
    places = narrow.run(f"[...document.querySelectorAll('#results .verdict')].map({box})")
    assert places
    assert all(right <= 390 for _, right, _ in places)


def test_the_chart_of_queries_opens_on_the_ranker_to_take(wide, comparison):
    shown = wide.run("numbers.recommendation.shown")
    assert shown != comparison.baseline
    assert wide.run("numbers.rankers[chosenRanker()]") == shown
    assert wide.run("byId('changes-title').textContent").startswith(f"nDCG@5: {shown} minus ")


def test_small_groups_are_faded(wide):
    """Both groups of the slice have 12 queries."""
    assert wide.run("document.querySelectorAll('#slices tbody tr:not(.few)').length") == 0
    assert float(wide.run("getComputedStyle(document.querySelector('#slices tr.few td')).opacity")) < 1
    assert float(wide.run("getComputedStyle(document.querySelector('#slices .dot.few')).opacity")) < 1


@pytest.mark.parametrize("width", ["wide", "narrow"])
def test_nothing_of_a_figure_leaves_its_place(request, width):
    page = request.getfixturevalue(width)
    outside = (
        "[...document.querySelectorAll('.figure svg')].flatMap(one => { const place = one.getBoundingClientRect();"
        " return [...one.querySelectorAll('text, .dot, .line, .cell')].filter(two => {"
        " const box = two.getBoundingClientRect();"
        " return box.left < place.left - 1 || box.right > place.right + 1 || box.bottom > place.bottom + 1;"
        " }).map(two => two.outerHTML); })"
    )
    assert page.run(outside) == []


def test_the_pointer_is_told_what_a_mark_is(wide):
    wide.run("document.querySelector('[data-figure=cutoffs-0]').scrollIntoView({block: 'center'})")
    dot = wide.run(
        "(() => { const box = document.querySelector('[data-figure=cutoffs-0] .dot').getBoundingClientRect();"
        " return [box.left + box.width / 2, box.top + box.height / 2]; })()"
    )
    wide.call("Input.dispatchMouseEvent", type="mouseMoved", x=dot[0], y=dot[1])
    tip = "document.querySelector('[data-figure=cutoffs-0] .tip')"
    assert not wide.run(f"{tip}.hidden")
    assert wide.run(f"{tip}.textContent").startswith("ridge: 1: 0.")


def test_the_numbers_of_a_figure_are_a_table(wide, comparison):
    wide.run("document.querySelector('[data-figure=cutoffs-0] + details').open = true")
    wide.run("new Promise(done => setTimeout(done, 50))")
    rows = "document.querySelectorAll('[data-figure=cutoffs-0] + details tbody tr').length"
    assert wide.run(rows) == 20 * len(comparison.rankers)


def test_names_of_strangers_are_seen_as_they_are(wide):
    assert wide.run("document.querySelectorAll('main a[href^=javascript], main img').length") == 0
    assert wide.run("document.querySelectorAll('.figure a').length") == 0
    shown = wide.run("[...document.querySelectorAll('.results td.name')].map(one => one.textContent)")
    assert HOSTILE[0] in shown
    ticks = wide.run(
        "[...document.querySelectorAll('[data-figure=weights] .ytick')].map(one => one.textContent).join()"
    )
    assert "<img src=x" in ticks


def test_a_table_sorts_by_its_headers_and_by_the_keyboard(wide):
    seconds = "[...document.querySelectorAll('.results tbody tr')].slice(0, 5).map(row => row.cells[0].textContent)"
    head = "[...document.querySelector('.results').tHead.rows[0].cells].find(one => one.textContent === 'Ranker')"
    wide.run(f"{head}.querySelector('button').focus()")
    for kind in ("keyDown", "keyUp"):
        wide.call("Input.dispatchKeyEvent", type=kind, key="Enter", code="Enter", text="\r", windowsVirtualKeyCode=13)
    assert wide.run(f"{head}.getAttribute('aria-sort')") == "ascending"
    names = wide.run(seconds)
    assert names == sorted(names, key=str.casefold)
    wide.run(f"{head}.querySelector('button').click()")
    assert wide.run(seconds) == names[::-1]
    mean = head.replace("Ranker", "Mean")
    wide.run(f"{mean}.querySelector('button').click()")
    values = wide.run(
        "[...document.querySelectorAll('.results')[0].tBodies[0].rows].map(one => +one.cells[1].textContent)"
    )
    assert values == sorted(values, reverse=True)


def test_queries_follow_the_ranker_and_the_measure_that_are_chosen(wide, comparison):
    wide.run("document.getElementById('of-ranker').value = '1'")
    wide.run("document.getElementById('of-measure').value = '1'")
    wide.run("document.getElementById('of-measure').dispatchEvent(new Event('change'))")
    rows = "[...document.querySelectorAll('#query-table tbody tr')]"
    found = dict(wide.run(f"{rows}.map(row => [0, 1].map(column => row.cells[column].dataset.value))"))
    table = comparison.per_query("AP")
    for name, base, own in zip(table["qid"], table["ridge"], table["boosted"], strict=True):
        if own == own:
            assert float(found[str(name)]) == pytest.approx(own - base, abs=1e-3)
    assert "boosted minus ridge" in wide.run("document.getElementById('changes-title').textContent")


def test_a_query_opens_with_two_lists_and_a_document_with_its_features(wide, comparison):
    name = wide.run("document.querySelector('[data-query]').textContent")
    wide.run("document.querySelector('[data-query]').click()")
    assert not wide.run("document.getElementById('opened').hidden")
    assert wide.run("document.activeElement.id") == "opened"
    wide.run("document.getElementById('left').value = '0'; document.getElementById('right').value = '4'")
    wide.run("document.getElementById('right').dispatchEvent(new Event('change'))")
    number = comparison.queries.names().index(name)
    rows = comparison.queries.rows_of(number)
    docid = [str(one) for one in comparison.queries.docid[rows]]
    for side, ranker in (("left", "ridge"), ("right", "first feature")):
        order = (-comparison.scores[ranker][rows]).argsort(kind="stable")
        listed = f"[...document.querySelectorAll('#{side}-list [data-document]')].map(one => one.textContent)"
        first = comparison.queries.docid[0]
        titles = [one if one == first else f"Title of {one}" for one in docid]
        assert wide.run(listed) == [titles[place] for place in order]
    wide.run("document.querySelector('#right-list [data-document]').click()")
    assert wide.run("document.querySelectorAll('.pair tr.chosen').length") == 2
    assert wide.run("document.querySelectorAll('#left-parts tbody tr').length") > 0
    assert "no sum over features" in wide.run("document.getElementById('right-parts').textContent")
    wide.run("document.getElementById('close').click()")
    assert wide.run("document.getElementById('opened').hidden")
    assert wide.run("document.activeElement.textContent") == name


def test_an_opened_query_says_why_the_first_document_is_above_the_second(wide, comparison):
    wide.run("document.querySelector('[data-query]').click()")
    wide.run("document.getElementById('left').value = '0'; document.getElementById('right').value = '2'")
    wide.run("document.getElementById('right').dispatchEvent(new Event('change'))")
    name = wide.run("document.getElementById('opened-title').textContent").removeprefix("Query ")
    query = comparison.queries[comparison.queries.names().index(name)]
    docid = [str(one) for one in query.docid]
    first, second = (wide.run(f"opened.query.docid[opened.{which}]") for which in ("document", "versus"))
    fold = int(comparison.fold_of_query[comparison.queries.names().index(name)]) - 1
    for side, ranker in (("left", "ridge"), ("right", "boosted")):
        why = rw.explain(comparison.models[ranker][fold], query, docid.index(first), docid.index(second))
        head = wide.run(f"document.querySelector('#{side}-parts h4').textContent").replace("\u2212", "-")
        assert float(head.partition(": ")[2].partition(",")[0]) == pytest.approx(why.difference, abs=6e-4)
        parts = wide.run(f"compared(opened.query, opened.document, opened.versus, '{ranker}')")
        expected = {name: part for name, part in zip(why.features, why.contribution, strict=True) if part}
        assert {one["name"]: one["part"] for one in parts} == pytest.approx(expected, rel=1e-9, abs=1e-12)
        rows = f"[...document.querySelectorAll('#{side}-parts tbody tr')].map(one => one.cells[0].textContent)"
        assert len(wide.run(rows)) == np.count_nonzero(why.contribution)
    wide.run("document.getElementById('versus').value = ''")
    wide.run("document.getElementById('versus').dispatchEvent(new Event('change'))")
    assert "the average document" in wide.run("document.getElementById('document-title').textContent")
    wide.run("document.getElementById('close').click()")


def test_the_theme_follows_the_system_and_the_button_turns_figures_too(narrow, wide):
    color = "getComputedStyle(document.body).backgroundColor"
    text = "getComputedStyle(document.querySelector('.figure .xtick')).fill"
    assert narrow.run("document.getElementById('theme').textContent") == "Light"
    dark = narrow.run(color), narrow.run(text)
    light = wide.run(color), wide.run(text)
    assert dark[0] != light[0]
    assert dark[1] != light[1]
    narrow.run("document.getElementById('theme').click()")
    assert (narrow.run(color), narrow.run(text)) == light
    narrow.run("document.getElementById('theme').click()")
    assert (narrow.run(color), narrow.run(text)) == dark


def test_a_phone_scrolls_no_page_sideways(narrow):
    narrow.run("document.querySelectorAll('details').forEach(one => { one.open = true; })")
    narrow.run("document.querySelector('[data-query]').click()")
    narrow.run("document.querySelector('#left-list [data-document]').click()")
    assert narrow.run("window.innerWidth") == 390
    assert narrow.run("document.documentElement.scrollWidth") <= 390
    wider = (
        "[...document.querySelectorAll('main > section > *')].filter(one => one.getBoundingClientRect().right > 391)"
    )
    assert narrow.run(f"{wider}.map(one => one.outerHTML.slice(0, 80))") == []
    # every table that is wider than the page scrolls inside a box of its own
    loose = "[...document.querySelectorAll('table')].filter(one => !one.closest('.box')).length"
    assert narrow.run(loose) == 0


def test_a_query_is_found_by_its_id_its_text_and_its_documents(wide, comparison):
    rows = "[...document.querySelectorAll('#query-table tbody tr')]"
    shown = f"{rows}.filter(one => !one.hidden).map(one => one.cells[0].dataset.value)"
    names, queries = [str(one) for one in comparison.queries.names()], comparison.queries

    def find(text):
        wide.run("document.getElementById('find').focus(); document.getElementById('find').select()")
        wide.call("Input.insertText", text=text)
        return wide.run(shown)

    assert find(names[5]) == [names[5]]
    assert wide.run("document.getElementById('found').textContent") == f"1 of {len(names)} queries"
    assert find("NUMBER7 of") == [names[7]]
    row = int(np.arange(queries.n_documents)[queries.rows_of(9)][0])
    assert names[9] in find(f"word{row}")
    assert find("no such thing") == []
    wide.run("document.getElementById('find').value = ''; findQueries()")
    assert len(wide.run(shown)) == len(names)


def saved(page, name, folder):
    """The rows of the file that the button of a table saves."""
    page.call("Page.setDownloadBehavior", behavior="allow", downloadPath=str(folder))
    page.run(f"[...document.querySelectorAll('[data-save]')].find(one => one.dataset.save === {name!r}).click()")
    until = time.monotonic() + 20
    while not (files := [one for one in folder.iterdir() if one.suffix == ".csv"]):
        assert time.monotonic() < until, "no file came"
        page.run("new Promise(done => setTimeout(done, 20))")
    text = files[0].read_bytes().decode("utf-8")
    assert text.endswith("\r\n")
    return list(csv.reader(io.StringIO(text, newline="")))


def test_a_table_is_saved_with_every_digit(wide, comparison, tmp_path):
    head, *rows = saved(wide, "results AP", tmp_path)
    table = comparison.table("AP")
    assert head[:4] == ["ranker", "mean", "low", "high"]
    assert [row[0] for row in rows] == table["ranker"].tolist()
    for place, column in ((1, "AP"), (2, "low"), (3, "high")):
        assert [float(row[place]) for row in rows] == table[column].tolist()


def test_the_queries_are_saved_with_every_digit(wide, comparison, tmp_path):
    head, *rows = saved(wide, "queries", tmp_path)
    measure, other = (wide.run(f"numbers.{one}") for one in ("measures[chosenMeasure()]", "rankers[chosenRanker()]"))
    assert head == ["query", "text", "change", f"{measure} {other}", f"{measure} ridge", "documents", "fold"]
    table = comparison.per_query(measure)
    expected = dict(zip(map(str, table["qid"]), zip(table[other], table["ridge"], strict=True), strict=True))
    assert {row[0].removeprefix("'") for row in rows} == set(expected)
    for row in rows:
        own, base = expected[row[0].removeprefix("'")]
        if own == own:
            assert (float(row[3]), float(row[4])) == (own, base)


def test_a_cell_that_would_be_a_formula_is_text_and_quotes_are_doubled(wide):
    cells = ["=1+1", "+1", "-1", "@a", "\tb", 'say "a", b', "two\nlines", "plain", -0.5, None, 1e-300]
    line = wide.run(f"csvOf({{columns: ['a'], rows: [{str(cells).replace('None', 'null')}]}})")
    assert line == ('a\r\n\'=1+1,\'+1,\'-1,\'@a,\'\tb,"say ""a"", b","two\nlines",plain,-0.5,,1e-300\r\n')


def test_paper_is_light_and_shows_what_was_closed(wide):
    wide.run("document.getElementById('theme').click()")
    closed = "document.querySelectorAll('details:not([open], .numbers, .closed-in-print)').length"
    widths = "[...document.querySelectorAll('.figure svg')].map(one => one.getBoundingClientRect().width)"
    whole = wide.run(f"Math.max(...{widths})")
    look = f"seen.push(theme(), {closed}, Math.max(...{widths}) < 690)"  # 180 mm of paper
    wide.run(f"window.seen = []; addEventListener('beforeprint', () => {look})")
    before = wide.run("document.querySelectorAll('details[open]').length")
    assert wide.print().startswith(b"%PDF")
    assert wide.run("seen") == ["light", 0, True]
    assert wide.run(f"Math.max(...{widths})") == whole > 690
    assert wide.run("theme()") == "dark"
    assert wide.run("document.querySelectorAll('details[open]').length") == before
    wide.run("document.getElementById('theme').click()")
