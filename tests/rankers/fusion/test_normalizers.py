"""Every engine's rules for normalizing scores within a query, against plain definitions of one list."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankwise.errors import DataError, RankwiseError
from rankwise.rankers.fusion.normalizers import OPENSEARCH_FLOOR, RULES, Fusion

scores = st.one_of(st.none(), st.floats(0, 100, width=32), st.sampled_from([0.0, 1.0, 2.5]))
columns = st.lists(scores, min_size=1, max_size=8)
lists_of_columns = st.lists(columns, min_size=1, max_size=5)
RULED = [(engine, normalizer) for engine, own in RULES.items() for normalizer in own]


def plain(normalizer, engine, column, k=60):
    """The normalized scores of one column of one query; None stands for a document that was not returned."""
    if engine == "vespa":
        column = [0.0 if x is None else x for x in column]
    here = [x for x in column if x is not None]
    if not here or normalizer == "none":
        if normalizer == "z_score" and engine is None:
            return [0.0] * len(column)
        return column
    low, high = min(here), max(here)

    def min_max(x):
        if engine == "solr":
            return x / high if high else 0.0
        flat = high - low < np.float32(1e-6) if engine == "elasticsearch" else high == low
        if flat:
            return 0.5 if engine == "vespa" else 1.0
        found = (x - low) / (high - low)
        return OPENSEARCH_FLOOR if engine == "opensearch" and found == 0 else found

    norm = math.sqrt(math.fsum(x * x for x in here))

    def l2(x):
        small = norm < np.float32(1e-6) if engine == "elasticsearch" else norm == 0
        return x if small else x / norm

    mean = math.fsum(here) / len(here)
    sd = math.sqrt(math.fsum((x - mean) ** 2 for x in here) / max(len(here) - 1, 1))

    def z_score(x):
        if engine == "opensearch":
            if np.float32(x) == np.float32(mean):
                return high
            return max(OPENSEARCH_FLOOR, (x - mean) / sd) if (x - mean) / sd > 0 else OPENSEARCH_FLOOR
        return 0.0 if low == high else (x - mean) / sd

    def rrf(x, place):
        before = sum(1 for other, y in enumerate(column) if y is not None and (y > x or (y == x and other < place)))
        return 1 / (k + before + 1)

    if normalizer == "rrf":
        return [None if x is None else rrf(x, place) for place, x in enumerate(column)]
    found = [None if x is None else {"min_max": min_max, "l2": l2, "z_score": z_score}[normalizer](x) for x in column]
    if normalizer == "z_score" and engine is None:
        last = min(x for x in found if x is not None)
        return [last if x is None else x for x in found]
    return found


def as_array(values):
    return np.array([np.nan if x is None else x for x in values], dtype=np.float64)


@pytest.mark.parametrize(("engine", "normalizer"), RULED)
@settings(max_examples=60, deadline=None)
@given(lists=lists_of_columns)
def test_columns_are_normalized_within_their_query_by_the_rules_of_the_engine(engine, normalizer, lists):
    X = np.concatenate([as_array(column) for column in lists])[:, None]
    start = np.concatenate([[0], np.cumsum([len(column) for column in lists])])
    expected = np.concatenate([as_array(plain(normalizer, engine, column)) for column in lists])
    found = Fusion(normalizer, engine).normalize(X, start)[:, 0]
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


def test_a_column_does_not_change_another():
    rng = np.random.default_rng(0)
    X, start = rng.random((9, 3)), np.array([0, 4, 4, 9])
    together = Fusion("l2").normalize(X, start)
    for column in range(3):
        np.testing.assert_array_equal(Fusion("l2").normalize(X[:, [column]], start)[:, 0], together[:, column])


@pytest.mark.parametrize("scale", [1e-200, 1e200])
@pytest.mark.parametrize("normalizer", ["min_max", "l2", "z_score"])
def test_no_size_of_scores_leaves_float64(normalizer, scale):
    X, start = np.random.default_rng(1).random((6, 2)), np.array([0, 6])
    usual, other = (Fusion(normalizer).normalize(X * factor, start) for factor in (1.0, scale))
    np.testing.assert_allclose(other, usual, rtol=1e-9)


@pytest.mark.parametrize("engine", ["opensearch", "elasticsearch", "solr"])
def test_engines_on_lucene_have_no_scores_below_zero(engine):
    with pytest.raises(DataError, match=f"scores of {engine} must be non-negative, got -1 in column 1"):
        Fusion("min_max", engine).normalize(np.array([[1.0, -1.0]]), np.array([0, 1]))


@pytest.mark.parametrize(
    ("fusion", "found"),
    [
        (
            Fusion("z_score", "elasticsearch"),
            "normalizer must be one of 'min_max', 'l2', 'rrf', 'none' for engine='elasticsearch', got 'z_score'",
        ),
        (Fusion("none", "opensearch"), "for engine='opensearch', got 'none'"),
        (Fusion("l2", "vespa"), "for engine='vespa', got 'l2'"),
        (Fusion("rrf", combination="geometric_mean"), "requires normalizer='min_max' or 'l2'"),
        (Fusion("min_max", "vespa", "harmonic_mean"), "engine='opensearch' or None"),
    ],
)
def test_what_an_engine_does_not_have_is_refused(fusion, found):
    with pytest.raises(RankwiseError, match=found):
        fusion.check()


def test_means_other_than_the_arithmetic_one_leave_out_what_was_not_returned():
    parts, weights = np.array([[0.5, 0.25], [np.nan, 0.25], [np.nan, np.nan], [0.5, 0.0]]), np.array([0.25, 0.75])
    geometric = Fusion(combination="geometric_mean").combine(parts, weights)
    np.testing.assert_allclose(geometric, [0.5**0.25 * 0.25**0.75, 0.25, 0.0, 0.5])
    harmonic = Fusion(combination="harmonic_mean").combine(parts, weights)
    np.testing.assert_allclose(harmonic, [1 / (0.25 / 0.5 + 0.75 / 0.25), 0.25, 0.0, 0.5])
    np.testing.assert_allclose(Fusion().combine(parts, weights), [0.3125, 0.1875, 0.0, 0.125])


def test_sums_of_the_same_ranks_are_tied():
    rng = np.random.default_rng(2)
    ranks = np.array([rng.permutation([3.0, 17.0, 29.0, 41.0, 88.0]) for _ in range(30)])
    found = Fusion("rrf").combine(1 / (60 + ranks), np.full(5, 0.2))
    assert len(set(found.tolist())) == 1
