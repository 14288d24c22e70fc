"""Tests at a level: what they share with bounds, and how a level is spent on several claims."""

import json
import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankwise.errors import DataError, RankwiseError
from rankwise.guarantees.certificate import holdout_claims
from rankwise.guarantees.holdout import betting
from rankwise.guarantees.holdout.testing import (
    RunningTest,
    count_until_failure,
    level_of_attempt,
    level_of_each,
    queries_to_show,
    shows_above,
)
from tests.guarantees.test_certificate import UNSEEN

VALUES = st.sampled_from([0.0, 0.1, 0.1 + 1e-16, 0.5, 0.9, 1.0, math.nan]) | st.floats(0, 1)
SAMPLES = st.lists(st.tuples(VALUES, st.integers(0, 30), st.booleans() | st.just(False)), min_size=1, max_size=40)
LEVELS = st.sampled_from([1e-30, 0.001, 0.05, 0.3, 0.9])
THRESHOLDS = st.floats(0, 0.999) | st.sampled_from([0.0, 0.1, 0.5])


@given(SAMPLES, THRESHOLDS, LEVELS)
def test_a_claim_is_shown_where_the_bound_of_a_certificate_reaches_the_threshold(sample, threshold, level):
    values, group, seen = (np.array(part) for part in zip(*sample, strict=True))
    shown = shows_above(values, threshold, level, group=group, seen=seen)
    if np.isnan(values).all():
        assert not shown
        return
    claims = holdout_claims(1 - values, of="loss", unseen=UNSEEN, group=group, seen=seen)
    if not claims:
        assert not shown
        return
    low = 1 - next(bound for bound in (claim.make(level) for claim in claims) if bound.name == "Betting").value
    if abs(low - threshold) > 2 * betting.ACCURACY:
        assert shown == (low >= threshold)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=60), THRESHOLDS, LEVELS)
def test_the_same_at_any_span(values, threshold, level):
    x = np.array(values)
    low = betting.lower_end(x, level)
    if abs(low - threshold) > 2 * betting.ACCURACY:
        assert shows_above(3 * x - 1, 3 * threshold - 1, level, span=(-1.0, 2.0)) == (low >= threshold)


@given(SAMPLES, LEVELS)
def test_shown_thresholds_begin_at_the_span(sample, level):
    values, group, seen = (np.array(part) for part in zip(*sample, strict=True))
    shown = [shows_above(values, one, level, group=group, seen=seen) for one in np.linspace(-0.1, 1.1, 25)]
    assert shown == sorted(shown, reverse=True)
    assert shown[0]
    assert not shown[-1]


@pytest.mark.parametrize("level", [0.3, 0.1])
@pytest.mark.parametrize("threshold", [0.2, 0.5])
def test_a_false_claim_is_shown_with_the_level_at_most(threshold, level):
    """All outcomes of 10 coins whose mean is the threshold itself."""
    coins = [np.array(one, dtype=float) for one in product([0, 1], repeat=10)]
    wrong = [math.prod(threshold if side else 1 - threshold for side in one) for one in coins]
    shown = [shows_above(one, threshold, level) for one in coins]
    assert 0 < math.fsum(chance for chance, yes in zip(wrong, shown, strict=True) if yes) <= level


def test_a_test_that_peeks_at_its_values_is_caught(monkeypatch):
    """The level is not kept for free: bets that know their values show what is false."""
    monkeypatch.setattr(betting, "bets", lambda x, alpha: np.where(x > 0.5, 2.0, 0.0))
    coins = [np.array(one, dtype=float) for one in product([0, 1], repeat=10)]
    assert np.mean([shows_above(one, 0.5, 0.1) for one in coins]) > 0.2


def test_weights_and_what_cannot_be_tested():
    values = np.array([0.9] * 40 + [0.0] * 40)
    assert shows_above(values, 0.6, 0.05, weight=np.repeat([2.0, 0.0], 40))
    assert not shows_above(values, 0.6, 0.05)
    assert not shows_above(values, 0.0001, 0.0)
    with pytest.raises(RankwiseError, match="equal query weights"):
        shows_above(values, 0.6, 0.05, weight=np.arange(80.0))
    with pytest.raises(RankwiseError, match="threshold must be finite"):
        shows_above(values, math.nan, 0.05)
    with pytest.raises(RankwiseError, match=r"level in \[0, 1\)"):
        shows_above(values, 0.5, 1.0)
    with pytest.raises(DataError, match="between 0 and 1"):
        shows_above(values + 1, 0.6, 0.05)


# ------------------------------------------------------------------------------------------------------- at any time


@given(st.lists(st.tuples(VALUES, st.booleans()), min_size=1, max_size=60), st.integers(0, 60))
def test_a_running_test_is_the_same_however_values_are_divided(sample, cut):
    values, optional = (np.array(part) for part in zip(*sample, strict=True))
    at_once, in_parts = (RunningTest(0.4, 0.05) for _ in range(2))
    at_once.update(values, optional=optional)
    in_parts.update(values[:cut], optional=optional[:cut])
    in_parts = RunningTest.from_dict(json.loads(json.dumps(in_parts.to_dict())))
    in_parts.update(values[cut:], optional=optional[cut:])
    assert in_parts.to_dict() == at_once.to_dict()
    assert at_once.n == int((~np.isnan(values)).sum())
    alone = RunningTest(0.4, 0.05)
    alone.update(values)
    assert at_once.to_dict()["log_capital"] <= alone.to_dict()["log_capital"]


@pytest.mark.parametrize("level", [0.3, 0.1])
@pytest.mark.parametrize("threshold", [0.2, 0.5])
def test_a_false_claim_is_ever_shown_with_the_level_at_most(threshold, level):
    """All outcomes of 11 coins whose mean is the threshold itself, looked at after each of them."""
    total = 0.0
    for coins in product([0.0, 1.0], repeat=11):
        if RunningTest(threshold, level).update(coins):
            total += math.prod(threshold if side else 1 - threshold for side in coins)
    assert 0 < total <= level


def test_a_copy_of_a_draw_never_helps():
    """Of two equal values either may be the draw: with the second one optional the capital is at most that of both."""
    random = np.random.default_rng(0)
    for _ in range(50):
        values = random.random(20).round(1)
        twice = np.repeat(values, 2)
        optional = RunningTest(0.3, 0.05)
        optional.update(twice, optional=np.tile([False, True], 20))
        every = RunningTest(0.3, 0.05)
        every.update(twice)
        assert optional.to_dict()["log_capital"] <= every.to_dict()["log_capital"] + 1e-12


def test_thresholds_at_the_ends_of_the_span_cannot_be_tested_on_arrival():
    with pytest.raises(RankwiseError, match="threshold must be inside of the span"):
        RunningTest(1.0, 0.05)


# ------------------------------------------------------------------------------------------------------------- planning


@pytest.mark.parametrize(("mean", "margin", "sd"), [(0.7, 0.1, 0.5), (0.65, 0.05, 0.2), (0.55, 0.05, 0.01)])
def test_a_plan_is_enough(mean, margin, sd):
    """150 samples of each; a power of 0.8 gives fewer than 108 with probability 0.01."""
    plan = queries_to_show(margin, sd=sd, threshold=mean - margin, level=0.001)
    random = np.random.default_rng(0)
    if sd == 0.5:  # as large as it gets: a coin
        values = (random.random((150, plan.queries)) < mean).astype(float)
    else:
        total = mean * (1 - mean) / sd**2 - 1
        values = random.beta(mean * total, (1 - mean) * total, (150, plan.queries))
    assert sum(shows_above(row, mean - margin, 0.001) for row in values) >= 108


def test_plans_grow_as_levels_fall_and_margins_shrink():
    def planned(margin=0.05, attempt=1, passed=0, **given):
        level = level_of_attempt(0.05, attempt, passed)
        return queries_to_show(margin, **{"sd": 0.3, "threshold": 0.6, "level": level, **given}).queries

    assert planned() < planned(attempt=5) < planned(attempt=5, passed=2) < planned(attempt=50, passed=2)
    assert planned(0.1) < planned() < planned(0.02)
    assert planned(sd=0.01) < planned(sd=0.2) < planned(sd=10.0)
    assert planned(power=0.5) < planned(power=0.95)
    with pytest.raises(RankwiseError, match="inside of the span"):
        planned(0.4)
    with pytest.raises(RankwiseError, match="sd must be finite and above 0, got 0"):
        planned(sd=0)


# --------------------------------------------------------------------------------------------------- several claims


@given(st.floats(1e-9, 0.999), st.integers(1, 60))
def test_levels_over_all_histories_of_answers_sum_to_delta(delta, attempts):
    spent = math.fsum(
        math.comb(attempt - 1, passed) * level_of_attempt(delta, attempt, passed)
        for attempt in range(1, attempts + 1)
        for passed in range(attempt)
    )
    assert spent == pytest.approx(delta * (1 - 1 / (attempts + 1)), rel=1e-12)


@given(st.integers(1, 2_000), st.data())
def test_a_level_falls_with_attempts_and_may_vanish(attempt, data):
    passed = data.draw(st.integers(0, attempt - 1))
    level = level_of_attempt(0.05, attempt, passed)
    assert 0 <= level <= 0.05 / (attempt * (attempt + 1))
    assert level_of_attempt(0.05, attempt + 1, passed) <= level


@pytest.mark.parametrize(("attempt", "passed"), [(0, 0), (3, 3), (2, -1), (2.5, 1), ("x", 0), (2**70, 2**69)])
def test_numbers_of_attempts_that_cannot_be(attempt, passed):
    with pytest.raises(RankwiseError, match="level_of_attempt: attempt must be"):
        level_of_attempt(0.05, attempt, passed)


@given(st.lists(st.booleans()))
def test_a_sequence_stops_at_its_first_failure(answers):
    asked = []
    count = count_until_failure(asked.append(answer) or answer for answer in answers)
    assert answers[:count] == [True] * count
    assert asked == answers[: count + 1]
    assert count == len(answers) or not answers[count]


def test_equal_shares():
    assert level_of_each(0.05, 4) == 0.0125
    with pytest.raises(RankwiseError, match="claims must be at least 1, got 0"):
        level_of_each(0.05, 0)
