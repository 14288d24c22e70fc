"""The vectorisable exp, sigmoid and log1pexp against NumPy and against exact arithmetic."""

from decimal import Decimal, getcontext

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankwise._kernels.exp import exp, log1pexp, sigmoid
from rankwise._kernels.jit import kernel

getcontext().prec = 400  # 1 + e^-700 has 304 digits


@kernel
def _each(function, x, out):
    for i in range(len(x)):
        if function == 0:
            out[i] = exp(x[i])
        elif function == 1:
            out[i] = sigmoid(x[i])
        else:
            out[i] = log1pexp(x[i])


def apply(function, x):
    x = np.atleast_1d(np.asarray(x, dtype=float))
    out = np.empty_like(x)
    _each(("exp", "sigmoid", "log1pexp").index(function), x, out)
    return out


def exact(function, x):
    e = Decimal(x).exp()
    return {"exp": e, "sigmoid": e / (1 + e), "log1pexp": (1 + e).ln()}[function]


@pytest.mark.parametrize("function", ["exp", "sigmoid", "log1pexp"])
@given(x=st.floats(-700, 700))
def test_two_units_in_the_last_place(function, x):
    found, truth = Decimal(float(apply(function, x)[0])), exact(function, x)
    assert abs(found - truth) <= 2 * Decimal(float(np.spacing(float(truth))))


def test_the_ends_of_the_range():
    np.testing.assert_array_equal(apply("exp", [0.0, -0.0, -1e9, -746.0, 1e9, 710.0]), [1, 1, 0, 0, np.inf, np.inf])
    np.testing.assert_allclose(apply("exp", [-708.5, -720.0, -745.0]), np.exp([-708.5, -720.0, -745.0]), atol=5e-324)
    np.testing.assert_array_equal(apply("sigmoid", [-1e9, 0.0, 1e9]), [0, 0.5, 1])
    np.testing.assert_array_equal(apply("log1pexp", [-1e9, 1e9, 1e300]), [0, 1e9, 1e300])


@given(st.floats(-1e3, 1e3))
def test_sigmoids_of_opposite_numbers_add_up_to_one(x):
    assert apply("sigmoid", x)[0] + apply("sigmoid", -x)[0] == pytest.approx(1, abs=3e-16)


def test_a_loop_over_them_rises():
    x = np.linspace(-40, 40, 100_001)
    for function in ("exp", "sigmoid", "log1pexp"):
        assert (np.diff(apply(function, x)) >= 0).all()
