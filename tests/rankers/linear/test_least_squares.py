"""Ridge regression within queries from moments or rows, and the scale of features: against plain least squares."""

import numpy as np
import pytest
from sklearn.preprocessing import StandardScaler

from rankwise.errors import DataError, RankwiseError
from rankwise.queries.chunks import row_blocks, scale_factors
from rankwise.queries.queries import Queries
from rankwise.queries.scaling import Scaler
from rankwise.rankers.linear import least_squares
from rankwise.rankers.linear.least_squares import (
    Moments,
    Regression,
    WeightedRows,
    joined,
    within_query_scale,
)
from rankwise.rankers.linear.ridge import (
    RegressionTerms,
    balance_of,
    class_shares,
    problem_kind,
    problems_of_parts,
    row_weight,
)


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


def regression(queries, *targets, weight=None, intercept="query"):
    shift = None if intercept == "query" else np.zeros(queries.n_features)
    given = np.array(targets or [queries.y])
    return Regression(queries, given, row_weight(queries) if weight is None else weight, shift)


def centered(queries, values, weight):
    """Values minus the weighted mean of their query, query by query."""
    found = np.array(values, dtype=np.float64)
    for number in range(len(queries)):
        rows = queries.rows_of(number)
        if weight[rows].sum() > 0:
            found[rows] -= np.average(found[rows], axis=0, weights=weight[rows])
    return found


def by_hand(queries, target, alpha, weight, intercept="query"):
    """Least squares on centered rows, sqrt(alpha) I below them."""
    if intercept == "global":
        one = Queries.from_arrays(queries.X, queries.y, group=[queries.n_documents])
        return by_hand(one, target, alpha, weight)
    X, g = centered(queries, queries.X, weight), centered(queries, target, weight)
    root = np.sqrt(weight)[:, None]
    above = np.vstack([root * X, np.sqrt(alpha) * np.eye(queries.n_features)])
    return np.linalg.lstsq(above, np.append(root[:, 0] * g, np.zeros(queries.n_features)), rcond=None)[0]


def of_rows(queries, given):
    return given if len(given) else np.ones(queries.n_documents)


over_both_problems = pytest.mark.parametrize("problem", [Moments, WeightedRows])
over_both_intercepts = pytest.mark.parametrize("intercept", ["query", "global"])


@over_both_problems
@over_both_intercepts
@pytest.mark.parametrize("balanced", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("alpha", [1e-6, 1.0, 1e4])
def test_the_weights_are_those_of_least_squares_on_centered_rows(problem, intercept, balanced, weighted, alpha):
    queries = lists(weighted=weighted)
    target = 2.0**queries.y - 1
    weight = of_rows(queries, row_weight(queries, balance_of([queries]) if balanced else (1.0, 1.0)))
    found = problem.of(regression(queries, target, weight=weight, intercept=intercept)).ridge(np.ones(4))
    expected = by_hand(queries, target, alpha, weight, intercept)
    np.testing.assert_allclose(found.weights([alpha])[0], expected, rtol=1e-8)


@over_both_intercepts
def test_with_one_intercept_per_query_it_is_a_regression_with_one_column_per_query(intercept):
    queries = lists(3)
    weight = np.random.default_rng(4).uniform(0.1, 2, queries.n_documents)
    found = Moments.of(regression(queries, queries.y, weight=weight, intercept=intercept)).ridge(np.ones(4))
    ones = np.ones((queries.n_documents, 1)) if intercept == "global" else np.eye(len(queries))[queries.query_of_row]
    root = np.sqrt(weight)[:, None]
    expected = np.linalg.lstsq(root * np.hstack([queries.X, ones]), root[:, 0] * queries.y, rcond=None)[0][:4]
    np.testing.assert_allclose(found.weights([0.0])[0], expected, rtol=1e-8)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("features", [1, 5, 31, 600])
@pytest.mark.parametrize("weighted", [False, True])
def test_moments_are_sums_of_products_of_centered_rows(features, weighted, dtype):
    queries = lists(8, count=50, features=features, weighted=weighted, dtype=dtype)
    weight = of_rows(queries, row_weight(queries))
    rng = np.random.default_rng(1)
    targets = rng.normal(size=(3, queries.n_documents))
    z = centered(queries, np.column_stack([queries.X.astype(np.float64), *targets]), weight)
    found = Moments.of(regression(queries, *targets))
    np.testing.assert_allclose(found.sums[1:, 1:], (z * weight[:, None]).T @ z, rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(found.sums, found.sums.T)
    assert not found.sums[0].any()
    assert found.total == pytest.approx(weight.sum(), rel=1e-12)


def test_several_targets_are_solved_together():
    queries = lists(9)
    targets = np.random.default_rng(0).normal(size=(3, queries.n_documents))
    together = Moments.of(regression(queries, *targets)).ridge(np.ones(4))
    for number, target in enumerate(targets):
        alone = Moments.of(regression(queries, target)).ridge(np.ones(4))
        np.testing.assert_allclose(together.weights([0.5], number), alone.weights([0.5]), rtol=1e-10)


@over_both_intercepts
@pytest.mark.parametrize("longest", [3, 5, 10_000])
def test_queries_longer_than_a_chunk_have_the_same_moments(longest, intercept, monkeypatch):
    queries = lists(10, weighted=True)
    whole = Moments.of(regression(queries, intercept=intercept)).sums
    monkeypatch.setattr(least_squares, "_FEWEST", 1)
    monkeypatch.setattr(least_squares, "_MOST", longest)
    np.testing.assert_allclose(Moments.of(regression(queries, intercept=intercept)).sums, whole, rtol=1e-9, atol=1e-9)


@over_both_intercepts
def test_threads_change_no_bit_of_moments_and_neither_does_what_waits_to_be_added(intercept, monkeypatch):
    monkeypatch.setattr(least_squares, "_FEWEST", 4)
    monkeypatch.setattr(least_squares, "_MOST", 16)
    about = regression(lists(12, count=200), intercept=intercept)
    one, two, four = (Moments.of(about, n_jobs=jobs).sums for jobs in (1, 2, 4))
    np.testing.assert_array_equal(two, one)
    np.testing.assert_array_equal(four, one)
    monkeypatch.setattr(least_squares, "_WAITING", 1)
    np.testing.assert_array_equal(Moments.of(about, n_jobs=2).sums, one)


# ------------------------------------------------------------------------------------------- few rows


@pytest.mark.parametrize(("documents", "features"), [(2, 3), (7, 8), (12, 40), (30, 31)])
@pytest.mark.parametrize("weighted", [False, True])
@over_both_intercepts
def test_r10_rows_and_moments_give_the_same_weights(documents, features, weighted, intercept):
    rng = np.random.default_rng(documents)
    X, y = rng.normal(size=(documents, features)), rng.integers(0, 3, documents).astype(float)
    sizes = [documents // 2, documents - documents // 2]
    queries = Queries.from_arrays(X, y, group=sizes, weight=[0.5, 2.0] if weighted else None)
    assert problem_kind([queries]) is WeightedRows
    about, scale = regression(queries, y, intercept=intercept), rng.uniform(1, 2, features)
    rows, moments = (kind.of(about) for kind in (WeightedRows, Moments))
    alphas = (0.0, 1e-3, 1.0, 100.0)
    np.testing.assert_allclose(
        rows.ridge(scale).weights(alphas), moments.ridge(scale).weights(alphas), rtol=1e-8, atol=1e-10
    )
    np.testing.assert_allclose(rows.squares(), moments.squares(), rtol=1e-10)
    assert rows.ridge(scale).unit == pytest.approx(moments.ridge(scale).unit, rel=1e-10)
    coef = rng.normal(size=features)
    assert rows.deviation(coef) == pytest.approx(moments.deviation(coef), rel=1e-10)


def test_r10_the_shorter_side_is_factorized():
    assert problem_kind([Queries.from_arrays(np.zeros((5, 5)), np.zeros(5), group=[5])]) is Moments
    assert problem_kind([Queries.from_arrays(np.zeros((5, 6)), np.zeros(5), group=[5])]) is WeightedRows


# ------------------------------------------------------------------------------------------- balance


@pytest.mark.parametrize(
    ("counts", "most", "shares"),
    [
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


def test_sets_are_balanced_together():
    one, two = lists(1, weighted=True), lists(2)
    weights = np.concatenate([row_weight(part, balance_of([one, two])) for part in (one, two)])
    relevant = np.concatenate([one.y, two.y]) > 0
    given = np.concatenate([of_rows(queries, row_weight(queries)) for queries in (one, two)])
    assert weights[relevant].sum() == pytest.approx(given.sum() / 2)
    assert weights[~relevant].sum() == pytest.approx(given.sum() / 2)


# ------------------------------------------------------------------------------------------- parts and orders of rows


@over_both_problems
@over_both_intercepts
def test_parts_add_up(problem, intercept):
    queries = lists(1, weighted=True)
    about = regression(queries, intercept=intercept)
    whole = problem.of(about)
    parts = [problem.of(about, np.arange(first, 20, 3)) for first in range(3)]
    found = joined(parts)
    np.testing.assert_allclose(found.ridge(np.ones(4)).weights([1.0]), whole.ridge(np.ones(4)).weights([1.0]))
    assert found.total == pytest.approx(whole.total)
    chosen = queries[np.arange(1, 20, 3)]
    alone = problem.of(regression(chosen, intercept=intercept))
    np.testing.assert_allclose(parts[1].squares(), alone.squares(), rtol=1e-12)


@pytest.mark.parametrize("block", [7, 40, 10_000])
@over_both_intercepts
def test_scattered_rows_and_lists_of_weight_zero_change_no_bit(block, intercept, monkeypatch):
    monkeypatch.setattr("rankwise.queries.checks.BLOCK_VALUES", block)
    monkeypatch.setattr(least_squares, "_FEWEST", 1)
    monkeypatch.setattr(least_squares, "_MOST", block)
    queries = lists(2)
    moments = Moments.of(regression(queries, intercept=intercept))
    factor, center = scale_factors(queries, "auto")
    other, order = scattered(queries)
    assert (other.y == queries.y[order]).all()
    np.testing.assert_array_equal(Moments.of(regression(other, intercept=intercept)).sums, moments.sums)
    np.testing.assert_array_equal(scale_factors(other, "auto"), (factor, center))
    weight = np.ones(20)
    weight[[0, 7, 19]] = 0
    some, without = queries.with_weight(weight), queries[weight > 0]
    one, two = (Moments.of(regression(each, intercept=intercept)) for each in (some, without))
    np.testing.assert_array_equal(one.sums, two.sums)
    assert one.total == two.total
    np.testing.assert_array_equal(scale_factors(some, "auto"), scale_factors(without, "auto"))
    np.testing.assert_array_equal(some.counted, np.flatnonzero(weight))


def test_blocks_hold_every_row_of_the_lists_once_and_in_their_order(monkeypatch):
    monkeypatch.setattr("rankwise.queries.checks.BLOCK_VALUES", 12)
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
    found = problem.of(regression(queries)).ridge(np.ones(5)).weights([0.0])[0]
    ones = np.ones(60)
    # of all solutions the shortest
    expected = np.linalg.lstsq(centered(queries, X, ones), centered(queries, y, ones), rcond=1e-9)[0]
    np.testing.assert_allclose(found, expected, atol=1e-10)
    assert abs(found[3]) < 1e-12


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_scale_is_the_pooled_deviation_within_queries_and_zero_for_constants_of_queries(dtype):
    queries = lists(6, dtype=dtype, weighted=True)
    per_query = np.random.default_rng(0).normal(size=len(queries))[queries.query_of_row] * 1e6 + 0.1
    X = np.column_stack([queries.X, per_query]).astype(dtype)
    wider = Queries(X, queries.y, queries.start, weight=queries.weight)
    weight = of_rows(wider, row_weight(wider))
    found = within_query_scale(Moments.of(regression(wider)))
    own = centered(wider, X.astype(np.float64), weight)
    expected = 1 / np.sqrt(np.average(own**2, axis=0, weights=weight)[:4])
    np.testing.assert_allclose(found[:4], expected, rtol=1e-9)
    assert found[4] == 0


@pytest.mark.parametrize("size", [1e-200, 1e-120, 1e150, 1e200, 1e300])
def test_features_of_any_size_have_finite_moments(size):
    queries = lists(7)
    stretched = Queries(queries.X * [1, size, 1, 1], queries.y, queries.start)
    parts = [[np.arange(0, 10)], [np.arange(10, 20)]]
    whole = joined(problems_of_parts([queries], RegressionTerms(Queries.labels), parts, None))
    expected = whole.ridge(within_query_scale(whole)).weights([1.0])[0]
    large = joined(problems_of_parts([stretched], RegressionTerms(Queries.labels), parts, None))
    found = large.ridge(within_query_scale(large)).weights([1.0])[0]
    np.testing.assert_allclose(found * [1, size, 1, 1], expected, rtol=1e-9)
    assert large.deviation(found) == pytest.approx(whole.deviation(expected), rel=1e-9)


# ------------------------------------------------------------------------------------------- the scale of features


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_factors_are_one_over_the_standard_deviation(dtype):
    queries = lists(6, dtype=dtype)
    factor, center = scale_factors(queries, "auto")
    known = StandardScaler().fit(queries.X.astype(np.float64))
    np.testing.assert_allclose(factor, 1 / known.scale_, rtol=1e-12)
    np.testing.assert_allclose(center, known.mean_, rtol=1e-10)


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
    with pytest.raises(RankwiseError, match="scale must be 'auto' or 'none', got 'log'"):
        scale_factors(lists(), "log")
