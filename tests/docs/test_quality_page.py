"""The paired intervals of the page "How good is it"."""

import numpy as np
import pytest
from scipy.stats import ttest_rel

from benchmarks.quality import page
from benchmarks.quality.page import LEVEL, against, difference, differences, interval, intervals
from benchmarks.quality.sets import SETS


def cell(seed, count=30):
    rng = np.random.default_rng(seed)
    return {"values": {measure: rng.uniform(size=count).tolist() for measure in ("nDCG@10", "AP")}}


NAMES = ("AutoRanker", "earlier AutoRanker", "RidgeCommittee", "NeuralRanker", "Rax", "peer")
CELLS = {name: cell(seed) for seed, name in enumerate(NAMES)}


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
        (name, other) for name in ("NeuralRanker", "Rax") for other in ("earlier AutoRanker", "RidgeCommittee")
    }
    assert len(found) == 8
    low_and_high = found["two", "NeuralRanker", "RidgeCommittee"][1:]
    assert low_and_high == from_scipy("NeuralRanker", "RidgeCommittee", "nDCG@10", 8)


def test_a_baseline_without_values_of_every_query_has_no_differences():
    without = {name: found for name, found in CELLS.items() if name != "earlier AutoRanker"}
    assert set(against(without)) == {"RidgeCommittee"}


def of_sets(*differences_):
    """Results in which each set has the same difference, plus or minus .1, to every peer and in every measure."""
    ends = [{"difference": one, "low": one - 0.1, "high": one + 0.1} for one in differences_]
    of_peers = [dict.fromkeys(page.ON_PAGE, dict.fromkeys(page.MEASURES, found)) for found in ends]
    return {place: {"title": f"set {place}", "differences": found} for place, found in enumerate(of_peers)}


def test_the_aim_is_reached_by_being_better_on_five_sets_and_worse_on_none():
    assert page.verdicts(of_sets(*[0.2] * 5, 0.05), *page.ON_PAGE)[-1] == "- What was aimed at is reached."
    missed = page.verdicts(of_sets(*[0.2] * 4, 0.05), *page.ON_PAGE)
    assert missed[-1] == "- What was aimed at is missed: nDCG@10 against the picked peer; AP against the picked peer."
    assert "better on 4 (set 0; set 1; set 2; set 3), worse on none, and" in missed[1]
    assert page.CATBOOST_BAGGED in page.verdicts(of_sets(*[0.2] * 5, -0.2), *page.ON_PAGE)[-1]
