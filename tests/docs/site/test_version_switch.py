"""The version switch in a browser: with the list of a site, without one, and from the disk."""

import json
import threading
import time
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import jinja2
import pytest

from tests.report.browser import Page, find_browser

DOCS = Path(__file__).parents[3] / "docs"
BROWSER = find_browser()
pytestmark = pytest.mark.skipif(BROWSER is None, reason="needs a browser: chromium on the path, or RANKWISE_BROWSER")
OPTIONS = "[...document.querySelectorAll('#version-switch option')].map((one) => one.textContent)"
CHOOSE = (
    "choice = document.getElementById('version-switch'); choice.value = '{}'; choice.dispatchEvent(new Event('change'))"
)


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


def write_version(site, version, pages, known):
    """The pages of one version as Sphinx makes them, as far as the switch is concerned."""
    template = jinja2.Template((DOCS / "_templates" / "version_switch.html").read_text())
    for page in pages:
        root = "../" * page.count("/") or "./"
        drawn = template.render(release=version, content_root=root, pagename=page, versions=known)
        path = site / version / f"{page}.html"
        path.parent.mkdir(parents=True, exist_ok=True)
        script = (DOCS / "_static" / "versions.js").read_text()
        path.write_text(
            f'<html data-ready="yes"><title>{version} {page}</title>{drawn}<script>{script}</script></html>'
        )


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Version 1 knew of itself alone when it was built; 2 has no page ``old``."""
    folder = tmp_path_factory.mktemp("site")
    first, second = {"version": "1.0", "folder": "1.0"}, {"version": "2.0", "folder": "2.0"}
    write_version(folder, "1.0", ["index", "old", "api/data"], [first])
    write_version(folder, "2.0", ["index", "api/data"], [second, first])
    (folder / "versions.json").write_text(json.dumps([second, first]))
    write_version(folder / "alone", "1.0", ["index"], [first])
    return folder


@pytest.fixture(scope="module")
def address(site):
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=site)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture(scope="module")
def browser():
    with Page(BROWSER) as page:
        yield page


def becomes(page, code, wanted):
    """Whether an expression has this value soon."""
    until = time.monotonic() + 20
    while page.run(code) != wanted:
        assert time.monotonic() < until, page.run(code)
        time.sleep(0.05)
    return True


def test_an_old_page_learns_of_newer_versions_from_the_site(browser, address):
    browser.open(f"{address}/1.0/api/data.html")
    assert becomes(browser, OPTIONS, ["2.0", "1.0"])
    assert browser.run("document.getElementById('version-switch').value") == "1.0"
    assert not browser.run("document.getElementById('version-switch').disabled")


@pytest.mark.parametrize(("page", "place"), [("api/data", "/2.0/api/data.html"), ("old", "/2.0/index.html")])
def test_the_same_page_of_the_other_version_is_opened_or_its_front_page(browser, address, page, place):
    browser.open(f"{address}/1.0/{page}.html")
    assert becomes(browser, OPTIONS, ["2.0", "1.0"])
    browser.run(CHOOSE.format("2.0"))
    assert becomes(browser, "location.pathname", place)


def test_a_version_without_a_list_shows_what_it_knows(browser, address, site):
    browser.open(f"{address}/alone/1.0/index.html")
    time.sleep(0.2)
    assert browser.run(OPTIONS) == ["1.0"]
    assert browser.run("document.getElementById('version-switch').disabled")  # nothing to choose
    before = list(browser.errors)
    browser.open(site / "1.0" / "index.html")  # from the disk
    time.sleep(0.2)
    assert browser.run(OPTIONS) == ["1.0"]
    assert browser.errors == before
