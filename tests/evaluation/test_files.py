"""Scores and judgments from files, in the forms that other tools write."""

import gzip

import numpy as np
import pytest

from rankwise.errors import FileFormatError, RankwiseError
from rankwise.evaluation.evaluation import evaluate

LETOR = """2 qid:a 1:0.1 # d1
0 qid:b 1:0.2 # d2
0 qid:a 1:0.3 # d3
1 qid:b 1:0.4 # d4
"""
# in the order of the rows: query a is ranked right, query b wrong
SCORES = [0.9, 0.8, 0.1, 0.7]
EXPECTED = {"RR": 0.75}

FORMS = {
    "a score a line": "\n".join(map(str, SCORES)),
    "with blank lines and CRLF": "\r\n\r\n".join(map(str, SCORES)) + "\r\n",
    "RankLib's score file": "a\t0\t0.9\nb\t0\t0.8\na\t1\t0.1\nb\t1\t0.7\n",
    "a TREC run": "b Q0 d2 1 0.8 x\nb Q0 d4 2 0.7 x\na Q0 d1 1 0.9 x\na Q0 d3 2 0.1 x\n",
    "a TREC run that did not retrieve everything": "b Q0 d2 1 0.8 x\nb Q0 d4 2 0.7 x\na Q0 d1 1 0.9 x\n",
}


@pytest.fixture
def judged(tmp_path):
    path = tmp_path / "judged.txt"
    path.write_text(LETOR)
    return path


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("packed", [False, True])
def test_scores_come_in_every_form_that_tools_write(tmp_path, judged, form, packed):
    path = tmp_path / "scores"
    text = FORMS[form].encode()
    path.write_bytes(gzip.compress(text) if packed else text)
    assert evaluate(judged, path, ["RR"]).mean == EXPECTED


def test_scores_from_an_array_beside_a_file_of_judgments(judged):
    assert evaluate(str(judged), np.array(SCORES), ["RR"]).mean == EXPECTED


def test_qrels_and_a_run_count_what_the_run_missed(tmp_path):
    (tmp_path / "qrels").write_text("a 0 d1 2\na 0 d3 0\na 0 d9 1\nb 0 d4 1\n")
    (tmp_path / "run").write_text("a Q0 d1 1 2.5 x\na Q0 d3 2 1.5 x\nb Q0 d7 1 3.0 x\nb Q0 d4 2 2.0 x\n")
    found = evaluate(tmp_path / "qrels", tmp_path / "run", ["AP", "R@5"], like="trec_eval")
    assert dict(zip(found.qid, found["AP"].tolist(), strict=True)) == {"a": 0.5, "b": 0.5}
    assert dict(zip(found.qid, found["R@5"].tolist(), strict=True)) == {"a": 0.5, "b": 1.0}


def test_qrels_and_a_run_agree_with_trec_eval(tmp_path):
    pytrec_eval = pytest.importorskip("pytrec_eval")
    rng = np.random.default_rng(4)
    qrels = {f"q{q}": {f"d{d}": int(rng.integers(0, 3)) for d in rng.choice(60, 20, replace=False)} for q in range(12)}
    run = {f"q{q}": {f"d{d}": float(rng.integers(0, 9)) for d in rng.choice(60, 25, replace=False)} for q in range(12)}
    (tmp_path / "qrels").write_text("".join(f"{q} 0 {d} {y}\n" for q, part in qrels.items() for d, y in part.items()))
    (tmp_path / "run").write_text("".join(f"{q} Q0 {d} 0 {s} x\n" for q, part in run.items() for d, s in part.items()))
    theirs = pytrec_eval.RelevanceEvaluator(qrels, {"ndcg_cut.10", "map", "recip_rank", "P.5", "recall.10"}).evaluate(
        run
    )
    ours = evaluate(tmp_path / "qrels", tmp_path / "run", ["nDCG@10", "AP", "RR", "P@5", "R@10"], like="trec_eval")
    for title, name in zip(ours.titles, ("ndcg_cut_10", "map", "recip_rank", "P_5", "recall_10"), strict=True):
        found = dict(zip(ours.qid, ours[title].tolist(), strict=True))
        assert found == pytest.approx({query: values[name] for query, values in theirs.items()}, abs=1e-12)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "is empty, expected 4 scores"),
        ("1\n2\n3\n", r"one score per judged document \(4\), got 3"),
        ("1\n2\nthree\n4\n", "line 3: expected a score, got 'three'"),
        ("1\n2\nnan\n4\n", "line 3: expected a score, got 'nan'"),
        ("1\n2 3\n4\n5\n", "line 2: expected 1 columns as in the first line, got 2"),
        ("1 2\n" * 4, "got 2 columns"),
        ("a\t0\t0.9\n", "lacks the score of 3 judged documents"),
        ("z\t0\t0.9\n", "line 1: query 'z' is not among the judged queries"),
        ("a\t2\t0.9\n", "line 1: expected an index below 2, got '2'"),
        ("a Q0 d77 1 0.9 x\n", "line 1: document 'd77' of query 'a' is not a judged document"),
    ],
)
def test_a_wrong_file_of_scores_is_named_with_its_line(tmp_path, judged, text, sentence):
    path = tmp_path / "scores.txt"
    path.write_text(text)
    with pytest.raises(FileFormatError, match=sentence) as caught:
        evaluate(judged, path, ["RR"])
    assert "scores.txt" in str(caught.value)


def test_missing_truncated_and_wrong_files_are_sentences(tmp_path, judged):
    with pytest.raises(RankwiseError, match="no such file"):
        evaluate(judged, tmp_path / "nowhere", ["RR"])
    with pytest.raises(RankwiseError, match="no such file"):
        evaluate(tmp_path / "nowhere", judged, ["RR"])
    with pytest.raises(FileFormatError, match="is a folder"):
        evaluate(tmp_path, judged, ["RR"])
    cut = tmp_path / "cut.gz"
    cut.write_bytes(gzip.compress(b"1\n" * 1000)[:-12])
    with pytest.raises(FileFormatError, match="cut off"):
        evaluate(judged, cut, ["RR"])
