"""Integer histograms of binned rows, against sums that are made one by one."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankwise._kernels import histograms
from rankwise._kernels.histograms import BINS, LANES, SHIFT, WIDTH
from rankwise._kernels.splits import order_leaves


def bins_of(words, count):
    """(rows, features) of the bins that stand in words."""
    blocks, groups, size = words.shape
    lanes = (words[..., None] >> (8 * np.arange(LANES, dtype=np.uint32))) & np.uint32(255)
    return lanes.transpose(0, 2, 1, 3).reshape(blocks * size, groups * LANES)[:count].astype(np.int64)


def words_of(bins, size):
    """The words of bins, (rows, features) with a multiple of four features."""
    count, features = bins.shape
    padded = np.zeros((-(-count // size) * size, features), np.uint32)
    padded[:count] = bins
    lanes = padded.reshape(-1, size, features // LANES, LANES) << (8 * np.arange(LANES, dtype=np.uint32))
    return np.ascontiguousarray(lanes.sum(axis=3, dtype=np.uint32).transpose(0, 2, 1))


def goes_right(values, shift, limit):
    return (values - shift) % 256 > limit


@pytest.mark.parametrize("size", [256, 1000, 4096])
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
def test_a_level_is_the_sums_of_the_rows_one_by_one(size, dtype):
    rng = np.random.default_rng(0)
    count, features, level = 9_000, 12, 3
    bins = rng.integers(0, BINS, (count, features))
    words = words_of(bins, size)
    np.testing.assert_array_equal(bins_of(words, count), bins)
    g, h = rng.integers(-(2**19) + 1, 2**19, count), rng.integers(0, 2**12, count)
    packed, kept = (g << SHIFT) + h, rng.integers(0, 2, count).astype(np.uint8)
    leaf = rng.integers(0, 1 << (level - 1), count).astype(dtype)
    before = leaf.copy()
    side = np.array([0, 1, 1, 0, 9, 9, 9, 9], np.uint8)
    groups, split = np.array([0, 2]), (1, 2, 1, 30)
    sums = [np.zeros((2, 4 * WIDTH), np.int64) for _ in range(3)]
    starts = range(0, count, size)
    steepness = np.array([np.abs(g[a : a + size]).sum() for a in starts])
    bend = np.array([h[a : a + size].sum() for a in starts])
    half = len(words) // 2
    for first, last in ((0, half), (half, len(words))):
        histograms.add_level(words, first, last, level, split, side, kept, leaf, packed, steepness, bend, groups, *sums)
    right = goes_right(bins[:, 6], 1, 30)
    np.testing.assert_array_equal(leaf, before | (right << (level - 1)))
    expected = np.zeros((2, 2, 4 * WIDTH), np.int64)
    for i in np.flatnonzero((kept == 1) & (right == side[before])):
        for a, group in enumerate(groups):
            for lane in range(LANES):
                at = int(before[i]) * WIDTH + lane * BINS + bins[i, group * LANES + lane]
                expected[:, a, at] += g[i], h[i]
    np.testing.assert_array_equal(sums[1], expected[0])
    np.testing.assert_array_equal(sums[2], expected[1])
    assert not sums[0].any()


@pytest.mark.parametrize("sign", [1, -1])
def test_no_running_sum_overflows_at_the_largest_derivatives(sign):
    """More rows of one bin than either running sum could hold."""
    size = histograms.LARGEST_BLOCK
    count = 5 * size  # 160,000 rows: sums of 2^36 and 2^29
    words = np.zeros((5, 1, size), np.uint32)
    g, h = np.full(count, sign * (2**19 - 1)), np.full(count, 2**12 - 1)
    totals = np.full(5, size * (2**19 - 1)), np.full(5, size * (2**12 - 1))
    sums = [np.zeros((1, WIDTH), np.int64) for _ in range(3)]
    arrays = np.zeros(1, np.uint8), np.ones(count, np.uint8), np.zeros(count, np.uint8), (g << SHIFT) + h
    histograms.add_level(words, 0, 5, 0, (0, 0, 0, 0), *arrays, *totals, np.array([0]), *sums)
    assert sums[1][0, 0] == g.sum()
    assert sums[2][0, 0] == h.sum()


def test_children_are_what_was_counted_and_the_rest():
    rng = np.random.default_rng(1)
    left, right = rng.integers(-(10**6), 10**6, (2, 2, 3, 4 * WIDTH))
    side = np.array([0, 1, 1, 0], np.uint8)
    counts_right = np.repeat(side, WIDTH) == 1
    whole = np.zeros((2, 3, 8 * WIDTH), np.int64)
    whole[:, :, : 4 * WIDTH] = left + right
    counted = np.where(counts_right, right, left)
    histograms.divide_leaves(*whole, *counted, 4, side)
    np.testing.assert_array_equal(whole, np.concatenate([left, right], axis=2))
    assert not counted.any()


def test_leaves_close_with_the_sums_of_all_rows():
    rng = np.random.default_rng(2)
    bins = rng.integers(0, BINS, (5_000, 4))
    words = words_of(bins, 512)
    g, h = rng.integers(-1000, 1000, 5_000), rng.integers(0, 2**12, 5_000)
    leaf, learned = rng.integers(0, 4, 5_000).astype(np.uint8), rng.integers(0, 2, 5_000).astype(np.uint8)
    expected = leaf | (goes_right(bins[:, 3], 0, 20) << 2)
    sums = np.zeros((3, 8), np.int64)
    histograms.close_leaves(words, 0, len(words), 3, (0, 3, 0, 20), learned, leaf, (g << SHIFT) + h, *sums)
    np.testing.assert_array_equal(leaf, expected)
    for values, found in zip((g, h, learned), sums, strict=True):
        np.testing.assert_array_equal(found, np.bincount(expected, values, 8).astype(np.int64))


def test_derivatives_are_rounded_to_integers_whose_sizes_are_summed_by_block():
    rng = np.random.default_rng(3)
    g, h = rng.normal(size=2_500), rng.random(2_500)
    packed, totals = np.empty(2_500, np.int64), np.zeros((2, 3), np.int64)
    histograms.pack(g, h, 2.0**17, 2.0**12 - 1, 1_000, 0, 3, packed, *totals)
    low = packed & ((1 << SHIFT) - 1)
    np.testing.assert_array_equal(low, np.rint(h * (2.0**12 - 1)))
    np.testing.assert_array_equal((packed - low) >> SHIFT, np.rint(g * 2.0**17))
    np.testing.assert_array_equal(totals[1], [low[:1000].sum(), low[1000:2000].sum(), low[2000:].sum()])
    assert totals[0, 2] == np.abs(np.rint(g[2000:] * 2.0**17)).sum()


@pytest.mark.parametrize("place", [0, 7])
def test_the_largest_derivatives_show_what_is_not_finite(place):
    g, h = np.array([1.0, -3.0, 2.0, 0, 0, 0, 0, 0]), np.array([0.0, 0.5, 0.25, 0, 0, 0, 0, 0])
    assert histograms.largest(g, h, 0, 8) == (3.0, 0.5, 2)
    for array in (g, h):
        for bad in (np.nan, np.inf):
            array[place] = bad
            assert not np.isfinite(histograms.largest(g, h, 0, 8)).all()
            array[place] = 0.0


def test_rows_are_sampled_by_their_number_alone():
    learned = np.ones(40_000, np.uint8)
    learned[::7] = 0
    whole, parts, other = (np.full(40_000, 9, np.uint8) for _ in range(3))
    limit = np.uint64(round(0.3 * 2**32))
    histograms.sample_rows(learned, np.uint64(5), limit, 0, 40_000, whole)
    for first, last in ((0, 13), (13, 29_000), (29_000, 40_000)):
        histograms.sample_rows(learned, np.uint64(5), limit, first, last, parts)
    np.testing.assert_array_equal(whole, parts)
    assert not whole[::7].any()
    assert whole[learned == 1].mean() == pytest.approx(0.3, abs=0.01)
    histograms.sample_rows(learned, np.uint64(6), limit, 0, 40_000, other)
    assert (whole & other)[learned == 1].mean() == pytest.approx(0.09, abs=0.01)
    histograms.sample_rows(learned, np.uint64(6), np.uint64(2**32), 0, 40_000, other)
    np.testing.assert_array_equal(other, learned)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from([-1, 0, 1]), min_size=1, max_size=5), st.integers(0, 2**32 - 1))
def test_ordered_leaves_keep_every_sign(signs, seed):
    rng = np.random.default_rng(seed)
    size = 1 << len(signs)
    value, weight = np.round(rng.normal(size=size), 1), rng.integers(0, 3, size) * rng.random(size)
    before = value.copy()
    order_leaves(value, weight, np.array(signs))
    broken = False
    for level, sign in enumerate(signs):
        left = np.flatnonzero(~np.arange(size) >> level & 1)
        assert ((value[left | 1 << level] - value[left]) * sign >= 0).all()
        broken |= bool(((before[left | 1 << level] - before[left]) * sign < 0).any())
    if not broken:
        np.testing.assert_array_equal(value, before)
    assert before.min() <= value.min() <= value.max() <= before.max() + 1e-15
