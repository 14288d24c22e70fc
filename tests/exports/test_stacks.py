"""Trees with linear weights and normal scores beside them through every export."""

import json
import re
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rankwise as rw
from rankwise.errors import RankwiseError
from rankwise.exports import export, targets
from rankwise.exports.curves import CurveSum
from rankwise.exports.formula import TreeSum
from rankwise.queries.queries import Queries
from rankwise.rankers.boosting.normal_sum import NormalSum
from tests.exports.models import raw_lists
from tests.exports.test_every_target import TREES_ALONE, compiled  # noqa: F401
from tests.exports.test_trees import NAMES, ranker, scored
from tests.rankers.boosting.test_tree_ensemble import made, nested

EXACT = ("c", "python", "sql", "vespa")
TARGETS = (*EXACT, "onnx")

QUICK = {"folds": 2, "max_trees": 20}


@cache
def lists(seed, gaps=False, dtype="float64"):
    """Simulated queries, one value in twelve missing with ``gaps``."""
    shape = {"documents": 12, "features": 6, "noise": 0.2, "interactions": 1.0}
    found = rw.make_lists(30, **shape, random_state=seed, dtype=dtype)
    if not gaps:
        return found
    holes = np.random.default_rng(seed).random(found.X.shape) < 1 / 12
    X = np.where(holes, found.X.dtype.type(np.nan), found.X)
    return Queries.from_arrays(X, found.y, group=found.sizes, feature_names=found.feature_names, missing="keep")


@cache
def stack(gaps=False, dtype="float64", **options):
    return rw.AutoRanker(**QUICK, **options).fit(lists(1, gaps, dtype))


def check(model, target, sample, **options):
    """No pair is inverted, and scores differ by roundings alone."""
    parity = export(model, target, sample=sample, **options).parity
    assert parity.pairs > 1_000
    assert parity.inverted == 0
    bound = 1e-13 if target in EXACT else 1e-6
    assert parity.largest_difference <= bound * parity.largest_score
    assert parity.engine == pytest.approx(parity.ranker, abs=1e-9 if target in EXACT else 1e-4)


# ------------------------------------------------------------------------------------------- AutoRanker


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize(
    "options",
    [{}, {"dtype": "float32"}, {"compact": True}, {"members": ("trees", "ridge")}, {"members": ("normal", "ridge")}],
    ids=str,
)
def test_the_stack_ranks_the_same_in_every_target_that_holds_it(target, gaps, options):
    check(stack(gaps, **options), target, lists(2, gaps, options.get("dtype", "float64")), shift=0.5)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("missing", ["error", "zero"])
def test_the_stack_without_a_meaning_for_gaps(target, missing):
    model = rw.AutoRanker(missing=missing, **QUICK).fit(lists(1))
    check(model, target, lists(2))
    X = lists(3, gaps=True).X[:50]
    names = lists(1).feature_names
    found = targets()[target]().score(export(model, target).files, X, names)
    if missing == "error" and target == "sql":
        np.testing.assert_array_equal(np.isnan(found), np.isnan(X).any(axis=1))
    elif missing == "zero" and target in ("python", "c", "sql"):
        np.testing.assert_allclose(found, model.predict(X), rtol=1e-12)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("how", ["standard", "minmax"])
def test_the_stack_on_scaled_features_is_moved_to_raw_ones(target, how):
    raw, unseen = raw_lists(count=60), raw_lists(seed=1)
    scaler = rw.Scaler(how).fit(raw)
    model = rw.AutoRanker(**QUICK).fit(scaler.transform(raw))
    parity = export(model, target, sample=unseen, scaling=scaler).parity
    assert parity.inverted_beyond_float32 == 0 or target == "onnx"
    # float32 rounds thresholds of features that are far from 0
    assert parity.largest_difference <= (1e-9 if target in EXACT else 1e-2) * parity.largest_score


@pytest.mark.parametrize("target", TREES_ALONE)
def test_engines_of_trees_alone_say_which_members_they_hold(target):
    for options in ({}, {"members": ("ridge", "trees")}):
        message = r"nothing beside them, .* \(AutoRanker with members=\('trees',\)\), or export to c, onnx, python, sql"
        with pytest.raises(RankwiseError, match=message):
            export(stack(**options), target)
    with pytest.raises(RankwiseError, match=r"is a sum of curves of features: export to c, onnx, python, sql, vespa"):
        export(stack(members=("normal",)), target)
    for members in (("trees",), ("ridge",)):
        parity = export(stack(members=members, dtype="float32"), target, sample=lists(2, dtype="float32")).parity
        assert parity.inverted == 0
    with pytest.raises(RankwiseError, match="the trees learned another side for missing values"):
        export(stack(gaps=True, members=("trees",)), target)


@pytest.mark.parametrize("target", [*TREES_ALONE, *TARGETS])
def test_weights_alone_take_the_medians_where_a_default_can_be_said(target):
    sample = lists(2, gaps=True)
    model = stack(gaps=True, members=("ridge",))
    done = export(model, target, sample=sample)
    if target == "ranklib":
        assert done.parity.inverted > 0
    else:
        assert done.parity.inverted == 0
    if target in TREES_ALONE:
        assert any("median of training (model.ensemble_.fill)" in note for note in done.notes)
    if target == "solr":
        drafts = {one["name"]: one["params"]["defaultValue"] for one in json.loads(done.files["features.json"])}
        assert drafts == dict(zip(sample.feature_names, model.ensemble_.fill.tolist(), strict=True))


@pytest.mark.parametrize("target", [*TREES_ALONE, "sql", "vespa"])
def test_more_trees_than_engines_read_are_refused_with_what_has_fewer(target, monkeypatch):
    monkeypatch.setattr("rankwise.exports.write.MOST_TREES", 30)
    with pytest.raises(RankwiseError, match=r"30 trees are the most, and AutoRanker has 40: .*compact=True.* onnx, py"):
        export(stack(members=("trees",)), target)
    export(stack(members=("trees",), compact=True), target)


def test_notes_say_what_a_gap_counts_as():
    gap = {"python": "NaN", "c": "NaN", "onnx": "NaN", "sql": "NULL", "vespa": "without a value"}
    for target, words in gap.items():
        both, curves = (export(stack(members=one), target).notes for one in (("trees", "normal"), ("normal",)))
        assert any(words in note and "beside the trees it counts as the median" in note for note in both)
        assert any(words in note and "counts as the median" in note and "trees" not in note for note in curves)


# ------------------------------------------------------------------------------------------- committees


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("missing", ["error", "keep"])
def test_a_committee_with_a_stack_is_one_sum(target, missing):
    queries = lists(1)
    other = rw.BoostedRanker(trees=8, folds=2, seeds=1, missing="keep") if missing == "keep" else rw.RidgeRanker()
    model = rw.Committee([stack(), other.fit(queries)], missing=missing).fit(queries)
    check(model, target, lists(2, gaps=missing == "keep"))


def test_stacks_of_other_queries_have_other_curves_and_are_no_sum():
    other = rw.AutoRanker(members=("normal",), **QUICK).fit(lists(5))
    model = rw.Committee([stack(), other]).fit(lists(1))
    with pytest.raises(RankwiseError, match=r"only if these are of the same Scaler\('normal'\), got different knots"):
        export(model, "python")
    ridges = [rw.AutoRanker(members=("ridge", "trees"), **QUICK).fit(lists(seed)) for seed in (1, 5)]
    check(rw.Committee(ridges).fit(lists(1)), "python", lists(2))
    with pytest.raises(RankwiseError, match="count NaN as the same values, got different fill"):
        export(rw.Committee(ridges, missing="keep").fit(lists(1)), "python")


# ------------------------------------------------------------------------------------------- ensembles made by hand

KNOTS = ([-2.0, -1.5, 0.25, 3.0], [0.5], [-1.0, -0.25, 1e-3, 2.0, 2.5])
SCORES = ([-1.5, -0.5, -0.5, 2.0], [0.0], [-2.0, -1.0, 0.125, 0.5, 3.0])
start = np.cumsum([0, *map(len, KNOTS)])
weights = st.lists(st.integers(-8, 8).map(lambda one: one / 4), min_size=3, max_size=3).map(np.array)


@st.composite
def ensembles(draw):
    """Trees with some of a linear part, normal scores, and what NaN counts as."""
    more = {"offset": draw(st.sampled_from([0.0, 0.75]))}
    if draw(st.booleans()):
        more["coef"] = draw(weights)
    normal = draw(st.one_of(st.none(), weights))
    if normal is not None:
        more["normal"] = NormalSum(start, np.concatenate(KNOTS), np.concatenate(SCORES), normal)
    if draw(st.booleans()):
        more["fill"] = draw(weights)
    return made([draw(nested), draw(nested)], **more)


def places():
    """Rows at knots, at thresholds, beside them, halfway between them, and beyond all, some with gaps."""
    near = np.unique(np.concatenate([*KNOTS, [-0.25, 0.5, 1.0]]))
    values = [near, np.nextafter(near, np.inf), np.nextafter(near, -np.inf), near[:-1] + np.diff(near) / 2]
    values = np.concatenate([*values, [-50.0, 50.0]])
    X = np.random.default_rng(0).choice(values, size=(150, 3))
    X[::4, 0], X[1::5, 2], X[7::9] = np.nan, np.nan, np.nan
    return X


@given(ensembles())
@settings(max_examples=40)
def test_any_stack_is_the_same_at_knots_between_them_and_in_gaps(trees):
    X = places()
    X = X[~np.isnan(trees.predict(X))]
    formula = TreeSum.of(trees, NAMES[:3], "keep")
    for target in EXACT:
        np.testing.assert_allclose(scored(target, formula, X), trees.predict(X), rtol=1e-12, atol=1e-12)
    single = X.astype(np.float32)
    found = scored("onnx", formula, single)
    np.testing.assert_allclose(found, trees.predict(single), rtol=1e-6, atol=1e-5)


@given(ensembles())
@settings(max_examples=10)
def test_the_compiled_function_of_a_stack_gives_the_bits_that_parity_saw(compiled, trees):  # noqa: F811
    X = places()
    for model in (ranker(trees, "keep"), ranker(trees, "zero")):
        done = export(model, "c")
        np.testing.assert_array_equal(compiled(done.text)[0](X), targets()["c"]().score(done.files, X, NAMES[:3]))


def test_a_curve_of_all_knots_is_a_search_of_eight_steps():
    knots = np.arange(255.0)
    normal = NormalSum(np.array([0, 255]), knots, np.sqrt(knots), np.array([2.0]))
    trees = made([0.5], n_features=1, normal=normal)
    formula = TreeSum.of(trees, NAMES[:1], "keep")
    X = np.concatenate([np.linspace(-3, 260, 2_001), knots])[:, None]
    for target in EXACT:
        np.testing.assert_allclose(scored(target, formula, X), trees.predict(X), rtol=1e-13)
    np.testing.assert_allclose(scored("onnx", formula, X), trees.predict(X), rtol=1e-6)
    text = targets()["sql"]().write(formula, "rankwise").files["score.sql"]
    depth = np.cumsum([1 if word == "CASE" else -1 for word in re.findall("CASE|END", text)])
    # 256 pieces, and one CASE for NULL
    assert (len(depth), depth.max(), depth[-1]) == (2 * 256, 9, 0)


# ------------------------------------------------------------------------------------------- curves alone


@pytest.mark.parametrize("target", TARGETS)
def test_no_curve_at_all_is_the_constant(target):
    found = scored(target, CurveSum(NAMES[:2], 0.5, "error", ((), ())), np.ones((3, 2)))
    np.testing.assert_array_equal(found, [0.5, 0.5, 0.5])


@pytest.mark.parametrize("target", ["sql", "vespa"])
def test_sql_and_vespa_hold_weights_on_normal_scores(target):
    queries, sample = lists(1), lists(2)
    scaler = rw.Scaler("normal").fit(queries)
    check(rw.RidgeCommittee().fit(scaler.transform(queries)), target, sample, scaling=scaler)
    check(rw.MappedRanker(rw.Scaler("normal"), rw.RidgeRanker(alpha=1.0)).fit(queries), target, sample)


# ------------------------------------------------------------------------------------------- what else reads the model


def test_a_saved_stack_is_scored_and_explained_as_the_fitted_one(tmp_path):
    model, sample = stack(gaps=True), lists(2, gaps=True)
    model.save(tmp_path / "model.rankwise")
    again = rw.load(tmp_path / "model.rankwise")
    expected = model.predict(sample)
    np.testing.assert_array_equal(again.predict(sample), expected)
    scorer = rw.Scorer(again)
    rows = sample.rows_of(3)
    np.testing.assert_array_equal(scorer.scores(sample.X[rows]), expected[rows])
    parts, constant = again._contributions(sample.X)
    np.testing.assert_allclose(parts.sum(axis=1) + constant, expected, rtol=1e-9, atol=1e-9)
    assert export(again, "python").text == export(model, "python").text


# ------------------------------------------------------------------------------------------- three sets of data


def heavy(queries):
    """The same queries with features of heavy tails."""
    X = np.asarray(queries.X)
    return queries._replace(X=((X - X.mean(axis=0)) / X.std(axis=0)) ** 5)


def world(name, folder):
    if name == "ohsumed":
        train, test = (rw.read_letor(folder() / name / f"{part}.txt.gz") for part in ("S1", "S5"))
        return train, test[np.arange(6)]
    drawn = [rw.make_lists(40, documents=(10, 50), interactions=1.0, random_state=seed) for seed in (1, 2)]
    return drawn if name == "interactions" else [heavy(one) for one in drawn]


@pytest.mark.parametrize("name", ["interactions", "heavy tails", "ohsumed"])
def test_no_pair_is_inverted_on_three_sets(name, request):
    train, test = world(name, lambda: request.getfixturevalue("data_folder"))
    model = rw.AutoRanker(**QUICK).fit(train)
    assert model.ensemble_.n_trees
    for target in TARGETS:
        parity = export(model, target, sample=test).parity
        assert parity.pairs > 10_000
        assert parity.inverted == 0
        assert parity.tied == 0 or target == "onnx"
