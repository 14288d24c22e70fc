"""The check of widths names a page that is wider than a phone, and leaves those alone whose wide parts scroll."""

import pytest

from tests.docs.site.widths import WIDTH, too_wide
from tests.report.browser import Page, find_browser

BROWSER = find_browser()
pytestmark = pytest.mark.skipif(BROWSER is None, reason="needs a browser: chromium on the path, or RANKWISE_BROWSER")
WIDE = '<div style="width: 800px">wide</div>'


def test_only_a_page_that_is_too_wide_is_named(tmp_path):
    bodies = {"narrow": "text", "scrolls": f'<div style="overflow-x: auto">{WIDE}</div>', "wide": WIDE}
    for name, body in bodies.items():
        (tmp_path / f"{name}.html").write_text(
            f'<meta name="viewport" content="width=device-width"><body style="margin: 0"><article>{body}</article>'
        )
    with Page(BROWSER, width=WIDTH, height=844) as phone:
        found = too_wide(phone, sorted(tmp_path.glob("*.html")))
    assert list(found) == ["wide.html"]
    assert found["wide.html"]["width"] == 800
    assert found["wide.html"]["shown"] == ["DIV.: wide"]
