"""Fingerprints: the same query has the same hash however it is written down, and any other query another one."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankwise.queries import fingerprints as module
from rankwise.queries.fingerprints import Fingerprints, Seen, TrainingRecord, fingerprints, pack_marks
from rankwise.queries.queries import Queries


def hashes(queries, **options):
    return fingerprints(queries, **options)["hash"]


def marks(numbers):
    """Fingerprints with these hashes and no sketches."""
    return pack_marks(np.array(numbers, np.uint64), np.zeros((len(numbers), 4), np.uint32))


def lists(count=30, features=5, seed=0, dtype=np.float64, least=2, largest=9):
    random = np.random.default_rng(seed)
    sizes = random.integers(least, largest, count)
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
    np.testing.assert_array_equal(hashes(shuffled), hashes(queries)[place])


def test_neither_storage_nor_threads_nor_the_sign_of_zero_matter():
    queries = lists()
    words = hashes(queries)
    assert len(set(words.tolist())) == len(queries)
    np.testing.assert_array_equal(hashes(lists(dtype=np.float32)), words)
    np.testing.assert_array_equal(hashes(queries, n_jobs=1), words)
    np.testing.assert_array_equal(hashes(queries[4:9]), words[4:9])
    zero, minus = (Queries.from_arrays([[0.0], [1.0]], [1, 0], group=[2]) for _ in range(2))
    minus = minus.map_features(lambda X: np.where(X == 0, -0.0, X))
    assert np.signbit(minus.X).any()
    np.testing.assert_array_equal(hashes(minus), hashes(zero))


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
    one, two = (hashes(Queries.from_arrays(a, b, group=[len(a)]))[0] for a, b in ((X, y), (other, labels)))
    assert one != two


@given(seed=st.integers(0, 30), row=st.integers(0, 39), column=st.integers(0, 3))
def test_of_a_long_list_every_feature_of_every_document_counts(seed, row, column):
    random = np.random.default_rng(seed)
    X, y = random.normal(size=(40, 4)), random.permutation(np.repeat([0.0, 1.0, 2.0], [31, 6, 3]))
    features, labels = X.copy(), y.copy()
    features[row, column] = np.nextafter(features[row, column], 9)
    labels[row] += 1.0
    order = random.permutation(40)
    as_given, other, relabeled, shuffled = (
        hashes(Queries.from_arrays(a, b, group=[40]))[0]
        for a, b in ((X, y), (features, y), (X, labels), (X[order], y[order]))
    )
    assert as_given == shuffled
    assert len({as_given, other, relabeled}) == 3


def test_half_a_million_small_lists_of_few_values_share_no_word():
    """Two documents with three features that are 0 to 9: different lists, which differ in a few bits."""
    digits = np.arange(10**6)
    X = np.stack([digits // 10**k % 10 for k in range(6)], axis=1).astype(float).reshape(-1, 3)
    queries = Queries.from_arrays(X, np.tile([1.0, 0.0], len(digits)), group=np.full(len(digits), 2))
    words = hashes(queries)
    assert len(np.unique(words)) == len(words)


def test_sketches_are_those_of_the_documents_with_the_smallest_hashes():
    """T5: neither labels nor the order of rows change them, and every place of a list has its share."""
    queries, random = lists(200, largest=9, least=8), np.random.default_rng(1)
    sketches = fingerprints(queries)["documents"]
    assert (sketches != 0).all()
    assert all(len(set(row)) == 4 for row in sketches.tolist())
    order = np.concatenate([start + random.permutation(8) for start in queries.start[:-1]])
    other = Queries.from_arrays(queries.X[order], 2 - queries.y[order], group=[8] * 200)
    np.testing.assert_array_equal(fingerprints(other)["documents"], sketches)
    for place in range(8):  # a list without this document has other sketches in half of all cases
        without = np.delete(np.arange(1600), np.arange(place, 1600, 8))
        cut = fingerprints(Queries.from_arrays(queries.X[without], queries.y[without], group=[7] * 200))["documents"]
        assert 60 < (cut != sketches).any(axis=1).sum() < 140


def test_documents_that_are_all_alike_have_one_sketch_and_those_without_features_none():
    X = [[1.0, 2.0], [1.0, 2.0], [1.0, 2.0], [3.0, 4.0], [0.0, 0.0]]
    marks_of = fingerprints(Queries(X, [1, 1, 0, 0, 1], [0, 2, 4, 5]))
    assert (marks_of["documents"] != 0).sum(axis=1).tolist() == [1, 2, 0]


def bare(labels, docid=None, qid=None):
    """Queries without features; lists of labels, and of ids of documents."""
    flat, sizes = [one for query in labels for one in query], [len(query) for query in labels]
    return Queries(
        np.empty((len(flat), 0)),
        flat,
        np.concatenate([[0], np.cumsum(sizes)]),
        docid=None if docid is None else [one for query in docid for one in query],
        qid=qid,
    )


def test_t6_without_features_ids_are_the_content():
    labels = [[1, 0, 0], [1, 0, 0]]
    with_ids = bare(labels, [["a", "b", "c"], ["a", "b", "d"]], ["1", "2"])
    assert len(set(hashes(with_ids).tolist())) == 2
    assert len(set(hashes(bare(labels, [["a", "b", "c"], ["a", "b", "c"]])).tolist())) == 1
    assert len(set(hashes(bare(labels, qid=["1", "2"])).tolist())) == 2
    assert len(set(hashes(bare(labels)).tolist())) == 1
    again = bare(labels, [["c", "a", "b"], ["a", "b", "d"]], ["1", "2"]).with_labels([0.0, 1, 0, 1, 0, 0])
    np.testing.assert_array_equal(hashes(again), hashes(with_ids))


def test_ids_are_left_out_where_there_are_features():
    queries = lists(5)
    named = Queries(queries.X, queries.y, queries.start, docid=[f"d{i}" for i in range(len(queries.X))])
    np.testing.assert_array_equal(fingerprints(named), fingerprints(queries))


def test_labels_are_left_out_where_there_are_none():
    queries = lists()
    bare = hashes(queries.with_labels(None))
    assert len(set(bare.tolist())) == len(queries)
    assert not (bare == hashes(queries)).any()


@given(cuts=st.lists(st.integers(0, 40), max_size=6), seed=st.integers(0, 9))
def test_streams_remember_the_same_however_they_are_cut(cuts, seed):
    some = marks(np.random.default_rng(seed).integers(1, 2**60, 40))
    weight = np.random.default_rng(seed).random(40)
    remembered, record, first = Fingerprints(), TrainingRecord(), 0
    for cut in [*sorted(cuts), 40]:
        remembered, record = remembered.add(some[first:cut]), record.add(some[first:cut], weight[first:cut])
        first = cut
    np.testing.assert_array_equal(remembered.marks, some)
    assert record == TrainingRecord().add(some, weight)


@given(seed=st.integers(0, 20))
def test_a_record_knows_content_weights_and_order(seed):
    random = np.random.default_rng(seed)
    queries, order = lists(seed=seed), random.permutation(30)
    record = TrainingRecord.of(queries)
    assert record.compare(TrainingRecord.of(queries)) == "same"
    assert record.compare(TrainingRecord.of(queries.with_weight(np.ones(30)))) == "same"
    assert record.compare(TrainingRecord.of(queries[order])) == "in another order"
    heavier = np.ones(30)
    heavier[random.integers(30)] = 2.0
    assert record.compare(TrainingRecord.of(queries.with_weight(heavier))) == "with other weights"
    assert record.compare(TrainingRecord.of(queries[1:])) == "other"
    assert record.compare(TrainingRecord.of(queries.with_labels(queries.y + 1))) == "other"
    weighted = TrainingRecord.of(queries.with_weight(np.arange(1.0, 31.0)))
    assert weighted.compare(TrainingRecord.of(queries[order].with_weight(np.arange(1.0, 31.0)))) == "with other weights"


def test_a_record_knows_lists_whose_documents_are_all_alike():
    one, two = (Queries.from_arrays([[1.0], [1.0]], y, group=[2]) for y in ([1, 0], [1, 1]))
    assert TrainingRecord.of(one).compare(TrainingRecord.of(two)) == "other"


def test_runs_that_part_keep_their_own_words():
    common = Fingerprints().add(marks([1, 2, 3]))
    one, two = common.add(marks([11])), common.add(marks([12, 13]))
    assert common.marks["hash"].tolist() == [1, 2, 3]
    assert one.marks["hash"].tolist() == [1, 2, 3, 11]
    assert two.marks["hash"].tolist() == [1, 2, 3, 12, 13]


def test_memory_is_bounded_and_what_was_forgotten_is_known(monkeypatch):
    monkeypatch.setattr(module, "MOST", 5)
    remembered = Fingerprints()
    for word in range(1, 9):
        remembered = remembered.add(marks([word]))
    assert remembered.marks["hash"].tolist() == [1, 2, 3, 4, 5]
    assert remembered.forgotten == 3
    both = Seen(remembered) | Seen(Fingerprints.of(marks([6]), 2))
    assert (both.training.length, both.training.forgotten) == (5, 6)


def test_memory_grows_by_doubling():
    remembered, rooms = Fingerprints(), set()
    for word in range(1, 1001):
        remembered = remembered.add(marks([word]))
        rooms.add(len(remembered.buffer))
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
