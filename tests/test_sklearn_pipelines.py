"""Rankers in scikit-learn's pipelines and searches, on data frames and on queries."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.feature_selection import SelectKBest, f_regression
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    cross_val_predict,
    cross_val_score,
    cross_validate,
    learning_curve,
)
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, StandardScaler
from sklearn.utils.fixes import parse_version

import rankwise as rw
from rankwise.errors import DataError, DataWarning, RankwiseError

ALPHAS = [1e-3, 30.0, 1e6]
GRID = {"r__alpha": ALPHAS, "columns__numbers__with_mean": [True, False]}
FRAMES = {"pandas": lambda frame: frame, "polars": pl.from_pandas}
POLARS = pytest.param(
    "polars",
    marks=pytest.mark.skipif(
        parse_version(sklearn.__version__) < parse_version("1.9"), reason="scikit-learn knows polars 2 since 1.9"
    ),
)


def table():
    """A table with two numbers and a category; rows of a query are scattered."""
    rng = np.random.default_rng(5)
    qid = rng.permutation(np.repeat([f"q{number}" for number in range(30)], rng.integers(3, 9, 30)))
    frame = pd.DataFrame(
        {
            "bm25": rng.normal(size=len(qid)),
            "clicks": 100 * rng.normal(size=len(qid)),
            "brand": rng.choice(["x", "y", "z"], len(qid)),
        }
    )
    value = frame.bm25 + 0.004 * frame.clicks + (frame.brand == "x") + rng.normal(size=len(qid))
    return frame, np.clip(np.rint(value), 0, 3).to_numpy(), qid


FRAME, Y, QID = table()


def pipeline(ranker=None):
    columns = [("numbers", StandardScaler(), ["bm25", "clicks"]), ("brand", OneHotEncoder(), ["brand"])]
    return Pipeline([("columns", ColumnTransformer(columns)), ("r", ranker or rw.RidgeRanker(target="labels"))])


def by_hand(folds=3):
    """Settings in the order of the search, and the mean score of each, without pipelines or searches."""
    found = {}
    for with_mean in (True, False):
        for alpha in ALPHAS:
            scores = []
            for train, test in GroupKFold(folds).split(FRAME, Y, groups=QID):
                numbers = StandardScaler(with_mean=with_mean).fit(FRAME.iloc[train][["bm25", "clicks"]])
                brands = OneHotEncoder(sparse_output=False).fit(FRAME.iloc[train][["brand"]])

                def part(rows, numbers=numbers, brands=brands):
                    some = FRAME.iloc[rows]
                    X = np.hstack([numbers.transform(some[["bm25", "clicks"]]), brands.transform(some[["brand"]])])
                    return rw.Queries.from_arrays(X, Y[rows], qid=QID[rows])

                scores.append(rw.RidgeRanker(target="labels", alpha=alpha).fit(part(train)).score(part(test)))
            found[alpha, with_mean] = np.mean(scores)
    return found


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


# ------------------------------------------------------------------------------------------- searches


def check_search(search):
    expected = by_hand()
    found = {
        (setting["r__alpha"], setting["columns__numbers__with_mean"]): score
        for setting, score in zip(search.cv_results_["params"], search.cv_results_["mean_test_score"], strict=True)
    }
    assert found.keys() == expected.keys()
    for setting, score in expected.items():
        assert found[setting] == pytest.approx(score, rel=1e-12)
    assert len(set(np.round(list(expected.values()), 12))) > 1
    best = max(expected.values())
    chosen = search.best_params_["r__alpha"], search.best_params_["columns__numbers__with_mean"]
    assert expected[chosen] == pytest.approx(best, rel=1e-12)
    assert chosen[0] == max(expected, key=lambda setting: round(expected[setting], 12))[0]


@pytest.mark.parametrize("kind", ["pandas", POLARS])
@pytest.mark.parametrize("n_jobs", [None, 2])
def test_a_search_with_labels_that_carry_their_grouping_finds_what_a_loop_finds(kind, n_jobs):
    y = rw.sklearn.labels(Y, qid=QID)
    search = GridSearchCV(pipeline(), GRID, cv=GroupKFold(3), n_jobs=n_jobs, error_score="raise")
    search.fit(FRAMES[kind](FRAME), y, groups=y.qid)
    check_search(search)
    assert search.score(FRAMES[kind](FRAME), y) == search.best_estimator_.score(FRAMES[kind](FRAME), y)


@pytest.mark.parametrize("kind", ["pandas", POLARS])
@pytest.mark.usefixtures("routing")
def test_a_search_with_metadata_routing_finds_what_a_loop_finds(kind):
    ranker = rw.RidgeRanker(target="labels").set_fit_request(qid=True).set_score_request(qid=True)
    search = GridSearchCV(pipeline(ranker), GRID, cv=GroupKFold(3), error_score="raise")
    search.fit(FRAMES[kind](FRAME), Y, groups=QID, qid=QID)
    check_search(search)
    assert search.score(FRAMES[kind](FRAME), Y, qid=QID) > 0.5


@pytest.mark.parametrize("output", ["default", "pandas", POLARS])
def test_the_output_of_transformers_changes_no_bit(output):
    dense = pipeline().set_params(columns__brand__sparse_output=False)
    expected = dense.fit(FRAME, Y, r__qid=QID).predict(FRAME)
    model = dense.set_output(transform=output).fit(FRAME, Y, r__qid=QID)
    np.testing.assert_array_equal(model.predict(FRAME), expected)
    named = output != "default"
    assert hasattr(model[-1], "feature_names_in_") == named
    if named:
        assert list(model[-1].feature_names_in_) == list(model[0].get_feature_names_out())


def test_cross_validation_scores_and_predicts_by_query():
    y = rw.sklearn.labels(Y, qid=QID)
    model = pipeline(rw.RidgeRanker(alpha=1.0))
    given = {"cv": GroupKFold(4), "groups": y.qid}
    scores = cross_val_score(model, FRAME, y, error_score="raise", **given)
    predicted = cross_val_predict(model, FRAME, y, **given)
    assert predicted.shape == Y.shape
    for score, (train, test) in zip(scores, GroupKFold(4).split(FRAME, Y, QID), strict=True):
        fitted = sklearn.clone(model).fit(FRAME.iloc[train], Y[train], r__qid=QID[train])
        np.testing.assert_array_equal(predicted[test], fitted.predict(FRAME.iloc[test]))
        queries = rw.Queries.from_arrays(np.zeros((len(test), 1)), Y[test], qid=QID[test])
        assert score == rw.evaluate(queries, predicted[test], ["nDCG@10"]).mean["nDCG@10"]


# ------------------------------------------------------------------------------------------- scores of arrays


def test_scores_of_arrays_frames_and_queries_are_the_same():
    X = FRAME[["bm25", "clicks"]]
    model = rw.RidgeRanker(alpha=1.0).fit(X, Y, qid=QID)
    expected = model.score(rw.Queries.from_arrays(X, Y, qid=QID))
    order = np.argsort(QID, kind="stable")
    sizes = np.unique(QID, return_counts=True)[1]
    assert model.score(X, Y, qid=QID) == expected
    assert model.score(X.to_numpy(), Y, qid=QID) == expected
    assert model.score(pl.from_pandas(X), Y, qid=pl.Series(QID)) == expected
    assert model.score(X.iloc[order], Y[order], group=sizes) == expected
    assert model.score(X, rw.sklearn.labels(Y, qid=QID)) == expected
    assert model.score(FRAME[["brand", "clicks", "bm25"]], Y, qid=QID) == expected  # by name, others left out


@pytest.mark.parametrize("ranker", [rw.SLAMPerceptron(), rw.AdaRank(rounds=3), rw.ListNet(epochs=2)])
def test_labels_with_their_grouping_fit_any_ranker(ranker):
    X = FRAME[["bm25", "clicks"]].to_numpy()
    expected = sklearn.clone(ranker).fit(X, Y, qid=QID).predict(X)
    np.testing.assert_array_equal(ranker.fit(X, rw.sklearn.labels(Y, qid=QID)).predict(X), expected)


def test_labels_with_their_grouping_are_a_stream_of_queries():
    X = FRAME[["bm25", "clicks"]].to_numpy()
    whole = rw.SLAMPerceptron().fit(X, Y, qid=QID)
    parts = rw.SLAMPerceptron().partial_fit(X, rw.sklearn.labels(Y, qid=QID))
    np.testing.assert_array_equal(parts.coef_, whole.coef_)
    with pytest.raises(DataError, match="have lost the grouping"):
        parts.partial_fit(X, rw.sklearn.labels(Y, qid=QID).reshape(-1))


def test_an_evaluation_set_needs_no_sizes_with_such_labels():
    X = FRAME[["bm25", "clicks"]].to_numpy()
    first, last = QID < "q2", QID >= "q2"
    y = rw.sklearn.labels(Y, qid=QID)
    model = rw.RidgeRanker(alpha=ALPHAS).fit(X[first], y[first], eval_set=[(X[last], y[last])])
    held = rw.Queries.from_arrays(X[last], Y[last], qid=QID[last])
    other = rw.RidgeRanker(alpha=ALPHAS).fit(X[first], y[first], validation=held)
    np.testing.assert_array_equal(model.path_["nDCG@10"], other.path_["nDCG@10"])


# ------------------------------------------------------------------------------------------- without grouping


def test_fit_and_score_without_grouping_raise_one_clear_error():
    X = FRAME[["bm25", "clicks"]]
    with pytest.raises(DataError, match=r"RidgeRanker.fit\(X, y\) needs the grouping of rows"):
        rw.RidgeRanker().fit(X, Y)
    model = rw.RidgeRanker(alpha=1.0).fit(X, Y, qid=QID)
    with pytest.raises(DataError, match=r"RidgeRanker.score\(X, y\) needs the grouping of rows"):
        model.score(X, Y)
    with pytest.raises(DataError, match="y carries its own grouping"):
        model.score(X, rw.sklearn.labels(Y, qid=QID), qid=QID)
    with pytest.raises(DataError, match="score takes no sample_weight: a measure weights queries"):
        model.score(X, Y, qid=QID, sample_weight=np.ones(len(Y)))


def test_a_search_without_grouping_fails_as_a_whole_and_says_why():
    """Every fit fails, so that scikit-learn raises the error even with error_score=nan."""
    with pytest.raises(ValueError, match=r"(?s)fits failed.*needs the grouping of rows"):
        GridSearchCV(pipeline(), {"r__alpha": ALPHAS}, cv=3).fit(FRAME, Y)


def test_a_search_that_cuts_queries_fails_as_a_whole_and_says_why():
    y = rw.sklearn.labels(Y, qid=QID)
    with pytest.raises(ValueError, match=r"(?s)fits failed.*a split has cut queries: split by query.*groups=y.qid"):
        GridSearchCV(pipeline(), {"r__alpha": ALPHAS}, cv=KFold(3)).fit(FRAME, y)
    with pytest.raises(DataError, match="a split has cut queries"):
        cross_val_score(pipeline(), FRAME, y, cv=3, error_score="raise")
    with pytest.raises(DataError, match="a split has cut queries"):
        learning_curve(pipeline(), FRAME, y, cv=GroupKFold(3), groups=QID, error_score="raise")


def test_n1_grouping_for_fit_alone_gives_nan_with_a_warning_that_says_why():
    """scikit-learn forwards fit parameters to fit alone: it warns of each score, or raises the error if told to."""
    given = {"groups": QID, "r__qid": QID}
    search = GridSearchCV(pipeline(), {"r__alpha": ALPHAS}, cv=GroupKFold(3))
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        search.fit(FRAME, Y, **given)
    assert np.isnan(search.cv_results_["mean_test_score"]).all()
    said = [str(one.message) for one in seen]
    assert sum("RidgeRanker.score(X, y) needs the grouping of rows" in message for message in said) == 9
    assert any("test scores are non-finite" in message for message in said)
    with pytest.raises(DataError, match=r"score.*needs the grouping of rows.*rankwise.sklearn.labels"):
        GridSearchCV(pipeline(), {"r__alpha": ALPHAS}, cv=GroupKFold(3), error_score="raise").fit(FRAME, Y, **given)


@pytest.mark.usefixtures("routing")
def test_routing_without_a_request_for_scores_is_scikit_learn_s_own_error():
    ranker = rw.RidgeRanker(alpha=1.0).set_fit_request(qid=True)
    search = GridSearchCV(pipeline(ranker), {"r__alpha": ALPHAS}, cv=GroupKFold(3), error_score="raise")
    with pytest.raises(UnsetMetadataPassedError, match=r"qid.*score"):
        search.fit(FRAME, Y, groups=QID, qid=QID)


@pytest.mark.usefixtures("routing")
def test_everything_that_fit_takes_can_be_requested():
    ranker = rw.RidgeRanker()
    names = ("qid", "group", "validation", "eval_set", "eval_group")
    assert set(names) <= set(ranker.get_metadata_routing().fit.requests)
    assert {"qid", "group", "sample_weight"} == set(ranker.get_metadata_routing().score.requests)
    X, y = FRAME[["bm25", "clicks"]], rw.sklearn.labels(Y, qid=QID)
    held = rw.sklearn.Unsliced(rw.Queries.from_arrays(X[QID < "q2"], Y[QID < "q2"], qid=QID[QID < "q2"]))
    ranker = rw.RidgeRanker(alpha=ALPHAS).set_fit_request(validation=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)  # the validation queries are among those of the folds
        found = cross_validate(
            ranker, X, y, cv=GroupKFold(3), params={"groups": QID, "validation": held}, return_estimator=True
        )
    for (train, _), model in zip(GroupKFold(3).split(X, Y, QID), found["estimator"], strict=True):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DataWarning)
            alone = rw.RidgeRanker(alpha=ALPHAS).fit(X.iloc[train], Y[train], qid=QID[train], validation=held)
        np.testing.assert_array_equal(model.path_["nDCG@10"], alone.path_["nDCG@10"])


# ------------------------------------------------------------------------------------------- queries as X


def queries():
    return rw.Queries.from_arrays(
        FRAME[["bm25", "clicks"]], Y, qid=QID, weight=np.arange(1, 31), docid=[f"d{row}" for row in range(len(Y))]
    )


def test_queries_stay_queries_through_a_transformer():
    given = queries()
    made = rw.sklearn.DocumentTransformer(StandardScaler()).fit_transform(given)
    np.testing.assert_allclose(made.X, StandardScaler().fit_transform(given.X), rtol=1e-10)  # sums in another order
    assert made.names() == given.names()
    assert made.feature_names == ("bm25", "clicks")
    np.testing.assert_array_equal(made.rows, given.rows)
    np.testing.assert_array_equal(made.weight, given.weight)
    np.testing.assert_array_equal(made.y, given.y)
    assert list(made.docid) == list(given.docid)


def test_a_pipeline_on_queries_is_the_same_as_on_their_arrays():
    given = queries()
    model = make_pipeline(rw.sklearn.DocumentTransformer(MinMaxScaler()), rw.RidgeRanker(alpha=1.0)).fit(given)
    scaled = given.map_features(MinMaxScaler().fit(given.X).transform)
    np.testing.assert_array_equal(model[-1].coef_, rw.RidgeRanker(alpha=1.0).fit(scaled).coef_)
    np.testing.assert_array_equal(model.predict(given), model.predict(FRAME[["bm25", "clicks"]]))
    assert model.score(given) == rw.RidgeRanker(alpha=1.0).fit(scaled).score(scaled)


def test_columns_of_queries_are_transformed_by_name():
    columns = ColumnTransformer([("one", StandardScaler(), ["clicks"])], remainder="passthrough")
    made = rw.sklearn.DocumentTransformer(columns).fit(queries()).transform(queries())
    assert made.feature_names == ("one__clicks", "remainder__bm25")
    np.testing.assert_array_equal(made.X[:, 1], queries().X[:, 0])


def test_a_transformer_that_learns_from_labels_gets_them():
    chosen = rw.sklearn.DocumentTransformer(SelectKBest(f_regression, k=1)).fit_transform(queries())
    assert chosen.feature_names == ("bm25",)
    assert chosen.n_features == 1


def test_a_search_on_queries_splits_by_query():
    given = queries()
    model = make_pipeline(rw.sklearn.DocumentTransformer(StandardScaler()), rw.RidgeRanker())
    grid = {"documenttransformer__transformer__with_mean": [True, False], "ridgeranker__alpha": ALPHAS}
    search = GridSearchCV(model, grid, cv=KFold(3), error_score="raise").fit(given)
    for setting, score in zip(search.cv_results_["params"], search.cv_results_["mean_test_score"], strict=True):
        scores = []
        for train, test in KFold(3).split(given):
            fitted = sklearn.clone(model).set_params(**setting).fit(given[train])
            scores.append(fitted.score(given[test]))
        assert score == pytest.approx(np.mean(scores), rel=1e-12)


def test_a_bare_transformer_loses_the_grouping_and_the_error_names_the_remedy():
    with pytest.raises(
        DataError, match=r"needs the grouping of rows.*DocumentTransformer\(transformer\) keeps Queries"
    ):
        make_pipeline(StandardScaler(), rw.RidgeRanker()).fit(queries())
    with pytest.raises(DataError, match=r"DocumentTransformer\(transformer\)"):
        ColumnTransformer([("one", StandardScaler(), [0])]).fit(queries())


def test_labels_of_queries_bring_the_grouping_past_a_bare_transformer():
    given = queries().with_weight(None)
    model = make_pipeline(StandardScaler(), rw.RidgeRanker(alpha=1.0)).fit(given, rw.sklearn.labels(given))
    other = make_pipeline(rw.sklearn.DocumentTransformer(StandardScaler()), rw.RidgeRanker(alpha=1.0)).fit(given)
    np.testing.assert_allclose(model.predict(given), other.predict(given), rtol=1e-10)  # sums in another order
    assert model.score(given, rw.sklearn.labels(given)) == other.score(given)
    np.testing.assert_array_equal(np.asarray(given), given.X)
    assert np.array(given, dtype=np.float32, copy=True).dtype == np.float32


def test_queries_without_names_and_arrays_pass_through_too():
    named = rw.make_lists(10, random_state=0)
    given = rw.Queries.from_arrays(named.X, named.y, group=named.sizes)
    made = rw.sklearn.DocumentTransformer(StandardScaler()).set_output(transform="pandas").fit(given)
    assert isinstance(made.transform(given), rw.Queries)
    assert isinstance(made.transform(given.X), pd.DataFrame)
    assert list(made.get_feature_names_out()) == [f"x{place}" for place in range(given.n_features)]
    with pytest.raises(RankwiseError, match="not fitted yet"):
        rw.sklearn.DocumentTransformer(StandardScaler()).transform(given)
    with pytest.raises(DataError, match="returned 3 rows"):
        rw.sklearn.DocumentTransformer(_Shortens()).fit_transform(given)


class _Shortens(StandardScaler):
    """Returns three rows whatever it is given."""

    def fit_transform(self, X, y=None):
        return np.asarray(X)[:3]
