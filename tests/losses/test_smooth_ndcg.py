"""Smoothed measures: their limits, what their soft indicators are not, and the constants that are proven for them."""

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from rankwise.errors import RankwiseError
from rankwise.losses.smooth_ndcg import SmoothDCG1, SmoothNDCG, SmoothPrecision, SmoothRR
from rankwise.measures import NDCG, RR, P
from tests.losses.lists import on_lists
from tests.losses.search import highest
from tests.oracles.losses import plain
from tests.oracles.losses_smooth import smooth_ndcg_with_more_digits, soft_indicators
from tests.strategies import grades, judged_lists, tied_scores

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


@given(lists_without_ties(), widths, st.sampled_from([None, 1, 3]))
def test_the_gain_is_the_sum_over_positions_of_soft_indicators_that_sum_to_one(judged, sigma, k):
    s, labels = judged
    gain, discount = 2**labels - 1, 1 / np.log2(np.arange(len(s))[:k] + 2)
    h = soft_indicators(s, sigma)[:, : len(discount)]
    np.testing.assert_allclose(h.sum(axis=0), 1)
    expected = gain @ h @ discount / (np.sort(gain)[::-1][: len(discount)] @ discount)
    assert SmoothNDCG(k=k, sigma=sigma).measure_value(s, labels) == pytest.approx(expected, abs=1e-12)


def test_the_soft_positions_of_a_document_do_not_sum_to_one():
    shares = soft_indicators(np.array([1.912, 1.501, 0.127]), 1.0).sum(axis=1)
    assert shares.sum() == pytest.approx(3)
    assert shares[1] > 1.07  # the one in the middle is a little at each position
    assert shares[2] < 0.94


@pytest.mark.parametrize("loss", [SmoothNDCG(), SmoothNDCG(k=2, sigma=0.1)], ids=repr)
@pytest.mark.parametrize("m", [2, 4, 8])
def test_the_gain_lies_between_0_and_the_largest_gain_at_every_position(loss, m):
    """No list of its own leaves 0 <= A <= G_max sum_j D_j / Z, which the declared range takes over all lists."""

    def most(labels):
        gain, discount = 2**labels - 1, 1 / np.log2(np.arange(m)[: loss.k] + 2)
        ideal = -np.sort(-gain, axis=1)[:, : len(discount)] @ discount
        return gain.max(axis=1) * discount.sum() / np.where(ideal > 0, ideal, 1)

    def gain(scores, labels):
        degenerate = labels.max(axis=1) == labels.min(axis=1)  # nothing to rank: A is 1 by convention
        return np.where(degenerate, 0, 1 - on_lists(loss, scores, labels)[0])

    assert highest(lambda s, y: gain(s, y) - most(y), m)[0] <= 1e-12
    assert highest(lambda s, y: -gain(s, y), m)[0] <= 1e-12


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


@pytest.mark.parametrize("sigma", [0.2, 1.0, 30.0])
@pytest.mark.parametrize("b", [0.5, 2.0])
def test_no_soft_indicator_changes_faster_than_4b_over_sigma(sigma, b):
    """On scores in [-b, b]; twice that is in print."""
    m, step = 4, 1e-6

    def fastest(scores, _):
        slopes = [
            (soft_indicators(scores + step * e, sigma) - soft_indicators(scores - step * e, sigma)) / (2 * step)
            for e in np.eye(m)
        ]
        return np.abs(slopes).max(axis=(0, 2, 3))

    found = highest(fastest, m, box=b, rounds=100)[0]
    assert 0.02 * 4 * b / sigma < found <= 4 * b / sigma + 1e-8


@pytest.mark.parametrize("sigma", [0.2, 1.0, 30.0])
@pytest.mark.parametrize("m", [2, 5])
def test_the_printed_euclidean_constant_holds_and_is_loose(m, sigma):
    b, loss = 1.5, SmoothNDCG(sigma=sigma)
    longest = highest(lambda s, y: np.linalg.norm(on_lists(loss, s, y)[1], axis=1), m, box=b)[0]
    assert longest <= 8 * b * m**1.5 / sigma / 10


def test_a_tie_is_a_kink_in_a_list_of_three_and_none_in_a_list_of_two():
    step = 1e-6

    def slopes(scores, labels):
        middle = SmoothNDCG()(scores, labels)[0]
        first = step * np.eye(len(scores))[0]
        left, right = (SmoothNDCG()(np.array(scores) + side * first, labels)[0] for side in (-1, 1))
        return (middle - left) / step, (right - middle) / step

    left, right = slopes([0.0, 0.0, -1.0], [0, 0, 1])
    assert right > left + 0.09
    left, right = slopes([0.0, 0.0], [0, 1])
    assert right == pytest.approx(left, abs=1e-5)


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


def assert_ten_digits(loss, scores, labels):
    """Of the largest component of the gradient; where equal gains should cancel, up to their rounding."""
    value, gradient = loss(scores, labels)
    expected, slope, parts = smooth_ndcg_with_more_digits(loss, scores, labels)
    assert value == pytest.approx(expected, abs=1e-12)
    assert np.abs(gradient - slope).max() <= 1e-10 * np.abs(slope).max() + 2**-51 * parts + 1e-300


def test_equal_gains_cancel_exactly_where_all_others_are_far_away():
    rng = np.random.default_rng(40)
    labels = np.append([0, 3], np.clip(rng.geometric(0.5, 38) - 1, 0, 4))
    _, gradient = SmoothNDCG(sigma=2.0**-10)(1e3 * rng.normal(size=40), labels)
    assert np.abs(gradient).max() <= 1e-300


def judged(size, rng):
    return np.append([0.0, 3.0], np.clip(rng.geometric(0.5, size - 2) - 1, 0, 4))


@pytest.mark.parametrize("spread", [1e-6, 1e-3, 1.0, 1e3, 1e6])
@pytest.mark.parametrize("size", [2, 40, 300])
def test_ten_digits_are_right_for_every_width_and_spread(size, spread):
    rng = np.random.default_rng(size)
    labels, scores = judged(size, rng), rng.normal(size=size)
    for sigma in 2.0 ** np.arange(-10, 11, 4):
        for k in (None, 10):
            assert_ten_digits(SmoothNDCG(sigma=sigma, k=k), spread * scores, labels)
            assert_ten_digits(SmoothNDCG(sigma=sigma, k=k), spread * np.round(3 * scores), labels)  # ties


@pytest.mark.thorough
@pytest.mark.parametrize("sigma", [2.0**-10, 2.0**-6, 1.0, 2.0**6, 2.0**10])
@pytest.mark.parametrize("spread", [1e-6, 1.0, 1e6])
def test_ten_digits_are_right_in_long_lists(spread, sigma):
    rng = np.random.default_rng(4)
    labels, scores = judged(4_000, rng), np.round(rng.normal(size=4_000), 4)  # some ties
    assert_ten_digits(SmoothNDCG(sigma=sigma), spread * scores, labels)


@pytest.mark.parametrize("sigma", [0.5, 2.0])
@pytest.mark.parametrize("grade", [1, 3])
def test_the_steepest_softmax_is_attained_and_a_quarter_of_what_is_in_print(sigma, grade):
    """DCG@1, of which the loss is 1 - a share, has G1 = G_max / (2 sigma), at two documents with even chances."""
    loss, gain = SmoothDCG1(sigma=sigma), 2**grade - 1
    steepness = gain * np.abs(loss([0.0, 0.0], [grade, 0])[1]).sum()
    assert steepness == pytest.approx(gain / (2 * sigma)) == gain * loss.lipschitz_l1(2)
    in_print = 2 * gain / sigma
    for m in (2, 5):
        found = highest(lambda s, y: np.abs(on_lists(loss, s, np.minimum(y, grade))[1]).sum(axis=1), m)[0]
        assert gain * found == pytest.approx(in_print / 4, rel=0.01)
        assert gain * found <= in_print / 4 + 1e-12


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: SmoothNDCG(sigma=0.0), "'sigma'.* must be a float .*Got 0.0"),
        (lambda: SmoothRR(sigma=math.inf), "'sigma'.* must be a float .*Got inf"),
        (lambda: SmoothDCG1(sigma=math.nan), "'sigma'.* must be a float .*Got nan"),
        (lambda: SmoothNDCG(k=0), "'k'.* must be an int .*Got 0"),
        (lambda: SmoothPrecision(k=0), "'k'.* must be an int .*Got 0"),
    ],
)
def test_parameters_without_a_meaning_are_refused(make, sentence):
    with pytest.raises(RankwiseError, match=sentence):
        make()
