"""Ridge regression from moments or rows, and the scale of features: against scikit-learn on all rows at once."""

import numpy as np
import pytest
from sklearn.linear_model import Ridge
from sklearn.preprocessing import StandardScaler

from rankwise._errors import DataError, RankwiseError
from rankwise.data.queries import Queries
from rankwise.data.row_blocks import row_blocks, scale_factors
from rankwise.data.scaling import Scaler
from rankwise.rankers.linear.ridge import Moments, WeightedRows, class_shares, ridge_problem


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


over_both_problems = pytest.mark.parametrize("problem", [Moments, WeightedRows])
NO_LIMIT = np.inf  # on how often a document without relevance counts


@over_both_problems
@pytest.mark.parametrize("balanced", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("alpha", [1e-6, 1.0, 1e4])
def test_the_weights_are_those_of_a_regression_on_all_rows(problem, balanced, weighted, alpha, monkeypatch):
    monkeypatch.setattr("rankwise.rankers.linear.ridge._CHUNK", 1)
    queries = lists(weighted=weighted)
    target = 2.0**queries.y - 1
    weight = np.ones(len(target)) if queries.weight is None else queries.weight[queries.query_of_row]
    if balanced:
        relevant = queries.y > 0
        weight = weight * np.where(
            relevant,
            weight.sum() / 2 / weight[relevant].sum(),
            weight.sum() / 2 / weight[~relevant].sum(),
        )
    expected = Ridge(alpha=alpha, solver="cholesky").fit(queries.X, target, sample_weight=weight).coef_
    (found,) = problem.of(queries, target, *plain(queries)).ridge([alpha], NO_LIMIT if balanced else None)
    np.testing.assert_allclose(found, expected, rtol=1e-9)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("features", [1, 5, 31, 600])
@pytest.mark.parametrize("weighted", [False, True])
def test_moments_are_sums_of_products_of_rows(features, weighted, dtype):
    """Widths around and beyond the tiles of the kernel, and numbers of rows that are no multiples of eight."""
    queries = lists(8, count=50, features=features, weighted=weighted, dtype=dtype)
    rng = np.random.default_rng(1)
    factor, shift, target = rng.uniform(1, 2, features), rng.normal(size=features), rng.normal(size=len(queries.X))
    z = np.column_stack([np.ones(len(target)), (queries.X - shift) * factor, target])
    weight = np.ones(len(target)) if queries.weight is None else queries.weight[queries.query_of_row]
    found = Moments.of(queries, target, factor, shift).sums
    for part in (0, 1):
        own = (queries.y > 0) == part
        np.testing.assert_allclose(found[part], (z[own] * weight[own, None]).T @ z[own], rtol=1e-9, atol=1e-9)
        np.testing.assert_array_equal(found[part], found[part].T)


def test_threads_change_no_bit_of_moments_and_neither_does_what_waits_to_be_added(monkeypatch):
    monkeypatch.setattr("rankwise.rankers.linear.ridge._CHUNK", 1)  # four rows a column
    queries = lists(12, count=200)
    one, two, four = (Moments.of(queries, queries.y, *plain(queries), n_jobs=jobs).sums for jobs in (1, 2, 4))
    np.testing.assert_array_equal(two, one)
    np.testing.assert_array_equal(four, one)
    monkeypatch.setattr("rankwise.rankers.linear.ridge._WAITING", 1)
    np.testing.assert_array_equal(Moments.of(queries, queries.y, *plain(queries), n_jobs=2).sums, one)


# ------------------------------------------------------------------------------------------- few rows


@pytest.mark.parametrize(("documents", "features"), [(2, 3), (7, 8), (12, 40), (30, 31)])
@pytest.mark.parametrize("most", [None, 1.0, NO_LIMIT])
@pytest.mark.parametrize("weighted", [False, True])
def test_r10_rows_and_moments_give_the_same_weights(documents, features, most, weighted):
    rng = np.random.default_rng(documents)
    X, y = rng.normal(size=(documents, features)), rng.integers(0, 3, documents).astype(float)
    sizes = [documents // 2, documents - documents // 2]
    queries = Queries.from_arrays(X, y, group=sizes, weight=[0.5, 2.0] if weighted else None)
    assert ridge_problem(queries) is WeightedRows
    alphas = (0.0, 1e-3, 1.0, 100.0)
    rows, moments = (kind.of(queries, y, *plain(queries)).ridge(alphas, most) for kind in (WeightedRows, Moments))
    for one, other in zip(rows, moments, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-8, atol=1e-10)


def test_r10_the_shorter_side_is_factorised():
    assert ridge_problem(Queries.from_arrays(np.zeros((5, 5)), np.zeros(5), group=[5])) is Moments
    assert ridge_problem(Queries.from_arrays(np.zeros((5, 6)), np.zeros(5), group=[5])) is WeightedRows


def test_rows_of_parts_add_up_and_rows_that_stand_anywhere_change_no_bit():
    queries = lists(1, weighted=True)
    other, order = scattered(queries)
    whole, same = (
        WeightedRows.of(one, target, *plain(queries)).ridge([1.0], NO_LIMIT)[0]
        for one, target in ((queries, queries.y), (other, queries.y[order]))
    )
    np.testing.assert_array_equal(whole, same)
    parts = [WeightedRows.of(queries, queries.y, *plain(queries), np.arange(first, 20, 3)) for first in range(3)]
    (found,) = (parts[0] + parts[1] + parts[2]).ridge([1.0], NO_LIMIT)
    np.testing.assert_allclose(found, whole, rtol=1e-9)


# ------------------------------------------------------------------------------------------- balance


@pytest.mark.parametrize(
    ("counts", "most", "shares"),
    [
        ((30, 10), None, (1, 1)),
        ((30, 10), 1.0, (2 / 3, 2)),  # the many are weighed down, whatever the limit
        ((30, 10), 10.0, (2 / 3, 2)),
        ((10, 30), 10.0, (2, 2 / 3)),
        ((10, 30), 1.0, (1, 1)),
        ((5, 95), 10.0, (10, 50 / 95)),  # as far as the limit goes
        ((4, 96), 10.0, (10, 60 / 96)),
        ((0, 7), 10.0, (1, 1)),
        ((7, 0), 10.0, (1, 1)),
    ],
)
def test_d9_classes_have_the_same_weight_unless_one_document_would_count_too_often(counts, most, shares):
    found = class_shares(np.array(counts, dtype=float), most)
    assert found == pytest.approx(shares, rel=1e-15)
    assert np.dot(found, counts) == pytest.approx(sum(counts), rel=1e-15)


# ------------------------------------------------------------------------------------------- parts and orders of rows


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
    monkeypatch.setattr("rankwise.rankers.linear.ridge._CHUNK", block)
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
    np.testing.assert_array_equal(some.counted, np.flatnonzero(weight))


def test_blocks_hold_every_row_of_the_lists_once_and_in_their_order(monkeypatch):
    monkeypatch.setattr("rankwise.data.checks.BLOCK_VALUES", 12)
    queries, _ = scattered(lists(3))
    np.testing.assert_array_equal(np.concatenate(list(row_blocks(queries))), queries.rows)
    chosen = np.array([2, 5, 6, 11])
    expected = np.concatenate([queries.rows_of(number) for number in chosen])
    np.testing.assert_array_equal(np.concatenate(list(row_blocks(queries, chosen))), expected)
    assert all(isinstance(rows, slice) for rows in row_blocks(lists(3))), "grouped rows are looked at where they stand"


@over_both_problems
def test_directions_without_variation_get_no_weight(problem):
    rng = np.random.default_rng(4)
    base = rng.normal(size=(60, 2))
    X = np.column_stack([base, base @ [1, 1], np.full(60, 7.0), base[:, 0]])  # rank 2 of 5
    y = rng.integers(0, 3, 60).astype(float)
    queries = Queries.from_arrays(X, y, group=[20] * 3)
    (found,) = problem.of(queries, y, *plain(queries)).ridge([0.0], None)
    centred = X - X.mean(axis=0)
    expected = np.linalg.lstsq(centred, y - y.mean(), rcond=1e-9)[0]  # of all solutions the shortest
    np.testing.assert_allclose(found, expected, atol=1e-10)
    assert abs(found[3]) < 1e-12


@over_both_problems
def test_one_class_of_documents_alone_is_regressed_on_without_balance(problem):
    queries = lists(5)
    all_relevant = queries.with_labels(np.ones(queries.n_documents))
    for most in (None, NO_LIMIT):
        (found,) = problem.of(all_relevant, queries.y, *plain(queries)).ridge([1.0], most)
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
