"""The comparator that makes an online bound smallest, against other ways to find it."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq, linprog

from rankwise.errors import RankwiseError
from rankwise.losses import SLAM
from rankwise.losses.compute import PreparedLists, loss_lists
from rankwise.solvers.online.ledger import best_comparator, larger_root
from tests.strategies import few


def hinges(Z):
    """u -> (sum_i [1 - z_i'u]_+, its subgradient)."""

    def oracle(u):
        slack = 1 - Z @ u
        return slack[slack > 0].sum(), -Z[slack > 0].sum(axis=0)

    return oracle


def lessons(seed, lead, n=25):
    """Rows z of two features; the larger the lead, the easier z'u >= 1 is for all of them."""
    Z = np.random.default_rng(seed).normal(size=(n, 2))
    Z[:, 0] += lead
    return Z


def best_bound_by_bisection(Z, c, directions=1000):
    """The x at which min over u of F(u) + sqrt(c x) norm(u) is x.

    By duality that minimum is max sum(alpha) with 0 <= alpha <= 1 and norm(Z'alpha) <= sqrt(c x): a linear program
    once the disc is a polygon, of so many sides that it is 5e-6 too large.
    """
    angle = 2 * np.pi * np.arange(directions) / directions
    sides = np.column_stack([np.cos(angle), np.sin(angle)]) @ Z.T

    def excess(x):
        limits = np.full(directions, math.sqrt(c * x))
        return -linprog(-np.ones(len(Z)), A_ub=sides, b_ub=limits, bounds=(0, 1)).fun - x

    # far below the answer the sum grows like sqrt(x), above x; at x = F(0) it cannot be above
    return brentq(excess, 1e-9, len(Z) + 1e-6, xtol=1e-7)


@pytest.mark.parametrize("lead", [0.0, 0.5, 1.5, 3.0, 5.0])
@pytest.mark.parametrize("c", [0.01, 1.0, 30.0])
def test_the_best_bound_is_that_of_bisection(lead, c):
    Z = lessons(int(10 * lead), lead)
    found = best_comparator(hinges(Z), 2, c, tol=1e-5)
    assert found.converged
    assert found.bound == pytest.approx(best_bound_by_bisection(Z, c), rel=2e-5)


def test_no_comparator_on_a_grid_does_better():
    Z = lessons(3, 1.0)
    found = best_comparator(hinges(Z), 2, 2.0)
    grid = np.array(np.meshgrid(np.linspace(-3, 3, 121), np.linspace(-3, 3, 121))).reshape(2, -1).T
    bounds = [larger_root(np.maximum(0, 1 - Z @ u).sum(), np.linalg.norm(u), 2.0) for u in grid]
    assert found.bound <= min(bounds) * (1 + 1e-3)
    assert found.lower_bound <= min(bounds)


@given(
    st.integers(0, 2**16), st.sampled_from([0.0, 1.0, 4.0]), st.sampled_from([1e-3, 0.3, 10.0, 1e4]), st.integers(1, 5)
)
@few
def test_the_bound_is_that_of_the_comparator_and_no_other_is_below_the_lower_bound(seed, lead, c, d):
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(12, d))
    Z[:, 0] += lead
    Z[3] = 0  # a lesson that nobody can learn
    found = best_comparator(hinges(Z), d, c)
    assert found.converged
    assert found.norm == pytest.approx(np.linalg.norm(found.u))
    assert found.value == pytest.approx(np.maximum(0, 1 - Z @ found.u).sum(), rel=1e-12)
    assert found.bound - found.value == pytest.approx(found.norm * math.sqrt(c * found.bound), rel=1e-9, abs=1e-9)
    assert found.lower_bound <= found.bound <= len(Z)
    others = [*rng.normal(size=(200, d)), *(found.u + 0.1 * found.norm * rng.normal(size=(200, d)))]
    for u in others:
        assert larger_root(np.maximum(0, 1 - Z @ u).sum(), np.linalg.norm(u), c) >= found.lower_bound * (1 - 1e-9)


def test_on_separable_data_a_small_c_asks_for_the_separator_of_largest_margin():
    """F = 0 and c norm(u)^2 of a hard-margin machine; a large c buys a shorter u with some loss, and gains by it."""
    from sklearn.svm import SVC

    Z = lessons(1, 3.0)
    assert linprog(np.zeros(2), A_ub=-Z, b_ub=-np.ones(len(Z)), bounds=(None, None)).success  # separable by u
    # symmetric data put the machine's own threshold at 0
    machine = SVC(kernel="linear", C=1e8, tol=1e-8).fit(np.vstack([Z, -Z]), np.repeat([1, -1], len(Z)))
    hard = float(np.linalg.norm(machine.coef_))
    found = best_comparator(hinges(Z), 2, 0.01, tol=1e-6)
    assert found.bound == pytest.approx(0.01 * hard**2, rel=1e-5)
    assert found.value == pytest.approx(0, abs=1e-6)
    np.testing.assert_allclose(found.u, machine.coef_[0], rtol=1e-3)
    assert best_comparator(hinges(Z), 2, 10.0).bound < 0.99 * 10 * hard**2


def test_nothing_to_learn_leaves_the_comparator_0():
    """Lessons that contradict each other: no u is better than 0, and F(0) is the bound."""
    found = best_comparator(hinges(np.vstack([lessons(2, 0.0), -lessons(2, 0.0)])), 2, 1.0)
    np.testing.assert_array_equal(found.u, 0)
    assert found.bound == found.value == found.lower_bound == 50
    steep = best_comparator(hinges(lessons(2, 1.0)), 2, 1e9)  # a bound so dear that nothing but 0 pays
    assert (steep.bound, steep.norm, steep.n_calls) == (25, 0, 1)


def test_no_mistakes_are_a_bound_of_0():
    for c in (0.0, 1.0):
        found = best_comparator(lambda u: (0.0, np.zeros(3)), 3, c)
        assert (found.bound, found.norm, found.converged) == (0, 0, True)


def test_a_bound_is_true_however_short_the_search():
    Z = lessons(5, 1.0)
    best = best_bound_by_bisection(Z, 1.0)
    for max_calls in (1, 2, 5):
        found = best_comparator(hinges(Z), 2, 1.0, tol=1e-9, max_calls=max_calls)
        assert found.n_calls == max_calls
        assert not found.converged
        assert found.bound == pytest.approx(larger_root(hinges(Z)(found.u)[0], np.linalg.norm(found.u), 1.0), rel=1e-12)
        assert found.lower_bound <= best * (1 + 1e-5) <= found.bound * (1 + 2e-5)


def test_the_loss_of_lists_is_a_loss_of_comparators():
    rng = np.random.default_rng(0)
    start = np.arange(41) * 6
    X = rng.normal(size=(240, 2))
    labels = np.digitize(X @ [2.0, 1.0] + 0.3 * rng.normal(size=240), [0.5, 2.0]).astype(float)
    lists = PreparedLists.of(SLAM(), labels, start)

    def oracle(u):
        values, gradient = loss_lists(lists, X @ u, n_jobs=1)
        return values.sum(), X.T @ gradient

    found = best_comparator(oracle, 2, 0.5)
    assert found.converged
    assert 0 < found.bound < 0.7 * oracle(np.zeros(2))[0]
    angle, size = np.meshgrid(np.linspace(0, 2 * np.pi, 40), np.linspace(0, 2 * found.norm, 30))
    for a, r in zip(angle.ravel(), size.ravel(), strict=True):
        assert larger_root(oracle(r * np.array([np.cos(a), np.sin(a)]))[0], r, 0.5) >= found.lower_bound


@given(st.floats(0, 1e6), st.floats(0, 1e3), st.floats(1e-6, 1e6))
def test_the_larger_root_is_a_root(value, norm, c):
    x = larger_root(value, norm, c)
    assert x - value == pytest.approx(norm * math.sqrt(c * x), rel=1e-9, abs=1e-9 * (1 + value))
    assert x >= max(value, c * norm**2) * (1 - 1e-12)
    assert x <= (value + norm * math.sqrt(c * value) + c * norm**2) * (1 + 1e-12)  # the bound as it is usually printed


def test_arguments_without_sense_are_refused():
    for c in (-1.0, np.nan, np.inf):
        with pytest.raises(RankwiseError, match=rf"'c' .* must be a float in \[0, inf\). Got {c}"):
            best_comparator(hinges(lessons(0, 1.0)), 2, c)
    with pytest.raises(RankwiseError, match="c above 0"):
        best_comparator(hinges(lessons(0, 1.0)), 2, 0.0)
    with pytest.raises(RankwiseError, match="floor is not 0"):
        best_comparator(lambda u: (-1.0, np.zeros(2)), 2, 1.0)
