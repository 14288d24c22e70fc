"""Symmetric trees: every split is the best of all, and nothing but the data decides a bit."""

import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rankwise as rw
from rankwise import losses
from rankwise._kernels import histograms
from rankwise._kernels.splits import ABOVE, ABOVE_OR_NAN, BUT_ONE, NAN_ALONE
from rankwise.errors import DataError, RankwiseError
from rankwise.rankers.boosting.growing import joined
from rankwise.rankers.boosting.objectives import Derivatives
from rankwise.rankers.boosting.packed_rows import PackedRows
from rankwise.rankers.boosting.symmetric import SymmetricRows, TreeGrowth, grow_tree

RATE, PENALTY = 0.05, 3.0


def lists_of(X, sizes=None, y=None):
    sizes = [len(X)] if sizes is None else sizes
    return rw.Queries.from_arrays(X, np.arange(len(X)) % 3 if y is None else y, group=sizes, missing="keep")


def shared_of(X, categorical=(), block=4096, jobs=1, **growth):
    growth = TreeGrowth(**{"row_fraction": 1.0, "depth": 3, **growth})
    return SymmetricRows(PackedRows.of([lists_of(X)], categorical, block=block), growth, jobs)


# ------------------------------------------------------------------------------------------------- the brute force


def right_side(split, x):
    """Which values go right."""
    hole = np.isnan(x)
    if split.kind == BUT_ONE:
        return x != split.cut
    if split.kind == NAN_ALONE:
        return hole
    return (x > split.cut) | (hole & (split.kind == ABOVE_OR_NAN))


def questions(X, categorical):
    """Every split of every feature: (feature, kind, sides of all rows), thresholds between all distinct values."""
    for f, x in enumerate(X.T):
        values = np.unique(x[~np.isnan(x)])
        if f in categorical:
            yield from ((f, BUT_ONE, x != code) for code in values)
            continue
        for low in values[:-1]:
            yield f, ABOVE, x > low
            if np.isnan(x).any():
                yield f, ABOVE_OR_NAN, ~(x <= low)
        if np.isnan(x).any() and len(values):
            yield f, NAN_ALONE, np.isnan(x)


def rounded(values, most):
    """Integers, and the power of two that makes the largest of them at most ``most``."""
    power = 1.0
    while np.abs(values).max() * power > most:
        power /= 2
    while np.abs(values).max() * power * 2 <= most:
        power *= 2
    return np.rint(values * power).astype(np.int64), power


def gain_of(leaf, sides, sign, kind, g, h, scale):
    """The sum over leaves of G^2 / (H + 3), and whether a leaf is divided, from exact integer sums."""

    def worth(G, H):
        slope = scale[0] * G
        return slope * slope / (scale[1] * H + PENALTY)

    total, divided = 0.0, False
    for c in range(leaf.max() + 1):
        left, right = (leaf == c) & ~sides, (leaf == c) & sides
        G, H = (int(g[left].sum()), int(g[right].sum())), (int(h[left].sum()), int(h[right].sum()))
        if sum(H) == 0:
            continue
        values = [-scale[0] * a / (scale[1] * b + PENALTY) for a, b in zip(G, H, strict=True)]
        if kind != NAN_ALONE and (values[1] - values[0]) * sign < 0:
            total += worth(sum(G), sum(H))
        else:
            total += worth(G[0], H[0]) + worth(G[1], H[1])
        divided |= min(H) > 0
    return total, divided


def check_tree(tree, leaf, X, g, h, growth, categorical=(), kept=None):
    """Every split of the tree is the best of all on the rows that are kept; leaves have the values of all rows."""
    kept = np.ones(len(X), bool) if kept is None else kept
    signs = np.asarray(growth.signs) if len(growth.signs) else np.zeros(X.shape[1])
    g_int, by_g = rounded(g, 2**19 - 1)
    h_int, by_h = rounded(h, 2**12 - 1)
    factor = np.count_nonzero(h) / (h_int.sum() / by_h)
    scale = factor / by_g, factor / by_h
    place = np.zeros(len(X), np.int64)
    for level, split in enumerate([*tree.splits, None][: growth.depth]):
        sums = {
            (f, kind, sides.tobytes()): gain_of(
                place[kept], sides[kept], signs[f], kind, g_int[kept], h_int[kept], scale
            )
            for f, kind, sides in questions(X, categorical)
            if not (growth.one_feature and level and f != tree.splits[0].feature)
        }
        if split is None:
            assert not any(divides for _, divides in sums.values())
            break
        sides = right_side(split, X[:, split.feature])
        own, divided = sums[split.feature, split.kind, sides.tobytes()]
        assert divided
        assert own == max(total for total, divides in sums.values() if divides)
        place |= sides.astype(np.int64) << level
    np.testing.assert_array_equal(leaf, place)
    if not tree.splits:
        assert tree.value.tolist() == [0.0]
    elif not signs.any():
        G, H = (np.array([int(v[place == c].sum()) for c in range(len(tree.value))]) for v in (g_int, h_int))
        expected = -growth.learning_rate * (scale[0] * G) / (scale[1] * H + PENALTY)
        np.testing.assert_array_equal(tree.value, expected)


def grown(shared, g, h, learned=None, key=0):
    learned = np.ones(len(g), np.uint8) if learned is None else learned
    fixed = SimpleNamespace(before_tree=lambda *given: fixed, at=lambda *given: (g, h), weight=learned)
    rows = shared.model(fixed, 0, None, 1).rows
    shared.memory.leaf[:] = 0
    return grow_tree(shared, rows, 0, key), shared.memory.leaf.copy()


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    rows=st.integers(2, 60),
    features=st.integers(1, 6),
    holes=st.sampled_from([0.0, 0.3, 0.9]),
    signs=st.sampled_from([None, (1, -1, 0, 1, 0, -1)]),
    one_feature=st.booleans(),
)
def test_a_tree_is_that_of_a_search_over_all_splits(seed, rows, features, holes, signs, one_feature):
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(rows, features)), 1)
    X[rng.random(X.shape) < holes] = np.nan
    categorical = [0] if features > 1 and seed % 2 and signs is None else []
    X[:, categorical] = np.round(np.abs(3 * X[:, categorical]))
    g, h = rng.normal(size=rows), rng.random(rows) * (rng.random(rows) < 0.9)
    growth = {"signs": signs[:features]} if signs else {}
    shared = shared_of(X, categorical, one_feature=one_feature, **growth)
    tree, leaf = grown(shared, g, h)
    check_tree(tree, leaf, X, g, h, shared.growth, categorical)


def test_splits_are_found_on_sampled_rows_and_leaves_on_all():
    rng = np.random.default_rng(0)
    X, g, h = np.round(rng.normal(size=(300, 3)), 1), rng.normal(size=300), rng.random(300)
    learned = (rng.random(300) < 0.8).astype(np.uint8)
    g, h = g * learned, h * learned
    shared = shared_of(X, row_fraction=0.5)
    tree, leaf = grown(shared, g, h, learned, key=7)
    kept = np.empty(300, np.uint8)
    histograms.sample_rows(learned, np.uint64(7), np.uint64(2**31), 0, 300, kept)
    assert 90 < kept.sum() < 150
    check_tree(tree, leaf, X, g, h, shared.growth, kept=kept == 1)
    np.testing.assert_array_equal(tree.documents, np.bincount(leaf, learned, len(tree.value)))


def test_a_tree_sees_some_groups_of_features_alone():
    rng = np.random.default_rng(0)
    X, g, h = rng.normal(size=(500, 16)), rng.normal(size=500), np.ones(500)
    shared = SymmetricRows.of([lists_of(X)], TreeGrowth(feature_fraction=0.25, depth=6), [], 64, 3, 1)
    groups = {frozenset(row) for row in shared.rows.feature.tolist()}
    seen = set()
    for key in range(30):
        own = {split.feature for split in grown(shared, g, h, key=key)[0].splits}
        (group,) = [group for group in groups if own <= group]
        seen.add(group)
    assert seen == groups


def test_a_tree_has_no_level_that_divides_nothing():
    X = np.repeat([[0.0], [1.0]], 5, axis=0)
    tree, leaf = grown(shared_of(X), np.repeat([1.0, -1.0], 5), np.ones(10))
    assert [split.cut for split in tree.splits] == [0.5]
    np.testing.assert_allclose(tree.value, [-RATE * 5 / 8, RATE * 5 / 8], rtol=1e-12)
    np.testing.assert_array_equal(leaf, np.repeat([0, 1], 5))


@pytest.mark.parametrize("zero", ["gradient", "curvature"])
def test_nothing_is_learned_from_derivatives_of_zero(zero):
    g, h = np.ones(10) * (zero != "gradient"), np.ones(10) * (zero != "curvature")
    tree, leaf = grown(shared_of(np.arange(10.0)[:, None]), g, h)
    assert tree.splits == ()
    assert tree.value.tolist() == [0.0]
    assert not leaf.any()


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_derivatives_that_are_not_finite_raise_an_error(bad):
    g = np.ones(10)
    g[3] = bad
    with pytest.raises(RankwiseError, match="derivatives that are not finite"):
        grown(shared_of(np.arange(10.0)[:, None]), g, np.ones(10))


def test_rounding_does_not_depend_on_the_unit_of_the_loss():
    rng = np.random.default_rng(0)
    X, g, h = rng.normal(size=(200, 4)), rng.normal(size=200), rng.random(200)
    one, other = (grown(shared_of(X), g * unit, h * unit)[0] for unit in (1.0, 2.0**-40))
    assert one.splits == other.splits
    np.testing.assert_array_equal(one.value, other.value)


# ------------------------------------------------------------------------------------------------------------ bins


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("block", [64, 4096])
def test_bins_count_the_thresholds_below_a_value(dtype, block):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(700, 7)).astype(dtype)
    X[:, 1] = np.round(X[:, 1])
    X[rng.random(X.shape) < 0.1] = np.nan
    X[:, 2] = 5.0  # constant
    X[:, 3] = np.where(rng.random(700) < 0.5, np.nan, 1.0)
    X[:, 4] = rng.integers(0, 9, 700) * 7
    order = rng.permutation(700)
    first, second = (
        lists_of(X[:300], [100] * 3),
        rw.Queries.from_arrays(X[300:][order[order < 400]], np.zeros(400), qid=rng.integers(0, 9, 400), missing="keep"),
    )
    packed = PackedRows.of([first, second], [4], block=block, order=np.array([6, 5, 4, 3, 2, 1, 0]))
    assert packed.feature.ravel().tolist() == [6, 5, 4, 3, 1, 0, -1, -1]
    rows = np.concatenate([first.X, second.X[second.rows]])
    for lane, number in enumerate(packed.feature.ravel()):
        group, place = divmod(lane, 4)
        bins = ((packed.words[:, group] >> np.uint32(8 * place)) & np.uint32(255)).ravel()[:700].astype(int)
        x, cut = rows[:, number].astype(np.float64), packed.cut[group, place]
        cut = cut[np.isfinite(cut)]
        if number < 0:
            assert not bins.any()
            continue
        expected = np.searchsorted(cut, x) + 1
        if number == 4:
            np.testing.assert_array_equal(cut, np.unique(x[~np.isnan(x)]))
        else:
            assert len(cut) <= 62
            assert not np.isin(cut, x).any() or number == 1
        np.testing.assert_array_equal(bins, np.where(np.isnan(x), 0, expected))
        assert packed.facts[lane].tolist() == [len(cut) + 1 + (number != 4), np.isnan(x).any(), number == 4]


def test_thresholds_of_many_rows_are_those_of_a_sample_and_no_matter_of_sets(monkeypatch):
    monkeypatch.setattr("rankwise.rankers.boosting.packed_rows._SAMPLED", 2_000)
    X = np.random.default_rng(0).normal(size=(9_000, 5))
    whole = PackedRows.of([lists_of(X)])
    parts = PackedRows.of([lists_of(X[:1_000]), lists_of(X[1_000:])])
    np.testing.assert_array_equal(whole.cut, parts.cut)
    np.testing.assert_array_equal(whole.words, parts.words)
    share = [np.mean(X[:, 0] <= cut) for cut in whole.cut[0, 0, :62]]
    np.testing.assert_allclose(share, np.arange(1, 63) / 63, atol=0.02)


def test_bins_take_a_byte_per_value():
    X = np.random.default_rng(0).normal(size=(3 * 4096, 8)).astype(np.float32)
    assert PackedRows.of([lists_of(X)]).words.nbytes == X.size


def test_too_many_categories_name_the_other_engine():
    X = np.arange(64.0)[:, None]
    assert PackedRows.of([lists_of(X[:63])], [0]).facts[0, 0] == 64
    with pytest.raises(DataError, match=r"feature 0 has 64 categories.*pass engine='lightgbm'"):
        PackedRows.of([lists_of(X)], [0])
    with pytest.raises(DataError, match=r"must be below 1,048,576.*number them from 0"):
        PackedRows.of([lists_of(np.array([[0.0], [2.0**20]]))], [0])


# ------------------------------------------------------------------------------------------------------------ sums


def model_of(X, y, sizes, *, loss=None, block=4096, jobs=1, categorical=(), trees=8, **growth):
    queries = lists_of(X, sizes, y)
    rows = SymmetricRows(PackedRows.of([queries], categorical, block=block), TreeGrowth(**growth), jobs)
    derivatives = Derivatives.of(loss or losses.PairLogistic(), joined([queries]))
    model = rows.model(derivatives, 3, None, jobs)
    for _ in range(trees):
        model.grow()
    return model


def data(seed=0, queries=60, features=9, holes=0.05):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 12, queries)
    X = np.round(rng.normal(size=(sizes.sum(), features)), 2)
    y = np.clip(np.rint(X[:, 0] + 2 * X[:, 1] * X[:, 2]), 0, 3)
    X[rng.random(X.shape) < holes] = np.nan
    return X, y, sizes


def test_no_bit_depends_on_threads_and_blocks(monkeypatch):
    monkeypatch.setattr("rankwise._kernels.parallel._FEW_VALUES", 0)
    X, y, sizes = data(queries=300)
    expected = model_of(X, y, sizes)
    for jobs, block in ((2, 4096), (4, 100), (1, 257), (2, 1000), (4, 16384)):
        model = model_of(X, y, sizes, jobs=jobs, block=block)
        assert len(model.shared.shares) == min(jobs, -(-len(X) // block))
        np.testing.assert_array_equal(model.scores(), expected.scores())
        assert [tree.splits for tree in model.trees] == [tree.splits for tree in expected.trees]


def test_rows_that_are_held_out_teach_nothing():
    X, y, sizes = data()
    queries = lists_of(X, sizes, y)
    wrong = queries.with_labels(np.where(np.arange(len(y)) < 100, 3 - y, y))
    rows = SymmetricRows(PackedRows.of([queries]), TreeGrowth(), 1)
    held = np.arange(int(queries.start[np.searchsorted(queries.start, 100)]))
    scores = []
    for one in (queries, wrong):
        model = rows.model(Derivatives.of(losses.PairLogistic(), joined([one])).without(held), 0, None, 1)
        for _ in range(5):
            model.grow()
        scores.append(model.scores())
    np.testing.assert_array_equal(*scores)
    assert len(np.unique(scores[0][held])) > 1


def test_a_row_of_weight_two_counts_as_two_rows():
    """Sums are those of the row twice; the number of documents, which sets the unit of the penalty, is another."""
    rng = np.random.default_rng(0)
    X, g, h = np.round(rng.normal(size=(100, 3)), 1), rng.normal(size=100), rng.random(100) / 2
    g[7], h[7] = 0.1, 0.1
    g[0], h[0] = 4.0, 4.0  # sets the scales of both
    twice = np.append(np.arange(100), 7)
    doubled_g, doubled_h = g.copy(), h.copy()
    doubled_g[7], doubled_h[7] = 0.2, 0.2
    one, _ = grown(shared_of(X), doubled_g, doubled_h)
    other, _ = grown(shared_of(X[twice]), g[twice], h[twice])
    assert [split.feature for split in one.splits] == [split.feature for split in other.splits]
    np.testing.assert_allclose(one.value, other.value, rtol=0.02, atol=1e-4)


# ------------------------------------------------------------------------------------------------------- ensembles


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), depth=st.integers(1, 9), one_feature=st.booleans())
def test_an_ensemble_scores_as_the_rows_were_scored(seed, depth, one_feature):
    X, y, sizes = data(seed, queries=20, features=4, holes=0.2)
    X[:, 3] = np.round(np.abs(4 * X[:, 3]))
    model = model_of(X, y, sizes, categorical=[3], trees=4, depth=depth, one_feature=one_feature)
    ensemble = model.ensemble()
    np.testing.assert_array_equal(ensemble.predict(X), model.scores())
    assert ensemble.n_trees == 4
    assert ensemble.first(2).n_trees == 2
    if any(tree.splits for tree in model.trees):
        assert ensemble.importance().sum() > 0
        np.testing.assert_allclose(ensemble.contributions(X).sum(axis=1), model.scores(), atol=1e-12)
        roots = ensemble.start[:-1][np.diff(ensemble.start) > 0]
        assert (ensemble.node_count[roots] == len(X)).all()


def test_categories_that_were_not_seen_go_with_the_others():
    X = np.repeat([[2.0, 0.0], [5.0, 0.0], [9.0, 0.0]], 4, axis=0)
    y = (X[:, 0] == 5).astype(float)
    model = model_of(X, y, [12], categorical=[0], trees=1, depth=1, row_fraction=1.0)
    five, others = model.ensemble().predict(np.array([[5.0, 0], [2.0, 0]]))
    assert five > 0 > others
    unseen = np.array([[3.0, 0], [5.5, 0], [np.nan, 0], [1e6, 0], [-1.0, 0]])
    assert model.ensemble().predict(unseen).tolist() == [others, five, others, others, others]


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    depth=st.integers(1, 10),
    signs=st.tuples(*[st.sampled_from([1, -1, 0])] * 4),
    holes=st.sampled_from([0.0, 0.1, 0.6]),
)
def test_scores_never_turn_with_monotone_features(seed, depth, signs, holes):
    """Exactly, for signs of both kinds in one tree, on both sides of every threshold, whatever else is missing."""
    X, y, sizes = data(seed, queries=12, features=4, holes=holes)
    X[seed % len(X), seed % 4] = (-1) ** seed * 1e300
    model = model_of(X, y, sizes, trees=6, depth=depth, signs=signs, learning_rate=0.5)
    ensemble = model.ensemble()
    np.testing.assert_array_equal(ensemble.predict(X), model.scores())
    for feature, sign in enumerate(signs):
        cuts = np.unique(ensemble.threshold[ensemble.feature == feature])
        values = np.concatenate([[-1e300, -0.0], cuts, np.nextafter(cuts, np.inf, where=cuts < 1e308, out=cuts.copy())])
        values = np.sort(np.append(values, 1e300))
        rows = np.repeat(X, len(values), axis=0)
        rows[:, feature] = np.tile(values, len(X))
        assert (np.diff(ensemble.predict(rows).reshape(len(X), -1)) * sign >= 0).all()


def test_missing_values_count_as_0_where_training_had_none():
    """As in LightGBM; search engines, for which a feature without a value is 0, score such trees as they are."""
    X, y, sizes = data(holes=0.0)
    ensemble = model_of(X, y, sizes, trees=3).ensemble()
    holes, zeros = X.copy(), X.copy()
    holes[:, 1], zeros[:, 1] = np.nan, 0.0
    np.testing.assert_array_equal(ensemble.predict(holes), ensemble.predict(zeros))
    assert (ensemble.nan_left == (ensemble.threshold >= 0)).all()


def test_a_split_of_what_is_missing_from_all_numbers():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 1))
    X[:, 0] = np.where(rng.random(400) < 0.3, np.nan, X[:, 0])
    y = np.isnan(X[:, 0]).astype(float)
    model = model_of(X, y, [10] * 40, trees=1, depth=1)
    (split,) = model.trees[0].splits
    assert split.kind == NAN_ALONE
    low, hole, high = model.ensemble().predict(np.array([[-1e300], [np.nan], [1e300]]))
    assert low == high < hole


# ----------------------------------------------------------------------------------------------------- degenerate


@pytest.mark.parametrize(
    ("X", "y", "sizes"),
    [
        (np.ones((1, 2)), [1.0], [1]),
        (np.arange(6.0)[:, None], np.ones(6), [3, 3]),
        (np.ones((6, 3)), [0, 1, 2, 0, 1, 2.0], [3, 3]),
        (np.full((4, 1), np.nan), [0, 1, 0, 1.0], [2, 2]),
        (np.arange(3.0)[:, None], [2, 1, 0.0], [1, 1, 1]),
        (np.array([[0.0], [-0.0], [1e-36], [-1e-300]]), [0, 1, 0, 1.0], [2, 2]),
    ],
    ids=["one document", "equal labels", "constant features", "nothing but gaps", "lists of one", "zeros"],
)
def test_nothing_to_learn_from_leaves_scores_at_zero(X, y, sizes):
    queries = lists_of(X, sizes, np.asarray(y, float))
    rows = SymmetricRows(PackedRows.of([queries]), TreeGrowth(), 1)
    if rows.splittable:
        model = rows.model(Derivatives.of(losses.PairLogistic(), joined([queries])), 0, None, 1)
        model.grow()
        assert not model.scores().any()
        assert not model.ensemble().predict(X).any()


@pytest.mark.parametrize("depth", [1, 10])
@pytest.mark.parametrize("kind", ["huge", "tiny", "zeros", "gaps", "float32"])
def test_values_at_the_ends_of_their_type_fall_on_the_sides_that_were_learned(kind, depth):
    X, y, sizes = data(holes=0.2)
    rng = np.random.default_rng(1)
    most = float(np.finfo(np.float32).max)
    odd = {"huge": [-1.7e308, 1.6e308, 1.7e308], "tiny": [-2e-35, 2e-35], "zeros": [-0.0, 0.0], "gaps": [np.nan]}
    X = X.astype(np.float32 if kind == "float32" else np.float64)
    X[:, 1] = np.where(rng.random(len(X)) < 0.5, rng.choice(odd.get(kind, [-most, most]), len(X)), X[:, 1])
    X[:, 3] = np.nan
    model = model_of(X, y, sizes, depth=depth, trees=3)
    np.testing.assert_array_equal(model.ensemble().predict(X), model.scores())
    assert len(np.unique(model.scores())) > 1
    assert not model.ensemble().importance("split")[3]


def test_one_query_and_one_feature_are_learned_from():
    X = np.arange(20.0)[:, None]
    model = model_of(X, np.arange(20.0) // 5, [20], trees=30, row_fraction=1.0)
    groups = model.scores().reshape(4, 5)
    assert (groups[:-1].max(axis=1) < groups[1:].min(axis=1)).all()


def test_scores_that_trees_start_from_are_part_of_the_scores_and_not_of_the_trees():
    X, y, sizes = data()
    queries = lists_of(X, sizes, y)
    rows = SymmetricRows(PackedRows.of([queries]), replace(TreeGrowth(), row_fraction=1.0), 1)
    start = np.random.default_rng(0).normal(size=len(X))
    model = rows.model(Derivatives.of(losses.PairLogistic(), joined([queries])), 0, start, 1)
    model.grow()
    np.testing.assert_allclose(model.scores(), start + model.ensemble().predict(X), rtol=1e-14, atol=1e-15)
    assert math.isclose(model.trees[0].value.max(), model.ensemble().value.max())
