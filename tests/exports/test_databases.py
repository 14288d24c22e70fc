"""The exported query in DuckDB, PostgreSQL and SQLite: the scores of the ranker, NULL, and limits of parsers."""

import re

import numpy as np
import pytest

import rankwise as rw
from rankwise.exports import export, targets
from rankwise.exports.formula import TreeSum
from tests.engines.databases import DATABASES, Unavailable
from tests.exports.models import KINDS, NAMES, NETWORKS, fitted, sample
from tests.rankers.boosting.boosters import edge_rows, rows
from tests.rankers.boosting.test_tree_ensemble import ensemble, made

SETTINGS = ["nan", "zero", "none", "stumps", "single leaves", "65 leaves"]


@pytest.fixture(scope="module", params=DATABASES, ids=lambda kind: kind.name)
def base(request):
    try:
        with request.param() as running:
            yield running
    except Unavailable as reason:
        pytest.skip(str(reason))


def query(trees, missing="error", names=NAMES):
    return targets()["sql"]().write(TreeSum.of(trees, names, missing), "rankwise").files["score.sql"]


def test_databases_score_as_every_ranker_does(base):
    base.load(sample().X, NAMES)
    for kind in KINDS:
        if kind != "NeuralRanker" and not hasattr(fitted(kind), "network_"):
            own = fitted(kind).predict(sample())
            np.testing.assert_allclose(base.score(export(fitted(kind), "sql").text), own, rtol=1e-12, atol=1e-12)
    assert "sql" not in NETWORKS


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("categories", [False, True])
def test_null_and_categories_go_where_the_trees_send_them(base, setting, categories):
    trees = ensemble(setting, categories)
    X = np.concatenate([rows(100, seed=12), edge_rows()])
    X = X[~np.isinf(X).any(axis=1)]
    formula = TreeSum.of(trees, NAMES)
    base.load(X, NAMES)
    found, expected = base.score(query(trees)), trees.predict(X)
    lacking = np.isnan(X[:, formula.used]).any(axis=1) & (not formula.decides_missing)
    np.testing.assert_allclose(found[~lacking], expected[~lacking], rtol=1e-13, atol=1e-13)
    assert np.isnan(found[lacking]).all()
    np.testing.assert_allclose(base.score(query(trees, "zero")), trees.predict(np.nan_to_num(X)), rtol=1e-13)


def test_curves_bins_and_medians_run(base):
    lists = rw.make_lists(30, features=4, random_state=1)
    for model in (rw.MappedRanker("KBinsDiscretizer"), rw.AutoRanker(folds=2, max_trees=20)):
        model.fit(lists)
        base.load(lists.X, lists.feature_names)
        found = base.score(export(model, "sql").text)
        np.testing.assert_allclose(found, model.predict(lists), rtol=1e-12, atol=1e-12)


def chain(levels, is_left):
    """A tree that is one way down, with a leaf at each of its levels."""
    deep = 0.0
    for level in range(levels):
        leaf, cut = float(level), float(levels - level)
        deep = (0, levels - cut, deep, leaf) if is_left else (0, cut, leaf, deep)
    return deep


@pytest.mark.parametrize("is_left", [False, True])
def test_a_tree_of_900_levels_is_one_case(base, is_left):
    trees = made([chain(900, is_left)])
    X = np.random.default_rng(0).uniform(0, 1_000, size=(50, 3))
    text = query(trees, names=NAMES[:3])
    assert text.count("CASE WHEN") == 2  # one of them for rows that lack a feature
    base.load(X, NAMES[:3])
    np.testing.assert_array_equal(base.score(text), trees.predict(X))


def test_cases_are_nested_as_deep_as_a_tree_has_halvings():
    rng = np.random.default_rng(1)

    def grow(leaves):
        if leaves == 1:
            return float(rng.normal())
        left = int(rng.integers(1, leaves))
        return (int(rng.integers(3)), float(rng.normal()), grow(left), grow(leaves - left))

    for leaves in (2, 31, 64, 255):
        text = query(made([grow(leaves)]), "zero", NAMES[:3])
        depth = deepest = 0
        for word in re.findall(r"\b(?:CASE|END)\b", text):
            depth += 1 if word == "CASE" else -1
            deepest = max(deepest, depth)
        assert depth == 0
        assert deepest <= np.log2(leaves)
