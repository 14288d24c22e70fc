"""PermuRank with the exponential and the logistic type two bound: values, minima of a general solver, bounds."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

import rankwise as rw
from rankwise._kernels.orders import EXP, LOGISTIC, STEEPEST, relaxation, relaxed_pairs
from rankwise.errors import RankwiseError
from rankwise.losses import TypeTwo
from rankwise.rankers.permutation.permurank import PermuRank, minimize_over
from rankwise.solvers.batch.working_sets import WorkingSets
from tests.rankers.permutation.test_permurank import lists, pessimistic_regret

FORMS = {"exp": EXP, "logistic": LOGISTIC}
over_forms = pytest.mark.parametrize("form", FORMS)


def phi(x, form):
    if form == "logistic":
        return float(np.logaddexp(0.0, -x)) / math.log(2)
    return math.exp(-x) if -x <= STEEPEST else math.exp(STEEPEST) * (1 - x - STEEPEST)


def pairs_of_orders(perfect, imperfect, missed, form, largest):
    each = [[m * phi(b - c, form) for c, m in zip(imperfect, missed, strict=True)] for b in perfect]
    return max(map(max, each)) if largest else sum(map(sum, each)) / len(perfect)


def random_sets(seed, form, largest):
    """Working sets with random vectors, and the same as plain lists."""
    rng = np.random.default_rng(seed)
    weight, plain = rng.uniform(0.2, 1, 4), []
    sets = WorkingSets(weight, 3, largest, form)
    for q in range(4):
        counts = rng.integers(1, 5, 2)
        perfect, imperfect = (rng.normal(size=(count, 3)) for count in counts)
        missed = rng.uniform(0.1, 1, counts[1])
        for one in perfect:
            sets.add(False, np.array([q]), one[None], np.zeros(1))
        for one, m in zip(imperfect, missed, strict=True):
            sets.add(True, np.array([q]), one[None], np.array([m]))
        plain.append((weight[q], perfect, imperfect, missed))
    return sets, plain


# ------------------------------------------------------------------------------------------- the function of a margin


@over_forms
@given(st.floats(-60, 60), st.floats(-60, 60))
def test_the_function_is_convex_and_at_least_one_where_an_imperfect_order_is_not_below(form, x, other):
    value, slope = relaxation(x, FORMS[form])
    assert value == pytest.approx(phi(x, form), rel=1e-12)
    assert value >= (1 if x <= 0 else 0)
    assert slope <= 0
    beside = relaxation(other, FORMS[form])[0]
    assert beside >= value + slope * (other - x) - 1e-9 * max(abs(value), abs(slope * (other - x)), beside)


@given(st.floats(-10, 10))
def test_the_exponential_is_never_below_the_hinge(x):
    assert relaxation(x, EXP)[0] >= max(1 - x, 0.0)


@over_forms
@pytest.mark.parametrize("largest", [False, True])
@pytest.mark.parametrize("spread", [0.5, 40.0])
def test_the_sum_over_orders_is_the_double_loop_and_its_slopes_lie_below_it(form, largest, spread):
    rng = np.random.default_rng(0)
    for _ in range(50):
        b, c = (spread * rng.normal(size=rng.integers(1, 6)) for _ in range(2))
        missed = rng.uniform(0.01, 1, len(c))
        down, up = np.full(len(b), np.nan), np.full(len(c), np.nan)
        value = relaxed_pairs(b, c, missed, FORMS[form], largest, down, up)
        assert value == pytest.approx(pairs_of_orders(b, c, missed, form, largest), rel=1e-12)
        assert down.sum() + up.sum() == pytest.approx(0, abs=1e-12 * np.abs(up).sum())
        other_b, other_c = b + rng.normal(size=len(b)), c + rng.normal(size=len(c))
        plane = value + down @ (other_b - b) + up @ (other_c - c)
        there = pairs_of_orders(other_b, other_c, missed, form, largest)
        assert plane <= there + 1e-9 * max(value, there, np.abs(down).sum())


# ------------------------------------------------------------------------------------------- its minimum


@over_forms
@pytest.mark.parametrize("largest", [False, True])
@pytest.mark.parametrize("alpha", [1e-3, 0.1, 3.0])
def test_a_round_minimizes_the_objective_on_the_sets_with_a_certain_gap(form, largest, alpha):
    """The minimum of SciPy; for the largest pair in a list with one variable per list above all its pairs."""
    sets, plain = random_sets(1, form, largest)
    found = minimize_over(sets, alpha, np.zeros(3), 1e-6, 1)

    def terms(w):
        return [
            np.array([[m * phi(w @ (b - c), form) for c, m in zip(C, missed, strict=True)] for b in B])
            for _, B, C, missed in plain
        ]

    weight = np.array([one[0] for one in plain])
    if largest:
        expected = minimize(
            lambda z: alpha / 2 * z[:3] @ z[:3] + weight @ z[3:],
            np.concatenate([np.zeros(3), [one.max() + 1 for one in terms(np.zeros(3))]]),
            constraints={
                "type": "ineq",
                "fun": lambda z: np.concatenate([(z[3 + q] - one).ravel() for q, one in enumerate(terms(z[:3]))]),
            },
            method="SLSQP",
            options={"ftol": 1e-13, "maxiter": 2000},
        )
    else:
        expected = minimize(
            lambda w: (
                alpha / 2 * w @ w + sum(c * one.sum() / len(one) for c, one in zip(weight, terms(w), strict=True))
            ),
            np.zeros(3),
            method="BFGS",
            options={"gtol": 1e-8},
        )
    assert found.objective == pytest.approx(expected.fun, rel=1e-4)
    assert found.objective - found.gap <= expected.fun + 1e-9
    own = sum(c * pairs_of_orders(B @ found.w, C @ found.w, missed, form, largest) for c, B, C, missed in plain)
    assert found.objective == pytest.approx(alpha / 2 * found.w @ found.w + own, rel=1e-9)


# ------------------------------------------------------------------------------------------- rounds and their bound


@over_forms
@pytest.mark.parametrize("hinge", ["sum", "max"])
@pytest.mark.parametrize(("measure", "map"), [("AP", "relevant"), ("AP", "pairs"), ("nDCG@3", "pairs")])
def test_when_no_set_changes_the_loss_bounds_what_the_measure_misses(measure, map, hinge, form):
    queries = lists(5, weighted=True)
    model = PermuRank(measure, map=map, hinge=hinge, form=form, alpha=0.05, rounds=300, stop="last").fit(queries)
    assert model.converged_
    assert model.history_["bound"][-1]
    assert model.history_["loss"][-1] >= pessimistic_regret(queries, model, measure) - 1e-9


@over_forms
def test_the_largest_pair_of_the_sets_lies_between_the_regret_and_the_type_two_loss_of_all_orders(form):
    queries = lists(19, labels=1)
    model = PermuRank("AP", map="relevant", hinge="max", form=form, alpha=0.1, rounds=300, stop="last", scale="none")
    model.fit(queries)
    assert model.converged_
    exact = TypeTwo("AP", form=form, map="relevant")
    able = [query for query in queries if query.y.max() > 0]
    type_two = np.mean([exact(query.X @ model.coef_, query.y) for query in able])
    assert pessimistic_regret(queries, model, "AP") - 1e-9 <= model.history_["loss"][-1] <= type_two + 1e-9


@over_forms
def test_it_learns_what_can_be_learned(form):
    queries = lists(7, labels=1)
    perfect = queries.map_features(lambda X: X).with_labels((queries.X[:, 0] > 0.3).astype(float))
    model = PermuRank("AP", map="relevant", hinge="max", form=form, alpha=1e-3, stop="last").fit(perfect)
    assert model.score(perfect) > 0.97


@over_forms
def test_a_penalty_of_next_to_nothing_asks_for_no_number_that_is_not_finite(form):
    """The first step of cutting planes is as long as the slope over alpha: the exponential has its tangent there."""
    model = PermuRank("AP", hinge="sum", form=form, alpha=1e-9, rounds=2, stop="last").fit(lists(8))
    assert np.isfinite(model.history_["objective"]).all()


def test_an_unknown_form_is_refused_in_a_sentence():
    with pytest.raises(RankwiseError, match="'form' parameter of PermuRank must be 'hinge', 'exp' or 'logistic'"):
        rw.PermuRank(form="squared").fit(lists(9))
