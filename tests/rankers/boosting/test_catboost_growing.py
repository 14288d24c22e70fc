"""BoostedRanker with CatBoost's trees."""

import os
import subprocess
import sys

import numpy as np
import pytest

import rankwise as rw
from rankwise.errors import NothingLearnedWarning, RankwiseError
from rankwise.rankers.boosting.growing import joined

catboost = pytest.importorskip("catboost")


def queries(count=30, seed=0, missing=False):
    """Queries whose relevance has a product in it."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(10 * count, 4))
    y = np.clip(np.rint(X[:, 0] + 2 * X[:, 1] * X[:, 2]), 0, 3)
    if missing:
        X[rng.random(X.shape) < 0.1] = np.nan
    return rw.Queries.from_arrays(X, y, group=[10] * count, missing="keep")


def small(**options):
    """A ranker that is fitted in a moment."""
    return rw.BoostedRanker(**{"engine": "catboost", "trees": 12, "seeds": 2, "folds": 2, "depth": 3, **options})


def test_trees_learn_what_no_linear_ranker_does():
    train, test = queries(100), queries(50, 1)
    model = small(trees=60, patience=20).fit(train)
    assert model.score(test) > rw.RidgeRanker().fit(train).score(test) + 0.1
    assert model.ensemble_.n_trees == 2 * model.trees_
    assert model.trees_ in model.history_["trees"]
    assert model.feature_importances_.sum() == pytest.approx(1.0)


def test_scores_are_those_of_catboost_itself():
    train = queries(missing=True)
    params = {"loss_function": "YetiRank", "depth": 3, "iterations": 12, "learning_rate": 0.08, "rsm": 0.5}
    model = small(seeds=1, patience=None).fit(train)
    seed = int(np.random.default_rng(0).integers(0, 2**31 - 1, 1)[0])
    params |= {"bootstrap_type": "MVS", "subsample": 0.8, "random_seed": seed, "allow_writing_files": False}
    pool = catboost.Pool(np.float32(train.X), train.y, group_id=train.query_of_row)
    own = catboost.CatBoost({**params, "logging_level": "Silent"}).fit(pool)
    np.testing.assert_array_equal(model.predict(train.X), own.predict(pool))


def test_rows_in_any_order_of_the_queries_give_the_same_trees():
    train = queries()
    rng = np.random.default_rng(4)
    mixed = np.argsort(np.tile(np.arange(10), 30) + 0.9 * rng.random(300), kind="stable")  # queries are interleaved
    owner = train.query_of_row[mixed]
    shuffled = rw.Queries.from_arrays(train.X[mixed], train.y[mixed], qid=owner)
    grouped = rw.Queries.from_arrays(shuffled.X[shuffled.rows], shuffled.y[shuffled.rows], group=shuffled.sizes)
    assert not shuffled.is_grouped
    assert grouped.is_grouped
    one, other = small().fit(shuffled), small().fit(grouped)
    np.testing.assert_array_equal(one.predict(train.X), other.predict(train.X))


def test_held_out_labels_are_not_seen():
    from rankwise.losses import StochasticNDCG
    from rankwise.rankers.boosting.catboost import QuantizedRows
    from rankwise.rankers.boosting.objectives import Derivatives

    found = []
    for changed in (False, True):
        train = queries()
        if changed:
            y = train.y.copy()
            y[:100] = 3 - y[:100]
            train = rw.Queries.from_arrays(train.X, y, group=[10] * 30)
        rows = QuantizedRows.of([train], small()._catboost_params(), 1)
        derivatives = Derivatives.of(StochasticNDCG(), joined([train]), 1).without(np.arange(100))
        model = rows.model(derivatives, 1, None, 1)
        for _ in range(7):
            model.grow()
        found.append(model.scores())
        np.testing.assert_allclose(model.scores()[:100], model.ensemble().predict(train.X[:100]), rtol=1e-12)
    np.testing.assert_array_equal(*found)
    assert found[0][:100].any()
    assert not found[0][100:].any()


CHILD = """
import sys
from tests.rankers.boosting.test_catboost_growing import queries, small
import hashlib
model = small(n_jobs=int(sys.argv[1]), trees=20, depth=6).fit(queries(200, missing=True))
print(model.trees_, hashlib.sha256(model.predict(queries(50, 1).X).tobytes()).hexdigest())
"""


def test_the_bits_do_not_depend_on_the_number_of_threads():
    said = [
        subprocess.run([sys.executable, "-c", CHILD, str(jobs)], capture_output=True, text=True, env=os.environ)
        for jobs in (1, 2)
    ]
    assert said[0].returncode == 0, said[0].stderr
    assert said[0].stdout == said[1].stdout != ""


def test_a_saved_model_has_the_same_bits_and_needs_no_catboost(tmp_path, monkeypatch):
    train = queries(missing=True)
    model = small().fit(train)
    model.save(tmp_path / "model.rankwise")
    monkeypatch.setitem(sys.modules, "catboost", None)
    loaded = rw.load(tmp_path / "model.rankwise")
    np.testing.assert_array_equal(loaded.predict(train.X), model.predict(train.X))
    with pytest.raises(RankwiseError, match=r"catboost is not installed; run .*pip install .*\[catboost\]'"):
        small().fit(train)


def test_no_files_are_left_and_nothing_is_printed(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    small().fit(queries())
    assert list(tmp_path.iterdir()) == []
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("target", ["python", "onnx"])
def test_the_trees_are_exported(target, tmp_path):
    train = queries()
    found = rw.export(small(seeds=1).fit(train), target, sample=train)
    assert found.parity.inverted == 0


def test_monotone_and_additive_trees():
    train = queries(60)
    rising = small(monotone={0: 1}).fit(train)
    X = np.repeat(train.X[:20], 30, axis=0)
    X[:, 0] = np.tile(np.linspace(-3, 3, 30), 20)
    assert (np.diff(rising.predict(X).reshape(20, 30), axis=1) >= -1e-12).all()
    assert rising.ensemble_.importance()[0] > 0
    assert len(small(additive=True).fit(train).shapes_) > 0


def test_query_weights_count_and_a_common_factor_does_not():
    train = queries()
    weight = np.linspace(0.5, 2.0, len(train))
    plain, one, other = (
        small().fit(given) for given in (train, train.with_weight(weight), train.with_weight(4 * weight))
    )
    np.testing.assert_array_equal(one.predict(train.X), other.predict(train.X))
    assert not np.array_equal(one.predict(train.X), plain.predict(train.X))
    roots = one.ensemble_.node_count[one.ensemble_.start[:-1]]
    assert (roots == train.n_documents).all(), "documents are counted, not weights"
    np.testing.assert_allclose(one.ensemble_.contributions(train.X).sum(1), one.predict(train.X), atol=1e-12)


def test_queries_of_weight_0_are_as_if_absent():
    train = queries()
    weight = np.where(np.arange(30) < 10, 0.0, 1.0)
    zero = small(patience=None).fit(train.with_weight(weight))
    assert (zero.ensemble_.node_count[zero.ensemble_.start[:-1]] == 200).all()


@pytest.mark.parametrize("kind", ["equal labels", "equal within queries", "constant features", "one document each"])
def test_where_nothing_can_be_learned_all_scores_are_equal(kind):
    train = queries()
    X, y, group = train.X, train.y, [10] * 30
    if kind == "equal labels":
        y = np.ones(300)
    elif kind == "equal within queries":
        y = np.repeat(np.arange(30) % 3, 10)
    elif kind == "constant features":
        X = np.ones_like(X)
    else:
        group = [1] * 300
    train = rw.Queries.from_arrays(X, y, group=group)
    if kind == "constant features":
        model = small().fit(train)
    else:
        with pytest.warns(NothingLearnedWarning):
            model = small().fit(train)
    assert len(np.unique(model.predict(queries().X))) == 1


def test_values_beyond_float32_and_two_documents():
    X = np.array([[1e300, 1.0], [-1e300, 2.0]])
    model = small(patience=None).fit(rw.Queries.from_arrays(X, [1, 0], group=[2]))
    scores = model.predict(X)
    assert scores[0] > scores[1]


def test_a_validation_set_selects_the_number_of_trees():
    train, held = queries(), queries(seed=3)
    both = small().fit(train, validation=held)
    alone = small(refit="train").fit(train, validation=held)
    count = [one.ensemble_.node_count[0] for one in (both, alone)]
    assert count == [600, 300]


def test_what_yetirank_cannot_do_is_a_clear_error():
    train = queries()
    for options, message in (
        ({"loss": rw.losses.ListNet()}, "'loss' parameter of"),
        ({"start": "ridge"}, "'start' parameter of"),
        ({"categorical_features": [0]}, "'categorical_features' parameter of"),
        ({"depth": 17}, "depth"),
        ({"engine": "xgboost"}, "engine"),
    ):
        with pytest.raises(RankwiseError, match=message):
            small(**options).fit(train)
    with pytest.raises(RankwiseError, match="takes no document weights, because YetiRank weights queries alone"):
        small().fit(train.X, train.y, group=[10] * 30, sample_weight=np.linspace(0.1, 1, 300))
