"""The reference has every public name, on the page of the subpackage that it comes from."""

import inspect
import re
from pathlib import Path

import pytest

import rankwise
from docs.site import reference

DOCS = Path(__file__).parents[3] / "docs"
PAGES = reference.pages()


def documented():
    return [found for text in PAGES.values() for found in re.findall(r"^\.\. auto\w+:: ([\w.]+)$", text, re.MULTILINE)]


def test_every_public_name_is_documented_once():
    paths = documented()
    assert len(paths) == len(set(paths))
    modules = [name for name in dir(rankwise) if inspect.ismodule(getattr(rankwise, name))]
    assert {f"rankwise.{name}" for name in rankwise.__all__ if name != "__version__"} <= set(paths)
    values = [reference._name(*path.rsplit(".", 1)).value for path in paths]
    for module in modules:
        for name in getattr(rankwise, module).__all__:
            value = getattr(getattr(rankwise, module), name)
            assert any(value is one for one in values), f"rankwise.{module}.{name}"


def test_every_name_stands_in_a_table_above():
    for text in PAGES.values():
        listed = re.findall(r"^   \* - :py:obj:`~([\w.]+)`\n     - (.*)$", text, re.MULTILINE)
        assert [path for path, _ in listed] == re.findall(r"^\.\. auto\w+:: ([\w.]+)$", text, re.MULTILINE)
        assert [path for path, said in listed if not said.endswith(".")] == []


def test_a_name_is_on_the_page_of_its_subpackage():
    places = {name.path: reference.place_of(name) for name in reference.public_names()}
    assert places["rankwise.Queries"][0].name == "data"
    assert places["rankwise.read_letor"][1].title == "LETOR text"
    assert places["rankwise.compare"][0].name == "evaluation"
    assert places["rankwise.load"][0].name == "data"
    assert places["rankwise.guarantees.slam_loss"][1].title == "Online runs"
    assert places["rankwise.errors.DataError"][0].name == "errors"


def test_a_name_from_a_module_that_no_section_has_is_refused():
    stranger = reference.Name("rankwise.stranger", "strange.module", object)
    with pytest.raises(LookupError, match=r"rankwise.stranger comes from strange.module"):
        reference.place_of(stranger)


def test_the_page_of_the_reference_leads_to_every_page():
    entries = re.findall(r"^api/(\w+)$", (DOCS / "api.md").read_text(), re.MULTILINE)
    assert entries == [page.name for page in reference.PAGES] == list(PAGES)


def test_pages_are_written_when_they_change_and_removed_when_they_are_gone(tmp_path):
    (tmp_path / "old.md").write_text("")
    reference.write(tmp_path)
    assert {path.stem for path in tmp_path.glob("*.md")} == set(PAGES)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.glob("*.md")}
    reference.write(tmp_path)
    assert {path: path.stat().st_mtime_ns for path in tmp_path.glob("*.md")} == before
