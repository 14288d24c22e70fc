"""The builder as an estimator of scikit-learn, and the transformers that users pass in."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.feature_selection import VarianceThreshold
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import KBinsDiscretizer, OrdinalEncoder, SplineTransformer
from sklearn.utils import estimator_checks

import rankwise as rw
from rankwise.errors import DataError, RankwiseError
from tests.features.shop import ROLES, shop


@pytest.mark.parametrize(
    "check",
    [
        "check_no_attributes_set_in_init",
        "check_parameters_default_constructible",
        "check_get_params_invariance",
        "check_set_params",
        "check_do_not_raise_errors_in_init_or_set_params",
        "check_estimator_cloneable",
        "check_estimator_repr",
        "check_estimator_tags_renamed",
        "check_valid_tag_types",
        "check_mixin_order",
        "check_estimators_unfitted",
        "check_transformers_unfitted",
    ],
)
def test_the_checks_of_scikit_learn_that_need_no_array(check):
    function = getattr(estimator_checks, check, None)
    if function is None:
        pytest.skip("not in this version of scikit-learn")
    function("FeatureBuilder", rw.FeatureBuilder())


def test_a_clone_has_the_parameters_and_nothing_that_was_learned():
    builder = rw.FeatureBuilder(per_query={"size": "rank"}, rare=5).fit(shop(), **ROLES)
    copy = clone(builder)
    assert copy.get_params() == builder.get_params()
    assert set(vars(copy)) == set(copy.get_params())
    assert not copy.__sklearn_is_fitted__()


def test_two_fits_on_one_table_are_the_same_and_on_another_are_not():
    first, second = (rw.FeatureBuilder().fit(shop(), **ROLES) for _ in range(2))
    assert first.digest_ == second.digest_
    assert first.digest_ != rw.FeatureBuilder().fit(shop(seed=1), **ROLES).digest_
    assert first.digest_ != rw.FeatureBuilder(rare=5).fit(shop(), **ROLES).digest_


def test_queries_keep_the_builder_as_it_was():
    frame = shop()
    builder = rw.FeatureBuilder().fit(frame, **ROLES)
    queries = builder.transform(frame)
    digest, names = builder.digest_, builder.feature_names_out_
    builder.set_params(categories="ordinal", missing="keep")
    assert np.array_equal(builder.transform(frame).X, queries.X)
    builder.fit(frame, **ROLES)
    assert builder.feature_names_out_ != names
    assert queries.built_by.digest_ == digest
    assert queries[3:5].built_by.digest_ == digest
    assert rw.Queries.concat([queries[:4], queries[4:9]]).built_by.digest_ == digest
    assert queries.map_features(lambda X: 2 * X).built_by is None
    assert queries.select_features(["size", "rating"]).built_by is None


@pytest.mark.parametrize("how", ["standard", "minmax", "robust", "quantile"])
def test_numbers_are_scaled_by_scikit_learn(how):
    import sklearn.preprocessing as sk

    frame = shop()
    builder = rw.FeatureBuilder(numbers=how).fit(frame, **ROLES)
    scaler = {"standard": sk.StandardScaler(), "minmax": sk.MinMaxScaler(), "robust": sk.RobustScaler()}.get(
        how, sk.QuantileTransformer(n_quantiles=len(frame), subsample=None)
    )
    expected = scaler.fit_transform(frame[["size"]].to_numpy(float))[:, 0]
    place = builder.feature_names_out_.index(f"size_{how}")
    assert np.array_equal(builder.transform(frame).X[:, place], expected)


def test_categories_can_be_numbers_of_levels_or_left_out():
    frame = shop()
    codes = rw.FeatureBuilder(categories="ordinal", rare=None).fit(frame, **ROLES)
    place = codes.feature_names_out_.index("brand_code")
    brands = frame["brand"].fillna("").tolist()
    expected = [sorted(set(brands)).index(brand) for brand in brands]
    assert codes.transform(frame).X[:, place].tolist() == expected
    assert (codes.transform(frame.assign(brand="new")).X[:, place] == -1).all()
    without = rw.FeatureBuilder(categories="ignore", dates="ignore").fit(frame, **ROLES)
    assert not any(name.startswith(("brand", "added")) for name in without.feature_names_out_)


def test_transformers_of_the_user_take_the_place_of_the_treatment():
    frame = shop()
    own = {
        "size": KBinsDiscretizer(4, encode="ordinal", quantile_method="averaged_inverted_cdf"),
        ("views", "rating"): SplineTransformer(n_knots=4),
        "words": OrdinalEncoder(),
    }
    builder = rw.FeatureBuilder(transformers=own).fit(frame, **ROLES)
    X, names = builder.transform(frame).X, builder.feature_names_out_
    filled = frame[["views", "rating"]].fillna(frame[["views", "rating"]].median()).to_numpy()
    splines = clone(own["views", "rating"]).fit_transform(filled)
    first = names.index("views_sp_0")
    assert np.array_equal(X[:, first : first + splines.shape[1]], splines)
    bins = clone(own["size"]).fit_transform(frame[["size"]].to_numpy(float))
    assert np.array_equal(X[:, [names.index("size_kbinsdiscretizer")]], bins)
    assert names.count("words_ordinalencoder") == 1
    assert "size" not in names


def test_transformers_that_cannot_be_saved_work_in_memory(tmp_path):
    frame = shop()
    builder = rw.FeatureBuilder(transformers={("views", "size"): PCA(2)}).fit(frame, **ROLES)
    model = rw.RidgeRanker().fit(builder.transform(frame))
    assert np.array_equal(model.predict(frame), model.predict(builder.transform(frame)))
    with pytest.raises(RankwiseError, match="cannot be saved: it holds a PCA"):
        model.save(tmp_path / "model.rankwise")
    assert not (tmp_path / "model.rankwise").exists()


def test_a_transformer_that_fails_is_named():
    with pytest.raises(DataError, match="the transformer VarianceThreshold of 'size' failed"):
        rw.FeatureBuilder(transformers={"size": VarianceThreshold(1e9)}).fit(shop(), **ROLES)
    with pytest.raises(DataError, match="numbers and texts together"):
        rw.FeatureBuilder(transformers={("size", "brand"): PCA()}).fit(shop(), **ROLES)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"numbers": "log"}, "'numbers' parameter of FeatureBuilder must be"),
        ({"rare": 1.5}, "'rare' parameter of FeatureBuilder must be"),
        ({"max_levels": 0}, "'max_levels' parameter of FeatureBuilder must be"),
        ({"columns": {"size": "numeric"}}, r"columns\['size'\]"),
        ({"ignore": "size"}, "'ignore' parameter of FeatureBuilder must be a sequence of columns"),
        ({"columns": {"sice": "number"}}, "no column 'sice'"),
        ({"transformers": {"size": PCA(), ("size", "views"): PCA()}}, "'size' twice"),
    ],
)
def test_wrong_parameters_are_named(parameters, message):
    with pytest.raises(RankwiseError, match=message):
        rw.FeatureBuilder(**parameters).fit(shop(), **ROLES)


def test_a_pipeline_learns_from_a_data_frame():
    frame = shop()
    builder = rw.FeatureBuilder(**ROLES)
    pipeline = Pipeline([("features", builder), ("ranker", rw.RidgeRanker(alpha=1.0))]).fit(frame)
    expected = rw.RidgeRanker(alpha=1.0).fit(rw.FeatureBuilder().fit(frame, **ROLES).transform(frame))
    assert np.array_equal(pipeline.predict(frame), expected.predict(frame))
    assert pipeline.score(frame) == expected.score(frame)
    apart = Pipeline([("features", builder), ("ranker", rw.RidgeRanker(alpha=1.0))])
    apart.fit(frame.drop(columns="grade"), frame["grade"])
    assert np.array_equal(apart.predict(frame), expected.predict(frame))


def test_a_search_over_a_pipeline_on_rows_of_a_data_frame_picks_what_a_loop_picks():
    frame = shop(n_queries=30)
    pipeline = Pipeline([("features", rw.FeatureBuilder(**ROLES)), ("ranker", rw.RidgeRanker(balanced=False))])
    grid, cv = {"features__categories": ["onehot", "ignore"], "ranker__alpha": [0.1, 1e4]}, GroupKFold(3)
    search = GridSearchCV(pipeline, grid, cv=cv, error_score="raise").fit(frame, groups=frame["search"])
    best = {}
    for categories in grid["features__categories"]:
        for alpha in grid["ranker__alpha"]:
            values = []
            for train, test in cv.split(frame, groups=frame["search"]):
                builder = rw.FeatureBuilder(categories=categories).fit(frame.iloc[train], **ROLES)
                model = rw.RidgeRanker(alpha=alpha, balanced=False).fit(builder.transform(frame.iloc[train]))
                values.append(model.score(frame.iloc[test]))
            best[categories, alpha] = np.mean(values)
    chosen = search.best_params_["features__categories"], search.best_params_["ranker__alpha"]
    assert chosen == max(best, key=best.get)
    assert search.best_score_ == pytest.approx(best[chosen], rel=1e-12)


def test_the_report_is_a_table_and_html():
    builder = rw.FeatureBuilder().fit(shop(), **ROLES)
    assert builder.report_.columns == ("column", "kind", "treatment", "features", "reason")
    assert sum(builder.report_["features"]) == len(builder.get_feature_names_out())
    assert "<table>" in builder._repr_html_()
    assert "FeatureBuilder" in rw.FeatureBuilder()._repr_html_()


def test_equal_names_of_features_are_told_apart():
    frame = pd.DataFrame(
        {"qid": [1, 1, 1, 1], "label": [0, 1, 0, 1], "a": [1.0, None, 3.0, 2.0], "a_missing": [3, 1, 2, 9]}
    )
    names = rw.FeatureBuilder().fit(frame).get_feature_names_out().tolist()
    assert names == ["a", "a_missing", "a_missing#2"]
