"""Bounds under every reading of which queries are draws: the largest over all of them, found by brute force."""

import math
from itertools import chain, combinations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankwise.guarantees.holdout import betting
from rankwise.guarantees.holdout.betting import Readings
from rankwise.guarantees.holdout.intervals import mean_interval
from tests.guarantees.gamblers import fixed_by_hand


def subsets(places, least):
    return chain.from_iterable(combinations(places, size) for size in range(least, len(places) + 1))


def every_reading(losses, group, seen):
    """The losses of the draws, for every reading with a draw."""
    choices = []
    for number in sorted(set(group)):
        own = [place for place, of in enumerate(group) if of == number]
        counted = [place for place in own if not math.isnan(losses[place])]
        free = any(seen[place] for place in own) or len(counted) < len(own)
        choices.append(list(subsets(counted, 0 if free else 1)))
    readings = [[losses[place] for part in parts for place in part] for parts in product(*choices)]
    return [reading for reading in readings if reading]


def betting_by_hand(reading, delta):
    """The upper end of the five gamblers with fixed sizes, by bisection."""
    low, high, x = 0.0, 1.0, [1 - loss for loss in reading]
    if fixed_by_hand(x, 0.0, delta) < 1 / delta:
        return 1.0
    while high - low > 1e-10:
        middle = (low + high) / 2
        low, high = (middle, high) if fixed_by_hand(x, middle, delta) >= 1 / delta else (low, middle)
    return 1 - low


LOSSES = st.sampled_from([0.0, 0.1, 0.1 + 1e-16, 0.1 + 1e-9, 0.5, 0.9, 1.0, math.nan]) | st.floats(0, 1)
SAMPLES = st.lists(st.tuples(LOSSES, st.integers(0, 4), st.booleans() | st.just(False)), min_size=1, max_size=8)


@given(SAMPLES, st.sampled_from([0.05, 0.3, 0.7]))
def test_hoeffding_and_the_mean_are_the_largest_of_all_readings(sample, delta):
    losses, group, seen = map(list, zip(*sample, strict=True))
    found = Readings.of(losses, np.array(group), np.array(seen))
    if not len(found.sure):
        assert math.isnan(found.largest_mean)
        return
    readings = every_reading(losses, group, seen)
    reach = [sum(one) / len(one) + math.sqrt(math.log(1 / delta) / (2 * len(one))) for one in readings]
    assert found.hoeffding(delta) == pytest.approx(min(1.0, max(reach)), abs=1e-12)
    assert found.largest_mean == pytest.approx(max(sum(one) / len(one) for one in readings), abs=1e-12)


@given(SAMPLES, st.sampled_from([0.3, 0.7, 0.9]))
def test_betting_is_the_largest_of_all_readings(sample, delta):
    losses, group, seen = map(list, zip(*sample, strict=True))
    found = Readings.of(losses, np.array(group), np.array(seen))
    if len(found.sure):
        readings = {tuple(sorted(one)) for one in every_reading(losses, group, seen)}
        expected = max(betting_by_hand(one, delta) for one in readings)
        assert found.betting(delta) == pytest.approx(expected, abs=3 * betting.ACCURACY)


@pytest.mark.parametrize(("sure", "optional"), [(20, 0), (30, 3), (30, 60), (1, 130)])
def test_betting_on_longer_samples_is_the_largest_over_the_number_of_draws(sure, optional):
    """The number of values is rounded up to a power of 2, which changes on the way."""
    random = np.random.default_rng(optional)
    found = Readings(random.beta(1, 6, sure), np.sort(random.beta(1, 3, optional))[::-1])
    expected = max(
        betting_by_hand([*found.sure.tolist(), *found.optional[:more].tolist()], 0.1) for more in range(optional + 1)
    )
    assert found.betting(0.1) == pytest.approx(expected, abs=3 * betting.ACCURACY)


def test_without_copies_readings_are_the_plain_bounds():
    losses = np.random.default_rng(0).random(50)
    found = Readings.of(losses)
    assert not len(found.optional)
    assert found.hoeffding(0.1) == pytest.approx(mean_interval(losses, 0.1, method="hoeffding", ends="high").high)
    assert found.betting(0.1) == pytest.approx(betting_by_hand(losses.tolist(), 0.1), abs=3 * betting.ACCURACY)


def test_a_group_with_a_query_that_does_not_count_may_have_been_drawn_as_that_query():
    """A changed copy with a relevant document says nothing where the draw has none: it is not sure to count."""
    found = Readings.of([math.nan, 0.0, 0.8, 0.6], np.array([0, 0, 1, 2]))
    assert found.sure.tolist() == [0.8, 0.6]
    assert found.optional.tolist() == [0.0]
    assert found.largest_mean == pytest.approx(0.7)


def test_t1_the_two_extremes_alone_are_not_enough():
    """200 draws, a quarter of them of a seen query with loss 1, and 300 training rows with loss 0: truth .325."""
    random = np.random.default_rng(0)
    fresh = (random.random(150) < 0.1).astype(float)
    losses = np.concatenate([fresh, np.ones(50), np.zeros(300)])
    group = np.concatenate([np.arange(150), np.full(50, 150), 151 + np.arange(300) % 60])
    seen = group >= 150
    found = Readings.of(losses, group, seen)
    for bound in (found.hoeffding(0.05), found.betting(0.05)):
        assert bound >= 0.325
    for extreme in (fresh, losses):
        assert mean_interval(extreme, 0.05, ends="high").high < 0.3


@pytest.mark.parametrize("samples", [60, pytest.param(2_000, marks=pytest.mark.thorough)])
@pytest.mark.parametrize("draw", [0.2, 0.5])
def test_bounds_cover_whatever_was_copied(draw, samples):
    """Draws, of which one loss is frequent and seen, and copies that an adversary chose after seeing the losses."""
    random, delta, n = np.random.default_rng(0), 0.2, 30
    wrong = {"hoeffding": 0, "betting": 0}
    for _ in range(samples):
        frequent, rest = random.random(n) < 0.3, (random.random(n) < draw).astype(float)
        losses = np.where(frequent, 1.0, rest)
        copies = np.flatnonzero(losses == 0)[: random.integers(0, 20)]
        group = np.where(frequent, n, np.arange(n))
        found = Readings.of(
            np.concatenate([losses, losses[copies], np.zeros(15)]),
            np.concatenate([group, group[copies], np.full(15, n + 1)]),
            np.concatenate([frequent, np.zeros(len(copies), bool), np.ones(15, bool)]),
        )
        truth = 0.3 + 0.7 * draw
        for name in wrong:
            wrong[name] += getattr(found, name)(delta) < truth
    for count in wrong.values():
        assert count / samples <= delta + 3 * math.sqrt(delta * (1 - delta) / samples)
