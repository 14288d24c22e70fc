"""Descents by conjugate gradients and L-BFGS: never worse than the start, exact on quadratics, unharmed by kinks."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from rankwise.errors import RankwiseError
from rankwise.solvers.batch.descent import descend, within

SOLVERS = ("cg", "lbfgs")
over_both_solvers = pytest.mark.parametrize("solver", SOLVERS)


def quadratic(seed, size=6, condition=100.0):
    """(w - c)' A (w - c) / 2 + 3 with its gradient, and c."""
    rng = np.random.default_rng(seed)
    basis = np.linalg.qr(rng.normal(size=(size, size)))[0]
    A = basis * np.geomspace(1, condition, size) @ basis.T
    center = rng.normal(size=size)

    def function(w):
        slope = A @ (w - center)
        return 3.0 + float(slope @ (w - center)) / 2, slope

    return function, center


def kinked(w):
    """sum_j j abs(w_j - 1), flat nowhere and smooth nowhere near its minimum."""
    steep = np.arange(1, len(w) + 1)
    return float(steep @ np.abs(w - 1)), steep * np.sign(w - 1)


def rastrigin(w):
    return float(np.sum(w * w + 3 - 3 * np.cos(5 * w))), 2 * w + 15 * np.sin(5 * w)


@over_both_solvers
@pytest.mark.parametrize("seed", range(5))
def test_quadratics_are_solved_as_by_scipy_and_by_algebra(solver, seed):
    function, center = quadratic(seed)
    found = descend(function, np.zeros(6), solver=solver, steps=500, tolerance=1e-12)
    reference = minimize(function, np.zeros(6), jac=True, method="BFGS", options={"gtol": 1e-10})
    np.testing.assert_allclose(found.w, center, atol=1e-5)
    np.testing.assert_allclose(found.w, reference.x, atol=1e-5)
    assert found.value == pytest.approx(3.0, abs=1e-9)


@over_both_solvers
@given(seed=st.integers(0, 10_000), steps=st.integers(1, 12), which=st.sampled_from([kinked, rastrigin]))
def test_a_descent_never_ends_worse_than_it_began(solver, seed, steps, which):
    start = np.random.default_rng(seed).normal(size=4) * 3
    found = descend(which, start, solver=solver, steps=steps)
    assert found.value <= which(start)[0]
    assert found.value == which(found.w)[0], "the value belongs to the point"
    assert found.steps <= steps


@over_both_solvers
def test_the_point_that_is_kept_is_the_best_of_all_that_were_asked_for(solver):
    asked = []

    def function(w):
        value, slope = rastrigin(w)
        asked.append((value, w.copy()))
        return value, slope

    found = descend(function, np.array([2.3, -1.7]), solver=solver, steps=7)
    value, w = min(asked, key=lambda pair: pair[0])
    assert found.value == value
    np.testing.assert_array_equal(found.w, w)
    assert found.evaluations == len(asked)


@over_both_solvers
def test_a_kink_gets_close_and_does_no_harm(solver):
    start = np.full(3, 4.0)
    found = descend(kinked, start, solver=solver, steps=200)
    assert found.value < 0.5 * kinked(start)[0]


@over_both_solvers
def test_a_wrong_gradient_leaves_the_start(solver):
    found = descend(lambda w: (float(w @ w), -2 * w), np.ones(3), solver=solver)
    np.testing.assert_array_equal(found.w, np.ones(3))
    assert found.value == 3


@over_both_solvers
def test_it_stops_where_the_slope_is_below_the_tolerance_times_the_size_of_the_value(solver):
    function, center = quadratic(1)
    at_once = descend(function, center, solver=solver)
    assert (at_once.steps, at_once.evaluations) == (0, 1)
    found = descend(function, np.zeros(6), solver=solver, steps=10_000, tolerance=1e-3)
    slope = np.abs(function(found.w)[1]).max()
    stale = descend(function, found.w, solver=solver, steps=3, tolerance=1e-3)
    assert slope <= 1e-3 * (1 + function(np.zeros(6))[0]) or found.value - stale.value <= 1e-3 * found.value


@over_both_solvers
def test_it_stops_after_three_steps_that_hardly_help(solver):
    """Half a unit above a minimum of 1000, in a steep narrow valley: there is still a slope, but little to gain."""
    function, center = quadratic(2, condition=1e4)
    away = np.random.default_rng(0).normal(size=6)
    away *= np.sqrt(0.5 / (1e6 * (function(center + away)[0] - 3)))

    def steep(w):
        value, slope = function(w)
        return 1000 + 1e6 * (value - 3), 1e6 * slope

    hasty = descend(steep, center + away, solver=solver, tolerance=1e-3)
    patient = descend(steep, center + away, solver=solver, tolerance=1e-12)
    assert hasty.steps == 3
    assert np.abs(steep(hasty.w)[1]).max() > 1e-3 * 1001, "not for want of a slope"
    assert patient.steps > 3
    assert patient.value < hasty.value


@over_both_solvers
@pytest.mark.parametrize("steps", [1, 2, 5])
def test_it_takes_no_more_steps_than_allowed(solver, steps):
    function, _ = quadratic(3, condition=1e5)
    assert descend(function, np.zeros(6), solver=solver, steps=steps, tolerance=0.0).steps == steps


def test_bounds_hold_and_the_minimum_within_them_has_a_projected_slope_of_zero():
    function, center = quadratic(4)
    bounds = [(0.0, None) if c < 0 else (None, 0.0) for c in center[:3]] + [(None, None)] * 3  # against the minimum
    found = descend(function, center, solver="lbfgs", steps=500, tolerance=1e-10, bounds=bounds)
    slope = function(found.w)[1]
    for j, (low, high) in enumerate(bounds):
        if low is not None:
            assert found.w[j] >= 0
            assert abs(slope[j]) < 1e-4 or (found.w[j] == 0 and slope[j] > 0)
        elif high is not None:
            assert found.w[j] <= 0
            assert abs(slope[j]) < 1e-4 or (found.w[j] == 0 and slope[j] < 0)
        else:
            assert abs(slope[j]) < 1e-4
    assert (found.w[:3] == 0).any(), "some bound is felt"


def test_a_start_outside_of_the_bounds_is_moved_inside():
    bounds = [(0.0, None), (None, 0.0), (None, None), (-1.0, 1.0)]
    np.testing.assert_array_equal(within(np.array([-1.0, 2.0, -3.0, 4.0]), bounds), [0, 0, -3, 1])
    np.testing.assert_array_equal(within(np.array([1.0, -2.0]), None), [1, -2])
    found = descend(
        lambda w: (float(w.sum()), np.ones(2)), np.array([-5.0, 3.0]), solver="lbfgs", bounds=[(0, None), (0, 9)]
    )
    np.testing.assert_array_equal(found.w, [0, 0])


def test_what_it_cannot_do_is_refused_in_a_sentence():
    with pytest.raises(RankwiseError, match=r"must be 'cg' or 'lbfgs'\. Got 'newton'"):
        descend(rastrigin, np.ones(2), solver="newton")
    with pytest.raises(RankwiseError, match="conjugate gradients know no bounds"):
        descend(rastrigin, np.ones(2), solver="cg", bounds=[(0, None)] * 2)


@over_both_solvers
def test_a_callback_sees_the_best_point_after_every_step_and_can_end_the_descent(solver):
    function, _ = quadratic(5)
    seen = []
    whole = descend(
        function, np.zeros(6), solver=solver, callback=lambda w, value, slope: seen.append((w, value, slope))
    )
    assert len(seen) == whole.steps
    for w, value, slope in seen:
        assert function(w)[0] == value
        np.testing.assert_array_equal(function(w)[1], slope)
    assert np.all(np.diff([value for _, value, _ in seen]) <= 0)
    two = descend(function, np.zeros(6), solver=solver, callback=lambda w, value, slope: value <= seen[1][1])
    assert two.steps == 2
    np.testing.assert_array_equal(two.w, seen[1][0])
