"""Structured hinges: the most violated ranking is the right one, and what follows from it."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment

from rankwise.errors import RankwiseError
from rankwise.losses.structured import SVMMapHinge, best_places, best_places_scan
from rankwise.losses.structured_ndcg import NDCGHinge, assign
from rankwise.measures import AP, NDCG
from tests.oracles.losses_structured import average_precision, ndcg_hinge_costs, pair_margin
from tests.strategies import judged_lists


def random_list(rng, n_relevant, n_others, spread=1.0):
    """Scores decreasing inside each class, and harmonic numbers."""
    a = np.sort(rng.normal(size=n_relevant) * spread)[::-1].copy()
    b = np.sort(rng.normal(size=n_others) * spread)[::-1].copy()
    return a, b, SVMMapHinge().table(n_relevant + n_others)


# ------------------------------------------------------------------------------------------------ SVMmap


@pytest.mark.parametrize("search", ["divide", "scan"])
@given(judged_lists(min_size=2, max_size=5, labels=st.sampled_from([0, 1])), st.sampled_from([0.01, 0.3, 1.0]))
def test_svmmap_equals_the_maximum_over_all_permutations(search, judged, scale):
    s, y = np.clip(judged[0], -5, 5) * scale, np.array(judged[1])
    if 0 < y.sum() < len(y):
        best = -np.inf
        perfect = np.argsort(-y, kind="stable")
        for order in itertools.permutations(range(len(s))):
            order = list(order)
            lead = pair_margin(y[order], s[order]) - pair_margin(y[perfect], s[perfect])
            best = max(best, 1 - average_precision(y[order]) + lead)
        assert SVMMapHinge(search=search)(s, y)[0] == pytest.approx(best, abs=1e-12)


@pytest.mark.parametrize(
    ("n_relevant", "n_others"), [(1, 1), (1, 500), (500, 1), (40, 300), (300, 40), (7, 64), (9, 65)]
)
@pytest.mark.parametrize("spread", [0.0, 1e-6, 1e-2, 0.3, 100.0])
def test_both_searches_find_the_same_ranking(n_relevant, n_others, spread):
    rng = np.random.default_rng(n_relevant + 1000 * n_others)
    a, b, harmonic = random_list(rng, n_relevant, n_others, spread)
    fast, slow = np.empty(n_others, np.int64), np.empty(n_others, np.int64)
    values = best_places(a, b, fast, harmonic), best_places_scan(a, b, slow, harmonic)
    assert values[0] == pytest.approx(values[1], rel=1e-12, abs=1e-13)
    np.testing.assert_array_equal(fast, slow)
    assert (np.diff(slow) >= 0).all()  # what makes the choices of all j one ranking


@given(st.integers(1, 12), st.integers(1, 30), st.data())
def test_the_harmonic_form_is_the_sum(n_relevant, j, data):
    """sum over i >= k of i / ((i + j - 1)(i + j)), exactly."""
    k = data.draw(st.integers(1, n_relevant))
    total = sum(Fraction(i, (i + j - 1) * (i + j)) for i in range(k, n_relevant + 1))
    between = sum(Fraction(1, i) for i in range(k + j, n_relevant + j + 1))
    assert total == between - Fraction((j - 1) * (n_relevant - k + 1), (n_relevant + j) * (k + j - 1))


@given(st.integers(1, 8), st.integers(2, 8), st.integers(0, 2**32 - 1))
def test_what_placing_an_irrelevant_document_gains_falls_from_one_to_the_next(n_relevant, n_others, seed):
    """delta_j(i) falls with j, so the best place k_j never does."""
    a, b, harmonic = random_list(np.random.default_rng(seed), n_relevant, n_others)
    i, j = np.arange(1, n_relevant + 1)[:, None], np.arange(1, n_others + 1)
    delta = i / ((i + j - 1) * (i + j)) / n_relevant - 2 * (a[:, None] - b) / (n_relevant * n_others)
    assert (np.diff(delta, axis=1) < 0).all()
    gain = np.vstack([np.cumsum(delta[::-1], axis=0)[::-1], np.zeros(n_others)])  # k from 1 to N1 + 1
    places = np.empty(n_others, np.int64)
    assert best_places(a, b, places, harmonic) == pytest.approx(gain.max(axis=0).sum(), abs=1e-12)
    assert (np.diff(places) >= 0).all()


@given(judged_lists(min_size=2, max_size=6, labels=st.sampled_from([0, 1])))
def test_all_perfect_orders_have_the_same_score(judged):
    s, y = np.clip(judged[0], -5, 5), np.array(judged[1])
    relevant, others = np.flatnonzero(y == 1), np.flatnonzero(y == 0)
    if len(relevant) and len(others):
        both = itertools.product(itertools.permutations(relevant), itertools.permutations(others))
        scores = [pair_margin(y[[*one, *two]], s[[*one, *two]]) for one, two in both]
        np.testing.assert_allclose(scores, scores[0], atol=1e-12)


def test_the_harmonic_form_keeps_its_digits_on_long_lists():
    """Where a_i = b_j the sums decide alone; k_1 = 1 always pays, and so does every later one."""
    a, b = np.zeros(3), np.zeros(300_000)
    places, harmonic = np.empty(len(b), np.int64), SVMMapHinge().table(len(a) + len(b))
    value = best_places(a, b, places, harmonic)
    np.testing.assert_array_equal(places, 0)
    worst = average_precision([0] * len(b) + [1] * len(a))
    assert value == pytest.approx(1 - worst, abs=1e-9)


@given(judged_lists(min_size=2, max_size=9), st.integers(1, 3))
def test_the_subgradient_belongs_to_a_ranking_that_reaches_the_value(judged, rel):
    """phi = g.s + (1 - AP) of the ranking found, so phi - g.s is a loss of AP: between 0 and 1."""
    s, y = np.clip(judged[0], -100, 100), judged[1]
    value, gradient = SVMMapHinge(rel=rel)(s, y)
    assert -1e-9 <= value - gradient @ s <= 1 + 1e-9


def test_the_constant_4_is_reached():
    _, gradient = SVMMapHinge()([-10.0, -10.0, 10.0, 10.0], [1, 1, 0, 0])
    assert np.abs(gradient).sum() == pytest.approx(4)


def test_a_wide_enough_lead_is_no_loss():
    assert SVMMapHinge()([5.0, 4.0, -5.0, -6.0], [1, 1, 0, 0])[0] == 0
    assert AP()([5.0, 4.0, -5.0, -6.0], [1, 1, 0, 0]) == 1


def test_an_unknown_search_is_refused():
    with pytest.raises(RankwiseError, match="search"):
        SVMMapHinge(search="guess")


# ------------------------------------------------------------------------------------------------ NDCG


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("spread", [0.0, 1e-3, 0.1, 10.0])
def test_the_assignment_is_as_good_as_scipys(seed, spread):
    rng = np.random.default_rng(seed)
    for m in (1, 2, 5, 17, 60, 150):
        n = m if seed % 2 else int(rng.integers(1, m + 1))
        a, d = np.arange(n, 0, -1.0), 1 / np.log2(np.arange(2, n + 2))
        s, w = rng.normal(size=m) * spread, 2.0 ** rng.integers(0, 5, m) - 1
        if seed == 2:
            s = np.round(s)
        position = np.empty(m, np.int64)
        assign(a, d, s, w, position)
        placed = position >= 0
        assert sorted(position[placed]) == list(range(n))
        costs = np.outer(d, w) - np.outer(a, s)
        best = costs[linear_sum_assignment(costs)].sum()
        assert costs[position[placed], np.flatnonzero(placed)].sum() == pytest.approx(best, rel=1e-12, abs=1e-10)


@pytest.mark.parametrize("loss", [*NDCGHinge.examples(), NDCGHinge(normalized=True)], ids=repr)
@given(judged_lists(min_size=2, max_size=6), st.sampled_from([0.01, 0.3, 1.0]))
def test_ndcg_hinge_equals_the_maximum_over_all_permutations(loss, judged, scale):
    s, y = np.clip(judged[0], -5, 5) * scale, np.array(judged[1], dtype=float)
    found = ndcg_hinge_costs(loss, s, y)
    if found is not None:
        costs, constant = found
        every = np.array(list(itertools.permutations(range(len(s)))))  # position of every document
        best = 1 + costs[np.arange(len(s)), every].sum(axis=1).max() - constant
        assert loss(s, y)[0] == pytest.approx(best, abs=1e-11)


@pytest.mark.parametrize("m", [2, 3, 4, 7, 10])
def test_the_printed_constants_are_reached_by_the_reversed_order(m):
    s, y = np.arange(m) * 10.0, np.arange(m)[::-1] / 2.0
    for symmetric in (True, False):
        assert np.abs(NDCGHinge(symmetric=symmetric)(s, y)[1]).sum() == m * m // 2
        assert np.abs(NDCGHinge(symmetric=symmetric, normalized=True)(s, y)[1]).sum() == pytest.approx(2)
    assert NDCGHinge().lipschitz_l1(m) == m * m // 2
    for k in range(1, m + 1):
        assert NDCGHinge(k=k).lipschitz_l1(m) <= k * (k + 1)
        assert (NDCGHinge(k=k).lipschitz_l1(m) == k * (k + 1)) == (2 * k <= m)


def test_scaling_positions_keeps_the_bound_and_dividing_the_loss_destroys_it():
    """Counterexample to "normalizing away m destroys the bound": that is only true of the loss as a whole."""
    s, y = np.linspace(0, 1e-3, 6), np.array([3.0, 0, 0, 0, 0, 0])
    missed = 1 - NDCG()(s, y, ties="pessimistic")
    assert NDCGHinge(normalized=True)(s, y)[0] >= missed
    assert NDCGHinge()(s, y)[0] / NDCGHinge().lipschitz_l1(6) * 2 < missed


def test_the_mean_over_perfect_rankings_makes_the_order_of_documents_irrelevant():
    s, y = np.array([0.0, 1.0, 0.5]), np.array([1, 1, 0])
    swapped = np.array([1.0, 0.0, 0.5])
    assert NDCGHinge()(s, y)[0] == pytest.approx(NDCGHinge()(swapped, y)[0], abs=1e-15)
    assert NDCGHinge(symmetric=False)(s, y)[0] != pytest.approx(NDCGHinge(symmetric=False)(swapped, y)[0], abs=0.1)


def test_scores_too_large_for_a_sum_end_in_a_value():
    value, _ = NDCGHinge()([1e308, -1e308, 1e308, 0.0], [0, 1, 2, 3])
    assert not value < 0


@pytest.mark.parametrize("k", [0, -3])
def test_a_cutoff_below_1_is_refused(k):
    with pytest.raises(RankwiseError, match="'k' parameter of NDCGHinge must be"):
        NDCGHinge(k=k)
