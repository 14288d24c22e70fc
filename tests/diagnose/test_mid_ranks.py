"""Mid-ranks are SciPy's."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import rankdata

from rankwise._diagnose.drift import mid_ranks


@given(st.integers(0, 30), st.integers(0, 4), st.integers(1, 12), st.integers(0, 2**32))
def test_mid_ranks_are_those_of_scipy(rows, columns, distinct, seed):
    values = np.random.default_rng(seed).integers(-distinct, distinct, (rows, columns)) / 3
    np.testing.assert_array_equal(mid_ranks(values), rankdata(values, axis=0))
    if columns:
        np.testing.assert_array_equal(mid_ranks(values[:, 0]), rankdata(values[:, 0]))
