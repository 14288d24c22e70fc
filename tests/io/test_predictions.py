"""Files of embedding tools: scores of documents become runs, and means alone are refused with what they are."""

import gzip
import json

import numpy as np
import pytest

from rankwise import evaluate, significance
from rankwise.errors import DataError, FileFormatError, RankwiseError
from rankwise.io import from_trec, read_predictions
from rankwise.queries.queries import Queries

SCORES = {"q1": {"a": 0.25, "b": 0.5, "z": -1.0}, "7": {"c": 1e-3}}
MTEB = {"mteb_model_meta": {"model_name": "m", "revision": "r"}, "default": {"test": SCORES}}
LINES = "\n".join(
    json.dumps({"query_id": qid, "query": "text", "results": [{"corpus_id": d, "score": s} for d, s in own.items()]})
    for qid, own in SCORES.items()
)
QRELS = "q1 0 a 2\nq1 0 b 0\n7 0 c 1\n7 0 d 1\n"
RESULT = {"task_name": "NFCorpus", "mteb_version": "2.1", "scores": {"test": [{"main_score": 0.4, "ndcg_at_10": 0.4}]}}
OLD_RESULT = {"mteb_version": "0.0.2", "dataset_version": None, "test": {"ndcg_at_10": 0.4}}
CSVS = (
    "epoch,steps,cosine-Accuracy@1,cosine-NDCG@10\n1.0,500,0.5,0.6\n",
    "epoch,steps,MAP,MRR@10,NDCG@10\n-1,-1,0.5,0.6,0.7\n",
)


@pytest.fixture
def write(tmp_path):
    """Write a value as JSON, or a text as it is, into a file."""

    def call(name, content):
        path = tmp_path / name
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return path

    return call


def rows(run):
    return list(zip(run.qid, run.docid, run.score.tolist(), strict=True))


EXPECTED = [(qid, docid, score) for qid, own in SCORES.items() for docid, score in own.items()]


@pytest.mark.parametrize("content", [MTEB, SCORES, {"default": {"test": SCORES}}, LINES])
def test_every_form_is_the_same_run(write, content):
    path = write("predictions", content)
    assert rows(read_predictions(path)) == EXPECTED
    path.write_bytes(gzip.compress(path.read_bytes()))
    assert rows(read_predictions(path)) == EXPECTED


def test_ids_that_are_numbers_become_texts(write):
    line = {"query_id": 7, "query": "", "results": [{"corpus_id": 12345678901234567890123, "score": 1}]}
    assert rows(read_predictions(write("p.jsonl", line))) == [("7", "12345678901234567890123", 1.0)]


def test_a_subset_and_a_split_are_chosen_by_name(write):
    path = write("p.json", {**MTEB, "de": {"dev": {"q": {"x": 1.0}}, "test": SCORES}})
    assert rows(read_predictions(path, subset="de", split="dev")) == [("q", "x", 1.0)]
    with pytest.raises(DataError, match=r"p\.json has the subsets 'default', 'de': read_predictions\(path, subset="):
        read_predictions(path)
    with pytest.raises(DataError, match=r"has the splits 'dev', 'test': read_predictions\(path, split="):
        read_predictions(path, subset="de")
    with pytest.raises(DataError, match="has the subsets 'default', 'de': there is no 'fr'"):
        read_predictions(path, subset="fr")
    for flat in (SCORES, LINES):
        with pytest.raises(DataError, match="no subsets: leave out subset= and split="):
            read_predictions(write("flat", flat), subset="de")


def test_predictions_are_measured_and_tested_as_trec_eval_measures_them(write):
    pytrec_eval = pytest.importorskip("pytrec_eval")
    rng = np.random.default_rng(0)
    docs = [f"d{number}" for number in range(30)]
    qrels = {f"q{q}": {d: int(rng.integers(0, 3)) for d in rng.choice(docs, 12, replace=False)} for q in range(9)}
    runs = [
        {q: {d: float(rng.integers(0, 7)) for d in rng.choice(docs, 15, replace=False)} for q in qrels} for _ in "ab"
    ]
    beir = "query-id\tcorpus-id\tscore\n" + "".join(
        f"{q}\t{d}\t{y}\n" for q, own in qrels.items() for d, y in own.items()
    )
    found = {}
    for name, run in zip("ab", runs, strict=True):
        path = write(f"{name}_predictions.json", {"mteb_model_meta": {}, "default": {"test": run}})
        found[name] = evaluate(write("test.tsv", beir), path, ["ndcg_cut_10", "map", "recall_5"], like="trec_eval")
        theirs = pytrec_eval.RelevanceEvaluator(qrels, {"ndcg_cut.10", "map", "recall.5"}).evaluate(run)
        for measure in ("ndcg_cut_10", "map", "recall_5"):
            expected = {qid: values[measure] for qid, values in theirs.items()}
            assert dict(zip(found[name].qid, found[name][measure], strict=True)) == pytest.approx(expected, abs=1e-12)
    table = significance(found, baseline="a")
    assert table["wins"][0] + table["losses"][0] + table["ties"][0] == 9


def test_predictions_are_evaluated_and_compared_from_the_shell(write, run):
    judged = write("test.tsv", "query-id\tcorpus-id\tscore\nq1\ta\t2\nq1\tb\t0\n7\tc\t1\n")
    one = write("one_predictions.json", MTEB)
    other = write("two.jsonl", LINES.replace("0.25", "0.75"))
    code, out, err = run("evaluate", judged, one, other, "-m", "recip_rank", "-m", "Judged@3", "--json")
    assert (code, err) == (0, "")
    found = json.loads(out)
    means = [found["results"][str(path)]["measures"]["RR"]["mean"] for path in (one, other)]
    assert means == [0.75, 1.0]
    assert [test["difference"] for test in found["tests"]] == [0.25, 0.0]


def test_predictions_are_read_against_queries_with_document_ids(write):
    queries = Queries.from_arrays(
        np.zeros((4, 1)), [2, 0, 1, 0], qid=["q1", "q1", "7", "7"], docid=["a", "z", "c", "d"]
    )
    path = write("p.json", {"q1": {"a": 0.1, "z": 0.9}, "7": {"c": 0.5}})
    assert evaluate(queries, path, ["RR"])["RR"].tolist() == [0.5, 1.0]
    with pytest.raises(FileFormatError, match=r"p\.json: document 'b' of query 'q1' is not a judged document"):
        evaluate(queries, write("p.json", SCORES), ["RR"])


@pytest.mark.parametrize(
    ("content", "tool"),
    [
        (RESULT, "a result of MTEB's task 'NFCorpus'"),
        (OLD_RESULT, "a result of MTEB"),
        (CSVS[0], "a CSV of sentence-transformers' evaluator"),
        (CSVS[1], "a CSV of sentence"),
    ],
)
def test_a_file_of_means_is_no_scores_and_nothing_can_be_tested(write, content, tool):
    path = write("results", content)
    asked = f"is {tool}.* which holds only means over queries, by which nothing can be measured or tested again: pass"
    for use in (
        lambda: evaluate(write("qrels", QRELS), path),
        lambda: evaluate(write("letor.txt", "1 qid:q1 1:0.5 # a\n"), path),
        lambda: significance({"one": path, "two": path}),
    ):
        with pytest.raises(FileFormatError, match=asked):
            use()


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("", "p is empty, expected JSON"),
        ('{"q1": {"a": 1.0', "p, line 1, column 17: not JSON:"),
        ('{"q1": {"a": NaN}}', "expected numbers, got NaN"),
        ('{"q1": {"a": Infinity}}', "expected numbers, got Infinity"),
        ('{"q1": {"a": 1e999}}', "the score of document 'a' of query 'q1' must be a number, got inf"),
        ('{"q1": {"a": 1, "a": 2}}', "the key 'a' occurs twice in one object"),
        ('{"q1": {"a": "high"}}', "the score of document 'a' of query 'q1' must be a number, got 'high'"),
        ('{"q1": {"a": true}}', "a number, got True"),
        ('{"q1": {"a": null}}', "a number, got None"),
        ('{"q1": [1, 2]}', "the documents of query 'q1' must be an object, got a list of 2"),
        ("[1, 2]", "predictions must be an object, got a list of 2"),
        ('{"q1": {"a": ' + "9" * 5000 + "}}", "numbers are too long or objects nested too deep"),
        ('{"q1":' * 100_000, "numbers are too long or objects nested too deep"),
        ('{"query_id": "q", "results": 3}', "expected an object with 'results', a list, got 3"),
        ('{"query_id": "q"}', "expected an object with 'results', a list, got an object of 1"),
        ('{"query_id": null, "results": []}', "query_id must be a text, got None"),
        ('{"query_id": "q", "results": [3]}', "a result must be an object, got 3"),
        ('{"query_id": "q", "results": [{"corpus_id": "a"}]}', "the score of document 'a' must be a number, got None"),
        (LINES + "\n" + LINES, "p, line 3: query 'q1' is already on an earlier line"),
        (LINES + '\n{"q": {"a": 1}}', "expected an object with 'query_id' and 'results' on every line"),
        (LINES + "\n{", r"p, line 3, column 2: not JSON"),
        ('{"query_id": "q", "results": [' + '{"corpus_id": "a", "score": 1},' * 2 + "]}", "not JSON"),
    ],
)
def test_what_is_no_prediction_is_refused_in_a_sentence(tmp_path, content, sentence):
    path = tmp_path / "p"
    path.write_text(content)
    with pytest.raises(FileFormatError, match=sentence) as caught:
        read_predictions(path)
    assert "\n" not in str(caught.value)


def test_a_document_twice_in_a_line_is_named(write):
    results = [{"corpus_id": "a", "score": 1}, {"corpus_id": "a", "score": 2}]
    with pytest.raises(FileFormatError, match="document 'a' occurs twice in query 'q'"):
        read_predictions(write("p", {"query_id": "q", "results": results}))


# ------------------------------------------------------------------------------------------- what the tools wrote

# Five documents, three queries and one embedding model. b1 and b3 have the same text, so that their scores are equal.
JUDGED = {"q1": {"b1": 2, "b3": 0, "c2": 1}, "q2": {"c1": 1, "c2": 1, "b2": 0}, "b2": {"b1": 1, "b2": 1}}

# mteb 2.26.24, mteb.evaluate(model, task, prediction_folder=...): TASK_predictions.json, with line breaks
WRITTEN_BY_MTEB = """
{"mteb_model_meta": {"model_name": "no_model_name/available", "revision": "no_revision_available"}, "default": {"test":
{"q1": {"c1": 0.07455411553382874, "b2": 0.2235666811466217, "b1": 0.784955620765686, "b3": 0.784955620765686,
 "c2": 0.33825820684432983},
"q2": {"b2": 0.0005870237946510315, "b1": 0.0574607253074646, "c2": 0.5012894868850708, "c1": 0.6698557734489441,
 "b3": 0.0574607253074646},
"b2": {"c2": -0.0365280956029892, "c1": -0.023401107639074326, "b3": 0.22333338856697083, "b2": 0.8490011692047119,
 "b1": 0.22333338856697083}}}}
"""
# what it printed for a task with ignore_identical_ids = False, and for one with True, whose file is the same
PRINTED_BY_MTEB = {
    False: {"nDCG@3": 0.86313, "nDCG@10": 0.86313, "AP@10": 0.80556, "RR@10": 0.83333, "P@1": 0.66667, "R@3": 1.0},
    True: {"nDCG@3": 0.68551, "nDCG@10": 0.68551, "AP@10": 0.61111, "RR@10": 0.66667, "P@1": 0.33333, "R@3": 0.83333},
}

# sentence-transformers 6.2.0, InformationRetrievalEvaluator(..., write_predictions=True): *_predictions_cosine.jsonl
WRITTEN_BY_ST = """
{"query_id": "q1", "query": "oil on a bicycle", "results": [\
{"corpus_id": "b1", "score": 0.784955620765686}, {"corpus_id": "b3", "score": 0.784955620765686}, \
{"corpus_id": "c2", "score": 0.33825820684432983}, \
{"corpus_id": "b2", "score": 0.2235666811466217}, {"corpus_id": "c1", "score": 0.07455411553382874}]}
{"query_id": "q2", "query": "making coffee", "results": [\
{"corpus_id": "c1", "score": 0.6698557734489441}, {"corpus_id": "c2", "score": 0.5012894868850708}, \
{"corpus_id": "b1", "score": 0.0574607253074646}, \
{"corpus_id": "b3", "score": 0.0574607253074646}, {"corpus_id": "b2", "score": 0.0005870237946510315}]}
{"query_id": "b2", "query": "bent wheel", "results": [\
{"corpus_id": "b2", "score": 0.8490011692047119}, {"corpus_id": "b1", "score": 0.22333338856697083}, \
{"corpus_id": "b3", "score": 0.22333338856697083}, \
{"corpus_id": "c1", "score": -0.023401107639074326}, {"corpus_id": "c2", "score": -0.0365280956029892}]}
"""
PRINTED_BY_ST = {
    "Success@1": 1.0,
    "P@3": 0.6666666666666666,
    "R@1": 0.5,
    "nDCG(dcg='log2')@3": 0.9732402630493958,
    "RR@10": 1.0,
    "AP(norm='cutoff')@1": 1.0,
    "AP(norm='cutoff')@100": 0.9444444444444443,
}


def beir(labels):
    """Judgments as BEIR writes them."""
    rows = (f"{q}\t{d}\t{y}\n" for q, own in labels.items() for d, y in own.items())
    return "query-id\tcorpus-id\tscore\n" + "".join(rows)


@pytest.mark.parametrize("ignored", [False, True])
def test_what_mteb_wrote_measures_as_mteb_printed(write, ignored):
    qrels, path = write("test.tsv", beir(JUDGED)), write("Tiny_predictions.json", WRITTEN_BY_MTEB)
    printed = PRINTED_BY_MTEB[ignored]
    run = read_predictions(path, ignore_identical_ids=ignored)
    assert len(run) == (14 if ignored else 15)
    found = evaluate(*from_trec(qrels, run), list(printed), like="trec_eval")
    assert {title: round(value, 5) for title, value in found.mean.items()} == printed
    # MTEB 1 wrote the queries alone
    flat = write("Tiny_default_predictions.json", json.loads(WRITTEN_BY_MTEB)["default"]["test"])
    assert rows(read_predictions(flat, ignore_identical_ids=ignored)) == rows(run)


def test_what_sentence_transformers_wrote_measures_as_it_printed(write):
    # its measures are binary, and equal scores stay in the order of the file
    binary = {qid: {docid: min(y, 1) for docid, y in own.items()} for qid, own in JUDGED.items()}
    path = write("Information-Retrieval_evaluation_t_predictions_cosine.jsonl", WRITTEN_BY_ST)
    found = evaluate(write("test.tsv", beir(binary)), path, list(PRINTED_BY_ST), ties="stable")
    assert found.mean == pytest.approx(PRINTED_BY_ST, abs=1e-12)


def test_rankings_of_texts_are_refused_by_name(write):
    # sentence-transformers 6.2.0, ReciprocalRankFusionEvaluator(..., write_predictions=True)
    line = {"query_id": "q1", "query": "oil", "positive": ["Oil it."], "documents": ["Oil it.", "Prune."]}
    with pytest.raises(FileFormatError, match=r"a ranking of .* ReciprocalRankFusionEvaluator, which holds texts"):
        read_predictions(write("ReciprocalRankFusion_evaluation_predictions.jsonl", line))


# ------------------------------------------------------------------------------------------- values per query

TREC_EVAL = (
    "runid\tall\tmine\nnum_ret \tq1\t3\nmap   \tq1\t0.5\nmap\tq2\t0.25\nP_5\tq2\t0.2\nP_5\tq1\t0.4\nmap\tall\t0.375\n"
)


def test_values_that_other_tools_computed_are_tested(write):
    trec = write("a.txt", TREC_EVAL)
    dumped = write("b.json", {"q2": {"map": 0.5, "P_5": 0.2}, "q1": {"map": 0.75, "P_5": 0.4}})
    own = evaluate([1, 0, 1, 1], [2, 1, 2, 1], ["AP", "RR"], qid=["q2", "q2", "q1", "q1"])
    table = significance({"a": trec, "b": dumped}, baseline="a")
    assert dict(zip(table["measure"], table["difference"], strict=True)) == pytest.approx({"map": 0.25, "P_5": 0.0})
    stored = write("c.json", own.to_dict())
    assert significance({"one": stored, "two": stored})["difference"].tolist() == [0.0, 0.0]
    ranklib = write("d.txt", "NDCG@10   q1   0.5\nNDCG@10   q2   0.25\nNDCG@10   all   0.375\n")
    assert significance({"one": ranklib, "two": {"qid": ["q1", "q2"], "NDCG@10": [0.5, 0.5]}})["wins"].tolist() == [1]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("map q1\n", "line 1: expected a measure, a query and a value, got 2 fields"),
        ("map q1 high\n", "line 1: expected a number as the value, got 'high'"),
        ("map q1 0.5\nmap q1 0.5\n", "line 2: map of query 'q1' is already on an earlier line"),
        ("map q1 0.5\nP_5 q2 0.5\n", "lacks the value of 'P_5' for query 'q1'"),
        ("map all 0.5\n", "has no per-query values: expected lines of measure, query and value"),
        ('{"q1": {"map": "x"}}', "the value of 'map' for query 'q1' must be a number, got 'x'"),
        ('{"per_query": {"qid": ["q1"], "AP": [1, 2]}}', "'AP' has 2 values for 1 queries"),
        ('{"per_query": {"qid": [1, "1"], "AP": [1, 2]}}', "query ids must be unique, got '1' more than once"),
        ('{"per_query": 3}', "'per_query' must be an object, got 3"),
        ('{"q": {"map": 1}}\n{"q": {"map": 1}}', "line 2: expected a JSON object that maps queries to values"),
    ],
)
def test_what_holds_no_values_is_refused_in_a_sentence(write, content, sentence):
    path = write("v", content)
    with pytest.raises(FileFormatError, match=sentence):
        significance({"a": path, "b": path})
    with pytest.raises(RankwiseError, match="no such file"):
        significance({"a": path.with_name("nowhere"), "b": path})
