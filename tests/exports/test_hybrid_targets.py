"""Hybrid search in every engine: the written configuration, computed as the engine does, orders as the ranker does."""

import json

import numpy as np
import pytest

import rankwise as rw
from rankwise.errors import RankwiseError
from rankwise.exports import targets
from rankwise.exports.formula import FusionFormula
from rankwise.rankers.fusion.normalizers import RULES

ENGINES = ("opensearch", "elasticsearch", "vespa", "solr")
PAIRS = [(engine, normalizer) for engine in ENGINES for normalizer in RULES[engine]]
VESPA = ["bm25(text)", "closeness(field,embedding)"]


@pytest.fixture(scope="module")
def queries():
    """Runs with documents that one sub-query did not return, sub-queries with one result, and constant columns."""
    base = rw.synthetic.make_hybrid(80, random_state=2)
    X = base.X.astype(np.float32).astype(np.float64)
    single, flat = base.rows_of(0), base.rows_of(1)
    X[single.start + 1 : single.stop, 0] = np.nan
    X[single.start, 0] = 12.5
    X[flat, 1] = 0.75
    return rw.Queries.from_arrays(X, base.y, qid=base.query_of_row, feature_names=base.feature_names, missing="keep")


def fitted(queries, engine, normalizer, **settings):
    fixed = {"weights": "equal"} if (engine, normalizer) == ("solr", "rrf") else {}
    return rw.HybridRanker(engine=engine, normalizer=normalizer, bootstrap=0, **fixed, **settings).fit(queries)


def exported(model, engine, sample=None, **options):
    names = VESPA if engine == "vespa" else None
    return rw.export(model, f"{engine}-hybrid", sample=sample, feature_names=names, **options)


def test_there_is_one_target_per_engine():
    assert sorted(name for name, kind in targets().items() if FusionFormula in kind.takes) == sorted(
        f"{engine}-hybrid" for engine in ENGINES
    )


@pytest.mark.parametrize(("engine", "normalizer"), PAIRS)
def test_the_engine_orders_as_the_ranker_does(queries, engine, normalizer):
    done = exported(fitted(queries, engine, normalizer), engine, queries)
    parity = done.parity
    assert parity.pairs > 10_000
    assert parity.inverted_beyond_float32 == 0
    assert parity.inverted <= 2
    if (engine, normalizer) != ("solr", "rrf"):  # which adds without the weight of a half
        assert parity.largest_difference <= 1e-5 * max(1.0, parity.largest_score)
    if engine == "vespa":
        assert parity.largest_difference < 1e-12
    assert done.notes
    assert not any("learned by the rules" in note for note in done.notes)


@pytest.mark.parametrize("combination", ["geometric_mean", "harmonic_mean"])
@pytest.mark.parametrize("normalizer", ["min_max", "l2"])
def test_opensearch_has_other_means(queries, normalizer, combination):
    model = fitted(queries, "opensearch", normalizer, combination=combination)
    done = exported(model, "opensearch", queries)
    assert done.parity.inverted_beyond_float32 == 0
    assert done.parity.largest_difference < 1e-5
    (processor,) = json.loads(done.text)["phase_results_processors"]
    assert processor["normalization-processor"]["combination"]["technique"] == combination


def test_a_pipeline_of_opensearch_has_the_weights_in_the_order_of_the_columns(queries):
    model = fitted(queries, "opensearch", "z_score")
    (processor,) = json.loads(exported(model, "opensearch").text)["phase_results_processors"]
    assert processor["normalization-processor"] == {
        "normalization": {"technique": "z_score"},
        "combination": {"technique": "arithmetic_mean", "parameters": {"weights": model.weights_.tolist()}},
    }
    ranks = fitted(queries, "opensearch", "rrf", rank_constant=30)
    (processor,) = json.loads(exported(ranks, "opensearch").text)["phase_results_processors"]
    assert processor["score-ranker-processor"]["combination"]["rank_constant"] == 30


def test_the_cases_that_engines_decide_for_themselves():
    """One document, equal scores, the smallest score, and documents that were not returned, by hand."""
    nan = np.nan
    X = np.array([[5.0, 0.9], [3.0, nan], [1.0, 0.9]])
    weights = [0.5, 0.5]

    def scored(engine, normalizer):
        queries = rw.Queries.from_arrays(X, [1, 0, 0], group=[3], missing="keep", feature_names=["bm25", "vector"])
        model = rw.HybridRanker(engine=engine, normalizer=normalizer, weights=weights).fit(queries)
        done = exported(model, engine)
        names = tuple(VESPA) if engine == "vespa" else ("bm25", "vector")
        found = targets()[f"{engine}-hybrid"]().score(done.files, X, names)
        np.testing.assert_allclose(found, model.predict(queries), rtol=1e-6)
        return found

    np.testing.assert_allclose(scored("opensearch", "min_max"), [1.0, 0.25, 0.5 * 0.001 + 0.5], rtol=1e-6)
    np.testing.assert_allclose(scored("elasticsearch", "min_max"), [1.0, 0.25, 0.5], rtol=1e-6)
    np.testing.assert_allclose(scored("vespa", "min_max"), [1.0, 0.25, 0.5], rtol=1e-12)
    np.testing.assert_allclose(scored("solr", "min_max"), [1.0, 0.3, 0.6], rtol=1e-6)
    # the mean of bm25 is 3 and its deviation 2: a score at the mean becomes the largest raw score
    np.testing.assert_allclose(scored("opensearch", "z_score"), [0.5 + 0.45, 2.5, 0.0005 + 0.45], rtol=1e-6)


def test_a_note_names_rules_that_differ_from_those_of_the_engine(queries):
    done = rw.export(rw.HybridRanker(bootstrap=0).fit(queries), "opensearch-hybrid", sample=queries)
    assert any("rules of the textbook" in note and "engine='opensearch'" in note for note in done.notes)
    assert done.parity.pairs > 10_000


@pytest.mark.parametrize(
    ("settings", "target", "found"),
    [
        ({"normalizer": "z_score"}, "elasticsearch-hybrid", "has no normalizer 'z_score'"),
        ({"normalizer": "l2"}, "vespa-hybrid", "has no normalizer 'l2'"),
        ({"normalizer": "none"}, "opensearch-hybrid", "has no normalizer 'none'"),
        ({"normalizer": "rrf", "weights": (0.25, 0.75)}, "solr-hybrid", "has no weights: fit with weights='equal'"),
        ({"combination": "geometric_mean"}, "solr-hybrid", "has no geometric_mean"),
        ({}, "solr", "without seeing its query.*opensearch-hybrid"),
        ({}, "c", "normalizer='none'"),
    ],
)
def test_what_an_engine_cannot_do_is_refused(queries, settings, target, found):
    model = rw.HybridRanker(bootstrap=0, **settings).fit(queries)
    with pytest.raises(RankwiseError, match=found) as error:
        rw.export(model, target)
    assert "\n" not in str(error.value)


def test_rankers_of_rows_have_no_hybrid_export(queries):
    plain = rw.Queries.from_arrays(np.nan_to_num(queries.X), queries.y, qid=queries.query_of_row)
    with pytest.raises(RankwiseError, match="requires a HybridRanker, got RidgeRanker"):
        rw.export(rw.RidgeRanker().fit(plain), "opensearch-hybrid")
    hybrid = rw.HybridRanker(engine="opensearch", bootstrap=0).fit(queries)
    with pytest.raises(RankwiseError, match="remove shift="):
        rw.export(hybrid, "opensearch-hybrid", shift=1.0)


def test_without_normalization_every_target_takes_it(queries):
    model = rw.HybridRanker(normalizer="none", bootstrap=0).fit(queries)
    namespace = {}
    exec(rw.export(model, "python", called="score").text, namespace)
    found = [namespace["score"](row) for row in queries.X.tolist()]
    np.testing.assert_allclose(found, model.predict(queries), rtol=1e-12)


def test_six_sub_queries_are_too_many_for_opensearch():
    queries = rw.synthetic.make_hybrid(20, columns=6, random_state=1)
    model = rw.HybridRanker(engine="opensearch", weights="equal").fit(queries)
    with pytest.raises(RankwiseError, match="2 to 5 sub-queries, got 6"):
        rw.export(model, "opensearch-hybrid")


def test_names_become_parameters_of_solr_and_rank_features_of_vespa(queries):
    model = rw.HybridRanker(weights="equal").fit(queries)
    with pytest.raises(RankwiseError, match="cannot be the name of a Solr parameter"):
        rw.export(model, "solr-hybrid", feature_names=["bm25", "x)}"])
    with pytest.raises(RankwiseError, match="is not valid in Vespa"):
        rw.export(model, "vespa-hybrid", feature_names=["bm25", "x) + (1"])
