"""The paired intervals of the page "How good is it"."""

import numpy as np
import pytest
from scipy.stats import ttest_rel

from benchmarks.quality.page import LEVEL, against, difference, differences, interval, intervals
from benchmarks.quality.sets import SETS


def cell(seed, count=30):
    rng = np.random.default_rng(seed)
    return {"values": {measure: rng.uniform(size=count).tolist() for measure in ("nDCG@10", "AP")}}


CELLS = {name: cell(seed) for seed, name in enumerate(("AutoRanker", "RidgeCommittee", "NeuralRanker", "Rax", "peer"))}


def from_scipy(one, other, measure, comparisons):
    """Low and high of a paired t interval at the corrected level."""
    test = ttest_rel(CELLS[one]["values"][measure], CELLS[other]["values"][measure])
    found = test.confidence_interval(1 - (1 - LEVEL) / comparisons)
    return pytest.approx((found.low, found.high))


@pytest.mark.parametrize("comparisons", [1, 140])
def test_an_interval_is_that_of_a_paired_t_test_at_the_corrected_level(comparisons):
    found = interval(difference(CELLS["Rax"], CELLS["peer"], "AP"), 30, comparisons)
    assert found == from_scipy("Rax", "peer", "AP", comparisons)


def test_the_difference_to_a_peer_is_corrected_for_the_sets():
    found = differences(CELLS, "peer")["AP"]
    assert (found["low"], found["high"]) == from_scipy("AutoRanker", "peer", "AP", len(SETS))


def test_kernels_maps_and_networks_are_corrected_for_all_that_are_shown():
    results = {name: {"test queries": 30, "against": against(CELLS)} for name in ("one", "two")}
    found = intervals(results)
    assert {key[1:] for key in found} == {
        (name, other) for name in ("NeuralRanker", "Rax") for other in ("AutoRanker", "RidgeCommittee")
    }
    assert len(found) == 8
    low_and_high = found["two", "NeuralRanker", "RidgeCommittee"][1:]
    assert low_and_high == from_scipy("NeuralRanker", "RidgeCommittee", "nDCG@10", 8)


def test_a_baseline_without_values_of_every_query_has_no_differences():
    without = {name: found for name, found in CELLS.items() if name != "AutoRanker"}
    assert set(against(without)) == {"RidgeCommittee"}
