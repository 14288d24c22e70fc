"""The status page in a browser: it draws, follows the model, stays narrow, turns dark, and asks nobody else."""

import time

import numpy as np
import pytest

import rankwise as rw
from rankwise.serve.app import make_app
from rankwise.serve.service import Service
from rankwise.serve.structs import ExperimentRequest, Feedback, RankRequest
from rankwise.serve.tokens import Tokens, add_token
from tests.report.browser import Page, find_browser
from tests.serve.running import IDS, lists, saved, serving

BROWSER = find_browser()
needs_browser = pytest.mark.skipif(BROWSER is None, reason="needs a browser: chromium on the path, or RANKWISE_BROWSER")


def busy(folder, count=120):
    """A service with something to show."""
    service = Service(folder / "state.db", saved(folder) | saved(folder, "fixed", rw.LinearModel.of(np.eye(3)[0])))
    service.experiment(ExperimentRequest("test", "shadow", "news", "fixed")).result(10)
    for _ in range(2):
        service.log.call(lambda: None).result(10)
    for number, (X, y) in enumerate(lists(count)):
        shown = service.rank(RankRequest(ids=IDS), X)
        service.feedback(Feedback(f"event {number}", shown.ranking, grades=y)).result(10)
        if number % 4 == 0:
            service.log.call(lambda: None).result(10)
    for _ in range(2):
        service.log.call(lambda: None).result(10)
    return service


def defined(count):
    """Lists on which the measure is defined: those with a relevant document."""
    return sum(any(y) for _, y in lists(count))


def test_everything_that_the_page_draws_is_there(tmp_path):
    service = busy(tmp_path, 20)
    found = make_app(service).api.status_of()
    service.close()
    assert len(found["models"][0]["curve"]) >= 3
    assert found["models"][0]["ledger"].curve[-1][0] == 21
    assert found["experiments"][0].difference.n == defined(20)


@needs_browser
@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_the_page_draws_what_the_service_knows(tmp_path, width, scheme):
    with serving(busy(tmp_path)) as url, Page(BROWSER, width=width, height=844) as page:
        page.open(f"{url}/", scheme=scheme)
        assert page.run("document.querySelectorAll('#measure svg path.band').length") == 1
        assert page.run("document.querySelectorAll('#loss svg path').length") == 2
        rows = "[...document.querySelectorAll('#models tbody tr')].map(row => row.cells[0].textContent)"
        assert page.run(rows) == ["news (default)", "fixed"]
        assert page.run("document.querySelector('#experiments tbody tr').cells[4].textContent") == str(defined(120))
        assert "nDCG@10 of what news showed" in page.run("document.getElementById('measure-title').textContent")
        assert page.run("document.documentElement.scrollWidth") <= width
        light = page.run("getComputedStyle(document.body).backgroundColor")
        assert (light == "rgb(246, 247, 249)") == (scheme == "light")
        page.run("document.getElementById('model').value = 'fixed'")
        page.run("document.getElementById('model').dispatchEvent(new Event('change'))")
        until = time.monotonic() + 20
        while "what fixed showed" not in page.run("document.getElementById('measure-title').textContent"):
            assert time.monotonic() < until
            time.sleep(0.05)
        assert "nothing to draw yet" in page.run("document.getElementById('measure').textContent")
        assert page.errors == []
        assert {one.split("/")[2] for one in page.requests} == {url.removeprefix("http://")}


@needs_browser
@pytest.mark.thorough
def test_the_page_asks_for_a_token_where_one_is_needed(tmp_path, monkeypatch):
    secret = add_token(tmp_path / "tokens", "eye", ["read"])
    with serving(busy(tmp_path, 20), Tokens(tmp_path / "tokens")) as url, Page(BROWSER) as page:
        monkeypatch.setattr("tests.report.browser.PATIENCE", 3)
        with pytest.raises(AssertionError, match="not ready"):
            page.open(f"{url}/")
        assert not page.run("document.getElementById('ask').hidden")
        page.run(f"document.getElementById('token').value = '{secret}'")
        page.run("document.querySelector('#ask button').click()")
        until = time.monotonic() + 20
        while page.run("document.documentElement.dataset.ready") != "yes":
            assert time.monotonic() < until
            time.sleep(0.05)
        assert page.run("document.getElementById('ask').hidden")
