"""Every example is run: those of the README, of the documentation's pages and of the docstrings."""

import doctest
import importlib
import pkgutil
from pathlib import Path

import pytest

import rankwise

ROOT = Path(__file__).parents[1]
PAGES = sorted(path for path in (ROOT / "README.md", *(ROOT / "docs").glob("*.md")) if ">>>" in path.read_text())
MODULES = sorted(module.name for module in pkgutil.walk_packages(rankwise.__path__, "rankwise."))
OPTIONS = doctest.NORMALIZE_WHITESPACE | doctest.IGNORE_EXCEPTION_DETAIL


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_examples_of_a_page_print_what_it_says(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    examples = doctest.DocTestParser().get_doctest(page.read_text(), {}, page.name, str(page), 0)
    result = doctest.DocTestRunner(optionflags=OPTIONS).run(examples)
    assert result.attempted > 0
    assert result.failed == 0


@pytest.mark.parametrize("name", [name for name in MODULES if name != "rankwise.__main__"])
def test_the_examples_of_a_module_print_what_they_say(name):
    assert doctest.testmod(importlib.import_module(name), optionflags=OPTIONS).failed == 0
