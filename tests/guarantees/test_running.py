"""The interval of a running mean: its formula, and that it holds at all times while the mean drifts."""

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankwise.errors import DataError, RankwiseError
from rankwise.guarantees.holdout.sequences import RHO, ConfidenceSequence, RunningMean

VALUES = st.lists(st.one_of(st.floats(0, 1), st.just(math.nan)), max_size=40)


@given(values=VALUES, cut=st.integers(0, 40))
def test_no_division_into_calls_changes_a_bit(values, cut):
    whole, parts = RunningMean(), RunningMean()
    whole.update(values)
    parts.update(values[:cut])
    again = RunningMean(**parts.to_dict())
    again.update(values[cut:])
    assert (whole.n, whole.total, whole.low, whole.high) == (again.n, again.total, again.low, again.high)
    assert whole.n == sum(not math.isnan(one) for one in values)


@given(st.integers(1, 10**7), st.floats(1e-6, 0.5))
def test_the_radius_solves_the_equation_of_the_proof(n, delta):
    """At the end of the interval the mean of the supermartingales over lambda is 1/delta, computed by quadrature."""
    running = RunningMean(delta, n=n, total=0.5 * n)
    s, rho = running.radius * n, RHO
    # exp(lambda s - lambda^2 n/8) times the normal density of variance 1/rho, scaled by its largest value
    peak = s / (rho + n / 4)
    width = 1 / math.sqrt(rho + n / 4)
    steps = np.linspace(peak - 12 * width, peak + 12 * width, 20_001)
    exponent = steps * s - steps**2 * n / 8 - rho * steps**2 / 2 + 0.5 * math.log(rho / (2 * math.pi))
    top = exponent.max()
    value = top + math.log(np.trapezoid(np.exp(exponent - top), steps))
    assert value == pytest.approx(math.log(1 / delta), rel=1e-6, abs=1e-6)


def coverage(draw, runs, length, delta, seed=0):
    """The share of runs in which the mean of the expectations is ever outside of the interval."""
    random, failed = np.random.default_rng(seed), 0
    n = np.arange(1, length + 1)
    radius = np.array([RunningMean(delta, n=int(one), total=0.0).radius for one in n])
    for _ in range(runs):
        x, mu = draw(random, length)
        failed += bool((np.abs(np.cumsum(x - mu)) / n > radius).any())
    return failed / runs


def coins_that_drift(random, length):
    mu = 0.5 + 0.45 * np.sin(np.arange(length) / 37.0)
    return (random.random(length) < mu).astype(float), mu


def coins_that_answer_the_past(random, length):
    """The next mean depends on the values so far: what a learner does."""
    x, mu, total = np.empty(length), np.empty(length), 0.0
    for i in range(length):
        mu[i] = 0.9 if total <= 0.5 * i else 0.1
        x[i] = random.random() < mu[i]
        total += x[i]
    return x, mu


@pytest.mark.parametrize("draw", [coins_that_drift, coins_that_answer_the_past])
def test_it_holds_at_all_times_while_the_mean_changes(draw):
    delta, runs = 0.2, 300
    # 300 runs at probability 0.2 exceed 86 failures once in a thousand times
    assert coverage(draw, runs, 400, delta) <= 86 / 300


@pytest.mark.thorough
@pytest.mark.parametrize("draw", [coins_that_drift, coins_that_answer_the_past])
def test_it_holds_for_long_streams(draw):
    assert coverage(draw, 1_000, 5_000, 0.05) <= 0.072


def test_what_is_outside_of_the_span_is_refused():
    running = RunningMean(span=(-1.0, 1.0))
    running.update([-1.0, 1.0, math.nan])
    assert (running.n, running.mean, running.low, running.high) == (2, 0.0, -1.0, 1.0)
    with pytest.raises(DataError, match="between -1 and 1, got 3"):
        running.update([3.0])
    with pytest.raises(RankwiseError, match="span"):
        RunningMean(span=(1.0, 1.0))
    assert math.isnan(RunningMean().mean)


@given(values=st.lists(st.floats(-2, 2), max_size=30), cut=st.integers(0, 30))
def test_a_sequence_is_stored_and_continued_to_the_bit(values, cut):
    whole, first = ConfidenceSequence(span=(-2.0, 2.0), grid=50), ConfidenceSequence(span=(-2.0, 2.0), grid=50)
    whole.update(values)
    first.update(values[:cut])
    again = ConfidenceSequence.from_dict(json.loads(json.dumps(first.to_dict())))
    again.update(values[cut:])
    assert again.to_dict() == whole.to_dict()
    assert (again.low, again.high) == (whole.low, whole.high)


def test_only_a_sequence_by_betting_is_stored():
    with pytest.raises(RankwiseError, match="method='betting' can be stored, got 'hoeffding'"):
        ConfidenceSequence(method="hoeffding").to_dict()


def test_t11_a_running_mean_says_which_values_it_is_about():
    assert "over the values given, in their order; at all times" in repr(RunningMean())
    assert "judged" in RunningMean.scope.population
    assert "judgment is complete" in RunningMean.scope.unit
