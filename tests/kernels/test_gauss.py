"""Soft ranks by transforms and by rows equal their definition, for any width, spread and length."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankwise._kernels.gauss import gauss_means, gauss_slopes, reach, row_means, row_slopes, transforms, windows
from tests.strategies import THOROUGH

SIGMAS = [2.0**power for power in (-10, -6, -3, 0, 3, 6, 10)]


def by_definition(f, gain, weight, sigma):
    """(mean gain of every position, derivatives of their weighted sum), position by position."""
    mean, slope = np.zeros(len(weight)), np.zeros(len(f))
    for j, w in enumerate(weight):
        x = f - f[j]
        h = np.exp(-(x**2) / sigma)
        h /= h.sum()
        mean[j] = h @ gain
        t = (2 / sigma) * w * h * x * (gain - mean[j])
        slope -= t
        slope[j] += t.sum()
    return mean, slope


def by_transforms(f, gain, weight, sigma):
    total, mean, own = np.empty((3, len(weight)))
    slope = np.zeros(len(f))
    far = reach(f, gain, len(weight), sigma)
    gauss_means(f, gain, sigma, far, total, mean, own)
    gauss_slopes(f, gain, weight, sigma, far, total, mean, own, slope)
    return mean, slope


def by_rows(f, gain, weight, sigma):
    total, mean = np.empty((2, len(f)))
    stop, slope = np.empty(len(weight), np.int64), np.zeros(len(f))
    pairs = np.empty(windows(f, reach(f, gain, len(weight), sigma), stop))
    row_means(f, gain, sigma, stop, pairs, total, mean)
    row_slopes(f, gain, weight, sigma, stop, pairs, total, mean, slope)
    return mean[: len(weight)], slope


both_ways = pytest.mark.parametrize("way", [by_transforms, by_rows])


def check(way, s, gain, sigma, positions=None):
    order = np.argsort(-s, kind="stable")
    f, gain = s[order], gain[order]
    weight = 1 / np.log2(np.arange(len(f) if positions is None else positions) + 2)
    mean, slope = way(f, gain, weight, sigma)
    expected_mean, expected_slope = by_definition(f, gain, weight, sigma)
    assert np.abs(mean - expected_mean).max() <= 1e-11 * gain.max()
    # what rounding alone makes of gains that are equal as far as a position sees
    noise = 1e-15 * gain.max() * weight.sum() / math.sqrt(sigma)
    assert np.abs(slope - expected_slope).max() <= 1e-10 * np.abs(expected_slope).max() + noise


def shapes(rng, size, spread):
    """Scores as they come: smooth, tied, in clumps far apart, with outliers, in heaps of equal ones."""
    clumps = rng.integers(0, 4, size) * spread + rng.normal(size=size) * spread * 1e-5
    outliers = rng.normal(size=size) * spread
    outliers[: size // 50 + 1] *= 50
    return {
        "normal": rng.normal(size=size) * spread,
        "even": np.linspace(-spread, spread, size),
        "tied": np.round(rng.normal(size=size), 1) * spread,
        "clumps": clumps,
        "outliers": outliers,
        "off center": rng.normal(size=size) * spread + 1e3 * spread,
        "heaps": rng.integers(0, 3, size) * spread,
    }


@both_ways
@pytest.mark.parametrize("sigma", SIGMAS)
@pytest.mark.parametrize("size", [1, 2, 7, 60, 400] if THOROUGH else [1, 7, 400])
def test_every_way_equals_the_definition(way, sigma, size):
    rng = np.random.default_rng(size)
    gain = 2.0 ** rng.integers(0, 5, size) - 1
    gain[0] = 1.0
    for spread in (1e-6, 1e-2, 1.0, 30.0, 1e3, 1e6):
        for s in shapes(rng, size, spread).values():
            check(way, s, gain, sigma)


@pytest.mark.parametrize("spread", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("sigma", [2.0**-10, 1.0, 2.0**10])
def test_long_lists_at_every_position(sigma, spread):
    rng = np.random.default_rng(4)
    gain, weight = 2.0 ** rng.integers(0, 5, 4_000) - 1, 1 / np.log2(np.arange(4_000) + 2)
    for shape in ("normal", "tied"):
        f = np.sort(shapes(rng, 4_000, spread)[shape])[::-1].copy()
        mean, slope = by_transforms(f, gain, weight, sigma)
        expected_mean, expected_slope = by_definition(f, gain, weight, sigma)
        np.testing.assert_allclose(mean, expected_mean, rtol=0, atol=1e-10 * gain.max())
        most = np.abs(expected_slope).max()
        np.testing.assert_allclose(slope, expected_slope, rtol=0, atol=1e-10 * most + 1e-300)


@both_ways
def test_the_narrowest_kernel_sees_ties_alone(way):
    f, gain = np.array([2.0, 1.0, 1.0, 0.5]), np.array([3.0, 1.0, 0.0, 7.0])
    mean, slope = way(f, gain, np.ones(4), np.finfo(float).smallest_normal)
    np.testing.assert_array_equal(mean, [3.0, 0.5, 0.5, 7.0])
    np.testing.assert_array_equal(slope, 0.0)


@both_ways
@pytest.mark.parametrize("positions", [1, 3, 50, 299])
def test_a_cut_off_counts_its_positions_alone(way, positions):
    rng = np.random.default_rng(positions)
    gain = 2.0 ** rng.integers(0, 5, 300) - 1
    for sigma in SIGMAS:
        for s in shapes(rng, 300, 1.0).values():
            check(way, s, gain, sigma, positions)


@both_ways
def test_gradients_that_are_tiny_everywhere_keep_their_digits(way):
    """Scores far apart in units of sqrt(sigma): the neighbors' exp(-gap^2 / sigma) is all that there is."""
    rng = np.random.default_rng(8)
    gain = np.arange(200) % 2.0
    for gap in (3.0, 7.0, 12.0, 20.0):
        f = -np.arange(200.0) * gap - rng.uniform(0, 0.2, 200)
        weight = 1 / np.log2(np.arange(200) + 2)  # under equal weights the two positions of a pair would cancel
        expected = by_definition(f, gain, weight, 1.0)[1]
        assert 0 < np.abs(expected).max() < 0.01
        slope = way(f, gain, weight, 1.0)[1]
        np.testing.assert_allclose(slope, expected, rtol=0, atol=1e-10 * np.abs(expected).max())


@given(
    st.lists(st.tuples(st.floats(-10, 10), st.integers(0, 3)), min_size=1, max_size=40),
    st.sampled_from(SIGMAS),
    st.sampled_from([1e-6, 1.0, 1e5]),
)
def test_any_list(rows, sigma, spread):
    s, labels = np.array(rows, dtype=float).T
    for way in (by_transforms, by_rows):
        check(way, s * spread, 2.0**labels, sigma)


@pytest.mark.parametrize("sigma", SIGMAS)
def test_transforms_are_the_sums_and_first_moments(sigma):
    rng = np.random.default_rng(1)
    f = np.sort(rng.normal(size=500))[::-1].copy()
    w0, w1 = rng.uniform(size=(2, 400))
    sums = np.zeros((4, 350))
    transforms(f, sigma, 40 * sigma, w0, w1, 350, sums)
    x = f[None, :400] - f[:350, None]
    e = np.exp(-(x**2) / sigma)
    expected = [e @ w0, 2 / sigma * (e * x) @ w0, e @ w1, 2 / sigma * (e * x) @ w1]
    for found, sum_ in zip(sums, expected, strict=True):
        np.testing.assert_allclose(found, sum_, atol=1e-13 * np.abs(sum_).max())
