"""Sums of trees through every export: thresholds, missing values, categories, linear parts, and what is refused."""

import json
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rankwise as rw
from rankwise.errors import RankwiseError
from rankwise.exports import export, targets
from rankwise.exports.formula import TreeSum
from rankwise.queries.queries import Queries
from rankwise.rankers._base import Ranker
from rankwise.rankers.boosting.tree_ensemble import TreeEnsemble
from tests.exports.test_every_target import compiled  # noqa: F401
from tests.rankers.boosting.boosters import booster, edge_rows, rows
from tests.rankers.boosting.test_tree_ensemble import ensemble, made, nested, vars_of
from tests.rankers.boosting.test_xgboost_json import trained

TARGETS = ("ranklib", "solr", "elasticsearch", "opensearch", "vespa", "onnx", "sql", "python", "c")
EXACT = ("vespa", "sql", "python", "c")
NAMES = ("a", "b", "c", "d", "e")


@dataclass(eq=False, repr=False, kw_only=True)
class Trees(Ranker):
    """A ranker that has trees and nothing else."""

    name = ""  # not registered

    ensemble_: TreeEnsemble = None

    def _fit(self, queries, validation): ...
    def _state(self): ...
    def _restore(self, facts, store): ...

    def _scores(self, X):
        return self.ensemble_.predict(X)


def ranker(trees, missing="error"):
    model = Trees(missing=missing)
    model.ensemble_, model.n_features_in_ = trees, trees.n_features
    model.feature_names_in_ = np.array(NAMES[: trees.n_features], dtype=object)
    return model


def scored(target, formula, X, **options):
    """What the engine makes of the rows."""
    engine = targets()[target](**options)
    return engine.score(engine.write(formula, "rankwise").files, X, formula.names)


# ------------------------------------------------------------------------------------------- at the thresholds

grid = st.integers(-(2**15), 2**15).map(lambda one: one * 2.0**-12)


def halfway(low, high):
    """Where LightGBM puts the threshold between two values."""
    return float(np.nextafter((float(low) + float(high)) / 2, np.inf))


singles = st.floats(2.0**-6, 2.0**6, width=32).flatmap(lambda one: st.sampled_from([one, -one]))
between_singles = st.one_of(
    singles.map(lambda one: halfway(one, np.nextafter(np.float32(one), np.float32(1e9)))),
    st.tuples(singles, singles).map(lambda two: halfway(*two)),
)
decimals = st.integers(-(10**6), 10**6).map(lambda one: one / 1e6)
between_decimals = st.tuples(decimals, decimals).map(lambda two: halfway(*two))


def some_trees(cuts):
    one = st.recursive(grid, lambda below: st.tuples(st.integers(0, 2), cuts, below, below), max_leaves=8)
    return st.lists(one, min_size=1, max_size=4)


def exported_without_a_difference(own, X):
    """All sums are exact in float32, so that only a document on a wrong side of a threshold makes a difference."""
    queries = Queries.from_arrays(X, None, group=[len(X)], feature_names=NAMES[:3])
    every = [(target, {}) for target in TARGETS]
    every += [
        ("elasticsearch", {"form": "ranklib"}),
        ("elasticsearch", {"form": "xgboost"}),
        ("onnx", {"sums": "float32"}),
    ]
    for target, options in every:
        done = export(ranker(own), target, sample=queries, **options)
        if target == "solr" and any("cannot be met exactly" in note for note in done.notes):
            continue  # its slack of 1e-6 cannot be taken back for all thresholds
        assert done.parity.largest_difference == 0, target


@given(some_trees(between_singles), grid)
@settings(max_examples=25)
def test_every_float32_goes_where_trees_grown_on_float32_send_it(trees, constant):
    own = made(trees, offset=constant)
    near = np.array([*own.threshold, 0.0], np.float32)
    steps = [np.nextafter(near, np.float32(end)) for end in (-np.inf, np.inf)]
    values = np.concatenate([near, *steps, *(np.nextafter(one, np.float32(0)) for one in steps)])
    X = np.random.default_rng(0).choice(values, size=(60, 3))
    X[np.abs(X) < 1e-30] = 0.0  # what is nearer to 0 counts as 0 in trees, and not in Solr
    exported_without_a_difference(own, X)


@given(some_trees(between_decimals), grid)
@settings(max_examples=25)
def test_every_decimal_goes_where_trees_grown_on_decimals_send_it(trees, constant):
    """Engines see the features of six decimals in float32, and some of them lie halfway between two others."""
    own = made(trees, offset=constant)
    near = np.round([*own.threshold, 0.0], 6)
    values = np.concatenate([near, near + 1e-6, near - 1e-6, np.nextafter(own.threshold, -np.inf)])
    X = np.random.default_rng(0).choice(np.where(np.abs(values) < 1e-9, 0.0, values), size=(60, 3))
    exported_without_a_difference(own, X)


@pytest.mark.parametrize("target", EXACT)
def test_float64_targets_give_lightgbms_score(target):
    trees = ensemble("none")
    X = np.nan_to_num(rows(200, seed=11))
    expected = booster("none").predict(X, raw_score=True)
    found = scored(target, TreeSum.of(trees, NAMES), X)
    if target in ("python", "c"):
        np.testing.assert_array_equal(found, expected)
    np.testing.assert_allclose(found, expected, rtol=1e-13, atol=1e-13)


def test_onnx_rounds_a_score_once():
    trees = ensemble("65 leaves")
    X = rows(200, seed=11).astype(np.float32)
    expected = trees.predict(X).astype(np.float32)
    np.testing.assert_array_equal(scored("onnx", TreeSum.of(trees, NAMES), X), expected)


# ------------------------------------------------------------------------------------------- missing, zero, categories


@pytest.mark.parametrize("setting", ["nan", "zero", "none", "stumps", "single leaves", "65 leaves"])
@pytest.mark.parametrize("categories", [False, True])
def test_source_and_sql_follow_every_rule_of_the_trees(setting, categories, compiled):  # noqa: F811
    trees = ensemble(setting, categories)
    formula = TreeSum.of(trees, NAMES)
    X = np.concatenate([rows(100, seed=12), edge_rows()])
    expected = trees.predict(X)
    np.testing.assert_array_equal(scored("python", formula, X), expected)
    np.testing.assert_array_equal(scored("c", formula, X), expected)
    function, names = compiled(targets()["c"]().write(formula, "rankwise").files["rankwise.c"])
    np.testing.assert_array_equal(function(X), expected)
    assert tuple(names) == NAMES
    linear = TreeSum.of(with_linear_part(trees), NAMES)
    function, _ = compiled(targets()["c"]().write(linear, "rankwise").files["rankwise.c"])
    for target in ("c", "python"):
        np.testing.assert_array_equal(function(X), scored(target, linear, X))
    known = X if formula.decides_missing else X[~np.isnan(X).any(axis=1)]
    found = scored("sql", formula, known)
    np.testing.assert_allclose(found, trees.predict(known), rtol=1e-13, atol=1e-13)
    if not formula.decides_missing and setting != "single leaves":
        assert np.isnan(scored("sql", formula, X[np.isnan(X).all(axis=1)])).all()


@pytest.mark.parametrize("target", ["vespa", "onnx"])
def test_vespa_and_onnx_send_nan_where_the_trees_do(target):
    with np.errstate(over="ignore"):
        X = np.concatenate([rows(100, seed=12), edge_rows()]).astype(np.float32)
    for setting in ("nan", "none"):
        trees = ensemble(setting)
        found = scored(target, TreeSum.of(trees, NAMES), X)
        np.testing.assert_allclose(found, trees.predict(X), rtol=1e-6)
    found = scored("onnx", TreeSum.of(ensemble("nan"), NAMES), X, sums="float32")
    np.testing.assert_allclose(found, ensemble("nan").predict(X), rtol=1e-5)


def test_vespa_compares_categories_as_whole_numbers():
    trees = ensemble("nan", True)
    X = rows(200, seed=12)
    np.testing.assert_allclose(scored("vespa", TreeSum.of(trees, NAMES), X), trees.predict(X), rtol=1e-13)
    with pytest.raises(RankwiseError, match="Vespa cannot hold trees with 0 as missing for"):
        export(ranker(ensemble("zero")), "vespa")


@pytest.mark.parametrize("target", ["ranklib", "solr", "elasticsearch", "opensearch"])
def test_engines_refuse_what_they_cannot_hold(target):
    for trees, message in (
        (ensemble("none", True), "cannot hold trees with categories of 'd': export to vespa"),
        (ensemble("zero"), "cannot hold trees with 0 as missing for 'e'"),
        (ensemble("nan"), "a feature without a value is 0 in .*, and the trees learned another side"),
        (with_linear_part(ensemble("none")), "without a linear part beside them"),
    ):
        with pytest.raises(RankwiseError, match=message):
            export(ranker(trees), target)
    deep = 0.0
    for level in range(300):
        deep = (0, float(level), float(level), deep)
    with pytest.raises(RankwiseError, match="300 levels deep, and nested text holds at most 200"):
        export(ranker(made([deep])), target)


def test_trees_whose_gaps_are_not_0_are_held_where_no_document_has_gaps():
    """XGBoost and CatBoost choose a side for missing values at every node, whether training had some or not."""
    trees = ensemble("nan")
    X = np.nan_to_num(rows(200, seed=16)).astype(np.float32)
    queries = Queries.from_arrays(X, None, group=[len(X)], feature_names=NAMES)
    for target in ("ranklib", "solr", "elasticsearch", "opensearch"):
        with pytest.raises(RankwiseError, match="set missing='zero' if no document lacks a feature"):
            export(ranker(trees, "keep"), target)
        parity = export(ranker(trees, "zero"), target, sample=queries).parity
        assert parity.inverted_beyond_float32 == 0
        assert parity.largest_difference <= 1e-5 * max(1.0, parity.largest_score)
    gone = export(ranker(trees, "zero"), "opensearch", form="ranklib", sample=queries)
    assert gone.parity.inverted_beyond_float32 == 0


@pytest.mark.parametrize("leaves", [31, 32, 33, 64, 65, 300])
def test_masks_of_c_reach_over_words(leaves, compiled):  # noqa: F811
    rng = np.random.default_rng(leaves)

    def grow(count):
        if count == 1:
            return float(rng.normal())
        left = int(rng.integers(1, count))
        return (int(rng.integers(3)), float(rng.normal()), grow(left), grow(count - left))

    trees = made([grow(leaves), 0.5, grow(leaves), grow(2)])
    X = np.concatenate([rng.normal(size=(300, 3)), rng.choice(trees.threshold, size=(100, 3))])
    formula = TreeSum.of(trees, NAMES[:3])
    text = targets()["c"]().write(formula, "rankwise").files["rankwise.c"]
    np.testing.assert_array_equal(compiled(text)[0](X), trees.predict(X))
    np.testing.assert_array_equal(scored("c", formula, X), trees.predict(X))


def test_deep_trees_are_tables_in_source():
    deep = 0.0
    for level in range(900):
        deep = (0, float(900 - level), float(level), deep)
    trees = made([deep])
    X = np.random.default_rng(0).uniform(0, 1_000, size=(50, 3))
    for target in ("python", "c"):
        np.testing.assert_array_equal(scored(target, TreeSum.of(trees, NAMES[:3]), X), trees.predict(X))


def test_missing_values_are_zero_where_the_ranker_has_it_so(compiled):  # noqa: F811
    X = rows(60, seed=13)
    X[3, 2] = np.inf
    for setting in ("nan", "none"):
        formula = TreeSum.of(with_linear_part(ensemble(setting)), NAMES, "zero")
        filled = np.where(np.isfinite(X), X, 0.0)
        expected = with_linear_part(ensemble(setting)).predict(filled)
        np.testing.assert_allclose(scored("python", formula, X), expected, rtol=1e-13)
        np.testing.assert_allclose(scored("c", formula, X), expected, rtol=1e-13)
        text = targets()["c"]().write(formula, "rankwise").files["rankwise.c"]
        np.testing.assert_array_equal(compiled(text)[0](X), scored("c", formula, X))
        lacking = np.where(np.isfinite(X), X, np.nan)
        for target in ("sql", "vespa"):
            np.testing.assert_allclose(scored(target, formula, lacking), expected, rtol=1e-13)


def with_linear_part(trees):
    return TreeEnsemble(**{**vars_of(trees), "offset": 0.25, "coef": np.array([0.5, 0.0, -2.0, 1.0, 0.125])})


def test_trees_of_xgboost_keep_their_leaves():
    model, X = trained(depth=4)
    trees = TreeEnsemble.from_xgboost_json(model.save_raw("json"))
    for target in ("vespa", "onnx", "sql", "python", "c"):
        found = scored(target, TreeSum.of(trees, NAMES[:4]), X)
        np.testing.assert_allclose(found, trees.predict(X), rtol=1e-13 if target in EXACT else 1e-6, atol=1e-7)


# ------------------------------------------------------------------------------------------- linear parts and scaling


@pytest.mark.parametrize("target", ["vespa", "onnx", "sql", "python", "c"])
def test_a_linear_part_stands_beside_the_trees(target):
    trees = with_linear_part(ensemble("none"))
    X = np.nan_to_num(rows(100, seed=14)).astype(np.float32)
    found = scored(target, TreeSum.of(trees, NAMES), X)
    np.testing.assert_allclose(found, trees.predict(X), rtol=1e-12 if target in EXACT else 1e-5, atol=1e-12)


@pytest.mark.parametrize("how", ["standard", "minmax", "log"])
def test_scaling_is_part_of_the_thresholds(how):
    X = np.nan_to_num(rows(400, seed=15)).astype(np.float32).astype(np.float64)
    X[:, 1] = 3.0
    raw = Queries.from_arrays(X, np.arange(400) % 3, group=[20] * 20, feature_names=NAMES)
    scaler = rw.Scaler(how).fit(raw)
    scaled = scaler.transform(raw)
    cuts = np.quantile(scaled.X, [0.3, 0.6], axis=0)
    nested = [(f, float(cuts[0, f]), -1.5, (f, float(cuts[1, f]), 0.25, 1.0 + f)) for f in (0, 2, 3, 4)]
    nested.append((1, -0.5, 7.0, (1, 0.5, 9.0, 11.0)))  # a feature that did not vary is 0
    linear = {} if how == "log" else {"coef": np.linspace(-1, 1, 5)}
    model = ranker(made(nested, n_features=5, **linear))
    for target in TARGETS if how == "log" else EXACT:
        parity = export(model, target, sample=raw, scaling=scaler).parity
        assert parity.largest_difference <= 1e-12
    if how != "log":
        assert export(model, "onnx", sample=raw, scaling=scaler).parity.largest_difference <= 1e-5
    with pytest.raises(RankwiseError, match="cannot be moved to raw features"):
        export(ranker(ensemble("none", True)), "c", scaling=scaler)


# ------------------------------------------------------------------------------------------- files and options


def test_elasticsearch_writes_a_dump_of_xgboost_by_names():
    model = ranker(made([(0, 1.0, -1.0, (2, -0.5, 2.0, 3.0)), 0.5]))
    done = export(model, "elasticsearch")
    own = json.loads(done.text)["model"]["model"]
    assert own["type"] == "model/xgboost+json"
    first, second = json.loads(own["definition"])
    assert (first["split"], first["yes"], first["no"], first["missing"]) == ("a", 1, 2, 1)
    assert first["split_condition"] == np.nextafter(np.float32(1.0), np.float32(2.0))
    assert first["children"][1]["missing"] == first["children"][1]["no"]
    assert [one["nodeid"] for one in first["children"]] == [1, 2]
    assert second == {"nodeid": 0, "leaf": 0.5}
    assert any("form='ranklib', where it is 0" in note for note in done.notes)
    assert json.loads(export(model, "opensearch", form="ranklib").text)["model"]["model"]["type"] == "model/ranklib"
    with pytest.raises(RankwiseError, match="'xgboost' for steps and trees"):
        export(model, "elasticsearch", form="linear")
    with pytest.raises(
        RankwiseError, match="'form' parameter of Elasticsearch must be 'linear', 'xgboost', 'ranklib' or"
    ):
        export(model, "elasticsearch", form="other")
    with pytest.raises(RankwiseError, match="'trees' for trees"):
        export(model, "ranklib", form="rankboost")
    with pytest.raises(RankwiseError, match="must be 'float64' or 'float32'"):
        export(model, "onnx", sums="double")


def accepted(node, features):
    """Check a node as the plugins' XGBoostJsonParser does; returns its number."""
    if "leaf" in node:
        assert set(node) == {"nodeid", "leaf"}
        return node["nodeid"]
    # without one of these: "This split does not have all the required fields"
    assert set(node) == {"nodeid", "depth", "split", "split_condition", "yes", "no", "missing", "children"}
    assert all(type(node[name]) is int for name in ("nodeid", "depth", "yes", "no", "missing"))
    assert node["split"] in features
    assert [accepted(child, features) for child in node["children"]] == [node["yes"], node["no"]]
    assert all(child.get("depth", node["depth"] + 1) == node["depth"] + 1 for child in node["children"])
    assert node["missing"] in (node["yes"], node["no"])
    return node["nodeid"]


@pytest.mark.parametrize("engine", ["elasticsearch", "opensearch"])
def test_the_plugins_accept_every_split(engine):
    nested = [(0, 1.0, (1, 2.0, 0.0, (2, -3.0, 1.0, 2.0)), (2, -0.5, 2.0, 3.0)), 0.5]
    done = export(ranker(made(nested)), engine)
    features = [one["name"] for one in json.loads(done.files["featureset.json"])["featureset"]["features"]]
    for tree in json.loads(json.loads(done.text)["model"]["model"]["definition"]):
        assert accepted(tree, features) == tree.get("depth", 0) == 0


def test_solr_keeps_zero_on_its_side_of_a_threshold_next_to_zero():
    tiny = float(np.float32(1e-35))
    model = ranker(made([(0, tiny, 1.0, 2.0), (1, -tiny, 4.0, 8.0), (0, 1e3, 0.0, 16.0), (1, 0.25, 0.0, 32.0)]))
    X = np.array([[0.0, 0.0, 0.0], [1e-6, -1e-6, 0.0], [1e-12, -1e-12, 0.0], [-1.0, 1.0, 0.0], [1e3, 0.25, 0.0]])
    queries = Queries.from_arrays(X.astype(np.float32), None, group=[5], feature_names=NAMES[:3])
    done = export(model, "solr", sample=queries)
    assert done.parity.largest_difference == 0
    assert any("next to 0" in note for note in done.notes)


@given(nested, st.integers(0, 2**32))
@settings(max_examples=20)
def test_any_tree_is_the_same_in_sql_and_vespa(tree, seed):
    X = np.random.default_rng(seed).choice([-2.0, -1.5, -0.25, 0.0, 0.5, 2.0, 3.0], size=(40, 3))
    formula = TreeSum.of(made([tree]), NAMES[:3])
    for target in ("sql", "vespa", "c", "python"):
        np.testing.assert_array_equal(scored(target, formula, X), formula.trees.predict(X))


def test_hundreds_of_trees_are_exported():
    """The size of a mean over three seeds of three hundred trees."""
    lightgbm = pytest.importorskip("lightgbm")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 5))
    options = {"objective": "regression", "num_leaves": 15, "verbose": -1, "num_threads": 1, "min_data_in_leaf": 5}
    grown = lightgbm.train(options, lightgbm.Dataset(X, X[:, 0] * X[:, 1] + X[:, 2]), 300)
    one = TreeEnsemble.from_lightgbm(grown.model_to_string())
    model = ranker(TreeEnsemble.concat([one, one, one]))
    sample = Queries.from_arrays(X[:20].astype(np.float32), None, group=[20], feature_names=NAMES)
    for target in TARGETS:
        done = export(model, target, sample=sample)
        assert done.parity.inverted_beyond_float32 == 0
        assert done.parity.widest_inversion <= 1e-5


# ------------------------------------------------------------------------------------------- real data


def real(name, folder):
    """Training and test queries."""
    parts = ("train", "test") if name == "lightgbm-rank" else ("S1", "S5")
    found = [rw.read_letor(folder / name / f"{part}.txt.gz") for part in parts]
    width = max(one.n_features for one in found)
    return [one.map_features(lambda X: np.pad(X, ((0, 0), (0, width - X.shape[1])))) for one in found]


@pytest.mark.parametrize("name", ["ohsumed", "mq2008", "lightgbm-rank"])
def test_real_lists_keep_their_order_in_every_engine(name, data_folder):
    lightgbm = pytest.importorskip("lightgbm")
    train, test = real(name, data_folder)
    options = {"objective": "lambdarank", "num_leaves": 15, "learning_rate": 0.05, "verbose": -1, "num_threads": 1}
    options |= {"seed": 1, "deterministic": True}
    data = lightgbm.Dataset(train.X, train.y, group=train.sizes)
    trees = TreeEnsemble.from_lightgbm(lightgbm.train(options, data, 100).model_to_string())
    model = Trees()
    model.ensemble_, model.n_features_in_ = trees, trees.n_features
    np.testing.assert_array_equal(model.predict(test), trees.predict(test.X))
    for target in TARGETS:
        parity = export(model, target, sample=test).parity
        assert parity.pairs > 1_000
        assert parity.inverted_beyond_float32 == 0
        # sums of a hundred leaves in float32
        assert parity.largest_difference <= 1e-6 * max(1.0, parity.largest_score)
        assert parity.engine == pytest.approx(parity.ranker, abs=1e-4)
        if target in EXACT:
            assert parity.inverted == parity.tied == 0
