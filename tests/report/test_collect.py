"""The collected numbers of a report against plain computations."""

import json
import re

import numpy as np
import pytest

import rankwise as rw
from rankwise import compare
from rankwise.analysis.importance import losses_by_query
from rankwise.report import query_lists as lists_of_reports
from rankwise.report.collect import collect, python_call
from rankwise.report.compact import finite, name_of, numbers, pack
from rankwise.report.query_lists import ReportLimits, query_lists
from tests.report.conftest import HOSTILE, rankers_for, unpacked


@pytest.fixture(scope="module")
def found(comparison):
    return collect(comparison, command="rankwise report lists")


def test_it_is_plain_json_without_nan(found):
    assert unpacked(pack(found)) == json.loads(json.dumps(found, allow_nan=False))


def test_the_results_table_says_what_the_comparison_says(found, comparison):
    for table, title in zip(found["results_table"], comparison.titles, strict=True):
        assert [row["ranker"] for row in table["rows"]] == comparison.table(title)["ranker"].tolist()
        for row in table["rows"]:
            assert row["mean"] == comparison.means[row["ranker"]][title]
            assert (row["low"], row["high"]) == comparison.intervals[row["ranker"]][title]
            assert row["mark"] == comparison.mark(row["ranker"], title)
            assert 0 <= row["drawn"]["low"] <= row["drawn"]["mean"] <= row["drawn"]["high"] <= 100
        tested = {row["ranker"]: row for row in comparison.tests if row["measure"] == title}
        for row in table["rows"]:
            if row["ranker"] != comparison.baseline:
                assert row["wins"] == tested[row["ranker"]]["wins"]
                assert row["p_corrected"] == tested[row["ranker"]]["p_corrected"]


def test_changes_are_differences_to_the_baseline_query_by_query(found, comparison):
    base = comparison.results["ridge"]["AP"]
    for name in comparison.rankers[1:]:
        gained = comparison.results[name]["AP"] - base
        said = found["changes"]["AP"][name]
        np.testing.assert_array_equal(said["values"], np.sort(gained[np.isfinite(gained)]))
        assert (said["won"], said["lost"]) == ((gained > 0).sum(), (gained < 0).sum())


def test_lists_have_every_ranker_s_own_ranks_and_scores(found, comparison):
    queries = comparison.queries
    place = {name: number for number, name in enumerate(queries.names())}
    assert len(found["lists"]["queries"]) == len(queries)
    for said in found["lists"]["queries"]:
        number = place[said["qid"]]
        rows = queries.rows_of(number)
        docid = [str(name) for name in queries.docid[rows]]
        where = [docid.index(name) for name in said["docid"]]
        np.testing.assert_array_equal(said["label"], queries.y[rows][where])
        for ranker, scores in enumerate(comparison.scores.values()):
            own = scores[rows]
            np.testing.assert_array_equal(said["score"][ranker], own[where])
            order = np.argsort(-own, kind="stable")
            ranks = np.empty(len(own), dtype=int)
            ranks[order] = np.arange(1, len(own) + 1)
            assert said["rank"][ranker] == ranks[where].tolist()


def test_contributions_add_up_to_the_score_less_its_mean(found, comparison):
    said = found["lists"]
    assert set(said["weights"]) == {"ridge", HOSTILE[0]}  # the linear rankers of this package
    for name, folds in said["weights"].items():
        ranker = comparison.rankers.index(name)
        for query in said["queries"]:
            w, mean = np.array(folds[query["fold"] - 1]), np.array(query["mean"])
            scores = np.array(query["score"][ranker])
            parts = np.array([w @ (np.array(x) - mean) for x in query["x"]])
            np.testing.assert_allclose(parts, scores - scores.mean(), atol=1e-12 * (1 + np.abs(scores).max()))


def test_steps_contribute_too(found, comparison):
    """RankBoost is no linear ranker, and its contributions add up to the score less its mean as well."""
    said = found["lists"]
    ranker = comparison.rankers.index("boosted")
    for query in said["queries"]:
        assert set(query["parts"]) == {"boosted"}
        scores = np.array(query["score"][ranker])
        parts = np.array([sum(part) for part in query["parts"]["boosted"]])
        np.testing.assert_allclose(parts, scores - scores.mean(), atol=1e-12 * (1 + np.abs(scores).max()))
    few = query_lists(comparison, ReportLimits(features=900))
    shown = [one for query in few["queries"] for one in [query["mean"], *query["x"], *query["parts"]["boosted"]]]
    count = sum(len(one) for one in shown if one is not None)
    assert 0 < few["explained"] < few["documents"]
    assert count + sum(len(w) for folds in few["weights"].values() for w in folds) <= 900


def test_sums_of_many_trees_are_not_explained(monkeypatch):
    queries = rw.make_lists(20, documents=5, features=3, random_state=1)
    rankers = {"ridge": rw.RidgeRanker(), "trees": rw.BoostedRanker(trees=5, folds=2, depth=2)}
    found = rw.compare(rankers, queries, ["nDCG@10"], folds=3)
    assert all(set(query["parts"]) == {"trees"} for query in query_lists(found, ReportLimits())["queries"])
    monkeypatch.setattr(lists_of_reports, "_TERMS", 1)
    assert all(query["parts"] == {} for query in query_lists(found, ReportLimits())["queries"])


def test_queries_that_change_most_come_first_and_others_are_counted(comparison):
    few = query_lists(comparison, ReportLimits(queries=5, documents=2, features=10_000))
    base = comparison.results["ridge"].values
    change = np.nan_to_num(np.max([np.abs(one.values - base) for one in comparison.results.values()], axis=(0, 1)))
    names = np.array(comparison.queries.names(), dtype=object)
    kept = {query["qid"] for query in few["queries"]}
    left = ~np.isin(names, list(kept))
    assert few["total"] == len(names)
    assert few["same"] == (change[np.isfinite(base).any(axis=0)] == 0).sum()
    assert change[~left].min() >= change[left].max()
    for query in few["queries"]:
        assert all(min(ranks) <= 2 for ranks in zip(*query["rank"], strict=True))
        assert query["left_out"] == query["size"] - len(query["docid"])


def test_features_are_kept_for_the_top_of_lists_only_where_room_is_scarce(comparison):
    for limit in (0, 50, 200, 400, 10**6):
        said = query_lists(comparison, ReportLimits(features=limit))
        count = sum(len(x) for query in said["queries"] for x in [query["mean"], *query["x"]] if x is not None)
        count += sum(len(w) for folds in said["weights"].values() for w in folds)
        assert count <= limit
        for query in said["queries"]:
            for x, *ranks in zip(query["x"], *query["rank"], strict=True):
                assert (x is not None) == (min(ranks) <= said["explained"])
        assert bool(said["weights"]) == bool(said["features"]) == (said["explained"] > 0)


def test_curves_hold_the_measure_at_every_cut_off(found, comparison):
    ndcg, precision = found["cutoffs"]
    for name, scores in comparison.scores.items():
        for k in (1, 5, 20):
            expected = rw.evaluate(comparison.queries, scores, [f"nDCG@{k}", f"P@{k}"]).mean
            assert ndcg["lines"][name][k - 1] == pytest.approx(expected[f"nDCG@{k}"], rel=1e-4)
            assert precision["lines"][name][k - 1] == pytest.approx(expected[f"P@{k}"], rel=1e-4)


def test_histories_are_those_of_the_models(found, comparison):
    said = {one["ranker"]: one for one in found["histories"]}
    assert set(said) == {"ridge", HOSTILE[0], "boosted"}
    boosted = said["boosted"]
    assert (boosted["across"], boosted["lines"]) == ("round", ["train", "validation"])
    for fold, model in zip(boosted["folds"], comparison.models["boosted"], strict=True):
        np.testing.assert_allclose(fold["lines"]["train"], model.history_["train"], rtol=1e-4)
    assert said["ridge"]["logarithmic"]


def test_weights_are_in_units_of_the_spread_within_queries(found, comparison):
    queries = comparison.queries
    centered = np.concatenate([query.X - query.X.mean(axis=0) for query in queries])
    scaled = np.array([model.coef_ for model in comparison.models["ridge"]]) * centered.std(axis=0)
    scaled /= np.linalg.norm(scaled, axis=1, keepdims=True)
    said = dict(zip(found["weights"]["features"], found["weights"]["rankers"]["ridge"]["mean"], strict=True))
    expected = dict(zip(queries.feature_names, scaled.mean(axis=0), strict=True))
    assert said == pytest.approx({name: expected[name] for name in said}, abs=2e-3)


def test_importance_is_each_fold_s_model_on_its_own_test_part(found, comparison):
    fold_of, queries = comparison.fold_of_query, comparison.queries
    measure = comparison.results["ridge"].measures[0]
    parts = [
        losses_by_query(
            model, queries[np.flatnonzero(fold_of == fold)], measure, repeats=found["importance"]["shuffles"]
        )
        for fold, model in enumerate(comparison.models["ridge"], start=1)
    ]
    expected = dict(zip(queries.feature_names, np.nanmean(np.hstack(parts), axis=1), strict=True))
    said = found["importance"]["rankers"]["ridge"]
    assert dict(zip(said["features"], said["loss"], strict=True)) == pytest.approx(expected, abs=1e-4)
    assert "regression" not in found["importance"]["rankers"]  # a model that no folder keeps: a resumed run has none


def test_mistakes_are_what_the_analysis_says(found, comparison):
    errors = rw.analysis.label_pair_errors(comparison.queries, comparison.scores)
    for name in comparison.rankers:
        np.testing.assert_allclose(
            found["label_pairs"]["rankers"][name]["share"], errors["share"][errors["ranker"] == name], rtol=1e-3
        )
    two = {name: comparison.scores[name] for name in ("ridge", "boosted")}
    gains = rw.analysis.gain_by_group(comparison.queries, two, "nDCG@5", by="documents")
    np.testing.assert_allclose(found["groups"][0]["rankers"]["boosted"]["mean"], gains["gain"], rtol=1e-3, atol=1e-9)


def test_certificates_are_about_the_first_measure_and_scores_get_the_hold_out(found, comparison):
    said = {one["ranker"]: one for one in found["certificates"]}
    each = found["delta"] / len(comparison.rankers)
    first, model = comparison.first, comparison.models["ridge"][0]
    own = rw.certify(first.test, model, comparison.titles[0], train=first.train, delta=each)
    assert said["ridge"]["summary"] == own.summary()
    assert len(said["ridge"]["rows"]) == len(own.rows)
    assert {row["kind"] for row in said["first feature"]["rows"]} == {"hold-out"}
    assert {row["kind"] for row in said["regression"]["rows"]} == {"hold-out"}


def test_the_call_gives_the_same_comparison_again(tmp_path):
    lists = rw.make_lists(20, documents=5, features=3, random_state=1)
    rw.write_letor(lists, tmp_path / "lists.txt")
    rankers = {"ridge": rw.RidgeRanker(), "bits": rw.AdaRank(rounds=3), "trees": rw.RankBoost(rounds=2, pairs="query")}
    rankers |= {"declared": rw.RankBoost(rounds=2), "slam": rw.SLAMPerceptron()}
    options = {"folds": 3, "baseline": "bits", "level": 0.9, "random_state": 2, "empty": "zero"}
    options |= {"grids": {"slam": {"epochs": [1, 2]}, "ridge": {"alpha": [1.0, 2.0]}}, "reading": {"missing": "zero"}}
    first = compare(rankers, tmp_path / "lists.txt", ["AP", "nDCG@3"], **options)
    names: dict = {}
    exec(python_call(first), names)
    again = names["found"].to_dict()
    for document in (again, expected := first.to_dict()):
        for cell in document["cells"]:
            del cell["seconds"], cell["memory"]
    assert again == expected


def test_a_single_ranker_and_scores_alone_have_a_report_too(lists):
    alone = collect(compare({"one": lists.X[:, 1]}, lists, "AP"))
    assert alone["changes"] == {"AP": {}}
    assert alone["histories"] == []
    assert alone["importance"]["rankers"] == {}
    assert alone["weights"]["rankers"] == {}


def test_a_resumed_comparison_gives_the_same_numbers(lists, tmp_path):
    rankers = rankers_for(lists) | {"lightgbm": "lightgbm"}
    rankers = {name: rankers[name] for name in ("ridge", HOSTILE[0], "regression", "first feature", "lightgbm")}
    first = compare(rankers, lists, ["nDCG@5"], folds=3, resume=tmp_path)
    second = compare(rankers, lists, ["nDCG@5"], folds=3, resume=tmp_path)
    assert second.models["regression"] == [None] * 3
    np.testing.assert_array_equal(
        first.models["lightgbm"][1].predict(lists), second.models["lightgbm"][1].predict(lists)
    )
    assert collect(first) == collect(second)


def test_numbers_keep_their_digits_and_are_never_nan():
    assert [finite(value) for value in (np.nan, np.inf, 1.0, 0.1234567, np.float32(0.1), -3e20)] == [
        None,
        None,
        1,
        0.1234567,
        float(np.float32(0.1)),
        -3e20,
    ]
    assert numbers([1, 2.50001]) == [1, 2.50001]


def test_what_is_packed_cannot_end_a_script_and_comes_out_as_it_was():
    text = pack([*HOSTILE, "\u2028"])
    assert re.fullmatch("[A-Za-z0-9+/=]+", text)
    assert unpacked(text) == [*HOSTILE, "\u2028"]


def test_query_ids_of_any_kind_have_a_name():
    assert [name_of(one) for one in (7, "7", 2.5, ("a", 1), True)] == [7, "7", "2.5", "('a', 1)", "True"]
