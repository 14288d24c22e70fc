"""Judged lists are what they were given as, whatever the order of the rows and however they are cut and joined."""

import pickle
from collections import defaultdict
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

from rankwise import Queries, Query
from rankwise.errors import DataError, RankwiseError
from rankwise.io import StringColumn
from rankwise.queries import checks

# ids that a hash table tells apart, as it tells 1 from "1" and from (1,)
plain_ids = st.one_of(st.integers(), st.text(max_size=3), st.floats(allow_nan=False))
mixed_ids = st.one_of(
    plain_ids, st.booleans(), st.tuples(st.integers(0, 2), st.text(max_size=1)), st.frozensets(plain_ids)
)


def columns_of(ids):
    return st.lists(ids, max_size=4).flatmap(
        lambda pool: st.lists(st.sampled_from(pool), max_size=12) if pool else st.just([])
    )


columns = st.one_of(columns_of(st.integers()), columns_of(st.text(max_size=3)), columns_of(mixed_ids))


def lists_by_dictionary(qid):
    rows = defaultdict(list)
    for row, name in enumerate(qid):
        rows[name].append(row)
    return dict(rows)


def numbered(qid, **more):
    """Row i has the feature i: a row can be recognized wherever it goes."""
    X = np.arange(len(qid), dtype=np.float64).reshape(-1, 1)
    return Queries.from_arrays(X, X[:, 0] % 3, qid=qid, docid=[f"d{row}" for row in range(len(qid))], **more)


@pytest.fixture
def three():
    return numbered(["b", "a", "b", "c", "a", "b"], weight=[1.0, 2.0, 4.0], feature_names=["number"])


# ------------------------------------------------------------------------------------------- grouping


@given(columns)
def test_rows_with_equal_ids_form_a_query_wherever_they_stand(qid):
    queries = numbered(qid)
    expected = lists_by_dictionary(qid)
    assert queries.names() == list(expected)
    assert [query.X[:, 0].tolist() for query in queries] == list(expected.values())
    assert queries.sizes.tolist() == [len(rows) for rows in expected.values()]
    assert [queries.names()[owner] for owner in queries.query_of_row] == list(qid)


@given(columns)
def test_everything_public_stays_in_input_order(qid):
    queries = numbered(qid)
    assert queries.X[:, 0].tolist() == list(range(len(qid)))
    assert list(queries.docid) == [f"d{row}" for row in range(len(qid))]
    assert sorted(queries.rows) == list(range(len(qid)))


def test_features_are_the_callers_own_memory():
    X = np.ones((4, 2), dtype=np.float32)
    assert np.shares_memory(Queries.from_arrays(X, group=[4]).X, X)
    assert np.shares_memory(Queries.from_arrays(X, qid=[1, 2, 1, 2]).X, X)


def test_a_text_is_not_the_number_it_spells():
    assert len(numbered([1, "1", (1,), "01"])) == 4


def test_ids_that_numpy_would_merge_stay_apart():
    assert len(numbered(["a", "a\0"])) == 2
    assert len(numbered([2**63, 2**63 + 1, -1])) == 3
    assert len(numbered([10**30, 10**30 + 1])) == 2


def test_ids_given_as_numpy_scalars_are_an_array_of_them():
    assert numbered(list(np.array([3, 1, 3]))).qid.dtype == np.int64
    assert numbered(list(np.array(["x", "y"]))).qid.dtype.kind == "U"


def test_a_frames_column_serves_as_ids():
    pd = pytest.importorskip("pandas")
    assert numbered(pd.Series(["x", "y", "x"], index=[5, 6, 7])).names() == ["x", "y"]


def test_sizes_make_consecutive_queries():
    queries = Queries.from_arrays(np.zeros((5, 1)), group=[2, 1, 2])
    assert queries.sizes.tolist() == [2, 1, 2]
    assert queries.qid is None
    assert queries.names() == [0, 1, 2]


@pytest.mark.parametrize("nothing", [None, float("nan"), np.float64("nan")])
def test_a_missing_id_is_named_by_its_row(nothing):
    with pytest.raises(DataError, match=r"qid is missing .* at row 1$"):
        numbered(["a", nothing, "a"])


def test_pandas_own_missing_value_is_missing_too():
    pd = pytest.importorskip("pandas")
    with pytest.raises(DataError, match=r"qid is missing .* at row 1"):
        numbered(pd.Series([1, None, 2], dtype="Int64"))


@pytest.mark.parametrize("unhashable", [[[1], [2]], [np.zeros(2), np.zeros(2)], [{"a": 1}, 3]])
def test_ids_without_a_hash_are_refused(unhashable):
    with pytest.raises(DataError, match="query ids must be hashable"):
        numbered(unhashable)


# ------------------------------------------------------------------------------------------- the edge


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"qid": None}, "qid= .* or group= .*; got neither"),
        ({"group": [3]}, "got both"),
        ({"qid": [1, 1]}, "got 2 ids for 3 rows"),
        ({"qid": None, "group": [1, 1]}, "add up to 2, but there are 3 rows"),
        ({"qid": None, "group": [7, 7, 8]}, r"add up to 22, but there are 3 rows \(query ids go into qid=\)"),
        ({"qid": None, "group": [4, -1]}, "got -1 at position 1"),
        ({"qid": None, "group": [1.5, 1.5]}, "whole numbers"),
        ({"X": [1.0, 2.0, 3.0]}, r"X.reshape\(-1, 1\)"),
        ({"X": [["a"], ["b"], ["c"]]}, "X must hold numbers"),
        ({"X": [[1.0], [np.nan], [0.0]]}, "X is nan at row 1, feature 0: pass missing="),
        ({"X": [[1.0], [2.0], [-np.inf]], "feature_names": ["bm25"]}, r"X is -inf at row 2, feature 0 \(bm25\)"),
        ({"y": [0, -1, 2]}, "labels must be 0 or more, got -1 at row 1"),
        ({"y": [0, 1, np.nan]}, "labels must be finite, got nan at row 2"),
        ({"y": ["good", "bad", "bad"]}, "labels must be numbers, got the text .good."),
        ({"y": [0, 1]}, r"got shape \(2,\) for 3 rows"),
        ({"weight": [1.0]}, r"one number per query, got shape \(1,\) for 2 queries"),
        ({"weight": [1.0, -1.0]}, "query weights must be 0 or between .*, got -1.0 at query 1"),
        ({"weight": [0.0, 0.0]}, "at least one query weight must be above 0"),
        ({"docid": ["a"]}, "got 1 for 3 rows"),
        ({"feature_names": ["a", "b"]}, "got 2 names for 1 features"),
        ({"X": np.zeros((3, 2)), "feature_names": ["a", "a"]}, "feature_names must differ, got 'a' twice"),
        ({"missing": "mean"}, "missing must be 'error', 'zero', 'min' or 'keep', got 'mean'"),
    ],
)
def test_what_cannot_be_meant_is_refused_in_one_sentence(change, sentence):
    given = {"X": [[1.0], [2.0], [3.0]], "y": [0, 1, 2], "qid": ["a", "b", "a"]} | change
    with pytest.raises(RankwiseError, match=sentence) as refusal:
        Queries.from_arrays(given.pop("X"), given.pop("y"), **given)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"start": ["a", "b", "a"]}, r"got one value per row: pass query ids as Queries.from_arrays\(X, y, qid=ids\)"),
        ({"start": [7, 7, 8]}, r"pass query ids as Queries.from_arrays\(X, y, qid=ids\)"),
        ({"start": [2, 1]}, r"pass sizes as Queries.from_arrays\(X, y, group=sizes\)"),
        ({"start": [0, 4]}, "offsets that climb from 0 to the number of rows, 3; got an array of shape"),
        ({"start": [0, 2, 1, 3]}, "offsets that climb"),
        ({"start": [0.0, 3.0]}, "offsets that climb"),
        ({"start": [0, 2**64 - 1, 3]}, "offsets that climb"),
        ({"start": []}, "offsets that climb"),
        ({"start": 3}, "offsets that climb"),
        ({"start": [[0, 3]]}, "offsets that climb"),
        ({"rows": [0, 1]}, r"rows must hold every row number once, 3 of them, got an array of shape \(2,\)"),
        ({"rows": [0, 1, 3]}, "got 3 at position 2 of 3"),
        ({"rows": [0, -1, 2]}, "got -1 at position 1"),
        ({"rows": [0, 1, 1]}, "row 2 is missing"),
        ({"rows": [0, 1, 2**64 - 1]}, "rows must hold every row number once"),
        ({"rows": [0.0, 1.0, 2.0]}, "rows must hold every row number once"),
        ({"y": [0, 1]}, "y must hold one number per row"),
        ({"y": [0, 1, -1]}, "labels must be 0 or more"),
        ({"X": [[1.0], [np.nan], [2.0]]}, "X is nan at row 1"),
        ({"X": [1.0, 2.0, 3.0]}, "two dimensions"),
        ({"weight": [1.0, 1.0, 1.0]}, "one number per query"),
        ({"qid": ["a", "b", "a"]}, "got 3 ids for 2 queries; pass ids of rows to"),
        ({"qid": ["a", "a"]}, "qid holds 'a' twice"),
        ({"docid": ["a"]}, "one id per row"),
        ({"docid": 3}, "a list of texts"),
        ({"feature_names": ["a", "b"]}, "one name per feature"),
        ({"scaling": "standard"}, "scaling must be a Scaler fitted on 1 features"),
    ],
)
def test_r2_the_constructor_checks_the_layout_that_it_is_given(change, sentence):
    given = {"X": [[1.0], [2.0], [3.0]], "y": [0, 1, 2], "start": [0, 2, 3]} | change
    with pytest.raises(DataError, match=sentence) as refusal:
        Queries(**given)
    assert "\n" not in str(refusal.value)


@given(columns, st.randoms(use_true_random=False))
def test_r2_a_layout_that_is_right_is_taken_as_it_is(qid, random):
    """Queries made anew of the parts of others are the same; with one row in place of another they are refused."""
    queries = numbered(qid)
    again = Queries(queries.X, queries.y, queries.start, queries.rows, qid=queries.qid, docid=queries.docid)
    assert again.names() == queries.names()
    assert [query.X.tolist() for query in again] == [query.X.tolist() for query in queries]
    if len(qid) > 1:
        rows = queries.rows.copy()
        one, two = random.sample(range(len(rows)), 2)
        rows[one] = rows[two]
        with pytest.raises(DataError, match="rows must hold every row number once"):
            Queries(queries.X, queries.y, queries.start, rows)


@pytest.mark.parametrize(
    "change",
    [{"X": [1.0]}, {"X": [["a"]]}, {"y": [1.0]}, {"y": "ab"}, {"docid": ["a"]}, {"weight": -1}, {"weight": "1"}],
)
def test_r2_a_query_made_by_hand_is_checked(change):
    given = {"X": [[1.0], [2.0]], "y": [0, 1], "qid": "q", "docid": None, "weight": 1.0, "feature_names": None}
    assert len(Query(**given)) == 2
    with pytest.raises(DataError):
        Query(**given | change)


@pytest.mark.parametrize("offset", [[0, 4], [0, 2, 1], [-1, 2], [0, 2**62, 3], [], [0.0, 3.0]])
def test_r2_texts_lie_inside_of_their_bytes(offset):
    data = np.frombuffer(b"abc", dtype=np.uint8)
    assert list(StringColumn(data, np.array([0, 1, 3]))) == ["a", "bc"]
    with pytest.raises(DataError, match="the offsets of a StringColumn"):
        StringColumn(data, np.array(offset))
    with pytest.raises(DataError, match="the bytes of a StringColumn"):
        StringColumn("abc", np.array([0, 3]))


def test_missing_values_become_zero_or_the_smallest_of_their_query():
    X = np.array([[np.nan, 5.0], [3.0, np.inf], [-2.0, np.nan], [np.nan, np.nan]])
    qid = ["a", "b", "a", "b"]
    zero = Queries.from_arrays(X, qid=qid, missing="zero")
    least = Queries.from_arrays(X, qid=qid, missing="min")
    assert zero.X.tolist() == [[0, 5], [3, 0], [-2, 0], [0, 0]]
    assert least.X.tolist() == [[-2, 5], [3, 0], [-2, 5], [3, 0]]
    assert np.isnan(X[0, 0])  # the caller's array is left alone


@pytest.mark.parametrize(
    ("dtype", "kept"),
    [("float32", "float32"), ("float64", "float64"), ("float16", "float32"), ("int32", "float64"), ("bool", "float64")],
)
def test_single_and_double_precision_are_kept(dtype, kept):
    assert Queries.from_arrays(np.ones((2, 3), dtype=dtype), group=[2]).X.dtype == kept


def test_foreign_layouts_become_rows_one_after_the_other():
    X = np.arange(12.0).reshape(3, 4)
    for foreign in (np.asfortranarray(X), X[::-1][::-1], X.astype(">f8")):
        queries = Queries.from_arrays(foreign, group=[3])
        assert queries.X.flags.c_contiguous
        assert queries.X.dtype.isnative
        np.testing.assert_array_equal(queries.X, X)


def test_a_mapped_matrix_stays_mapped_and_its_columns_do_not_pass_for_rows(tmp_path):
    mapped = np.memmap(tmp_path / "X", dtype=np.float64, mode="w+", shape=(4, 6))
    mapped[:] = np.arange(24.0).reshape(4, 6)
    assert isinstance(Queries.from_arrays(mapped, group=[4]).X, np.memmap)
    every_other = Queries.from_arrays(mapped[:, ::2], group=[4])
    assert every_other.X.flags.c_contiguous
    np.testing.assert_array_equal(every_other.X, mapped[:, ::2])


@pytest.mark.parametrize("make", [scipy.sparse.csr_matrix, scipy.sparse.csc_array, scipy.sparse.coo_matrix])
def test_sparse_features_are_made_dense(make):
    X = np.array([[0.0, 1.5], [2.5, 0.0]])
    np.testing.assert_array_equal(Queries.from_arrays(make(X), group=[2]).X, X)


@pytest.mark.parametrize(("dtype", "gibibytes"), [("float64", "7.5"), ("float32", "3.7"), ("int8", "7.5")])
def test_sparse_features_that_do_not_fit_are_refused_with_the_figure(monkeypatch, dtype, gibibytes):
    monkeypatch.setattr(checks, "available_memory", lambda: 2**30)
    X = scipy.sparse.csr_matrix((1_000_000, 1_000), dtype=dtype)
    with pytest.raises(DataError, match=f"would take {gibibytes} GiB when dense, but 1.0 GiB"):
        Queries.from_arrays(X, group=[1_000_000])


def test_sparse_features_are_taken_where_the_system_does_not_tell_its_memory(monkeypatch):
    monkeypatch.setattr(checks, "available_memory", lambda: None)
    assert Queries.from_arrays(scipy.sparse.eye(3, format="csr"), group=[3]).n_features == 3


# ------------------------------------------------------------------------------------------- choosing


def choices(count):
    numbers = st.lists(st.integers(-count, count - 1), max_size=8) if count else st.just([])
    bound = st.one_of(st.none(), st.integers(-count - 1, count + 1))
    return st.one_of(
        st.builds(slice, bound, bound, st.sampled_from([None, 1, 2, -1, -3])),
        numbers,
        st.lists(st.booleans(), min_size=count, max_size=count).map(lambda mask: np.array(mask, dtype=bool)),
    )


@given(st.data(), columns)
def test_choosing_queries_is_choosing_from_a_list_of_lists(data, qid):
    queries = numbered(qid)
    key = data.draw(choices(len(queries)))
    chosen = queries[key]
    places = np.arange(len(queries))[np.array(key, dtype=int) if isinstance(key, list) else key]
    expected = [list(lists_by_dictionary(qid).values())[place] for place in places]
    assert [query.X[:, 0].tolist() for query in chosen] == expected
    assert chosen.names() == [queries.names()[place] for place in places]
    assert list(chosen.docid) == [f"d{row}" for rows in expected for row in rows]
    assert chosen.y.tolist() == [row % 3 for rows in expected for row in rows]
    assert chosen.is_grouped


def test_weights_and_names_go_with_the_queries(three):
    chosen = three[[2, 0]]
    assert chosen.names() == ["c", "b"]
    assert chosen.weight.tolist() == [4.0, 1.0]
    assert chosen.feature_names == ("number",)
    assert [query.weight for query in three] == [1.0, 2.0, 4.0]


def test_a_number_gives_one_query(three):
    query = three[-2]
    assert (query.qid, len(query), query.weight) == ("a", 2, 2.0)
    assert query.X[:, 0].tolist() == [1, 4]
    assert list(query.docid) == ["d1", "d4"]
    with pytest.raises(IndexError):
        three[3]


def test_a_slice_of_grouped_queries_is_a_view():
    queries = numbered([1, 1, 2, 2, 3])
    assert np.shares_memory(queries[1:].X, queries.X)
    assert queries[1:].X[:, 0].tolist() == [2, 3, 4]


@pytest.mark.parametrize("key", [[0, 7], [True, False], [0.5], ["a"], None, {"a"}])
def test_what_chooses_no_query_is_refused(three, key):
    with pytest.raises(DataError, match="chosen by number, slice, mask or list of numbers"):
        three[key]


# ------------------------------------------------------------------------------------------- immutable


def test_nothing_can_be_written_through(three):
    assert not three.is_grouped
    for array in (three.X, three.y, three.start, three.rows, three.weight, three.qid):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = array[0]


def test_one_query_is_a_read_only_view_where_its_rows_stand_together(three):
    grouped = three[:]
    with pytest.raises(ValueError, match="read-only"):
        grouped[0].y[0] = 1


# ------------------------------------------------------------------------------------------- making others


def test_other_labels_and_weights_leave_the_first_alone(three):
    other = three.with_labels(np.ones(6)).with_weight([1, 1, 2])
    assert other.y.tolist() == [1] * 6
    assert other.weight.tolist() == [1, 1, 2]
    assert three.y.tolist() == [0, 1, 2, 0, 1, 2]
    assert three.weight.tolist() == [1, 2, 4]
    assert np.shares_memory(other.X, three.X)


def test_labels_are_asked_for_where_they_are_needed(three):
    unlabeled = three.with_labels(None)
    assert unlabeled.y is None
    assert "no labels" in repr(unlabeled)
    with pytest.raises(DataError, match="have no labels"):
        unlabeled.labels()


def test_features_are_mapped_with_their_names(three):
    doubled = three.map_features(lambda X: 2 * X)
    assert doubled.X[:, 0].tolist() == [0, 2, 4, 6, 8, 10]
    assert doubled.feature_names == ("number",)
    wider = three.map_features(lambda X: np.hstack([X, X**2]), feature_names=["number", "square"])
    assert wider.feature_names == ("number", "square")
    assert three.map_features(lambda X: np.hstack([X, X])).feature_names is None


def test_a_function_that_loses_rows_or_numbers_is_refused(three):
    with pytest.raises(DataError, match="returned 5 rows for 6 documents"):
        three.map_features(lambda X: X[1:])
    with pytest.raises(DataError, match="X is -inf at row 0"), np.errstate(divide="ignore"):
        three.map_features(np.log)


def test_features_are_selected_and_reordered_by_name():
    queries = Queries.from_arrays([[1.0, 2.0, 3.0]], group=[1], feature_names=["a", "b", "c"])
    assert queries.select_features(["c", "a"]).X.tolist() == [[3, 1]]
    assert queries.select_features(["a", "b", "c"]) is queries
    with pytest.raises(DataError, match="feature 'd' is not among the 3 features"):
        queries.select_features(["a", "d"])
    with pytest.raises(DataError, match="have no feature names"):
        Queries.from_arrays([[1.0]], group=[1]).select_features(["a"])


@given(columns)
def test_pickling_gives_the_same_queries(qid):
    queries = numbered(qid)
    back = pickle.loads(pickle.dumps(queries))
    assert back.names() == queries.names()
    assert back.is_grouped == queries.is_grouped
    assert list(back.docid) == list(queries.docid)
    for name in ("X", "y", "start", "rows"):
        np.testing.assert_array_equal(getattr(back, name), getattr(queries, name))
        assert not back.X.flags.writeable


# ------------------------------------------------------------------------------------------- concatenating


@given(columns, st.lists(st.integers(0, 12), max_size=3))
def test_what_was_cut_is_joined_again(qid, cuts):
    queries = numbered(qid)[:]
    bounds = sorted({0, len(queries), *(cut for cut in cuts if cut <= len(queries))})
    parts = [queries[first:last] for first, last in pairwise(bounds)] or [queries]
    whole = Queries.concat(parts)
    assert whole.names() == queries.names()
    assert list(whole.docid) == list(queries.docid)
    np.testing.assert_array_equal(whole.X, queries.X)
    np.testing.assert_array_equal(whole.start, queries.start)


def test_parts_whose_rows_are_scattered_keep_their_order():
    first, second = numbered(["a", "b", "a"]), numbered(["d", "c", "c", "d"])
    whole = Queries.concat([first, second])
    assert whole.X[:, 0].tolist() == [0, 1, 2, 0, 1, 2, 3]
    assert [query.X[:, 0].tolist() for query in whole] == [[0, 2], [1], [0, 3], [1, 2]]


def test_two_lists_never_become_one(three):
    with pytest.raises(DataError, match=r"query 'b' is in part 0 and in part 1: .* pass rename=True"):
        Queries.concat([three, three[:1]])
    renamed = Queries.concat([three, three[:1]], rename=True)
    assert renamed.names() == ["0/b", "0/a", "0/c", "1/b"]


def test_ids_of_different_kinds_live_side_by_side():
    assert Queries.concat([numbered([1, 2]), numbered(["1"])]).names() == [1, 2, "1"]


def test_parts_without_weights_weigh_one(three):
    assert Queries.concat([numbered(["z"], feature_names=["number"]), three]).weight.tolist() == [1, 1, 2, 4]


def test_features_are_joined_by_name():
    one = Queries.from_arrays([[1.0, 2.0]], qid=["a"], feature_names=["x", "y"])
    two = Queries.from_arrays([[4.0, 3.0]], qid=["b"], feature_names=["y", "x"])
    assert Queries.concat([one, two]).X.tolist() == [[1, 2], [3, 4]]


@pytest.mark.parametrize(
    ("one", "two", "sentence"),
    [
        ({}, {"X": np.zeros((1, 2))}, "part 0 has 1 features, part 1 has 2"),
        ({"feature_names": ["a"]}, {"feature_names": ["b"]}, "feature 'a' is not among"),
        ({"feature_names": ["a"]}, {}, "only one names its features"),
        ({"y": [1]}, {}, "part 1 carries no labels and others do"),
        ({"docid": ["d"]}, {}, "part 1 has no document ids"),
        ({}, {"qid": None, "group": [1]}, "part 1 has no query ids"),
    ],
)
def test_parts_that_do_not_fit_are_refused(one, two, sentence):
    parts = [
        Queries.from_arrays(**{"X": np.zeros((1, 1)), "qid": [number]} | part) for number, part in enumerate((one, two))
    ]
    with pytest.raises(DataError, match=sentence):
        Queries.concat(parts)


def test_nothing_cannot_be_concatenated():
    with pytest.raises(DataError, match="at least one part"):
        Queries.concat([])


def test_an_empty_set_of_queries_is_one():
    empty = Queries.from_arrays(np.zeros((0, 4)), np.zeros(0), qid=[])
    assert (len(empty), empty.shape, list(empty), empty.names()) == (0, (0, 4), [], [])
    assert repr(empty) == "Queries(0 queries, 0 documents, 4 features, labels none)"
    assert len(empty[:]) == len(empty[[]]) == len(Queries.concat([empty, empty])) == 0


# ------------------------------------------------------------------------------------------- texts


@given(st.lists(st.text(max_size=5)), st.data())
def test_texts_behave_as_a_list_of_str(words, data):
    texts = StringColumn.of(words)
    assert list(texts) == words
    assert [texts[place] for place in range(-len(words), len(words))] == words + words
    key = data.draw(choices(len(words)))
    places = np.arange(len(words))[np.array(key, dtype=int) if isinstance(key, list) else key]
    chosen = texts[np.array(key, dtype=int) if isinstance(key, list) else key]
    assert list(chosen) == [words[place] for place in places]
    assert list(chosen[:1]) == list(chosen)[:1]
    assert list(pickle.loads(pickle.dumps(chosen))) == list(chosen)
    assert list(StringColumn.concat([chosen, texts])) == list(chosen) + words


def test_texts_keep_bytes_that_are_not_utf8():
    odd = b"caf\xe9".decode("utf-8", "surrogateescape")
    assert list(StringColumn.of([odd, "x"])) == [odd, "x"]


def test_half_a_surrogate_pair_is_no_text():
    with pytest.raises(DataError, match="surrogate"):
        StringColumn.of(["\ud800"])


def test_a_data_frame_brings_the_names_of_its_features():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"bm25": [1.0, 2.0], "clicks": [3, 4]})
    queries = Queries.from_arrays(frame, pandas.Series([0, 1]), qid=pandas.Series(["a", "a"]))
    assert queries.feature_names == ("bm25", "clicks")
    assert queries.X.tolist() == [[1, 3], [2, 4]]


def test_masked_values_are_missing():
    X = np.ma.masked_array([[1.0], [2.0]], mask=[[False], [True]])
    with pytest.raises(DataError, match="X is nan at row 1, feature 0"):
        Queries.from_arrays(X, group=[2])
    assert Queries.from_arrays(X, group=[2], missing="zero").X.tolist() == [[1.0], [0.0]]


def test_queries_do_not_change():
    queries = Queries.from_arrays([[1.0]], [0], group=[1])
    with pytest.raises(AttributeError, match="Queries are immutable"):
        queries.y = None
    with pytest.raises(ValueError, match="read-only"):
        queries.X[0, 0] = 5


def test_kept_nan_is_refused_however_the_queries_were_cut_and_copied():
    X, y, qid = np.array([[0.5], [np.nan], [0.25], [1.0]]), [1, 0, 0, 2], [1, 1, 2, 2]
    kept, whole = Queries.from_arrays(X, y, qid=qid, missing="keep"), Queries.from_arrays(X[2:], y[2:], qid=qid[2:])
    changed = whole._replace(X=kept.X[:2])
    for queries in (kept, kept[:1], kept[[1, 0]], kept.with_weight([1, 2]), pickle.loads(pickle.dumps(kept)), changed):
        for _ in range(2):
            with pytest.raises(DataError, match=r"X is nan at row .*, and a test gives no meaning to missing values"):
                queries.refuse_missing("a test")
    for queries in (whole, kept[1:], pickle.loads(pickle.dumps(whole)), kept[1:].with_labels([1, 0])):
        queries.refuse_missing("a test")
