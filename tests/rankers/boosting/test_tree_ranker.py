"""Trees of LightGBM, XGBoost and CatBoost as rankers: the boosters' scores, files, certificates, and refusals.

The whole grid of models, and thousands of damaged files, are those of ``experiments/foreign_trees.py`` and
``experiments/foreign_files.py``.
"""

import copy
import gzip
import json
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone

import rankwise as rw
from experiments import foreign_files, foreign_trees
from experiments.foreign_trees import Cell
from rankwise.errors import DataError, FileFormatError, RankwiseError
from rankwise.exports import export
from rankwise.io.any_file import booster_of
from rankwise.rankers.boosting.xgboost_file import read_xgboost

lightgbm = pytest.importorskip("lightgbm")
xgboost = pytest.importorskip("xgboost")
catboost = pytest.importorskip("catboost")

LISTS = rw.make_lists(40, documents=(4, 12), features=4, random_state=1)
HELD = rw.make_lists(60, documents=(4, 12), features=4, random_state=2)
X, Y, SIZES = np.asarray(LISTS.X), LISTS.y.astype(int), LISTS.sizes

FEW = [
    Cell("LightGBM", "", {"max_depth": 12}, 5),
    Cell("LightGBM", "", {"max_depth": 3, "zero_as_missing": True}, 10, "many"),
    Cell("LightGBM", "", {"max_depth": 3, "use_missing": False}, 10, "later"),
    Cell("LightGBM", "", {"max_cat_to_onehot": 1, "cat_smooth": 1, "min_data_per_group": 1}, 10, "some", 40),
    Cell("LightGBM", "", {"boosting": "dart", "drop_rate": 0.5}, 15),
    Cell("LightGBM", "", {"boosting": "rf", "bagging_freq": 1, "bagging_fraction": 0.7}, 7),
    Cell("LightGBM", "", {"max_depth": 4}, 300, more={"stop": 5, "estimator": True}),
    Cell("LightGBM", "", {"min_data_in_leaf": 10_000}, 3),
    Cell("XGBoost", "", {"max_depth": 12}, 5),
    Cell("XGBoost", "", {"max_depth": 3, "max_cat_to_onehot": 1}, 10, "some", 40),
    Cell("XGBoost", "", {"max_depth": 3, "booster": "dart", "rate_drop": 0.5, "one_drop": 1}, 15),
    Cell("XGBoost", "", {"num_parallel_tree": 4, "subsample": 0.7}, 3, more={"rounds": 2}),
    Cell("XGBoost", "", {"max_depth": 4}, 300, more={"stop": 5, "estimator": True}),
    Cell("XGBoost", "", {"max_depth": 3}, 10, more={"estimator": True, "missing": 0.0}),
    Cell("XGBoost", "", {"objective": "count:poisson"}, 10),
    Cell("CatBoost", "", {"depth": 6, "nan_mode": "Max"}, 10, "many"),
    Cell("CatBoost", "", {"depth": 4}, 10, "none", 40),
    Cell("CatBoost", "", {"depth": 4, "grow_policy": "Lossguide"}, 10, "none", 12),
    Cell("CatBoost", "", {"depth": 3, "loss_function": "RMSE"}, 10),
    Cell("CatBoost", "", {"depth": 3}, 300, more={"stop": 5, "estimator": True}),
]


@pytest.mark.parametrize("cell", FEW, ids=lambda cell: f"{cell.booster}-{cell.params}")
def test_scores_are_those_of_the_booster(cell):
    found = foreign_trees.compare(cell)
    if cell.booster == "XGBoost":
        assert found["in_float32"] == 0, "the same leaves, added in float32 as XGBoost does"
        assert found["allowed"] <= 1
    else:
        assert found["difference"] == 0


def test_the_grid_has_every_setting_of_every_booster():
    grid = foreign_trees.cells()
    assert len(grid) >= 300
    rows = {(one.booster, one.about) for one in grid}
    for about in ("NaN", "categories", "one leaf", "depth 1 to 12", "1 to 2,000 trees", "early stopping",
                  "base score, objectives", "monotone constraints"):  # fmt: skip
        assert {("LightGBM", about), ("XGBoost", about), ("CatBoost", about)} <= rows
    assert {(one, about) for one in ("LightGBM", "XGBoost") for about in ("dart", "random forests")} <= rows
    assert {1, 2_000} <= {one.trees for one in grid}


@cache
def boosters():
    """A fitted ranker of every booster."""
    few = {"n_estimators": 6, "n_jobs": 1, "random_state": 0}
    qid = np.repeat(np.arange(len(SIZES)), SIZES)
    settings = {"iterations": 6, "depth": 3, "thread_count": 1, "verbose": False, "allow_writing_files": False}
    return {
        "LightGBM": lightgbm.LGBMRanker(**few, verbosity=-1, min_child_samples=2).fit(X, Y, group=SIZES),
        "XGBoost": xgboost.XGBRanker(**few, max_depth=3).fit(X, Y, qid=qid),
        "CatBoost": catboost.CatBoostRanker(loss_function="YetiRank", **settings).fit(
            catboost.Pool(X, Y, group_id=qid)
        ),
    }


@cache
def ranker_of(booster, **more):
    read = {"LightGBM": "from_lightgbm", "XGBoost": "from_xgboost", "CatBoost": "from_catboost"}[booster]
    return getattr(rw.TreeRanker, read)(boosters()[booster], **more)


def saved(booster, path):
    model = boosters()[booster]
    if path.suffix == ".cbm" or booster == "CatBoost":
        model.save_model(str(path), format=path.suffix[1:])
    elif booster == "LightGBM":
        model.booster_.save_model(str(path))
    else:
        model.save_model(str(path))
    return path


FILES = [("LightGBM", "m.txt"), ("XGBoost", "m.json"), ("XGBoost", "m.ubj"), ("CatBoost", "m.json"),
         ("CatBoost", "m.cbm")]  # fmt: skip


@pytest.mark.parametrize(("booster", "name"), FILES)
def test_files_are_recognized_packed_or_not_and_written_on_windows(booster, name, tmp_path):
    path, expected = saved(booster, tmp_path / name), ranker_of(booster).predict(HELD)
    assert booster_of(path) == booster
    np.testing.assert_array_equal(rw.read_model(path).predict(HELD), expected)
    packed = tmp_path / "packed"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert booster_of(packed) == booster
    np.testing.assert_array_equal(rw.read_model(packed).predict(HELD), expected)
    packed.write_bytes(gzip.compress(path.read_bytes())[:-20])
    with pytest.raises(FileFormatError, match="cannot be unpacked"):
        rw.read_model(packed)
    if name == "m.txt":
        path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
        np.testing.assert_array_equal(rw.read_model(path).predict(HELD), expected)
    with pytest.raises(DataError, match="trees over 4 features, got features=7"):
        rw.read_model(path, features=7)


@pytest.mark.parametrize("booster", ["LightGBM", "XGBoost", "CatBoost"])
def test_a_ranker_of_trees_is_a_ranker_like_any_other(booster, tmp_path):
    model = ranker_of(booster, measure="nDCG@5")
    scores = model.predict(HELD)
    model.save(tmp_path / "model.rankwise")
    loaded = rw.load(tmp_path / "model.rankwise")
    for one in (loaded, copy.deepcopy(model), clone(model).fit(LISTS), clone(loaded).fit(LISTS)):
        np.testing.assert_array_equal(one.predict(HELD), scores)
    np.testing.assert_array_equal(rw.Scorer(model).scores(np.asarray(HELD.X)), scores)
    np.testing.assert_array_equal(model._contributions(HELD.X)[0].shape, HELD.X.shape)
    parts, constant = model._contributions(HELD.X)
    np.testing.assert_allclose(parts.sum(axis=1) + constant, scores, rtol=1e-9, atol=1e-9)
    assert rw.explain(model, HELD[0], 0, 1).table() is not None
    assert loaded.score(HELD) == rw.evaluate(HELD, model, ["nDCG@5"]).mean["nDCG@5"]
    assert model.feature_importances_.sum() == pytest.approx(1.0)
    assert export(model, "sql", sample=HELD).parity.inverted_beyond_float32 == 0
    both = rw.Committee([model, rw.RidgeRanker()], folds=2).fit(LISTS)
    both.save(tmp_path / "both.rankwise")
    np.testing.assert_array_equal(rw.load(tmp_path / "both.rankwise").predict(HELD), both.predict(HELD))
    with pytest.raises(DataError, match="has no trees to fit with"):
        clone(rw.load(tmp_path / "both.rankwise")).fit(LISTS).members[0].fit(LISTS)
    with pytest.raises(DataError, match="grown on 4 features, got 3"):
        clone(model).fit(rw.make_lists(5, features=3, random_state=0))
    missing = np.full((2, 4), np.nan)
    assert np.isfinite(model.predict(missing)).all()


def test_contributions_are_those_of_lightgbm_and_xgboost():
    for booster, own in (
        ("LightGBM", boosters()["LightGBM"].predict(X, pred_contrib=True)),
        ("XGBoost", boosters()["XGBoost"].get_booster().predict(xgboost.DMatrix(X), pred_contribs=True)),
    ):
        np.testing.assert_allclose(ranker_of(booster).ensemble_.contributions(X), own, rtol=1e-4, atol=1e-5)


def test_names_come_from_the_booster_or_are_given():
    names = ["bm25", "age", "clicks", "length"]
    data = lightgbm.Dataset(X, Y, group=SIZES, feature_name=names)
    booster = lightgbm.train({"objective": "lambdarank", "verbosity": -1, "num_threads": 1}, data, 2)
    assert rw.TreeRanker.from_lightgbm(booster).feature_names_in_.tolist() == names
    assert rw.TreeRanker.from_lightgbm(booster, feature_names=list("abcd")).feature_names_in_.tolist() == list("abcd")
    for one in boosters():
        assert not hasattr(ranker_of(one), "feature_names_in_"), "names that nobody gave"
    with pytest.raises(RankwiseError, match="feature_names"):
        rw.TreeRanker.from_lightgbm(booster, feature_names=["a"])


# -------------------------------------------------------------------------------------------------------- certificates


def test_a_certificate_says_what_is_not_known_unless_the_training_queries_are_given():
    model = ranker_of("LightGBM")
    alone = model.certificate(holdout=HELD)
    assert any("overlap with its training queries cannot be checked" in note for note in alone.notes)
    assert alone.headline.applies is None
    found = model.certificate(LISTS, HELD)
    assert any("those given as train= stand for them" in note for note in found.notes)
    (unseen,) = {one for one in found.headline.preconditions if "saw" in one.sentence and "content" in one.sentence}
    assert unseen.met is None, "whether it learned from others, too, is not known"
    shared = model.certificate(LISTS, rw.Queries.concat([LISTS[:5], HELD], rename=True))
    assert any("5 of the 65 hold-out queries" in note for note in shared.notes)
    seen = rw.certify(LISTS, model, "nDCG@10", train=LISTS)
    assert "all 40 hold-out queries were used in training" in seen.missing
    assert seen.headline is None


def test_trees_that_were_changed_are_noticed():
    model = copy.copy(ranker_of("LightGBM"))
    model.ensemble_ = model.ensemble_.first(2)
    assert any("learned state was changed" in note for note in model.certificate(holdout=HELD).notes)


# ------------------------------------------------------------------------------------------------------------ refusals


def test_what_has_no_single_score_is_refused_by_name(tmp_path):
    quiet = {"verbosity": -1, "num_threads": 1}
    classes = lightgbm.train({"objective": "multiclass", "num_class": 3, **quiet}, lightgbm.Dataset(X, Y % 3), 2)
    with pytest.raises(FileFormatError, match=r"several scores per row .multi-class."):
        rw.TreeRanker.from_lightgbm(classes)
    linear = lightgbm.train({"objective": "regression", "linear_tree": True, **quiet}, lightgbm.Dataset(X, Y), 2)
    linear.save_model(tmp_path / "linear.txt")
    with pytest.raises(FileFormatError, match=r"linear.txt: .* train with linear_tree=False"):
        rw.read_model(tmp_path / "linear.txt")
    data = xgboost.DMatrix(X, Y % 3)
    for params, message in (
        ({"objective": "multi:softprob", "num_class": 3}, "several scores per row .multi-class"),
        ({"booster": "gblinear"}, "rankwise.LinearModel.of"),
    ):
        with pytest.raises(FileFormatError, match=message):
            rw.TreeRanker.from_xgboost(xgboost.train({"nthread": 1, **params}, data, 2))
    several = xgboost.DMatrix(X, np.stack([Y, -Y], axis=1))
    vectors = {"multi_strategy": "multi_output_tree", "tree_method": "hist", "nthread": 1}
    with pytest.raises(FileFormatError, match="several scores per row"):
        rw.TreeRanker.from_xgboost(xgboost.train(vectors, several, 2))
    few = {"iterations": 2, "thread_count": 1, "verbose": False, "allow_writing_files": False}
    with pytest.raises(FileFormatError, match=r"3 scores per row .multi-class."):
        rw.TreeRanker.from_catboost(catboost.CatBoostClassifier(**few).fit(X, Y % 3))


def test_what_is_no_model_is_refused_in_a_sentence(tmp_path):
    for read, kind in (
        (rw.TreeRanker.from_lightgbm, lightgbm.LGBMRanker),
        (rw.TreeRanker.from_xgboost, xgboost.XGBRanker),
        (rw.TreeRanker.from_catboost, catboost.CatBoostRanker),
    ):
        with pytest.raises(RankwiseError, match="must be a fitted object or a path, got int"):
            read(5)
        with pytest.raises(RankwiseError, match="there is no such file"):
            read(tmp_path / "nothing.txt")
        with pytest.raises(RankwiseError, match=r"not fitted yet|CatBoost cannot read or write this model"):
            read(kind())
        (tmp_path / "text").write_text("hello\n")
        with pytest.raises(FileFormatError, match="this is not a"):
            read(tmp_path / "text")
        with pytest.raises(RankwiseError, match="rounds must be a whole number, 1 or more, got 0"):
            read(tmp_path / "text", rounds=0)
    strange = xgboost.XGBRanker(missing=-999.0, n_estimators=1).fit(X, Y, qid=np.repeat(np.arange(len(SIZES)), SIZES))
    with pytest.raises(RankwiseError, match=r"counts -999.0 as missing: replace it by NaN"):
        rw.TreeRanker.from_xgboost(strange)
    (tmp_path / "damaged.cbm").write_bytes(b"CBM1" + b"\0" * 40)
    with pytest.raises(RankwiseError, match="CatBoost cannot read or write this model"):
        rw.read_model(tmp_path / "damaged.cbm")


def test_a_booster_in_place_of_a_ranker_is_pointed_to_tree_ranker():
    with pytest.raises(RankwiseError, match=r"TreeRanker.from_lightgbm"):
        rw.export(boosters()["LightGBM"], "sql")
    with pytest.raises(RankwiseError, match=r"TreeRanker.from_xgboost"):
        rw.Scorer(boosters()["XGBoost"])


def test_older_files_of_xgboost_are_read():
    model = json.loads(boosters()["XGBoost"].get_booster().save_raw("json"))
    expected = ranker_of("XGBoost").ensemble_
    learner = model["learner"]
    learner["learner_model_param"]["base_score"] = learner["learner_model_param"]["base_score"].strip("[]")
    own = learner["gradient_booster"]["model"]
    for name in ("cats", "iteration_indptr"):
        own.pop(name, None)
    for tree in own["trees"]:
        tree["default_left"] = [bool(one) for one in tree["default_left"]]
        for name in ("split_type", "categories", "categories_nodes", "categories_segments", "categories_sizes"):
            del tree[name]
    found = read_xgboost(json.dumps(model))
    assert found.offset == expected.offset
    np.testing.assert_array_equal(found.arrays["value"], expected.value)


def test_damaged_files_are_refused_in_a_sentence_or_are_rankers(tmp_path):
    rows = np.random.default_rng(0).normal(size=(20, 6))
    rows[0] = np.nan
    found = []
    for number, (name, data) in enumerate(foreign_files.good_files().items()):
        path = Path(tmp_path, name)
        path.write_bytes(data)
        assert foreign_files.outcome(path, rows) == "ranker"
        for seed in range(40):
            kind, damaged = foreign_files.mutated(data, name, np.random.default_rng([number, seed]))
            path.write_bytes(damaged)
            found.append(foreign_files.outcome(path, rows))
            assert found[-1] in ("refused", "ranker"), f"{name}, {seed}, {kind}: {found[-1]}"
    assert found.count("refused") > 100
    assert found.count("ranker") > 20
