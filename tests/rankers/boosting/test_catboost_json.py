"""CatBoost's models as sums of trees: the same leaves, and the same scores to the bit."""

import json
from functools import cache

import numpy as np
import pytest

from rankwise.errors import RankwiseError
from rankwise.rankers.boosting.catboost_file import _not_above
from rankwise.rankers.boosting.tree_ensemble import TreeEnsemble
from rankwise.rankers.boosting.tree_ranker import TreeRanker

catboost = pytest.importorskip("catboost")


@cache
def rows():
    """Features with gaps, ties and a constant, and labels."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 5))
    X[:, 1] = np.round(X[:, 1], 1)
    X[rng.random(400) < 0.15, 0] = np.nan
    X[:, 4] = 2.0
    y = np.clip(np.rint(np.nan_to_num(X[:, 0]) + X[:, 1] * X[:, 2]), 0, 3)
    return X, y


@cache
def trained(loss="YetiRank", trees=20, depth=4, nan_mode="Min", weighted=False, policy="SymmetricTree"):
    """A model of CatBoost."""
    X, y = rows()
    weight = np.repeat(np.linspace(0.1, 2.0, 20), 20) if weighted else None
    pool = catboost.Pool(X, y, group_id=np.repeat(np.arange(20), 20), group_weight=weight)
    options = {"loss_function": loss, "iterations": trees, "depth": depth, "nan_mode": nan_mode, "grow_policy": policy}
    model = catboost.CatBoost({**options, "thread_count": 1, "allow_writing_files": False, "logging_level": "Silent"})
    return model.fit(pool)


@pytest.fixture
def text_of(tmp_path):
    """What a model writes."""

    def text(model):
        model.save_model(str(tmp_path / "model.json"), format="json")
        return (tmp_path / "model.json").read_text()

    return text


def near_borders(trees, dtype):
    """Rows of values around every threshold."""
    rng = np.random.default_rng(1)
    near = trees.threshold
    with np.errstate(over="ignore"):
        single = near.astype(np.float32)
    single = single[np.isfinite(single)]
    pool = [near, np.nextafter(near, np.inf), np.nextafter(near, -np.inf), single, np.nextafter(single, np.float32(9))]
    pool = np.concatenate([*pool, [np.nan, 0.0, 1e30, -1e30]])
    pool = pool[~(np.abs(pool) > 3e38)]
    pool = np.where(np.abs(pool) < 1e-30, 0.0, pool)  # what is nearer to 0 counts as 0 in an ensemble
    return rng.choice(pool, size=(300, 5)).astype(dtype)


@pytest.mark.parametrize("options", [
    {},
    {"depth": 1},
    {"trees": 1, "depth": 6},
    {"nan_mode": "Max"},
    {"weighted": True},
    {"loss": "QueryRMSE"},
    {"loss": "RMSE"},  # it has a bias
])  # fmt: skip
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_scores_have_the_bits_of_catboost(options, dtype, text_of):
    model = trained(**options)
    trees = TreeEnsemble.from_catboost_json(text_of(model))
    assert trees.n_trees == options.get("trees", 20)
    for X in (rows()[0].astype(dtype), near_borders(trees, dtype)):
        np.testing.assert_array_equal(trees.predict(X), model.predict(X.astype(np.float32)))
    assert trees.additive == (options.get("depth") == 1)


def test_scale_and_bias_are_part_of_the_model(text_of):
    model = trained()
    text = text_of(model)
    changed = json.loads(text)
    changed["scale_and_bias"] = [2.0, [0.5]]
    X = rows()[0]
    expected = 2.0 * TreeEnsemble.from_catboost_json(text).predict(X) + 0.5
    np.testing.assert_allclose(TreeEnsemble.from_catboost_json(json.dumps(changed)).predict(X), expected, rtol=1e-14)


def test_a_border_splits_float64_where_their_float32_are_split():
    limit = np.finfo(np.float32).max
    tiny = np.finfo(np.float32).tiny
    drawn = np.random.default_rng(2).normal(size=200).astype(np.float32)
    border = np.append(drawn, [0.0, 1.0, -1.0, tiny, -tiny, limit, -limit]).astype(np.float32)
    found = _not_above(border)
    with np.errstate(over="ignore"):
        assert (found.astype(np.float32) <= border).all()
        assert (np.nextafter(found, np.inf).astype(np.float32) > border).all()


def test_documents_are_counted_and_contributions_add_up(text_of):
    X, y = rows()
    trees = TreeEnsemble.from_catboost_json(text_of(trained(depth=6)))
    assert (trees.node_count[trees.start[:-1]] == len(y)).all()
    assert (trees.node_count == 0).any(), "no document comes to some nodes of symmetric trees"
    found = trees.contributions(X[:50])
    np.testing.assert_allclose(found.sum(axis=1), trees.predict(X[:50]), rtol=1e-12, atol=1e-12)
    assert np.isfinite(found).all()
    assert not found[:, 4].any(), "a constant feature adds nothing"


@pytest.mark.parametrize("weighted", [False, True])
def test_contributions_are_those_of_catboost(weighted, text_of):
    model = trained(depth=2, weighted=weighted)
    trees = TreeEnsemble.from_catboost_json(text_of(model))
    X, y = rows()
    assert (trees.node_count > 0).all(), "where no document comes, conventions differ"
    pool = catboost.Pool(X, y, group_id=np.repeat(np.arange(20), 20))
    expected = model.get_feature_importance(pool, type="ShapValues")
    np.testing.assert_allclose(trees.contributions(X), expected, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("options", [{}, {"depth": 1}, {"depth": 6, "weighted": True}])
def test_shares_in_the_gains_are_the_importances_of_catboost(options, text_of):
    model = trained(**options)
    gain = TreeEnsemble.from_catboost_json(text_of(model)).importance()
    expected = model.get_feature_importance(type="PredictionValuesChange")
    np.testing.assert_allclose(100 * gain / gain.sum(), expected, rtol=1e-9, atol=1e-9)
    assert gain[4] == 0


def test_models_that_cannot_be_taken_are_refused_with_the_reason(text_of):
    good = json.loads(text_of(trained()))
    tree = ("oblivious_trees", 0)
    for path, value, message in (
        (("scale_and_bias",), [1, [0, 0]], "2 scores per row"),
        (("scale_and_bias",), [1, [float("nan")]], "not finite"),
        (("scale_and_bias",), 1, "not a CatBoost model in JSON"),
        (("features_info", "float_features"), [], "no list of features"),
        (("features_info", "float_features", 0, "nan_value_treatment"), "AsZero", "treats NaN as 'AsZero'"),
        (("features_info", "float_features", 1, "flat_feature_index"), 7, "feature 1 is missing"),
        (("features_info", "categorical_features"), [{}], "feature 0 is missing"),
        (("features_info", "text_features"), [{}], "has text features, which cannot be computed without CatBoost"),
        (("features_info", "ctrs"), [{}], "statistics of the labels .ctrs."),
        ((*tree, "splits", 0, "split_type"), "OneHotFeature", "not one of 0 to -1"),
        ((*tree, "splits", 0, "split_type"), "OnlineCtr", "raise one_hot_max_size"),
        ((*tree, "splits", 0, "float_feature_index"), 5, "not one of 0 to 4"),
        ((*tree, "splits", 0, "border"), 1e300, "float32 cannot hold"),
        ((*tree, "splits", 0, "border"), None, "border is missing"),
        ((*tree, "splits"), [{}] * 30, "at most 16"),
        ((*tree, "leaf_values"), [0.0] * 32, "expected 16"),
        ((*tree, "leaf_weights", 0), -1, "below 0"),
        (tree, 5, "is not an object"),
    ):
        changed = json.loads(json.dumps(good))
        place = changed
        for key in path[:-1]:
            place = place[key]
        place[path[-1]] = value
        with pytest.raises(RankwiseError, match=message):
            TreeEnsemble.from_catboost_json(json.dumps(changed))
    for text in ("", "[]", "{}", b"\xff", '{"features_info": 5}', "[" * 100_000):
        with pytest.raises(RankwiseError, match="not a CatBoost model in JSON"):
            TreeEnsemble.from_catboost_json(text)
    with pytest.raises(RankwiseError, match="must be a str, got int"):
        TreeEnsemble.from_catboost_json(5)


@pytest.mark.parametrize("policy", ["Depthwise", "Lossguide"])
def test_trees_that_are_not_symmetric_have_the_bits_of_catboost(policy, text_of):
    model = trained(loss="RMSE", policy=policy)
    trees = TreeEnsemble.from_catboost_json(text_of(model))
    X, _ = rows()
    np.testing.assert_array_equal(trees.predict(X), model.predict(X))
    np.testing.assert_allclose(trees.contributions(X).sum(axis=1), model.predict(X), rtol=1e-12, atol=1e-12)
    assert trees.importance().sum() > 0


def test_codes_of_categories_are_found_by_the_hash_of_their_text():
    frame = {"x": np.arange(600.0) % 7, "code": np.arange(600) * 37 % 23_000}
    pandas = pytest.importorskip("pandas")
    y = (frame["code"] % 5 == 0).astype(float)
    options = {"loss_function": "RMSE", "iterations": 12, "depth": 6, "one_hot_max_size": 255, "learning_rate": 1.0}
    model = catboost.CatBoost({**options, "thread_count": 1, "allow_writing_files": False, "logging_level": "Silent"})
    few = pandas.DataFrame({**frame, "code": frame["code"] % 40 * 575})
    model.fit(catboost.Pool(few, y, cat_features=["code"]))
    ranker = TreeRanker.from_catboost(model)
    assert ranker.ensemble_.categorical.any()
    assert ranker.feature_names_in_.tolist() == ["x", "code"]
    np.testing.assert_array_equal(ranker.predict(few), model.predict(few))
    words = pandas.DataFrame({**frame, "code": [f"word {code % 5}" for code in frame["code"]]})
    model.fit(catboost.Pool(words, y, cat_features=["code"]))
    with pytest.raises(RankwiseError, match="is not a whole number from 0 to 99,999: number the categories"):
        TreeRanker.from_catboost(model)
    many = catboost.CatBoost({**options, "one_hot_max_size": 2, "allow_writing_files": False, "verbose": False})
    with pytest.raises(RankwiseError, match="replaced by statistics of the labels"):
        TreeRanker.from_catboost(many.fit(catboost.Pool(few, y, cat_features=["code"])))


def test_mutated_models_are_an_error_or_trees_that_work(text_of):
    rng = np.random.default_rng(3)
    good = text_of(trained(trees=3))
    hostile = [None, -1, 0, 1, 5, 2**40, 2**70, 1e39, "x", [], {}, True, float("nan"), -0.5]
    sentences = []
    for _ in range(600):
        changed = json.loads(good)
        tree = changed["oblivious_trees"][int(rng.integers(0, 3))]
        place = [tree, tree["leaf_values"], tree["leaf_weights"], tree["splits"], tree["splits"][0]][rng.integers(0, 5)]
        keys = list(place) if isinstance(place, dict) else range(len(place))
        place[keys[int(rng.integers(0, len(keys)))]] = hostile[int(rng.integers(0, len(hostile)))]
        try:
            found = TreeEnsemble.from_catboost_json(json.dumps(changed))
        except RankwiseError as error:
            sentences.append(str(error))
            continue
        assert np.isfinite(found.predict(rows()[0])).all()
    assert 200 < len(sentences) < 600
    assert not any("\n" in one for one in sentences)
