"""RankSVM with the pair weights of IR-SVM: their definition, the minimum of a solver, and what a certificate says."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from scipy.optimize import minimize

import rankwise as rw
from rankwise.errors import RankwiseError
from rankwise.measures._base import parse
from rankwise.queries.queries import Queries
from rankwise.rankers.linear.presets import exchange_costs
from tests.losses.lists import on_lists
from tests.oracles.losses import plain
from tests.rankers.boosting.test_adarank import judged
from tests.rankers.linear.test_regularized import small

some = settings(max_examples=settings().max_examples // 4)


def exchanged(queries, measure):
    """tau by carrying out every exchange of two documents in a perfect ranking of every query."""
    costs, weights = {}, {}
    for query, weight in zip(queries, np.asarray(queries.query_weight), strict=True):
        labels = np.sort(np.asarray(query.y))[::-1]
        scores = np.arange(len(labels), 0, -1.0)
        at_best = measure(scores, labels)
        if weight == 0 or math.isnan(at_best):
            continue
        own = {}
        for i, j in itertools.combinations(range(len(labels)), 2):
            if labels[i] > labels[j]:
                other = scores.copy()
                other[[i, j]] = other[[j, i]]
                own.setdefault((labels[i], labels[j]), []).append(at_best - measure(other, labels))
        for pair, falls in own.items():
            costs[pair] = costs.get(pair, 0.0) + weight * np.mean(falls)
            weights[pair] = weights.get(pair, 0.0) + weight
    mean = {pair: cost / weights[pair] for pair, cost in costs.items()}
    largest = max(mean.values(), default=0.0)
    return {pair: value / largest for pair, value in mean.items()} if largest > 0 else {}


@some
@given(judged())
@pytest.mark.parametrize("measure", ["nDCG", "nDCG@2", "nDCG(dcg='log2')@3", "nDCG@1"])
def test_a_pair_weighs_what_its_exchange_costs_a_perfect_ranking_on_average(measure, queries):
    found = {(a, b): weight for a, b, weight in exchange_costs(queries, parse(measure))}
    expected = exchanged(queries, parse(measure))
    assert set(found) == set(expected)
    for pair, weight in found.items():
        assert weight == pytest.approx(expected[pair], abs=1e-9)


def test_errors_between_the_best_and_the_worst_label_weigh_most_and_all_weigh_at_most_one():
    weights = rw.RankSVM("nDCG", pair_weights="top", alpha=0.1).fit(rw.make_lists(30, random_state=1)).pair_weights_
    tau = {(a, b): weight for a, b, weight in weights}
    best, worst = max(a for a, _ in tau), min(b for _, b in tau)
    assert tau[best, worst] == max(tau.values()) == 1
    assert all(0 < weight <= 1 for weight in tau.values())


def test_without_weights_the_loss_is_the_pair_hinge():
    rng = np.random.default_rng(0)
    scores, labels = rng.normal(size=(50, 9)), rng.integers(0, 4, (50, 9)).astype(float)
    for per_pair in (True, False):
        plain_one = on_lists(rw.losses.PairHinge(per_pair=per_pair), scores, labels)
        graded_one = on_lists(rw.losses.GradedPairHinge(per_pair=per_pair), scores, labels)
        for graded, expected in zip(graded_one, plain_one, strict=True):
            np.testing.assert_allclose(graded, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("per_pair", [True, False])
@pytest.mark.parametrize("alpha", [0.01, 1.0])
def test_the_objective_is_the_least_of_a_general_solver(per_pair, alpha):
    """(alpha/2) |w|^2 + sum of c_p slack_p, slack_p >= 0, slack_p >= 1 - w . (x_i - x_j)."""
    queries = small(1, count=6, documents=4)
    top = rw.RankSVM("nDCG@2", pair_weights="top", per_pair=per_pair, alpha=alpha, tolerance=1e-7, scale="none")
    model = top.fit(queries)
    tau = exchanged(queries, parse("nDCG@2"))
    differences, costs = [], []
    for query in queries:
        X, y = np.asarray(query.X), np.asarray(query.y)
        own = [(i, j) for i in range(len(y)) for j in range(len(y)) if y[i] > y[j]]
        for i, j in own:
            differences.append(X[i] - X[j])
            costs.append(tau[y[i], y[j]] / (len(own) if per_pair else 1) / len(queries))
    D, c = np.array(differences), np.array(costs)
    d = D.shape[1]
    found = minimize(
        lambda z: (alpha / 2 * z[:d] @ z[:d] + c @ z[d:], np.concatenate([alpha * z[:d], c])),
        np.concatenate([np.zeros(d), np.ones(len(c))]),
        jac=True,
        bounds=[(None, None)] * d + [(0, None)] * len(c),
        constraints={
            "type": "ineq",
            "fun": lambda z: z[d:] - 1 + D @ z[:d],
            "jac": lambda z: np.hstack([D, np.eye(len(c))]),
        },
        method="SLSQP",
        options={"maxiter": 1000, "ftol": 1e-12},
    )
    assert found.success
    assert model.objective_ == pytest.approx(found.fun, rel=1e-5)
    assert model.objective_ - model.gap_ <= found.fun + 1e-9
    mean = np.mean([plain(model._loss(), query.X @ model.coef_, query.y)[0] for query in queries])
    assert model.objective_ == pytest.approx(alpha / 2 * model.coef_ @ model.coef_ + mean, rel=1e-9)


def test_the_default_is_the_pair_hinge_of_before():
    assert rw.RankSVM()._loss() == rw.losses.PairHinge()
    model = rw.RankSVM(alpha=0.1).fit(small(2))
    assert model.pair_weights_ == ()
    assert rw.RankSVM(pair_weights="equal", alpha=0.1).fit(small(2)).coef_.tobytes() == model.coef_.tobytes()


def test_the_certificate_bounds_the_gap_and_no_measure():
    queries = rw.make_lists(40, documents=6, features=3, random_state=2)
    top = rw.RankSVM("nDCG@3", pair_weights="top", alpha=0.1).fit(queries)
    rows = top.certificate(queries).rows
    assert any("gap" in row.name.lower() for row in rows)
    assert not any("surrogate" in row.name.lower() for row in rows)
    assert top._training_objective().loss_fixed is False
    equal = rw.RankSVM("nDCG@3", alpha=0.1).fit(queries)
    assert equal._training_objective().loss_fixed is True


def test_a_saved_model_keeps_its_weights(tmp_path):
    queries = rw.make_lists(30, documents=6, features=3, random_state=3)
    model = rw.RankSVM("nDCG@3", pair_weights="top", alpha=0.1).fit(queries)
    model.save(tmp_path / "model.rankwise")
    again = rw.load(tmp_path / "model.rankwise")
    assert again.pair_weights_ == model.pair_weights_ != ()
    assert again._loss() == model._loss()
    model.set_params(pair_weights="equal").fit(queries)
    assert model.pair_weights_ == ()


def test_queries_with_one_label_have_no_weights():
    queries = Queries.from_arrays(np.ones((4, 2)), [1, 1, 0, 0], group=[2, 2])
    with pytest.warns(rw.errors.NothingLearnedWarning):
        model = rw.RankSVM(pair_weights="top", alpha=0.1).fit(queries)
    assert model.pair_weights_ == ()


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"measure": "AP"}, "'measure' parameter of RankSVM must be nDCG or nDCG@k"),
        ({"measure": "DCG@3"}, "'measure' parameter of RankSVM must be nDCG or nDCG@k"),
        ({"loss": "squared"}, "'loss' parameter of RankSVM must be 'hinge'"),
        ({"alpha": "theory", "row_radius": 1.0, "norm": 1.0}, "'alpha' parameter of RankSVM must be a number or None"),
        ({"pair_weights": "bottom"}, "'pair_weights' parameter of RankSVM must be 'equal' or 'top'"),
    ],
)
def test_what_it_cannot_mean_is_refused_in_a_sentence(wrong, sentence):
    with pytest.raises(RankwiseError, match=sentence):
        rw.RankSVM(**{"pair_weights": "top", **wrong}).fit(small(3))


@pytest.mark.parametrize(
    ("weights", "sentence"),
    [
        ("top", "weights must be a sequence of"),
        ([(1, 0)], "weights must be a sequence of"),
        ([(0, 1, 0.5)], "a better label, a worse one and a finite weight of at least 0, got"),
        ([(1, 0, -0.5)], "a better label, a worse one and a finite weight of at least 0, got"),
        ([(1, 0, 0.5), (1, 0, 0.25)], "weights must name two labels once"),
    ],
)
def test_weights_that_are_none_are_refused_in_a_sentence(weights, sentence):
    with pytest.raises(RankwiseError, match=sentence):
        rw.losses.GradedPairHinge(weights=weights)
