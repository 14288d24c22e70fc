"""Confidence sequences hold simultaneously at all times, in bounded memory, however the stream is cut."""

import math
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankwise.errors import RankwiseError
from rankwise.guarantees.holdout.intervals import mean_interval
from rankwise.guarantees.holdout.sequences import ConfidenceSequence, confidence_sequence
from tests.strategies import at_length

METHODS = ("hoeffding", "empirical bernstein", "betting")
REPETITIONS = at_length(2_000, 4)

# name -> (true mean, a multiple of 1/20 for coarse grids; how to draw)
WORLDS = {
    "near 0": (0.05, lambda random, n: random.beta(0.5, 9.5, n)),
    "near 1": (0.95, lambda random, n: random.beta(9.5, 0.5, n)),
    "coins": (0.5, lambda random, n: (random.random(n) < 0.5).astype(float)),
    "rare": (0.05, lambda random, n: (random.random(n) < 0.05).astype(float)),
}


@pytest.mark.parametrize(
    "name", ["near 1", "coins", *(pytest.param(name, marks=pytest.mark.thorough) for name in ("near 0", "rare"))]
)
@pytest.mark.parametrize("method", METHODS)
def test_looking_after_every_query_misses_no_more_often_than_promised(name, method):
    mean, draw = WORLDS[name]
    random, delta, missed = np.random.default_rng(0), 0.2, 0
    for _ in range(REPETITIONS):
        low, high = confidence_sequence(draw(random, 200), delta, method=method, grid=20)
        # the grid rounds outwards: a true mean on it is refuted exactly when its capital says so
        missed += bool((low > mean + 1e-12).any() or (high < mean - 1e-12).any() or low[-1] > high[-1])
    assert missed / REPETITIONS <= delta + 3 * math.sqrt(delta * (1 - delta) / REPETITIONS)


def test_an_interval_for_one_moment_breaks_if_one_looks_all_the_time():
    """Why sequences are needed: Hoeffding's interval after every query, 1,000 times, misses far more than delta."""
    x = (np.random.default_rng(0).random((REPETITIONS, 1_000)) < 0.5).astype(float)
    place = np.arange(1, 1_001)
    means = np.add.accumulate(x, axis=1) / place
    ever = (np.abs(means - 0.5) > np.sqrt(math.log(2 / 0.3) / (2 * place))).any(axis=1)
    assert ever.mean() > 0.5


@pytest.mark.parametrize("method", METHODS)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=60), st.integers(0, 59), st.integers(0, 59))
def test_however_the_stream_is_cut_the_same_bits_come_out(method, values, first, second):
    cuts = sorted((first, second))
    whole, parts, single = (ConfidenceSequence(method=method, grid=50) for _ in range(3))
    low, high = whole.run(values)
    ends = [parts.run(values[begin:end]) for begin, end in ((0, cuts[0]), (cuts[0], cuts[1]), (cuts[1], None))]
    assert np.concatenate([one[0] for one in ends]).tolist() == low.tolist()
    assert np.concatenate([one[1] for one in ends]).tolist() == high.tolist()
    for value in values:
        single.update(value)
    for other in (parts, single):
        assert (other.low, other.high, other.n) == (whole.low, whole.high, whole.n)
        assert other.interval() == whole.interval()


@pytest.mark.parametrize("method", METHODS)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=60))
def test_ends_only_ever_come_closer(method, values):
    low, high = confidence_sequence(values, method=method, grid=50)
    assert len(low) == len(high) == len(values)
    assert (np.diff(low) >= 0).all()
    assert (np.diff(high) <= 0).all()
    assert low[0] >= 0
    assert high[0] <= 1


@pytest.mark.parametrize("method", METHODS)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=60))
def test_turning_values_around_turns_the_ends_around(method, values):
    x = np.array(values)
    low, high = confidence_sequence(x, method=method, grid=40)
    other_low, other_high = confidence_sequence(1 - x, method=method, grid=40)
    np.testing.assert_allclose(low, 1 - other_high, atol=1 / 40 if method == "betting" else 1e-9)
    np.testing.assert_allclose(high, 1 - other_low, atol=1 / 40 if method == "betting" else 1e-9)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=40), st.sampled_from([0.02, 0.3]))
def test_the_formulas_value_by_value(values, alpha):
    """As the authors write them, one value after the other."""
    wanted = math.log(1 / alpha)
    total = squares = 0.0
    mean, variance = 0.5, 0.25
    sums = {"hoeffding": [0.0, 0.0, 0.0], "empirical bernstein": [0.0, 0.0, 0.0]}
    best = dict.fromkeys(sums, 0.0)
    for t, x in enumerate(values, start=1):
        pace = t * math.log(t + 1)
        plain = min(1.0, math.sqrt(8 * wanted / pace))
        spread = min(0.5, math.sqrt(2 * wanted / (variance * pace)))
        psi = 4 * (x - mean) ** 2 * (-math.log(1 - spread) - spread) / 4
        for name, weight, cost in (("hoeffding", plain, plain**2 / 8), ("empirical bernstein", spread, psi)):
            sums[name] = [a + b for a, b in zip(sums[name], (weight * x, weight, cost), strict=True)]
            products, weights, costs = sums[name]
            best[name] = max(best[name], (products - wanted - costs) / weights)
        total += x
        mean = (0.5 + total) / (t + 1)
        squares += (x - mean) ** 2
        variance = (0.25 + squares) / (t + 1)
    for name, expected in best.items():
        sequence = ConfidenceSequence(alpha, method=name, ends="low")
        sequence.update(values)
        assert sequence.low == pytest.approx(expected, abs=1e-9)


def test_a_finer_grid_only_rounds_less():
    x = np.random.default_rng(0).beta(3, 2, 400)
    coarse, fine = (confidence_sequence(x, grid=grid) for grid in (50, 1_000))
    assert (fine[0] >= coarse[0]).all()
    assert (fine[1] <= coarse[1]).all()
    assert (fine[0] - coarse[0]).max() <= 1 / 50
    assert (coarse[1] - fine[1]).max() <= 1 / 50


def test_memory_does_not_grow_with_the_stream():
    for method in METHODS:
        sequence = ConfidenceSequence(method=method, grid=100)
        sequence.run(np.full(10, 0.5))
        before = len(pickle.dumps(sequence))
        sequence.run(np.random.default_rng(0).random(20_000))
        assert len(pickle.dumps(sequence)) <= before + 64


def test_a_sequence_goes_on_from_a_copy():
    x = np.random.default_rng(1).random(200)
    for method in METHODS:
        half, whole = ConfidenceSequence(method=method), ConfidenceSequence(method=method)
        half.update(x[:90])
        again = pickle.loads(pickle.dumps(half))
        again.update(x[90:])
        whole.update(x)
        assert again.interval() == whole.interval()


def test_holding_at_all_times_costs_some_width():
    x = np.random.default_rng(2).random(500)
    for method in ("hoeffding", "betting"):
        once = mean_interval(x, method=method)
        always = ConfidenceSequence(method=method)
        always.update(x)
        assert once.width < always.interval().width < 2 * once.width


def test_spread_is_learned_on_the_way():
    """Values that hardly differ: methods that look at the spread end far narrower."""
    x = 0.6 + 0.02 * np.random.default_rng(3).random(500)
    widths = {}
    for method in METHODS:
        sequence = ConfidenceSequence(method=method)
        sequence.update(x)
        widths[method] = sequence.interval().width
    assert widths["empirical bernstein"] < 0.4 * widths["hoeffding"]
    assert widths["betting"] < 0.4 * widths["hoeffding"]


def test_a_stream_that_drifts_ends_in_a_contradiction():
    for method in METHODS:
        sequence = ConfidenceSequence(method=method)
        sequence.update(np.repeat([0.1, 0.9], 1_000))
        assert sequence.interval().empty
        assert sequence.low > sequence.high


def test_an_interval_says_what_it_rests_on():
    sequence = ConfidenceSequence(0.1, span=(-1.0, 1.0), ends="low")
    sequence.update([0.5, math.nan, 0.7, 0.6] * 20)
    interval = sequence.interval("mean difference")
    assert interval.n == 60
    assert interval.mean == pytest.approx(0.6)
    assert interval.high == 1.0
    assert interval.low > 0.3
    assert "at all times" in interval.name
    assert interval.preconditions[-1].sentence == "it holds simultaneously at all times with probability 0.9"
    assert [bound.side for bound in interval.bounds()] == ["at least"]


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: ConfidenceSequence(0.0), "delta must be between 0 and 1, got 0.0"),
        (lambda: ConfidenceSequence(method="t"), "method must be one of"),
        (lambda: ConfidenceSequence(ends="left"), "ends must be one of"),
        (lambda: ConfidenceSequence(grid=0), "grid must be at least 1, got 0"),
        (lambda: ConfidenceSequence(span=(0.0, 0.0)), r"span must be \(smallest possible value"),
        (lambda: ConfidenceSequence().interval(), "requires at least one value, got none so far"),
        (lambda: ConfidenceSequence().update(1.5), "values must be between 0 and 1, got 1.5"),
        (lambda: confidence_sequence([[0.5]]), "one number per query"),
    ],
)
def test_what_cannot_be_is_refused_in_one_sentence(call, sentence):
    with pytest.raises(RankwiseError, match=sentence):
        call()


def test_a_refused_block_leaves_the_sequence_as_it_was():
    sequence = ConfidenceSequence()
    sequence.update([0.2, 0.4] * 30)
    before = sequence.interval()
    with pytest.raises(RankwiseError):
        sequence.update([0.5, 7.0])
    assert sequence.interval() == before
    sequence.update([])
    assert sequence.interval() == before
