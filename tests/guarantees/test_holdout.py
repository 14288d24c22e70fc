"""Intervals from a hold-out hold the true mean as often as they say, whatever the values; others are refused."""

import math
import pickle
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankwise._errors import RankwiseError
from rankwise.guarantees.holdout import betting
from rankwise.guarantees.holdout.intervals import difference_interval, mean_interval

METHODS = ("hoeffding", "empirical bernstein", "betting")
REPETITIONS = 2_000
# name -> (true mean, how to draw): measures near 0, near 1, in between, and with lumps at both ends
WORLDS = {
    "near 0": (1 / 21, lambda random, shape: random.beta(0.5, 10, shape)),
    "near 1": (20 / 21, lambda random, shape: random.beta(10, 0.5, shape)),
    "even": (1 / 2, lambda random, shape: random.random(shape)),
    "narrow": (0.6, lambda random, shape: 0.55 + 0.1 * random.random(shape)),
    "rare": (0.02, lambda random, shape: (random.random(shape) < 0.02).astype(float)),
    "lumps": (
        0.3 * 1.0 + 0.3 * 0.5,
        lambda random, shape: np.select(
            [random.random(shape) < 0.3, random.random(shape) < 4 / 7], [1.0, 0.0], random.random(shape)
        ),
    ),
}


def allowed(delta, repetitions=REPETITIONS):
    return delta + 3 * math.sqrt(delta * (1 - delta) / repetitions)


def values_strategy(least=1, most=40):
    steps = st.sampled_from([0.0, 0.1, 0.25, 0.5, 0.9, 1.0])
    return st.lists(steps | st.floats(0, 1), min_size=least, max_size=most)


# ------------------------------------------------------------------------------------------ coverage


def refuted(x, mean, alpha):
    """Rows of values that refute the true mean from below: whose capital against it reaches its limit on the way."""
    wealth = betting.log_wealth(x, betting.bets(x, alpha), np.full(len(x), mean))
    return wealth >= math.log(1 / alpha)


SHAPES = [
    *((name, n) for name in WORLDS for n in (5, 20, 100)),
    ("rare", 500),
    *(pytest.param(name, 500, marks=pytest.mark.thorough) for name in WORLDS if name != "rare"),
]


@pytest.mark.parametrize(("name", "n"), SHAPES)
def test_the_betting_interval_misses_no_more_often_than_it_says(name, n):
    mean, draw = WORLDS[name]
    x = draw(np.random.default_rng(n), (REPETITIONS, n))
    for delta in (0.05, 0.2, 0.6):
        below, above = refuted(x, mean, delta / 2), refuted(1 - x, 1 - mean, delta / 2)
        assert below.mean() <= allowed(delta / 2)
        assert above.mean() <= allowed(delta / 2)
        assert (below | above).mean() <= allowed(delta)
        assert refuted(x, mean, delta).mean() <= allowed(delta)  # one end alone
    # what is refuted is what the interval leaves out
    assert np.array_equal(below[:20], betting.lower_end(x[:20], 0.3) >= mean)


@pytest.mark.parametrize("name", WORLDS)
@pytest.mark.parametrize("n", [2, 5, 30, 200])
def test_the_other_intervals_miss_no_more_often_than_they_say(name, n):
    mean, draw = WORLDS[name]
    x = draw(np.random.default_rng(n), (REPETITIONS, n))
    means, variances = x.mean(axis=1), x.var(axis=1, ddof=1)
    for delta, ends in ((0.05, "both"), (0.3, "both"), (0.2, "low"), (0.2, "high")):
        sides = 2 if ends == "both" else 1
        plain = np.full(REPETITIONS, math.sqrt(math.log(sides / delta) / (2 * n)))
        L = math.log((sides + 1) / delta)
        spread = np.sqrt(2 * variances * L / n) + 7 * L / (3 * (n - 1))
        for method, reach in (("hoeffding", plain), ("empirical bernstein", spread)):
            low, high = np.maximum(0, means - reach), np.minimum(1, means + reach)
            missed = ((mean < low) & (ends != "high")) | ((mean > high) & (ends != "low"))
            assert missed.mean() <= allowed(delta)
            for row in range(3):
                found = mean_interval(x[row], delta, method=method, ends=ends)
                assert found.low == pytest.approx(low[row] if ends != "high" else 0.0, abs=1e-12)
                assert found.high == pytest.approx(high[row] if ends != "low" else 1.0, abs=1e-12)


@pytest.mark.parametrize("n", [5, 20, 100, 500])
@pytest.mark.parametrize("chance", [0.01, 0.1, 0.5, 0.9, 0.99])
@pytest.mark.parametrize("method", ["hoeffding", "empirical bernstein"])
def test_exact_coverage_on_coins(n, chance, method):
    """Over all numbers of successes: no chance is left to chance."""
    missed = 0.0
    for successes in range(n + 1):
        interval = mean_interval([1.0] * successes + [0.0] * (n - successes), 0.1, method=method)
        if chance not in interval:
            missed += math.comb(n, successes) * chance**successes * (1 - chance) ** (n - successes)
    assert missed <= 0.1


@pytest.mark.parametrize("n", [5, 8, 12])
@pytest.mark.parametrize("chance", [0.05, 0.5, 0.8])
@pytest.mark.parametrize("alpha", [0.05, 0.3])
def test_exact_coverage_of_betting_over_every_order_of_coins(n, chance, alpha):
    """All 2^n sequences, weighted by how likely each is."""
    x = ((np.arange(2**n)[:, None] >> np.arange(n)) & 1).astype(float)
    ones = x.sum(axis=1)
    weight = chance**ones * (1 - chance) ** (n - ones)
    assert weight.sum() == pytest.approx(1)
    wrong = betting.lower_end(x, alpha) > chance
    assert weight[wrong].sum() <= alpha


def test_a_bet_that_saw_its_own_value_would_cheat():
    """The trial above can fail: bets that know the value in advance refute the true mean too often."""
    n, chance, alpha = 12, 0.5, 0.3
    x = ((np.arange(2**n)[:, None] >> np.arange(n)) & 1).astype(float)
    seen = np.where(x > chance, betting.bets(x, alpha), 0.0)
    wealth = betting.log_wealth(x, seen, np.full(len(x), chance))
    assert (wealth >= math.log(1 / alpha)).mean() > alpha


@pytest.mark.parametrize("n", [10, 60])
def test_the_difference_of_two_rankers(n):
    """Both depend on how hard the query is; the first is better by 0.05 on average."""
    random = np.random.default_rng(n)
    hard, noise = random.beta(2, 2, (REPETITIONS, n)), random.choice([0.0, 0.1], (2, REPETITIONS, n))
    first, second = 0.85 * hard + 0.05 + noise[0], 0.85 * hard + noise[1]
    scaled = (first - second + 1) / 2
    for delta in (0.05, 0.4):
        missed = refuted(scaled, 0.525, delta / 2) | refuted(1 - scaled, 0.475, delta / 2)
        assert missed.mean() <= allowed(delta)
    for method in METHODS:
        found = [difference_interval(*pair, 0.2, method=method) for pair in zip(first[:60], second[:60], strict=True)]
        assert np.mean([0.05 not in one for one in found]) <= allowed(0.2, 60)
        assert found[0].span == (-1.0, 1.0)


# ------------------------------------------------------------------------------------------ betting


@given(values_strategy(), st.sampled_from([0.001, 0.05, 0.5]))
def test_the_end_is_where_capital_reaches_its_limit(values, alpha):
    x = np.array(values)
    sizes, low = betting.bets(x, alpha), betting.lower_end(x, alpha)
    wanted = math.log(1 / alpha)
    if low > 0:
        assert betting.log_wealth(x, sizes, np.asarray(low)) >= wanted
    assert betting.log_wealth(x, sizes, np.asarray(low + 2 * betting.ACCURACY)) < wanted
    assert 0 <= low < 1


@given(values_strategy(), st.sampled_from([0.01, 0.3]))
def test_capital_falls_as_the_mean_that_is_bet_against_grows(values, alpha):
    x = np.array(values)
    sizes = betting.bets(x, alpha)
    wealth = [float(betting.log_wealth(x, sizes, np.asarray(m))) for m in np.linspace(0, 1, 51)]
    assert (np.diff(wealth) <= 1e-12).all()
    assert wealth[-1] <= 0


@given(values_strategy(most=25), st.sampled_from([0.01, 0.3]))
def test_capital_is_what_a_gambler_would_count(values, alpha):
    """Value by value, as the authors write it, with the variance kept by hand."""
    m, n, capital, best = 0.37, len(values), 1.0, -math.inf
    total, squares, variance = 0.0, 0.0, 0.25
    for i, x in enumerate(values, start=1):
        size = math.sqrt(2 * math.log(1 / alpha) / (n * variance))
        capital *= 1 + min(size, betting.SHARE / m) * (x - m)
        best = max(best, capital)
        total += x
        squares += (x - (0.5 + total) / (i + 1)) ** 2
        variance = (0.25 + squares) / (i + 1)
    x = np.array(values)
    assert betting.log_wealth(x, betting.bets(x, alpha), np.asarray(m)) == pytest.approx(math.log(best), abs=1e-9)


def test_the_order_of_the_values_moves_the_ends_a_little_and_the_seed_fixes_it():
    values = np.random.default_rng(0).beta(2, 3, 106)
    found = [mean_interval(values, random_state=seed) for seed in range(20)]
    widths = np.array([one.width for one in found])
    assert len({one.low for one in found}) > 10
    assert widths.max() < 1.5 * widths.min()
    assert mean_interval(values, random_state=3) == found[3]
    assert mean_interval(values, random_state=np.random.default_rng(3)) == found[3]


def test_on_sorted_values_the_ends_cross():
    """First only 0, then only 1: the first half refutes all large means, the second all small ones."""
    x = np.repeat([0.0, 1.0], 100)
    low, high = float(betting.lower_end(x, 0.025)), 1 - float(betting.lower_end(1 - x, 0.025))
    assert low > high
    interval = mean_interval(x)  # in a random order they do not
    assert not interval.empty
    assert 0.5 in interval
    crossed = mean_interval(x, random_state=_Unshuffled())
    assert crossed.empty
    assert crossed.width == 0
    assert 0.5 not in crossed
    assert "EMPTY" in repr(crossed)


class _Unshuffled(np.random.Generator):
    """A generator whose random order is the order as it is."""

    def __init__(self):
        super().__init__(np.random.PCG64(0))

    def permutation(self, x):
        return x


def test_where_the_betting_interval_is_the_wider_one_and_where_it_is_far_narrower():
    """Hoeffding's inequality is at its best on even coins; near 0 or 1 betting is far ahead."""
    random = np.random.default_rng(0)
    shares = {}
    for n, chance in ((10, 0.5), (200, 0.5), (200, 0.95)):
        hoeffding = 2 * math.sqrt(math.log(40) / (2 * n))
        x = (random.random((500, n)) < chance).astype(float)
        width = 1 - betting.lower_end(1 - x, 0.025) - betting.lower_end(x, 0.025)
        shares[n, chance] = np.mean(width) / hoeffding
    assert shares[200, 0.5] > 0.8
    assert shares[200, 0.95] < 0.5


# ------------------------------------------------------------------------------------------ the interval as a value


@given(values_strategy(), st.sampled_from(METHODS), st.floats(0.01, 0.9))
def test_ends_stay_in_the_span_and_one_end_alone_is_tighter(values, method, delta):
    both = mean_interval(values, delta, method=method)
    low, high = (mean_interval(values, delta, method=method, ends=ends) for ends in ("low", "high"))
    assert both.low >= 0
    assert both.high <= 1
    assert both.mean == pytest.approx(sum(values) / len(values))
    assert (low.high, high.low) == (1.0, 0.0)
    if method != "betting":  # a bet made for another level may end elsewhere
        assert low.low >= both.low - 1e-12
        assert high.high <= both.high + 1e-12
        assert mean_interval(values, delta / 2, method=method).width >= both.width


@given(values_strategy(), st.sampled_from(METHODS), st.sampled_from([(-1.0, 1.0), (0.0, 10.0), (-3.0, -2.0)]))
def test_an_interval_moves_and_stretches_with_its_span(values, method, span):
    unit = mean_interval(values, method=method)
    start, width = span[0], span[1] - span[0]
    moved = mean_interval(start + width * np.array(values), method=method, span=span)
    assert moved.low == pytest.approx(start + width * unit.low, abs=1e-6 * width)
    assert moved.high == pytest.approx(start + width * unit.high, abs=1e-6 * width)


@given(values_strategy(least=2), st.sampled_from(METHODS))
def test_swapping_the_rankers_turns_the_interval_around(values, method):
    a, b = np.array(values), np.array(values[::-1])
    one, other = (difference_interval(*pair, method=method) for pair in ((a, b), (b, a)))
    assert one.low == pytest.approx(-other.high, abs=1e-6)
    assert one.high == pytest.approx(-other.low, abs=1e-6)


def test_ends_of_formulas_at_numbers_that_can_be_checked_by_hand():
    values = [0.2, 0.4, 0.6, 0.8] * 25
    hoeffding = mean_interval(values, 0.1, method="hoeffding")
    assert hoeffding.high == pytest.approx(0.5 + math.sqrt(math.log(20) / 200))
    assert mean_interval(values, 0.1, method="hoeffding", ends="high").high == pytest.approx(
        0.5 + math.sqrt(math.log(10) / 200)
    )
    V = float(Fraction(5, 100) * Fraction(100, 99))
    for ends, events in (("both", 3), ("low", 2)):
        L = math.log(events / 0.1)
        interval = mean_interval(values, 0.1, method="empirical bernstein", ends=ends)
        assert interval.low == pytest.approx(0.5 - math.sqrt(2 * V * L / 100) - 7 * L / (3 * 99))
        assert interval.terms["V"] == pytest.approx(V)


def test_a_perfect_ranker_is_not_certified_to_be_perfect():
    for method in METHODS:
        interval = mean_interval([1.0] * 50, method=method)
        assert 0.7 < interval.low < 1
        assert interval.high == 1
    assert mean_interval([1.0] * 50).low > mean_interval([1.0] * 50, method="hoeffding").low


def test_one_query_says_hardly_anything():
    for method in METHODS:
        interval = mean_interval([0.3], method=method)
        assert interval.vacuous
        assert "vacuous" in repr(interval)


def test_an_interval_gives_its_ends_as_bounds():
    low, high = mean_interval([0.4, 0.6] * 50, of="mean nDCG@10").bounds()
    assert (low.side, high.side) == ("at least", "at most")
    assert low.kind == high.kind == "hold-out"
    assert low.allows(low.value + 0.1)
    assert not low.allows(low.value - 0.1)
    assert "mean nDCG@10 >= " in repr(low)
    assert low.applies is None  # that the queries are unseen only the caller knows
    assert low.to_dict()["side"] == "at least"
    only = mean_interval([0.4, 0.6] * 50, ends="low").bounds()
    assert [bound.side for bound in only] == ["at least"]
    trivial = mean_interval([0.4], ends="low").bounds()[0]
    assert trivial.vacuous


def test_an_interval_is_plain_data():
    interval = mean_interval([0.4, 0.6] * 50)
    assert pickle.loads(pickle.dumps(interval)) == interval
    assert interval.to_dict()["n"] == 100
    with pytest.raises(TypeError):
        interval.terms["alpha"] = 1.0


# ------------------------------------------------------------------------------------------ what is left out or refused


@pytest.mark.parametrize("method", METHODS)
def test_skipped_queries_and_those_of_weight_0_are_left_out(method):
    values = [0.2, 0.9, 0.4, 0.7]
    expected = mean_interval(values, method=method)
    assert mean_interval([0.2, math.nan, 0.9, 0.4, math.nan, 0.7], method=method) == expected
    assert mean_interval([0.2, 0.9, 1.0, 0.4, 0.7], weight=[3, 3, 0, 3, 3], method=method) == expected


def test_rounding_does_not_make_a_value_impossible():
    assert mean_interval([1 + 1e-12, -1e-12]).n == 2


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: mean_interval([0.5, 1.5]), "values are between 0 and 1: found 1.5"),
        (lambda: mean_interval([math.inf]), "values are between 0 and 1: found inf"),
        (lambda: mean_interval([]), "needs the value of one query or more: found none"),
        (lambda: mean_interval([math.nan]), "needs the value of one query or more: found none"),
        (lambda: mean_interval([[0.5]]), r"one number per query: found shape \(1, 1\)"),
        (lambda: mean_interval([0.5], delta=1.0), "delta is between 0 and 1: found 1.0"),
        (
            lambda: mean_interval([0.5], method="t"),
            "method is one of hoeffding, empirical bernstein, betting: found 't'",
        ),
        (lambda: mean_interval([0.5], ends="left"), "ends is one of both, low, high: found 'left'"),
        (
            lambda: mean_interval([0.5], span=(1.0, 0.0)),
            r"the smallest and the largest value possible: found \(1.0, 0.0\)",
        ),
        (lambda: mean_interval([0.5, 0.5], weight=[1, 2]), "queries that count equally: found weights 1 to 2"),
        (lambda: mean_interval([0.5, 0.5], weight=[1]), r"one per query, \(2,\) in all: found shape \(1,\)"),
        (lambda: difference_interval([0.5], [0.5, 0.5]), r"for both rankers: found shapes \(1,\) and \(2,\)"),
        (lambda: difference_interval([1.5], [0.9]), "values are between 0 and 1: found 1.5"),
    ],
)
def test_what_cannot_be_is_refused_in_one_sentence(call, sentence):
    with pytest.raises(RankwiseError, match=sentence):
        call()
