"""Each preset equals its tool, on lists with ties and on degenerate lists; worked examples where it needs Java."""

import numpy as np
import pytest

from rankwise.errors import DataError, MeasureError
from rankwise.evaluation.evaluation import evaluate
from rankwise.measures import NDCG, parse
from rankwise.queries.queries import Queries
from tests.oracles import tools
from tests.strategies import at_length

MANY = at_length(120, 3)


def lists(count=MANY, *, grades=4, ties=True, smallest=1, seed=0):
    """Random lists: ties in most, one document in some, nothing relevant in some, everything relevant in some."""
    rng = np.random.default_rng(seed)
    for number in range(count):
        size = int(rng.integers(smallest, 12))
        labels = rng.integers(0, grades, size) if number % 6 else np.full(size, number % 12 // 6)
        scores = rng.permutation(size).astype(float)
        if ties and number % 3:
            scores = rng.integers(0, 4, size).astype(float)
        yield scores, labels


def named(scores, labels):
    """One query whose document ids run against the order of the input, for trec_eval's rule."""
    docid = [f"d{len(labels) - place:04d}" for place in range(len(labels))]
    return Queries.from_arrays(np.zeros((len(labels), 1)), labels, group=[len(labels)], docid=docid)


PARITY = [
    ("sklearn", "nDCG", lambda: tools.scikit_learn("nDCG"), {"smallest": 2}),
    ("sklearn", "nDCG@3", lambda: tools.scikit_learn("nDCG", 3), {"smallest": 2}),
    ("sklearn", "DCG@3", lambda: tools.scikit_learn("DCG", 3), {"smallest": 2}),
    ("sklearn", "AP", lambda: tools.scikit_learn("AP"), {}),
    ("trec_eval", "nDCG", lambda: tools.trec_eval("ndcg"), {}),
    ("trec_eval", "nDCG@3", lambda: tools.trec_eval("ndcg_cut.3"), {}),
    ("trec_eval", "AP", lambda: tools.trec_eval("map"), {}),
    ("trec_eval", "AP@3", lambda: tools.trec_eval("map_cut.3"), {}),
    ("trec_eval", "P@5", lambda: tools.trec_eval("P.5"), {}),
    ("trec_eval", "R@5", lambda: tools.trec_eval("recall.5"), {}),
    ("trec_eval", "Recall@5", lambda: tools.trec_eval("recall.5"), {}),
    ("trec_eval", "Rprec", lambda: tools.trec_eval("Rprec"), {}),
    ("trec_eval", "bpref", lambda: tools.trec_eval("bpref"), {}),
    ("trec_eval", "RR", lambda: tools.trec_eval("recip_rank"), {}),
    ("trec_eval", "Success@1", lambda: tools.trec_eval("success.1"), {}),
    ("lightgbm", "nDCG@3", lambda: tools.lightgbm("ndcg", 3), {}),
    ("lightgbm", "nDCG@10", lambda: tools.lightgbm("ndcg", 10), {}),
    ("lightgbm", "AP@3", lambda: tools.lightgbm("map", 3), {}),
    ("xgboost", "nDCG", lambda: tools.xgboost("ndcg"), {}),
    ("xgboost", "nDCG@3", lambda: tools.xgboost("ndcg@3"), {}),
    ("xgboost", "AP", lambda: tools.xgboost("map"), {"grades": 2}),
    ("xgboost", "AP@3", lambda: tools.xgboost("map@3"), {"grades": 2}),
    ("xgboost", "P@5", lambda: tools.xgboost("pre@5"), {"grades": 2}),
    ("catboost", "nDCG", lambda: tools.catboost("NDCG"), {}),
    ("catboost", "nDCG@3", lambda: tools.catboost("NDCG:top=3"), {}),
    ("catboost", "nDCG(dcg='exp-log2')@3", lambda: tools.catboost("NDCG:top=3;type=Exp"), {}),
    ("catboost", "DCG@3", lambda: tools.catboost("DCG:top=3"), {}),
    ("catboost", "AP", lambda: tools.catboost("MAP"), {}),
    ("catboost", "AP@3", lambda: tools.catboost("MAP:top=3"), {}),
    ("catboost", "P@5", lambda: tools.catboost("PrecisionAt:top=5"), {}),
    ("catboost", "R@2", lambda: tools.catboost("RecallAt:top=2"), {}),
    ("catboost", "RR", lambda: tools.catboost("MRR"), {}),
    ("ranx", "nDCG@3", lambda: tools.ranx("ndcg@3"), {"ties": False}),
    ("ranx", "nDCG(dcg='exp-log2')@3", lambda: tools.ranx("ndcg_burges@3"), {"ties": False}),
    ("ranx", "DCG@3", lambda: tools.ranx("dcg@3"), {"ties": False}),
    ("ranx", "AP", lambda: tools.ranx("map"), {"ties": False}),
    ("ranx", "AP@3", lambda: tools.ranx("map@3"), {"ties": False}),
    ("ranx", "P@5", lambda: tools.ranx("precision@5"), {"ties": False}),
    ("ranx", "R@5", lambda: tools.ranx("recall@5"), {"ties": False}),
    ("ranx", "RR@3", lambda: tools.ranx("mrr@3"), {"ties": False}),
    ("ranx", "Success@2", lambda: tools.ranx("hit_rate@2"), {"ties": False}),
]


@pytest.mark.parametrize(("like", "measure", "tool", "shape"), PARITY, ids=[f"{row[0]}-{row[1]}" for row in PARITY])
def test_a_preset_equals_its_tool(like, measure, tool, shape):
    try:
        theirs = tool()
    except ImportError as missing:
        pytest.skip(f"{like} is not installed: {missing}")
    for scores, labels in lists(**shape):
        ours = evaluate(named(scores, labels), scores, [measure], like=like)
        assert ours.mean[measure] == pytest.approx(theirs(scores, labels), abs=1e-12), (scores, labels)


@pytest.mark.parametrize("empty", ["one", "zero"])
def test_xgboost_counts_empty_queries_as_the_suffix_says(empty):
    pytest.importorskip("xgboost")
    theirs = tools.xgboost("ndcg@3" if empty == "one" else "ndcg@3-")
    for scores, labels in lists():
        ours = evaluate(labels, scores, ["nDCG@3"], group=[len(labels)], like="xgboost", empty=empty)
        assert ours.mean["nDCG@3"] == pytest.approx(theirs(scores, labels), abs=1e-12)


def test_lightgbm_adds_an_empty_query_without_its_weight():
    module = pytest.importorskip("lightgbm")
    cases = list(lists(30))
    scores, labels = (np.concatenate(part) for part in zip(*cases, strict=True))
    sizes = [len(labels) for _, labels in cases]
    weight = np.random.default_rng(1).uniform(0.5, 3, len(cases)).astype(np.float32)
    theirs = tools.lightgbm_mean(module, "ndcg", 3, scores, labels, sizes, np.repeat(weight, sizes))
    ours = evaluate(labels, scores, ["nDCG@3"], group=sizes, weight=weight, like="lightgbm")
    assert ours.mean["nDCG@3"] == pytest.approx(theirs, abs=1e-6)


def test_single_precision_ties_are_ties_where_the_tool_compares_in_single_precision():
    scores, labels = np.array([1.0, 1.0 + 1e-9]), np.array([0, 1])
    for like in ("trec_eval", "xgboost"):
        queries = named(scores, labels)
        assert evaluate(queries, scores, ["nDCG"], like=like).mean["nDCG"] < 1
    assert tools.trec_eval("ndcg")(scores, labels) < 1
    assert evaluate(queries, scores, ["nDCG"], like="lightgbm").mean["nDCG"] == 1


# RankLib needs Java; these values were printed by it: reordering the file changes a tied list's NDCG
@pytest.mark.parametrize(("labels", "value"), [([2, 0, 1], 0.9639), ([0, 1, 2], 0.5869)])
def test_ranklib_orders_equal_scores_as_the_file_does(labels, value):
    found = evaluate(labels, [1, 1, 1], ["nDCG"], group=[3], like="ranklib")
    assert found.mean["nDCG"] == pytest.approx(value, abs=5e-5)


def test_ranklib_divides_precision_by_a_short_list_and_counts_empty_queries_as_zero():
    found = evaluate([1, 0, 0, 0], [2, 1, 2, 1], ["P@10", "RR@10", "ERR@10"], group=[2, 2], like="ranklib")
    assert found.mean == {"P@10": 0.25, "RR@10": 0.5, "ERR@10": 1 / 32}
    assert found.given == {"P@10": 1, "RR@10": 1, "ERR@10": 1}


@pytest.mark.parametrize("spelling", [str, parse])
def test_ranklib_has_ap_of_whole_lists_only_and_rr_with_a_cut_off_only(spelling):
    labels, scores = [0, 1, 1], [3, 2, 1]
    for measure, value in (("AP", (1 / 2 + 2 / 3) / 2), ("RR@2", 0.5), ("nDCG", None), ("nDCG@2", None)):
        found = evaluate(labels, scores, [spelling(measure)], group=[3], like="ranklib")
        assert value is None or found.mean == pytest.approx({measure: value})
    with pytest.raises(MeasureError, match=r"^ranklib computes AP only without a cut-off, got AP@2$"):
        evaluate(labels, scores, [spelling("AP@2")], group=[3], like="ranklib")
    with pytest.raises(MeasureError, match=r"^ranklib computes RR only with a cut-off, got RR$"):
        evaluate(labels, scores, [spelling("RR")], group=[3], like="ranklib")


def test_trec_eval_orders_equal_scores_by_descending_document_id():
    labels, scores = [0, 1], [1.0, 1.0]
    for docid, value in ((["a", "b"], 1.0), (["b", "a"], 0.5), (["d9", "d10"], 0.5)):
        queries = Queries.from_arrays(np.zeros((2, 1)), labels, group=[2], docid=docid)
        assert evaluate(queries, scores, ["RR"], like="trec_eval").mean["RR"] == value


def test_trec_eval_without_document_ids_is_refused_only_where_it_matters():
    assert evaluate([0, 1], [1.0, 2.0], ["RR"], group=[2], like="trec_eval").mean["RR"] == 1
    not_retrieved = [1.0, -np.inf, -np.inf]
    assert evaluate([1, 0, 1], not_retrieved, ["AP"], group=[3], like="trec_eval").mean["AP"] == 0.5
    with pytest.raises(DataError, match="docid"):
        evaluate([0, 1], [1.0, 1.0], ["RR"], group=[2], like="trec_eval")


def test_scores_beyond_single_precision_are_huge_and_not_absent():
    found = evaluate([1, 0], [-1e300, 1e300], ["RR"], group=[2], like="trec_eval")
    assert found.mean["RR"] == 0.5


def test_the_worked_tie_example_by_descending_document_id():
    queries = Queries.from_arrays(np.zeros((3, 1)), [2, 0, 1], group=[3], docid=["a", "b", "c"])
    found = evaluate(queries, [1, 1, 1], ["nDCG", NDCG()], like="trec_eval")
    assert found.mean["nDCG"] == pytest.approx(0.7602, abs=5e-5)
    assert found.mean["nDCG(dcg='exp-log2')"] == pytest.approx(0.6885, abs=5e-5)


@pytest.mark.parametrize(
    ("like", "measure", "labels", "expected"),
    [
        ("lightgbm", "nDCG@3", [31, 0], "labels must be at most 30, got 31"),
        ("lightgbm", "nDCG@3", [1.5, 0], "labels must be integers, got 1.5"),
        ("xgboost", "AP", [2, 0], "0 and 1"),
        ("trec_eval", "AP", [0.5, 0], "labels must be integers, got 0.5"),
        ("ranx", "AP", [1.9, 0], "labels must be integers, got 1.9"),
    ],
)
def test_labels_that_the_tool_refuses_or_changes_in_silence_are_refused(like, measure, labels, expected):
    with pytest.raises(DataError, match=expected):
        evaluate(labels, [1, 0], [measure], group=[2], like=like)


def test_a_measure_that_the_tool_lacks_is_refused_by_name():
    with pytest.raises(MeasureError, match=r"lightgbm has no RR; .* nDCG, AP"):
        evaluate([1, 0], [1, 0], ["RR"], group=[2], like="lightgbm")
    with pytest.raises(MeasureError, match="like must be one of"):
        evaluate([1, 0], [1, 0], ["RR"], group=[2], like="lucene")
