"""BoostedRanker with the package's own symmetric trees: its recipe, its options, its files and its bits."""

import os
import subprocess
import sys
import tracemalloc
import warnings

import numpy as np
import pytest

import rankwise as rw
from rankwise import losses
from rankwise.errors import DataError, Interrupted, NothingLearnedWarning, RankwiseError
from rankwise.rankers._record import from_json_value
from rankwise.rankers.boosting import boosted
from rankwise.rankers.boosting.growing import joined
from rankwise.rankers.boosting.objectives import Derivatives
from rankwise.rankers.boosting.packed_rows import PackedRows
from rankwise.rankers.boosting.symmetric import SymmetricRows, TreeGrowth

SMALL = {"trees": 20, "depth": 3, "folds": 3, "n_jobs": 1}


def queries(count=80, seed=0, holes=0.0, names=("a", "b", "c", "d")):
    """Judged lists whose labels depend on a product of features."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(2, 15, count)
    X = rng.normal(size=(sizes.sum(), 4))
    y = np.clip(np.rint(X[:, 0] + 2 * X[:, 1] * X[:, 2] + 0.3 * rng.normal(size=len(X))), 0, 3)
    X[rng.random(X.shape) < holes] = np.nan
    return rw.Queries.from_arrays(X, y, group=sizes, feature_names=names, missing="keep")


# ------------------------------------------------------------------------------------------------------- the recipe


def test_the_default_learns_what_no_linear_ranker_can_without_lightgbm(monkeypatch):
    monkeypatch.setitem(sys.modules, "lightgbm", None)
    train, test = queries(150), queries(100, seed=1)
    model = rw.BoostedRanker(trees=60, n_jobs=1).fit(train)
    assert model.engine == "symmetric"
    assert model.score(test) > rw.RidgeRanker().fit(train).score(test) + 0.1


def test_without_a_search_trees_are_grown_on_all_queries_one_after_the_other():
    lists = queries()
    model = rw.BoostedRanker(loss=losses.PairLogistic(), trees=12, patience=None, depth=4, n_jobs=1).fit(lists)
    seed = int(np.random.default_rng(0).integers(0, 2**31 - 1, 1)[0])
    rows = SymmetricRows(PackedRows.of([lists]), TreeGrowth(depth=4), 1)
    grown = rows.model(Derivatives.of(losses.PairLogistic(), joined([lists])), seed, None, 1)
    for _ in range(12):
        grown.grow()
    np.testing.assert_array_equal(model.predict(lists), grown.scores())
    assert model.trees_ == model.ensemble_.n_trees == 12


def test_the_models_of_the_folds_are_averaged_at_the_best_number_of_trees():
    lists = queries(100)
    model = rw.BoostedRanker(trees=60, patience=20, depth=3, n_jobs=1, learning_rate=0.3).fit(lists)
    trees, values = model.history_["trees"], model.history_["validation"]
    np.testing.assert_array_equal(trees, np.arange(10, trees[-1] + 1, 10))
    assert model.trees_ == trees[np.argmax(model.history_["mean of three"])]
    assert model.ensemble_.n_trees == 5 * model.trees_
    # each fold on its own: a fifth of the queries has a weight of 0
    rng = np.random.default_rng(0)
    seed = int(rng.integers(0, 2**31 - 1, 1)[0])
    parts = [np.sort(part) for part in np.array_split(rng.permutation(100), 5)]
    rows = SymmetricRows(PackedRows.of([lists]), TreeGrowth(depth=3, learning_rate=0.3), 1)
    scores = []
    for part in parts:
        held = np.flatnonzero(np.isin(lists.query_of_row, part))
        fold = rows.model(Derivatives.of(model._loss(), joined([lists])).without(held), seed, None, 1)
        for _ in range(model.trees_):
            fold.grow()
        scores.append(fold.scores())
    np.testing.assert_allclose(model.predict(lists), np.mean(scores, axis=0), rtol=1e-12, atol=1e-14)
    out_of_fold = np.zeros(lists.n_documents)
    for part, score in zip(parts, scores, strict=True):
        held = np.isin(lists.query_of_row, part)
        out_of_fold[held] = score[held]
    look = values[trees.tolist().index(model.trees_)]
    assert rw.evaluate(lists, out_of_fold, "nDCG@10").mean["nDCG@10"] == pytest.approx(look, abs=1e-12)


@pytest.mark.parametrize("engine", ["symmetric", "lightgbm", "catboost"])
def test_every_engine_averages_or_fits_again(engine):
    if engine != "symmetric":
        pytest.importorskip(engine)
    lists = queries(40)
    settings = {"engine": engine, "trees": 20, "folds": 2, "seeds": 2, "n_jobs": 1}
    average = rw.BoostedRanker(refit="average", **settings).fit(lists)
    again = rw.BoostedRanker(refit="all", **settings).fit(lists)
    assert average.trees_ == again.trees_
    assert average.ensemble_.n_trees == 4 * average.trees_
    assert again.ensemble_.n_trees == 2 * again.trees_
    if engine != "symmetric":  # other engines count the documents that a tree is grown on, or that have pairs
        return
    roots = [model.ensemble_.node_count[model.ensemble_.start[:-1]] for model in (average, again)]
    assert roots[0].max() < roots[1].min() == lists.n_documents


def test_a_validation_set_joins_or_selects_alone():
    train, held = queries(50), queries(50, seed=1)
    both = rw.BoostedRanker(**SMALL).fit(train, validation=held)
    pooled = rw.BoostedRanker(**SMALL).fit(rw.Queries.concat([train, held], rename=True))
    np.testing.assert_array_equal(both.predict(held), pooled.predict(held))
    assert both.learns_from_validation
    alone = rw.BoostedRanker(refit="train", **SMALL).fit(train, validation=held)
    assert not alone.learns_from_validation
    looks = dict(zip(alone.history_["trees"].tolist(), alone.history_["validation"].tolist(), strict=True))
    assert looks[alone.trees_] == pytest.approx(alone.score(held), abs=1e-12)
    wrong = held.with_labels(held.y[::-1].copy())
    one, other = (
        rw.BoostedRanker(refit="train", **{**SMALL, "trees": 10}).fit(train, validation=part) for part in (held, wrong)
    )
    assert one.trees_ == other.trees_ == 10
    np.testing.assert_array_equal(one.predict(held), other.predict(held))


def test_of_many_queries_one_model_learns_from_all_but_one_part(monkeypatch):
    monkeypatch.setattr(boosted, "MANY", 30)
    lists = queries(100)
    model = rw.BoostedRanker(**SMALL).fit(lists)
    assert model.ensemble_.n_trees == model.trees_
    assert model.ensemble_.node_count[0] < lists.n_documents


def test_the_derivatives_of_the_default_loss_are_differences_of_its_value():
    rng = np.random.default_rng(0)
    loss = rw.BoostedRanker()._loss()
    labels, scores = rng.integers(0, 4, 9).astype(float), rng.normal(size=9)
    lists = rw.Queries.from_arrays(np.zeros((9, 1)), labels, group=[9])
    g, h = Derivatives.of(loss, lists).at(scores, 0)

    def value(s):
        pairs = [(i, j) for i in range(9) for j in range(9) if labels[i] > labels[j]]
        return sum((labels[i] - labels[j]) * np.logaddexp(0, s[j] - s[i]) for i, j in pairs) / 9

    step = 1e-4 * np.eye(9)
    np.testing.assert_allclose(g, [(value(scores + d) - value(scores - d)) / 2e-4 for d in step], atol=1e-8)
    second = [(value(scores + d) - 2 * value(scores) + value(scores - d)) / 1e-8 for d in step]
    np.testing.assert_allclose(h, second, atol=1e-6)
    assert loss(scores, labels)[0] == pytest.approx(value(scores))


# ------------------------------------------------------------------------------------------------------- options


@pytest.mark.parametrize(
    "loss", [losses.ListNet(target="gains"), losses.PairLogistic(), losses.StochasticNDCG(), losses.MaxPair()], ids=repr
)
def test_any_loss_can_be_boosted(loss):
    train, test = queries(150), queries(100, seed=1)
    model = rw.BoostedRanker(loss=loss, **{**SMALL, "trees": 80, "depth": 4}, learning_rate=0.2).fit(train)
    assert model.score(test) > rw.RidgeRanker().fit(train).score(test)


def test_a_stationary_start_asks_for_another_before_trees_are_grown():
    with pytest.raises(RankwiseError, match=r"SmoothNDCG.* gradient of 0 at equal scores.*start='ridge'"):
        rw.BoostedRanker(loss=losses.SmoothNDCG(), **SMALL).fit(queries())
    started = rw.BoostedRanker(loss=losses.SmoothNDCG(), start="ridge", **SMALL).fit(queries())
    assert started.ensemble_.coef is not None


def test_a_linear_start_is_part_of_the_model(tmp_path):
    lists = queries()
    ridge = rw.RidgeRanker(alpha=1.0).fit(lists)
    for start in (ridge, ridge.coef_, ridge.coef_.tolist()):
        model = rw.BoostedRanker(start=start, patience=None, **SMALL).fit(lists)
        np.testing.assert_array_equal(model.ensemble_.coef, ridge.coef_)
    averaged = rw.BoostedRanker(start="ridge", **SMALL).fit(lists)
    folds = [
        rw.RidgeRanker().fit(lists.with_weight((~np.isin(np.arange(len(lists)), part)).astype(float))).coef_
        for part in averaged._parts(lists, len(lists), False, after_seeds())
    ]
    np.testing.assert_allclose(averaged.ensemble_.coef, np.mean(folds, axis=0), rtol=1e-12)
    assert averaged.history_["trees"][0] == 0
    averaged.save(tmp_path / "m.rankwise")
    np.testing.assert_array_equal(rw.load(tmp_path / "m.rankwise").predict(lists), averaged.predict(lists))


def after_seeds():
    """The generator of a fit with the default seed, after the seed of its model was drawn."""
    rng = np.random.default_rng(0)
    rng.integers(0, 2**31 - 1, 1)
    return rng


@pytest.mark.parametrize("depth", [None, 2])
def test_additive_models_are_sums_of_shape_functions(depth):
    lists = queries(60, holes=0.1)
    model = rw.BoostedRanker(additive=True, trees=20, depth=depth, n_jobs=1).fit(lists)
    assert model.ensemble_.additive
    assert np.diff(model.ensemble_.start).max() == (1 if depth is None else 3)
    total = np.zeros(lists.n_documents)
    for number in np.unique(model.ensemble_.feature).tolist():
        shape, x = model.ensemble_.shape_function(number), lists.X[:, number]
        total += np.where(np.isnan(x), shape.missing, shape.values[np.searchsorted(shape.thresholds, x)])
    np.testing.assert_allclose(total, model.predict(lists), rtol=1e-12, atol=1e-12)
    assert model.shapes_.plot() is not None


def test_a_table_of_shape_functions_tells_what_a_gap_adds_and_a_drawing_shows_what_differs_most():
    rng = np.random.default_rng(0)
    X = np.column_stack([np.where(rng.random(600) < 0.3, np.nan, 1.0), rng.normal(size=(600, 13))])
    y = np.clip(np.rint(np.isnan(X[:, 0]) + X[:, 1:] @ np.arange(13) / 20), 0, 3)
    model = rw.BoostedRanker(additive=True, trees=200, n_jobs=1).fit(X, y, group=[10] * 60)
    feature, above, to, adds = (np.array(model.shapes_[name]) for name in ("feature", "above", "to", "adds"))
    own = feature == "0"
    assert above[own][0] == -np.inf
    assert np.isnan([above[own][1], to[own][1]]).all()
    one, hole = model.predict(np.array([[1.0] + [0.0] * 13, [np.nan] + [0.0] * 13]))
    assert np.diff(adds[own])[0] == pytest.approx(hole - one)
    assert hole > one
    assert not np.isnan(to[~own]).any()
    figure = model.shapes_.plot()
    shown = [text.get_text() for text in getattr(figure, "axes", [figure])[0].get_legend().get_texts()]
    assert len(shown) == 8
    assert {"12", "11", "10"} < set(shown)
    assert "0" not in shown, "it has a single value"


def test_categories_are_split_one_from_all_others(tmp_path):
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 12, 800).astype(float)
    X = np.column_stack([codes, rng.normal(size=800)])
    y = np.isin(codes, [1, 4, 6, 11]).astype(float)
    lists = rw.Queries.from_arrays(X, y, group=np.full(80, 10), feature_names=["shop", "price"])
    model = rw.BoostedRanker(categorical_features=["shop"], trees=8, patience=None, depth=2).fit(lists)
    assert model.ensemble_.categorical.any()
    assert model.score(lists) > rw.BoostedRanker(trees=8, patience=None, depth=2).fit(lists).score(lists)
    model.save(tmp_path / "m.rankwise")
    np.testing.assert_array_equal(rw.load(tmp_path / "m.rankwise").predict(lists), model.predict(lists))
    many = rw.Queries.from_arrays(np.arange(80.0)[:, None], np.arange(80) % 2, group=[80])
    with pytest.raises(DataError, match=r"80 categories, .*engine='lightgbm'"):
        rw.BoostedRanker(categorical_features=[0]).fit(many)
    with pytest.raises(DataError, match="monotone takes numbers, and feature 0 has categories"):
        rw.BoostedRanker(categorical_features=["shop"], monotone={"shop": 1}).fit(lists)


@pytest.mark.parametrize("key", ["b", 1])
@pytest.mark.parametrize("sign", [1, -1])
def test_a_monotone_feature_never_turns(key, sign):
    lists = queries(100, holes=0.1)
    model = rw.BoostedRanker(monotone={key: sign, "a": 1}, **SMALL).fit(lists)
    rows = np.repeat(lists.X[:50], 40, axis=0)
    rows[:, 1] = np.tile(np.linspace(-4, 4, 40), 50)
    assert (sign * np.diff(model.predict(rows).reshape(50, 40), axis=1) >= 0).all()
    free = rw.BoostedRanker(**SMALL).fit(lists)
    assert (np.diff(free.predict(rows).reshape(50, 40), axis=1) * sign < 0).any()


def test_weights_of_queries_and_documents_count_and_a_power_of_two_does_not():
    lists = queries()
    plain = rw.BoostedRanker(**SMALL).fit(lists).predict(lists)
    rng = np.random.default_rng(0)
    by_query = rng.integers(0, 3, len(lists)).astype(float)
    by_document = rng.integers(0, 3, lists.n_documents).astype(float)
    for weighted in (lists.with_weight, lists.with_document_weight):
        weight = by_query if weighted == lists.with_weight else by_document
        one, twice = (rw.BoostedRanker(**SMALL).fit(weighted(w)).predict(lists) for w in (weight, 2 * weight))
        np.testing.assert_array_equal(one, twice)
        assert (one != plain).any()
        assert (rw.BoostedRanker(**SMALL).fit(weighted(np.ones(len(weight)))).predict(lists) == plain).all()


def test_missing_values_are_learned_from_where_they_tell_the_label(tmp_path):
    lists = queries(120)
    X = lists.X.copy()
    X[lists.y > 1, 3] = np.nan
    holes = rw.Queries.from_arrays(X, lists.y, group=lists.sizes, missing="keep")
    model = rw.BoostedRanker(**SMALL).fit(holes)
    assert model.score(holes) > rw.BoostedRanker(**SMALL).fit(lists).score(lists)
    assert model.feature_importances_.argmax() == 3
    model.save(tmp_path / "m.rankwise")
    np.testing.assert_array_equal(rw.load(tmp_path / "m.rankwise").predict(X), model.predict(holes))


def test_importance_and_contributions():
    lists = queries(120)
    model = rw.BoostedRanker(**{**SMALL, "trees": 60}).fit(lists)
    assert model.feature_importances_.sum() == pytest.approx(1.0)
    assert model.feature_importances_[3] < model.feature_importances_[:3].min()
    parts, constant = model._contributions(lists.X)
    np.testing.assert_allclose(parts.sum(axis=1) + constant, model.predict(lists), rtol=1e-10, atol=1e-12)


def test_float32_gives_the_trees_of_the_same_numbers_in_float64():
    lists = queries()
    single = rw.Queries.from_arrays(lists.X.astype(np.float32), lists.y, group=lists.sizes)
    double = rw.Queries.from_arrays(single.X.astype(np.float64), lists.y, group=lists.sizes)
    one, other = rw.BoostedRanker(**SMALL).fit(single), rw.BoostedRanker(**SMALL).fit(double)
    np.testing.assert_array_equal(one.predict(single), other.predict(double))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_fit_takes_no_copy_of_the_features(dtype):
    X = np.random.default_rng(0).normal(size=(20_000, 400)).astype(dtype)
    lists = rw.Queries.from_arrays(X, X[:, 0] > 0, group=[20] * 1_000)
    settings = {**SMALL, "trees": 2, "depth": 2, "patience": None}
    rw.BoostedRanker(**settings).fit(queries())  # what is loaded and compiled once
    tracemalloc.start()
    rw.BoostedRanker(**settings).fit(lists)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2.5 * X.size < X.nbytes, "a byte per value, and not the features again"


def test_rows_in_any_order_of_the_queries_give_the_same_trees():
    lists = queries()
    rng = np.random.default_rng(0)
    order = np.argsort(rng.random(lists.n_documents))
    shuffled = rw.Queries.from_arrays(lists.X[order], lists.y[order], qid=lists.query_of_row[order])
    grouped = rw.Queries.from_arrays(shuffled.X[shuffled.rows], shuffled.y[shuffled.rows], group=shuffled.sizes)
    one, other = rw.BoostedRanker(**SMALL).fit(shuffled), rw.BoostedRanker(**SMALL).fit(grouped)
    np.testing.assert_array_equal(one.predict(lists.X), other.predict(lists.X))


@pytest.mark.parametrize("target", ["python", "c", "onnx", "sql", "vespa", "solr", "elasticsearch", "ranklib"])
def test_the_trees_are_exported(target):
    lists = queries(40)
    assert rw.export(rw.BoostedRanker(**SMALL).fit(lists), target, sample=lists).parity.inverted == 0


@pytest.mark.parametrize("target", ["python", "c", "onnx", "sql", "vespa"])
def test_trees_that_ask_for_missing_values_alone_are_exported(target):
    lists = queries(60)
    X = lists.X.copy()
    X[lists.y > 1, 3] = np.nan
    holes = rw.Queries.from_arrays(X, lists.y, group=lists.sizes, missing="keep")
    model = rw.BoostedRanker(**SMALL).fit(holes)
    assert (model.ensemble_.threshold > 1e38).any()
    assert rw.export(model, target, sample=holes).parity.inverted == 0


# ------------------------------------------------------------------------------------------- parameters of engines


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"leaves": 15}, "'leaves' parameter .* None for engine='symmetric': it belongs to engine='lightgbm'. Got 15"),
        ({"smallest_leaf": 2}, "'smallest_leaf' parameter .* engine='symmetric': it belongs to engine='lightgbm'"),
        (
            {"engine": "lightgbm", "depth": 3},
            "'depth' parameter .* engine='lightgbm': it belongs to engine='symmetric'",
        ),
        ({"engine": "lightgbm", "bins": 9}, "'bins' parameter .* engine='lightgbm': it belongs to engine='symmetric'"),
        ({"engine": "catboost", "leaves": 9}, "'leaves' .* engine='catboost': it belongs to engine='lightgbm'"),
        ({"engine": "catboost", "bins": 9}, "'bins' .* engine='catboost': it belongs to engine='symmetric'"),
        ({"depth": 11}, "'depth' parameter .* at most 10 for engine='symmetric'. Got 11"),
        ({"depth": 3, "additive": True}, "'depth' parameter .* 1 or 2 with additive=True. Got 3"),
        ({"bins": 2}, "'bins' parameter"),
        ({"bins": 65}, "'bins' parameter"),
        ({"patience": 0}, "'patience' parameter"),
        ({"refit": "mean"}, "'refit' parameter"),
    ],
)
def test_a_parameter_that_the_engine_lacks_is_a_clear_error(given, message):
    with pytest.raises(RankwiseError, match=message):
        rw.BoostedRanker(**given).fit(queries(10))


def test_parameters_that_are_not_given_are_the_engine_s_own():
    for engine, rate, patience in (("symmetric", 0.05, 100), ("lightgbm", 0.08, 60), ("catboost", 0.08, 60)):
        model = rw.BoostedRanker(engine=engine)
        assert (model._setting("learning_rate"), model._setting("patience")) == (rate, patience)
        assert rw.BoostedRanker(engine=engine, patience=None)._setting("patience") is None
        assert rw.BoostedRanker(engine=engine, learning_rate=0.3)._setting("learning_rate") == 0.3


ENGINES = {engine: set(settings) for engine, settings in boosted.DEFAULTS.items()}
OF_ENGINES = sorted(set().union(*ENGINES.values()))


@pytest.mark.parametrize("engine", ENGINES)
def test_none_is_the_engine_s_own_value_and_what_an_engine_lacks_is_refused(engine):
    own = {name: boosted.DEFAULTS[engine][name] for name in ENGINES[engine]}
    for name in sorted(set(OF_ENGINES) - ENGINES[engine]):
        with pytest.raises(RankwiseError, match=f"'{name}' parameter .* None for engine='{engine}': it belongs to"):
            rw.BoostedRanker(engine=engine, **{name: 4}).fit(queries(10))
    if engine != "symmetric":
        pytest.importorskip(engine)
    lists, settings = queries(30), {"engine": engine, "trees": 10, "folds": 2, "n_jobs": 1}
    scores = [rw.BoostedRanker(**settings, **given).fit(lists).predict(lists) for given in ({}, own)]
    np.testing.assert_array_equal(*scores)
    assert len(np.unique(scores[0])) > 1


def test_a_file_of_before_keeps_its_engine():
    before = {"measure": "nDCG@10", "trees": 5, "leaves": 15, "depth": 6, "smallest_leaf": 20, "learning_rate": 0.08}
    for engine, lacking in (("lightgbm", {"depth"}), ("catboost", {"leaves", "smallest_leaf"})):
        found = rw.BoostedRanker._parameters_from_file({**before, "engine": engine})
        assert {name for name in before if found[name] is None} == lacking
        rw.BoostedRanker(**found)._check_parameters()
        member = from_json_value({"ranker": "BoostedRanker", "parameters": {**before, "engine": engine}})
        assert member.get_params() == rw.BoostedRanker(**found).get_params()
    assert rw.BoostedRanker._parameters_from_file(dict(before))["engine"] == "lightgbm"


# ------------------------------------------------------------------------------------------------------- degenerate


@pytest.mark.parametrize("kind", ["one document", "equal labels", "lists of one document", "constant features"])
def test_where_nothing_can_be_learned_all_scores_are_0(kind):
    lists = queries(30)
    X, y, group = lists.X, lists.y, lists.sizes
    if kind == "one document":
        X, y, group = X[:1], y[:1], [1]
    elif kind == "equal labels":
        y = np.ones(len(y))
    elif kind == "lists of one document":
        group = [1] * len(y)
    else:
        X = np.ones_like(X)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NothingLearnedWarning)
        model = rw.BoostedRanker(**SMALL).fit(X, y, group=group)
    assert not model.predict(lists.X).any()
    assert model.feature_importances_.tolist() == [0.0] * 4


def test_a_single_query_and_a_single_feature_are_learned_from():
    X = np.arange(30.0)[:, None]
    model = rw.BoostedRanker(n_jobs=1, depth=3, trees=40).fit(X, np.arange(30) // 10, group=[30])
    assert model.trees_ == model.ensemble_.n_trees == 40  # nothing is held out, and all queries are learned from
    assert model.score(X, np.arange(30) // 10, group=[30]) == pytest.approx(1.0)


# ------------------------------------------------------------------------------------------------------- bits


RUN = """
import hashlib, sys
import numpy as np, rankwise as rw
lists = rw.make_lists(300, documents=(5, 30), features=9, random_state=3)
rw._kernels.parallel._FEW_VALUES = 0
model = rw.BoostedRanker(trees=20, n_jobs=int(sys.argv[1]), feature_fraction=0.5, row_fraction=0.7).fit(lists)
print(hashlib.sha256(model.predict(lists).tobytes()).hexdigest())
"""


def test_no_bit_depends_on_threads_or_hash_seeds_in_processes_of_their_own():
    digests = {
        subprocess.run(
            [sys.executable, "-c", RUN, jobs],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for jobs, seed in (("1", "1"), ("2", "2"), ("4", "3"))
    }
    assert len(digests) == 1


def test_other_seeds_give_other_trees_and_the_same_seed_the_same():
    lists = queries()
    scores = [rw.BoostedRanker(random_state=seed, **SMALL).fit(lists).predict(lists) for seed in (0, 0, 1)]
    np.testing.assert_array_equal(scores[0], scores[1])
    assert (scores[0] != scores[2]).any()
    both = rw.BoostedRanker(seeds=2, patience=None, **SMALL).fit(lists)
    assert both.ensemble_.n_trees == 40


def test_what_was_grown_is_kept_after_an_interrupt(monkeypatch):
    from rankwise.rankers.boosting import symmetric

    grow, seen = symmetric.SymmetricModel.grow, []

    def interrupted(self):
        seen.append(1)
        if len(seen) == 8:
            raise KeyboardInterrupt
        grow(self)

    monkeypatch.setattr(symmetric.SymmetricModel, "grow", interrupted)
    lists = queries()
    model = rw.BoostedRanker(**SMALL)
    with pytest.raises(Interrupted, match="BoostedRanker was stopped"):
        model.fit(lists)
    assert model.ensemble_.n_trees == model.trees_ == 3  # of the first of three folds, which grow in turn
    assert len(np.unique(model.predict(lists))) > 1
