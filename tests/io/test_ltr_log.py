"""Features that Elasticsearch and OpenSearch log, joined with judgments; what is no such log is refused."""

import json
import logging

import numpy as np
import pandas as pd
import pytest

from rankwise.errors import DataError, FileFormatError, RankwiseError
from rankwise.io import read_ltr_log
from rankwise.io.any_file import kind_of, read_any


def entry(**values):
    """What one document's log entry holds; None: the feature did not match."""
    return [{"name": name} if value is None else {"name": name, "value": value} for name, value in values.items()]


def response(**documents):
    """A search response; each document with the features of its log entry."""
    hits = [
        {"_index": "i", "_id": docid, "_score": 1.0, "fields": {"_ltrlog": [{"main": entry(**values)}]}}
        for docid, values in documents.items()
    ]
    return {"took": 3, "timed_out": False, "hits": {"total": {"value": len(hits)}, "max_score": 1.0, "hits": hits}}


RAMBO = response(a={"title": 9.5, "body": 1}, b={"title": None, "body": 2.5})
ROCKY = response(c={"body": 4.0, "title": -1.5})
LABELS = {"rambo": {"a": 3, "b": 0}, "rocky": {"c": 4}}


def same(queries):
    """Whether these are the queries of the two responses, missing values as 0."""
    assert queries.names() == ["rambo", "rocky"]
    assert list(queries.docid) == ["a", "b", "c"]
    assert queries.feature_names == ("title", "body")
    assert queries.X.tolist() == [[9.5, 1.0], [0.0, 2.5], [-1.5, 4.0]]
    assert queries.y is None or queries.y.tolist() == [3, 0, 4]
    return True


def test_every_form_of_responses_and_judgments_gives_the_same_queries(tmp_path):
    by_query = {"rambo": RAMBO, "rocky": ROCKY}
    lines = "\n".join(json.dumps({"qid": qid, **one}) for qid, one in by_query.items())
    (tmp_path / "by_query.json").write_text(json.dumps(by_query, indent=2))
    (tmp_path / "lines.jsonl").write_text(lines)
    (tmp_path / "msearch.json").write_text(json.dumps({"took": 1, "responses": [RAMBO, ROCKY]}))
    (tmp_path / "qrels").write_text("rambo 0 a 3\nrambo 0 b 0\nrocky 0 c 4\n")
    frame = pd.DataFrame({"qid": ["rambo", "rambo", "rocky"], "docno": ["a", "b", "c"], "label": [3, 0, 4]})
    for judgments in (LABELS, tmp_path / "qrels", frame, None):
        for given, qid in (
            (by_query, None),
            (tmp_path / "by_query.json", None),
            (tmp_path / "lines.jsonl", None),
            ([{"qid": "rambo", **RAMBO}, {"qid": "rocky", **ROCKY}], None),
            ([RAMBO, ROCKY], ["rambo", "rocky"]),
            (tmp_path / "msearch.json", ["rambo", "rocky"]),
        ):
            queries = read_ltr_log(given, judgments, qid=qid, missing="zero")
            assert same(queries)
            assert (queries.y is None) == (judgments is None)
    assert kind_of(tmp_path / "by_query.json") == kind_of(tmp_path / "lines.jsonl") == "json"
    assert same(read_any(tmp_path / "by_query.json", judgments=tmp_path / "qrels", missing="zero"))


def test_pages_of_one_query_are_put_together():
    queries = read_ltr_log([RAMBO, ROCKY], qid=["all", "all"], missing="zero")
    assert queries.sizes.tolist() == [3]
    with pytest.raises(DataError, match="document 'a' occurs twice in query 'all'"):
        read_ltr_log([RAMBO, RAMBO], qid=["all", "all"])


def test_what_scripts_log_besides_is_no_feature():
    """The plugins append it to the entry: a name, and an object in place of a number."""
    more = [{"name": "extra_logging", "value": {"dup_feature": 3.5}}]
    logged = {"main": [*entry(title=9.5, body=1), *more]}
    answer = {"hits": {"hits": [{"_id": "a", "fields": {"_ltrlog": [logged], "year": [1982]}}]}}
    queries = read_ltr_log({"rambo": answer})
    assert queries.feature_names == ("title", "body")
    assert queries.X.tolist() == [[9.5, 1.0]]
    own = response(a={"extra_logging": 2.0})  # a feature may have this name
    assert read_ltr_log({"rambo": own}).X.tolist() == [[2.0]]


def test_features_without_a_value_follow_the_policy():
    with pytest.raises(DataError, match=r"NaN.*title|title.*NaN|missing="):
        read_ltr_log({"rambo": RAMBO})
    assert np.isnan(read_ltr_log({"rambo": RAMBO}, missing="keep").X[1, 0])
    assert read_ltr_log({"rambo": RAMBO}, missing="min").X[1, 0] == 9.5
    # a feature that was added to the set later is missing in entries before
    late = {"old": response(a={"title": 1.0}), "new": response(a={"title": 1.0, "age": 7.0})}
    assert read_ltr_log(late, missing="zero").X.tolist() == [[1.0, 0.0], [1.0, 7.0]]


def test_features_are_chosen_and_ordered_by_name():
    queries = read_ltr_log({"rocky": ROCKY}, features=["title"])
    assert (queries.feature_names, queries.X.tolist()) == (("title",), [[-1.5]])
    with pytest.raises(DataError, match="feature 'age' was never logged, only 'body', 'title'"):
        read_ltr_log({"rocky": ROCKY}, features=["age"])


def test_one_of_several_log_entries_is_chosen_by_name():
    for entries in ([{"main": entry(a=1.0), "other": entry(b=2.0)}], [{"main": entry(a=1.0)}, {"other": entry(b=2.0)}]):
        two = {"hits": {"hits": [{"_id": "x", "fields": {"_ltrlog": entries}}]}}
        assert read_ltr_log({"q": two}, log="other").feature_names == ("b",)
        with pytest.raises(DataError, match="document 'x' has the log entries 'main', 'other': choose one by log="):
            read_ltr_log({"q": two})
        with pytest.raises(FileFormatError, match="expected an object with 'third', a list"):
            read_ltr_log({"q": two}, log="third")


def test_hits_without_a_judgment_follow_the_policy(caplog):
    some = {"rambo": {"a": 3, "gone": 1}, "rocky": {"c": -1}}
    both = {"rambo": RAMBO, "rocky": ROCKY}
    with pytest.raises(DataError, match="document 'b' of query 'rambo' has no judgment: pass unjudged='drop'"):
        read_ltr_log(both, some, missing="zero")
    dropped = read_ltr_log(both, some, missing="zero", unjudged="drop")
    assert (dropped.names(), list(dropped.docid), dropped.judged) == (["rambo"], ["a"], None)
    zero = read_ltr_log(both, some, missing="zero", unjudged="zero")
    assert (zero.y.tolist(), zero.judged.tolist()) == ([3, 0, 0], [True, False, False])
    with caplog.at_level(logging.WARNING, "rankwise"):
        read_ltr_log({"rambo": RAMBO}, {"rambo": {"a": 3, "b": 1, "gone": 1}}, missing="zero")
    assert "1 of 3 judged documents have no logged features, left out" in caplog.text
    with pytest.raises(DataError, match="no document in common: the responses begin with query 'rambo', the judgments"):
        read_ltr_log({"rambo": RAMBO}, {"Rambo": {"a": 3}})
    with pytest.raises(RankwiseError, match="'unjudged' parameter of"):
        read_ltr_log({"rambo": RAMBO}, LABELS, unjudged="ignore")


HIT = '{"_id": "a", "fields": {"_ltrlog": [{"main": %s}]}}'


def hits(text):
    return f'{{"q": {{"hits": {{"hits": [{text}]}}}}}}'


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("", "log.json is empty, expected JSON"),
        (hits(HIT % "[]")[:-5], "line 1, column .*: not JSON"),
        (hits(HIT % '[{"name": "t", "value": NaN}]'), "expected numbers, got NaN"),
        (
            hits(HIT % '[{"name": "t", "value": 1e999}]'),
            "document 'a': the value of 't' must be a number, got inf",
        ),
        (hits(HIT % '[{"name": "t", "value": "9"}]'), "the value of 't' must be a number, got '9'"),
        (hits(HIT % '[{"name": "t", "value": null}]'), "the value of 't' must be a number, got None"),
        (hits(HIT % '[{"name": "t"}, {"name": "t"}]'), "feature 't' occurs twice in the log entry"),
        (hits(HIT % '[{"value": 1}]'), "document 'a': expected an object with 'name', a text"),
        (hits(HIT % "[3]"), "expected an object with 'name', a text, got 3"),
        (hits(HIT % "3"), "expected an object with 'main', a list, got 3"),
        (hits('{"_id": "a", "_id": "b"}'), "the key '_id' occurs twice in one object"),
        (hits('{"_id": "a"}'), "document 'a': expected an object with 'fields', an object, got an object of 1"),
        (hits('{"_id": "a", "fields": {}}'), "expected an object with '_ltrlog', a list"),
        (hits('{"_id": "a", "fields": {"_ltrlog": []}}'), "document 'a' has the log entries none: choose one by log="),
        (hits('{"_id": "a", "fields": {"_ltrlog": [{"m": []}, {"m": []}]}}'), "a log entry occurs twice in _ltrlog"),
        (hits('{"fields": {}}'), "the _id of a hit must be a text, got None"),
        (hits("7"), "a hit must be an object, got 7"),
        ('{"q": {"hits": []}}', "query 'q': expected an object with 'hits', an object"),
        ('{"q": {"hits": {"hits": {}}}}', "query 'q', hits: expected an object with 'hits', a list"),
        ('{"q": 3}', "query 'q': expected an object with 'hits', an object, got 3"),
        ('{"q": {"error": {"type": "parsing_exception"}, "status": 400}}', "is an error of the engine.*parsing_excep"),
        ('{"q": {"timed_out": true, "hits": {"hits": []}}}', "timed out in the engine"),
        ('{"hits": {"hits": []}}', "does not say which query it answers: expected a member 'qid', or give qid="),
        ("[1]", "responses by query id must be an object, got 1"),
        ('{"q": {"hits": {"hits": []}}}', "hold no judged documents"),
        ("null", "responses by query id must be an object, got None"),
    ],
)
def test_what_is_no_log_is_refused_in_a_sentence(tmp_path, content, sentence):
    path = tmp_path / "log.json"
    path.write_text(content)
    with pytest.raises((FileFormatError, DataError), match=sentence) as caught:
        read_ltr_log(path)
    assert "\n" not in str(caught.value)


def test_query_ids_beside_responses_are_counted():
    with pytest.raises(DataError, match="qid must hold one query id per response, got 1 ids for 2 responses"):
        read_ltr_log([RAMBO, ROCKY], qid=["rambo"])
    with pytest.raises(FileFormatError, match="a query id must be a text, got None"):
        read_ltr_log([RAMBO], qid=[None])
    with pytest.raises(FileFormatError, match="query 'rambo': the label of document 'a' must be a number, got 'x'"):
        read_ltr_log({"rambo": RAMBO}, {"rambo": {"a": "x"}})


def test_a_log_is_inspected_converted_trained_on_and_evaluated_from_the_shell(tmp_path, run, monkeypatch):
    rng = np.random.default_rng(1)
    logged, qrels = {}, []
    for query in range(12):
        values = rng.normal(size=(6, 2))
        logged[f"q{query}"] = response(**{f"d{d}": {"title": x, "body": y} for d, (x, y) in enumerate(values.tolist())})
        qrels += [f"q{query} 0 d{d} {int(x > 0)}" for d, (x, _) in enumerate(values)]
    (tmp_path / "log.json").write_text(json.dumps(logged))
    (tmp_path / "qrels").write_text("\n".join(qrels))
    monkeypatch.chdir(tmp_path)
    judged = ("log.json", "--judgments", "qrels")
    code, out, err = run("inspect", *judged)
    assert (code, err) == (0, "")
    assert "12 queries, 72 documents, 2 features" in out
    assert run("convert", "log.json", "log.txt", "--judgments", "qrels")[0] == 0
    assert (tmp_path / "log.txt").read_text().count("qid:") == 72
    code, _, err = run("inspect", "log.txt", "--judgments", "qrels")
    assert (code, err) == (2, "rankwise: --judgments requires a JSON log of features, got log.txt\n")
    assert run("train", *judged, "--ranker", "RidgeRanker", "-o", "m.rankwise")[0] == 0
    code, out, _ = run("evaluate", *judged, "--model", "m.rankwise", "-m", "Rprec", "--json")
    assert code == 0
    assert json.loads(out)["results"]["m.rankwise"]["measures"]["Rprec"]["mean"] > 0.9
    code, _, err = run("train", "log.json", "-o", "n.rankwise")
    assert code != 0
    assert "labels" in err


# ------------------------------------------------------------------------------------------- Solr


def of_solr(member="[features]", **documents):
    """A response of Solr; each document with the text of its logged features."""
    docs = [{"id": docid, member: text} for docid, text in documents.items()]
    return {"responseHeader": {"status": 0}, "response": {"numFound": len(docs), "start": 0, "docs": docs}}


def test_solrs_log_is_read_dense_and_sparse():
    rocky = of_solr(c="body=4.0,title=-1.5")
    dense = {"rambo": of_solr(a="title=9.5,body=1.0", b="title=0.0,body=2.5"), "rocky": rocky}
    same(read_ltr_log(dense, LABELS))
    sparse = {"rambo": of_solr(a="title=9.5,body=1.0", b="body=2.5"), "rocky": of_solr(c="title=-1.5,body=4.0")}
    same(read_ltr_log(sparse, LABELS, missing="zero"))
    assert np.isnan(read_ltr_log(sparse, LABELS, missing="keep").X[1, 0])
    called = {name: json.loads(json.dumps(given).replace("[features]", "fv")) for name, given in dense.items()}
    same(read_ltr_log(called, LABELS, log="fv"))
    nothing = of_solr(d="")
    assert np.isnan(read_ltr_log({"q": of_solr(a="title=1.0"), "r": nothing}, None, missing="keep").X[1, 0])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (of_solr("other", a="title=1"), "has no logged features: ask for fl=id"),
        (of_solr(a="title"), "expected feature=number, each once, got 'title'"),
        (of_solr(a="title=x"), "expected feature=number, each once, got 'title=x'"),
        (of_solr(a="title=1,title=2"), "expected feature=number, each once"),
        (of_solr(a=None), "has no logged features"),
        ({"response": {"docs": [{"[features]": "title=1"}]}}, "the id of a document"),
        ({"response": [], "responseHeader": {}}, "response"),
    ],
)
def test_what_is_no_log_of_solr_is_refused(given, message):
    with pytest.raises(RankwiseError, match=message):
        read_ltr_log({"q": given})


def test_a_response_of_solr_needs_its_query():
    with pytest.raises(DataError, match="does not say which query it answers"):
        read_ltr_log(of_solr(a="title=1"))
