"""How many queries: enough are enough, one fewer is not, and labels say how far the number can be trusted."""

import math
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from rankwise.errors import RankwiseError
from rankwise.guarantees.holdout.intervals import (
    difference_interval,
    first,
    mean_interval,
    paired_power,
    queries_needed,
)


def by_method(**asked):
    return {plan.method: plan for plan in queries_needed(**asked)}


def test_labels():
    plans = by_method(half_width=0.05, sd=0.25)
    assert {name: plan.trust for name, plan in plans.items()} == {
        "Hoeffding": "certain",
        "empirical Bernstein": "if guessed right",
        "normal": "approximation",
    }
    assert [plan.trust for plan in queries_needed(difference=0.02, sd=0.1)] == ["approximation"] * 2
    assert list(by_method(half_width=0.05)) == ["Hoeffding"]
    assert "certain" in str(plans["Hoeffding"])


@given(st.floats(0.02, 0.5), st.sampled_from([0.01, 0.05, 0.3]))
def test_hoeffdings_number_gives_the_interval_and_one_fewer_does_not(half_width, delta):
    n = by_method(half_width=half_width, delta=delta)["Hoeffding"].queries
    reach = [math.sqrt(math.log(2 / delta) / (2 * each)) for each in (n, n - 1) if each]
    assert reach[0] <= half_width * (1 + 1e-12)
    assert len(reach) == 1 or reach[1] > half_width * (1 - 1e-12)


@given(st.floats(0.05, 0.3), st.floats(0.05, 0.4), st.sampled_from([0.01, 0.1]))
def test_bernsteins_number_gives_the_interval_where_the_guess_is_right(half_width, sd, delta):
    n = by_method(half_width=half_width, sd=sd, delta=delta)["empirical Bernstein"].queries
    for queries, enough in ((n, True), (n - 1, False)):
        # values with exactly this sample variance, however many they are
        away = sd * math.sqrt((queries - 1) / (queries - queries % 2))
        x = np.full(queries, 0.5)
        half = queries // 2
        x[:half] -= away
        x[half : 2 * half] += away
        if x.min() < 0 or queries < 4:
            continue
        reach = mean_interval(x, delta, method="empirical bernstein").terms["reach"]
        assert (reach <= half_width * (1 + 1e-9)) is enough


def test_textbook_numbers():
    assert by_method(half_width=0.05, sd=0.5)["normal"].queries == 385
    assert by_method(half_width=0.03)["Hoeffding"].queries == 2_050
    wide = (0.0, 10.0)  # which the t test does not use
    assert by_method(difference=0.5, sd=1.0, span=wide)["paired t test"].queries == 34
    assert by_method(difference=0.2, sd=1.0, span=wide)["paired t test"].queries == 199
    assert by_method(difference=0.5, sd=1.0, power=0.95, span=wide)["paired t test"].queries == 54


@pytest.mark.parametrize(("difference", "power"), [(0.3, 0.8), (0.8, 0.9), (0.5, 0.5)])
def test_the_paired_test_finds_the_difference_as_often_as_planned(difference, power):
    plans = by_method(difference=difference, sd=1.0, power=power, delta=0.1, span=(0.0, 10.0))
    n = plans["paired t test"].queries
    x = np.random.default_rng(0).normal(difference, 1.0, (20_000, n))
    found = (stats.ttest_1samp(x, 0.0, axis=1).pvalue <= 0.1).mean()
    error = 3 * math.sqrt(power * (1 - power) / 20_000)
    assert found == pytest.approx(paired_power(n, difference=difference, sd=1.0, delta=0.1), abs=error)
    assert found >= power - error


def shapes(difference, sd, runs, n):
    """Differences of this mean and standard deviation in [-1, 1]: two values, nearly normal ones, mostly 0."""
    random = np.random.default_rng(7)
    most = 4 * sd
    often = (sd**2 + difference**2) / most**2
    u = random.random((runs, n))
    return {
        "two values": difference + sd * random.choice([-1.0, 1.0], (runs, n)),
        "normal": np.clip(random.normal(difference, sd, (runs, n)), -1, 1),
        "mostly 0": np.where(u < (often + difference / most) / 2, most, np.where(u < often, -most, 0.0)),
        "skewed": np.clip(difference - sd * (random.exponential(size=(runs, n)) - 1), -1, 1),
    }


@pytest.mark.parametrize(("difference", "sd", "delta", "power"), [(0.05, 0.2, 0.05, 0.8), (0.06, 0.25, 0.1, 0.9)])
def test_t16_the_guaranteed_interval_excludes_0_as_often_as_planned(difference, sd, delta, power):
    """T16: at the number of queries of the t test it did so in 0 to 58 % of the samples."""
    plans = by_method(difference=difference, sd=sd, delta=delta, power=power)
    planned, by_test = (plans[name].queries for name in ("guaranteed interval", "paired t test"))
    assert planned > 1.3 * by_test
    for name, x in shapes(difference, sd, 80, planned).items():
        pairs = [(np.maximum(row, 0), np.maximum(-row, 0)) for row in x]
        found = np.mean([difference_interval(*pair, delta).low > 0 for pair in pairs])
        assert found >= power - 3 * math.sqrt(power * (1 - power) / 80), name


def test_a_comparison_that_needs_many_queries_is_planned_at_once():
    few, many = (by_method(difference=size, sd=0.3)["guaranteed interval"].queries for size in (1e-3, 1e-5))
    assert many / few == pytest.approx(1e4, rel=0.03)  # as 1/difference^2
    # the usual formula, with what bets of one size need in place of the normal quantile of the level
    wanted = math.log(40)
    need = (2 * wanted + math.log(2)) / math.sqrt(2 * wanted)
    assert many == pytest.approx((0.3 / 1e-5) ** 2 * (need + 0.8416) ** 2, rel=0.01)


def test_power_is_delta_without_a_difference_and_1_with_a_huge_one():
    assert paired_power(20, difference=0.0, sd=1.0, delta=0.07) == pytest.approx(0.07)
    assert paired_power(20, difference=100.0, sd=1.0) == 1.0
    assert paired_power(20, difference=-0.4, sd=1.0) == paired_power(20, difference=0.4, sd=1.0)
    powers = [paired_power(n, difference=0.3, sd=1.0) for n in range(2, 200)]
    assert (np.diff(powers) > 0).all()


@given(st.floats(0.02, 0.2), st.floats(0.05, 0.5))
def test_more_is_asked_for_more(half_width, sd):
    here = by_method(half_width=half_width, sd=sd)
    for harder in (
        by_method(half_width=half_width / 2, sd=sd),
        by_method(half_width=half_width, sd=sd, delta=0.01),
        by_method(half_width=2 * half_width, sd=2 * sd, span=(0.0, 2.0)),
    ):
        for method, plan in here.items():
            assert harder[method].queries >= plan.queries
    same = by_method(half_width=2 * half_width, sd=2 * sd, span=(-1.0, 1.0))
    assert {name: plan.queries for name, plan in same.items()} == {name: plan.queries for name, plan in here.items()}


@given(st.integers(2, 10**6))
def test_the_first_number_that_is_enough(threshold):
    assert first(lambda n: n >= threshold) == threshold


def test_a_plan_is_plain_data():
    plan = queries_needed(half_width=0.1)[0]
    assert pickle.loads(pickle.dumps(plan)) == plan
    assert plan.to_dict()["queries"] == 185
    assert plan.to_dict()["terms"] == {"half_width": 0.1, "delta": 0.05, "b": 1.0}


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ({}, "either half_width= .* or difference= .*, got half_width=None, difference=None"),
        ({"half_width": 0.1, "difference": 0.1}, "either half_width= .*, got half_width=0.1, difference=0.1"),
        ({"difference": 0.1}, "a comparison requires sd=, the standard deviation of the differences"),
        ({"half_width": 0.0}, "half_width must be finite and above 0, got 0.0"),
        ({"half_width": 0.1, "sd": -1.0}, "sd must be finite and above 0, got -1.0"),
        ({"half_width": 0.1, "delta": 0.0}, "delta must be between 0 and 1, got 0.0"),
        ({"difference": 0.1, "sd": 1.0, "power": 1.0}, "power must be between 0 and 1, got 1.0"),
        ({"half_width": 0.1, "span": (1.0, 1.0)}, r"span must be \(smallest possible value"),
        ({"difference": 0.5, "sd": 1.0}, "root mean square 1 at most, got difference=0.5 and sd=1: pass the span="),
        ({"half_width": 1e-9, "sd": 100.0}, "more than 1,000,000,000,000 queries would be needed"),
    ],
)
def test_what_cannot_be_is_refused_in_one_sentence(asked, sentence):
    with pytest.raises(RankwiseError, match=sentence):
        queries_needed(**asked)
