"""Rows against a vector: one dot product everywhere, its transpose, radii, moments, and balls, each against NumPy."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from rankwise._kernels.dot_products import add_rows, dot, score_rows
from rankwise._kernels.moments import add_moments
from rankwise._kernels.radius import largest_radius, list_radius, raised_radius
from rankwise.losses import MaxPair
from rankwise.losses.compute import LossOverLists
from rankwise.measures._base import parse
from rankwise.queries.queries import Queries
from rankwise.solvers.online.config import OnlineConfig, State
from rankwise.solvers.online.loop import onto_l1_ball, run_rounds
from tests.oracles.perceptrons import onto_l1_ball as by_bisection

TYPES = [np.float32, np.float64]
over_types = pytest.mark.parametrize("dtype", TYPES, ids=lambda kind: kind.__name__)


@over_types
@pytest.mark.parametrize("features", [1, 2, 3, 4, 5, 7, 8, 15, 16, 17, 31, 33, 64, 100, 136, 200, 701])
def test_a_row_has_the_same_bits_alone_in_a_block_in_a_round_and_in_a_loss(dtype, features):
    """Predictions, rounds and objectives score by one function; the loss of a pair with a row of zeros shows it."""
    rng = np.random.default_rng(features)
    X = rng.normal(size=(40, features)).astype(dtype)
    w = rng.normal(size=features)
    whole = np.empty(len(X))
    score_rows(X, 0, len(X), w, whole)
    np.testing.assert_allclose(whole, X.astype(np.float64) @ w, rtol=1e-12, atol=1e-12)
    for first in (0, 7, 39):
        part = np.full(len(X), np.nan)
        score_rows(X, first, first + 1, w, part)
        assert part[first] == whole[first] == dot(X[first], w)
    tiny = MaxPair(margin=1e-300)  # vanishes beside any score, so that the loss is the score
    config = OnlineConfig(loss=tiny, measure=parse("nDCG"), update="always")
    state = State(w, *list(vars(State.fresh(features)).values())[1:])
    for row, score in zip(X, whole, strict=True):
        labels = [1.0, 0.0] if score < 0 else [0.0, 1.0]
        pair = Queries.from_arrays(np.stack([row, np.zeros_like(row)]), labels, group=[2])
        _, played = run_rounds(config, state, pair, np.array([0]))
        assert played.loss[0] == abs(score)
        assert LossOverLists.of(tiny, pair)(w)[0] == abs(score)


@over_types
def test_the_transpose_adds_rows_and_leaves_out_those_without_a_share(dtype):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(9, 6)).astype(dtype)
    X[4] = np.nan
    rows, factors = np.array([8, 4, 0, 3, 8]), np.array([1.5, 0.0, -2.0, 0.25, 1.0])
    out = np.arange(6.0)
    add_rows(X, rows, factors, out)
    kept = factors != 0
    expected = np.arange(6.0) + X[rows[kept]].astype(np.float64).T @ factors[kept]
    np.testing.assert_allclose(out, expected, rtol=1e-13)


@over_types
@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 6, 7, 8, 9, 30])
def test_the_radius_of_a_list_is_that_around_zero_or_around_its_mean(dtype, size):
    rng = np.random.default_rng(size)
    for shift in (0.0, 0.5, 100.0):
        X = (rng.normal(size=(size + 3, 5)) + shift).astype(dtype)
        rows, scale = rng.permutation(size + 3)[:size], rng.uniform(0.5, 2, 5)
        own = X[rows].astype(np.float64)
        around = [np.linalg.norm((own - center) * scale, axis=1).max() for center in (0.0, own.mean(axis=0))]
        assert list_radius(X, rows, scale, np.empty(5)) == pytest.approx(min(around), rel=1e-12)


@pytest.mark.parametrize("mean_first", [False, True])
def test_which_side_is_looked_at_first_changes_no_radius(mean_first):
    rng = np.random.default_rng(0)
    for shift in (0.0, 3.0):
        X = rng.normal(size=(6, 3)) + shift
        own = list_radius(X, np.arange(6), np.ones(3), np.empty(3))
        for radius in (0.0, own / 2, own, 2 * own):
            raised, _ = raised_radius(X, np.arange(6), np.ones(3), np.empty(3), radius, mean_first)
            assert raised == max(radius, own)


def test_the_mean_of_float32_rows_neither_rounds_nor_overflows():
    X = np.full((8, 2), 3e38, dtype=np.float32)
    assert list_radius(X, np.arange(8), np.ones(2), np.empty(2)) == 0
    large = np.array([[16777216.0], [1.0], [1.0], [1.0]], dtype=np.float32)
    mean = (16777216 + 3) / 4
    assert list_radius(large, np.arange(4), np.ones(1), np.empty(1)) == 16777216 - mean


def radius_of(queries):
    return largest_radius(queries.X, queries.start, queries.rows)


def test_the_largest_radius_is_over_lists_that_have_documents():
    X = np.array([[3.0, 4.0], [3.0, 4.0], [1.0, 0.0], [-1.0, 0.0]])
    assert radius_of(Queries(X, None, [0, 0, 2, 2, 4])) == 1.0
    assert radius_of(Queries.from_arrays(X, group=[1, 3])) == pytest.approx(
        min(5.0, np.linalg.norm(X[1:] - X[1:].mean(axis=0), axis=1).max())
    )
    assert radius_of(Queries.from_arrays(X, group=[4])[:0]) == 0.0
    scattered = Queries.from_arrays(X[[0, 2, 1, 3]], qid=[1, 2, 1, 2])
    assert radius_of(scattered) == 1.0


@over_types
def test_running_moments_are_those_of_all_rows_so_far(dtype):
    rng = np.random.default_rng(0)
    X = (rng.normal(size=(300, 4)) * [1, 1e-3, 1e4, 0] + [0, 5, 1e6, 0.1]).astype(dtype)
    mean, squares, count = np.zeros(4), np.zeros(4), 0
    for rows in np.split(rng.permutation(300), [1, 2, 10, 150]):
        count = add_moments(X, rows, count, mean, squares)
    wide = X.astype(np.float64)
    assert count == 300
    np.testing.assert_allclose(mean, wide.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(squares, ((wide - wide.mean(axis=0)) ** 2).sum(axis=0), rtol=1e-9, atol=1e-25)
    assert squares[3] == 0  # a constant feature has no spread at all


@given(st.lists(st.one_of(st.sampled_from([-2.0, -1.0, 0.0, 1.0, 2.0]), st.floats(-9, 9)), min_size=1, max_size=8),
       st.floats(1e-3, 20))  # fmt: skip
def test_the_l1_ball_is_reached_at_its_nearest_point(values, radius):
    w = np.array(values)
    found = w.copy()
    onto_l1_ball(found, radius)
    assert np.abs(found).sum() <= radius + 1e-14 * np.abs(w).sum()
    np.testing.assert_allclose(found, by_bisection(w, radius), atol=1e-12)
    assert (found * w >= 0).all()
    if np.abs(w).sum() <= radius:
        np.testing.assert_array_equal(found, w)
    # nearest: no vertex of the ball lies on the other side
    outward = w - found
    assert max(radius * np.abs(outward).max(), 0) <= outward @ found + 1e-9


def test_a_solver_finds_the_same_point_of_the_l1_ball():
    rng = np.random.default_rng(1)
    for _ in range(5):
        w, radius = rng.normal(size=6) * 3, float(rng.uniform(0.5, 4))
        found = w.copy()
        onto_l1_ball(found, radius)
        # w = a - b with a, b >= 0 and sum(a + b) <= radius
        solved = minimize(
            lambda ab, w=w: ((ab[:6] - ab[6:] - w) ** 2).sum(),
            np.full(12, radius / 24),
            bounds=[(0, None)] * 12,
            constraints={"type": "ineq", "fun": lambda ab, radius=radius: radius - ab.sum()},
            method="SLSQP",
            options={"ftol": 1e-14, "maxiter": 500},
        ).x
        np.testing.assert_allclose(solved[:6] - solved[6:], found, atol=1e-5)
    assert math.isclose(np.abs(found).sum(), radius)
