"""AutoRanker: members fitted fold by fold, weights from queries they have not seen, one sum of trees as a model."""

import math

import numpy as np
import pytest

import rankwise as rw
from rankwise.errors import RankwiseError
from rankwise.measures.compute import ScoredLists, measure_lists
from rankwise.queries.scaling import Scaler
from rankwise.rankers._model_selection import PooledSelection
from rankwise.rankers.auto import auto_ranker, linear_members, members
from rankwise.rankers.auto.linear_members import FeatureChange, LinearFolds
from rankwise.rankers.linear.committee import RidgeCommittee


def simulated(count, interactions, seed):
    """Simulated queries with features in logarithms, so that nothing but interactions speaks for trees."""
    queries = rw.make_lists(count, documents=(5, 15), features=10, interactions=interactions, random_state=seed)
    return rw.Queries.from_arrays(
        np.sign(queries.X) * np.log1p(np.abs(queries.X)),
        queries.y,
        group=queries.sizes,
        feature_names=queries.feature_names,
    )


def weighted(count, seed):
    """Queries whose relevance is a weighted sum of the features and noise."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(4, 12, count)
    X = rng.normal(size=(sizes.sum(), 10))
    useful = X @ np.linspace(1, -1, 10) + rng.normal(size=len(X))
    return rw.Queries.from_arrays(X, np.clip(np.rint(useful), 0, 4), group=sizes)


LINEAR, TREES = weighted(60, 1), simulated(150, 6.0, 1)
AS_THEY_ARE = FeatureChange(np.zeros(10))
QUICK = {"folds": 3, "max_trees": 40, "n_jobs": 1}
ALL = ["ridge", "normal", "trees", "started"]


@pytest.fixture(scope="module")
def linear():
    return rw.AutoRanker(**QUICK).fit(LINEAR)


@pytest.fixture(scope="module")
def trees():
    return rw.AutoRanker(**QUICK).fit(TREES)


# --------------------------------------------------------------------------------------------------------- the stack


def test_weights_go_where_relevance_is(linear, trees):
    for model in (linear, trees):
        assert list(model.weights_) == ALL
        assert sum(model.weights_.values()) == pytest.approx(1.0)
        assert min(model.weights_.values()) >= 0
    assert linear.weights_["ridge"] + linear.weights_["normal"] > 0.5
    assert trees.weights_["trees"] + trees.weights_["started"] > 0.5


@pytest.mark.parametrize(("train", "test"), [(LINEAR, weighted(200, 7)), (TREES, simulated(200, 6.0, 7))])
def test_the_stack_ranks_about_as_well_as_its_best_member_on_new_queries(train, test):
    enough = QUICK | {"max_trees": 150}
    alone = [rw.AutoRanker(members=(name,), **enough).fit(train).score(test) for name in ALL]
    assert rw.AutoRanker(**enough).fit(train).score(test) > max(alone) - 0.01


def test_linear_members_are_ridge_committees_fold_by_fold():
    selection = PooledSelection.of(TREES, None, "all", 3, np.random.default_rng(0))
    folds = LinearFolds.of([TREES], selection, AS_THEY_ARE, 1)
    whole = RidgeCommittee(folds=3, random_state=0, n_jobs=1).fit(TREES)
    np.testing.assert_array_equal(folds.whole, whole.coef_)
    for part, held, coef in zip(selection.parts, folds.held, folds.coefs, strict=True):
        scores = folds.start(coef, 2.0).on([TREES], 1)
        np.testing.assert_allclose(scores, 2.0 * TREES.X @ coef, rtol=1e-10, atol=1e-12)
        np.testing.assert_array_equal(2.0 * held, scores[np.isin(TREES.query_of_row, part)])


def test_held_out_labels_do_not_reach_the_scores_of_their_fold(monkeypatch):
    """With one penalty and a given number of trees, labels of a part change no score that was held out with it."""
    monkeypatch.setattr(linear_members, "RELATIVE_ALPHAS", (0.1,))
    monkeypatch.setattr(members, "WITHIN", 1e9)  # takes the last look
    monkeypatch.setattr(auto_ranker._MemberFits, "_factor", 1.0)
    model = rw.AutoRanker(**QUICK)
    part = PooledSelection.of(TREES, None, "all", 3, np.random.default_rng(0)).parts[0]
    labels = TREES.labels().copy()
    inside = np.isin(TREES.query_of_row, part)
    labels[inside] = np.random.default_rng(5).permutation(labels[inside])
    other = rw.Queries.from_arrays(TREES.X, labels, group=TREES.sizes)
    scores = []
    for queries in (TREES, other):
        found = PooledSelection.of(queries, None, "all", 3, np.random.default_rng(0))
        model.n_features_in_ = queries.n_features
        fits = auto_ranker._MemberFits(model, [queries], found, 1, members.Clock(None))
        with model._progress("", 1) as bar:
            scores.append([fits.fit(name, bar).scores[inside] for name in ALL])
    for name, before, after in zip(ALL, *scores, strict=True):
        np.testing.assert_array_equal(before, after, err_msg=name)


def test_the_model_is_one_sum_of_trees_with_linear_parts(trees):
    model = trees.ensemble_
    assert model.n_trees == 3 * trees.report_["trees"][:4].sum()
    assert model.normal is not None
    np.testing.assert_array_equal(trees.predict(TREES), model.predict(TREES.X))
    table = Scaler("normal").fit(TREES)
    np.testing.assert_array_equal(model.normal.knots, table.knots_)


def test_the_report_says_what_each_member_is_worth(trees):
    report = trees.report_
    assert report["member"].tolist() == [*ALL, "stack"]
    assert report.columns == (
        "member", "weight", "trees", "nDCG@10", "nDCG@50", "AP", "criterion", "difference", "lower", "upper", "seconds",
    )  # fmt: skip
    assert report["weight"][:4].tolist() == list(trees.weights_.values())
    assert report["trees"].tolist()[:2] == [0, 0]
    np.testing.assert_allclose(report["difference"], report["criterion"] - report["criterion"][-1], atol=1e-12)
    assert (report["lower"] <= report["difference"]).all()
    assert (report["difference"] <= report["upper"]).all()
    assert (report["seconds"] > 0).all()
    assert report["criterion"][-1] >= report["criterion"][:4].max() - 0.01
    assert "<table>" in report._repr_html_()


def test_the_criterion_of_a_member_is_that_of_its_scores():
    model = rw.AutoRanker(members=("ridge",), **QUICK).fit(TREES)
    selection = PooledSelection.of(TREES, None, "all", 3, np.random.default_rng(0))
    scores = np.zeros(TREES.n_documents)
    for part, own in zip(selection.parts, LinearFolds.of([TREES], selection, AS_THEY_ARE, 1).held, strict=True):
        scores[np.isin(TREES.query_of_row, part)] = own
    names = ("nDCG@10", "nDCG@50", "AP")
    values = measure_lists([rw.measures.parse(one) for one in names], ScoredLists(scores, TREES.labels(), TREES.start))
    for name, own in zip(names, values, strict=True):
        assert model.report_[name][0] == pytest.approx(np.nanmean(own))


def test_the_number_of_trees_is_the_largest_within_a_quarter_of_a_standard_error():
    curve, weight = members._Curve(), np.ones(100)
    rng = np.random.default_rng(0)
    noise = rng.normal(size=100)
    for place, mean in enumerate([0.1, 0.5, 0.9, 0.9, 0.89, 0.88, 0.2, 0.1]):
        curve.trees.append(10 * place)
        curve.criteria.append(mean + (0.3 if place > 4 else 0.1) * np.roll(noise, place))
        curve.values.append(float(curve.criteria[-1].mean()))
        curve.kept.append((10 * place, np.full(3, float(place))))
    trees, scores = curve.choose(weight)
    means, best = curve.means, int(np.argmax(curve.means))
    errors = [np.std(curve.criteria[best] - own, ddof=1) / 10 for own in curve.criteria]
    close = [place for place in range(best, 8) if means[place] >= means[best] - 0.25 * errors[place] * (place > best)]
    assert trees == 10 * close[-1]
    assert scores.tolist() == [float(close[-1])] * 3


# ------------------------------------------------------------------------------------------------------------ compact


def test_compact_has_a_fold_of_the_trees_and_no_member_of_small_weight(trees):
    small = rw.AutoRanker(compact=True, **QUICK).fit(TREES)
    report, left_out = small.report_, [name for name, weight in trees.weights_.items() if weight < auto_ranker.SMALL]
    assert [name for name, weight in small.weights_.items() if weight == 0] == left_out
    assert small.ensemble_.n_trees == sum(
        count for name, count in zip(report["member"], report["trees"], strict=True) if small.weights_.get(name)
    )
    assert small.ensemble_.n_trees < trees.ensemble_.n_trees / 2
    test = simulated(200, 6.0, 2)
    assert small.score(test) > trees.score(test) - 0.03


# --------------------------------------------------------------------------------------------------- data as they come


def test_a_validation_set_joins_the_training_queries(linear):
    other = weighted(40, 3)
    model = rw.AutoRanker(**QUICK).fit(LINEAR, validation=other)
    both = rw.Queries.from_arrays(
        np.concatenate([LINEAR.X, other.X]), np.concatenate([LINEAR.y, other.y]), group=[*LINEAR.sizes, *other.sizes]
    )
    joined = rw.AutoRanker(**QUICK).fit(both)
    np.testing.assert_allclose(model.predict(LINEAR.X), joined.predict(LINEAR.X), rtol=1e-9, atol=1e-12)
    assert not model.certificate(None, other).rows, "all queries that it was given are seen"


def test_rows_may_come_in_any_order(trees):
    order = np.random.default_rng(3).permutation(TREES.n_documents)
    mixed = rw.Queries.from_arrays(TREES.X[order], TREES.y[order], qid=TREES.query_of_row[order])
    mixed_again = rw.AutoRanker(**QUICK).fit(mixed)
    assert abs(mixed_again.score(TREES) - trees.score(TREES)) < 0.05  # queries are numbered in another order
    np.testing.assert_array_equal(mixed_again.predict(mixed), mixed_again.predict(TREES)[order])


def test_linear_members_see_the_median_where_a_value_is_missing():
    rng = np.random.default_rng(0)
    X = TREES.X.copy()
    X[rng.random(X.shape) < 0.2] = np.nan
    queries = rw.Queries.from_arrays(X, TREES.y, group=TREES.sizes, missing="keep")
    model = rw.AutoRanker(members=("ridge", "normal"), **QUICK).fit(queries)
    filled = np.where(np.isnan(X), np.nanmedian(X, axis=0), X)
    np.testing.assert_array_equal(model.predict(X), model.predict(filled))
    whole = rw.AutoRanker(**QUICK).fit(queries)
    assert np.isfinite(whole.predict(X)).all()
    assert not np.array_equal(whole.predict(X), whole.predict(filled)), "trees tell NaN from the median"


@pytest.mark.parametrize("what", ["one label", "constant features", "one query", "two queries", "no feature varies"])
def test_degenerate_queries_give_finite_scores(what):
    X, y, sizes = LINEAR.X.copy(), LINEAR.y.copy(), LINEAR.sizes
    if what == "one label":
        y[:] = 1
    if "feature" in what:
        X[:] = 1.0
    count = {"one query": 1, "two queries": 2}.get(what, 60)
    rows = sizes[:count].sum()
    queries = rw.Queries.from_arrays(X[:rows], y[:rows], group=sizes[:count])
    with pytest.warns(rw.errors.NothingLearnedWarning) if what == "one label" else _nothing():
        model = rw.AutoRanker(**QUICK).fit(queries)
    assert np.isfinite(model.predict(LINEAR.X)).all()
    assert sum(model.weights_.values()) == pytest.approx(1.0)


class _nothing:  # noqa: N801  a context that expects nothing
    def __enter__(self):
        return self

    def __exit__(self, *error):
        return None


def test_float32_is_ranked_as_float64(trees):
    single = rw.Queries.from_arrays(TREES.X.astype(np.float32), TREES.y, group=TREES.sizes)
    model = rw.AutoRanker(**QUICK).fit(single)
    assert abs(model.score(single) - trees.score(TREES)) < 0.02
    np.testing.assert_allclose(model.predict(single.X), model.predict(single.X.astype(np.float64)), rtol=1e-9)


def test_many_queries_hold_out_one_part(monkeypatch):
    from rankwise.rankers import _model_selection

    monkeypatch.setattr(_model_selection, "MANY", 50)
    model = rw.AutoRanker(**QUICK).fit(LINEAR)
    assert model.ensemble_.n_trees == model.report_["trees"][:4].sum(), "one fold"


def test_document_weights_count():
    model = rw.AutoRanker(**QUICK)
    plain = model.fit(LINEAR).predict(LINEAR)
    weights = np.linspace(0.1, 2.0, LINEAR.n_documents)
    again = rw.AutoRanker(**QUICK).fit(LINEAR.X, LINEAR.y, group=LINEAR.sizes, sample_weight=weights)
    assert not np.array_equal(again.predict(LINEAR), plain)
    heavy = rw.AutoRanker(**QUICK).fit(LINEAR.X, LINEAR.y, group=LINEAR.sizes, sample_weight=4 * weights)
    np.testing.assert_allclose(heavy.predict(LINEAR), again.predict(LINEAR), rtol=1e-9, atol=1e-12)
    with pytest.raises(RankwiseError, match="YetiRank weights queries alone"):
        rw.AutoRanker(boosters=("catboost",)).fit(LINEAR.X, LINEAR.y, group=LINEAR.sizes, sample_weight=weights)


# ----------------------------------------------------------------------------------------------------- limits and bits


def test_a_limit_that_is_over_at_once_leaves_the_first_member():
    model = rw.AutoRanker(time_limit=1e-9, **QUICK).fit(TREES)
    assert model.weights_ == {"ridge": 1.0}
    assert model.report_["member"].tolist() == ["ridge", "stack"]


def test_a_limit_ends_the_growth_of_trees(monkeypatch):
    looks = iter([False] * 25 + [True] * 10_000)
    monkeypatch.setattr(members.Clock, "is_over", property(lambda clock: next(looks)))
    model = rw.AutoRanker(**(QUICK | {"max_trees": 200})).fit(TREES)
    assert list(model.weights_) == ["ridge", "normal", "trees"]
    assert 0 < model.report_["trees"][2] <= 25


def test_ridges_alone_are_a_linear_model():
    model = rw.AutoRanker(members=("ridge",), missing="error", **QUICK).fit(LINEAR)
    found = rw.export(model, "ranklib", sample=LINEAR)
    assert found.parity is not None
    assert found.parity.same_order
    np.testing.assert_array_equal(rw.Scorer(model).scores(LINEAR.X), model.predict(LINEAR))


@pytest.mark.parametrize("threads", [2, 3])
def test_the_number_of_threads_changes_no_bit(trees, threads):
    again = rw.AutoRanker(**(QUICK | {"n_jobs": threads})).fit(TREES)
    np.testing.assert_array_equal(again.predict(TREES), trees.predict(TREES))
    np.testing.assert_array_equal(again.report_["criterion"], trees.report_["criterion"])


def test_a_member_does_not_depend_on_the_others(trees):
    alone = rw.AutoRanker(members=("trees",), **QUICK).fit(TREES)
    assert alone.report_["criterion"][0] == trees.report_["criterion"][2]


def test_a_file_keeps_the_report_without_the_seconds(trees, tmp_path):
    trees.save(tmp_path / "model.rankwise")
    loaded = rw.load(tmp_path / "model.rankwise")
    assert loaded.weights_ == trees.weights_
    for column in set(trees.report_.columns) - {"seconds"}:
        np.testing.assert_array_equal(loaded.report_[column], trees.report_[column])
    assert all(map(math.isnan, loaded.report_["seconds"]))
    np.testing.assert_array_equal(loaded.predict(TREES), trees.predict(TREES))


@pytest.mark.parametrize("engine", ["lightgbm", "catboost"])
def test_other_engines_are_further_members(engine):
    pytest.importorskip(engine)
    model = rw.AutoRanker(members=("normal",), boosters=(engine,), **QUICK).fit(TREES)
    assert list(model.weights_) == ["normal", engine]
    assert model.weights_[engine] > 0.3
    assert model.ensemble_.n_trees == 3 * model.report_["trees"][1]


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"members": ()}, "'members' parameter of"),
        ({"members": "ridge"}, "'members' parameter of"),
        ({"members": ("ridge", "ridge")}, "'members' parameter of"),
        ({"members": ("forest",)}, "'members' parameter of"),
        ({"boosters": "lightgbm"}, "'boosters' parameter of"),
        ({"boosters": ("forest",)}, "'boosters' parameter of"),
        ({"boosters": 5}, "'boosters' parameter of"),
        ({"time_limit": 0}, "'time_limit' parameter of"),
        ({"time_limit": "soon"}, "'time_limit' parameter of"),
        ({"max_trees": 0}, "max_trees"),
        ({"compact": 1}, "'compact' parameter of"),
        ({"folds": 1}, "'folds' parameter of"),
    ],
)
def test_what_cannot_be_fitted_is_refused(given, sentence):
    with pytest.raises(RankwiseError, match=sentence):
        rw.AutoRanker(**given).fit(LINEAR)
