"""Sums of symmetric trees are scored by bytes, with the bits of the plain definition."""

import copy
import pickle
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankwise.rankers.boosting.symmetric import Split, SymmetricTree, _arrays
from rankwise.rankers.boosting.tree_ensemble import TreeEnsemble
from rankwise.rankers.boosting.tree_arrays import concat_trees

FEATURES = 5  # the last is categorical


def ensemble(rng, trees, depth, cuts=8):
    """Trees of random questions of all kinds on a grid of thresholds, and some of a single leaf."""
    grid = np.round(rng.normal(size=(FEATURES, cuts)), 2)
    made = []
    for _ in range(trees):
        levels = depth if rng.random() < 0.9 else int(rng.integers(0, depth + 1))
        splits = []
        for _ in range(levels):
            feature = int(rng.integers(FEATURES))
            kind = 3 if feature == FEATURES - 1 else int(rng.integers(3))
            cut = float(rng.integers(0, 70)) if kind == 3 else grid[feature, rng.integers(cuts)]
            splits.append(Split(feature, kind, float(np.finfo(np.float32).max) if kind == 2 else float(cut)))
        gains = tuple(rng.random(1 << level) for level in range(levels))
        made.append(SymmetricTree(tuple(splits), gains, rng.normal(size=1 << levels), np.ones(1 << levels, np.int64)))
    return made, TreeEnsemble(FEATURES, **concat_trees([_arrays(tree) for tree in made]))


def rows_of(rng, count, dtype=np.float64):
    X = np.round(rng.normal(size=(count, FEATURES)), 2)
    X[:, -1] = rng.integers(-2, 70, count) + 0.5 * (rng.random(count) < 0.2)
    X[rng.random(X.shape) < 0.1] = np.nan
    X[rng.random(X.shape) < 0.1] = 1e-40
    return X.astype(dtype)


def plain_scores(trees, X):
    """Row by row and tree by tree, from the definition."""
    scores = np.zeros(len(X))
    for row, x in enumerate(np.where(np.abs(X) <= 1e-35, 0.0, X.astype(np.float64))):
        for tree in trees:
            leaf = 0
            for level, split in enumerate(tree.splits):
                value = x[split.feature]
                if split.kind == 3:
                    right = not (value > -1 and np.trunc(value) == split.cut)
                elif np.isnan(value):
                    right = split.kind in (1, 2)
                else:
                    right = split.kind != 2 and value > split.cut
                leaf |= right << level
            scores[row] += tree.value[leaf]
    return scores


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    depth=st.integers(1, 8),
    count=st.sampled_from([1, 5, 32, 33, 128, 129, 300]),
    dtype=st.sampled_from([np.float32, np.float64]),
)
def test_scores_are_those_of_the_plain_definition(seed, depth, count, dtype):
    rng = np.random.default_rng(seed)
    trees, whole = ensemble(rng, 6, depth)
    X = rows_of(rng, count, dtype)
    if any(tree.splits for tree in trees):
        assert whole._symmetric is not None
    np.testing.assert_array_equal(whole.predict(X), plain_scores(trees, X))


def test_a_score_does_not_depend_on_the_rows_beside_it():
    rng = np.random.default_rng(0)
    _, whole = ensemble(rng, 40, 6)
    X = rows_of(rng, 9_000)
    scores = whole.predict(X)
    for size in (1, 7, 32, 100, 128, 129, 1_000):
        np.testing.assert_array_equal(whole.predict(X[:size]), scores[:size])
        np.testing.assert_array_equal(whole.predict(X[-size:], n_jobs=2), scores[-size:])
    np.testing.assert_array_equal(whole.predict(X, n_jobs=3), scores)


def without_the_form(whole):
    """The same ensemble, scored as trees of any shape are."""
    twin = replace(whole)
    twin.__dict__["_symmetric"] = None
    return twin


@pytest.mark.parametrize("depth", [1, 6, 8])
def test_both_kernels_have_the_same_bits(depth):
    rng = np.random.default_rng(depth)
    _, whole = ensemble(rng, 50, depth)
    whole = replace(whole, offset=0.25, coef=rng.normal(size=FEATURES))
    X = np.nan_to_num(rows_of(rng, 700))
    np.testing.assert_array_equal(whole.predict(X), without_the_form(whole).predict(X))
    for twin in (copy.deepcopy(whole), pickle.loads(pickle.dumps(whole))):
        np.testing.assert_array_equal(twin.predict(X), whole.predict(X))


def thresholds(count):
    """An ensemble of one feature with so many thresholds."""
    splits = [Split(0, place % 2, float(place)) for place in range(count)]
    value = np.array([-1.0, 1.0])
    trees = [SymmetricTree((split,), (np.ones(1),), value, np.ones(2, np.int64)) for split in splits]
    return trees, TreeEnsemble(1, **concat_trees([_arrays(tree) for tree in trees]))


@pytest.mark.parametrize("count", [1, 253, 254, 255, 300])
def test_more_thresholds_than_bytes_hold_are_scored_as_floats(count):
    trees, whole = thresholds(count)
    assert (whole._symmetric is None) == (count > 254)
    X = np.append(np.arange(-1.0, count + 1, 0.5), np.nan)[:, None]
    np.testing.assert_array_equal(whole.predict(X), plain_scores(trees, X))
    np.testing.assert_array_equal(whole.predict(X[:9]), whole.predict(X)[:9])


def test_trees_that_only_look_symmetric_are_not():
    rng = np.random.default_rng(3)
    _, whole = ensemble(rng, 3, 3)
    assert whole._symmetric is not None
    numeric = np.flatnonzero(~whole.categorical & (np.arange(len(whole.feature)) % 7 > 2))[0]  # in the last level
    for name, other in (("threshold", 9.0), ("default_left", 1 - whole.default_left[numeric])):
        array = getattr(whole, name).copy()
        array[numeric] = other
        changed = replace(whole, **{name: array})
        assert changed._symmetric is None
        X = rows_of(rng, 200)
        np.testing.assert_array_equal(changed.predict(X), without_the_form(changed).predict(X))


def test_deep_trees_are_scored_as_trees_of_any_shape():
    rng = np.random.default_rng(0)
    trees, whole = ensemble(rng, 4, 9)
    assert whole._symmetric is None
    X = rows_of(rng, 50)
    np.testing.assert_array_equal(whole.predict(X), plain_scores(trees, X))


def test_a_chain_of_nodes_is_no_symmetric_tree():
    """Three nodes, as a tree of two levels has, one below the other."""
    chain = {
        "feature": np.zeros(3, np.int64), "threshold": np.array([0.0, 1.0, 1.0]), "left": np.array([-1, -2, -3]),
        "right": np.array([1, 2, -4]), "default_left": np.zeros(3, np.uint8), "value": np.arange(4.0),
        "gain": np.ones(3), "node_count": np.ones(3, np.int64), "leaf_count": np.ones(4, np.int64),
    }  # fmt: skip
    whole = TreeEnsemble(1, **concat_trees([chain]))
    assert whole._symmetric is None
    assert whole.predict(np.array([[-1.0], [0.5], [2.0]])).tolist() == [0.0, 1.0, 3.0]


def test_first_trees_are_the_first_terms_of_the_sum():
    rng = np.random.default_rng(0)
    trees, whole = ensemble(rng, 9, 4)
    X = rows_of(rng, 60)
    whole = replace(whole, offset=0.5)
    np.testing.assert_array_equal(whole.first(4).predict(X), plain_scores(trees[:4], X) + 0.5)
    assert whole.first(99).n_trees == 9
    assert whole.first(0).predict(X).tolist() == [0.5] * 60
