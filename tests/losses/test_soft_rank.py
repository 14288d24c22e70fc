"""NDCG of noisy scores: expected ranks and expected discounts, against simulation, enumeration and quadrature."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankwise.errors import RankwiseError
from rankwise.losses.soft_rank import SoftRank, SoftRankNDCG
from rankwise.measures import NDCG
from tests.oracles.losses import plain
from tests.oracles.losses_soft import normal_cdf, outranked, rank_distribution

NOISES = ("sigmoid", "gaussian")
ALL = [*(SoftRankNDCG(noise=noise) for noise in NOISES), SoftRank(), SoftRank(k=2)]
all_soft = pytest.mark.parametrize("loss", ALL, ids=repr)


def with_sigma(loss, sigma):
    return type(loss)(**{**vars(loss), "sigma": sigma})


@st.composite
def graded_lists(draw, max_size=7, ties=False):
    """(scores, labels): gaps of at least 1/4 unless ties are asked for, and at least two different labels."""
    size = draw(st.integers(2, max_size))
    places = draw(st.lists(st.integers(-12, 12), min_size=size, max_size=size, unique=not ties))
    labels = draw(st.lists(st.integers(0, 3), min_size=size, max_size=size))
    if len(set(labels)) == 1:
        labels[0] = 3 - labels[0]
    return np.array(places) / 4, np.array(labels, dtype=float)


def rank_seen_through(loss_kind, m, **parameters):
    """A function (scores, i) -> expected rank: the linear discount m + 1 - rank shows it, one gain at a time."""
    loss = loss_kind(gain=(0, 1), discount=tuple(range(m, 0, -1)), **parameters)

    def rank(scores, i):
        return m + 1 - m * loss.measure_value(scores, np.arange(m) == i)

    return rank


def expected_ndcg_under_noise(scores, labels, sigma):
    """Given the noise of i the comparisons are independent: one integral a document, by Gauss and Hermite."""
    gain, m = 2.0**labels - 1, len(scores)
    discount = 1 / np.log2(np.arange(m) + 2)
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    total = 0.0
    for i in range(m):
        for z, weight in zip(nodes, weights / weights.sum(), strict=True):
            above = [normal_cdf((scores[j] - scores[i]) / sigma - z) for j in range(m) if j != i]
            total += weight * gain[i] * float(rank_distribution(above) @ discount)
    return total / float(np.sort(gain)[::-1] @ discount)


@all_soft
@given(graded_lists(ties=True), st.sampled_from([0.3, 1.0, 5.0]))
def test_the_gradient_is_the_slope(loss, judged, sigma):
    scores, labels = judged
    loss, step = with_sigma(loss, sigma), 1e-5
    for i, unit in enumerate(np.eye(len(scores))):
        slope = (loss(scores + step * unit, labels)[0] - loss(scores - step * unit, labels)[0]) / (2 * step)
        assert loss(scores, labels)[1][i] == pytest.approx(slope, abs=1e-8)


@all_soft
@given(graded_lists())
def test_without_ties_it_tends_to_ndcg(loss, judged):
    hard = NDCG(cutoff=getattr(loss, "k", None))
    assert with_sigma(loss, 1e-3).measure_value(*judged) == pytest.approx(hard(*judged), abs=1e-9)


@all_soft
@given(graded_lists(ties=True), st.sampled_from([0.25, 3.0]))
def test_scores_and_sigma_scale_together(loss, judged, factor):
    scores, labels = judged
    value, gradient = loss(scores, labels)
    scaled, scaled_gradient = with_sigma(loss, factor)(factor * scores, labels)
    assert scaled == pytest.approx(value, abs=1e-12)
    np.testing.assert_allclose(scaled_gradient * factor, gradient, atol=1e-12)


@given(graded_lists())
def test_very_soft_ranks_are_all_in_the_middle(judged):
    scores, labels = judged
    m, gain = len(labels), 2.0**labels - 1
    discount = 1 / np.log2(np.arange(m) + 2)
    ideal = np.sort(gain)[::-1] @ discount
    middle = gain.sum() / np.log2(1 + (m + 1) / 2) / ideal
    for noise in NOISES:
        assert SoftRankNDCG(sigma=1e9, noise=noise).measure_value(scores, labels) == pytest.approx(middle, abs=1e-7)
    coins = np.array([math.comb(m - 1, p) for p in range(m)]) / 2 ** (m - 1)
    assert SoftRank(sigma=1e9).measure_value(scores, labels) == pytest.approx(
        gain.sum() * (coins @ discount) / ideal, abs=1e-7
    )


@pytest.mark.parametrize("sigma", [0.5, 1.0])
def test_noise_of_sigma_on_every_score_needs_sqrt_2_sigma_in_the_normal_distribution(sigma):
    """Two scores differ with variance 2 sigma^2; with Phi of standard deviation sigma the ranks come out wrong."""
    scores, m, draws = np.array([0.9, 0.3, 0.1, -0.2, -1.0]), 5, 200_000
    noisy = scores + sigma * np.random.default_rng(7).normal(size=(draws, m))
    ranks = 1 + (noisy[:, None, :] > noisy[:, :, None]).sum(axis=2)
    rank = rank_seen_through(SoftRankNDCG, m, noise="gaussian", sigma=sigma)
    as_printed = rank_seen_through(SoftRankNDCG, m, noise="gaussian", sigma=sigma / math.sqrt(2))
    error = ranks.std(axis=0) / math.sqrt(draws)
    for i in range(m):
        assert abs(rank(scores, i) - ranks[:, i].mean()) < 5 * error[i]
    assert abs(as_printed(scores, 0) - ranks[:, 0].mean()) > 20 * error[0]
    assert abs(as_printed(scores, 4) - ranks[:, 4].mean()) > 20 * error[4]


def test_the_sigmoid_ranks_are_those_of_gumbel_noise():
    scores, m, draws = np.array([0.9, 0.3, 0.1, -0.2]), 4, 100_000
    noisy = scores + 0.6 * np.random.default_rng(8).gumbel(size=(draws, m))
    ranks = 1 + (noisy[:, None, :] > noisy[:, :, None]).sum(axis=2)
    rank = rank_seen_through(SoftRankNDCG, m, sigma=0.6)
    for i in range(m):
        assert abs(rank(scores, i) - ranks[:, i].mean()) < 5 * ranks[:, i].std() / math.sqrt(draws)


@given(graded_lists(ties=True))
def test_both_gaussian_forms_have_the_same_mean_rank(judged):
    scores, _ = judged
    m = len(scores)
    expected, drawn = (
        rank_seen_through(SoftRankNDCG, m, noise="gaussian"),
        rank_seen_through(SoftRank, m),
    )
    for i in range(m):
        assert drawn(scores, i) == pytest.approx(expected(scores, i), abs=1e-12)
    assert sum(drawn(scores, i) for i in range(m)) == pytest.approx(m * (m + 1) / 2)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=6))
def test_the_dynamic_programme_counts_every_outcome(above):
    counted = np.zeros(len(above) + 1)
    for outcome in itertools.product((0, 1), repeat=len(above)):
        counted[sum(outcome)] += math.prod(p if up else 1 - p for p, up in zip(above, outcome, strict=True))
    np.testing.assert_allclose(rank_distribution(above), counted, atol=1e-14)


@pytest.mark.parametrize("k", [None, 2])
def test_soft_rank_is_the_mean_over_independent_comparisons(k):
    scores, labels, draws = np.array([0.9, 0.3, 0.1, -0.2]), np.array([0.0, 2.0, 1.0, 3.0]), 100_000
    above, _ = outranked(scores, 0.8, "gaussian")
    rng = np.random.default_rng(9)
    ranks = 1 + (rng.random((draws, 4, 4)) < above).sum(axis=2)
    discount = np.where(ranks <= (k or 4), 1 / np.log2(1 + ranks), 0)
    gain, best = 2**labels - 1, np.where(np.arange(4) < (k or 4), 1 / np.log2(np.arange(4) + 2), 0)
    drawn = discount @ gain / (np.sort(gain)[::-1] @ best)
    expected = SoftRank(sigma=0.8, k=k).measure_value(scores, labels)
    assert abs(drawn.mean() - expected) < 5 * drawn.std() / math.sqrt(draws)


def test_the_ranks_of_three_equal_scores_are_not_uniform_in_soft_rank():
    """Under the noise they are; comparisons that share no noise give (1/4, 1/2, 1/4). For two scores both agree."""
    for position, share in enumerate((1 / 4, 1 / 2, 1 / 4)):
        shown = tuple(float(p <= position) for p in range(3))  # the discount that counts the first positions
        seen = SoftRank(gain=(0, 1), discount=shown).measure_value([0, 0, 0], [0, 1, 0])
        before = 0.25 if position == 1 else 0.75 if position == 2 else 0.0
        assert seen == pytest.approx(before + share)
    scores, labels = np.array([0.4, -0.3]), np.array([0.0, 2.0])
    assert SoftRank(sigma=0.7).measure_value(scores, labels) == pytest.approx(
        expected_ndcg_under_noise(scores, labels, 0.7), abs=1e-9
    )


def test_the_integral_is_the_expected_ndcg_under_noise():
    scores, labels, draws = np.array([0.9, 0.3, 0.1, -0.2]), np.array([0.0, 2.0, 1.0, 3.0]), 100_000
    noisy = scores + np.random.default_rng(10).normal(size=(draws, 4))
    ranks = 1 + (noisy[:, None, :] > noisy[:, :, None]).sum(axis=2)
    gain, best = 2**labels - 1, 1 / np.log2(np.arange(4) + 2)
    drawn = (1 / np.log2(1 + ranks)) @ gain / (np.sort(gain)[::-1] @ best)
    assert abs(drawn.mean() - expected_ndcg_under_noise(scores, labels, 1.0)) < 5 * drawn.std() / math.sqrt(draws)


@given(graded_lists(max_size=5, ties=True), st.sampled_from([0.5, 1.0, 3.0]))
def test_soft_rank_never_exceeds_the_expected_ndcg_under_noise(judged, sigma):
    scores, labels = judged
    expected = expected_ndcg_under_noise(scores, labels, sigma)
    assert SoftRank(sigma=sigma).measure_value(scores, labels) <= expected + 1e-5  # the integral's own accuracy
    assert expected <= 1 + 1e-12


@given(graded_lists(ties=True), st.sampled_from([0.2, 1.0]))
def test_a_convex_discount_keeps_soft_ndcg_below_one(judged, sigma):
    for loss in (*(SoftRankNDCG(sigma=sigma, noise=noise) for noise in NOISES), SoftRank(sigma=sigma)):
        assert loss.nonnegative
        assert 0 <= loss(*judged)[0] <= loss.range(9, len(judged[0]))[1] + 1e-12


def test_another_discount_lets_it_exceed_one():
    equal = np.zeros(3)
    letor = SoftRankNDCG(discount="letor")  # all ranks are 2, where nothing is discounted yet
    assert letor.measure_value(equal, [3, 3, 2]) == pytest.approx(17 / (14 + 3 / math.log2(3)))
    assert SoftRank(k=2).measure_value(equal, [3, 3, 3 - 1e-9]) > 1.03
    assert not letor.nonnegative
    assert not SoftRank(k=2).nonnegative


def test_no_search_finds_a_steeper_list_than_declared():
    rng = np.random.default_rng(4)
    tables = {"discount": "letor"}, {"discount": (1, 1, 0.2)}, {}
    losses = [SoftRankNDCG(noise=noise, **table) for noise in NOISES for table in tables]
    losses += [SoftRank(k=k, **table) for k in (None, 1, 3) for table in tables]
    steepest = dict.fromkeys(losses, 0.0)  # as a share of what is declared
    for _ in range(150):
        m = int(rng.choice([2, 3, 6, 25]))
        labels = np.append(rng.choice([1, 4]), rng.integers(0, 2, m - 1) * rng.integers(0, 2, m - 1))
        scores = np.append(0.0, rng.normal(size=m - 1) * 0.3 - rng.choice([0.0, 1.0, 2.0]))
        for loss in losses:
            steepness, declared = np.abs(loss(scores, labels)[1]).sum(), loss.lipschitz_l1(m)
            assert steepness <= declared
            steepest[loss] = max(steepest[loss], steepness / declared if declared else 0.0)
    assert min(steepest.values()) > 0.02  # none of the constants is out of all proportion


def test_the_numbers_that_the_steepness_of_soft_ranks_rests_on():
    x = np.concatenate([np.linspace(0, 10, 100_001), np.geomspace(10, 1e6, 1_000)])
    assert 0.3733 < (x / ((2 + x) * np.log(2 + x))).max() < 0.3734
    assert ((1 + x) / ((2 + x) * np.log(2 + x))).max() == pytest.approx(1 / (2 * math.log(2)))
    p = np.arange(1, 10_000)
    here, after = 1 / np.log2(p + 1), 1 / np.log2(p + 2)
    assert (p * (here - after) / after).max() == pytest.approx(math.log2(3) - 1)


@pytest.mark.parametrize("loss", [*ALL, SoftRankNDCG(discount=(3, 1, 0.5)), SoftRank(discount="letor", k=10)], ids=repr)
@pytest.mark.parametrize("m", [9, 40])
def test_long_lists_equal_the_plain_definition(loss, m):
    rng = np.random.default_rng(m)
    scores, labels = np.round(rng.normal(size=m), 1), rng.integers(0, 4, m).astype(float)
    value, gradient = loss(scores, labels)
    expected, expected_gradient = plain(loss, scores, labels)
    assert value == pytest.approx(expected, rel=1e-12)
    assert expected_gradient is not None
    np.testing.assert_allclose(gradient, expected_gradient, atol=1e-12)


@pytest.mark.parametrize("kind", [SoftRankNDCG, SoftRank])
def test_where_no_order_is_better_there_is_no_loss(kind):
    scores = np.linspace(-1, 2, 50)
    labels = np.arange(50) % 4
    value, gradient = kind(gain=(1, 1, 1, 1))(scores, labels)
    assert value == 0
    np.testing.assert_array_equal(gradient, np.zeros(50))
    value, gradient = kind(discount=(1.0,) * 50)(scores, labels)  # every position is worth the same
    assert value == pytest.approx(0, abs=1e-13)
    np.testing.assert_allclose(gradient, np.zeros(50), atol=1e-13)


def test_many_documents_and_far_scores_lose_no_probability():
    m = 300
    scores = np.random.default_rng(5).normal(size=m) * np.geomspace(1e-3, 1e3, m)
    rank, expected = rank_seen_through(SoftRank, m), rank_seen_through(SoftRankNDCG, m, noise="gaussian")
    for i in (0, 150, 299):
        assert rank(scores, i) == pytest.approx(expected(scores, i), rel=1e-11)


@pytest.mark.parametrize(
    ("kind", "wrong"),
    [
        (SoftRankNDCG, {"noise": "white"}),
        (SoftRankNDCG, {"sigma": 0}),
        (SoftRank, {"sigma": np.inf}),
        (SoftRank, {"k": 0}),
    ],
)
def test_what_makes_no_sense_is_refused(kind, wrong):
    with pytest.raises(RankwiseError, match=f"The '{next(iter(wrong))}' parameter of {kind.__name__} must be"):
        kind(**wrong)
