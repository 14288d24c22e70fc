"""Queries that come back: known again after rounding, in another precision, without some documents; others are not."""

import os

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankwise.io.letor.read import read_letor
from rankwise.queries.fingerprints import Fingerprints, fingerprints
from rankwise.queries.overlap import overlap, same_content
from rankwise.queries.queries import Queries


def lists(count=40, features=6, seed=0, largest=12):
    random = np.random.default_rng(seed)
    sizes = random.integers(2, largest, count)
    X = random.normal(size=(sizes.sum(), features)) * np.logspace(-1, 4, features)
    return Queries.from_arrays(X, random.integers(0, 3, len(X)), group=sizes)


def seen(queries):
    """The fingerprints of queries that were seen."""
    return Fingerprints.of(fingerprints(queries))


def of_size(m, X, y):
    """Queries of m documents each."""
    return Queries.from_arrays(X, y, group=[m] * (len(y) // m))


def changed(queries, how, random):
    """The queries with other ids, in another order of rows, and changed."""
    X, y, owner = queries.X.copy(), queries.y.copy(), queries.query_of_row
    if how == "one value by 1e-12":
        X[random.integers(len(X)), 0] *= 1 + 1e-12
    elif how == "float32":
        X = X.astype(np.float32)
    elif how == "six decimals":
        X = X.round(6)
    elif how == "six digits":
        X = np.array([[float(f"{value:.5e}") for value in row] for row in X])
    elif how == "other labels":
        y = 3 - y
    kept = np.ones(len(X), bool)
    if how in ("last document", "any document"):
        sizes = np.bincount(owner)
        drop = sizes - 1 if how == "last document" else random.integers(0, sizes)
        kept[(queries.start[:-1] + drop)[sizes > 4]] = False
    order = random.permutation(np.flatnonzero(kept))
    return Queries.from_arrays(X[order], y[order], qid=[f"again {number}" for number in owner[order]])


CHANGES = [
    "none",
    "one value by 1e-12",
    "float32",
    "six decimals",
    "six digits",
    "other labels",
    "last document",
    "any document",
]


@pytest.mark.parametrize("how", CHANGES)
@given(seed=st.integers(0, 30), features=st.sampled_from([1, 2, 3, 4, 5, 6, 15, 16, 136]))
def test_d5_a_query_is_known_again(how, seed, features):
    if (
        how in ("six digits", "six decimals") and features < 16
    ):  # cells are narrower there, or different documents would share them
        return
    train = lists(features=features, seed=seed)
    found = overlap(changed(train, how, np.random.default_rng(seed)), seen(train))
    assert found.identified.all()
    if how == "none":
        assert found.copies.all()
        assert not found.changed.any()
    if how == "other labels":
        assert found.changed.all()
    assert not found.unclear.any()


T5 = {
    "12 features at 4 decimals": (12, lambda X: X.round(4)),
    "12 features in float16": (12, lambda X: X.astype(np.float16).astype(float)),
    "600 features at 3 decimals": (600, lambda X: X.round(3)),
}


@pytest.mark.parametrize("how", T5)
def test_t5_rounded_copies_are_recognized(how):
    features, rounded = T5[how]
    random = np.random.default_rng(0)
    X, y = random.standard_normal((480, features)), random.integers(0, 2, 480).astype(float)
    found = overlap(of_size(8, rounded(X), y), seen(of_size(8, X, y)))
    assert found.changed.sum() >= 54
    assert not found.same.any()


def t5_worlds(random):
    """(training, hold-out) of T5: changed copies, of which the old code threw the sketches away."""
    X, y = random.standard_normal((480, 30)), random.integers(0, 2, 480).astype(float)
    G, L, others = X.reshape(60, 8, 30), y.reshape(60, 8), [random.integers(0, 3, 480).astype(float) for _ in "ab"]
    whole = of_size(8, X, y)
    cuts = np.concatenate([G[:, 1:], G[:, :-1]]).reshape(-1, 30), np.concatenate([L[:, 1:], L[:, :-1]]).ravel()
    return {
        "every query twice, one document dropped": (
            of_size(8, np.vstack([X, X]), np.hstack([y, y])),
            of_size(7, G[:, 1:].reshape(-1, 30), L[:, 1:].ravel()),
        ),
        "two cuts of every query": (whole, of_size(7, *cuts)),
        "labels of a third assessor": (
            of_size(8, np.vstack([X, X]), np.hstack([y, others[0]])),
            of_size(8, X, others[1]),
        ),
        "second halves": (whole, of_size(4, G[:, 4:].reshape(-1, 30), L[:, 4:].ravel())),
    }


@pytest.mark.parametrize("which", t5_worlds(np.random.default_rng(0)))
@pytest.mark.parametrize("seed", range(5))
def test_t5_changed_copies_are_identified(which, seed):
    train, holdout = t5_worlds(np.random.default_rng(seed))[which]
    found = overlap(holdout, seen(train))
    # of second halves, two of the four sketched documents are in 53 of 70
    least = 0.6 if which == "second halves" else 1.0
    assert found.changed.mean() >= least
    assert not found.same.any()


@given(seed=st.integers(0, 60), features=st.sampled_from([1, 2, 3, 6, 20]))
def test_other_queries_are_not_taken_for_known_ones(seed, features):
    train, other = lists(300, features, seed), lists(300, features, seed + 1000)
    found = overlap(other, seen(train))
    assert not (found.same | found.identified | found.common).any()
    assert len(set(same_content(other).tolist())) == len(other)


# name -> (values of a feature, features, documents): documents of different queries coincide by chance
COARSE = {
    "two 0/1 features": (2, 2, 6),
    "two 0/1 features, long lists": (2, 2, 100),
    "three 0/1 features": (2, 3, 6),
    "twelve 0/1 features": (2, 12, 20),
    "two features of 50 values": (50, 2, 6),
    "four features of 10 values": (10, 4, 10),
    "two features of 200 values": (200, 2, 20),
}


@pytest.mark.parametrize("name", COARSE)
def test_t6_independent_queries_of_coarse_features_are_not_called_seen(name):
    """Chance alone makes two documents occur in the same queries in about one world in ten of the last three."""
    values, features, m = COARSE[name]
    random = np.random.default_rng(0)
    for _ in range(10):
        one, two = (
            of_size(m, random.integers(0, values, (200 * m, features)).astype(float), random.integers(0, 2, 200 * m))
            for _ in range(2)
        )
        found = overlap(two, seen(one))
        assert not found.identified.any()
        np.testing.assert_array_equal(found.same, np.isin(fingerprints(two)["hash"], fingerprints(one)["hash"]))


def test_t6_documents_that_are_in_every_query_identify_none():
    """Two documents without any match stand in every query: nothing is the same, and nothing was seen."""
    random = np.random.default_rng(0)
    X = random.standard_normal((2, 100, 8, 5))
    X[:, :, 2] = [1, 0, 0, 0, 0]
    X[:, :, 5] = [1, 1, 0, 0, 0]
    one, two = (of_size(8, part.reshape(-1, 5), random.integers(0, 2, 800).astype(float)) for part in X)
    found = overlap(two, seen(one))
    assert not (found.same | found.identified).any()
    assert len(set(same_content(two).tolist())) == 100


def test_queries_whose_documents_are_all_alike_repeat_each_other_but_were_not_seen_for_certain():
    """T7: the same features and labels are the same content, whatever it identifies."""
    queries = Queries.from_arrays(np.ones((6, 2)), [1, 1, 1, 1, 0, 0], group=[2, 1, 1, 2])
    found = overlap(queries, seen(queries))
    assert found.same.all()
    assert not found.identified.any()
    assert found.unclear.all()
    assert same_content(queries).tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize("how", ["none", "one value by 1e-12"])
@given(seed=st.integers(0, 20), features=st.sampled_from([2, 6, 136]))
def test_d6_repetitions_are_counted_once(how, seed, features):
    random, queries = np.random.default_rng(seed), lists(20, features, seed)
    again = changed(queries, how, random)
    both = Queries.concat([queries, again.map_features(lambda X: X.astype(float))], rename=True)
    group = same_content(both)
    assert len(set(group.tolist())) == 20
    assert group[:20].tolist() == list(range(20))


@pytest.mark.parametrize("shortest", [1, 2])
def test_t7_copies_are_one_group_whatever_they_tell(shortest):
    """Five queries, two of them with one document, sixty times: exactly, and each time multiplied by 1 + 1e-7 z."""
    random = np.random.default_rng(0)
    sizes = [shortest, 6, 9, shortest, 12]
    X, y = random.standard_normal((sum(sizes), 10)), random.integers(0, 3, sum(sizes)).astype(float)
    few = Queries.from_arrays(X, y, group=sizes)
    assert len(set(same_content(Queries.concat([few] * 60, rename=True)).tolist())) == 5
    moved = [few.map_features(lambda X: X * (1 + 1e-7 * random.standard_normal(X.shape))) for _ in range(60)]
    assert len(set(same_content(Queries.concat(moved, rename=True)).tolist())) == 5


def test_changed_copies_of_one_query_are_one_group():
    """All documents are in most queries then, and no query has others."""
    random = np.random.default_rng(0)
    X, y = random.standard_normal((8, 6)), random.integers(0, 2, 8).astype(float)
    copies = [of_size(8, X * (1 + 1e-7 * random.standard_normal(X.shape)), random.permutation(y)) for _ in range(30)]
    assert set(same_content(Queries.concat(copies, rename=True)).tolist()) == {0}


def test_an_empty_set_and_no_features():
    none = Queries.from_arrays(np.empty((0, 3)), np.empty(0), group=np.empty(0, int))
    some = lists(3, 3)
    assert overlap(none, seen(some)).same.shape == (0,)
    found = overlap(some, seen(none))
    assert not (found.same | found.identified | found.common).any()
    assert same_content(none).shape == (0,)


@pytest.mark.skipif("RANKWISE_DATA" not in os.environ, reason="RANKWISE_DATA names no folder of real data")
@pytest.mark.parametrize("name", ["ohsumed", "mq2008"])
def test_no_query_of_one_part_of_real_data_is_taken_for_one_of_another(name):
    folder = os.path.join(os.environ["RANKWISE_DATA"], name)
    parts = [read_letor(os.path.join(folder, file)) for file in sorted(os.listdir(folder)) if file.endswith(".txt.gz")]
    assert len(parts) == 5
    for one in parts:
        assert len(set(same_content(one).tolist())) == len(one)
        for two in parts:
            found = overlap(two, seen(one))
            assert found.copies.all() if one is two else not (found.same | found.identified | found.common).any()
