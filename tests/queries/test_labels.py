"""Labels that carry the grouping of their rows: what keeps it, what loses it, and what a cut query leads to."""

import copy
import pickle

import joblib
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.model_selection import train_test_split
from sklearn.utils import _safe_indexing

from rankwise import Queries, make_lists
from rankwise.errors import DataError
from rankwise.sklearn import labels

QID = np.array(["b", "a", "b", "c", "a", "b"])
Y = np.array([0.0, 2.0, 1.0, 0.0, 1.0, 3.0])


@pytest.fixture
def y():
    return labels(Y, qid=QID)


@pytest.mark.parametrize(
    "pick",
    [
        lambda y: y[[4, 1]],
        lambda y: y[np.array([4, 1])],
        lambda y: y.take([4, 1]),
        lambda y: np.take(y, [4, 1]),
        lambda y: np.take(y, [4, 1], axis=0),
        lambda y: y[np.array([4, 1]), ...],
        lambda y: y[1:5:3][::-1],
        lambda y: y[np.isin(np.arange(6), [1, 4])][::-1],
        lambda y: _safe_indexing(y, [4, 1]),
        lambda y: copy.copy(y)[[4, 1]],
        lambda y: copy.deepcopy(y)[[4, 1]],
        lambda y: y.copy()[[4, 1]],
        lambda y: y.astype(np.float32)[[4, 1]],
        *(lambda y, p=p: pickle.loads(pickle.dumps(y, protocol=p))[[4, 1]] for p in range(pickle.HIGHEST_PROTOCOL + 1)),
    ],
)
def test_selections_and_copies_keep_the_grouping(y, pick):
    kept = pick(y)
    assert kept.tolist() == [1.0, 2.0]
    assert kept.qid.tolist() == ["a", "a"]
    assert kept.whole_queries().tolist() == ["a", "a"]


def test_other_processes_keep_the_grouping(y):
    (found,) = joblib.Parallel(n_jobs=2)([joblib.delayed(copy.copy)(y)])
    assert found.qid.tolist() == QID.tolist()


def test_scikit_learn_splits_them_by_group(y):
    first, second = train_test_split(y, shuffle=False, test_size=0.5)
    assert first.qid.tolist() == QID[:3].tolist()
    assert second.qid.tolist() == QID[3:].tolist()


@pytest.mark.parametrize(
    "change",
    [
        lambda y: y + 1,
        lambda y: 2 * y,
        lambda y: np.log1p(y),
        lambda y: y > 0,
        lambda y: np.sort(y),
        lambda y: np.concatenate([y, y]),
        lambda y: np.concatenate((y, Y)),
        lambda y: np.where(y > 0, y, 0),
        lambda y: np.unique(y),
        lambda y: y[None],
        lambda y: np.asarray(y),
        lambda y: np.array(y, copy=True),
        lambda y: np.add(y, 1, out=y.copy()),
        lambda y: y.take([0], out=np.empty(1)),
    ],
)
def test_arithmetic_gives_plain_arrays(y, change):
    assert type(change(y)) is np.ndarray


def test_an_update_in_place_gives_a_plain_array(y):
    y += 1
    assert type(y) is np.ndarray
    assert y.tolist() == (Y + 1).tolist()


@pytest.mark.parametrize("change", [lambda y: y.reshape(-1), lambda y: y.ravel(), lambda y: y.repeat(2)])
def test_what_numpy_makes_by_itself_has_lost_it_and_says_so(y, change):
    lost = change(y)
    assert lost.qid is None
    with pytest.raises(DataError, match="have lost the grouping of rows"):
        Queries.from_arrays(np.ones((len(lost), 1)), lost)
    assert len(Queries.from_arrays(np.ones((len(lost), 1)), lost, group=[len(lost)])) == 1


def test_single_labels_are_numbers(y):
    assert y[1] == 2.0
    assert isinstance(y[1], np.float64)
    assert float(y.sum()) == 7.0
    assert y.max() == 3.0


@given(st.lists(st.integers(0, 4), min_size=1, max_size=30), st.randoms())
def test_a_selection_is_whole_exactly_if_no_query_is_cut(qid, random):
    y = labels(np.zeros(len(qid)), qid=qid)
    rows = [row for row in range(len(qid)) if random.random() < 0.7]
    random.shuffle(rows)
    if not rows:
        return
    whole = all(set(rows) >= {row for row in range(len(qid)) if qid[row] == qid[kept]} for kept in rows)
    if whole:
        assert y[rows].whole_queries().tolist() == [qid[row] for row in rows]
    else:
        with pytest.raises(DataError, match="a split has cut queries"):
            y[rows].whole_queries()


def test_a_repeated_row_is_no_whole_query(y):
    with pytest.raises(DataError, match="query 'c' has 2 of its 1 documents here"):
        y[[3, 3]].whole_queries()


@pytest.mark.parametrize("qid", [[(1, "x"), (2, "y"), (1, "x")], [1, 2, 1], [1.5, 2.5, 1.5], ["a", "b", "a"]])
def test_ids_are_any_hashable_values(qid):
    y = labels([0, 1, 2], qid=qid)
    assert list(y[[0, 2]].whole_queries()) == [qid[0], qid[2]]
    with pytest.raises(DataError, match="has 1 of its 2 documents"):
        y[:1].whole_queries()


def test_queries_of_them_are_those_of_their_ids(y):
    X = np.arange(6.0)[:, None]
    made, expected = Queries.from_arrays(X, y), Queries.from_arrays(X, Y, qid=QID)
    assert made.names() == expected.names() == ["b", "a", "c"]
    assert type(made.y) is np.ndarray
    np.testing.assert_array_equal(made.rows, expected.rows)


def test_sizes_and_queries_make_them(y):
    assert labels(Y, group=[2, 4]).qid.tolist() == [0, 0, 1, 1, 1, 1]
    queries = make_lists(4, documents=3, random_state=0)
    assert labels(queries).qid.tolist() == [queries.names()[query] for query in queries.query_of_row]
    scattered = labels(Queries.from_arrays(np.ones((6, 1)), Y, qid=QID))
    assert scattered.qid.tolist() == QID.tolist()
    assert scattered.tolist() == Y.tolist()
    assert len(scattered[QID == "a"].whole_queries()) == 2


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({}, "got neither"),
        ({"qid": QID, "group": [6]}, "got both"),
        ({"qid": QID[:2]}, "got 2 ids for 6 rows"),
        ({"group": [1, 2]}, "add up to 3"),
        ({"qid": [None] * 6}, "missing"),
        ({"y": [-1.0], "qid": [1]}, "labels must be 0 or more"),
        ({"y": 3.0, "qid": [1]}, "one number per row"),
        ({"y": ["x"], "qid": [1]}, "one number per row"),
        ({"y": make_lists(2, random_state=0), "qid": QID}, "Queries hold their own grouping"),
    ],
)
def test_bad_input_raises_a_clear_error(given, sentence):
    given = {"y": Y, **given}
    with pytest.raises(DataError, match=sentence):
        labels(given.pop("y"), **given)
