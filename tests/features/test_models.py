"""Models that learned from a table take tables everywhere, and say what they cannot do."""

import numpy as np
import polars as pl
import pytest

import rankwise as rw
from rankwise.errors import DataError, RankwiseError
from rankwise.features.table import as_table
from tests.features.shop import ROLES, shop


@pytest.fixture(scope="module")
def learned():
    """(builder, training queries, model, table)."""
    frame = shop()
    builder = rw.FeatureBuilder().fit(frame, **ROLES)
    queries = builder.transform(frame)
    return builder, queries, rw.RidgeRanker(alpha=1.0).fit(queries), frame


def test_tables_queries_and_arrays_have_the_same_scores(learned):
    builder, queries, model, frame = learned
    expected = model.predict(queries)
    assert model.features_.digest_ == builder.digest_
    for given in (frame, pl.from_pandas(frame), frame.drop(columns=["grade", "search"]), queries.X):
        assert np.array_equal(model.predict(given), expected)
    assert np.array_equal(model.predict(rw.io.to_frame(queries)), expected)  # a table of built features
    nameless = rw.Queries.from_arrays(queries.X, group=queries.sizes)
    assert np.array_equal(model.predict(nameless), expected)
    assert np.array_equal(model.predict(queries[5]), expected[40:48])


def test_rank_score_evaluate_and_certificate_take_the_table(learned):
    _, queries, model, frame = learned
    assert model.rank(frame) == model.rank(queries)
    assert model.score(frame) == model.score(queries)
    assert model.score(frame.drop(columns="grade"), frame["grade"]) == model.score(queries)
    assert rw.evaluate(frame, model, "nDCG@5").mean == rw.evaluate(queries, model, "nDCG@5").mean
    held = shop(seed=9)
    found = model.certificate(frame, held).to_json()
    assert found == model.certificate(queries, model.features_.transform(held)).to_json()
    with pytest.raises(DataError, match="no column 'search'"):
        model.rank(frame.drop(columns="search"))


def test_rows_without_a_label_are_scored(learned):
    *_, frame = learned
    builder = rw.FeatureBuilder(unjudged="drop").fit(frame, **ROLES)
    model = rw.RidgeRanker(alpha=1.0).fit(builder.transform(frame))
    partly = frame.assign(grade=frame["grade"].where(frame.index % 2 == 0))
    assert np.array_equal(model.predict(partly), model.predict(frame))
    assert len(model.rank(partly)) == len(frame)


def test_a_validation_set_may_be_a_table(learned):
    builder, queries, *_ = learned
    held = shop(seed=3)
    by_table, by_queries = (
        rw.RankSVM(alpha=[0.1, 10.0]).fit(queries, validation=given) for given in (held, builder.transform(held))
    )
    assert np.array_equal(by_table.coef_, by_queries.coef_)


def test_queries_of_another_builder_are_refused(learned):
    _, _, model, frame = learned
    other = rw.FeatureBuilder(heavy_tails="keep").fit_transform(frame, **ROLES)
    with pytest.raises(DataError, match="another FeatureBuilder"):
        model.predict(other)
    with pytest.raises(DataError, match="no column 'views', 'rating', which"):
        model.predict(frame.drop(columns=["views", "rating"]))


def test_the_scaling_of_training_is_applied_to_tables(learned):
    _, queries, _, frame = learned
    scaler = rw.Scaler().fit(queries)
    model = rw.RidgeRanker(alpha=1.0).fit(scaler.transform(queries))
    expected = model.predict(scaler.transform(queries))
    assert np.array_equal(model.predict(frame), expected)
    assert np.array_equal(model.predict(queries), expected)
    done = rw.export(model, "python", features="built", sample=frame)
    assert done.parity.same_order


def test_a_new_fit_forgets_the_builder(learned):
    _, queries, _, frame = learned
    model = rw.RidgeRanker(alpha=1.0).fit(queries)
    model.fit(rw.make_lists(20, features=3, random_state=0))
    assert not hasattr(model, "features_")
    with pytest.raises(DataError, match="has no FeatureBuilder"):
        model.predict(as_table(frame))


def test_features_within_queries_need_the_queries(learned):
    *_, frame = learned
    builder = rw.FeatureBuilder(per_query={"size": "rank", "views": ["value", "zscore"]}).fit(frame, **ROLES)
    queries = builder.transform(frame)
    model = rw.RidgeRanker(alpha=1.0).fit(queries)
    expected = model.predict(queries)
    assert np.array_equal(model.predict(frame), expected)
    with pytest.raises(DataError, match="compare the documents of a query"):
        model.predict(queries.X)
    with pytest.raises(DataError, match="no column 'search'"):
        model.predict(frame.drop(columns="search"))
    scorer = rw.Scorer(model)
    one = frame[frame["search"] == 3].drop(columns=["search", "grade"])
    assert np.array_equal(scorer.scores(one), expected[24:32])
    assert np.array_equal(scorer.rank(one), np.argsort(-expected[24:32], kind="stable"))
    with pytest.raises(DataError, match="compare the documents of a query"):
        scorer.scores(np.ascontiguousarray(queries.X[:8]))


def test_a_scorer_takes_tables_and_arrays_of_features(learned):
    _, queries, model, frame = learned
    scorer = rw.Scorer(model)
    expected = model.predict(queries)[:8]
    assert np.array_equal(scorer.scores(frame[:8]), expected)
    assert np.array_equal(scorer.scores(np.ascontiguousarray(queries.X[:8])), expected)


def test_online_rankers_keep_the_builder(learned):
    builder, queries, _, frame = learned
    model = rw.SLAMPerceptron("nDCG@5").partial_fit(queries[:20]).partial_fit(queries[20:])
    assert model.features_.digest_ == builder.digest_
    assert np.array_equal(model.predict(frame), model.predict(queries))


@pytest.mark.parametrize("to", ["ranklib", "solr", "elasticsearch"])
def test_exports_refuse_what_an_engine_cannot_do_and_take_built_features(learned, to):
    _, queries, model, frame = learned
    with pytest.raises(RankwiseError, match=r"cannot hold.*makes of 'price'.*'views'.*export to c, onnx.*'built'"):
        rw.export(model, to)
    names = [f"f{number}" for number in range(queries.n_features)]
    done = rw.export(model, to, features="built", sample=frame, feature_names=names)
    assert done.parity.documents == len(frame)


def test_a_builder_that_takes_columns_as_they_are_needs_no_words(learned):
    *_, frame = learned
    numbers = frame[["search", "grade", "size", "views"]]
    builder = rw.FeatureBuilder(heavy_tails="keep", qid="search", label="grade")
    model = rw.RidgeRanker(alpha=1.0).fit(builder.fit_transform(numbers))
    done = rw.export(model, "sql", sample=frame)
    assert '"size"' in done.text
    assert done.parity.same_order
