"""The report in a browser: it draws, sorts, opens, turns dark, prints, stays narrow, and asks nothing of anybody."""

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
    write_report(comparison, path)
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
        assert [url.partition(":")[0] for url in page.requests if not url.startswith("data:image/png")] == ["file"]


def test_every_figure_is_drawn(wide):
    assert wide.run("[...document.querySelectorAll('.figure')].every(one => one.querySelector('svg.main-svg'))")


def test_names_of_strangers_are_seen_as_they_are(wide):
    assert wide.run("document.querySelectorAll('main a[href^=javascript], main img').length") == 0
    assert wide.run("document.querySelectorAll('.figure a').length") == 0
    shown = wide.run("[...document.querySelectorAll('.league td.name')].map(one => one.textContent)")
    assert HOSTILE[0] in shown
    ticks = wide.run(
        "[...document.querySelectorAll('[data-figure=weights] .ytick')].map(one => one.textContent).join()"
    )
    assert "<img src=x" in ticks


def test_a_table_sorts_by_its_headers_and_by_the_keyboard(wide):
    seconds = "[...document.querySelectorAll('.league tbody tr')].slice(0, 5).map(row => row.cells[0].textContent)"
    head = "[...document.querySelector('.league').tHead.rows[0].cells].find(one => one.textContent === 'Ranker')"
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
        "[...document.querySelectorAll('.league')[0].tBodies[0].rows].map(one => +one.cells[1].textContent)"
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
    assert "boosted less ridge" in wide.run("document.getElementById('changes-title').textContent")


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
        assert wide.run(listed) == [docid[place] for place in order]
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
        assert float(head.partition(": ")[2].partition(",")[0]) == pytest.approx(why.difference, rel=2e-3, abs=2e-3)
        rows = f"[...document.querySelectorAll('#{side}-parts tbody tr')].map(one => one.cells[0].textContent)"
        assert len(wide.run(rows)) == np.count_nonzero(why.contribution)
    wide.run("document.getElementById('versus').value = ''")
    wide.run("document.getElementById('versus').dispatchEvent(new Event('change'))")
    assert "the average document" in wide.run("document.getElementById('document-title').textContent")
    wide.run("document.getElementById('close').click()")


def test_the_theme_follows_the_system_and_the_button_turns_figures_too(narrow, wide):
    colour = "getComputedStyle(document.body).backgroundColor"
    text = "document.querySelector('.figure .xtick text').style.fill"
    assert narrow.run("document.getElementById('theme').textContent") == "Light"
    dark = narrow.run(colour), narrow.run(text)
    light = wide.run(colour), wide.run(text)
    assert dark[0] != light[0]
    assert dark[1] != light[1]
    narrow.run("document.getElementById('theme').click()")
    assert (narrow.run(colour), narrow.run(text)) == light
    narrow.run("document.getElementById('theme').click()")
    assert (narrow.run(colour), narrow.run(text)) == dark


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


def test_paper_is_light_and_shows_what_was_closed(wide):
    wide.run("document.getElementById('theme').click()")
    closed = "document.querySelectorAll('details.opened-in-print:not([open])').length"
    widths = "[...document.querySelectorAll('.figure svg.main-svg')].map(one => one.getBoundingClientRect().width)"
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
