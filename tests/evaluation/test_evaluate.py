"""`evaluate`: arrays, queries, weights, empty queries, intervals, ranges over ties, and sentences for bad input."""

import json
import math
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankwise.errors import DataError, MeasureError, RankwiseError
from rankwise.evaluation.evaluation import evaluate
from rankwise.measures import AP, NDCG, RR
from rankwise.queries.queries import Queries
from tests.strategies import many_lists

LABELS = [2, 0, 1, 0, 0, 1]
SCORES = [0.9, 0.2, 0.4, 0.3, 0.1, 0.2]
SIZES = [3, 1, 2]  # the second query has no relevant document


def test_means_leave_empty_queries_out_and_count_them():
    found = evaluate(LABELS, SCORES, ["nDCG@10", "RR"], group=SIZES)
    assert found.mean == {"nDCG@10": 1.0, "RR": 1.0}
    assert found.skipped == {"nDCG@10": 1, "RR": 1}
    assert found.given == {"nDCG@10": 0, "RR": 0}
    assert math.isnan(found["RR"][1])
    assert found.per_query.columns == ("qid", "nDCG@10", "RR")


@pytest.mark.parametrize(("empty", "mean"), [("zero", 2 / 3), ("one", 1.0)])
def test_empty_queries_count_what_was_stated(empty, mean):
    found = evaluate(LABELS, SCORES, ["RR"], group=SIZES, empty=empty)
    assert found.mean["RR"] == mean
    assert found.given == {"RR": 1}
    assert found.skipped == {"RR": 0}


def test_nothing_but_empty_queries_is_not_a_number_rather_than_a_value():
    assert math.isnan(evaluate([0, 0], [1, 2], ["nDCG"], group=[2]).mean["nDCG"])


def test_every_way_of_saying_which_rows_belong_together_gives_the_same_bits():
    rng = np.random.default_rng(0)
    qid = rng.integers(0, 40, 500)
    y, s = rng.integers(0, 3, 500), rng.normal(size=500).round(1)
    by_id = evaluate(y, s, ["nDCG@10", "AP"], qid=qid)
    queries = Queries.from_arrays(np.zeros((500, 1)), y, qid=[f"q{q}" for q in qid])
    order = np.argsort(qid, kind="stable")
    grouped = evaluate(y[order], s[order], ["nDCG@10", "AP"], group=np.bincount(qid))
    assert by_id.mean == evaluate(queries, s, ["nDCG@10", "AP"]).mean == grouped.mean


@given(many_lists(max_lists=6), st.lists(st.integers(0, 5), min_size=6, max_size=6))
def test_a_whole_weight_counts_a_query_so_many_times(lists, weights):
    weights = weights[: len(lists)]
    if not any(weights):
        return
    labels = np.concatenate([labels for _, labels in lists])
    scores = np.concatenate([scores for scores, _ in lists])
    sizes = [len(labels) for _, labels in lists]
    weighted = evaluate(labels, scores, ["AP"], group=sizes, weight=weights)
    repeated = [value for value, weight in zip(weighted["AP"], weights, strict=True) for _ in range(weight)]
    known = [value for value in repeated if not math.isnan(value)]
    if known:
        assert weighted.mean["AP"] == pytest.approx(sum(known) / len(known), rel=1e-12)
    else:
        assert math.isnan(weighted.mean["AP"])


def test_a_constant_scorer_is_visible_in_the_range_over_ties():
    found = evaluate([0, 0, 1, 1], [0.5] * 4, ["AP"], group=[4])
    low, high = found.tie_range()["AP"]
    assert (low, high) == (pytest.approx(5 / 12), 1.0)
    assert low < found.mean["AP"] < high
    sure = evaluate([0, 0, 1, 1], [1, 2, 3, 4], ["AP"], group=[4]).tie_range()["AP"]
    assert sure == (1.0, 1.0)


def test_the_range_over_ties_treats_empty_queries_as_the_mean_does():
    found = evaluate([1, 0, 0, 0], [1, 1, 1, 1], ["RR"], group=[2, 2], empty="zero")
    assert found.tie_range()["RR"] == (0.25, 0.5)


def test_measures_are_found_again_by_any_of_their_spellings():
    found = evaluate(LABELS, SCORES, [NDCG() @ 10, "MAP", RR()], group=SIZES)
    assert found.titles == ("nDCG@10", "AP", "RR")
    for name in ("nDCG@10", "nDCG(dcg='exp-log2')@10", NDCG() @ 10):
        np.testing.assert_array_equal(found[name], found.values[0])
    np.testing.assert_array_equal(found["MAP"], found[AP()])
    assert found.mean["MAP"] == found.mean["AP"]
    assert found.interval()["mrr"] == found.interval()["RR"]
    by_tool = evaluate(LABELS, SCORES, ["MAP@2"], group=SIZES, like="lightgbm")
    assert by_tool.mean["map@2"] == by_tool.mean["AP@2"]
    with pytest.raises(RankwiseError, match=r"P@5 was not evaluated; evaluated measures: nDCG@10, AP, RR"):
        found["P@5"]


def test_rel_says_what_counts_as_relevant_unless_the_measure_does():
    found = evaluate([1, 2], [2, 1], ["RR", "RR(rel=1)", AP()], group=[2], rel=2)
    assert found.mean == {"RR(rel=2)": 0.5, "RR": 1.0, "AP": 1.0}


def test_a_single_measure_needs_no_list_and_a_model_no_predict():
    class Model:
        def predict(self, queries):
            return queries.X[:, 0]

    queries = Queries.from_arrays(np.array([[1.0], [2.0]]), [1, 0], group=[2])
    assert evaluate(queries, Model(), "RR").mean == {"RR": 0.5}
    assert evaluate(queries, Model()).titles == ("nDCG@10",)


def test_intervals_hold_the_mean_and_shrink_with_more_queries():
    rng = np.random.default_rng(1)
    widths = []
    for queries in (20, 500):
        y, s = rng.integers(0, 3, queries * 10), rng.normal(size=queries * 10)
        found = evaluate(y, s, ["nDCG@10"], group=[10] * queries)
        for how in ("bootstrap", "t"):
            low, high = found.interval(0.95, how)["nDCG@10"]
            assert low < found.mean["nDCG@10"] < high
        widths.append(high - low)
    assert widths[1] < widths[0] / 3


def test_everything_can_be_written_as_json():
    found = evaluate(LABELS, SCORES, ["nDCG@10", "AP"], group=SIZES)
    document = json.loads(json.dumps(found.to_dict()))
    assert document["measures"]["AP"]["mean"] == 1.0
    assert document["measures"]["nDCG@10"]["spelling"] == "nDCG(dcg='exp-log2')@10"
    assert document["measures"]["nDCG@10"]["skipped"] == 1
    assert document["per_query"]["AP"] == [1.0, None, 1.0]
    assert "nDCG@10" in repr(found)
    assert "<table" in found._repr_html_()


def test_a_result_can_be_sent_to_another_process():
    found = evaluate(LABELS, SCORES, ["nDCG@10", "AP"], group=SIZES)
    again = pickle.loads(pickle.dumps(found))
    assert again.mean == found.mean
    assert again.tie_range() == found.tie_range()


@pytest.mark.parametrize(
    ("arguments", "options", "sentence"),
    [
        ((LABELS, SCORES), {}, r"labels require either qid= .* or group="),
        ((LABELS, SCORES), {"group": [3, 2]}, r"add up to 5, but there are 6 rows"),
        ((LABELS, SCORES), {"group": [1] * 6, "qid": LABELS}, "labels require either"),
        ((LABELS, SCORES[:-1]), {"group": SIZES}, r"scores must hold one number per row, got shape \(5,\) for 6 rows"),
        ((LABELS, [*SCORES[:-1], math.nan]), {"group": SIZES}, "scores must not be NaN, got NaN at row 5"),
        ((LABELS, ["a"] * 6), {"group": SIZES}, "scores must hold one number per row"),
        (([-1, *LABELS[1:]], SCORES), {"group": SIZES}, "labels must be 0 or more, got -1 at row 0"),
        ((LABELS, SCORES, []), {"group": SIZES}, "at least one measure"),
        ((LABELS, SCORES, ["RR", "MRR"]), {"group": SIZES}, "measures must differ, got RR, RR"),
        ((LABELS, SCORES), {"group": SIZES, "ties": "random"}, "ties must be one of"),
        ((LABELS, SCORES), {"group": SIZES, "empty": "two"}, "empty must be one of"),
        ((LABELS, SCORES), {"group": SIZES, "weight": [1, 2]}, "weight must hold one number per query"),
        ((Queries.from_arrays(np.zeros((6, 1)), group=SIZES), SCORES), {}, "have no labels"),
        ((Queries.from_arrays(np.zeros((6, 1)), LABELS, group=SIZES), SCORES), {"qid": LABELS}, "remove qid="),
    ],
)
def test_bad_input_is_one_sentence(arguments, options, sentence):
    with pytest.raises(RankwiseError, match=sentence) as caught:
        evaluate(*arguments, **options)
    assert "\n" not in str(caught.value)
    assert isinstance(caught.value, (DataError, MeasureError, RankwiseError))
