"""Texts about documents and queries: matched by id from mappings and tables, and refused where nothing matches."""

import pytest

import rankwise as rw
from rankwise import DataError
from rankwise.report.descriptions import Descriptions
from rankwise.report.page import write_report


def test_mappings_frames_and_files_say_the_same(tmp_path):
    pandas = pytest.importorskip("pandas")
    rows = {"d1": {"title": "One", "price": 2.5}, "d2": {"title": "Two, <b>", "price": 3.0}}
    frame = pandas.DataFrame([{"docid": name, **row} for name, row in rows.items()])
    frame.to_csv(tmp_path / "documents.csv", index=False)
    for source in (rows, frame, rw.read_columns(tmp_path / "documents.csv")):
        found = Descriptions.of(source, "docid", "documents")
        assert found.columns == ("title", "price")
        assert found.texts("d2")[0] == "Two, <b>"
        assert float(found.texts("d1")[1]) == 2.5
        assert found.texts("d3") is None


def test_a_mapping_to_texts_has_one_column_and_ids_are_compared_as_texts():
    found = Descriptions.of({7: "seven", "8": None}, "docid", "documents")
    assert found.texts("7") == ["seven"]
    assert found.texts(8) == [None]
    assert found.column("text", "documents") == {"7": "seven"}


def test_the_title_is_the_named_column_or_the_one_called_title_or_the_first():
    found = Descriptions.of({"d": {"url": "u", "Title": "t"}}, "docid", "documents")
    assert found.title(None, "documents") == 1
    assert found.title("url", "documents") == 0
    assert Descriptions.of({"d": {"url": "u", "name": "t"}}, "docid", "documents").title(None, "documents") == 0
    assert Descriptions.of(None, "docid", "documents").title(None, "documents") is None
    with pytest.raises(DataError, match="documents has no column 'nothing': its columns are 'url', 'Title'"):
        found.title("nothing", "documents")


def test_long_texts_are_cut():
    assert Descriptions.of({"d": "x" * 1000}, "docid", "documents").texts("d") == ["x" * 299 + "\u2026"]


def test_tables_that_do_not_fit_are_refused(comparison, tmp_path):
    pandas = pytest.importorskip("pandas")
    with pytest.raises(DataError, match="has a column 'docid' of ids: found the columns 'id'"):
        Descriptions.of(pandas.DataFrame({"id": ["a"]}), "docid", "documents")
    with pytest.raises(DataError, match="found both in one mapping"):
        Descriptions.of({"a": "b", "c": {}}, "docid", "documents")
    with pytest.raises(DataError, match="documents describes none of the ids here: found such as 'nobody'"):
        write_report(comparison, tmp_path / "r.html", documents={"nobody": "x"})
    with pytest.raises(DataError, match="queries describes none of the ids here"):
        write_report(comparison, tmp_path / "r.html", queries={"nobody": "x"})
    lists = rw.make_lists(10, documents=4, features=2, random_state=0)
    bare = rw.Queries.from_arrays(lists.X, lists.y, group=[4] * 10)
    with pytest.raises(DataError, match="these queries have none"):
        write_report(rw.compare({"a": bare.X[:, 0]}, bare, "AP"), tmp_path / "r.html", documents={"nobody": "x"})
    assert list(tmp_path.iterdir()) == []
