"""The sum of a loss over lists as a function of weights: value and gradient against plain sums, in one pass over X."""

import numpy as np
import pytest

from rankwise.losses import registered
from rankwise.losses.compute import LossOverLists, PreparedLists, loss_lists
from rankwise.queries.queries import Queries
from tests.oracles.losses import DEFINITIONS, plain

LOSSES = [loss for kind in registered().values() for loss in kind.examples()[:2]]
over_all_losses = pytest.mark.parametrize("loss", LOSSES, ids=repr)
# a loss that draws noise has another one for the same list at another place of a set
WITHOUT_NOISE = [loss for loss in LOSSES if not loss.noisy]


def lists(seed=0, count=30, dtype=np.float64):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(0, 8, count)
    X = rng.normal(size=(sizes.sum(), 5)).astype(dtype)
    return Queries(X, rng.integers(0, 4, len(X)).astype(float), np.cumsum([0, *sizes]))


@over_all_losses
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("weighted", [False, True])
def test_value_and_gradient_are_sums_over_lists(loss, dtype, weighted):
    rng = np.random.default_rng(1)
    queries, w = lists(dtype=dtype), rng.normal(size=5)
    weight = rng.uniform(0, 3, 30) if weighted else None
    if weighted:
        weight[::5] = 0
        queries = queries.with_weight(weight)
    values, slope = loss_lists(
        PreparedLists.of(loss, queries.labels(), queries.start), queries.X.astype(np.float64) @ w
    )
    query_weight = np.ones(30) if weight is None else weight
    value, gradient = LossOverLists.of(loss, queries)(w)
    assert value == pytest.approx(values @ query_weight, rel=1e-10)
    expected = queries.X.astype(np.float64).T @ (slope * np.repeat(query_weight, queries.sizes))
    np.testing.assert_allclose(gradient, expected, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("loss", [loss for loss in WITHOUT_NOISE if loss.name in DEFINITIONS], ids=repr)
def test_the_sum_is_that_of_the_definitions(loss):
    queries, w = lists(2, count=8), np.random.default_rng(3).normal(size=5)
    expected = sum(plain(loss, one.X @ w, one.y)[0] for one in queries if len(one))
    assert LossOverLists.of(loss, queries)(w)[0] == pytest.approx(expected, rel=1e-9)


@over_all_losses
def test_neither_threads_nor_scattered_rows_change_a_bit(loss, monkeypatch):
    monkeypatch.setattr("rankwise._kernels.parallel.query_chunks.__defaults__", (16,))
    queries, w = lists(4), np.random.default_rng(5).normal(size=5)
    objective = LossOverLists.of(loss, queries)
    one, two = objective(w, n_jobs=1), objective(w, n_jobs=2)
    assert one[0] == two[0]
    np.testing.assert_array_equal(one[1], two[1])
    shuffle = np.random.default_rng(6).permutation(queries.n_documents)
    scattered = np.empty_like(shuffle)
    scattered[shuffle] = np.arange(len(shuffle))
    other = Queries(queries.X[shuffle], queries.y[shuffle], queries.start, scattered)
    three = LossOverLists.of(loss, other)(w)
    assert one[0] == three[0]
    np.testing.assert_array_equal(one[1], three[1])


@pytest.mark.parametrize("loss", WITHOUT_NOISE, ids=repr)
def test_weights_given_stand_in_for_the_queries_own_and_whole_numbers_repeat_a_list(loss):
    queries, w = lists(7, count=6), np.random.default_rng(8).normal(size=5)
    query_weight = np.array([1, 0, 2, 1, 3, 1])
    value, gradient = LossOverLists.of(loss, queries.with_weight(np.full(6, 9.0)), query_weight.astype(float))(w)
    repeated = LossOverLists.of(loss, queries[np.repeat(np.arange(6), query_weight)])(w)
    assert value == pytest.approx(repeated[0], rel=1e-12)
    np.testing.assert_allclose(gradient, repeated[1], rtol=1e-9, atol=1e-12)


@over_all_losses
def test_lists_without_documents_weigh_nothing(loss):
    empty = lists()[:0]
    value, gradient = LossOverLists.of(loss, empty)(np.ones(5))
    assert value == 0
    np.testing.assert_array_equal(gradient, np.zeros(5))
