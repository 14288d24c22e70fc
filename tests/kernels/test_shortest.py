"""The shortest text of a number is Python's, letter for letter."""

import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rankwise._kernels.text.written import LONGEST, put_shortest
from rankwise.cli.rank_output import score_texts


def written(values):
    text, length = score_texts(np.array(values, dtype=np.float64))
    return [bytes(row[:size]).decode() for row, size in zip(text, length, strict=True)]


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=30))
@example([0.0, -0.0, 0.1 + 0.2, 1e15, 1e16, 1e-4, 9.999e-5, 123456789012345.6, 5e-324, 1.7976931348623157e308])
def test_any_number_is_written_as_python_does(values):
    assert written(values) == [repr(value) for value in values]


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e4, 1e12])
def test_numbers_of_all_digits_and_of_few_are_written_as_python_does(scale):
    random = np.random.default_rng(0)
    values = np.concatenate([scale * random.normal(size=4000), (scale * random.normal(size=1000)).round(3)])
    neighbors = np.nextafter(values, np.inf)
    assert written([*values, *neighbors]) == [repr(value) for value in [*values.tolist(), *neighbors.tolist()]]


def test_nearly_all_scores_of_usual_size_need_no_help_from_python():
    buffer = np.empty(LONGEST, np.uint8)
    values = np.random.default_rng(1).normal(size=5000)
    assert sum(put_shortest(buffer, 0, value) < 0 for value in values) < 10
    assert all(put_shortest(buffer, 0, value) < 0 for value in (math.nan, math.inf, -math.inf, 1e300, 1e-300))
