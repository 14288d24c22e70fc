"""Truncated Newton: the minima of SciPy's solvers, gaps that are certain, and no harm where nothing can be gained."""

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from rankwise.errors import RankwiseError
from rankwise.queries.queries import Queries
from rankwise.solvers.batch.newton import Ridged, newton
from rankwise.solvers.batch.risk import SquaredPairsOverLists


@dataclass
class At:
    value: float
    gradient: np.ndarray
    matrix: np.ndarray

    def hessian_product(self, v):
        return self.matrix @ v


def quadratic(seed, size=8, condition=1e4):
    """3 + (w - c)' A (w - c) / 2 with eigenvalues from 1 to ``condition``, and c."""
    rng = np.random.default_rng(seed)
    basis = np.linalg.qr(rng.normal(size=(size, size)))[0]
    A, center = basis * np.geomspace(1, condition, size) @ basis.T, rng.normal(size=size)
    return lambda w: At(3 + (w - center) @ A @ (w - center) / 2, A @ (w - center), A), center


def logistic(seed, alpha, size=6, rows=40, spread=3.0):
    """(alpha/2) norm(w)^2 + sum of log(1 + exp(-x.w))."""
    X = spread * np.random.default_rng(seed).normal(size=(rows, size))

    def function(w):
        p = np.exp(-np.logaddexp(0, X @ w))
        value = np.logaddexp(0, -X @ w).sum() + alpha / 2 * w @ w
        return At(value, alpha * w - X.T @ p, alpha * np.eye(size) + X.T * (p * (1 - p)) @ X)

    return function


def ranking(seed, alpha, dtype=np.float64):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 12, 25)
    X = rng.normal(size=(sizes.sum(), 5)).astype(dtype)
    y = np.clip(np.rint(X @ [1, -1, 0.5, 0, 0] + rng.normal(size=len(X))), 0, 3)
    pairs = SquaredPairsOverLists.of(Queries.from_arrays(X, y, group=sizes))
    return Ridged(pairs, alpha, 1 / 25, np.array([1.0, 2.0, 0.5, 1.0, 3.0]))


def by_scipy(function, size, method="BFGS", **options):
    def both(w):
        at = function(w)
        return at.value, at.gradient

    return minimize(both, np.zeros(size), jac=True, method=method, options={"gtol": 1e-11, "maxiter": 10_000} | options)


@pytest.mark.parametrize("seed", range(4))
def test_quadratics_are_solved_in_a_few_steps(seed):
    function, center = quadratic(seed)
    found = newton(function, np.zeros(8), tolerance=1e-12)
    np.testing.assert_allclose(found.w, center, atol=1e-8)
    assert found.converged
    assert found.steps <= 8


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("alpha", [1e-2, 1.0])
def test_strongly_convex_functions_have_the_minimum_of_scipy(seed, alpha):
    function = logistic(seed, alpha)
    found, reference = newton(function, np.zeros(6), tolerance=1e-11), by_scipy(function, 6)
    assert found.converged
    np.testing.assert_allclose(found.w, reference.x, atol=1e-8)
    assert found.value == pytest.approx(reference.fun, rel=1e-12)


@pytest.mark.parametrize("alpha", [1e-4, 1e-2, 1.0])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_squared_pair_hinge_with_a_ridge_has_the_minimum_of_lbfgs(alpha, dtype):
    function = ranking(1, alpha, dtype)
    found = newton(function, np.zeros(5), tolerance=1e-10, strong=alpha)
    reference = by_scipy(function, 5, "L-BFGS-B", ftol=0.0)
    assert found.converged
    np.testing.assert_allclose(found.w, reference.x, atol=1e-6)
    assert found.value <= reference.fun + 1e-12
    assert found.value >= reference.fun - found.gap - 1e-12


@pytest.mark.parametrize(("make", "size"), [(logistic, 6), (ranking, 5)])
def test_the_gap_is_certain_at_every_step_and_what_it_says(make, size):
    function, alpha = make(2, 0.05), 0.05
    found = newton(function, np.ones(size), strong=alpha)
    best = newton(function, found.w, tolerance=1e-9).value
    rows = found.history
    assert (rows["value"] - best <= rows["gap"] + 1e-13).all()
    np.testing.assert_allclose(rows["gap"], rows["gradient"] ** 2 / (2 * alpha))
    assert found.gap == rows["gap"][-1]
    assert np.isnan(newton(function, found.w).gap), "unknown where nothing is known of the function"


@given(seed=st.integers(0, 500), far=st.sampled_from([0.1, 3.0, 100.0]))
def test_values_never_rise_and_the_run_ends_where_the_gradient_is_small_enough(seed, far):
    function = logistic(seed, 1e-3)
    start = far * np.random.default_rng(seed).normal(size=6)
    found = newton(function, start, tolerance=1e-6)
    assert found.converged
    assert (np.diff(found.history["value"]) <= 1e-12 * np.abs(found.history["value"][0])).all()
    assert np.linalg.norm(found.gradient) <= 1e-6 * np.linalg.norm(function(start).gradient)
    np.testing.assert_array_equal(found.gradient, function(found.w).gradient)
    assert found.value == function(found.w).value


def test_the_history_tells_steps_and_products_from_the_start_on():
    asked = []
    function, _ = quadratic(5)

    class Counting(At):
        def hessian_product(self, v):
            asked.append(v)
            return super().hessian_product(v)

    found = newton(lambda w: Counting(**vars(function(w))), np.zeros(8), tolerance=1e-9)
    assert found.history.columns == ("step", "value", "gradient", "products", "gap")
    np.testing.assert_array_equal(found.history["step"], np.arange(found.steps + 1))
    assert found.products == found.history["products"][-1] == len(asked)
    assert found.history["products"][0] == 0


def test_a_reference_makes_a_good_start_as_good_as_a_bad_one():
    function = ranking(3, 1e-3)
    first = newton(function, np.zeros(5))
    size = first.history["gradient"][0]
    assert newton(function, first.w, reference=size).steps == 0
    assert newton(function, first.w).steps > 0


def test_a_callback_sees_every_step_and_can_end_the_run():
    function, seen = logistic(6, 1e-3), []
    whole = newton(function, np.ones(6), tolerance=1e-9, callback=lambda w, row: seen.append((w.copy(), row)))
    assert [row.step for _, row in seen] == list(range(1, whole.steps + 1))
    for w, row in seen:
        assert function(w).value == row.value
    short = newton(function, np.ones(6), tolerance=1e-9, callback=lambda w, row: row.step == 2)
    assert (short.steps, short.converged) == (2, False)
    np.testing.assert_array_equal(short.w, seen[1][0])


def test_ctrl_c_in_a_step_reaches_the_caller():
    def stop(w, row):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        newton(logistic(6, 1e-3), np.ones(6), callback=stop)


def test_it_takes_no_more_steps_than_allowed_and_says_that_it_has_not_arrived():
    function = logistic(7, 1e-4, spread=10.0)
    found = newton(function, np.ones(6), steps=2, tolerance=1e-10)
    assert (found.steps, found.converged) == (2, False)
    none = newton(function, np.ones(6), steps=0)
    np.testing.assert_array_equal(none.w, np.ones(6))


def test_a_start_at_the_minimum_stays_there():
    function, center = quadratic(8)
    found = newton(function, center)
    assert (found.steps, found.products, found.converged) == (0, 0, True)


def test_more_digits_than_there_are_end_the_run_instead_of_going_round():
    found = newton(ranking(9, 1e-2), np.zeros(5), tolerance=0.0, steps=10_000)
    assert not found.converged or not found.gradient.any()
    assert found.steps < 100
    assert np.linalg.norm(found.gradient) < 1e-12


def test_where_there_is_no_curvature_the_slope_is_followed():
    """abs(w_1) + abs(w_2 - 1) has none anywhere."""

    def function(w):
        away = w - [0.0, 1.0]
        return At(np.abs(away).sum(), np.sign(away), np.zeros((2, 2)))

    found = newton(function, np.array([5.0, 9.0]), steps=3)
    np.testing.assert_array_equal(found.w, [2.0, 6.0])
    assert found.products == 3


def test_conjugate_gradients_end_before_a_direction_without_curvature():
    """A valley in w_1 and a slope in w_2: the step goes as far as the model is sure of, and down."""
    function = lambda w: At(w[0] ** 2 + w[1], np.array([2 * w[0], 1.0]), np.diag([2.0, 0.0]))  # noqa: E731
    found = newton(function, np.array([3.0, 0.0]), steps=4)
    assert np.isfinite(found.w).all()
    assert (np.diff(found.history["value"]) < 0).all()


def test_a_wrong_gradient_leaves_the_start():
    found = newton(lambda w: At(float(w @ w), -2 * w, 2 * np.eye(3)), np.ones(3))
    np.testing.assert_array_equal(found.w, np.ones(3))
    assert not found.converged


def test_a_step_into_overflow_is_shortened():
    """exp(w) - w far to the left: the full step overflows."""

    def function(w):
        with np.errstate(over="ignore"):
            return At(float(np.exp(w[0]) - w[0]), np.exp(w) - 1, np.exp(w)[None])

    found = newton(function, np.array([-10.0]), tolerance=1e-10, steps=1000)
    assert found.w[0] == pytest.approx(0.0, abs=1e-8)


@pytest.mark.parametrize(
    ("value", "slope", "found"),
    [(np.nan, 1.0, "nan and a gradient of norm 1 "), (0.0, 1e300, "0 and a gradient of norm inf ")],
)
def test_a_start_without_a_value_or_a_gradient_is_refused_in_a_sentence(value, slope, found):
    with pytest.raises(RankwiseError, match=f"value and gradient are finite, got {found}at the start"):
        newton(lambda w: At(value, np.array([slope, 0.0]), np.eye(2)), np.zeros(2))


def test_curvature_beyond_all_numbers_ends_the_run_without_a_word(recwarn):
    found = newton(lambda w: At(1e150 * w[0] + w[1], np.array([1e150, 1.0]), 1e300 * np.eye(2)), np.zeros(2), steps=3)
    assert np.isfinite(found.w).all()
    assert not recwarn.list


@pytest.mark.parametrize("alpha", [0.0, 0.3])
def test_a_ridge_adds_its_part_and_scales_the_weights(alpha):
    function, _ = quadratic(10, size=4)
    factor, rng = np.array([1.0, 0.0, 2.0, 0.1]), np.random.default_rng(11)
    w, v = rng.normal(size=4), rng.normal(size=4)
    at, inner = Ridged(function, alpha, 0.25, factor)(w), function(w * factor)
    assert at.value == pytest.approx(alpha / 2 * w @ w + 0.25 * inner.value)
    np.testing.assert_allclose(at.gradient, alpha * w + 0.25 * factor * inner.gradient)
    matrix = alpha * np.eye(4) + 0.25 * factor[:, None] * inner.matrix * factor
    np.testing.assert_allclose(at.hessian_product(v), matrix @ v, rtol=1e-12)
