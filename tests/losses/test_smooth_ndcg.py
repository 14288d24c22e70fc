"""Smoothed measures: golden values, limits in sigma, and the constants that are proven for them."""

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from rankwise._errors import RankwiseError
from rankwise.losses.smooth_ndcg import SmoothDCG1, SmoothNDCG, SmoothPrecision, SmoothRR
from rankwise.measures import NDCG, RR, P
from tests.oracles.losses import plain
from tests.strategies import grades, judged_lists, tied_scores

S2, R2 = [0.3, 0.1, 0.9, 0.5, -0.2], [2, 0, 1, 0, 3]
GOLDEN = {
    1.0: (
        0.6159420771591759,
        [-0.017625627140153567, -0.10751712697235294, -0.033199840195803285, -0.04527557258221436, 0.20361816689052412],
    ),
    0.1: (
        0.5421085266408681,
        [0.1183856787287638, -0.08088343112051449, 0.07317129687143448, -0.0872620973251104, -0.023411447154573273],
    ),
}
widths = st.sampled_from([2.0**-4, 0.3, 1.0, 8.0])
every_kind = pytest.mark.parametrize(
    "kind",
    [
        lambda sigma: SmoothNDCG(sigma=sigma),
        lambda sigma: SmoothNDCG(k=2, sigma=sigma),
        lambda sigma: SmoothPrecision(k=3, sigma=sigma),
        lambda sigma: SmoothRR(sigma=sigma),
        lambda sigma: SmoothDCG1(sigma=sigma),
    ],
    ids=["NDCG", "NDCG@2", "P@3", "RR", "DCG@1"],
)


@st.composite
def lists_without_ties(draw, least_gap=0.05):
    size = draw(st.integers(2, 8))
    gaps = draw(st.lists(st.floats(least_gap, 2.0), min_size=size, max_size=size))
    scores = np.array(draw(st.permutations(np.cumsum(gaps).tolist())))
    labels = draw(st.lists(grades, min_size=size, max_size=size))
    assume(len({min(label, 1) for label in labels}) == 2)
    return scores, np.array(labels, dtype=float)


@pytest.mark.parametrize("sigma", GOLDEN)
def test_golden_values(sigma):
    value, gradient = SmoothNDCG(sigma=sigma)(S2, R2)
    assert 1 - value == pytest.approx(GOLDEN[sigma][0], rel=1e-14)
    np.testing.assert_allclose(-gradient, GOLDEN[sigma][1], rtol=1e-12)
    assert SmoothNDCG(sigma=sigma).measure_value(S2, R2) == 1 - value


@every_kind
@given(lists_without_ties(), widths)
def test_the_gradient_is_the_slope_away_from_ties(kind, judged, sigma):
    loss, (s, labels), step = kind(sigma), judged, 1e-5
    gradient = loss(s, labels)[1]
    for i in range(len(s)):
        move = np.eye(len(s))[i] * step
        slope = (loss(s + move, labels)[0] - loss(s - move, labels)[0]) / (2 * step)
        assert gradient[i] == pytest.approx(slope, abs=3e-8 * (1 + sigma**-1.5))


@given(judged_lists(min_size=2, max_size=9), st.sampled_from([None, 1, 3]))
def test_a_narrow_kernel_gives_the_measure_with_expected_ties(judged, k):
    labels = np.array(judged[1])
    assume(labels.max() > labels.min())
    scores = np.round(judged[0])  # distinct scores at least 1 apart
    measured = NDCG(cutoff=k)(scores, labels, ties="expected")
    assert SmoothNDCG(k=k, sigma=1e-3).measure_value(scores, labels) == pytest.approx(measured, abs=1e-12)
    assume((labels > 0).any() and (labels == 0).any())
    precision = P(cutoff=k or len(labels))(scores, labels, ties="expected")
    smoothed = SmoothPrecision(k=k or len(labels), sigma=1e-3).measure_value(scores, labels)
    assert smoothed == pytest.approx(precision, abs=1e-12)


@given(lists_without_ties(least_gap=0.5))
def test_a_narrow_kernel_gives_the_reciprocal_rank_and_the_gain_of_the_first(judged):
    s, labels = judged
    assert SmoothRR(sigma=1e-3).measure_value(s, labels) == pytest.approx(RR()(s, labels), abs=1e-12)
    first = NDCG(cutoff=1)(s, labels)
    assert SmoothDCG1(sigma=1e-2).measure_value(s, labels) == pytest.approx(first, abs=1e-12)


@given(lists_without_ties(), st.sampled_from([None, 1, 3]))
def test_a_wide_kernel_forgets_the_order(judged, k):
    s, labels = judged
    gain, discount = 2**labels - 1, 1 / np.log2(np.arange(len(s))[:k] + 2)
    ideal = np.sort(gain)[::-1][: len(discount)] @ discount
    expected = gain.mean() * discount.sum() / ideal
    assert SmoothNDCG(k=k, sigma=1e12).measure_value(s, labels) == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize("loss", [SmoothNDCG(), SmoothNDCG(k=2, sigma=0.1), SmoothPrecision(k=2), SmoothRR()], ids=repr)
@pytest.mark.parametrize("size", [2, 9, 700])
def test_constant_scores_are_stationary(loss, size):
    gradient = loss(np.full(size, 0.37), np.arange(size) % 4)[1]
    np.testing.assert_array_equal(gradient, np.zeros(size))


def test_a_soft_ndcg_can_exceed_one():
    assert SmoothNDCG().measure_value([1.912, 1.501, 0.127], [2, 2, 0]) == pytest.approx(1.0068, abs=5e-5)
    assert SmoothNDCG()([1.912, 1.501, 0.127], [2, 2, 0])[0] < 0


@given(lists_without_ties(least_gap=0.3), widths, st.sampled_from([None, 1, 3]))
def test_the_smoothing_error_is_bounded_by_the_smallest_gap(judged, sigma, k):
    s, labels = judged
    gain, discount = 2**labels - 1, 1 / np.log2(np.arange(len(s))[:k] + 2)
    weights = discount / (np.sort(gain)[::-1][: len(discount)] @ discount)
    mu = np.diff(np.sort(s)).min() ** 2
    series = 2 * sum(math.exp(-(t**2) * mu / sigma) for t in range(1, 200))
    spill = min((len(s) - 1) * math.exp(-mu / sigma), series)
    error = abs(SmoothNDCG(k=k, sigma=sigma).measure_value(s, labels) - NDCG(cutoff=k)(s, labels))
    assert error <= gain.max() * weights.sum() * spill / (1 + spill) + 1e-12


def test_equal_distances_come_close_to_the_second_moment_bound():
    """One document at f_j and m - 1 at distance x: sum_p q_p x_p^2 = sigma W((m-1)/e) at the best x."""
    from scipy.optimize import minimize_scalar
    from scipy.special import lambertw

    m, sigma = 30, 0.7
    moment = minimize_scalar(
        lambda x: -(m - 1) * x * x * math.exp(-x * x / sigma) / (1 + (m - 1) * math.exp(-x * x / sigma)),
        bounds=(0, 5),
        method="bounded",
    )
    assert -moment.fun == pytest.approx(sigma * lambertw((m - 1) / math.e).real, rel=1e-6)
    # and the constant is made of it: every other factor of the bound is 1 for one position
    assert SmoothNDCG(k=1, sigma=sigma).lipschitz_l1(m) == pytest.approx(2 * math.sqrt(-moment.fun) / sigma, rel=1e-6)


@given(st.lists(st.tuples(st.one_of(tied_scores, st.floats(-3, 3)), grades), min_size=2, max_size=40), widths)
def test_no_gradient_is_longer_than_the_proven_constant(rows, sigma):
    s, labels = np.array(rows, dtype=float).T
    for k in (None, 1, 5):
        loss = SmoothNDCG(k=k, sigma=sigma)
        assert np.abs(loss(s, labels)[1]).sum() <= loss.lipschitz_l1(len(s)) * (1 + 1e-12)


@pytest.mark.parametrize("sigma", [2.0**-10, 2.0**-6, 1.0, 2.0**6, 2.0**10])
@pytest.mark.parametrize("size", [30, 120, 250, 700])
def test_lists_of_every_length_equal_the_definition(size, sigma):
    rng = np.random.default_rng(size)
    labels = np.clip(rng.geometric(0.5, size) - 1, 0, 4).astype(float)
    kinds = [SmoothNDCG(sigma=sigma), SmoothNDCG(k=10, sigma=sigma), SmoothPrecision(k=60, sigma=sigma)]
    for scores in (rng.normal(size=size), np.round(rng.normal(size=size) * 30)):
        for loss in (*kinds, SmoothRR(sigma=sigma)):
            (value, gradient), (expected, expected_gradient) = loss(scores, labels), plain(loss, scores, labels)
            assert value == pytest.approx(expected, abs=1e-11)
            # the gradient may be what is left of larger parts that cancel, in the definition's own arithmetic too
            tolerance = 1e-10 * np.abs(expected_gradient).max() + 1e-15 / math.sqrt(sigma)
            np.testing.assert_allclose(gradient, expected_gradient, rtol=0, atol=tolerance)


def test_the_steepest_softmax_is_attained():
    loss = SmoothDCG1(sigma=0.5)
    assert np.abs(loss([0.0, 0.0], [1, 0])[1]).sum() == loss.lipschitz_l1(2) == 1.0


@pytest.mark.parametrize(
    "make",
    [
        lambda: SmoothNDCG(sigma=0.0),
        lambda: SmoothRR(sigma=math.inf),
        lambda: SmoothDCG1(sigma=math.nan),
        lambda: SmoothNDCG(k=0),
        lambda: SmoothPrecision(k=0),
    ],
)
def test_parameters_without_a_meaning_are_refused(make):
    with pytest.raises(RankwiseError, match="found"):
        make()
