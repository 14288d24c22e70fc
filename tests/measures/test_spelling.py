"""Measures are read and printed in ir-measures' spelling, and mean the same there."""

import numpy as np
import pytest

from rankwise.errors import MeasureError
from rankwise.evaluation.evaluation import evaluate
from rankwise.measures import AP, DCG, ERR, NDCG, RBP, RR, P, parse
from rankwise.queries.queries import Queries


@pytest.mark.parametrize(
    ("spelling", "measure", "printed", "title"),
    [
        ("nDCG@10", NDCG() @ 10, "nDCG(dcg='exp-log2')@10", "nDCG@10"),
        ("ndcg@10", NDCG() @ 10, "nDCG(dcg='exp-log2')@10", "nDCG@10"),
        ("nDCG(dcg='log2')@5", NDCG(gain="linear") @ 5, "nDCG(dcg='log2')@5", "nDCG(dcg='log2')@5"),
        ("nDCG(dcg='exp-letor')", NDCG(discount="letor"), "nDCG(dcg='exp-letor')", "nDCG(dcg='exp-letor')"),
        (
            "nDCG(gains={0:0,1:1,2:5})@3",
            NDCG(gain={0: 0, 1: 1, 2: 5}) @ 3,
            "nDCG(dcg='log2',gains={0:0,1:1,2:5})@3",
            "nDCG(dcg='log2',gains={0:0,1:1,2:5})@3",
        ),
        ("DCG", DCG(), "DCG(dcg='exp-log2')", "DCG"),
        (" MAP ", AP(), "AP", "AP"),
        ("AP(rel=2)@100", AP(rel=2) @ 100, "AP(rel=2)@100", "AP(rel=2)@100"),
        ("MRR@10", RR() @ 10, "RR@10", "RR@10"),
        ("Precision@5", P() @ 5, "P@5", "P@5"),
        ("RBP(p=0.9)", RBP(p=0.9), "RBP(rel=1,p=0.9)", "RBP(p=0.9)"),
        ("ERR(max_grade=2)@20", ERR(max_grade=2) @ 20, "ERR(max_grade=2)@20", "ERR(max_grade=2)@20"),
    ],
)
def test_texts_objects_and_prints_agree(spelling, measure, printed, title):
    assert parse(spelling) == measure
    assert repr(measure) == printed
    assert measure.title == title
    assert parse(printed) == parse(title) == measure


@pytest.mark.parametrize(
    ("spelling", "sentence"),
    [
        ("nDCG@0", r"parameter of nDCG must be an int in \[1, inf\)"),
        ("nDCG@ten", "spelled"),
        ("nDGC@10", "no measure is called 'nDGC'.*known: AP, Bpref, DCG"),
        ("nDCG(10)", "spelled"),
        ("nDCG(dcg='log3')", "dcg must be one of"),
        ("AP(relevance=2)", "AP has no parameter 'relevance'; it knows: rel"),
        ("nDCG@10@5", "spelled"),
        ("__import__('os')", "spelled|no measure"),
        ("", "spelled"),
        ("(" * 500, "spelled"),
        (10, "a measure must be a string"),
        ("Pairs@3", "takes no cut-off"),
        ("ERR(max_grade=-1)", "max_grade"),
        ("RBP(p=1.5)", r"float in \(0, 1\)"),
        ("AP(rel=0)", r"float in \(0, inf\)"),
        ("nDCG(gains={0:5,1:1})", "grow with the label"),
        ("nDCG(discount=(0.5,1))", "never grow"),
    ],
)
def test_a_wrong_spelling_is_one_sentence(spelling, sentence):
    with pytest.raises(MeasureError, match=sentence):
        parse(spelling)


def test_precision_without_a_cut_off_says_how_to_write_one():
    with pytest.raises(MeasureError, match="P needs a cut-off, for example P@10"):
        P()([1, 2], [0, 1])


def test_a_gain_that_overflows_is_refused_with_another_one_offered():
    with pytest.raises(MeasureError, match=r"overflows at label 1330: use the linear gain, nDCG\(dcg='log2'\)"):
        NDCG()([1, 2], [1330, 0])
    assert NDCG(gain="linear")([1, 2], [1330, 0]) == pytest.approx(1 / np.log2(3))
    with pytest.raises(MeasureError, match="label 3 is not in the table of gains"):
        NDCG(gain={0: 0, 1: 1})([1, 2], [3, 0])
    with pytest.raises(MeasureError, match="ERR knows grades up to 4 but got label 5"):
        ERR()([1, 2], [5, 0])


def test_real_labels_are_not_truncated():
    assert NDCG()([2, 1], [0.5, 1.9]) < 1
    assert NDCG()([1, 2], [0.5, 1.9]) == 1
    assert AP()([1, 2], [0.5, 1.9]) == 1  # 0.5 is below rel = 1


def test_custom_discounts_end_in_zero():
    assert DCG(gain="linear", discount=(1, 0.5))([3, 2, 1], [1, 1, 1]) == 1.5


IR_MEASURES = [
    "nDCG@10",
    "nDCG(dcg='exp-log2')@5",
    "nDCG",
    "AP",
    "AP(rel=2)",
    "AP(rel=2)@5",
    "P(rel=2)@5",
    "R@5",
    "RR(rel=2)",
    "Success@2",
    "ERR@5",
]


@pytest.fixture(scope="module")
def ir_measures():
    found = pytest.importorskip("ir_measures")
    try:
        found.parse_measure("AP@5")
    except AttributeError as error:  # 0.4.3 uses what Python 3.14 has no more
        pytest.skip(f"this ir-measures does not parse on this Python: {error}")
    return found


@pytest.mark.parametrize("spelling", IR_MEASURES)
def test_an_ir_measures_object_means_what_ir_measures_means(spelling, ir_measures):
    theirs = ir_measures.parse_measure(spelling)
    rng = np.random.default_rng(3)
    rows = [(q, f"d{place:03d}", int(rng.choice([0, 0, 1, 2, 3]))) for q in "123456" for place in range(12)]
    scores = rng.permutation(len(rows)).astype(float)  # no ties: its providers break them differently
    qrels = [ir_measures.Qrel(q, docid, label) for q, docid, label in rows]
    run = [ir_measures.ScoredDoc(q, docid, score) for (q, docid, _), score in zip(rows, scores, strict=True)]
    try:
        expected = {metric.query_id: metric.value for metric in ir_measures.iter_calc([theirs], qrels, run)}
    except (RuntimeError, ValueError, OSError) as error:
        pytest.skip(f"no provider of {spelling} is installed: {error}")
    queries = Queries.from_arrays(
        np.zeros((len(rows), 1)), [row[2] for row in rows], qid=[row[0] for row in rows], docid=[row[1] for row in rows]
    )
    found = evaluate(queries, scores, [theirs], empty="zero")
    # gdeval, the provider of ERR, prints five decimals
    assert dict(zip(found.qid, found.values[0], strict=True)) == pytest.approx(expected, abs=1e-5)


def test_what_ir_measures_has_and_rankwise_has_not_is_refused():
    ir_measures = pytest.importorskip("ir_measures")
    with pytest.raises(MeasureError, match="judged_only"):
        parse(ir_measures.nDCG(judged_only=True) @ 10)
    with pytest.raises(MeasureError, match="graded"):
        parse(ir_measures.RBP)
    assert parse(ir_measures.RBP(rel=1)) == RBP()


def test_the_printed_form_means_the_same_in_ir_measures(ir_measures):
    for measure in (NDCG() @ 10, NDCG(gain="linear"), AP(rel=2) @ 5, RR() @ 10, P() @ 5, RBP(), ERR() @ 20):
        assert parse(ir_measures.parse_measure(repr(measure))) == measure
