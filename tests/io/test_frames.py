"""Tables of any kind become the same judged lists, and go back."""

import json
import sys

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankwise import Queries, from_frame, read_table
from rankwise.errors import DataError, FileFormatError, MissingExtraError, RankwiseError
from rankwise.io import to_frame, write_table

COLUMNS = {
    "qid": ["b", "a", "b", "c"],
    "docid": ["w", "x", "y", "z"],
    "bm25": [0.5, 1.5, 2.5, 3.5],
    "label": [0, 1, 2, 0],
    "clicks": [4, 3, 2, 1],
    "is_book": [True, False, True, True],
}
MAKERS = {
    "polars": pl.DataFrame,
    "polars lazy": pl.LazyFrame,
    "pandas": pd.DataFrame,
    "pandas with an index": lambda columns: pd.DataFrame(columns, index=[7, 7, 3, 1]),
    "pandas nullable": lambda columns: pd.DataFrame(columns).convert_dtypes(),
    "arrow": pa.table,
}


@pytest.fixture(params=MAKERS)
def make(request):
    return MAKERS[request.param]


def without(*names, **others):
    return {name: values for name, values in COLUMNS.items() if name not in names} | others


# ------------------------------------------------------------------------------------------- from a table


def test_every_kind_of_table_gives_the_same_lists(make):
    queries = from_frame(make(COLUMNS))
    assert queries.names() == ["b", "a", "c"]
    assert queries.qid.dtype.kind == "U"
    assert queries.rows.tolist() == [0, 2, 1, 3]
    assert queries.y.tolist() == [0, 1, 2, 0]
    assert list(queries.docid) == ["w", "x", "y", "z"]
    assert queries.feature_names == ("bm25", "clicks", "is_book")
    assert queries.X.tolist() == [[0.5, 4, 1], [1.5, 3, 0], [2.5, 2, 1], [3.5, 1, 1]]


def test_columns_go_by_the_names_given(make):
    frame = make({"q": [1, 2, 1, 2], "rel": [0.5, 1, 2, 0], "url": list("wxyz"), "w": [2, 3, 2, 3], "f": [1, 2, 3, 4]})
    queries = Queries.from_frame(frame, qid="q", label="rel", docid="url", weight="w")
    assert queries.names() == [1, 2]
    assert queries.weight.tolist() == [2, 3]
    assert list(queries.docid) == ["w", "x", "y", "z"]
    assert queries.feature_names == ("f",)


def test_features_are_taken_in_the_order_asked_for(make):
    queries = from_frame(make(COLUMNS), features=["clicks", "bm25"])
    assert queries.feature_names == ("clicks", "bm25")
    assert queries.X[0].tolist() == [4, 0.5]


def test_unlabeled_tables_are_taken_when_told(make):
    queries = from_frame(make(without("label")), label=None)
    assert queries.y is None
    with pytest.raises(DataError, match=r"no column 'label' .*among .*: give label='its name', or label=None"):
        from_frame(make(without("label")))


def test_single_precision_is_kept_if_all_of_it_is():
    single = pl.DataFrame({"qid": [1, 1], "label": [0, 1], "a": [0.1, 0.2], "b": [0.3, 0.4]}).cast(
        {"a": pl.Float32, "b": pl.Float32}
    )
    assert from_frame(single).X.dtype == np.float32
    assert from_frame(single.cast({"b": pl.Float64})).X.dtype == np.float64


@pytest.mark.parametrize("rows", [1023, 1024, 1025, 5000])
def test_long_tables_are_filled_to_the_last_row(rows):
    X = np.random.default_rng(0).normal(size=(rows, 3))
    frame = pl.DataFrame({"qid": np.zeros(rows, dtype=int), "a": X[:, 0], "b": X[:, 1], "c": X[:, 2]})
    np.testing.assert_array_equal(from_frame(frame, label=None).X, X)


def test_nulls_among_features_follow_the_policy(make):
    frame = make(without(bm25=[None, 1.5, -2.5, None]))
    assert from_frame(frame, missing="zero").X[:, 0].tolist() == [0, 1.5, -2.5, 0]
    assert from_frame(frame, missing="min").X[:, 0].tolist() == [-2.5, 1.5, -2.5, 0]
    with pytest.raises(DataError, match=r"X is nan at row 0, feature 0 \(bm25\)"):
        from_frame(frame)


def test_nulls_among_whole_numbers_are_missing_too():
    for frame in (pl.DataFrame(without(clicks=[1, None, 3, 4])), pa.table(without(clicks=[1, None, 3, 4]))):
        assert from_frame(frame, missing="zero").X[:, 1].tolist() == [1, 0, 3, 4]


@pytest.mark.parametrize("column", ["qid", "docid", "label"])
def test_nulls_elsewhere_are_refused_by_row(make, column):
    values = [COLUMNS[column][0], None, *COLUMNS[column][2:]]
    with pytest.raises(DataError, match=f"column '{column}' has no value at row 1"):
        from_frame(make(without(**{column: values})))


def test_a_column_that_is_not_there_is_refused_with_its_neighbors(make):
    with pytest.raises(
        DataError, match=r"no column 'query_id' \(did you mean 'query'\?\) among .* give qid='its name'"
    ):
        from_frame(make(without("qid", query=[1, 1, 2, 2])), qid="query_id")
    with pytest.raises(DataError, match=r"no column 'bm-25' \(did you mean 'bm25'\?\) among .* give features="):
        from_frame(make(COLUMNS), features=["bm-25"])


def test_text_is_no_feature(make):
    frame = make(without(title=["to", "be", "or", "not"]))
    with pytest.raises(DataError, match=r"got 'to' in column 'title': leave the column out by ignore=\['title'\]"):
        from_frame(frame)
    with pytest.raises(DataError, match=r"feature columns must be numeric, got 'to' in column 'title'"):
        from_frame(frame, features=["title"])
    assert from_frame(frame, features=["bm25"]).n_features == 1
    assert from_frame(frame, ignore=["title"]).feature_names == from_frame(make(COLUMNS)).feature_names


def test_text_is_no_label(make):
    with pytest.raises(DataError, match="column 'label' holds String, and a label is a number: turn it into numbers"):
        from_frame(make(without(label=["bad", "good", "good", "bad"])))


def test_the_label_is_no_feature(make):
    with pytest.raises(DataError, match="column 'label' is the label and cannot be a feature too"):
        from_frame(make(COLUMNS), features=["bm25", "label"])


def test_a_weight_belongs_to_a_query(make):
    with pytest.raises(DataError, match="column 'clicks' must hold one weight per query, got 4 and 2 within query 'b'"):
        from_frame(make(COLUMNS), weight="clicks")


def test_negative_labels_are_refused(make):
    with pytest.raises(DataError, match="labels must be 0 or more, got -1 at row 2"):
        from_frame(make(without(label=[0, 1, -1, 0])))


def test_ids_may_be_categories_dates_or_anything_with_a_hash():
    queries = from_frame(pl.DataFrame(COLUMNS).with_columns(pl.col("qid").cast(pl.Categorical)))
    assert queries.names() == ["b", "a", "c"]
    dates = pd.to_datetime(["2020-01-02", "2020-01-01", "2020-01-02", "2020-01-03"])
    assert from_frame(pd.DataFrame(without(qid=dates))).sizes.tolist() == [2, 1, 1]
    tuples = pd.Series([("a", 1), ("b", 1), ("a", 1), ("c", 1)])
    assert from_frame(pd.DataFrame(without(qid=tuples))).names() == [("a", 1), ("b", 1), ("c", 1)]


def test_columns_without_names_are_called_by_their_numbers():
    frame = pd.DataFrame(np.array([[1.0, 0.5, 2.0], [1.0, 0.25, 0.0]]))
    queries = from_frame(frame, qid=0, label=2)
    assert queries.feature_names == ("1",)
    assert queries.y.tolist() == [2, 0]


@pytest.mark.parametrize(
    "thing", [[1, 2], {"qid": [1]}, np.zeros((2, 2)), pd.DataFrame(np.zeros((1, 2)), columns=["a", "a"])]
)
def test_what_is_no_table_is_refused(thing):
    with pytest.raises(DataError, match="a table must be a polars, pandas or Arrow table"):
        from_frame(thing)


def test_a_table_without_rows_is_an_empty_set():
    frame = pl.DataFrame(schema={"qid": pl.Int64, "label": pl.Int64, "a": pl.Float64})
    assert from_frame(frame).shape == (0, 1)


# ------------------------------------------------------------------------------------------- there and back


def some(dtype=np.float64, **more):
    X = np.random.default_rng(1).normal(size=(5, 2)).astype(dtype)
    return Queries.from_arrays(X, [0, 1, 2, 0.5, 3], **{"qid": ["b", "a", "b", "c", "a"]} | more)


def assert_same(back, queries):
    assert back.X.dtype == queries.X.dtype
    np.testing.assert_array_equal(back.X, queries.X)
    np.testing.assert_array_equal(back.y, queries.y)
    np.testing.assert_array_equal(back.weight, queries.weight)
    np.testing.assert_array_equal(back.rows, queries.rows)
    assert back.names() == queries.names()
    assert back.feature_names == queries.feature_names
    assert (back.docid is None) == (queries.docid is None)
    assert back.docid is None or list(back.docid) == list(queries.docid)


@pytest.mark.parametrize(
    ("backend", "kind"), [("pandas", pd.DataFrame), ("polars", pl.DataFrame), ("pyarrow", pa.Table)]
)
def test_a_table_of_the_asked_kind_gives_the_lists_back(backend, kind):
    queries = some(docid=list("vwxyz"), weight=[1, 2, 3], feature_names=["x1", "x2"])
    frame = to_frame(queries, backend)
    assert isinstance(frame, kind)
    assert_same(from_frame(frame, weight="weight"), queries)


def test_columns_come_in_a_fixed_order():
    queries = some(docid=list("vwxyz"), weight=[1, 2, 3])
    frame = to_frame(queries, scores=[5, 4, 3, 2, 1])
    assert list(frame.columns) == ["qid", "docid", "label", "weight", "score", "f_1", "f_2"]
    assert frame["score"].tolist() == [5, 4, 3, 2, 1]
    assert list(to_frame(some().with_labels(None), "polars").columns) == ["qid", "f_1", "f_2"]


def test_queries_without_ids_are_numbered():
    assert to_frame(Queries.from_arrays(np.zeros((3, 1)), group=[2, 1]))["qid"].tolist() == [0, 0, 1]


def test_what_a_table_cannot_hold_is_refused():
    with pytest.raises(DataError, match="feature 1 is called 'label', the name of another column"):
        to_frame(some(feature_names=["x", "label"]))
    with pytest.raises(DataError, match="query ids of type tuple cannot be stored"):
        to_frame(some(qid=[(1,), (2,), (1,), (3,), (2,)]))
    with pytest.raises(RankwiseError, match="'backend' parameter of"):
        to_frame(some(), "duckdb")
    with pytest.raises(DataError, match=r"got shape \(2,\) for 5 rows"):
        to_frame(some(), scores=[1, 2])


# ------------------------------------------------------------------------------------------- files


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("more", [{}, {"docid": list("vwxyz"), "weight": [1, 2, 3], "feature_names": ["x1", "x2"]}])
@pytest.mark.parametrize("labeled", [True, False])
def test_parquet_gives_everything_back(tmp_path, dtype, more, labeled):
    queries = some(dtype, **more)
    queries = queries if labeled else queries.with_labels(None)
    write_table(queries, tmp_path / "t.parquet")
    assert_same(read_table(tmp_path / "t.parquet"), queries)
    assert [file.name for file in tmp_path.iterdir()] == ["t.parquet"]


def test_parquet_says_what_it_holds(tmp_path):
    write_table(some(docid=list("vwxyz")), tmp_path / "t.parquet")
    table = pq.read_table(tmp_path / "t.parquet")
    assert table.column_names == ["qid", "docid", "label", "f_1", "f_2"]
    about = json.loads(table.schema.metadata[b"rankwise"])
    assert (about["format"], about["labels"], about["named"], about["weighted"]) == (1, [0, 3], False, False)
    assert pl.read_parquet(tmp_path / "t.parquet")["label"].to_list() == [0, 1, 2, 0.5, 3]


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=5))
def test_csv_keeps_every_digit(tmp_path_factory, values):
    path = tmp_path_factory.mktemp("csv") / "t.csv"
    queries = Queries.from_arrays(np.array(values).reshape(-1, 1), np.arange(len(values)), qid=[1] * len(values))
    write_table(queries, path)
    back = read_table(path)
    np.testing.assert_array_equal(back.X, queries.X)
    assert back.feature_names == ("f_1",)


@pytest.mark.parametrize(
    ("ids", "names"),
    [
        (["7", "12", "7"], [7, 12]),
        (["-3", "0", "-3"], [-3, 0]),
        (["007", "7", "007"], ["007", "7"]),
        (["1e3", "1", "1"], ["1e3", "1"]),
        (["NA", "null", "NA"], ["NA", "null"]),
        (["1 ", "+1", "1_0"], ["1 ", "+1", "1_0"]),
        ([str(2**63), "1", "1"], [str(2**63), "1"]),
    ],
)
def test_csv_ids_are_numbers_only_if_written_so(tmp_path, ids, names):
    lines = [f"{name},00{row},{row},0.5" for row, name in enumerate(ids)]
    (tmp_path / "t.csv").write_text("\n".join(["qid,docid,label,f", *lines]))
    queries = read_table(tmp_path / "t.csv")
    assert queries.names() == names
    assert list(queries.docid) == ["000", "001", "002"]


def test_csv_columns_go_by_the_names_given(tmp_path):
    (tmp_path / "t.csv").write_text("q,url,rel,weight,bm25,title\n01,9,1,2,,x\n01,8,0,2,3.5,y\n")
    queries = read_table(
        tmp_path / "t.csv", qid="q", docid="url", label="rel", weight="weight", features=["bm25"], missing="zero"
    )
    assert queries.names() == ["01"]
    assert queries.X.tolist() == [[0], [3.5]]
    assert list(queries.docid) == ["9", "8"]


def test_a_number_with_a_fraction_may_come_late_in_a_csv(tmp_path):
    rows = "\n".join(f"1,0,{row}" for row in range(200_000))
    (tmp_path / "t.csv").write_text(f"qid,label,f\n{rows}\n1,0,0.5\n")
    assert read_table(tmp_path / "t.csv").X[-1, 0] == 0.5


def test_an_empty_id_in_a_csv_is_missing(tmp_path):
    (tmp_path / "t.csv").write_text("qid,label,f\na,0,1\n,0,1\n")
    with pytest.raises(FileFormatError, match=r"t\.csv, line 3: column 'qid' must hold a query id"):
        read_table(tmp_path / "t.csv")


def test_files_that_are_no_tables_are_named(tmp_path):
    for name in ("t.parquet", "t.csv"):
        with pytest.raises(RankwiseError, match=f"{name} cannot be read: there is no such file"):
            read_table(tmp_path / name)
        (tmp_path / name).write_bytes(b"PAR1,qid\n1,2,3\n")
        with pytest.raises(RankwiseError, match=name) as refusal:
            read_table(tmp_path / name)
        assert "\n" not in str(refusal.value)
    (tmp_path / "t.xlsx").write_bytes(b"PK\x03\x04" + bytes(26) + b"xl/workbook.xml")
    with pytest.raises(RankwiseError, match=r"t\.xlsx is an Excel workbook, expected text: save its sheet as CSV"):
        read_table(tmp_path / "t.xlsx")
    with pytest.raises(RankwiseError, match=r"must end in \.parquet or \.csv"):
        write_table(some(), tmp_path / "t.txt")


def test_the_missing_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    for use in (lambda: read_table(tmp_path / "t.parquet"), lambda: write_table(some(), tmp_path / "t.csv")):
        with pytest.raises(MissingExtraError, match=r"pip install .*\[frames\]'"):
            use()


def test_a_table_that_cannot_be_written_leaves_nothing(tmp_path):
    with pytest.raises(RankwiseError, match=r"t\.parquet cannot be written: the folder"):
        write_table(some(), tmp_path / "no" / "t.parquet")
    with pytest.raises(DataError, match="of type tuple"):
        write_table(some(qid=[(1,), (2,), (1,), (3,), (2,)]), tmp_path / "t.csv")
    assert list(tmp_path.iterdir()) == []
