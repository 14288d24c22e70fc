"""The rule that chooses: the first candidate, unless another one is better by more than one standard error."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rankwise as rw
from rankwise.measures import parse
from rankwise.rankers._model_selection import mean_of_known
from rankwise.rankers.auto.candidates import Difference, choose, criterion_measures, measure_values

QUERIES = rw.make_lists(30, documents=(2, 12), features=3, random_state=4)


def test_the_criterion_is_the_mean_of_three_measures_and_the_chosen_one():
    assert [one.title for one in criterion_measures(parse("nDCG@10"))] == ["nDCG@10", "nDCG@50", "AP"]
    assert [one.title for one in criterion_measures(parse("P@3"))] == ["nDCG@10", "nDCG@50", "AP", "P@3"]
    assert [one.title for one in criterion_measures(parse("DCG@5"))] == ["nDCG@10", "nDCG@50", "AP"], "not below 1"


def test_measures_that_are_undefined_for_a_query_are_left_out_of_its_mean():
    values = np.array([[0.5, np.nan, np.nan], [1.0, 0.25, np.nan]])
    np.testing.assert_array_equal(mean_of_known(values), [0.75, 0.25, np.nan])


def test_values_are_those_of_evaluate():
    scores = QUERIES.X[:, 0]
    found = measure_values(QUERIES, scores, [parse("nDCG@10"), parse("AP")])
    expected = rw.evaluate(QUERIES, scores, ["nDCG@10", "AP"])
    np.testing.assert_array_equal(found, expected.values)


def test_a_difference_and_its_error_by_hand():
    one, other = np.array([0.5, 0.7, 0.9, np.nan]), np.array([0.4, 0.8, 0.6, 0.5])
    found = Difference.of(one, other, np.ones(4))
    steps = np.array([0.1, -0.1, 0.3])
    assert found.mean == pytest.approx(steps.mean())
    assert found.error == pytest.approx(steps.std(ddof=1) / math.sqrt(3))


def test_a_weight_of_two_counts_twice_in_the_mean():
    one, other = np.array([0.5, 0.7, 0.9]), np.array([0.4, 0.8, 0.6])
    found = Difference.of(one, other, np.array([2.0, 1.0, 1.0]))
    assert found.mean == pytest.approx((2 * 0.1 - 0.1 + 0.3) / 4)
    scaled = Difference.of(one, other, np.array([20.0, 10.0, 10.0]))
    assert scaled.error == pytest.approx(found.error)


@pytest.mark.parametrize(
    ("shifts", "chosen"),
    [
        ({"boosted": 0.00, "half": 0.00}, "linear"),
        ({"boosted": 0.05, "half": 0.02}, "boosted"),
        ({"boosted": 0.02, "half": 0.05}, "half"),
        ({"boosted": -0.05, "half": 0.001}, "linear"),
        ({"boosted": 0.05, "half": 0.05}, "boosted"),  # the earlier of equals
    ],
)
def test_the_best_of_those_that_are_clearly_better_is_taken(shifts, chosen):
    base = np.linspace(0.2, 0.8, 40)
    noise = 0.03 * (-1.0) ** np.arange(40)  # standard error 0.0048
    candidates = {"linear": base, **{name: base + noise + shift for name, shift in shifts.items()}}
    found, differences = choose(candidates, np.ones(40))
    assert found == chosen
    assert differences["linear"] == Difference(0.0, 0.0)
    error = noise.std(ddof=1) / math.sqrt(40)
    for name, shift in shifts.items():
        assert differences[name].mean == pytest.approx(shift)
        assert differences[name].error == pytest.approx(error)
        assert differences[name].is_clear == (shift > error)


def test_one_query_decides_nothing():
    found, differences = choose({"linear": np.array([0.1]), "boosted": np.array([0.9])}, np.ones(1))
    assert found == "linear"
    assert differences["boosted"].error == math.inf


def test_without_a_defined_value_the_first_is_taken():
    nothing = np.full(5, np.nan)
    assert choose({"linear": nothing, "boosted": nothing}, np.ones(5))[0] == "linear"


@given(st.lists(st.floats(0, 1), min_size=2, max_size=30), st.floats(0.001, 1), st.integers(1, 5))
def test_what_is_better_on_every_query_by_the_same_amount_is_chosen(values, gain, copies):
    base = np.tile(np.array(values), copies)
    assert choose({"linear": base, "other": base + gain}, np.ones(len(base)))[0] == "other"
    assert choose({"linear": base, "other": base - gain}, np.ones(len(base)))[0] == "linear"
