"""The list sort equals NumPy's stable sort, whatever the keys."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from rankwise._kernels.ragged import largest
from rankwise._kernels.sorting import sort_carrying
from rankwise.measures.compute import order_lists


def sorted_with_places(key):
    key = np.array(key, dtype=float)
    size = len(key)
    place = np.arange(size)
    sort_carrying(key, place, np.empty(size), np.empty(size, np.int64), np.empty(size + 1, np.int64))
    return key, place


def check(key):
    key = np.asarray(key, dtype=float)
    found, place = sorted_with_places(key)
    expected = np.argsort(key, kind="stable")
    np.testing.assert_array_equal(place, expected)
    np.testing.assert_array_equal(found, key[expected])


@given(arrays.arrays(np.float64, st.integers(0, 200), elements=st.floats(allow_nan=False)))
def test_any_floats(key):
    check(key)


@given(arrays.arrays(np.float64, st.integers(0, 300), elements=st.sampled_from([-1.0, -0.0, 0.0, 0.5, 1e300, -np.inf])))
def test_ties_keep_their_order(key):
    check(key)


@pytest.mark.parametrize("size", [1, 2, 15, 16, 17, 100, 1_000, 20_000])
@pytest.mark.parametrize(
    "shape", ["normal", "clumps", "descending", "geometric", "denormal", "far apart", "one outlier"]
)
def test_keys_that_do_and_do_not_spread_out(size, shape):
    rng = np.random.default_rng(size)
    check(
        {
            "normal": lambda: rng.normal(size=size),
            "clumps": lambda: rng.integers(0, 3, size) + rng.normal(scale=1e-9, size=size),
            "descending": lambda: -np.arange(size),
            "geometric": lambda: 2.0 ** rng.integers(-1000, 1000, size),
            "denormal": lambda: rng.integers(0, 50, size) * 5e-324,
            "far apart": lambda: rng.choice([-1e308, 1e308, 0.0], size),
            "one outlier": lambda: np.append(rng.normal(size=size - 1), 1e200),
        }[shape]()
    )


@given(st.lists(st.lists(st.sampled_from([0.0, 1.0, 2.0, -np.inf]), max_size=12), min_size=1, max_size=6), st.randoms())
def test_lists_are_ordered_each_for_itself_with_their_tie_blocks(lists, random):
    key = np.array([value for part in lists for value in part])
    start = np.cumsum([0, *map(len, lists)])
    rows = np.array(random.sample(range(len(key)), len(key)), dtype=np.int64)
    for chosen, places in ((np.empty(0, np.int64), np.arange(len(key))), (rows, rows)):
        order, end = np.empty((2, len(key)), np.int64)
        finite = np.empty(len(lists), np.int64)
        order_lists(0, len(lists), start, chosen, key, order, end, finite)
        for q, (low, high) in enumerate(pairwise(start)):
            own = places[low:high]
            np.testing.assert_array_equal(order[low:high], own[np.argsort(-key[own], kind="stable")])
            ranked = key[order[low:high]]
            assert finite[q] == np.isfinite(ranked).sum()
            expected = [np.flatnonzero(ranked == value)[-1] + 1 for value in ranked]
            np.testing.assert_array_equal(end[low:high], expected)


@given(arrays.arrays(np.float64, st.integers(1, 80), elements=st.sampled_from([0.0, 1.0, 3.0, 7.5])), st.data())
def test_the_largest_values_in_decreasing_order(value, data):
    top = np.empty(data.draw(st.integers(1, len(value))))
    largest(value, top)
    np.testing.assert_array_equal(top, np.sort(value)[::-1][: len(top)])
