"""What PermuRank is made of: its orders against all permutations, its hinge against loops and a quadratic programme."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankwise._kernels.orders import best_unsorted, hinge_over_pairs, largest_hinge, order_features, worst_sorted
from rankwise.measures._base import parse
from rankwise.rankers.permutation.list_orders import position_edges
from rankwise.rankers.permutation.permurank import minimize_over
from rankwise.solvers.batch.working_sets import WorkingSets
from tests.oracles import permurank as oracle
from tests.strategies import few, judged_lists, tied_scores

MEASURES = [
    "AP",
    "AP@2",
    "nDCG",
    "nDCG@2",
    "nDCG(dcg='exp-letor')@3",
    "nDCG(dcg='letor')",
    "nDCG(short='zero')@5",
    "MeanNDCG",
    "P@2",
    "P@4",
    "R@3",
    "RR",
    "RR@2",
    "WTA",
    "ERR@3",
    "RBP",
    "Pairs",
    "Success@1",
]


# ------------------------------------------------------------------------------------------- orders


@pytest.mark.parametrize("measure", MEASURES)
@few
@given(one=judged_lists(max_size=5))
def test_the_two_orders_are_the_extremes_of_all_permutations(measure, one):
    scores, labels = (np.asarray(part, dtype=float) for part in one)
    measure, size = parse(measure), len(scores)
    value, edges = measure.row_values(labels), position_edges(measure, size)
    all_orders = oracle.all_orders(size)
    worth = oracle.reached(measure, all_orders, labels)
    if np.isnan(worth).any():
        return  # nothing is relevant
    perfect = worth >= worth.max() - 1e-12
    agreement = np.array([oracle.pair_score(order, scores) for order in all_orders])
    close = 1e-9 * (1 + np.abs(scores).max())
    worst, best = np.empty(size, dtype=np.int64), np.empty(size, dtype=np.int64)
    worst_sorted(scores, value, edges, worst)
    if measure.title.startswith("nDCG(short='zero')") and size < 5:
        assert perfect.all()  # and what its edges say about it does not count
        return
    place = np.flatnonzero((all_orders == worst).all(axis=1))[0]
    assert perfect[place]
    assert agreement[place] == pytest.approx(agreement[perfect].min(), abs=close)
    assert best_unsorted(scores, value, edges, best) == (not perfect.all())
    if not perfect.all():
        place = np.flatnonzero((all_orders == best).all(axis=1))[0]
        assert not perfect[place]
        assert agreement[place] == pytest.approx(agreement[~perfect].max(), abs=close)
        sorted_worth = measure(scores, labels, ties="pessimistic")
        if sorted_worth < worth.max() - 1e-12:  # then the order is that of the scores, at their worst
            assert worth[place] == pytest.approx(sorted_worth)


@few
@given(one=judged_lists(min_size=2, max_size=5))
def test_by_class_perfect_orders_are_equal_and_the_best_imperfect_one_is_that_of_all_permutations(one):
    scores, labels = (np.asarray(part, dtype=float) for part in one)
    relevant = labels > 0
    if relevant.all() or not relevant.any():
        return
    all_orders = oracle.all_orders(len(scores))
    perfect = oracle.reached(parse("AP"), all_orders, labels) == 1
    agreement = np.array([oracle.class_score(order, scores, relevant) for order in all_orders])
    close = 1e-9 * (1 + np.abs(scores).max())
    np.testing.assert_allclose(agreement[perfect], agreement[perfect][0], atol=close)
    best = np.empty(len(scores), dtype=np.int64)
    assert best_unsorted(scores, relevant.astype(float), np.ones(len(scores), dtype=bool), best)
    place = np.flatnonzero((all_orders == best).all(axis=1))[0]
    assert not perfect[place]
    assert agreement[place] == pytest.approx(agreement[~perfect].max(), abs=close)


@pytest.mark.parametrize("by_class", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("scattered", [False, True])
def test_the_features_of_an_order_are_its_score_under_each_of_them(by_class, dtype, scattered):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(9, 3)).astype(dtype)
    y = np.array([1.0, 0, 0, 1, 0, 1, 0, 0, 0])
    start = np.array([0, 4, 9])
    rows = rng.permutation(9) if scattered else np.arange(9)
    center, factor = rng.normal(size=3), rng.uniform(1, 2, 3)
    orders = np.concatenate([rng.permutation(4), rng.permutation(5)])
    y[rows[[0, 1]]], y[rows[[4, 5]]] = (0, 1), (0, 1)  # both kinds in both lists
    found = np.empty((2, 3))
    given_rows = rows if scattered else np.empty(0, dtype=np.int64)
    order_features(X, np.arange(2), start, given_rows, y, orders, by_class, center, factor, found)
    for number in range(2):
        own = rows[start[number] : start[number + 1]]
        order = orders[start[number] : start[number + 1]]
        options = {"score": oracle.class_score, "relevant": y[own] > 0} if by_class else {}
        expected = oracle.vector(order, X[own].astype(float), **options) * factor
        np.testing.assert_allclose(found[number], expected, rtol=1e-9, atol=1e-12)


# ------------------------------------------------------------------------------------------- the hinge and its minimum


@given(
    perfect=st.lists(st.one_of(tied_scores, st.floats(-5, 5)), min_size=1, max_size=6),
    imperfect=st.lists(st.tuples(st.one_of(tied_scores, st.floats(-5, 5)), st.floats(0.01, 1)), min_size=1, max_size=6),
)
def test_the_fast_hinge_is_the_double_loop_and_its_slopes_lie_below_it(perfect, imperfect):
    b, (c, missed) = np.array(perfect), np.array(imperfect).T
    rng = np.random.default_rng(0)
    for fast, slow in ((hinge_over_pairs, oracle.hinge_pairs), (largest_hinge, oracle.hinge_largest)):
        down, up = np.full(len(b), np.nan), np.full(len(c), np.nan)
        value = fast(b, c.copy(), missed.copy(), down, up)
        assert value == pytest.approx(slow(b, c, missed), abs=1e-12)
        for _ in range(5):  # convex: a subgradient's plane is nowhere above
            other_b, other_c = b + rng.normal(size=len(b)), c + rng.normal(size=len(c))
            plane = value + down @ (other_b - b) + up @ (other_c - c)
            assert plane <= slow(other_b, other_c, missed) + 1e-9


def random_sets(rng, largest):
    """Working sets with random vectors, and the same as plain lists."""
    weight = rng.uniform(0.2, 1, 4)
    sets = WorkingSets(weight, 3, largest)
    vectors = {(q, kind): [] for q in range(4) for kind in (False, True)}
    missed = {q: [] for q in range(4)}
    for _ in range(4):
        for kind in (False, True):
            chosen = np.flatnonzero(rng.uniform(size=4) < 0.8) if vectors[0, kind] else np.arange(4)
            new, lost = rng.normal(size=(len(chosen), 3)), rng.uniform(0.1, 1, len(chosen)) * kind
            sets.add(kind, chosen, new, lost)
            for q, one, m in zip(chosen.tolist(), new, lost, strict=True):
                vectors[q, kind].append(one)
                missed[q] += [m] if kind else []
    plain = [(weight[q], np.array(vectors[q, False]), np.array(vectors[q, True]), missed[q]) for q in range(4)]
    return sets, plain


@pytest.mark.parametrize("largest", [False, True])
@pytest.mark.parametrize("alpha", [0.03, 1.0, 30.0])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_round_reaches_the_minimum_of_a_quadratic_program(largest, alpha, seed):
    sets, plain = random_sets(np.random.default_rng(seed), largest)
    found = minimize_over(sets, alpha, np.zeros(3), tolerance=1e-9, n_jobs=1)
    w, objective, loss, gap = found.w, found.objective, found.value, found.gap
    expected_w, least = oracle.minimum(plain, alpha, largest)
    assert objective == pytest.approx(least, rel=1e-6)
    assert objective - gap <= least * (1 + 1e-6)
    np.testing.assert_allclose(w, expected_w, atol=1e-3 * (1 + np.abs(expected_w).max()))
    slow = oracle.hinge_largest if largest else oracle.hinge_pairs
    assert loss == pytest.approx(sum(query_weight * slow(b @ w, c @ w, m) for query_weight, b, c, m in plain))


def test_sets_do_not_take_an_order_twice_and_count_what_they_have():
    sets = WorkingSets(np.ones(2), 1)
    assert sets.take_new(False, [0, 1], [b"ab", b"ab"]) == [0, 1]
    assert sets.take_new(False, [0, 1], [b"ba", b"ab"]) == [0]
    assert sets.take_new(True, [0], [b"ab"]) == [0]
    sets.add(False, np.array([0, 1]), np.ones((2, 1)), np.zeros(2))
    sets.add(False, np.array([0]), np.ones((1, 1)), np.zeros(1))
    assert sets.perfect.tolist() == [2, 1]
    assert sets.imperfect.tolist() == [0, 0]
    value, slope = sets(np.array([5.0]))
    assert (value, slope.tolist()) == (0.0, [0.0])  # nothing to compare with
