"""BoostedRanker with LightGBM's trees: its recipe, what is promised about it, and what it refuses."""

import copy
import os
import pickle
import subprocess
import sys

import lightgbm
import numpy as np
import pytest

import rankwise as rw
from rankwise import losses
from rankwise._extras import install_command
from rankwise.errors import DataError, NothingLearnedWarning, RankwiseError
from rankwise.losses.compute import PreparedLists, curvature_lists
from rankwise.rankers.boosting import boosted, growing
from rankwise.rankers.boosting.growing import TreeCurve, joined
from rankwise.rankers.boosting.objectives import Derivatives

SMALL = {"trees": 15, "seeds": 1, "n_jobs": 1, "smallest_leaf": 5}


def queries(count=80, seed=0, names=("a", "b", "c", "d")):
    """Judged lists whose labels depend on a product of features."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(2, 15, count)
    X = rng.normal(size=(sizes.sum(), 4))
    y = np.clip(np.rint(X[:, 0] + 2 * X[:, 1] * X[:, 2] + 0.3 * rng.normal(size=len(X))), 0, 3)
    return rw.Queries.from_arrays(X, y, group=sizes, feature_names=names)


def lightgbm_trees(*measure, **options):
    """A ranker whose trees LightGBM grows."""
    return rw.BoostedRanker(*measure, **{"engine": "lightgbm", **options})


# ------------------------------------------------------------------------------------------------------- the recipe


def test_trees_are_those_of_lightgbm_on_the_derivatives_of_the_loss():
    """A plain loop over a plain data set, seed by seed, and the mean of the raw scores."""
    lists = queries()
    model = lightgbm_trees("nDCG@5", trees=12, patience=None, seeds=2, n_jobs=1, random_state=7).fit(lists)
    seeds = np.random.default_rng(7).integers(0, 2**31 - 1, 2).tolist()
    params = {
        "objective": "none", "metric": "none", "verbosity": -1, "num_threads": 1, "deterministic": True,
        "force_col_wise": True, "learning_rate": 0.08, "num_leaves": 15, "min_data_in_leaf": 20,
        "min_sum_hessian_in_leaf": 1e-3, "bagging_fraction": 0.8, "bagging_freq": 1, "feature_fraction": 0.5,
    }  # fmt: skip
    expected = np.zeros(lists.n_documents)
    for seed in seeds:
        booster = lightgbm.Booster({**params, "seed": seed}, lightgbm.Dataset(lists.X, lists.y, params=params))
        for number in range(12):

            def derivatives(scores, _, seed=seed, number=number):
                loss = losses.StochasticNDCG(k=5, random_state=seed, iteration=number)
                g, h = curvature_lists(PreparedLists.of(loss, lists.y, lists.start), scores.copy())
                factor = np.count_nonzero(h) / h.sum()
                return g * factor, np.maximum(h * factor, 1e-9)

            booster.update(fobj=derivatives)
        expected += booster.predict(lists.X, raw_score=True) / 2
    assert model.ensemble_.n_trees == 24
    np.testing.assert_allclose(model.predict(lists), expected, rtol=1e-12, atol=1e-14)


def test_the_number_of_trees_is_the_best_of_the_curve_on_held_out_queries():
    lists = queries(120)
    model = lightgbm_trees(trees=60, seeds=1, n_jobs=1, patience=20).fit(lists)
    trees, values = model.history_["trees"], model.history_["validation"]
    np.testing.assert_array_equal(trees, np.arange(5, trees[-1] + 1, 5))
    means = np.array([values[max(i - 1, 0) : i + 2].mean() for i in range(len(values))])
    np.testing.assert_allclose(model.history_["mean of three"], means, rtol=1e-14)
    assert model.trees_ == trees[np.argmax(means)]
    assert trees[-1] == 60 or trees[-1] - model.trees_ >= 20
    assert model.ensemble_.n_trees == model.trees_


def test_a_validation_set_selects_alone_or_joins_the_training_queries():
    train, held = queries(60), queries(60, seed=1)
    settings = {"trees": 30, "seeds": 1, "n_jobs": 1, "learning_rate": 0.3}
    alone = lightgbm_trees(**settings, refit="train").fit(train, validation=held)
    fixed = lightgbm_trees(**{**settings, "trees": alone.trees_}, patience=None).fit(train)
    # thresholds may lie between documents of the validation set, which no tree has learned from
    assert np.corrcoef(alone.predict(held), fixed.predict(held))[0, 1] > 0.9
    looks = dict(zip(alone.history_["trees"].tolist(), alone.history_["validation"].tolist(), strict=True))
    assert looks[alone.trees_] == pytest.approx(alone.score(held), abs=1e-12)
    both = lightgbm_trees(**settings).fit(train, validation=held)
    pooled = lightgbm_trees(**settings).fit(rw.Queries.concat([train, held], rename=True))
    np.testing.assert_array_equal(both.predict(held), pooled.predict(held))


def test_labels_that_are_held_out_teach_nothing():
    train, held = queries(40), queries(40, seed=1)
    wrong = held.with_labels(held.y[::-1].copy())
    settings = {**SMALL, "trees": 5, "refit": "train"}  # a single look: the number of trees is 5
    one, other = (lightgbm_trees(**settings).fit(train, validation=part) for part in (held, wrong))
    assert one.trees_ == other.trees_ == 5
    np.testing.assert_array_equal(one.predict(held), other.predict(held))


def test_many_queries_have_one_part_held_out(monkeypatch):
    monkeypatch.setattr(boosted, "MANY", 30)
    lists, seen = queries(200), []
    whole = boosted.BoostedRanker._parts

    def parts(*arguments):
        seen.extend(whole(*arguments))
        return seen

    monkeypatch.setattr(boosted.BoostedRanker, "_parts", parts)
    lightgbm_trees(**SMALL).fit(lists)
    assert [len(part) for part in seen] == [30]


def test_a_curve_takes_the_fewest_of_equals():
    curve = TreeCurve([5, 10, 15, 20], [0.5, 0.5, 0.5, 0.5])
    assert curve.best == 5
    assert TreeCurve([5, 10, 15], [0.1, 0.9, 0.1]).best in (5, 15)
    assert not TreeCurve([5], [float("nan")]).judged
    assert not TreeCurve().judged


def test_joined_sets_go_on_query_after_query():
    one, two = queries(3), queries(4, seed=1)
    order = np.random.default_rng(0).permutation(two.n_documents)
    scattered = rw.Queries.from_arrays(two.X[order], two.y[order], qid=two.query_of_row[order])
    both = joined([one, scattered.with_document_weight(scattered.y + 1)])
    assert both.is_grouped
    np.testing.assert_array_equal(both.y, np.concatenate([one.y, scattered.in_query_order(scattered.y)]))
    np.testing.assert_array_equal(both.document_weight[one.n_documents :], both.y[one.n_documents :] + 1)
    np.testing.assert_array_equal(both.sizes, np.concatenate([one.sizes, scattered.sizes]))


# --------------------------------------------------------------------------------------------------- what it learns


def test_it_learns_what_no_linear_ranker_can():
    train, test = queries(200), queries(100, seed=1)
    boosted_score = lightgbm_trees(trees=80, seeds=1, n_jobs=1).fit(train).score(test)
    assert boosted_score > rw.RidgeRanker().fit(train).score(test) + 0.1


@pytest.mark.parametrize(
    "loss", [losses.ListNet(target="gains"), losses.PairLogistic(), losses.MaxPair(), losses.SmoothNDCG()], ids=repr
)
def test_any_loss_can_be_boosted(loss):
    train, test = queries(150), queries(100, seed=1)
    start = "ridge" if isinstance(loss, losses.SmoothedMeasure) else None
    model = lightgbm_trees(loss=loss, start=start, trees=60, seeds=1, n_jobs=1).fit(train)
    assert model.score(test) > rw.RidgeRanker().fit(train).score(test)


def test_a_loss_that_is_stationary_at_equal_scores_asks_for_a_start():
    with pytest.raises(RankwiseError, match=r"SmoothNDCG.* gradient of 0 at equal scores.*start='ridge'"):
        lightgbm_trees(loss=losses.SmoothNDCG(), **SMALL).fit(queries())


def test_a_start_is_part_of_the_model(tmp_path):
    lists = queries()
    ridge = rw.RidgeRanker(alpha=1.0).fit(lists)
    for start in (ridge, ridge.coef_, ridge.coef_.tolist()):
        model = lightgbm_trees(start=start, **{**SMALL, "patience": None}).fit(lists)
        np.testing.assert_array_equal(model.ensemble_.coef, ridge.coef_)
    plain = model.predict(lists) - ridge.predict(lists)
    assert np.abs(plain).max() > 0.01
    assert len(np.unique(np.round(plain, 12))) < lists.n_documents, "trees alone have steps"
    model.save(tmp_path / "m.rankwise")
    np.testing.assert_array_equal(rw.load(tmp_path / "m.rankwise").predict(lists), model.predict(lists))


def test_with_a_start_no_trees_may_be_best():
    lists = rw.make_lists(60, documents=6, features=3, random_state=0)
    model = lightgbm_trees(start="ridge", **SMALL).fit(lists)
    assert model.history_["trees"][0] == 0
    assert model.ensemble_.coef is not None


def test_document_and_query_weights_change_what_is_learned():
    lists = queries()
    plain = lightgbm_trees(**SMALL, patience=None).fit(lists).predict(lists)
    rng = np.random.default_rng(0)
    ones = lists.with_document_weight(np.ones(lists.n_documents))
    np.testing.assert_array_equal(lightgbm_trees(**SMALL, patience=None).fit(ones).predict(lists), plain)
    for weighted in (
        lists.with_document_weight(rng.integers(0, 3, lists.n_documents).astype(float)),
        lists.with_weight(rng.integers(0, 3, len(lists)).astype(float)),
    ):
        assert (lightgbm_trees(**SMALL, patience=None).fit(weighted).predict(lists) != plain).any()


def test_queries_of_weight_zero_are_as_good_as_absent_but_for_thresholds():
    derivatives = Derivatives.of(losses.ListNet(), joined([queries(10)]))
    part = growing.rows_of(joined([queries(10)]), np.array([2, 3]))
    gradient, second = derivatives.without(part).at(np.zeros(len(derivatives.lists.label)), 0)
    assert not gradient[part].any()
    assert not second[part].any()
    kept = np.setdiff1d(np.arange(len(gradient)), part)
    np.testing.assert_array_equal(gradient[kept], derivatives.at(np.zeros(len(gradient)), 0)[0][kept])


# ------------------------------------------------------------------------------------------------- gaps, constraints


def test_missing_values_are_the_engine_s_own(tmp_path):
    lists = queries(120)
    X = lists.X.copy()
    X[lists.y > 1, 3] = np.nan  # what is missing tells the label
    holes = rw.Queries.from_arrays(X, lists.y, group=lists.sizes, missing="keep")
    model = lightgbm_trees(**SMALL).fit(holes)
    assert model.score(holes) > lightgbm_trees(**SMALL).fit(lists).score(lists)
    model.save(tmp_path / "m.rankwise")
    np.testing.assert_array_equal(rw.load(tmp_path / "m.rankwise").predict(X), model.predict(holes))
    with pytest.raises(DataError, match="start="):
        lightgbm_trees(start="ridge", **SMALL).fit(holes)
    linear = lightgbm_trees(start="ridge", **SMALL).fit(lists)
    with pytest.raises(DataError, match="start="):
        linear.predict(X)


@pytest.mark.parametrize("key", ["b", 1])
@pytest.mark.parametrize("sign", [1, -1])
def test_a_monotone_feature_never_turns(key, sign):
    lists = queries(150)
    model = lightgbm_trees(monotone={key: sign}, **{**SMALL, "trees": 40}).fit(lists)
    rows = np.repeat(lists.X[:50], 40, axis=0)
    rows[:, 1] = np.tile(np.linspace(-4, 4, 40), 50)
    steps = np.diff(model.predict(rows).reshape(50, 40), axis=1)
    assert (sign * steps >= 0).all()
    free = lightgbm_trees(**{**SMALL, "trees": 40}).fit(lists)
    assert (np.diff(free.predict(rows).reshape(50, 40), axis=1) * sign < 0).any()


def test_additive_models_are_sums_of_shape_functions():
    lists = queries(100)
    model = lightgbm_trees(additive=True, **SMALL).fit(lists)
    assert model.ensemble_.additive
    table = model.shapes_
    total = np.zeros(lists.n_documents)
    for name in dict.fromkeys(table["feature"]):
        own = [place for place, other in enumerate(table["feature"]) if other == name]
        column = lists.X[:, lists.feature_names.index(name)]
        ends = np.array([table["to"][place] for place in own])
        total += np.array([table["adds"][place] for place in own])[np.searchsorted(ends, column)]
    np.testing.assert_allclose(total, model.predict(lists), rtol=1e-12, atol=1e-12)
    assert table.plot() is not None
    with pytest.raises(RankwiseError, match="shape functions require"):
        _ = lightgbm_trees(**SMALL).fit(lists).shapes_


def test_categories_are_split_into_sets(tmp_path):
    rng = np.random.default_rng(0)
    sizes = np.full(80, 10)
    codes = rng.integers(0, 12, 800).astype(float)
    X = np.column_stack([codes, rng.normal(size=800)])
    y = np.isin(codes, [1, 4, 6, 11]).astype(float)
    lists = rw.Queries.from_arrays(X, y, group=sizes, feature_names=["shop", "price"])
    settings = {**SMALL, "trees": 3, "patience": None, "leaves": 2, "feature_fraction": 1.0}
    model = lightgbm_trees(categorical_features=["shop"], **settings).fit(lists)
    assert model.ensemble_.categorical.all()
    assert model.score(lists) > lightgbm_trees(**settings).fit(lists).score(lists)
    model.save(tmp_path / "m.rankwise")
    np.testing.assert_array_equal(rw.load(tmp_path / "m.rankwise").predict(lists), model.predict(lists))
    for bad in (-1.0, 0.5):
        X[3, 0] = bad
        with pytest.raises(DataError, match=f"non-negative integers, got {bad:g} at row 3"):
            lightgbm_trees(categorical_features=[0], **settings).fit(X, y, group=sizes)


def test_importance_and_contributions():
    lists = queries(120)
    model = lightgbm_trees(**SMALL).fit(lists)
    assert model.feature_importances_.sum() == pytest.approx(1.0)
    assert model.feature_importances_[3] < model.feature_importances_[:3].min()
    parts, constant = model._contributions(lists.X)
    np.testing.assert_allclose(parts.sum(axis=1) + constant, model.predict(lists), rtol=1e-10, atol=1e-12)
    told = rw.explain(model, lists[0], 0, 1)
    assert sum(told.contribution) == pytest.approx(told.scores[0] - told.scores[1], abs=1e-10)


def test_a_certificate_rests_on_hold_out_queries_alone():
    train, held = queries(60), queries(200, seed=1)
    model = lightgbm_trees(**SMALL).fit(train)
    assert model.certificate(train, held).headline is not None
    without = model.certificate(train)
    assert without.headline is None or not without.headline.informative


# --------------------------------------------------------------------------------------------------- bits and files

RUN = """
import hashlib, sys
import numpy as np, rankwise as rw
lists = rw.make_lists(300, documents=(5, 30), features=9, random_state=3)
model = rw.BoostedRanker(engine="lightgbm", trees=20, seeds=2, n_jobs=int(sys.argv[1])).fit(lists)
print(hashlib.sha256(model.predict(lists).tobytes()).hexdigest())
"""


def test_no_bit_depends_on_threads_in_processes_of_their_own():
    digests = {
        subprocess.run(
            [sys.executable, "-c", RUN, jobs],
            env={**os.environ, "OMP_NUM_THREADS": jobs},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for jobs in ("1", "2")
    }
    assert len(digests) == 1


def test_a_saved_model_scores_without_lightgbm(tmp_path):
    lists = queries()
    model = lightgbm_trees(**SMALL).fit(lists)
    model.save(tmp_path / "m.rankwise")
    np.save(tmp_path / "X.npy", lists.X)
    run = (
        "import sys; sys.modules['lightgbm'] = None\n"
        "import numpy as np, rankwise as rw\n"
        f"model = rw.load({str(tmp_path / 'm.rankwise')!r})\n"
        f"X = np.load({str(tmp_path / 'X.npy')!r})\n"
        "print(model.predict(X).tobytes().hex())\n"
        "try:\n    model.fit(X, np.zeros(len(X)), group=[len(X)])\n"
        "except rw.errors.MissingExtraError as error:\n    print(error)\n"
    )
    told = subprocess.run([sys.executable, "-W", "ignore", "-c", run], capture_output=True, text=True, check=True)
    scores, sentence = told.stdout.splitlines()
    assert scores == model.predict(lists).tobytes().hex()
    assert sentence == f"lightgbm is not installed; run {install_command('lightgbm')}"


# ------------------------------------------------------------------------------------------------------- refused


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"trees": 0}, "trees"),
        ({"leaves": 1}, "leaves"),
        ({"seeds": 0}, "seeds"),
        ({"smallest_leaf": 0}, "smallest_leaf"),
        ({"patience": 0}, "patience"),
        ({"folds": 1}, "folds"),
        ({"learning_rate": 0.0}, "'learning_rate' parameter of"),
        ({"row_fraction": 1.5}, "'row_fraction' parameter of"),
        ({"feature_fraction": float("nan")}, "feature_fraction"),
        ({"refit": "none"}, "refit"),
        ({"engine": "xgboost"}, "engine"),
        ({"loss": "lambdarank"}, "'loss' parameter of"),
        ({"start": "svm"}, "start"),
        ({"start": [1.0]}, "start must have one weight per feature, 4, got 1 weights"),
        ({"monotone": {"z": 1}}, "monotone must name features of the training queries, got 'z'"),
        ({"monotone": {"a": 2}}, "'monotone' parameter of"),
        ({"monotone": {9: 1}}, "a feature of monotone"),
        ({"monotone": {"a": 1}, "start": "ridge"}, "'monotone' parameter of"),
        ({"categorical_features": ["z"]}, "categorical_features must name features of the training queries, got 'z'"),
        ({"random_state": "x"}, "random_state"),
    ],
)
def test_what_makes_no_sense_is_refused_in_a_sentence(given, message):
    with pytest.raises(RankwiseError, match=message) as error:
        lightgbm_trees(**{**SMALL, **given}).fit(queries(10))
    assert "\n" not in str(error.value)


def test_copies_score_as_the_model_does_after_it_has_scored():
    lists = queries()
    model = lightgbm_trees(**SMALL).fit(lists)
    scores = model.predict(lists)
    for twin in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(twin.predict(lists), scores)


def test_a_single_document_is_learned_from_without_fuss():
    with pytest.warns(NothingLearnedWarning):
        model = lightgbm_trees().fit(np.ones((1, 2)), [1], group=[1])
    assert model.predict(np.ones((1, 2))).tolist() == [0.0]
