"""Fingerprints: the same list has the same word however it is written down, and any other list another one."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankwise.data import fingerprints as module
from rankwise.data.fingerprints import Fingerprints, Seen, fingerprints
from rankwise.data.queries import Queries


def lists(count=30, features=5, seed=0, dtype=np.float64):
    random = np.random.default_rng(seed)
    sizes = random.integers(2, 9, count)
    X = random.normal(size=(sizes.sum(), features)).astype(np.float32).astype(dtype)
    return Queries.from_arrays(X, random.integers(0, 3, len(X)), group=sizes)


@given(seed=st.integers(0, 50))
def test_ids_and_orders_of_rows_and_lists_do_not_matter(seed):
    queries = lists(seed=seed)
    random = np.random.default_rng(seed)
    order = random.permutation(queries.n_documents)
    owner = queries.query_of_row
    shuffled = Queries.from_arrays(queries.X[order], queries.y[order], qid=[f"other {owner[row]}" for row in order])
    place = [int(name.split()[1]) for name in shuffled.names()]
    np.testing.assert_array_equal(fingerprints(shuffled), fingerprints(queries)[place])


def test_neither_storage_nor_threads_nor_the_sign_of_zero_matter():
    queries = lists()
    words = fingerprints(queries)
    assert len(set(words.tolist())) == len(queries)
    np.testing.assert_array_equal(fingerprints(lists(dtype=np.float32)), words)
    np.testing.assert_array_equal(fingerprints(queries, n_jobs=1), words)
    np.testing.assert_array_equal(fingerprints(queries[4:9]), words[4:9])
    zero, minus = (Queries.from_arrays([[0.0], [1.0]], [1, 0], group=[2]) for _ in range(2))
    minus = minus.map_features(lambda X: np.where(X == 0, -0.0, X))
    assert np.signbit(minus.X).any()
    np.testing.assert_array_equal(fingerprints(minus), fingerprints(zero))


@given(
    seed=st.integers(0, 50),
    change=st.sampled_from(["feature", "label", "two labels", "columns", "twice", "one less", "last bit"]),
)
def test_any_change_of_the_content_makes_another_list(seed, change):
    random = np.random.default_rng(seed)
    X, y = random.integers(0, 3, (6, 4)).astype(float), np.array([0.0, 1, 2, 0, 1, 1])
    X[0], X[1] = [0, 1, 2, 3], [3, 2, 1, 0]  # so that columns and rows differ
    other, labels = X.copy(), y.copy()
    if change == "feature":
        other[2, 1] += 1
    elif change == "label":
        labels[3] = 1
    elif change == "two labels":
        labels[[0, 1]] = labels[[1, 0]]
    elif change == "columns":
        other = other[:, [1, 0, 2, 3]]
    elif change == "twice":
        other, labels = np.vstack([X, X[:1]]), np.append(y, y[0])
    elif change == "one less":
        other, labels = X[:-1], y[:-1]
    else:
        other[2, 1] = np.nextafter(other[2, 1], 9)
    one, two = (fingerprints(Queries.from_arrays(a, b, group=[len(a)]))[0] for a, b in ((X, y), (other, labels)))
    assert one != two


def long_list(seed=0):
    """Forty documents: 3 of label 2, 6 of label 1, 31 of label 0; nine are looked at."""
    random = np.random.default_rng(seed)
    return random.normal(size=(40, 4)), random.permutation(np.repeat([0.0, 1.0, 2.0], [31, 6, 3]))


def word(X, y):
    return fingerprints(Queries.from_arrays(X, y, group=[len(X)]))[0]


@given(seed=st.integers(0, 30), row=st.integers(0, 39))
def test_of_a_long_list_the_documents_of_the_rarest_labels_and_all_labels_count(seed, row):
    X, y = long_list(seed)
    features, labels = X.copy(), y.copy()
    features[row, 2] += 1.0
    labels[row] += 1.0
    assert (word(features, y) != word(X, y)) == (y[row] > 0)
    assert word(X, labels) != word(X, y)
    order = np.random.default_rng(seed).permutation(40)
    assert word(X[order], y[order]) == word(X, y)


def test_of_equally_rare_labels_the_higher_one_is_looked_at():
    random = np.random.default_rng(0)
    X, y = random.normal(size=(20, 3)), np.repeat([0.0, 1.0], 10)
    lower, higher = X.copy(), X.copy()
    lower[3], higher[13] = 0.0, 0.0
    assert word(lower, y) == word(X, y)
    assert word(higher, y) != word(X, y)


def test_a_long_list_whose_rare_documents_are_alike_is_looked_at_as_a_whole():
    X, y = np.random.default_rng(0).normal(size=(40, 3)), np.repeat([0.0, 1.0], [30, 10])
    X[30:] = 0.0
    other = X.copy()
    other[5, 1] += 1.0
    assert 0 != word(X, y) != word(other, y)


def test_half_a_million_small_lists_of_few_values_share_no_word():
    """Two documents with three features that are 0 to 9: different lists, which differ in a few bits."""
    digits = np.arange(10**6)
    X = np.stack([digits // 10**k % 10 for k in range(6)], axis=1).astype(float).reshape(-1, 3)
    queries = Queries.from_arrays(X, np.tile([1.0, 0.0], len(digits)), group=np.full(len(digits), 2))
    words = fingerprints(queries)
    assert len(np.unique(words)) == len(words)


def test_lists_whose_documents_are_all_alike_tell_nothing():
    X = [[1.0, 2.0], [1.0, 2.0], [1.0, 2.0], [3.0, 4.0]]
    queries = Queries(X, [1, 1, 0, 0], [0, 2, 3, 4, 4])
    words = fingerprints(queries)
    assert words.tolist() == [0, 0, 0, 0]
    assert not Fingerprints.of(words).shared(words).any()


def test_labels_are_left_out_where_there_are_none():
    queries = lists()
    bare = fingerprints(queries.with_labels(None))
    assert len(set(bare.tolist())) == len(queries)
    assert not (bare == fingerprints(queries)).any()


@given(cuts=st.lists(st.integers(0, 40), max_size=6), seed=st.integers(0, 9))
def test_streams_remember_the_same_however_they_are_cut(cuts, seed):
    words = np.random.default_rng(seed).integers(1, 2**60, 40).astype(np.uint64)
    remembered, first = Fingerprints(), 0
    for cut in [*sorted(cuts), 40]:
        remembered, first = remembered.added(words[first:cut]), cut
    np.testing.assert_array_equal(remembered.words, words)
    assert remembered.are(words[::-1])
    assert not remembered.are(words[1:])
    assert remembered.shared(words).all()


def test_runs_that_part_keep_their_own_words():
    common = Fingerprints().added(np.arange(1, 4, dtype=np.uint64))
    one = common.added(np.array([11], np.uint64))
    two = common.added(np.array([12, 13], np.uint64))
    assert common.words.tolist() == [1, 2, 3]
    assert one.words.tolist() == [1, 2, 3, 11]
    assert two.words.tolist() == [1, 2, 3, 12, 13]


def test_memory_is_bounded_and_what_was_forgotten_is_known(monkeypatch):
    monkeypatch.setattr(module, "MOST", 5)
    remembered = Fingerprints()
    for word in range(1, 9):
        remembered = remembered.added(np.array([word], np.uint64))
    assert remembered.words.tolist() == [1, 2, 3, 4, 5]
    assert remembered.forgotten == 3
    assert remembered.are(np.arange(1, 9, dtype=np.uint64)) is None
    both = Seen(remembered) | Seen(Fingerprints.of(np.array([6], np.uint64), 2))
    assert (both.training.length, both.training.forgotten) == (5, 6)


def test_memory_grows_by_doubling():
    remembered, rooms = Fingerprints(), set()
    for word in range(1, 1001):
        remembered = remembered.added(np.array([word], np.uint64))
        rooms.add(len(remembered.room))
    assert len(rooms) <= 12
    assert max(rooms) <= 2048


def test_training_and_validation_are_kept_apart():
    seen = Seen().with_training(fingerprints(lists(3))).with_validation(fingerprints(lists(2, seed=1)))
    assert (seen.training.length, seen.validation.length) == (3, 2)
    whole = seen | Seen().with_training(fingerprints(lists(4, seed=2)))
    assert (whole.training.length, whole.validation.length) == (7, 2)
    assert seen.training.length == 3


@pytest.mark.parametrize("features", [0, 1, 300])
def test_any_number_of_features(features):
    queries = lists(features=max(features, 1))
    if features == 0:
        queries = Queries(queries.X[:, :0].copy(), queries.y, queries.start)
    assert len(fingerprints(queries)) == len(queries)
