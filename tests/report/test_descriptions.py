"""Texts about documents and queries: matched by id from mappings and tables, and refused where nothing matches."""

import re

import pytest

import rankwise as rw
from rankwise.errors import DataError, RankwiseError
from rankwise.report.descriptions import Descriptions
from rankwise.report.page import write_report
from tests.report.conftest import unpacked


def test_mappings_frames_and_files_say_the_same(tmp_path):
    pandas = pytest.importorskip("pandas")
    rows = {"d1": {"title": "One", "price": 2.5}, "d2": {"title": "Two, <b>", "price": 3.0}}
    frame = pandas.DataFrame([{"docid": name, **row} for name, row in rows.items()])
    frame.to_csv(tmp_path / "documents.csv", index=False)
    for source in (rows, frame, rw.io.read_columns(tmp_path / "documents.csv")):
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
    with pytest.raises(DataError, match="must have a column 'docid' of ids, got the columns 'id'"):
        Descriptions.of(pandas.DataFrame({"id": ["a"]}), "docid", "documents")
    with pytest.raises(DataError, match="got both in one mapping"):
        Descriptions.of({"a": "b", "c": {}}, "docid", "documents")
    with pytest.raises(DataError, match="got ids such as 'nobody'"):
        write_report(comparison, tmp_path / "r.html", documents={"nobody": "x"})
    with pytest.raises(DataError, match="queries must have ids such as"):
        write_report(comparison, tmp_path / "r.html", queries={"nobody": "x"})
    lists = rw.make_lists(10, documents=4, features=2, random_state=0)
    bare = rw.Queries.from_arrays(lists.X, lists.y, group=[4] * 10)
    with pytest.raises(DataError, match="requires queries with document ids"):
        write_report(rw.compare({"a": bare.X[:, 0]}, bare, "AP"), tmp_path / "r.html", documents={"nobody": "x"})
    assert list(tmp_path.iterdir()) == []


# ------------------------------------------------------------------------------------------- hostile texts

HOSTILE_TEXTS = (
    "<script>window.broken = 1</script>",
    "a\0b",
    "c\rd",
    "x" * 100_000,
    "\u202eabc",
    "\ud800",
    "{{ 7 * 7 }}",
    "",
)


def test_hostile_texts_are_texts_in_the_page(comparison, tmp_path):
    names, docid = comparison.queries.names(), list(comparison.queries.docid)

    def some(place):
        return HOSTILE_TEXTS[place % len(HOSTILE_TEXTS)]

    short = [some(place)[:300] for place in range(len(names))]
    write_report(
        comparison,
        tmp_path / "r.html",
        documents={one: {some(place): some(place + 1)} for place, one in enumerate(docid)},
        queries={one: some(place) for place, one in enumerate(names)},
        slices={text or "empty": short for text in ("a\0b", "c\rd", "\ud800", "<b>")},
    )
    text = (tmp_path / "r.html").read_bytes().decode("utf-8")
    assert "\0" not in text
    assert "window.broken = 1</script>" not in text
    # the page looks a table up by the name that its HTML gives back
    tables = unpacked(re.search(r'id="numbers">([^<]*)<', text)[1])["tables"]
    for name in re.findall(r'data-table="(slice [^"]*)"', text):
        assert name.replace("&lt;", "<").replace("&gt;", ">") in tables


def test_an_id_with_two_different_rows_is_an_error_and_with_equal_ones_is_not():
    pandas = pytest.importorskip("pandas")
    twice = pandas.DataFrame({"docid": ["a", "a", "b"], "title": ["One", "One", None]})
    assert Descriptions.of(twice, "docid", "documents").texts("a") == ["One"]
    for source in (twice.assign(title=["One", "Two", None]), {1: "One", "1": "Two"}):
        with pytest.raises(DataError, match=r"describe every id once, got two different rows for '[a1]'"):
            Descriptions.of(source, "docid", "documents")


def test_missing_values_of_any_kind_are_not_shown():
    pandas = pytest.importorskip("pandas")
    values = {"a": pandas.NA, "b": pandas.NaT, "c": float("nan"), "d": None, "e": 0}
    found = Descriptions.of(values, "docid", "documents")
    assert [found.texts(one) for one in "abcde"] == [[None]] * 4 + [["0"]]


def test_arguments_of_another_kind_are_one_sentence(comparison, tmp_path):
    for arguments, complaint in (
        ({"documents": "titles.csv"}, "documents must be a mapping or a data frame, got the path 'titles.csv'"),
        ({"title": "name"}, "title must name a column of documents, which are not given, got 'name'"),
        ({"limits": 3}, "limits must be ReportLimits or None, got int"),
    ):
        with pytest.raises(RankwiseError, match=complaint):
            write_report(comparison, tmp_path / "r.html", **arguments)
