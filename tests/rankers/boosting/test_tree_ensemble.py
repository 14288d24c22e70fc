"""Sums of trees: LightGBM's scores to the bit, its contributions, files of strangers, and shape functions."""

import itertools
import math
from functools import reduce
from io import BytesIO
from operator import add

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankwise._store import StoreWriter, store_of_bytes
from rankwise.errors import RankwiseError
from rankwise.rankers.boosting.tree_ensemble import TreeEnsemble
from tests.rankers.boosting.boosters import SETTINGS, booster, edge_rows, rows

every_booster = pytest.mark.parametrize(
    ("setting", "categories"), [(name, kind) for name in SETTINGS for kind in (False, True)]
)


def ensemble(setting="nan", categories=False):
    return TreeEnsemble.from_lightgbm(booster(setting, categories).model_to_string())


# ------------------------------------------------------------------------------------------------------------- scores


@every_booster
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_scores_are_those_of_lightgbm_to_the_bit(setting, categories, dtype):
    model, trees = booster(setting, categories), ensemble(setting, categories)
    assert trees.n_trees == model.num_trees()
    for X in (rows(300, seed=1), edge_rows()):
        with np.errstate(over="ignore", under="ignore"):
            given = X.astype(dtype)
        np.testing.assert_array_equal(trees.predict(given), model.predict(given, raw_score=True))


def test_the_boosters_reach_every_kind_of_node():
    assert ensemble("nan", True).categorical.any()
    assert (ensemble("nan").missing == 2).any()
    assert (ensemble("zero").missing == 1).any()
    assert not ensemble("none").missing.any()
    assert set(ensemble("zero").default_left) == {0, 1}
    assert ensemble("single leaves").n_leaves == ensemble("single leaves").n_trees > 0
    assert max(np.diff(ensemble("64 leaves").start)) == 63
    assert max(np.diff(ensemble("65 leaves").start)) == 64


def test_a_score_depends_on_the_row_alone():
    trees, X = ensemble("nan", True), rows(5_000, seed=2)
    scores = trees.predict(X)
    order = np.random.default_rng(0).permutation(len(X))
    for jobs in (1, 2, 3):
        np.testing.assert_array_equal(trees.predict(X[order], n_jobs=jobs), scores[order])
    np.testing.assert_array_equal(trees.predict(X[::7]), scores[::7])
    np.testing.assert_array_equal(trees.predict(np.asfortranarray(X)), scores)
    np.testing.assert_array_equal([trees.predict(X[i : i + 1])[0] for i in range(70)], scores[:70])
    frozen = X.copy()
    frozen.setflags(write=False)
    np.testing.assert_array_equal(trees.predict(frozen), scores)
    assert trees.predict(X[:0]).shape == (0,)


def test_rows_of_another_width_are_refused():
    with pytest.raises(RankwiseError, match="grown on 5 features, got 4"):
        ensemble().predict(np.zeros((3, 4)))
    with pytest.raises(RankwiseError, match="two dimensions"):
        ensemble().predict(np.zeros(5))


# ------------------------------------------------------------------------------------------------- ensembles by hand


def made(trees, n_features=3, **more):
    """An ensemble of nested tuples: (feature, threshold, left, right), or a number for a leaf."""
    flat = {name: [] for name in ("feature", "threshold", "left", "right", "value")}
    start = [0]
    for tree in trees:
        nodes, leaves = [], []

        def add(node, nodes=nodes, leaves=leaves):
            if not isinstance(node, tuple):
                leaves.append(node)
                return -len(leaves)
            place = len(nodes)
            nodes.append([node[0], node[1], None, None])
            nodes[place][2:] = [add(node[2]), add(node[3])]
            return place

        add(tree)
        for name, place in (("feature", 0), ("threshold", 1), ("left", 2), ("right", 3)):
            flat[name] += [node[place] for node in nodes]
        flat["value"] += leaves
        start.append(start[-1] + len(nodes))
    count = start[-1]
    arrays = {
        "start": np.array(start),
        "feature": np.array(flat["feature"], np.int64),
        "threshold": np.array(flat["threshold"], np.float64),
        "left": np.array(flat["left"], np.int64),
        "right": np.array(flat["right"], np.int64),
        "missing": np.zeros(count, np.uint8),
        "default_left": np.zeros(count, np.uint8),
        "word_start": np.zeros(count + 1, np.int64),
        "words": np.empty(0, np.uint32),
        "value": np.array(flat["value"], np.float64),
        "gain": np.ones(count),
        "node_count": np.zeros(count, np.int64),
        "leaf_count": np.zeros(count + len(trees), np.int64),
    }
    return TreeEnsemble(n_features, **{**arrays, **more})


leaf_values = st.floats(-1e3, 1e3)
nested = st.recursive(
    leaf_values,
    lambda below: st.tuples(st.integers(0, 2), st.sampled_from([-1.5, -0.25, 0.0, 0.5, 2.0]), below, below),
    max_leaves=100,
)


def value_of(tree, x):
    """The leaf that a row falls into, by definition."""
    while isinstance(tree, tuple):
        tree = tree[2] if x[tree[0]] <= tree[1] else tree[3]
    return tree


@given(st.lists(nested, max_size=5), st.integers(0, 2**32), st.floats(-9, 9), st.booleans())
def test_scores_follow_the_definition(trees, seed, offset, linear):
    rng = np.random.default_rng(seed)
    X = rng.choice([-2.0, -1.5, -0.25, -0.1, 0.0, 0.5, 0.7, 2.0, 3.0], size=(70, 3))
    coef = rng.normal(size=3) if linear else None
    found = made(trees, offset=offset, coef=coef).predict(X)
    expected = [reduce(add, (value_of(tree, x) for tree in trees), 0.0) for x in X]  # sum() corrects its rounding
    if linear:
        expected = np.array(expected) + (X @ coef + offset)
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-9)
    else:
        np.testing.assert_array_equal(found, np.array(expected) + offset)


# ------------------------------------------------------------------------------------------------- files and joining


def in_memory(arrays):
    data = BytesIO()
    with StoreWriter(data, "test") as file:
        for name, array in arrays.items():
            file.append(name, array)
    return store_of_bytes(data.getvalue(), "the test")


@every_booster
def test_arrays_go_through_a_file(setting, categories):
    trees = TreeEnsemble.concat([ensemble(setting, categories)], [0.5])
    again = TreeEnsemble.from_arrays(in_memory(trees.arrays()), 5)
    X = edge_rows()
    np.testing.assert_array_equal(again.predict(X), trees.predict(X))
    np.testing.assert_array_equal(again.importance(), trees.importance())
    without = {name: array for name, array in trees.arrays().items() if name != "trees.start"}
    with pytest.raises(RankwiseError, match=r"trees\.start"):
        TreeEnsemble.from_arrays(in_memory(without), 5)


def test_concat_is_a_weighted_sum():
    parts = [ensemble("nan", True), ensemble("zero"), ensemble("stumps")]
    linear = TreeEnsemble(**{**vars_of(parts[2]), "offset": 2.0, "coef": np.arange(5.0)})
    X = rows(200, seed=3)
    X[np.isnan(X)] = 1.0
    joined = TreeEnsemble.concat([*parts, linear], [0.5, 2.0, -1.0, 0.25])
    expected = sum(w * one.predict(X) for w, one in zip([0.5, 2.0, -1.0, 0.25], [*parts, linear], strict=True))
    np.testing.assert_allclose(joined.predict(X), expected, rtol=1e-12, atol=1e-12)
    assert joined.n_trees == 80
    mean = TreeEnsemble.concat(parts)
    np.testing.assert_allclose(mean.predict(X), sum(one.predict(X) for one in parts) / 3, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(mean.importance(), sum(one.importance() for one in parts) / 3)
    for wrong, message in (([], "at least one"), ([parts[0], made([1.0])], "same number of features, got 3 and 5")):
        with pytest.raises(RankwiseError, match=message):
            TreeEnsemble.concat(wrong)
    with pytest.raises(RankwiseError):
        TreeEnsemble.concat(parts, [1.0, np.nan, 1.0])


def vars_of(trees):
    return {name: getattr(trees, name) for name in trees.__dataclass_fields__}


def test_an_ensemble_cannot_be_changed():
    given = np.array([1.0])
    trees = made([0.5], value=given)
    given[0] = 7.0
    assert trees.predict(np.zeros((1, 3)))[0] == 1.0
    with pytest.raises(ValueError, match="read-only"):
        trees.value[0] = 2.0


BROKEN = {
    "a cycle": ({"left": [0, -1], "right": [1, -2]}, "before its parent"),
    "two parents": ({"left": [1, -1], "right": [-1, -2]}, "two parents"),
    "a child of another tree": ({"left": [2, -1]}, "outside of itself"),
    "a leaf of another tree": ({"left": [1, -4]}, "outside of itself"),
    "an unknown feature": ({"feature": [0, 3]}, "not one of 0 to 2"),
    "an infinite leaf": ({"value": [0.0, np.inf, 1.0]}, "not finite"),
    "leaves that overflow": ({"value": [0.0, 1e308, 1.0], "offset": 1.7e308}, "more than float64"),
    "an unknown kind": ({"missing": np.array([0, 3], np.uint8)}, "unknown way"),
    "lost categories": ({"word_start": [0, 0, 4]}, "do not fit"),
    "negative counts": ({"node_count": [-1, 2]}, "fewer than 0"),
    "a short array": ({"threshold": [0.5]}, "2 nodes, and threshold has 1"),
    "a missing leaf": ({"value": [0.5, 0.5]}, "3 leaves, and value has 2"),
    "a wrong type": ({"feature": np.array([0.0, 1.0])}, "type float64"),
    "no features": ({"n_features": 0}, "1 or more"),
    "a short linear part": ({"coef": np.ones(2)}, "linear part"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_arrays_that_are_no_trees_are_refused(name):
    good = vars_of(made([(0, 0.5, (1, 1.0, 0.0, 1.0), 2.0)]))
    change, message = BROKEN[name]
    typed = {
        key: np.array(value, good[key].dtype) if isinstance(value, list) else value for key, value in change.items()
    }
    with pytest.raises(RankwiseError, match=message):
        TreeEnsemble(**{**good, **typed})


def test_mutated_arrays_are_an_error_or_trees_that_work():
    rng = np.random.default_rng(5)
    good = ensemble("nan", True).arrays()
    X = edge_rows()
    sentences = []
    for _ in range(1_500):
        arrays = dict(good)
        for _ in range(rng.integers(1, 3)):
            name = str(rng.choice(list(arrays)))
            arrays[name] = mutated_array(arrays[name], rng)
        try:
            found = TreeEnsemble.from_arrays(in_memory(arrays), 5)
        except RankwiseError as error:
            sentences.append(str(error))
            continue
        assert np.isfinite(found.predict(np.nan_to_num(X, posinf=9, neginf=-9))).all()
    assert 300 < len(sentences) < 1_500
    assert not any("\n" in one for one in sentences)


def mutated_array(array, rng):
    """A copy with one change: a value, a bit, the length, the type, the order."""
    own, kind = array.copy(), rng.integers(0, 6)
    if kind == 0 or not len(own):
        return own.astype(rng.choice([np.float32, np.int8, np.float64]))
    if kind == 1:
        return own[: rng.integers(0, len(own))]
    if kind == 2:
        return np.append(own, own[:1])
    if kind == 3:
        rng.shuffle(own)
        return own
    place = rng.integers(0, len(own))
    if kind == 4:
        bits = own.view(np.uint8)
        bits[rng.integers(0, len(bits))] ^= np.uint8(1 << rng.integers(0, 8))
        return own
    values = [0, 1, 2, 5, 100, 255] if own.dtype.kind == "u" else [0, -1, 1, -2, 5, -(2**62), 2**62]
    own[place] = rng.choice(values) if own.dtype.kind != "f" else rng.choice([np.nan, np.inf, -1e308, 1e308, 0.0])
    return own


# ----------------------------------------------------------------------------------------------------------- the text


def test_mutated_texts_are_an_error_or_trees_that_work():
    rng = np.random.default_rng(6)
    text = booster("nan", True, 4).model_to_string()
    text = text[: text.index("end of trees") + 40]
    lines, X, sentences = text.split("\n"), edge_rows(), []
    for _ in range(1_500):
        own = list(lines)
        place = int(rng.integers(0, len(own)))
        kind = rng.integers(0, 5)
        if kind == 0:
            del own[place]
        elif kind == 1:
            own.insert(place, own[int(rng.integers(0, len(own)))])
        else:
            key, mark, value = own[place].partition("=")
            words = value.split(" ")
            at = int(rng.integers(0, len(words)))
            words[at] = str(rng.choice(["", "nan", "inf", "-1", "0", "7", "1e400", "x", "1_0", "٣", "9" * 30, "2.5"]))
            own[place] = key + mark + " ".join(words if kind > 2 else words[:at])
        try:
            found = TreeEnsemble.from_lightgbm("\n".join(own))
        except RankwiseError as error:
            sentences.append(str(error))
            continue
        assert found.n_features != 5 or not np.isnan(found.predict(X)).any()
    assert 500 < len(sentences) < 1_500
    assert not any("\n" in one for one in sentences)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("is_linear=0", "is_linear=1", "linear models in its leaves"),
        ("version=v4", "version=v9", "v3 or v4, got 'v9'"),
        ("num_class=1", "num_class=3", "several scores"),
        ("end of trees", "", "cut short"),
        ("Tree=1\n", "Tree=7\n", "numbers its tree 1 as '7'"),
        ("tree\n", "wood\n", "this is not a LightGBM model: its first line must be 'tree'"),
        ("decision_type=", "decision_type=12 ", "decision_type holds 9 words, expected 8 numbers"),
        ("split_feature=", "split_feature=9 9 9 9 9 9 9 9\nx=", "split_feature holds 9, expected 0 to 4"),
        ("decision_type=", "decision_type=12 0 0 0 0 0 0 0\nx=", "unknown decision type 12"),
    ],
)
def test_models_that_cannot_be_taken_are_refused_with_the_reason(old, new, message):
    text = booster("nan").model_to_string()
    assert old in text
    with pytest.raises(RankwiseError, match=message):
        TreeEnsemble.from_lightgbm(text.replace(old, new, 1))
    with pytest.raises(RankwiseError, match="a LightGBM model must be a str, got bytes"):
        TreeEnsemble.from_lightgbm(text.encode())


# ------------------------------------------------------------------------------------------ importance, contributions


@every_booster
def test_importance_and_contributions_are_those_of_lightgbm(setting, categories):
    model, trees = booster(setting, categories), ensemble(setting, categories)
    np.testing.assert_array_equal(trees.importance("split"), model.feature_importance("split"))
    # the text holds gains with six digits
    np.testing.assert_allclose(trees.importance("gain"), model.feature_importance("gain"), rtol=1e-4)
    for X in (rows(60, seed=4), edge_rows(), rows(60, seed=4).astype(np.float32)):
        expected = model.predict(X, pred_contrib=True)
        found = trees.contributions(X)
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12 * np.abs(expected).max())
        np.testing.assert_allclose(found.sum(axis=1), trees.predict(X), rtol=1e-9, atol=1e-12)


def test_contributions_are_shapley_values():
    """Against the definition: every order in which features can become known."""
    trees = ensemble("nan")
    X = rows(4, seed=5)
    for x, found in zip(X, trees.contributions(X), strict=True):
        worth = {known: mean_score(trees, x, known) for known in subsets(range(5))}
        for feature in range(5):
            others = [one for one in range(5) if one != feature]
            expected = sum(
                math.factorial(len(known)) * math.factorial(4 - len(known)) / math.factorial(5)
                * (worth[tuple(sorted((*known, feature)))] - worth[known])
                for known in subsets(others)
            )  # fmt: skip
            assert found[feature] == pytest.approx(expected, rel=1e-9, abs=1e-12)
        assert found[-1] == pytest.approx(worth[()])


def subsets(features):
    return [one for size in range(6) for one in itertools.combinations(features, size)]


def mean_score(trees, x, known):
    """The score where unknown features take each side as often as the training documents did."""

    def below(tree, child):
        first = trees.start[tree]
        if child < 0:
            leaf = first + tree - 1 - child
            return trees.value[leaf], trees.leaf_count[leaf]
        node = first + child
        parts = [below(tree, int(side[node])) for side in (trees.left, trees.right)]
        value = x[trees.feature[node]]
        if trees.feature[node] in known:
            left = bool(trees.default_left[node]) if np.isnan(value) else value <= trees.threshold[node]
            return parts[0 if left else 1][0], trees.node_count[node]
        return sum(v * count / trees.node_count[node] for v, count in parts), trees.node_count[node]

    return sum(below(tree, 0)[0] for tree in range(trees.n_trees))


def test_the_linear_part_contributes_its_terms():
    trees = TreeEnsemble(**{**vars_of(ensemble("none")), "offset": 2.0, "coef": np.arange(5.0)})
    X = np.nan_to_num(rows(20, seed=6))
    np.testing.assert_allclose(trees.contributions(X).sum(axis=1), trees.predict(X), rtol=1e-12)
    difference = trees.contributions(X) - ensemble("none").contributions(X)
    np.testing.assert_allclose(difference[:, :-1], X * np.arange(5.0), atol=1e-9)
    np.testing.assert_allclose(difference[:, -1], 2.0)


def test_contributions_need_counts():
    with pytest.raises(RankwiseError, match="number of training documents"):
        made([(0, 0.5, 1.0, 2.0)]).contributions(np.zeros((1, 3)))
    count = 1_500
    chain = vars_of(made([0.0])) | {
        "start": np.array([0, count]),
        "left": -1 - np.arange(count),
        "right": np.append(np.arange(1, count), -1 - count),
        "feature": np.zeros(count, np.int64),
        "threshold": np.arange(count, dtype=np.float64),
        "word_start": np.zeros(count + 1, np.int64),
        "gain": np.zeros(count),
        "value": np.arange(count + 1, dtype=np.float64),
        "node_count": np.arange(count, 0, -1) + 1,
        "leaf_count": np.ones(count + 1, np.int64),
    }
    chain |= {name: np.zeros(count, np.uint8) for name in ("missing", "default_left")}
    trees = TreeEnsemble(**chain)
    np.testing.assert_array_equal(trees.predict([[-1.0, 0, 0], [700.0, 0, 0], [9e9, 0, 0]]), [0.0, 700.0, 1500.0])
    with pytest.raises(RankwiseError, match="at most 1000 levels: tree 0"):
        trees.contributions(np.zeros((1, 3)))


# ---------------------------------------------------------------------------------------------------- shape functions


@pytest.mark.parametrize("more", [{}, {"zero_as_missing": True}, {"use_missing": False}])
def test_shape_functions_of_stumps_add_up_to_the_score(more):
    lightgbm = pytest.importorskip("lightgbm")
    X = rows(800, seed=0)
    y = X[:, 2] + np.nan_to_num(X[:, 0], nan=2.0) + X[:, 4] + (X[:, 1] == 0)
    settings = {"objective": "regression", "num_leaves": 2, "verbose": -1, "num_threads": 1, **more}
    trees = TreeEnsemble.from_lightgbm(lightgbm.train(settings, lightgbm.Dataset(X, y), 60).model_to_string())
    assert trees.additive
    seen = np.concatenate([rows(300, seed=7), edge_rows()])
    total = np.zeros(len(seen))
    for feature in range(5):
        thresholds, values, missing = trees.shape_function(feature)
        assert len(values) == len(thresholds) + 1
        assert (np.diff(thresholds) > 0).all()
        x = seen[:, feature]
        total += np.where(np.isnan(x), missing, values[np.searchsorted(thresholds, np.nan_to_num(x, posinf=1e308))])
    np.testing.assert_allclose(total, trees.predict(seen), rtol=1e-12, atol=1e-12)


def test_shape_functions_exist_for_one_feature_per_tree():
    two = made([(0, 0.5, 1.0, (0, 2.0, 3.0, 4.0)), (1, 0.0, 0.0, 1.0), 7.0])
    assert two.additive
    thresholds, values, missing = two.shape_function(0)
    np.testing.assert_array_equal(thresholds, [0.5, 2.0])
    np.testing.assert_array_equal(values, [1.0, 3.0, 4.0])
    assert missing == 1.0
    assert two.shape_function(2).values.tolist() == [0.0]
    mixed = made([(0, 0.5, 1.0, (1, 2.0, 3.0, 4.0))])
    assert not mixed.additive
    with pytest.raises(RankwiseError, match="every tree splits on a single, numeric feature"):
        mixed.shape_function(0)
    with pytest.raises(RankwiseError):
        two.shape_function(3)
    assert made([]).additive
