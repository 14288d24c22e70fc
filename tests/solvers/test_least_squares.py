"""Ridge regression from moments, and the scale of features: against scikit-learn on all rows at once."""

import numpy as np
import pytest
from sklearn.linear_model import Ridge
from sklearn.preprocessing import StandardScaler

from rankwise._errors import DataError, RankwiseError
from rankwise.data.queries import Queries
from rankwise.data.scaling import Scaler
from rankwise.solvers._row_blocks import lists_that_count, row_blocks
from rankwise.solvers.feature_scale import scale_factors
from rankwise.solvers.least_squares import Moments


def lists(seed=0, count=20, features=4, weighted=False, dtype=np.float64):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(0, 9, count)
    X = (3 * rng.normal(size=(sizes.sum(), features)) + 1).astype(dtype)
    y = rng.integers(0, 3, len(X)).astype(float)
    return Queries(X, y, np.cumsum([0, *sizes]), weight=rng.uniform(0, 2, count) if weighted else None)


def scattered(queries, seed=9):
    """The same lists with their rows anywhere."""
    order = np.random.default_rng(seed).permutation(queries.n_documents)
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    return Queries(queries.X[order], queries.y[order], queries.start, place, weight=queries.weight), order


def plain(queries):
    return np.ones(queries.n_features), np.zeros(queries.n_features)


@pytest.mark.parametrize("balanced", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("alpha", [1e-6, 1.0, 1e4])
def test_moments_give_the_weights_of_a_regression_on_all_rows(balanced, weighted, alpha, monkeypatch):
    monkeypatch.setattr("rankwise.data.checks.BLOCK_VALUES", 40)
    queries = lists(weighted=weighted)
    target = 2.0**queries.y - 1
    often = np.ones(len(target)) if queries.weight is None else queries.weight[queries.query_of_row]
    if balanced:
        relevant = queries.y > 0
        often = often * np.where(
            relevant, often.sum() / 2 / often[relevant].sum(), often.sum() / 2 / often[~relevant].sum()
        )
    expected = Ridge(alpha=alpha, solver="cholesky").fit(queries.X, target, sample_weight=often).coef_
    (found,) = Moments.of(queries, target, *plain(queries)).ridge([alpha], balanced)
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_moments_of_parts_add_up():
    queries = lists(1, weighted=True)
    target = queries.y
    whole = Moments.of(queries, target, *plain(queries))
    parts = [Moments.of(queries, target, *plain(queries), np.arange(first, 20, 3)) for first in range(3)]
    np.testing.assert_allclose((parts[0] + parts[1] + parts[2]).sums, whole.sums, rtol=1e-12)
    chosen = queries[np.arange(1, 20, 3)]
    np.testing.assert_allclose(parts[1].sums, Moments.of(chosen, chosen.y, *plain(queries)).sums, rtol=1e-12)


@pytest.mark.parametrize("block", [7, 40, 10_000])
def test_scattered_rows_and_lists_of_weight_zero_change_no_bit(block, monkeypatch):
    monkeypatch.setattr("rankwise.data.checks.BLOCK_VALUES", block)
    queries = lists(2)
    moments = Moments.of(queries, queries.y, *plain(queries))
    factor, centre = scale_factors(queries, "auto")
    other, order = scattered(queries)
    np.testing.assert_array_equal(Moments.of(other, queries.y[order], *plain(queries)).sums, moments.sums)
    np.testing.assert_array_equal(scale_factors(other, "auto"), (factor, centre))
    weight = np.ones(20)
    weight[[0, 7, 19]] = 0
    some, without = queries.with_weight(weight), queries[weight > 0]
    np.testing.assert_array_equal(
        Moments.of(some, some.y, *plain(some)).sums, Moments.of(without, without.y, *plain(some)).sums
    )
    np.testing.assert_array_equal(scale_factors(some, "auto"), scale_factors(without, "auto"))
    np.testing.assert_array_equal(lists_that_count(some), np.flatnonzero(weight))


def test_blocks_hold_every_row_of_the_lists_once_and_in_their_order(monkeypatch):
    monkeypatch.setattr("rankwise.data.checks.BLOCK_VALUES", 12)
    queries, _ = scattered(lists(3))
    np.testing.assert_array_equal(np.concatenate(list(row_blocks(queries))), queries.rows)
    chosen = np.array([2, 5, 6, 11])
    expected = np.concatenate([queries.rows_of(number) for number in chosen])
    np.testing.assert_array_equal(np.concatenate(list(row_blocks(queries, chosen))), expected)
    assert all(isinstance(rows, slice) for rows in row_blocks(lists(3))), "grouped rows are looked at where they stand"


def test_directions_without_variation_get_no_weight():
    rng = np.random.default_rng(4)
    base = rng.normal(size=(60, 2))
    X = np.column_stack([base, base @ [1, 1], np.full(60, 7.0), base[:, 0]])  # rank 2 of 5
    y = rng.integers(0, 3, 60).astype(float)
    queries = Queries.from_arrays(X, y, group=[20] * 3)
    (found,) = Moments.of(queries, y, *plain(queries)).ridge([0.0], False)
    centred = X - X.mean(axis=0)
    expected = np.linalg.lstsq(centred, y - y.mean(), rcond=1e-9)[0]  # of all solutions the shortest
    np.testing.assert_allclose(found, expected, atol=1e-10)
    assert abs(found[3]) < 1e-12


def test_one_class_of_documents_alone_is_regressed_on_without_balance():
    queries = lists(5)
    all_relevant = queries.with_labels(np.ones(queries.n_documents))
    for balanced in (False, True):
        (found,) = Moments.of(all_relevant, queries.y, *plain(queries)).ridge([1.0], balanced)
        np.testing.assert_allclose(found, Ridge(alpha=1.0).fit(queries.X, queries.y).coef_, rtol=1e-9)


# ------------------------------------------------------------------------------------------- the scale of features


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_factors_are_one_over_the_standard_deviation(dtype):
    queries = lists(6, dtype=dtype)
    factor, centre = scale_factors(queries, "auto")
    known = StandardScaler().fit(queries.X.astype(np.float64))
    np.testing.assert_allclose(factor, 1 / known.scale_, rtol=1e-12)
    np.testing.assert_allclose(centre, known.mean_, rtol=1e-10)


def test_features_within_one_scaled_ones_and_none_are_left_alone():
    queries = lists(7)
    small = Queries.from_arrays(queries.X / np.abs(queries.X).max(), queries.y, group=queries.sizes)
    for one, scale in (
        (small, "auto"),
        (queries, "none"),
        (Scaler().fit_transform(queries), "auto"),
        (queries[:0], "auto"),
    ):
        np.testing.assert_array_equal(scale_factors(one, scale), plain(one))
    nothing = Queries.from_arrays(np.zeros((4, 2)), [0, 1, 0, 1], group=[4])
    np.testing.assert_array_equal(scale_factors(nothing, "auto")[0], [1, 1])


def test_features_that_are_all_tiny_are_scaled_and_constants_get_a_factor_of_zero():
    tiny = Queries.from_arrays([[1e-300, 0], [3e-300, 0]], [0, 1], group=[2])
    np.testing.assert_allclose(scale_factors(tiny, "auto")[0], [1e300, 0])
    constant = Queries.from_arrays([[5.0, 1], [5.0, 3]], [0, 1], group=[2])
    np.testing.assert_array_equal(scale_factors(constant, "auto"), [[0, 1], [5, 2]])


def test_scales_that_no_number_holds_are_refused():
    with pytest.raises(RankwiseError, match=r"feature 1 varies by .* only, which cannot be scaled"):
        scale_factors(Queries.from_arrays([[9.0, 1e-320], [1.0, 0]], [0, 1], group=[2]), "auto")
    with pytest.raises(DataError, match="does not fit"):
        scale_factors(Queries.from_arrays([[1e308], [-1e308]], [0, 1], group=[2]), "auto")
    with pytest.raises(RankwiseError, match="scale is 'auto' or 'none': found 'log'"):
        scale_factors(lists(), "log")
