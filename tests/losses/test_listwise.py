"""What ListMLE, RankCosine and top-k ListNet promise beyond the common facts."""

from itertools import permutations

import numpy as np
import pytest
from scipy.optimize import minimize

import rankwise as rw
from rankwise.errors import RankwiseError
from rankwise.losses import ListMLE, ListNet, ListNetTopK, RankCosine
from rankwise.losses.compute import LossOverLists


def log_probability(scores, order):
    """log of the Plackett-Luce probability of an order."""
    return sum(scores[j] - np.logaddexp.reduce(scores[list(order[t:])]) for t, j in enumerate(order))


@pytest.mark.parametrize("seed", range(5))
def test_list_mle_of_different_labels_is_the_likelihood_of_their_order(seed):
    rng = np.random.default_rng(seed)
    scores, labels = rng.normal(size=6), rng.permutation(6).astype(float)
    assert ListMLE()(scores, labels)[0] == pytest.approx(-log_probability(scores, np.argsort(-labels)), rel=1e-12)


@pytest.mark.parametrize("seed", range(8))
def test_list_mle_of_equal_labels_bounds_the_likelihood_of_all_orders_that_agree(seed):
    rng = np.random.default_rng(seed)
    scores, labels = 2 * rng.normal(size=5), rng.integers(0, 3, 5).astype(float)
    agree = [order for order in permutations(range(5)) if (np.diff(labels[list(order)]) <= 0).all()]
    exact = -np.logaddexp.reduce([log_probability(scores, order) for order in agree])
    assert ListMLE()(scores, labels)[0] >= exact - 1e-12


def test_list_mle_of_a_perfect_ranking_tends_to_0_with_equal_labels_too():
    assert ListMLE()([80.0, 100.0, 0.0, -20.0], [1, 1, 0, 0])[0] < 1e-30


def test_top_1_is_list_net():
    rng = np.random.default_rng(0)
    for m in (2, 3, 8):
        scores, labels = rng.normal(size=m), np.append([1.0, 0.0], rng.integers(0, 4, m - 2))
        for form in ("kl", "ce"):
            value, gradient = ListNetTopK(k=1, form=form)(scores, labels)
            expected, slope = ListNet(form=form)(scores, labels)
            assert value == pytest.approx(expected, rel=1e-12)
            np.testing.assert_allclose(gradient, slope, atol=1e-14)


@pytest.mark.parametrize("k", [2, 3])
def test_top_k_is_0_where_scores_are_targets_and_survives_labels_far_apart(k):
    assert ListNetTopK(k=k)([3.0, 1.0, 1.0, 0.0], [3, 1, 1, 0])[0] == pytest.approx(0.0, abs=1e-14)
    value, gradient = ListNetTopK(k=k)([0.0, 0.0, 0.0, 0.0], [3000, 2000, 1000, 0])
    assert value == pytest.approx(np.log([4.0, 3.0, 2.0])[:k].sum())  # one order is certain
    np.testing.assert_allclose(gradient.sum(), 0, atol=1e-14)


def test_rank_cosine_is_one_half_minus_half_the_correlation():
    rng = np.random.default_rng(1)
    scores, labels = rng.normal(size=9), rng.integers(0, 4, 9).astype(float)
    expected = (1 - np.corrcoef(scores, labels)[0, 1]) / 2
    for scale in (1.0, 1e3):
        assert RankCosine(epsilon=1e-9)(scale * scores, labels)[0] == pytest.approx(expected, rel=1e-9)


def test_the_slope_of_rank_cosine_is_attained():
    _, gradient = RankCosine(epsilon=0.5)([0.0] * 6, [1, 1, 1, 0, 0, 0])
    assert np.abs(gradient).sum() == pytest.approx(RankCosine(epsilon=0.5).lipschitz_l1(6))


def few_queries(n=25, m=7, d=4):
    """(X, labels, query of every row): standard normal features, labels that follow the first ones."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(n * m, d))
    labels = np.clip(np.round(X[:, 0] - X[:, 1] + rng.normal(size=n * m) + 1), 0, 3)
    return X, labels, np.repeat(np.arange(n), m)


@pytest.mark.parametrize("loss", [ListMLE(), ListMLE(per_draw=True), ListNetTopK(k=2), ListNetTopK(k=3)], ids=repr)
def test_a_batch_ranker_finds_the_optimum_of_a_generic_solver(loss):
    X, labels, query = few_queries()
    queries = rw.Queries.from_arrays(X, labels, qid=query)
    model = rw.LossRanker(loss, alpha=0.05, scale="none", tolerance=1e-8).fit(queries)
    lists = LossOverLists.of(loss, queries)

    def objective(w):
        value, slope = lists(w)
        return value / len(queries) + 0.025 * w @ w, slope / len(queries) + 0.05 * w

    best = minimize(objective, np.zeros(4), jac=True, method="L-BFGS-B", options={"ftol": 1e-15, "gtol": 1e-10})
    assert model.objective_ == pytest.approx(best.fun, rel=1e-7)


@pytest.mark.parametrize("loss", [ListMLE(), RankCosine(), ListNetTopK(k=3)], ids=repr)
def test_shuffled_files_give_the_same_online_ranker(loss):
    X, labels, query = few_queries()
    order = np.lexsort((np.random.default_rng(0).random(len(query)), query))
    same = rw.OnlineRanker(loss).fit(rw.Queries.from_arrays(X, labels, qid=query)).coef_
    shuffled = rw.OnlineRanker(loss).fit(rw.Queries.from_arrays(X[order], labels[order], qid=query)).coef_
    np.testing.assert_allclose(same, shuffled, rtol=1e-9)


@pytest.mark.parametrize(
    ("kind", "wrong"),
    [
        (ListMLE, {"per_draw": 2}),
        (RankCosine, {"epsilon": 0.0}),
        (RankCosine, {"target": "ranks"}),
        (ListNetTopK, {"k": 4}),
        (ListNetTopK, {"form": "js"}),
        (ListNetTopK, {"target": "ranks"}),
    ],
)
def test_wrong_parameters_are_refused(kind, wrong):
    (name,) = wrong
    with pytest.raises(RankwiseError, match=f"The '{name}' parameter of {kind.__name__} must be"):
        kind(**wrong)
