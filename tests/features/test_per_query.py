"""Values relative to the query, against plain NumPy and SciPy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import rankdata

import rankwise as rw
from rankwise.errors import DataError, RankwiseError
from rankwise.features.per_query import within_queries
from tests.features.shop import ROLES, shop

VALUES = st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=12)


def plain(x, how):
    """The definitions."""
    x = np.asarray(x)
    if how == "zscore":
        x = x / (np.abs(x).max() or 1.0)  # squares of tiny numbers would vanish
        return (x - x.mean()) / x.std() if x.max() > x.min() and x.std() > 0 else np.zeros(len(x))
    if how == "share":
        return x / np.abs(x).max() if np.abs(x).max() > 0 else np.zeros(len(x))
    return (rankdata(x) - 1) / (len(x) - 1) if len(x) > 1 else np.array([0.5])


@pytest.mark.parametrize("how", ["zscore", "rank", "share"])
@given(st.lists(VALUES, min_size=1, max_size=4), st.randoms())
def test_transforms_within_queries_are_their_definitions(how, lists, random):
    sizes = [len(x) for x in lists]
    start = np.cumsum([0, *sizes])
    n = sum(sizes)
    rows = np.array(random.sample(range(n), n), dtype=np.int64)
    values, expected = np.empty(n), np.empty(n)
    for first, x in zip(start, lists, strict=False):
        values[rows[first : first + len(x)]] = x
        expected[rows[first : first + len(x)]] = plain(x, how)
    found = within_queries(values, start, rows, how)
    assert found == pytest.approx(expected, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("how", ["zscore", "rank", "share"])
def test_the_order_of_rows_changes_no_bit_and_gaps_stay(how):
    rng = np.random.default_rng(3)
    values = rng.normal(size=200)
    values[::7] = np.nan
    order = rng.permutation(200)
    start = np.array([0, 200])
    found = within_queries(values, start, None, how)
    assert np.array_equal(within_queries(values[order], start, None, how), found[order], equal_nan=True)
    assert np.isnan(found[::7]).all()
    assert np.isfinite(np.delete(found, np.s_[::7])).all()


@pytest.mark.parametrize("scale", [1e-300, 1e300])
def test_huge_and_tiny_values_have_a_zscore(scale):
    values = np.array([1.0, 2.0, 4.0])
    start = np.array([0, 3])
    found = within_queries(values * scale, start, None, "zscore")
    assert found == pytest.approx(within_queries(values, start, None, "zscore"), rel=1e-12)


def test_a_builder_makes_them_of_its_numbers():
    frame = shop()
    ways = {"size": "rank", "views": ["value", "zscore"], "rating": "share"}
    builder = rw.FeatureBuilder(per_query=ways, heavy_tails="keep").fit(frame, **ROLES)
    names = builder.feature_names_out_
    assert builder.needs_queries
    assert {"size_rank", "views", "views_zscore", "rating_share", "rating_missing"} <= set(names)
    assert "size" not in names
    X = builder.transform(frame).X
    filled = frame["rating"].fillna(frame["rating"].median())
    for name, column, how in (
        ("size_rank", frame["size"], "rank"),
        ("views_zscore", frame["views"], "zscore"),
        ("rating_share", filled, "share"),
    ):
        expected = np.concatenate([plain(x.to_numpy(float), how) for _, x in column.groupby(frame["search"])])
        assert X[:, names.index(name)] == pytest.approx(expected, rel=1e-9, abs=1e-12)


def test_only_numbers_have_a_place_in_their_query():
    with pytest.raises(DataError, match="'brand', which is a category"):
        rw.FeatureBuilder(per_query={"brand": "rank"}).fit(shop(), **ROLES)
    with pytest.raises(DataError, match="'title', of which no number is made"):
        rw.FeatureBuilder(per_query={"title": "rank"}).fit(shop(), **ROLES)
    with pytest.raises(RankwiseError, match="per_query\\['size'\\]"):
        rw.FeatureBuilder(per_query={"size": "mean"}).fit(shop(), **ROLES)
