"""Demands on cut lists by enumeration, fixed sequences of cuts, and what bets on them show."""

import math
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rankwise as rw
from experiments.coverage_counts import Count
from experiments.cutoff_guarantees import Cell, run_cell
from rankwise.errors import RankwiseError
from rankwise.guarantees import queries_for_cutoff
from rankwise.guarantees.holdout.cutting import CutSequence, DrawnQueries, count_shown_cuts, floor_to_grid, next_on_grid
from rankwise.guarantees.holdout.demands import Demand, kept_values
from rankwise.guarantees.holdout.testing import shows_above
from rankwise.measures._base import registered

LISTS = st.lists(
    st.lists(st.tuples(st.sampled_from([0.0, 0.5, 1.0, 2.0]), st.integers(0, 3)), min_size=1, max_size=5),
    min_size=1,
    max_size=3,
)
KEEP = (
    "recall>=0.5",
    "recall(rel=2)>=0.5",
    "success>=0.5",
    "precision>=0.5",
    "nDCG@2>=0.5",
    "nDCG@3 lost<=0.1",
    "AP lost<=0.1",
    "RR lost<=0.1",
    "ERR lost<=0.1",
)


def queries_of(lists):
    scores, labels = (np.array([one[place] for query in lists for one in query], float) for place in (0, 1))
    return rw.Queries.from_arrays(scores[:, None], labels, group=list(map(len, lists))), scores


def worst_value(demand, scores, labels, kept):
    """The value of the first documents in the worst order of the tied ones, by enumeration."""
    found = []
    for order in permutations(range(len(scores))):
        if any(scores[order[i]] < scores[order[i + 1]] for i in range(len(order) - 1)):
            continue
        ranked = labels[list(order)]
        down = -np.arange(float(len(order)))
        cut = np.where(np.arange(len(order)) < kept, down, -math.inf)
        if demand.lost:
            found.append(1 - max(0.0, demand.measure(down, ranked) - demand.measure(cut, ranked)))
        elif not demand.at_depth:
            found.append(demand.measure(cut, ranked))
        elif kept == 0:
            found.append(0.0 if demand.begins_with_all else 1.0)
        else:
            found.append((demand.measure @ kept)(down, ranked))
    value = min(found) if not any(map(math.isnan, found)) else math.nan
    if math.isnan(value) and not demand.begins_with_all:
        return 0.0
    defined = (demand.measure @ 1 if demand.at_depth else demand.measure)(scores, labels)
    return math.nan if math.isnan(defined) and demand.begins_with_all else value


@settings(max_examples=20)
@given(LISTS)
def test_kept_values_are_those_of_the_worst_order_of_tied_documents(lists):
    queries, scores = queries_of(lists)
    for keep in KEEP:
        demand = Demand.parse(keep)
        found = kept_values(demand, queries, scores, n_jobs=1)
        for number in range(len(queries)):
            rows = queries.rows_of(number)
            for kept in range(len(lists[number]) + 1):
                expected = worst_value(demand, scores[rows], queries.y[rows], kept)
                value = found.values[found.first[number] + kept]
                around = np.sort(scores[rows])[::-1][max(0, kept - 1) : kept + 1]
                if demand.lost and 0 < kept < len(lists[number]) and around[0] == around[1]:
                    assert value <= expected + 1e-9 or math.isnan(value), (keep, kept)  # inside of a block of ties
                else:
                    assert value == pytest.approx(expected, abs=1e-9, nan_ok=True), (keep, kept)
        whole = found.at(queries.sizes)
        if demand.holds_at_first and demand.begins_with_all:
            assert np.isin(whole[~np.isnan(whole)].round(9), 1.0).all()


@pytest.mark.parametrize("kind", [one for one in registered().values() if one.needs_cutoff and one.depends_on_labels])
def test_what_a_measure_says_of_its_cut_offs_is_so(kind):
    random, measure = np.random.default_rng(0), kind()
    for _ in range(50):
        labels = random.integers(0, 3, random.integers(1, 8)).astype(float)
        labels[random.integers(len(labels))] = 1.0
        along = [(measure @ cut)(-np.arange(len(labels)), labels) for cut in range(1, len(labels) + 1)]
        if kind.grows_to_one:
            assert along == sorted(along)
            assert along[-1] == pytest.approx(1.0)
        found = measure.at_each_cutoff(measure.row_values(labels))
        assert found is None or found == pytest.approx(along)


@given(st.floats(-1e6, 1e6))
def test_thresholds_are_the_numbers_around_a_score(score):
    low, high = floor_to_grid(np.array([score]))[0], next_on_grid(np.array([score]))[0]
    assert low <= score < high
    for one in (low, high):  # nine binary digits: float32 holds them, and they are their own neighbors below
        assert floor_to_grid(np.array([one]))[0] == one == np.float32(one) or abs(one) < 1e-30
    if abs(score) > 1e-200:
        assert high - low <= abs(score) / 128


def sample(seed, n=60):
    random = np.random.default_rng(seed)
    sizes = random.integers(1, 8, n)
    useful = random.standard_normal(sizes.sum())
    labels = (useful + 0.5 * random.standard_normal(len(useful)) > 0.3).astype(float)
    return rw.Queries.from_arrays(useful[:, None], labels, group=sizes), useful.round(1)


@pytest.mark.parametrize("keep", ["recall>=0.7", "precision>=0.4", "nDCG@3 lost<=0.2", "nDCG@3>=0.5"])
@pytest.mark.parametrize("by", ["score", "rank"])
def test_the_cut_is_the_last_before_the_first_that_bets_do_not_show(keep, by):
    demand = Demand.parse(keep)
    for seed in range(3):
        queries, scores = sample(seed)
        values, falling = kept_values(demand, queries, scores, n_jobs=1), demand.begins_with_all
        if by == "rank":
            sequence = CutSequence.of_ranks(queries.sizes, falling=falling)
        else:
            sequence = CutSequence.of(scores, queries.query_of_row, queries.sizes, falling=falling)
        drawn = DrawnQueries(np.ones(len(queries), bool))
        expected = 0
        for step in range(-1, len(sequence.cuts)):
            if not shows_above(values.at(sequence.kept(step)), demand.goal, 0.1):
                break
            expected += 1
        assert count_shown_cuts(sequence, values, drawn, 0.1) == expected
        along = list(map(np.copy, sequence.values_from(-1, values)))
        for step in range(-1, len(sequence.cuts)):
            np.testing.assert_array_equal(along[step + 1], values.at(sequence.kept(step)))
            cut = sequence.cut_at(step)  # keeps exactly the documents of the step
            if by == "score":
                kept = np.bincount(queries.query_of_row, scores >= cut, len(queries))
            else:
                kept = np.minimum(queries.sizes, cut)
            np.testing.assert_array_equal(kept, sequence.kept(step))


def test_every_copy_makes_bets_more_careful_and_none_less():
    demand, (queries, scores) = Demand.parse("recall>=0.7"), sample(3, 200)
    values = kept_values(demand, queries, scores, n_jobs=1)
    sequence = CutSequence.of(scores, queries.query_of_row, queries.sizes, falling=True)
    alone = DrawnQueries(np.ones(200, bool))
    shown = count_shown_cuts(sequence, values, alone, 0.1)
    pairs = DrawnQueries(np.ones(200, bool), np.arange(200) // 2, np.zeros(200, bool))
    seen = DrawnQueries(np.ones(200, bool), np.arange(200), np.arange(200) < 100)
    assert 1 < count_shown_cuts(sequence, values, pairs, 0.1) < shown
    assert 1 < count_shown_cuts(sequence, values, seen, 0.1) < shown


def test_cuts_fail_no_more_often_than_they_may_and_the_mean_rule_does():
    for keep, by in (("recall>=0.9", "score"), ("recall>=0.9", "rank"), ("precision>=0.25", "rank")):
        found = run_cell(Cell("tied and empty", keep, by, 150), 150, 1)
        low, _ = Count.of(checked=150, failed=found["failed"]).interval()
        assert low <= 0.05
        if by == "rank":
            assert found["naive failed"] > 15


@pytest.mark.parametrize(
    ("keep", "message"),
    [
        ("recall>0.9", "keep must be a demand such as 'recall>=0.9'"),
        ("recall<=0.9", "keep must be a demand such as"),
        ("nDCG@10 lost>=0.1", "keep must be a demand such as"),
        ("recall>=1", "keep must have a limit above 0 and below 1, which a sample can show, got 1"),
        ("nDCG@10 lost<=0", "keep must have a limit above 0 and below 1"),
        ("recall>=0.9e", "keep must end in a number"),
        ("recal>=0.9", "no measure is called 'recal'"),
        ("DCG@10>=0.5", "keep must name a measure of labels with values between 0 and 1, got DCG@10"),
        ("Judged@5>=0.5", "keep must name a measure of labels"),
        ("recall lost<=0.1", "what R loses needs a cut-off, such as R@10 lost<=0.01"),
        (0.9, "keep must be a demand such as"),
    ],
)
def test_what_is_no_demand_is_refused(keep, message):
    with pytest.raises(RankwiseError, match=message.replace("(", r"\(")):
        Demand.parse(keep)


def test_lists_too_long_to_be_measured_at_every_length_are_refused():
    sizes = [200_000]
    queries = rw.Queries.from_arrays(np.zeros((200_000, 1)), np.ones(200_000), group=sizes)
    with pytest.raises(RankwiseError, match=r"AP cannot be measured for every length of lists of up to 200,000"):
        kept_values(Demand.parse("AP lost<=0.1"), queries, np.zeros(200_000))


def test_a_plan_is_on_the_safe_side():
    """As many recalls as planned show the demand at least as often as asked for."""
    plan, random = queries_for_cutoff("recall>=0.9", 0.03, sd=0.15, power=0.8), np.random.default_rng(0)
    mean, shape = 0.93, 0.93 * 0.07 / 0.15**2 - 1
    shown = [shows_above(random.beta(mean * shape, (1 - mean) * shape, plan.queries), 0.9, 0.05) for _ in range(100)]
    assert sum(shown) >= 75
    with pytest.raises(RankwiseError, match="slack must leave a mean that is possible"):
        queries_for_cutoff("recall>=0.9", 0.2, sd=0.1)
