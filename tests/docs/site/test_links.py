"""The check of links finds what is dead or fetched from elsewhere, and nothing else."""

import pytest

from docs.site.links import dead_links, foreign_files, main


@pytest.fixture
def site(tmp_path):
    (tmp_path / "api").mkdir()
    (tmp_path / "picture.png").write_bytes(b"")
    (tmp_path / "index.html").write_text(
        '<h1 id="top">x</h1><a href="api/one.html#here">y</a><a href="#top">z</a>'
        '<img src="picture.png" srcset="picture.png 2x"><img src="data:image/png;base64,x">'
        '<a href="https://example.org/gone">out</a><a href="mailto:a@example.org">m</a>'
    )
    (tmp_path / "api" / "one.html").write_text(
        '<a name="here"></a><a href="../index.html?a=b#top">up</a><a href="./">?</a>'
    )
    (tmp_path / "api" / "index.html").write_text("")
    return tmp_path


def test_a_site_whose_links_lead_somewhere_has_no_dead_one(site):
    assert dead_links(site) == []
    assert foreign_files(site) == []
    assert main(site) == 0


@pytest.mark.parametrize(
    ("link", "lacking"),
    [
        ('<a href="two.html">', "there is no two.html"),
        ('<a href="api/one.html#there">', "has no element 'there'"),
        ('<a href="#bottom">', "index.html has no element 'bottom'"),
        ('<img src="gone.png"/>', "there is no gone.png"),
        ('<img srcset="picture.png, gone%20too.png 2x">', "there is no gone too.png"),
        ('<script src="/_static/x.js">', "root of its host"),
        ('<a href="../outside.html">', "outside of the site"),
    ],
)
def test_a_dead_link_is_named_with_its_page(site, capsys, link, lacking):
    with open(site / "index.html", "a") as page:
        page.write(link)
    (sentence,) = dead_links(site)
    assert sentence.startswith("index.html: ")
    assert lacking in sentence
    assert main(site) == 1
    assert sentence in capsys.readouterr().err


@pytest.mark.parametrize(
    "element",
    [
        '<script src="https://example.org/x.js"></script>',
        '<script src="//example.org/x.js"></script>',
        '<link rel="stylesheet" href="https://example.org/x.css">',
        '<link rel="preload" as="font" href="https://example.org/x.woff2">',
        '<img src="https://example.org/x.png">',
        '<img srcset="picture.png, https://example.org/x.png 2x">',
        '<iframe src="https://example.org/"></iframe>',
        "<style>@font-face { src: url('https://example.org/x.woff2'); }</style>",
        '<style>@import "https://example.org/x.css";</style>',
        '<p style="background: url(https://example.org/x.png)">',
    ],
)
def test_what_a_page_would_fetch_from_elsewhere_is_named(site, capsys, element):
    with open(site / "index.html", "a") as page:
        page.write(element)
    (sentence,) = foreign_files(site)
    assert sentence.startswith("index.html: ")
    assert "example.org" in sentence
    assert main(site) == 1
    assert sentence in capsys.readouterr().err


def test_a_style_sheet_that_would_fetch_from_elsewhere_is_named(site):
    (site / "x.css").write_text(
        "a { background: url(picture.png) } b { background: url(data:image/png;base64,x) }"
        "@import url(https://example.org/x.css);"
    )
    (sentence,) = foreign_files(site)
    assert sentence.startswith("x.css: 'https://example.org/x.css'")


def test_what_a_reader_clicks_may_leave_the_site(site):
    with open(site / "index.html", "a") as page:
        page.write(
            '<a href="https://example.org/">x</a><link rel="canonical" href="https://example.org/">'
            "<style>a { color: red }</style> url(https://example.org/) <code>@import 'https://example.org/'</code>"
        )
    assert foreign_files(site) == []


def test_a_folder_without_pages_is_no_site(tmp_path):
    assert main(tmp_path) == 1
