"""Rows of any order, cut into any files, become the queries that they are in memory, in bounded memory."""

import gzip
import os
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import rankwise
from rankwise import Queries, read_letor, read_table
from rankwise.errors import DataError, FileFormatError, RankwiseError
from rankwise.io import convert as sources_module
from rankwise.io import write_parts
from rankwise.queries.grouping import StringColumn
from rankwise.queries.parts import query_numbers as query_numbers_module
from rankwise.queries.parts import regroup as regroup_module
from rankwise.queries.parts.manifest import Summary
from rankwise.queries.parts.query_numbers import QueryNumbers
from rankwise.queries.parts.regroup import Regrouped
from tests.queries.test_parts import assert_same

anywhere = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=40)


def grouped(queries):
    return queries[np.arange(len(queries))]


@st.composite
def tables(draw):
    """(ids, labels, X) of interleaved rows; ids are numbers, texts, or both in one column."""
    names = st.sampled_from(draw(st.sampled_from([["1", "2", "10", "-3"], ["1", "x", "07", "ä ö"], ["7", "007", "8"]])))
    rows = draw(st.integers(1, 40))
    ids = draw(st.lists(names, min_size=rows, max_size=rows))
    random = np.random.default_rng(draw(st.integers(0, 1000)))
    return ids, random.integers(0, 3, rows), np.round(random.normal(size=(rows, 2)) * 10.0 ** random.integers(-3, 4), 3)


def csv_text(ids, labels, X, names=("a", "b")):
    lines = [",".join(("qid", "label", *names))]
    lines += [",".join(map(str, (qid, label, *row))) for qid, label, row in zip(ids, labels, X.tolist(), strict=True)]
    return "\n".join(lines) + "\n"


def letor_text(ids, labels, X, base=1):
    rows = zip(ids, labels, X.tolist(), strict=True)
    return "".join(
        f"{label} qid:{str(qid).replace(' ', '_')} "
        + " ".join(f"{column + base}:{value!r}" for column, value in enumerate(row) if value)
        + f" # d{number}\n"
        for number, (qid, label, row) in enumerate(rows)
    )


@given(tables(), st.lists(st.integers(0, 40), max_size=3), st.sampled_from([1, 200, 1 << 20]), st.integers(1, 9))
@anywhere
def test_a_table_cut_into_files_is_the_table_in_memory(tmp_path, monkeypatch, table, cuts, memory, rows):
    monkeypatch.setattr(sources_module, "_ROWS", rows)  # rows that are numbered together
    ids, labels, X = table
    whole = tmp_path / "whole.csv"
    whole.write_text(csv_text(ids, labels, X))
    edges = [0, *sorted(min(cut, len(ids)) for cut in cuts), len(ids)]
    files = []
    for number, (first, last) in enumerate(pairwise(edges)):
        if last > first:
            files.append(tmp_path / f"{number}.csv.gz")
            text = csv_text(ids[first:last], labels[first:last], X[first:last]).replace("\n", "\r\n")
            files[-1].write_bytes(gzip.compress(text.encode()))
    parts = write_parts(files, tmp_path / "lists", overwrite=True, memory=memory)
    expected = grouped(read_table(whole))
    assert_same(parts.to_queries(), expected)
    summary = Summary(2)
    summary.add(expected)
    assert parts.manifest.facts == summary.facts()
    assert parts.manifest.facts["min"] == X.min(axis=0).tolist()
    assert parts.manifest.facts["max"] == X.max(axis=0).tolist()


@given(tables(), st.sampled_from([0, 1]), st.sampled_from([1, 100, 1 << 20]), st.integers(1, 9))
@anywhere
def test_letor_text_of_any_order_is_the_text_in_memory(tmp_path, monkeypatch, table, base, memory, rows):
    monkeypatch.setattr(sources_module, "_ROWS", rows)
    text = letor_text(*table, base=base)
    file = tmp_path / "a.txt.gz"
    file.write_bytes(gzip.compress(text.replace("\n", "\r\n").encode()))
    expected = grouped(read_letor(file))
    assert_same(write_parts(file, tmp_path / "lists", overwrite=True, memory=memory).to_queries(), expected)
    single = write_parts(str(file), tmp_path / "lists", overwrite=True, dtype="float32").to_queries()
    assert_same(single, grouped(read_letor(file, dtype="float32")))


def test_sparse_texts_are_as_wide_as_the_widest_and_begin_at_the_smallest_id_of_all(tmp_path, monkeypatch):
    monkeypatch.setattr(sources_module, "_ROWS", 1)
    (tmp_path / "a.txt").write_text("1 qid:1 2:5\n0 qid:2 1:3\n")
    (tmp_path / "b.txt").write_text("2 qid:1 4:7\n1 qid:3 0:9\n")
    whole = tmp_path / "whole.txt"
    whole.write_text((tmp_path / "a.txt").read_text() + (tmp_path / "b.txt").read_text())
    parts = write_parts([tmp_path / "a.txt", tmp_path / "b.txt"], tmp_path / "lists")
    assert_same(parts.to_queries(), grouped(read_letor(whole)))
    assert parts.n_features == 5


def test_a_query_that_is_cut_over_files_of_every_format_is_put_together(tmp_path):
    arrow = pytest.importorskip("pyarrow")
    parquet, feather = pytest.importorskip("pyarrow.parquet"), pytest.importorskip("pyarrow.feather")
    rng = np.random.default_rng(0)
    X, y, ids = rng.integers(0, 9, (60, 2)) / 4, rng.integers(0, 3, 60), rng.integers(0, 5, 60)
    expected = grouped(Queries.from_arrays(X, y, qid=ids, feature_names=["a", "b"]))
    pieces = [slice(first, first + 12) for first in range(0, 60, 12)]
    table = arrow.table({"a": X[:, 0], "b": X[:, 1], "qid": ids, "label": y})
    (tmp_path / "0.csv").write_text(csv_text(ids[pieces[0]], y[pieces[0]], X[pieces[0]]))
    parquet.write_table(table.slice(12, 12), tmp_path / "1.parquet")
    feather.write_feather(table.slice(24, 12), str(tmp_path / "2.feather"))
    part = Queries.from_arrays(X[pieces[3]], y[pieces[3]], qid=ids[pieces[3]], feature_names=["a", "b"])
    grouped(part).save(tmp_path / "3.rankwise")
    write_parts(
        Queries.from_arrays(X[pieces[4]], y[pieces[4]], qid=ids[pieces[4]], feature_names=["a", "b"]), tmp_path / "4"
    )
    sources = [tmp_path / name for name in ("0.csv", "1.parquet", "2.feather", "3.rankwise", "4")]
    found = write_parts(sources, tmp_path / "lists").to_queries()
    assert found.names() == expected.names()
    assert np.array_equal(found.start, expected.start)
    for number in range(len(expected)):  # a rankwise file has its rows grouped, so the order within a query may differ
        one, two = found[number], expected[number]
        assert sorted(zip(one.y, map(tuple, one.X), strict=True)) == sorted(zip(two.y, map(tuple, two.X), strict=True))


@pytest.mark.parametrize("kind", ["whole", "real", "text"])
def test_folders_and_datasets_of_arrow_are_read_in_the_order_of_their_files(tmp_path, kind):
    arrow = pytest.importorskip("pyarrow")
    parquet, dataset = pytest.importorskip("pyarrow.parquet"), pytest.importorskip("pyarrow.dataset")
    rng = np.random.default_rng(1)
    numbers = rng.integers(0, 20, 400)
    ids = {"whole": numbers, "real": numbers / 8, "text": np.array([f"q {one}" for one in numbers])}[kind]
    single = rng.normal(size=(400, 2)).astype(np.float32)
    table = arrow.table({"a": single[:, 0], "b": single[:, 1], "qid": ids, "label": rng.integers(0, 3, 400)})
    folder = tmp_path / "frames"
    folder.mkdir()
    (folder / "_SUCCESS").touch()
    for number in range(4):
        parquet.write_table(table.slice(100 * number, 100), folder / f"part-{number}.parquet")
    expected = grouped(rankwise.from_frame(table))
    assert_same(write_parts(folder, tmp_path / "a", dtype="float32").to_queries(), expected)
    assert_same(write_parts(dataset.dataset(folder), tmp_path / "b", dtype="float32").to_queries(), expected)
    assert_same(write_parts(table, tmp_path / "c", dtype="float32").to_queries(), expected)


def test_what_write_table_noted_is_used(tmp_path):
    pytest.importorskip("pyarrow")
    rng = np.random.default_rng(0)
    queries = Queries.from_arrays(
        rng.normal(size=(30, 2)), qid=rng.permutation(np.arange(30) % 7), document_weight=rng.integers(1, 4, 30)
    ).with_weight(np.arange(1.0, 8))
    rankwise.io.write_table(queries, tmp_path / "a.parquet")
    assert_same(write_parts(tmp_path / "a.parquet", tmp_path / "lists").to_queries(), grouped(queries))


@pytest.mark.parametrize("missing", ["zero", "min", "keep"])
def test_missing_values_and_unjudged_rows_are_treated_as_in_memory(tmp_path, missing):
    text = "qid,label,a,b\nx,1,,2\ny,,3,4\nx,-1,5,\nx,0,6,nan\ny,2,7,8\n"
    (tmp_path / "a.csv").write_text(text)
    for unjudged in ("drop", "zero"):
        options = {"missing": missing, "unjudged": unjudged}
        found = write_parts(tmp_path / "a.csv", tmp_path / "lists", overwrite=True, **options)
        assert_same(found.to_queries(), grouped(read_table(tmp_path / "a.csv", **options)))
    assert (found.manifest.facts["missing"] != [0, 0]) == (missing == "keep")


BAD = {
    "a word": ("qid,label,a\n1,0,red\n", "line 2"),
    "an empty cell": ("qid,label,a\n1,0,\n", "line 2"),
    "no label": ("qid,label,a\n1,,3\n", "line 2"),
    "another width": ("qid,label,a\n1,0\n", "line 2"),
    "no query ids": ("query,label,a\n1,0,3\n", "no column 'qid'"),
    "no rows": ("qid,label,a\n", "no rows"),
    "nothing": ("", "is empty"),
    "letor without qid": ("1 1:3\n", "qid"),
    "infinity for float32": ("qid,label,a\n1,0,1e300\n", "row 0"),
}


@pytest.mark.parametrize("what", BAD)
def test_bad_input_raises_one_sentence_with_its_place_and_leaves_nothing(tmp_path, what):
    text, sentence = BAD[what]
    (tmp_path / "bad.csv").write_text(text)
    with pytest.raises(RankwiseError, match=sentence) as caught:
        write_parts(tmp_path / "bad.csv", tmp_path / "lists", dtype="float32")
    assert "bad.csv" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert os.listdir(tmp_path) == ["bad.csv"]


def test_sources_that_do_not_fit_together_are_named(tmp_path):
    for name, text in (
        ("a.csv", "qid,label,x\n1,0,3\n"),
        ("b.csv", "qid,label,y\n1,0,3\n"),
        ("c.csv", "x,qid,label\n4,1,1\n"),
        ("d.txt", "1 qid:1 1:3\n"),
    ):
        (tmp_path / name).write_text(text)
    a, b, c, d = (tmp_path / name for name in ("a.csv", "b.csv", "c.csv", "d.txt"))
    with pytest.raises(DataError, match=r"a.csv has a column 'x' and .*b.csv has not"):
        write_parts([a, b], tmp_path / "lists")
    with pytest.raises(DataError, match=r"a.csv has feature names and .*d.txt has none"):
        write_parts([a, d], tmp_path / "lists")
    assert write_parts([a, c], tmp_path / "lists").to_queries().X.tolist() == [[3.0], [4.0]]
    with pytest.raises(RankwiseError, match="at least one source"):
        write_parts([], tmp_path / "other")
    with pytest.raises(RankwiseError, match="no such file"):
        write_parts([a, tmp_path / "missing.csv"], tmp_path / "other")
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileFormatError, match="holds no files"):
        write_parts(tmp_path / "empty", tmp_path / "other")
    cut_off = tmp_path / "cut.csv.gz"
    cut_off.write_bytes(gzip.compress(a.read_bytes() * 100)[:-9])
    with pytest.raises(FileFormatError, match="is cut off"):
        write_parts([cut_off], tmp_path / "other")
    assert not (tmp_path / "other").exists()
    assert not [name for name in os.listdir(tmp_path) if name.startswith(".")]


def test_a_weight_that_differs_within_a_query_is_refused(tmp_path):
    (tmp_path / "a.csv").write_text("qid,label,w,x\n1,0,1,3\n2,0,2,3\n1,1,4,3\n")
    with pytest.raises(DataError, match=r"got 1 and 4 within query .*1"):
        write_parts(tmp_path / "a.csv", tmp_path / "lists", weight="w")


def test_ctrl_c_in_every_stage_leaves_nothing(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    (tmp_path / "a.csv").write_text(
        csv_text(rng.integers(0, 30, 500), rng.integers(0, 3, 500), rng.normal(size=(500, 2)))
    )

    def interrupted(*arguments, **options):
        raise KeyboardInterrupt

    for name in ("append", "_distribute", "_range"):
        with monkeypatch.context() as patched:
            patched.setattr(Regrouped, name, interrupted)
            patched.setattr(regroup_module, "_READ_TWICE", 0.0)
            with pytest.raises(KeyboardInterrupt):
                write_parts(tmp_path / "a.csv", tmp_path / "lists", memory=1000)
        assert os.listdir(tmp_path) == ["a.csv"]


def test_a_full_disk_is_refused_before_the_rows_are_written_again(tmp_path, monkeypatch):
    (tmp_path / "a.csv").write_text("qid,label,x\n1,0,3\n")
    monkeypatch.setattr(regroup_module.shutil, "disk_usage", lambda path: type("", (), {"free": 3})())
    with pytest.raises(RankwiseError, match="GiB left"):
        write_parts(tmp_path / "a.csv", tmp_path / "lists")
    assert os.listdir(tmp_path) == ["a.csv"]


# ------------------------------------------------------------------------------------------ numbers of query ids


texts = st.text(st.sampled_from("ab\0é "), max_size=4)


@given(st.lists(st.lists(texts, max_size=12), max_size=8))
def test_ids_are_numbered_by_first_appearance(blocks):
    numbers, known = QueryNumbers(), {}
    for block in blocks:
        before = len(known)
        expected = [known.setdefault(text, len(known)) for text in block]
        found, new = numbers.number(StringColumn.of(block))
        assert found.tolist() == expected
        assert [block[place] for place in new] == list(known)[before:]
        assert len(numbers) == len(known)


def test_two_ids_with_one_hash_are_refused(monkeypatch):
    monkeypatch.setattr(query_numbers_module, "mixed", lambda words: words - words)
    numbers = QueryNumbers()
    numbers._multipliers = np.zeros((2, 1000), np.uint64)
    numbers._multipliers[0] = 3
    with pytest.raises(RankwiseError, match="try again"):
        numbers.number(StringColumn.of(["a", "b"]))
    numbers.number(StringColumn.of(["a"]))
    with pytest.raises(RankwiseError, match="try again"):
        numbers.number(StringColumn.of(["b"]))
