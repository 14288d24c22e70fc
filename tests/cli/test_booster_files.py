"""Files of LightGBM, XGBoost and CatBoost wherever a command takes a model."""

import json

import numpy as np
import pytest

import rankwise as rw
from rankwise.serve.service import Service

lightgbm = pytest.importorskip("lightgbm")
xgboost = pytest.importorskip("xgboost")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("boosters")
    queries = rw.make_lists(50, documents=6, features=3, random_state=0)
    train, test = queries[:25], queries[25:]
    for name, part in (("train", train), ("test", test)):
        rw.io.write_table(part, folder / f"{name}.csv")
    X, y = np.asarray(train.X), train.y.astype(int)
    few = {"n_estimators": 5, "n_jobs": 1}
    trees = lightgbm.LGBMRanker(verbosity=-1, min_child_samples=2, **few).fit(X, y, group=train.sizes)
    trees.booster_.save_model(folder / "model.txt")
    xgboost.XGBRanker(**few).fit(X, y, qid=np.repeat(np.arange(25), 6)).save_model(folder / "model.ubj")
    return folder


def test_a_booster_is_certified_with_any_measure_and_its_training_queries(files, run):
    code, out, _ = run("certify", files / "model.txt", "--holdout", files / "test.csv", "-m", "AP", "--json")
    found = json.loads(out)
    assert code in (0, 3)  # few queries
    assert found["about"].startswith("TreeRanker, AP")
    assert any("overlap with its training queries cannot be checked" in note for note in found["notes"])
    code, out, _ = run("certify", files / "model.ubj", "--holdout", files / "train.csv", "--train", files / "train.csv")
    assert code == 3
    assert "hold-out queries were used in training" in " ".join(out.split())


@pytest.mark.parametrize("name", ["model.txt", "model.ubj"])
def test_a_booster_ranks_is_evaluated_compared_and_exported(files, run, name):
    model = rw.read_model(files / name)
    test = rw.read_table(files / "test.csv")
    code, out, _ = run("rank", files / name, files / "test.csv", "--to", "scores")
    assert code == 0
    np.testing.assert_array_equal(np.array(out.split(), float), model.predict(test))
    code, out, _ = run("evaluate", files / "test.csv", "--model", files / name, "-m", "nDCG@10", "--json")
    found = json.loads(out)["results"][str(files / name)]["measures"]["nDCG@10"]
    assert code == 0
    assert rw.evaluate(test, model, ["nDCG@10"]).mean["nDCG@10"] == found["mean"]
    code, out, _ = run("compare", files / "test.csv", "-r", f"mine={files / name}", "-r", "RidgeRanker", "--folds", 1)
    assert code == 0
    assert "mine" in out
    export = ("export", files / name, "--to", "opensearch", "--sample", files / "test.csv", "--json")
    if name == "model.ubj":  # XGBoost sends missing values somewhere even if it has never seen one
        assert "set --missing zero if no document lacks a feature" in " ".join(run(*export)[2].split())
        export = (*export, "--missing", "zero")
    code, out, _ = run(*export)
    assert code == 0
    assert json.loads(out)["parity"]["inverted_beyond_float32"] == 0


def test_a_booster_is_served_and_found_again_after_a_restart(files, tmp_path):
    expected = rw.read_model(files / "model.txt")
    for _ in range(2):
        service = Service(tmp_path / "state.db", {"trees": files / "model.txt"})
        try:
            np.testing.assert_array_equal(
                service.view.models["trees"].scorer.scores(np.eye(3)), expected.predict(np.eye(3))
            )
        finally:
            service.close()
