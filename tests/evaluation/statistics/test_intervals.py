"""Intervals of the mean over queries cover what they promise and do not care how the queries are ordered."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.stats
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from rankwise.errors import DataError, RankwiseError
from rankwise.evaluation.statistics.intervals import caution, interval, mean, resample_means

measured = st.one_of(st.sampled_from([0.0, 0.5, 1.0, math.nan, -0.0]), st.floats(0, 1))
per_query = hnp.arrays(np.float64, st.integers(0, 20), elements=measured)
weights_of = st.floats(0.125, 8)


@st.composite
def shuffled_queries(draw):
    """Values and weights of some queries, and the same in another order."""
    values = draw(per_query)
    weight = draw(st.none() | hnp.arrays(np.float64, len(values), elements=weights_of))
    order = np.array(draw(st.permutations(range(len(values)))), dtype=int)
    return values, weight, values[order], None if weight is None else weight[order]


@settings(max_examples=60)
@given(shuffled_queries(), st.sampled_from(["bootstrap", "t"]))
def test_no_order_of_queries_changes_a_bit(queries, how):
    values, weight, shuffled, its_weight = queries
    options = {"how": how, "resamples": 200}
    assert repr(interval(values, weight=weight, **options)) == repr(interval(shuffled, weight=its_weight, **options))
    assert repr(mean(values, weight)) == repr(mean(shuffled, its_weight))


@settings(max_examples=60)
@given(per_query)
@example(np.array([0.0, 0.0, 0.1]))  # (0.1 + 0.1 + 0.1) / 3 is above 0.1 when rounded
def test_a_bootstrap_interval_stays_within_the_values(values):
    low, high = interval(values, resamples=200)
    counted = values[~np.isnan(values)]
    if len(counted) < 2:
        assert math.isnan(low)
        assert math.isnan(high)
    else:
        assert counted.min() <= low <= high <= counted.max()


@given(per_query)
def test_skipped_queries_do_not_count(values):
    counted = values[~np.isnan(values)]
    for how in ("bootstrap", "t"):
        with_gaps, without = (interval(v, how=how, resamples=50) for v in (values, counted))
        assert repr(with_gaps) == repr(without)
    assert repr(mean(values)) == repr(mean(counted))


def test_the_mean_is_an_exactly_rounded_sum():
    assert mean([1e16, 1.0, -1e16, 1.0]) == 0.5
    assert mean([1.0, 3.0], [3.0, 1.0]) == 1.5
    assert math.isnan(mean([]))
    assert math.isnan(mean([math.nan]))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("weighted", [False, True])
def test_bootstrap_is_the_bca_interval_of_scipy_on_the_same_draws(seed, weighted):
    random = np.random.default_rng(seed)
    values = np.sort(random.beta(0.7, 2, size=25))
    weight = random.uniform(0.1, 3, size=25) if weighted else np.ones(25)
    order = np.lexsort((weight, values))
    drawn = resample_means(values[order], weight[order], 1_000, np.random.default_rng(0))

    def weighted_mean(v, w, axis):
        return (v * w).sum(axis=axis) / w.sum(axis=axis)

    theirs = scipy.stats.bootstrap(
        (values, weight),
        weighted_mean,
        paired=True,
        n_resamples=0,
        confidence_level=0.9,
        method="BCa",
        bootstrap_result=SimpleNamespace(bootstrap_distribution=drawn),
    ).confidence_interval
    ours = interval(values, 0.9, weight=weight if weighted else None, resamples=1_000)
    assert ours == pytest.approx((theirs.low, theirs.high), rel=1e-12)


def test_resampling_draws_queries_together_with_their_weights():
    values, weight = np.array([0.0, 1.0]), np.array([1.0, 3.0])
    drawn = resample_means(values, weight, 4_000, np.random.default_rng(0))
    found, count = np.unique(drawn, return_counts=True)
    assert found.tolist() == [0.0, 0.75, 1.0]
    assert count / 4_000 == pytest.approx([0.25, 0.5, 0.25], abs=0.03)


def test_many_queries_are_resampled_in_blocks_as_if_at_once():
    values = np.linspace(0, 1, 5_000)
    whole = np.random.default_rng(3).integers(0, 5_000, size=(100, 5_000))
    drawn = resample_means(values, np.ones(5_000), 100, np.random.default_rng(3))
    assert drawn == pytest.approx(values[whole].mean(axis=1), rel=1e-13)


@pytest.mark.parametrize("level", [0.5, 0.95, 0.999])
def test_t_is_the_textbook_interval(level):
    values = np.random.default_rng(1).random(17)
    theirs = scipy.stats.ttest_1samp(values, 0).confidence_interval(level)
    assert interval(values, level, "t") == pytest.approx(tuple(theirs), rel=1e-12)
    assert interval(values, level, "t", weight=np.full(17, 3.0)) == pytest.approx(tuple(theirs), rel=1e-12)


def test_the_weighted_t_interval_is_as_wide_as_the_weighted_mean_varies():
    random = np.random.default_rng(5)
    n, repeats = 200, 4_000
    weight = random.exponential(size=(repeats, n))
    values = random.beta(2, 3, size=(repeats, n))
    means = (weight * values).sum(axis=1) / weight.sum(axis=1)
    widths = [
        np.subtract(*interval(v, 0.95, "t", weight=w)[::-1]) for v, w in zip(values[:300], weight[:300], strict=True)
    ]
    reach = scipy.stats.t.ppf(0.975, n - 1)
    assert np.mean(widths) / (2 * reach) == pytest.approx(means.std(), rel=0.04)


@pytest.mark.parametrize("how", ["bootstrap", "t"])
def test_degenerate_samples_have_stated_intervals(how):
    assert interval([0.3, 0.3, 0.3], how=how) == (0.3, 0.3)
    assert interval([0.3, math.nan, 0.3], how=how, weight=[1, 5, 2]) == (0.3, 0.3)
    for few in ([], [0.3], [0.3, math.nan]):
        assert all(math.isnan(bound) for bound in interval(few, how=how))


@pytest.mark.parametrize("how", ["bootstrap", "t"])
def test_a_query_of_weight_zero_is_as_good_as_absent(how):
    assert interval([0.1, 0.9, 0.4, 0.7], how=how, weight=[1, 0, 2, 3]) == interval(
        [0.1, 0.4, 0.7], how=how, weight=[1, 2, 3]
    )


def test_where_bca_is_not_defined_the_percentile_interval_is_given():
    values = np.array([0.1, 0.2, 0.4, 0.9])
    one_sided = 0
    for seed in range(40):
        drawn = resample_means(values, np.ones(4), 3, np.random.default_rng(seed))
        if drawn.min() > values.mean() or drawn.max() < values.mean():  # an infinite correction of the bias
            one_sided += 1
            assert interval(values, 0.9, resamples=3, random_state=seed) == tuple(np.quantile(drawn, [0.05, 0.95]))
    assert one_sided > 3


@pytest.mark.parametrize("how", ["bootstrap", "t"])
@pytest.mark.parametrize("size", [1e-300, 1e-110, 1e150])
def test_the_size_of_the_values_does_not_matter(how, size):
    values = np.array([0.1, 0.2, 0.4, 0.9])
    usual = interval(values, how=how)
    assert np.array(interval(values * size, how=how)) / size == pytest.approx(usual, rel=1e-12)


def test_the_same_seed_gives_the_same_bits_and_another_seed_others():
    values = np.random.default_rng(0).random(30)
    assert interval(values, random_state=7) == interval(values, random_state=np.random.default_rng(7))
    assert interval(values, random_state=7) != interval(values, random_state=8)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"level": 95}, r"'level' parameter of interval must be a float in \(0, 1\). Got 95"),
        ({"how": "jackknife"}, "'how' parameter of interval must be 'bootstrap' or 't'. Got 'jackknife'"),
        ({"resamples": 0}, r"'resamples' parameter of interval must be an int in \[1, inf\)"),
        ({"weight": [1.0]}, "one number (a|per) query"),
        ({"weight": [-1.0, 1.0]}, "query weights must be 0 or between .*, got -1.0 at query 0"),
    ],
)
def test_wrong_arguments_are_refused_in_a_sentence(arguments, sentence):
    with pytest.raises(RankwiseError, match=sentence):
        interval([0.1, 0.2], **arguments)


def test_values_without_a_mean_are_refused():
    with pytest.raises(DataError, match="inf at query 1"):
        interval([0.1, math.inf])
    with pytest.raises(DataError, match="one number per query"):
        interval([[0.1, 0.2]])


def coverage(draw, truth, n, how, repeats, resamples=1_000):
    """How often the truth is above, in and below a 95 % interval."""
    bounds = np.array([interval(draw(n), how=how, resamples=resamples, random_state=i) for i in range(repeats)])
    above, below = np.mean(truth > bounds[:, 1]), np.mean(truth < bounds[:, 0])
    return above, 1 - above - below, below


@pytest.mark.parametrize("how", ["bootstrap", "t"])
def test_a_95_percent_interval_covers_the_true_mean_in_about_95_percent(how):
    random = np.random.default_rng(11)
    _, covered, _ = coverage(lambda n: random.beta(1, 4, size=n), 0.2, 50, how, repeats=400)
    assert 0.91 <= covered <= 0.98  # 0.94 plus and minus three standard errors of 400 repeats


@pytest.mark.thorough
@pytest.mark.parametrize("how", ["bootstrap", "t"])
@pytest.mark.parametrize("kind", ["average precision", "reciprocal rank", "many zeros"])
def test_coverage_on_values_as_skewed_as_measures(kind, how):
    random = np.random.default_rng(13)
    ranks = np.arange(1, 400)
    draw, truth = {
        "average precision": (lambda n: random.beta(1, 4, size=n), 0.2),
        "reciprocal rank": (lambda n: 1 / random.geometric(0.35, size=n), np.sum(0.35 * 0.65 ** (ranks - 1) / ranks)),
        "many zeros": (lambda n: (random.random(n) < 0.7) * random.beta(2, 3, size=n), 0.7 * 0.4),
    }[kind]
    for n, least in ((20, 0.90), (50, 0.925), (200, 0.935)):
        above, covered, below = coverage(draw, truth, n, how, repeats=4_000, resamples=2_000)
        assert least <= covered <= 0.97
        if how == "bootstrap" and n >= 50:  # errs about equally often on either side
            assert max(above, below) <= 2.5 * min(above, below)


def test_few_queries_get_a_caution():
    assert caution(30) == ""
    assert caution(29).startswith("intervals over 29 queries are approximate and often too narrow")
