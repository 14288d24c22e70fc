"""Sums of trees of any shape are scored by bytes, with the bits of the plain definition."""

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankwise._kernels.tree_scores import TILE
from rankwise._kernels.trees import LEAVES
from rankwise.rankers.boosting.tree_arrays import concat_trees
from rankwise.rankers.boosting.tree_checks import MISSING_NAN, MISSING_NONE, MISSING_ZERO
from rankwise.rankers.boosting.tree_ensemble import TreeEnsemble

FEATURES = 4  # the last is categorical
SPECIAL = [0.0, -0.0, 1e-36, -1e-36, 5e-324, np.inf, -np.inf, np.nan, 1e30, -1e30]


def random_set(rng, categories):
    """Words of a random set of categories, which may be empty, and may end with words of nothing."""
    inside = np.zeros(categories + 64, bool)
    inside[:categories] = rng.random(categories) < rng.choice([0.0, 0.03, 0.4])
    length = int(rng.integers(1, len(inside) // 32 + 1))
    return np.packbits(inside[: 32 * length], bitorder="little").view(np.uint32)


def tree(rng, leaves, grid, categories=70, chain=False):
    """A tree of so many leaves. In a chain, one child of every node is a leaf."""
    nodes = leaves - 1
    left, right = np.zeros((2, nodes), np.int64)
    open_sides = []
    for node in range(nodes):
        if open_sides:
            array, parent = open_sides.pop(-1 if chain else int(rng.integers(len(open_sides))))
            array[parent] = node
        sides = [(left, node), (right, node)]
        open_sides += sides if rng.random() < 0.5 else sides[::-1]
    for leaf, (array, node) in enumerate(open_sides):
        array[node] = -1 - leaf
    feature = rng.integers(FEATURES, size=nodes)
    by_category = feature == FEATURES - 1
    words = [random_set(rng, categories) if one else np.empty(0, np.uint32) for one in by_category]
    kinds = rng.choice([MISSING_NONE, MISSING_ZERO, MISSING_NAN], nodes)
    return {
        "feature": feature,
        "threshold": np.where(by_category, 0.0, grid[feature, rng.integers(grid.shape[1], size=nodes)]),
        "left": left, "right": right,
        "missing": kinds.astype(np.uint8),
        "default_left": rng.integers(2, size=nodes).astype(np.uint8),
        "n_words": np.array([len(one) for one in words], np.int64),
        "words": np.concatenate([*words, np.empty(0, np.uint32)]),
        "value": rng.normal(size=leaves), "gain": np.ones(nodes),
        "node_count": np.ones(nodes, np.int64), "leaf_count": np.ones(leaves, np.int64),
    }  # fmt: skip


def grid_of(rng, cuts):
    """Thresholds, so coarse that values are equal to them; some are zeros."""
    grid = np.round(rng.normal(size=(FEATURES, cuts)), 2)
    grid[rng.random(grid.shape) < 0.1] = 0.0
    return grid


def ensemble(trees):
    return TreeEnsemble(FEATURES, **concat_trees(trees))


def rows_of(rng, count, dtype=np.float64, categories=70):
    X = np.round(rng.normal(size=(count, FEATURES)), 2)
    X[:, -1] = rng.integers(-2, categories + 3, count) + 0.5 * (rng.random(count) < 0.2)
    odd = rng.random(X.shape) < 0.2
    X[odd] = rng.choice([*SPECIAL, 2.0**31, -0.5, 1e12], odd.sum())
    with np.errstate(under="ignore"):
        return X.astype(dtype)


def goes_left(trees, node, value):
    """The definition in the docstring of TreeEnsemble."""
    words = trees.words[trees.word_start[node] : trees.word_start[node + 1]]
    if len(words):
        if np.isnan(value):
            return trees.missing[node] == MISSING_NAN and bool(trees.default_left[node])
        if not -1 < value < 32 * len(words):
            return False
        return bool(int(words[int(value) // 32]) >> int(value) % 32 & 1)
    missing = np.isnan(value)
    if trees.missing[node] == MISSING_NONE:
        return (0.0 if missing else value) <= trees.threshold[node]
    if missing or (trees.missing[node] == MISSING_ZERO and value == 0.0):
        return bool(trees.default_left[node])
    return value <= trees.threshold[node]


def plain_scores(trees, X):
    """Row by row and tree by tree."""
    scores = np.zeros(len(X))
    for row, x in enumerate(np.where(np.abs(X) <= np.float32(1e-35), 0.0, X.astype(np.float64))):
        for number, first in enumerate(trees.start[:-1]):
            child = 0 if trees.start[number + 1] > first else -1
            while child >= 0:
                node = first + child
                side = trees.left if goes_left(trees, node, x[trees.feature[node]]) else trees.right
                child = side[node]
            scores[row] += trees.value[first + number - 1 - child]
    return scores


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    leaves=st.lists(st.one_of(st.integers(1, 20), st.sampled_from([64, 255, 256, 257])), min_size=1, max_size=4),
    chain=st.booleans(),
    count=st.sampled_from([1, 7, 32, 33, 65, 97, 128, 129]),
    dtype=st.sampled_from([np.float32, np.float64]),
)
def test_scores_are_those_of_the_plain_definition(seed, leaves, chain, count, dtype):
    rng = np.random.default_rng(seed)
    grid = grid_of(rng, 12)
    whole = ensemble([tree(rng, size, grid, chain=chain) for size in leaves])
    X = rows_of(rng, count, dtype)
    np.testing.assert_array_equal(whole.predict(X), plain_scores(whole, X))


def test_the_test_trees_reach_every_path():
    rng = np.random.default_rng(0)
    grid = grid_of(rng, 12)
    whole = ensemble([tree(rng, size, grid) for size in (1, 2, 30, LEAVES, LEAVES + 1)])
    form = whole._bytes
    assert set(form.kind) == {0, 1, 2}
    assert len(form.set_start) > 0  # sets of several bins
    assert whole.categorical[: whole.start[4]].sum() > len(form.set_start)  # and of one
    assert whole.flips_zero.any()
    assert max(np.diff(whole.start)) == LEAVES
    assert form.then.max() == LEAVES - 1


def test_a_score_does_not_depend_on_the_rows_beside_it():
    rng = np.random.default_rng(0)
    grid = grid_of(rng, 50)
    whole = ensemble([tree(rng, int(size), grid) for size in rng.integers(1, 90, 20)])
    X = rows_of(rng, 9_000)
    scores = whole.predict(X)
    for size in (1, 7, 32, 33, 64, 100, TILE, TILE + 1, 1_000):
        np.testing.assert_array_equal(whole.predict(X[:size]), scores[:size])
        np.testing.assert_array_equal(whole.predict(X[-size:], n_jobs=2), scores[-size:])
    np.testing.assert_array_equal(whole.predict(X, n_jobs=3), scores)
    for twin in (copy.deepcopy(whole), pickle.loads(pickle.dumps(whole))):
        np.testing.assert_array_equal(twin.predict(X[:300]), scores[:300])


@pytest.mark.parametrize("count", [1, 15, 16, 17, 253, 254, 255, 600])
def test_any_number_of_thresholds(count):
    """A column has at most 254; more of them take further columns, which the trees of later thresholds compare."""
    cuts = np.random.default_rng(count).permutation(count).astype(np.float64)
    stumps = [
        {
            "feature": np.zeros(1, np.int64), "threshold": np.array([cut]), "left": np.array([-1]),
            "right": np.array([-2]), "default_left": np.array([place % 2], np.uint8), "value": np.array([-1.0, place]),
            "gain": np.ones(1), "node_count": np.ones(1, np.int64), "leaf_count": np.ones(2, np.int64),
        }
        for place, cut in enumerate([*cuts, *cuts[::3]])
    ]  # fmt: skip
    whole = ensemble(stumps)
    assert len(whole._bytes.feature) == -(-count // 254)
    X = np.append(np.arange(-1.0, count + 1, 0.5), [np.nan, np.inf, -np.inf])
    X = np.repeat(X[:, None], FEATURES, axis=1)
    expected = np.zeros(len(X))
    for one in stumps:
        left = np.where(np.isnan(X[:, 0]), one["default_left"][0] == 1, X[:, 0] <= one["threshold"][0])
        expected += np.where(left, *one["value"])
    whole.__dict__["_symmetric"] = None  # which stumps are
    np.testing.assert_array_equal(whole.predict(X), expected)


def test_any_number_of_categories():
    """A bin is a kind of category; where there are more kinds than bytes, nodes compare with further columns."""
    rng = np.random.default_rng(0)
    grid = grid_of(rng, 3)
    whole = ensemble([tree(rng, 60, grid, categories=1_000) for _ in range(4)])
    assert (whole._bytes.kind == 2).sum() > 1
    X = rows_of(rng, 200, categories=1_000)
    np.testing.assert_array_equal(whole.predict(X), plain_scores(whole, X))
