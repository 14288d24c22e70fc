"""Documents that nobody judged: Bpref and Judged leave them out or count them, and equal the tools that TREC uses."""

import math
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankwise import load
from rankwise.errors import DataError, MeasureError
from rankwise.evaluation.evaluation import evaluate
from rankwise.io.convert import write_parts
from rankwise.io.trec import Qrels, Run, from_trec, read_qrels, write_qrels
from rankwise.measures import AP, NDCG, RR, Bpref, Judged, P, R, Rprec, Success, parse
from rankwise.queries.queries import Queries
from rankwise.rankers.linear.ridge import RidgeRanker
from tests.oracles.measures import DEFINITIONS, stable_order, tie_orders

# a label of None: not judged
partly_judged = st.lists(st.tuples(st.sampled_from([0.0, 0.5, 1.0]), st.sampled_from([None, 0, 0, 1, 2])), max_size=6)


@given(partly_judged, st.sampled_from([1, 2, 4]))
def test_ties_are_the_mean_the_minimum_and_the_maximum_over_all_orders(documents, cutoff):
    scores, labels = [score for score, _ in documents], [label for _, label in documents]
    y, judged = [label or 0 for label in labels], np.array([label is not None for label in labels], dtype=bool)
    for measure in (Bpref(), Judged() @ cutoff):
        if (not any(y) and measure == Bpref()) or not labels:
            assert math.isnan(measure(scores, y, judged=judged))
            continue
        values = [DEFINITIONS[measure.name](order, measure.cutoff) for order in tie_orders(scores, labels)]
        found = {ties: measure(scores, y, ties=ties, judged=judged) for ties in ("pessimistic", "optimistic")}
        assert found == pytest.approx({"pessimistic": min(values), "optimistic": max(values)}, abs=1e-12)
        assert measure(scores, y, judged=judged) == pytest.approx(math.fsum(values) / len(values), abs=1e-12)
        stable = DEFINITIONS[measure.name](stable_order(scores, labels), measure.cutoff)
        assert measure(scores, y, ties="stable", judged=judged) == pytest.approx(stable, abs=1e-12)


def columns(kind, by_query):
    """A `Run` or `Qrels` of {query: {document: number}}."""
    rows = [(qid, docid, float(value)) for qid, documents in by_query.items() for docid, value in documents.items()]
    qid, docid, values = zip(*rows, strict=True)
    return kind(qid, docid, np.array(values))


def random_judgments(rng, queries=6, pool=16, unjudged=False):
    """Runs with ties in every other query; judged documents that no run has, and the other way round.

    ``unjudged`` allows queries whose labels are all negative.
    """
    qrels, run = {}, {}
    for number in range(queries):
        judged = rng.choice(pool, rng.integers(1, pool), replace=False)
        retrieved = rng.choice(pool, rng.integers(1, pool), replace=False)
        highest, lowest = rng.integers(0, 4), rng.integers(-2, 1)  # nothing relevant, or nothing else, in some
        labels = rng.integers(min(lowest, highest), highest + 1, len(judged))
        if not unjudged:
            labels[0] = max(labels[0], 0)  # trec_eval crashes where every label of a query is negative
        qrels[f"q{number}"] = {f"d{d}": int(label) for d, label in zip(judged, labels, strict=True)}
        scores = rng.integers(0, 5, len(retrieved)) if number % 2 else rng.normal(size=len(retrieved))
        run[f"q{number}"] = {f"d{d}": float(score) for d, score in zip(retrieved, scores, strict=True)}
    return qrels, run


NAMES = {
    "Rprec": "Rprec",
    "bpref": "bpref",
    "map": "map",
    "recip_rank": "recip_rank",
    "ndcg": "ndcg",
    "ndcg_cut_5": "ndcg_cut.5",
    "map_cut_5": "map_cut.5",
    "P_5": "P.5",
    "recall_5": "recall.5",
    "success_5": "success.5",
}


@pytest.mark.parametrize("rel", [1, 2])
def test_measures_called_as_in_trec_eval_equal_it_to_the_last_digit(rel):
    pytrec_eval = pytest.importorskip("pytrec_eval")
    rng = np.random.default_rng(rel)
    for _ in range(40):
        qrels, run = random_judgments(rng)
        theirs = pytrec_eval.RelevanceEvaluator(qrels, set(NAMES.values()), relevance_level=rel).evaluate(run)
        ours = evaluate(*from_trec(columns(Qrels, qrels), columns(Run, run)), list(NAMES), like="trec_eval", rel=rel)
        for name in NAMES:
            found = dict(zip(ours.qid, ours[name].tolist(), strict=True))
            if name.startswith("ndcg"):  # the logarithms of two libraries of mathematics
                assert found == pytest.approx({qid: values[name] for qid, values in theirs.items()}, rel=1e-14)
            else:
                assert found == {qid: values[name] for qid, values in theirs.items()}, name


def test_a_query_without_a_relevant_or_without_another_judged_document_is_that_of_trec_eval():
    pytrec_eval = pytest.importorskip("pytrec_eval")
    qrels = {"none": {"a": 0, "b": 0}, "all": {"a": 1, "b": 2, "c": 1}, "unseen": {"y": 1, "z": 0}}
    run = {qid: {"b": 3.0, "u": 2.0, "a": 1.0} for qid in qrels}
    theirs = pytrec_eval.RelevanceEvaluator(qrels, {"Rprec", "bpref"}).evaluate(run)
    ours = evaluate(*from_trec(columns(Qrels, qrels), columns(Run, run)), ["Rprec", "Bpref"], like="trec_eval")
    for title, name in (("Rprec", "Rprec"), ("Bpref", "bpref")):
        assert ours[title].tolist() == [theirs[qid][name] for qid in ours.qid]
    assert ours["Bpref"].tolist() == [0.0, 2 / 3, 0.0]
    assert ours.given == {"Rprec": 1, "Bpref": 1}


def binary_preference(labels, scores, rel):
    """bpref as trec_eval 9 defines it in m_bpref.c, document by document; negative labels mean not judged."""
    relevant = sum(label >= rel for label in labels.values())
    other = sum(0 <= label < rel for label in labels.values())
    # higher scores first, compared in single precision, and of equal ones the document whose id comes last
    ranking = sorted(scores, key=lambda docid: (np.float32(scores[docid]), docid.encode()), reverse=True)
    total, above = 0.0, 0
    for docid in ranking:
        label = labels.get(docid, -1)
        if 0 <= label < rel:
            above += 1
        elif label >= rel:
            total += 1.0 - min(above, relevant) / min(other, relevant) if above else 1.0
    return total / relevant if relevant else total


def rare_cases():
    """Judgments and runs on which pytrec_eval crashes or that are rare; by name."""
    run = {"b": 3.0, "u": 2.0, "a": 1.0, "c": 1.0}
    return {
        "all relevant": ({"a": 1, "b": 2, "c": 1}, run),
        "none relevant": ({"a": 0, "b": 0}, run),
        "none judged": ({"a": -1, "b": -2}, run),  # trec_eval and pytrec_eval crash
        "one document, not judged": ({"a": -1}, run),  # both crash
        "relevant or not judged": ({"a": 1, "b": -1, "c": 2}, run),
        "no judged document retrieved": ({"y": 1, "z": 0}, run),
        "more relevant than others": ({"a": 1, "b": 0, "c": 1, "u": 1, "x": 2}, run),
        "more others than relevant": ({"a": 1, "b": 0, "c": 0, "u": 0, "x": 0}, run),
        "equal in single precision": ({"a": 1, "b": 0}, {"a": 1.0 + 1e-9, "b": 1.0}),
    }


@pytest.mark.parametrize("rel", [1, 2])
@pytest.mark.parametrize("case", rare_cases())
def test_bpref_follows_the_definition_where_pytrec_eval_crashes_too(case, rel):
    labels, scores = rare_cases()[case]
    queries, found = from_trec(columns(Qrels, {"q": labels}), columns(Run, {"q": scores}))
    ours = evaluate(queries, found, ["bpref", "map", "Rprec", "recip_rank"], like="trec_eval", rel=rel)
    assert ours["bpref"].tolist() == [binary_preference(labels, scores, rel)]
    if not any(label >= rel for label in labels.values()):
        assert set(ours.mean.values()) == {0.0}


@pytest.mark.parametrize("rel", [1, 2, 3])
def test_bpref_of_random_judgments_follows_the_definition(rel):
    rng = np.random.default_rng(10 + rel)
    for _ in range(60):
        qrels, run = random_judgments(rng, unjudged=True)
        ours = evaluate(*from_trec(columns(Qrels, qrels), columns(Run, run)), ["bpref"], like="trec_eval", rel=rel)
        expected = [binary_preference(qrels[qid], run[qid], rel) for qid in ours.qid]
        assert ours["bpref"].tolist() == pytest.approx(expected, abs=1e-15)


def test_values_that_trec_eval_9_0_4_printed():
    """Its own output, -q with nine decimals: ties, unjudged and negative documents, a query of labels 0."""
    qrels = {"1": {"a": 2, "b": 0, "c": 1, "d": -1, "e": 1}, "2": {"a": 0, "b": 0}, "3": {"a": 1, "b": 1}}
    run = {
        "1": {"b": 1.0, "c": 1.0, "d": 3.0, "e": 0.5, "u": 2.0},
        "2": {"a": 1.0},
        "3": {"u": 1.0, "b": 1.0 + 1e-9, "a": 0.5},
    }
    printed = {
        "map": [0.244444444, 0.0, 0.583333333],
        "Rprec": [0.333333333, 0.0, 0.5],
        "bpref": [0.333333333, 0.0, 1.0],
        "recip_rank": [0.333333333, 0.0, 0.5],
        "P_5": [0.4, 0.0, 0.4],
        "recall_5": [0.666666667, 0.0, 1.0],
        "ndcg_cut_10": [0.283255415, 0.0, 0.693426404],
        "success_1": [0.0, 0.0, 0.0],
    }
    ours = evaluate(*from_trec(columns(Qrels, qrels), columns(Run, run)), list(printed), like="trec_eval")
    assert {name: ours[name].round(9).tolist() for name in printed} == printed


def test_judged_and_objects_of_ir_measures_equal_it():
    ir_measures = pytest.importorskip("ir_measures")
    asked = [ir_measures.Judged @ 3, ir_measures.Judged @ 10, ir_measures.Rprec, ir_measures.Bpref(rel=2)]
    assert [parse(one) for one in asked] == [Judged() @ 3, Judged() @ 10, Rprec(), Bpref(rel=2)]
    rng = np.random.default_rng(8)
    for _ in range(20):
        qrels, run = random_judgments(rng)
        # documents in the order in which ir-measures' own provider puts equal scores
        run = {qid: dict(sorted(documents.items())) for qid, documents in run.items()}
        qrels = {qid: {docid: max(0, y) for docid, y in labels.items()} for qid, labels in qrels.items()}
        found = evaluate(*from_trec(columns(Qrels, qrels), columns(Run, run)), asked[:2], ties="stable")
        for title, measure in zip(found.titles, asked[:2], strict=True):
            theirs = {one.query_id: one.value for one in ir_measures.iter_calc([measure], qrels, run)}
            assert dict(zip(found.qid, found[title].tolist(), strict=True)) == theirs


def test_a_negative_label_says_that_a_document_was_not_judged():
    run = columns(Run, {"q": {"a": 3.0, "b": 2.0, "c": 1.0}})
    queries, scores = from_trec(columns(Qrels, {"q": {"a": -1, "b": 0, "c": 1}}), run)
    assert queries.judged.tolist() == [False, True, True]
    assert evaluate(queries, scores, ["Judged@2", "Bpref"]).mean == {"Judged@2": 0.5, "Bpref": 0.0}
    judged, _ = from_trec(columns(Qrels, {"q": {"a": 0, "b": 0, "c": 1}}), run)
    assert judged.judged is None  # nothing to say
    assert evaluate(judged, scores, ["Judged@2"]).mean == {"Judged@2": 1.0}


def test_complete_judgments_are_judged_and_have_a_binary_preference():
    labels, scores = [0, 1, 0, 1, 1], [5, 4, 3, 2, 1]
    found = evaluate(labels, scores, ["Judged@3", "Bpref", "Rprec"], group=[5])
    assert found.mean == {"Judged@3": 1.0, "Bpref": pytest.approx((0.5 + 0 + 0) / 3), "Rprec": pytest.approx(1 / 3)}


@pytest.mark.parametrize(
    ("spelling", "measure"),
    [
        ("Recall@10", R() @ 10),
        ("recall_10", R() @ 10),
        ("P_10", P() @ 10),
        ("P.10", P() @ 10),
        ("ndcg_cut_10", NDCG(gain="linear") @ 10),
        ("ndcg_cut.10", NDCG(gain="linear") @ 10),
        ("map", AP()),
        ("map_cut_5", AP() @ 5),
        ("recip_rank", RR()),
        ("success_5", Success() @ 5),
        ("rprec", Rprec()),
        ("bpref", Bpref()),
        ("judged@5", Judged() @ 5),
    ],
)
def test_names_of_trec_eval_mean_what_they_mean_there(spelling, measure):
    assert parse(spelling) == measure
    if measure.name != "Judged":
        assert evaluate([1, 0], [1, 0], [spelling], group=[2], like="trec_eval").measures == (measure,)


@pytest.mark.parametrize("spelling", ["P_0", "P_", "recall_ten", "ndcg_cut", "P_1_000", "success_5@3", "P_9999999999"])
def test_near_misses_of_such_names_are_refused(spelling):
    with pytest.raises(MeasureError, match=r"cutoff|cut-off|spelled|no measure is called|needs a cut-off"):
        parse(spelling).all_params()


def test_no_ranker_is_trained_for_a_measure_that_labels_do_not_decide():
    queries = Queries.from_arrays(np.eye(3), [0, 1, 0], group=[3])
    with pytest.raises(MeasureError, match="Judged@10 does not depend on labels: no ranker can be trained for it"):
        RidgeRanker(measure="Judged@10", alpha=1.0).fit(queries)
    assert RidgeRanker(measure="Bpref", alpha=1.0).fit(queries).score(queries) == 1.0


def test_the_score_of_a_ranker_and_its_certificate_leave_unjudged_documents_out_as_evaluate_does():
    rng = np.random.default_rng(2)
    labels = np.tile([0.0, 0.0, 0.0, 1.0], 12)
    train, held = (
        Queries.from_arrays(rng.normal(size=(48, 2)) + labels[:, None], labels, group=[4] * 12) for _ in range(2)
    )
    partly = held.with_judged(np.tile([False, True, False, True], 12))
    model = RidgeRanker(measure="Bpref", alpha=1.0).fit(train)
    measured = evaluate(partly, model, ["Bpref"]).mean["Bpref"]
    assert model.score(partly) == measured
    assert model.score(held) == evaluate(held, model, ["Bpref"]).mean["Bpref"] < measured
    assert f"({1 - measured:.3f} on 12 hold-out queries)" in model.certificate(holdout=partly).summary()


# ------------------------------------------------------------------------------------------- the fact travels


def partly(rows=6):
    """Three queries of two documents, every third document not judged."""
    labels = np.array([0, 1, 1, 0, 0, 2], dtype=float)
    docid = [f"d{row}" for row in range(rows)]
    queries = Queries.from_arrays(np.arange(rows)[:, None], labels, qid=["a", "a", "b", "c", "c", "b"], docid=docid)
    return queries.with_judged([False, True, True, False, True, True])


def test_selections_joins_copies_and_files_keep_it(tmp_path):
    queries = partly()
    assert queries[1:].judged.tolist() == [True, True, False, True]  # b, b, c, c
    assert queries[[2, 0]].judged.tolist() == [False, True, False, True]
    other = Queries.from_arrays([[0.0]], [1], qid=["z"], docid=["d"])
    assert Queries.concat([queries, other]).judged.tolist() == [*queries.judged, True]
    assert Queries.concat([other, queries]).judged.tolist() == [True, *queries.judged]
    assert pickle.loads(pickle.dumps(queries)).judged.tolist() == queries.judged.tolist()
    queries.save(tmp_path / "q.rankwise")
    assert load(tmp_path / "q.rankwise").judged.tolist() == queries.judged.tolist()
    assert queries.with_labels(np.ones(6)).judged is None
    assert queries.with_judged(None).judged is None
    values = [evaluate(one, np.arange(6.0), ["Judged@1"]).mean["Judged@1"] for one in (queries, queries[:])]
    assert values == [1.0, 1.0]
    assert evaluate(queries, -np.arange(6.0), ["Judged@1"]).mean["Judged@1"] == pytest.approx(1 / 3)


def test_what_cannot_hold_it_does_not_make_judgments_of_it(tmp_path):
    queries = partly()
    for name, write in (("LETOR text", lambda: queries_letor(queries, tmp_path)), ("a table", lambda: frame(queries))):
        with pytest.raises(DataError, match=f"{name} cannot say that 2 documents of these queries were not judged"):
            write()
    with pytest.raises(DataError, match="a data set in parts cannot say that 2 documents"):
        write_parts(queries, tmp_path / "parts")
    assert list(tmp_path.iterdir()) == []
    write_qrels(queries, tmp_path / "qrels")
    assert list(read_qrels(tmp_path / "qrels").docid) == ["d1", "d2", "d5", "d4"]


def queries_letor(queries, folder):
    from rankwise.io.letor.write import write_letor

    write_letor(queries, folder / "q.txt")


def frame(queries):
    from rankwise.io.tables.frames import to_frame

    to_frame(queries)


@pytest.mark.parametrize(
    ("judged", "sentence"),
    [
        ([True] * 5, r"judged must hold True or False for each of 6 rows, got bool of shape \(5,\)"),
        ([1] * 6, r"for each of 6 rows, got int64 of shape \(6,\)"),
        ([True, False, True, True, True, True], "documents that were not judged must have label 0, got 1 at row 1"),
        ("yes", r"for each of 6 rows, got <U3 of shape \(\)"),
    ],
)
def test_what_says_nothing_of_every_document_is_refused(judged, sentence):
    with pytest.raises(DataError, match=sentence):
        partly().with_judged(judged)
