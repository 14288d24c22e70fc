"""The squared pair hinge over lists: value, gradient and Hessian products against explicit matrices of pairs."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankwise.losses.compute import LossOverLists
from rankwise.losses.pairwise_hinge import PairHinge
from rankwise.queries.queries import Queries
from rankwise.solvers.batch.risk import SquaredPairsOverLists
from tests.strategies import many_lists

over_both = pytest.mark.parametrize("per_pair", [False, True])


def lists(seed=0, count=12, features=4, labels=4, dtype=np.float64):
    """Lists of 0 to 9 documents; ``labels`` None gives real ones, all different."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(0, 10, count)
    X = rng.normal(size=(sizes.sum(), features)).astype(dtype)
    y = rng.uniform(0, 3, len(X)) if labels is None else rng.integers(0, labels, len(X)).astype(float)
    return Queries(X, y, np.cumsum([0, *sizes]))


def explicit(queries, w, per_pair):
    """(value, gradient, matrix) of the sum from all pairs of all lists, one by one."""
    width = queries.n_features
    value, gradient, matrix = 0.0, np.zeros(width), np.zeros((width, width))
    weights = np.ones(len(queries)) if queries.weight is None else queries.weight
    for number, weight in enumerate(weights):
        rows = queries.rows_of(number)
        X, y = queries.X[rows].astype(np.float64), queries.y[rows]
        pairs = [(i, j) for i in range(len(y)) for j in range(len(y)) if y[i] > y[j]]
        share = weight / max(len(pairs), 1) if per_pair else weight
        for i, j in pairs:
            slack = 1 + (X[j] @ w - X[i] @ w)  # as the library rounds it: 0 or not decides
            if slack > 0:
                apart = X[i] - X[j]
                value += share * slack**2
                gradient -= 2 * share * slack * apart
                matrix += 2 * share * np.outer(apart, apart)
    return value, gradient, matrix


def matrix_of(at):
    return np.column_stack([at.hessian_product(unit) for unit in np.eye(len(at.w))])


@over_both
@pytest.mark.parametrize("labels", [1, 2, 5, None])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size", [0.0, 0.3, 3.0])
def test_value_gradient_and_products_are_those_of_the_pairs_one_by_one(per_pair, labels, dtype, size):
    """At size 0 all scores are tied, and every pair is active."""
    queries = lists(1, labels=labels, dtype=dtype)
    w = size * np.random.default_rng(2).normal(size=4)
    at = SquaredPairsOverLists.of(queries, per_pair)(w)
    value, gradient, matrix = explicit(queries, w, per_pair)
    assert at.value == pytest.approx(value, rel=1e-11)
    np.testing.assert_allclose(at.gradient, gradient, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(matrix_of(at), matrix, rtol=1e-10, atol=1e-10 * (1 + np.abs(matrix).max()))


@over_both
@given(some=many_lists(), direction=st.integers(0, 1000))
def test_products_hold_for_any_scores(per_pair, some, direction):
    """One feature a document, so that weights are scores: ties, one document, one label, and gaps of a million."""
    scores, labels = (np.concatenate([np.asarray(one[k], float) for one in some]) for k in (0, 1))
    sizes = [len(one[0]) for one in some]
    queries = Queries.from_arrays(np.eye(len(scores)), labels, group=sizes)
    at = SquaredPairsOverLists.of(queries, per_pair)(scores)
    _, _, matrix = explicit(queries, scores, per_pair)
    v = np.random.default_rng(direction).normal(size=len(scores))
    np.testing.assert_allclose(at.hessian_product(v), matrix @ v, rtol=1e-10, atol=1e-11 * (1 + np.abs(matrix).max()))


@over_both
def test_products_are_finite_differences_of_the_gradient(per_pair):
    """The gradient is linear between the kinks, which no small step from here meets."""
    pairs = SquaredPairsOverLists.of(lists(3), per_pair)
    rng = np.random.default_rng(4)
    w, v, step = rng.normal(size=4), rng.normal(size=4), 1e-7
    differences = (pairs(w + step * v).gradient - pairs(w - step * v).gradient) / (2 * step)
    np.testing.assert_allclose(pairs(w).hessian_product(v), differences, rtol=1e-6)


def test_the_value_and_gradient_are_those_of_the_loss():
    queries, w = lists(5), np.random.default_rng(6).normal(size=4)
    at = SquaredPairsOverLists.of(queries)(w)
    value, gradient = LossOverLists.of(PairHinge(squared=True), queries)(w)
    assert at.value == value
    np.testing.assert_array_equal(at.gradient, gradient)


def test_the_matrix_is_symmetric_and_has_no_negative_eigenvalue_where_slacks_round_to_the_margin():
    """Scores on a grid of tenths put many pairs at a slack of 0, up to rounding, which both sides must see alike."""
    rng = np.random.default_rng(7)
    scores, labels = rng.integers(0, 30, 60) / 10.0, rng.integers(0, 4, 60).astype(float)
    queries = Queries.from_arrays(np.eye(60), labels, group=[60])
    matrix = matrix_of(SquaredPairsOverLists.of(queries, per_pair=False)(scores))
    np.testing.assert_allclose(matrix, matrix.T, atol=1e-12)
    np.testing.assert_allclose(matrix.sum(axis=0), 0.0, atol=1e-12)
    assert np.linalg.eigvalsh(matrix).min() > -1e-10


def test_a_shift_of_all_features_of_a_list_changes_no_product():
    """Differences of documents count; rows a million away from 0 leave ten digits of them."""
    queries, rng = lists(8), np.random.default_rng(9)
    far = Queries.from_arrays(queries.X + 2.0**20, queries.y, group=queries.sizes)
    w, v = np.zeros(4), rng.normal(size=4)
    near, shifted = (SquaredPairsOverLists.of(one)(w).hessian_product(v) for one in (queries, far))
    np.testing.assert_allclose(shifted, near, rtol=1e-7)


@over_both
def test_weights_multiply_lists_and_a_weight_of_zero_leaves_one_out(per_pair):
    queries, rng = lists(10), np.random.default_rng(11)
    weight = rng.uniform(0.5, 3, 12)
    weight[::4] = 0
    w, v = rng.normal(size=4), rng.normal(size=4)
    _, _, matrix = explicit(queries.with_weight(weight), w, per_pair)
    own = SquaredPairsOverLists.of(queries.with_weight(weight), per_pair)(w).hessian_product(v)
    given_apart = SquaredPairsOverLists.of(queries, per_pair, weight)(w).hessian_product(v)
    np.testing.assert_allclose(own, matrix @ v, rtol=1e-10)
    np.testing.assert_array_equal(own, given_apart)


def test_neither_threads_nor_scattered_rows_change_a_bit(monkeypatch):
    monkeypatch.setattr("rankwise._kernels.parallel.query_chunks.__defaults__", (16,))
    queries, rng = lists(12, count=30), np.random.default_rng(13)
    w, v = rng.normal(size=4), rng.normal(size=4)
    shuffle = rng.permutation(queries.n_documents)
    scattered = np.argsort(shuffle)
    other = Queries(queries.X[shuffle], queries.y[shuffle], queries.start, scattered)
    one = SquaredPairsOverLists.of(queries)(w, n_jobs=1)
    for many in (SquaredPairsOverLists.of(queries)(w, n_jobs=3), SquaredPairsOverLists.of(other)(w)):
        assert many.value == one.value
        np.testing.assert_array_equal(many.gradient, one.gradient)
        np.testing.assert_array_equal(many.hessian_product(v), one.hessian_product(v))


def test_lists_in_which_any_order_is_good_weigh_nothing():
    X = np.random.default_rng(14).normal(size=(6, 3))
    queries = Queries(X, [2.0, 1.0, 1.0, 1.0, 0.0, 0.0], [0, 1, 4, 4, 6])
    at = SquaredPairsOverLists.of(queries)(np.ones(3))
    assert at.value == 0
    np.testing.assert_array_equal(at.hessian_product(np.ones(3)), np.zeros(3))
    nothing = SquaredPairsOverLists.of(queries[:0])(np.ones(3))
    np.testing.assert_array_equal(nothing.hessian_product(np.ones(3)), np.zeros(3))


def test_what_was_asked_at_a_point_stays_true_when_the_callers_vector_moves_on():
    queries, w = lists(15), np.full(4, 0.5)
    pairs = SquaredPairsOverLists.of(queries)
    at, expected = pairs(w), pairs(w.copy()).hessian_product(np.ones(4))
    w += 100
    np.testing.assert_array_equal(at.hessian_product(np.ones(4)), expected)
