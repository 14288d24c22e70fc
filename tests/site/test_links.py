"""The check of links finds what is dead and nothing else."""

import pytest

from docs.site.links import dead_links, main


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


def test_a_folder_without_pages_is_no_site(tmp_path):
    assert main(tmp_path) == 1
