"""Measured tables and numbers on the pages are those of the stored results, and sentences are free."""

import pytest

from experiments import written


def test_every_page_has_what_the_stored_results_say():
    assert written.outdated() == [], "run python3 run.py docs --write"


def test_a_number_in_a_sentence_is_filled_in_and_the_words_around_it_stay(monkeypatch):
    monkeypatch.setitem(written.NUMBERS, "speed", lambda: "4.1")
    text = "It is <!-- n: speed -->3.9<!-- /n --> times faster."
    assert written.fill_numbers(text, "a.md") == "It is <!-- n: speed -->4.1<!-- /n --> times faster."
    with pytest.raises(KeyError, match=r"a\.md has the number 'other'"):
        written.fill_numbers("<!-- n: other -->1<!-- /n -->", "a.md")


def test_every_number_is_on_a_page():
    pages = (written.ROOT / "README.md", *written.DOCS.glob("*.md"))
    text = "".join(page.read_text(encoding="utf-8") for page in pages)
    assert [name for name in written.NUMBERS if f"<!-- n: {name} -->" not in text] == []


def test_every_block_of_a_page_is_written_or_checked_elsewhere():
    marked = {
        (page.name, name)
        for page in written.DOCS.glob("*.md")
        for name in written.BLOCK.findall(page.read_text(encoding="utf-8"))
    }
    elsewhere = {("install.md", "core"), ("install.md", "along"), ("install.md", "extras")}
    elsewhere |= {("data.md", "document weights"), ("measures.md", "letor")}
    assert marked - elsewhere == {(page, name) for page, named in written.blocks().items() for name in named}
