"""HybridRanker: the best weights are found, ties and draws are decided as it says, and scores are those of the mean."""

from itertools import product

import numpy as np
import pytest

import rankwise as rw
from rankwise.errors import DataError, RankwiseError
from rankwise.rankers.fusion.hybrid_ranker import UNITS, around, grid


def mean_at(model, queries, weights):
    return rw.HybridRanker(**{**model.get_params(), "weights": weights}).fit(queries).score(queries)


@pytest.fixture(scope="module")
def queries():
    return rw.synthetic.make_hybrid(60, random_state=3)


@pytest.mark.parametrize("normalizer", ["min_max", "l2", "z_score", "rrf", "none"])
def test_two_weights_are_the_best_of_all_hundredths_and_the_nearest_to_equal(queries, normalizer):
    model = rw.HybridRanker(normalizer=normalizer, bootstrap=0).fit(queries)
    means = {w: mean_at(model, queries, [w / 100, 1 - w / 100]) for w in range(101)}
    best = [w for w, mean in means.items() if mean >= max(means.values()) - 1e-12]
    assert model.weights_[0] == pytest.approx(min(best, key=lambda w: abs(w - 50)) / 100)
    np.testing.assert_allclose(model.curve_["weight"], np.arange(101) / 100)
    np.testing.assert_allclose(model.curve_["mean"], list(means.values()), rtol=1e-12)


def test_no_move_of_a_hundredth_improves_three_weights():
    queries = rw.synthetic.make_hybrid(60, columns=3, random_state=4)
    model = rw.HybridRanker(bootstrap=0).fit(queries)
    best = model.score(queries)
    assert best == pytest.approx(mean_at(model, queries, model.weights_))
    units = np.rint(model.weights_ * UNITS).astype(int)
    for one, other, move in product(range(3), range(3), (1, 2, 5, 10)):
        moved = units.copy()
        moved[one] -= move
        moved[other] += move
        if one != other and moved.min() >= 0:
            assert mean_at(model, queries, moved / UNITS) <= best + 1e-12
    assert not hasattr(model, "curve_")


@pytest.mark.parametrize("columns", range(1, 7))
def test_the_candidates_are_on_the_simplex_and_each_comes_once(columns):
    found = grid(columns)
    assert len(set(found)) == len(found)
    assert all(sum(units) == UNITS and min(units) >= 0 for units in (*found, *around(found[0])))


def test_of_many_columns_the_six_best_share_the_weight():
    queries = rw.make_lists(40, documents=(5, 20), features=12, random_state=1)
    model = rw.HybridRanker(bootstrap=0).fit(queries)
    assert 1 <= (model.weights_ > 0).sum() <= 6
    alone = [mean_at(model, queries, np.eye(12)[column]) for column in range(12)]
    assert model.score(queries) >= max(alone)


def test_columns_that_rank_alike_share_the_weight_equally():
    one = rw.synthetic.make_hybrid(30, columns=1, random_state=5)
    twice = rw.Queries.from_arrays(np.hstack([one.X, one.X]), one.y, qid=one.query_of_row, missing="keep")
    assert rw.HybridRanker(bootstrap=0).fit(twice).weights_.tolist() == [0.5, 0.5]


def test_intervals_are_percentiles_of_the_weights_of_drawn_queries(queries):
    model = rw.HybridRanker(bootstrap=60, random_state=9).fit(queries)
    random, drawn = np.random.default_rng(9), []
    known = np.array(
        [
            rw.evaluate(
                queries, rw.HybridRanker(weights=[w / 100, 1 - w / 100]).fit(queries).predict(queries), "nDCG@10"
            ).per_query["nDCG@10"]
            for w in range(101)
        ]
    )
    counted = ~np.isnan(known).any(axis=0)
    for _ in range(60):
        often = np.bincount(random.integers(counted.sum(), size=counted.sum()), minlength=counted.sum())
        means = known[:, counted] @ often / often.sum()
        best = np.flatnonzero(means >= means.max() - 1e-12)
        drawn.append(min(best, key=lambda w: (abs(w - 50), -w)) / 100)
    row = next(iter(model.intervals_))
    assert row["column"] == "bm25"
    assert (row["low"], row["high"]) == pytest.approx(tuple(np.quantile(drawn, (0.025, 0.975))))
    assert (model.curve_["low"] <= model.curve_["mean"]).all()
    assert (model.curve_["mean"] <= model.curve_["high"]).all()


def test_without_draws_there_are_no_intervals(queries):
    model = rw.HybridRanker(bootstrap=0).fit(queries)
    assert np.isnan(model.intervals_["low"]).all()
    fixed = rw.HybridRanker(weights=(0.25, 0.75)).fit(queries)
    assert fixed.weights_.tolist() == [0.25, 0.75]
    assert np.isnan(fixed.intervals_["high"]).all()
    assert not hasattr(fixed, "curve_")


def test_a_query_of_weight_zero_teaches_nothing(queries):
    weight = np.ones(60)
    weight[::3] = 0
    some = rw.HybridRanker(bootstrap=30).fit(queries.with_weight(weight))
    other = rw.HybridRanker(bootstrap=30).fit(queries[weight > 0])
    np.testing.assert_array_equal(some.weights_, other.weights_)
    np.testing.assert_array_equal(some.intervals_["low"], other.intervals_["low"])


def test_reciprocal_rank_fusion_is_the_sum_over_sub_queries():
    X = np.array([[3.0, np.nan], [2.0, 0.9], [np.nan, 0.8], [1.0, 0.7]])
    queries = rw.Queries.from_arrays(X, [0, 1, 0, 1], group=[4], missing="keep")
    found = rw.HybridRanker(normalizer="rrf", weights="equal", rank_constant=10).fit(queries).predict(queries)
    np.testing.assert_allclose(2 * found, [1 / 11, 1 / 12 + 1 / 11, 1 / 12, 1 / 13 + 1 / 13])


def test_a_query_is_scored_the_same_alone_among_others_and_by_a_scorer(queries):
    model = rw.HybridRanker(engine="opensearch", bootstrap=0).fit(queries)
    scores = model.predict(queries)
    rows = slice(queries.start[7], queries.start[8])
    np.testing.assert_array_equal(model.predict(queries[7]), scores[rows])
    np.testing.assert_array_equal(rw.Scorer(model).scores(queries[7].X), scores[rows])
    np.testing.assert_array_equal(rw.Scorer(model).scores(queries[7]), scores[rows])
    order = np.random.default_rng(0).permutation(queries.n_documents)
    mixed = rw.Queries.from_arrays(queries.X[order], qid=queries.query_of_row[order], missing="keep")
    np.testing.assert_array_equal(model.predict(mixed), scores[order])
    with pytest.raises(DataError, match=r"within each query \(normalizer='min_max'\): pass Queries"):
        model.predict(queries.X)


def test_learned_weights_beat_equal_weights_and_rank_fusion_on_held_out_queries():
    queries = rw.synthetic.make_hybrid(500, random_state=6)
    train, test = queries[:200], queries[200:]
    models = {
        "learned": rw.HybridRanker(engine="opensearch", bootstrap=0),
        "equal": rw.HybridRanker(engine="opensearch", weights="equal"),
        "RRF": rw.HybridRanker(normalizer="rrf", weights="equal"),
    }
    found = rw.compare({name: model.fit(train) for name, model in models.items()}, test, baseline="learned")
    assert len(found.tests) == 2
    assert (found.tests["high"] < 0).all()
    certificate = models["learned"].certificate(train, test)
    assert certificate.headline.value < 1 - models["learned"].score(test) + 0.1


def test_the_curve_draws_itself(queries):
    figure = rw.HybridRanker(bootstrap=20).fit(queries).curve_.plot()
    (axes,) = figure.axes
    assert axes.get_ylabel() == "nDCG@10"
    assert "bm25" in axes.get_xlabel()
    assert len(axes.lines) == 3


def test_a_saved_ranker_keeps_weights_intervals_and_curve(queries, tmp_path):
    model = rw.HybridRanker(normalizer="l2", engine="elasticsearch", bootstrap=20).fit(queries)
    model.save(tmp_path / "m.rankwise")
    loaded = rw.load(tmp_path / "m.rankwise")
    assert loaded.get_params() == model.get_params()
    assert repr(loaded.intervals_) == repr(model.intervals_)
    assert repr(loaded.curve_) == repr(model.curve_)
    np.testing.assert_array_equal(loaded.predict(queries), model.predict(queries))


@pytest.mark.parametrize("weights", ["mean", [0.5], [0.7, 0.7], [-0.5, 1.5], [np.nan, 1.0], {"bm25": 1}])
def test_weights_that_are_none_are_refused(queries, weights):
    with pytest.raises(
        RankwiseError, match=r"The 'weights' parameter of HybridRanker|weights must be 2 numbers with the sum 1"
    ):
        rw.HybridRanker(weights=weights).fit(queries)


def test_kept_missing_values_are_refused_by_rankers_that_give_them_no_meaning(queries, tmp_path):
    with pytest.raises(DataError, match="RidgeRanker gives no meaning to missing values"):
        rw.RidgeRanker().fit(queries)
    plain = rw.Queries.from_arrays(np.nan_to_num(queries.X), queries.y, qid=queries.query_of_row)
    steps = rw.RankBoost(rounds=2).fit(plain)
    with pytest.raises(DataError, match="RankBoost gives no meaning"):
        steps.predict(queries)
    for function in (rw.diagnose, rw.Scaler().fit, rw.Scaler().fit(plain).transform):
        with pytest.raises(DataError, match="gives no meaning to missing values"):
            function(queries)
    queries.save(tmp_path / "kept.rankwise")
    np.testing.assert_array_equal(rw.load(tmp_path / "kept.rankwise").X, queries.X)
