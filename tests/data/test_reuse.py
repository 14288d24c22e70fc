"""Queries that come back: known again after rounding, in another precision, without some documents; others are not."""

import os

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankwise.data.fingerprints import Fingerprints, fingerprints, same_content, seen_before, telling
from rankwise.data.letor.read import read_letor
from rankwise.data.queries import Queries


def lists(count=40, features=6, seed=0, largest=12):
    random = np.random.default_rng(seed)
    sizes = random.integers(2, largest, count)
    X = random.normal(size=(sizes.sum(), features)) * np.logspace(-1, 4, features)
    return Queries.from_arrays(X, random.integers(0, 3, len(X)), group=sizes)


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
    again = changed(train, how, np.random.default_rng(seed))
    assert seen_before(again, Fingerprints.of(fingerprints(train))).all()


@given(seed=st.integers(0, 60), features=st.sampled_from([1, 2, 3, 6, 20]))
def test_other_queries_are_not_taken_for_known_ones(seed, features):
    train, other = lists(300, features, seed), lists(300, features, seed + 1000)
    assert not seen_before(other, Fingerprints.of(fingerprints(train))).any()
    assert len(set(same_content(other).tolist())) == len(other)


@given(seed=st.integers(0, 30))
def test_documents_that_are_everywhere_tell_nothing(seed):
    """Three features that are 0 or 1: there are eight documents in all, and queries share them by chance."""
    random = np.random.default_rng(seed)
    X, y = random.integers(0, 2, (1200, 3)).astype(float), random.integers(0, 2, 1200)
    one, two = (
        Queries.from_arrays(X[:600], y[:600], group=[6] * 100),
        Queries.from_arrays(X[600:], y[600:], group=[6] * 100),
    )
    known = fingerprints(one)
    exact = np.isin(fingerprints(two)["hash"], known["hash"])
    np.testing.assert_array_equal(seen_before(two, Fingerprints.of(known)), exact)


def test_queries_whose_documents_are_all_alike_are_neither_known_nor_repeated():
    queries = Queries.from_arrays(np.ones((6, 2)), [1, 1, 1, 1, 0, 0], group=[2, 1, 1, 2])
    assert not telling(fingerprints(queries)).any()
    assert not seen_before(queries, Fingerprints.of(fingerprints(queries))).any()
    assert same_content(queries).tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("how", ["none", "one value by 1e-12"])
@given(seed=st.integers(0, 20), features=st.sampled_from([2, 6, 136]))
def test_d6_repetitions_are_counted_once(how, seed, features):
    random, queries = np.random.default_rng(seed), lists(20, features, seed)
    again = changed(queries, how, random)
    both = Queries.concat([queries, again.map_features(lambda X: X.astype(float))], rename=True)
    group = same_content(both)
    assert len(set(group.tolist())) == 20
    assert group[:20].tolist() == list(range(20))


def test_an_empty_set_and_no_features():
    none = Queries.from_arrays(np.empty((0, 3)), np.empty(0), group=np.empty(0, int))
    some = lists(3, 3)
    assert seen_before(none, Fingerprints.of(fingerprints(some))).shape == (0,)
    assert not seen_before(some, Fingerprints.of(fingerprints(none))).any()
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
            found = seen_before(two, Fingerprints.of(fingerprints(one)))
            assert found.all() if one is two else not found.any()
