"""PyTerrier's data frames: results with features to learn from, results and judgments to measure."""

import logging

import numpy as np
import pandas as pd
import pytest

from rankwise import evaluate
from rankwise.errors import DataError
from rankwise.io import from_pyterrier, from_trec
from rankwise.rankers.linear.ridge import RidgeRanker
from tests.rankers.test_pyterrier import LTRTransformer, judgments, results


def test_results_with_features_become_the_arrays_that_pyterrier_fits_on():
    found = results(0, 9)
    qrels = judgments(found)
    queries = from_pyterrier(found, qrels, feature_names=list("abcd"))
    X, y, _ = LTRTransformer._arrays(found, qrels)
    theirs = sorted(map(tuple, np.column_stack([X, y]).tolist()))
    assert sorted(map(tuple, np.column_stack([queries.X, queries.y]).tolist())) == theirs
    assert queries.judged.sum() == len(qrels)
    assert list(queries.docid) == list(found["docno"])
    assert queries.feature_names == tuple("abcd")
    assert from_pyterrier(found).y is None


def test_judged_documents_that_were_not_retrieved_have_no_features_and_are_counted(caplog):
    found = pd.DataFrame({"qid": ["1"], "docno": ["a"], "features": [np.array([1.0, 2.0])]})
    qrels = pd.DataFrame({"qid": ["1", "1"], "docno": ["a", "b"], "label": [1, 2]})
    with caplog.at_level(logging.WARNING, "rankwise"):
        queries = from_pyterrier(found, qrels)
    assert queries.y.tolist() == [1]
    assert "1 of 2 judged documents were not retrieved, left out" in caplog.text


def test_frames_are_measured_as_the_files_would_be(tmp_path):
    run = pd.DataFrame({"qid": ["1", "1", "2"], "docno": ["a", "b", "c"], "score": [2.0, 3.0, 1.0], "rank": [1, 0, 0]})
    qrels = pd.DataFrame({"qid": ["1", "1", "2"], "docno": ["a", "z", "c"], "label": [1, 2, 1], "iteration": "0"})
    (tmp_path / "run").write_text("1 Q0 a 1 2 t\n1 Q0 b 0 3 t\n2 Q0 c 0 1 t\n")
    (tmp_path / "qrels").write_text("1 0 a 1\n1 0 z 2\n2 0 c 1\n")
    asked = ["AP", "Bpref", "Judged@2", "nDCG@10"]
    ours = evaluate(*from_trec(qrels, run), asked, like=None)
    assert ours.to_dict() == evaluate(tmp_path / "qrels", tmp_path / "run", asked).to_dict()
    assert ours["Judged@2"].tolist() == [0.5, 1.0]


@pytest.mark.parametrize(
    ("frame", "sentence"),
    [
        ({"qid": ["1"], "docno": ["a"]}, "results must have a column 'features', got 'qid', 'docno'"),
        ({"qid": ["1"], "features": [[1.0]]}, "results must have a column 'docno'"),
        ({"qid": ["1", "1"], "docno": ["a", "b"], "features": [[1.0], [1.0, 2.0]]}, "got different lengths"),
        ({"qid": ["1"], "docno": ["a"], "features": [3.0]}, "arrays of one length"),
        ({"qid": ["1"], "docno": ["a"], "features": [["x"]]}, "features must hold arrays of numbers"),
        ({"qid": ["1"], "docno": ["a"], "features": [[np.nan]]}, "missing="),
    ],
)
def test_results_that_are_none_are_refused_in_a_sentence(frame, sentence):
    with pytest.raises(DataError, match=sentence):
        from_pyterrier(pd.DataFrame(frame))


def test_judgments_without_labels_or_with_nan_are_refused():
    run = pd.DataFrame({"qid": ["1"], "docid": ["a"], "score": [1.0]})
    with pytest.raises(DataError, match="the table must have a column 'label', got 'qid', 'docno'"):
        from_trec(pd.DataFrame({"qid": ["1"], "docno": ["a"]}), run)
    with pytest.raises(DataError, match="the column label must hold numbers, got nan at row 0"):
        from_trec(pd.DataFrame({"qid": ["1"], "docno": ["a"], "label": [np.nan]}), run)
    with pytest.raises(DataError, match="the column label must hold numbers: could not convert"):
        from_trec(pd.DataFrame({"qid": ["1"], "docno": ["a"], "label": ["good"]}), run)


# ------------------------------------------------------------------------------------------- PyTerrier itself


def test_a_pipeline_of_pyterrier_is_fitted_and_its_experiment_is_measured_alike():
    pt = pytest.importorskip("pyterrier")  # pipelines over data frames need no Java
    measures = pytest.importorskip("pyterrier.measures")
    found = results(0, 30).assign(score=0.0)
    qrels = judgments(found)
    topics = pd.DataFrame({"qid": found["qid"].unique()}).assign(query="words")
    train, valid, test = topics[:15], topics[15:22], topics[22:]
    retrieve = pt.Transformer.from_df(found.merge(topics, on="qid"))
    pipeline = retrieve >> pt.ltr.apply_learned_model(RidgeRanker(measure="nDCG@10"), form="ltr")
    pipeline.fit(train, qrels, valid, qrels)
    ranked = pipeline(test)
    asked = ["nDCG(dcg='log2')@10", "AP", "RR", "P@5", "R@5", "Rprec", "Bpref"]
    theirs = [
        measures.nDCG @ 10, measures.AP, measures.RR, measures.P @ 5, measures.R @ 5, measures.Rprec, measures.Bpref
    ]  # fmt: skip
    shown = pt.Experiment([retrieve, pipeline], test, qrels[qrels["qid"].isin(test["qid"])], theirs)
    for row, returned in enumerate((retrieve(test), ranked)):
        ours = evaluate(*from_trec(qrels, returned), asked, like="trec_eval")
        values = [shown[str(measure)][row] for measure in theirs]  # in the order in which they were asked for
        assert list(ours.mean.values()) == pytest.approx(values, abs=1e-12)
    queries = from_pyterrier(ranked, qrels)
    assert queries.X.tolist() == np.stack(ranked["features"].to_numpy()).tolist()
