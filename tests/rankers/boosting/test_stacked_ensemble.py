"""Trees beside a linear part and weighted normal scores, and what NaN counts as there."""

import pickle
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rankwise as rw
from rankwise import Queries
from rankwise.errors import RankwiseError
from rankwise.rankers.boosting.normal_sum import NormalSum
from rankwise.rankers.boosting.tree_ensemble import TreeEnsemble
from tests.rankers.boosting.boosters import edge_rows, rows
from tests.rankers.boosting.test_tree_ensemble import ensemble, in_memory, made

COEF = np.array([0.5, 0.0, -2.0, 1.0, 0.125])
WEIGHT = np.array([1.0, -0.5, 0.25, 0.0, 2.0])
FILL = np.array([0.25, -1.0, 3.0, 0.0, 0.1])


@cache
def scaler():
    X = np.nan_to_num(rows(3_000, seed=5))
    X[:, 3] = 2.0  # one that does not vary
    return rw.Scaler("normal").fit(X)


def stacked(setting="nan", categories=True, **changes):
    """Trees, linear part, normal scores and fill over five features."""
    beside = {"offset": 0.75, "coef": COEF, "normal": NormalSum.of(scaler(), WEIGHT), "fill": FILL}
    return replace(ensemble(setting, categories), **beside | changes)


def documents(count=300, seed=1):
    return np.concatenate([rows(count, seed), edge_rows()])


def by_definition(X, coef=COEF, weight=WEIGHT, fill=FILL):
    filled = np.where(np.isnan(X), fill, X.astype(np.float64))
    return filled @ coef + scaler().transform(np.ascontiguousarray(np.nan_to_num(filled))) @ weight


# ------------------------------------------------------------------------------------------------------------- scores


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(("setting", "categories"), [("nan", True), ("zero", False), ("65 leaves", False)])
def test_a_score_is_trees_and_what_is_beside_them(setting, categories, dtype):
    X = rows(300, seed=1).astype(dtype)
    assert np.isnan(X).any()
    expected = ensemble(setting, categories).predict(X) + by_definition(X) + 0.75
    np.testing.assert_allclose(stacked(setting, categories).predict(X), expected, rtol=1e-12, atol=1e-12)


def test_values_of_float32_have_the_scores_that_they_have_as_float64():
    X = rows(300, seed=4).astype(np.float32)
    np.testing.assert_array_equal(stacked().predict(X), stacked().predict(X.astype(np.float64)))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_score_depends_on_the_row_alone(dtype):
    trees, X = stacked(), rows(9_000, seed=2).astype(dtype)
    scores = trees.predict(X)
    order = np.random.default_rng(0).permutation(len(X))
    for jobs in (1, 2):
        np.testing.assert_array_equal(trees.predict(X[order], n_jobs=jobs), scores[order])
    np.testing.assert_array_equal([trees.predict(X[i : i + 1])[0] for i in range(70)], scores[:70])
    complete = ~np.isnan(X).any(axis=1)
    np.testing.assert_array_equal(trees.predict(X[complete]), scores[complete])
    assert trees.predict(X[:0]).shape == (0,)


def test_nan_has_no_score_without_a_fill():
    X = rows(100, seed=3)
    lacking = np.isnan(X).any(axis=1)
    for parts in ({"normal": None}, {"coef": None}, {}):
        trees = stacked(fill=None, **parts)
        np.testing.assert_array_equal(np.isnan(trees.predict(X)), lacking)
        assert trees.refuses_missing
    assert not stacked().refuses_missing
    assert not ensemble().refuses_missing


def test_rows_without_nan_are_not_copied():
    X = np.nan_to_num(rows(50, seed=1))
    assert stacked()._filled(X) is X


def test_a_sum_of_normal_scores_is_what_a_linear_ranker_on_them_scores():
    X = np.nan_to_num(rows(10_000, seed=6))
    queries = Queries.from_arrays(X, np.arange(len(X)) % 3, group=[10] * 1_000)
    model = rw.MappedRanker(rw.Scaler("normal"), rw.RidgeRanker(alpha=1.0)).fit(queries)
    own = NormalSum.of(model.transformer_, model.ranker_.coef_)
    np.testing.assert_array_equal(own.scores(X), model.predict(X))
    np.testing.assert_array_equal(own.scores(X, n_jobs=1), model.predict(X))
    assert np.abs(own.scores(X)).max() <= own.largest


# -------------------------------------------------------------------------------------------------- parts of the score


def test_contributions_add_up_to_the_score():
    trees, X = stacked(), rows(60, seed=7)
    found = trees.contributions(X)
    np.testing.assert_allclose(found.sum(axis=1), trees.predict(X), rtol=1e-11, atol=1e-11)
    filled = np.where(np.isnan(X), FILL, X)
    expected = filled * COEF + scaler().transform(filled) * WEIGHT
    np.testing.assert_allclose(found[:, :-1] - ensemble("nan", True).contributions(X)[:, :-1], expected, atol=1e-11)


def test_the_first_trees_keep_what_is_beside_them():
    X = documents()
    few = stacked().first(3)
    assert few.n_trees == 3
    np.testing.assert_array_equal(
        few.predict(X), replace(ensemble("nan", True).first(3), **beside(stacked())).predict(X)
    )


def beside(trees):
    return {name: getattr(trees, name) for name in ("offset", "coef", "normal", "fill")}


def test_shape_functions_are_those_of_the_trees():
    trees = made([(0, 0.5, 1.0, 2.0), (1, -1.0, 3.0, 4.0)], n_features=5)
    more = replace(trees, coef=COEF, normal=NormalSum.of(scaler(), WEIGHT), fill=FILL)
    assert more.additive
    for feature in range(2):
        for one, other in zip(more.shape_function(feature), trees.shape_function(feature), strict=True):
            np.testing.assert_array_equal(one, other)


def test_concat_adds_up_every_part():
    parts = [
        stacked(),
        stacked("zero", False, normal=NormalSum.of(scaler(), WEIGHT[::-1]), coef=None),
        stacked("none", False, normal=None, fill=None, coef=None),
    ]
    X, factors = rows(100, seed=8), [0.5, -2.0, 3.0]
    joined = TreeEnsemble.concat(parts, factors)
    expected = sum(factor * part.predict(X) for factor, part in zip(factors, parts, strict=True))
    np.testing.assert_allclose(joined.predict(X), expected, rtol=1e-11, atol=1e-11)
    np.testing.assert_array_equal(joined.fill, FILL)
    assert TreeEnsemble.concat([parts[2]]).normal is None


def test_concat_refuses_parts_that_cannot_be_added():
    other = rw.Scaler("normal").fit(np.nan_to_num(rows(50, seed=9)))
    with pytest.raises(RankwiseError, match="only if these are of the same Scaler"):
        TreeEnsemble.concat([stacked(), stacked(normal=NormalSum.of(other, WEIGHT))])
    with pytest.raises(RankwiseError, match="got different fill"):
        TreeEnsemble.concat([stacked(), stacked(fill=FILL + 1)])


def test_a_committee_of_stacked_ensembles_is_one():
    X = rows(400, seed=10)
    queries = Queries.from_arrays(X, np.arange(400) % 3, group=[20] * 20, missing="keep")
    members = []
    for seed, coef in ((0, COEF), (1, -COEF)):
        member = rw.BoostedRanker(trees=5, folds=2, depth=2, random_state=seed).fit(queries)
        member.ensemble_ = replace(member.ensemble_, coef=coef, normal=NormalSum.of(scaler(), WEIGHT), fill=FILL)
        members.append(member)
    both = rw.Committee(members, missing="keep").fit(queries)
    np.testing.assert_allclose(both.ensemble_.predict(X), both.predict(X), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(both.ensemble_.normal.weight, both.factors_.sum() * WEIGHT)


# --------------------------------------------------------------------------------------------------------------- files


@pytest.mark.parametrize("lacking", [(), ("normal",), ("coef",), ("fill",), ("normal", "fill")])
def test_arrays_go_through_a_file(lacking):
    trees, X = stacked(**dict.fromkeys(lacking)), documents()
    again = TreeEnsemble.from_arrays(in_memory(trees.arrays()), 5)
    np.testing.assert_array_equal(again.predict(X), trees.predict(X))
    assert repr(again) == repr(trees)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(trees)).predict(X), trees.predict(X))


def test_trees_alone_have_the_arrays_that_they_had():
    assert not [name for name in ensemble().arrays() if "normal" in name or "fill" in name]


def test_nobody_can_change_the_arrays():
    for trees in (stacked(), pickle.loads(pickle.dumps(stacked()))):
        for array in (trees.fill, trees.normal.weight, trees.normal.knots):
            with pytest.raises(ValueError, match="read-only"):
                array[0] = 2.0


def broken(**changes):
    arrays = stacked().arrays()
    return {f"trees.{name}": change(arrays[f"trees.{name}"]) for name, change in changes.items()}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"normal_knots": lambda a: a[::-1]}, "do not rise"),
        ({"normal_start": lambda a: a + 1}, "do not rise, or do not fit"),
        ({"normal_start": lambda a: a.astype(np.int32)}, "type"),
        ({"normal_heights": lambda a: np.append(a[:-1], np.nan)}, "not finite"),
        ({"normal_heights": lambda a: a[:-1]}, "do not rise, or do not fit"),
        ({"normal_weight": lambda a: a[:-1]}, "do not rise, or do not fit"),
        ({"normal_weight": lambda a: np.full(5, 1e308)}, "more than float64 can hold"),
        ({"fill": lambda a: a[:-1]}, "NaN counts as"),
        ({"fill": lambda a: np.full(5, np.inf)}, "not finite"),
        ({"fill": lambda a: a.astype(np.float32)}, "type"),
    ],
)
def test_arrays_of_a_damaged_file_are_refused(changes, message):
    with pytest.raises(RankwiseError, match=message):
        TreeEnsemble.from_arrays(in_memory(stacked().arrays() | broken(**changes)), 5)


def test_an_incomplete_file_is_refused():
    arrays = {name: array for name, array in stacked().arrays().items() if name != "trees.normal_knots"}
    with pytest.raises(RankwiseError, match="lack knots"):
        TreeEnsemble.from_arrays(in_memory(arrays), 5)
    with pytest.raises(RankwiseError, match="over 3 features, and normal scores of 5"):
        made([1.0], normal=NormalSum.of(scaler(), WEIGHT))
    with pytest.raises(RankwiseError, match="must be a fitted Scaler"):
        NormalSum.of(rw.Scaler().fit(np.eye(5)), WEIGHT)


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=60)
def test_mutated_arrays_are_an_error_or_have_finite_scores(seed):
    rng = np.random.default_rng(seed)
    arrays = stacked().arrays()
    name = rng.choice(
        ["trees.normal_start", "trees.normal_knots", "trees.normal_heights", "trees.normal_weight", "trees.fill"]
    )
    array = arrays[name].copy()
    array[rng.integers(len(array))] = (
        rng.choice([-1, 0, 7, 10**9]) if array.dtype.kind == "i" else rng.choice([np.nan, np.inf, -1e300, 0.0, 1.0])
    )
    try:
        trees = TreeEnsemble.from_arrays(in_memory(arrays | {name: array}), 5)
    except RankwiseError:
        return
    assert np.isfinite(trees.predict(rows(50, seed=1))).all()
