"""Parity is counted over all pairs: against plain loops, with ties, and with an engine that is wrong."""

from itertools import combinations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import rankwise as rw
from rankwise.exports import parity as parity_module
from rankwise.exports.parity import compare_orders, parity_of
from rankwise.measures._base import parse

score = st.one_of(st.integers(-2, 2).map(float), st.sampled_from([1.0, 1.0 + 1e-9, 1.0 + 1e-6, -1e30]))


def by_loops(ranker, engine):
    counts, widest = np.zeros(4, dtype=int), 0.0
    for i, j in combinations(range(len(ranker)), 2):
        up, down = (i, j) if ranker[i] > ranker[j] else (j, i)
        if ranker[up] == ranker[down]:
            continue
        against = engine[up] < engine[down]
        beyond = against and np.float32(ranker[up]) != np.float32(ranker[down])
        counts += [1, against, beyond, engine[up] == engine[down]]
        widest = max(widest, against * (ranker[up] - ranker[down]))
    return counts.tolist(), widest


@given(st.lists(st.tuples(score, score), min_size=1, max_size=12), st.sampled_from([1, 7, 1 << 22]))
def test_pairs_are_counted_as_by_loops(pairs, block):
    ranker, engine = (np.array(column) for column in zip(*pairs, strict=True))
    before, parity_module._BLOCK = parity_module._BLOCK, block
    try:
        counts, widest = compare_orders(ranker, engine)
        assert (counts.tolist(), widest) == by_loops(ranker, engine)
    finally:
        parity_module._BLOCK = before


def test_an_engine_that_ranks_otherwise_is_found_out():
    lists = rw.Queries.from_arrays(np.zeros((5, 1)), [2, 1, 0, 1, 0], group=[3, 2])
    ranker = np.array([3.0, 2.0, 1.0, 5.0, 4.0])
    found = parity_of(lists, ranker, -ranker, parse("nDCG@10"), "upside down")
    assert (found.pairs, found.inverted, found.inverted_beyond_float32, found.tied) == (4, 4, 4, 0)
    assert not found.same_order
    assert found.ranker == 1
    assert found.engine < 0.8
    assert found.largest_change > 0.2
    assert found.largest_difference == 10
    assert found.widest_inversion == 2
    assert found.negative == 5
    tied = parity_of(lists, ranker, np.zeros(5), parse("nDCG@10"), "nothing")
    assert (tied.inverted, tied.tied) == (0, 4)
    assert tied.same_order
    close = parity_of(lists, np.array([1, 1 + 1e-12, 0, 0, 0]), np.array([2.0, 1, 0, 0, 0]), parse("AP"), "close")
    assert (close.inverted, close.inverted_beyond_float32, close.same_order) == (1, 0, True)


def test_a_constant_that_a_file_lacks_is_no_difference():
    lists = rw.Queries.from_arrays(np.zeros((2, 1)), None, group=[2])
    found = parity_of(lists, np.array([3.0, 2.0]), np.array([2.5, 1.5]), parse("nDCG"), "shifted", dropped=0.5)
    assert found.largest_difference == 0
    assert (found.measure, found.ranker) == (None, None)
    assert "largest difference" in repr(found)
    assert found.table().columns == ("what", "value")
