"""XGBoost's models as sums of trees: the same leaves, and the same scores but for sums in float32."""

import json
from functools import cache

import numpy as np
import pytest

from rankwise.errors import RankwiseError
from rankwise.rankers.boosting.tree_ensemble import TreeEnsemble


@cache
def trained(objective="rank:ndcg", rounds=20, depth=4):
    """A model, and the features that it learned from."""
    xgboost = pytest.importorskip("xgboost")
    rng = np.random.default_rng(0)
    X = np.round(rng.normal(size=(400, 4)), 1).astype(np.float32)
    X[rng.random(X.shape) < 0.15] = np.nan
    y = np.clip(np.rint(np.nan_to_num(X[:, 0]) + np.nan_to_num(X[:, 1], nan=1.0)), 0, 3)
    data = xgboost.DMatrix(X, y, group=[20] * 20) if objective.startswith("rank") else xgboost.DMatrix(X, y)
    options = {"objective": objective, "max_depth": depth, "nthread": 1, "verbosity": 0, "base_score": 0.25}
    return xgboost.train(options, data, rounds), X


def near_conditions(trees, dtype):
    """Rows of values around every threshold."""
    rng = np.random.default_rng(1)
    near = np.concatenate(
        [trees.threshold, np.nextafter(trees.threshold, np.inf), np.nextafter(trees.threshold, -np.inf)]
    )
    single = near.astype(np.float32)
    pool = np.concatenate([near, single, np.nextafter(single, np.float32(9)), [np.nan, 0.0, 1e30, -1e30]])
    pool = np.where(np.abs(pool) < 1e-30, 0.0, pool)  # what is nearer to 0 counts as 0 in an ensemble
    return rng.choice(pool, size=(300, 4)).astype(dtype)


@pytest.mark.parametrize("objective", ["rank:ndcg", "rank:pairwise", "reg:squarederror"])
@pytest.mark.parametrize("depth", [1, 4, 8])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_every_row_falls_into_xgboosts_leaves(objective, depth, dtype):
    xgboost = pytest.importorskip("xgboost")
    model, X = trained(objective, depth=depth)
    trees = TreeEnsemble.from_xgboost_json(model.save_raw("json"))
    assert trees.n_trees == 20
    for rows in (X.astype(dtype), near_conditions(trees, dtype)):
        with np.errstate(invalid="ignore"):
            expected = model.predict(xgboost.DMatrix(rows.astype(np.float32)), output_margin=True)
        np.testing.assert_allclose(trees.predict(rows), expected, rtol=2e-6, atol=2e-6)
    if depth == 1:
        assert trees.additive


def test_models_that_cannot_be_taken_are_refused_with_the_reason():
    model, _ = trained()
    good = json.loads(model.save_raw("json"))
    for path, value, message in (
        (("learner", "gradient_booster", "name"), "forest", "expected gbtree or dart"),
        (("learner", "gradient_booster", "name"), "gblinear", "rankwise.LinearModel.of"),
        (("learner", "gradient_booster", "name"), "dart", "or it is damaged"),
        (("learner", "learner_model_param", "num_class"), "3", "several scores per row"),
        (("learner", "objective", "name"), "multi:softmax", "several scores per row"),
        (("learner", "objective", "name"), "mine", "objective 'mine', which is not known"),
        (("learner", "learner_model_param", "base_score"), "nan", "base score"),
        (("learner", "learner_model_param", "num_feature"), "1", "not one of 0 to 0"),
        (("learner", "gradient_booster", "model", "trees", 0, "split_type", 0), 1, "splits by categories and has none"),
        (("learner", "gradient_booster", "model", "trees", 0, "left_children", 1), 0, "do not form a tree"),
        (("learner", "gradient_booster", "model", "trees", 0, "split_conditions", 0), 1e300, "float32 cannot hold"),
        (("learner", "gradient_booster", "model", "trees", 0, "loss_changes"), [], "different lengths"),
    ):
        changed = json.loads(json.dumps(good))
        place = changed
        for key in path[:-1]:
            place = place[key]
        place[path[-1]] = value
        with pytest.raises(RankwiseError, match=message):
            TreeEnsemble.from_xgboost_json(json.dumps(changed))
    for text in ("", "[]", "{}", b"\xff", '{"learner": 5}', "[" * 100_000):
        with pytest.raises(RankwiseError, match="not an XGBoost model in JSON"):
            TreeEnsemble.from_xgboost_json(text)
    with pytest.raises(RankwiseError, match="must be a str, got int"):
        TreeEnsemble.from_xgboost_json(5)


def test_mutated_models_are_an_error_or_trees_that_work():
    rng = np.random.default_rng(3)
    model, X = trained(rounds=3)
    good = json.loads(model.save_raw("json"))
    sentences = []
    for _ in range(600):
        changed = json.loads(json.dumps(good))
        tree = changed["learner"]["gradient_booster"]["model"]["trees"][int(rng.integers(0, 3))]
        name = str(rng.choice([key for key, value in tree.items() if isinstance(value, list)]))
        values, hostile = tree[name], [None, -1, 0, 1, 5, 2**40, 1e39, "x", [], True, float("nan"), -0.5]
        place = int(rng.integers(0, len(values) + 1))
        own = hostile[int(rng.integers(0, len(hostile)))]
        tree[name] = [*values[:place], own, *values[place + int(rng.integers(0, 2)) :]]
        try:
            found = TreeEnsemble.from_xgboost_json(json.dumps(changed))
        except RankwiseError as error:
            sentences.append(str(error))
            continue
        assert np.isfinite(found.predict(X)).all()
    assert 200 < len(sentences) < 600
    assert not any("\n" in one for one in sentences)
