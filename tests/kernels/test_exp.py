"""The vectorisable exp, sigmoid and log1pexp against NumPy and against exact arithmetic."""

from decimal import Decimal, getcontext

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rankwise._kernels.exp import decay, exp, log1pexp, sigmoid
from rankwise._kernels.machine.jit import kernel

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


# among the worst of thirty million random numbers: .96, 2.40 and 3.59 units
@pytest.mark.parametrize(("function", "units"), [("exp", 2), ("sigmoid", 3), ("log1pexp", 4)])
@given(x=st.floats(-700, 700))
@example(x=12.139426713477668)
@example(x=-6.2367421660548015)
@example(x=-3.4599174100708865)
@example(x=-9.173828125)
def test_so_many_units_in_the_last_place(function, units, x):
    found, truth = Decimal(float(apply(function, x)[0])), exact(function, x)
    assert abs(found - truth) <= units * Decimal(float(np.spacing(float(truth))))


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


@kernel(fastmath={"reassoc", "contract"})
def _decays(y, out):
    total = 0.0
    for i in range(len(y)):
        out[i] = decay(y[i])
        total += out[i]
    return total


@given(st.floats(0, 1021))
def test_decay_is_a_power_of_two_inside_a_sum_that_may_be_reordered(y):
    out = np.empty(1)
    assert _decays(np.array([y]), out) == out[0]
    truth = Decimal(2) ** -Decimal(y)
    assert abs(Decimal(float(out[0])) - truth) <= 4 * Decimal(float(np.spacing(float(truth))))


def test_decay_is_exact_on_whole_numbers_and_ends_in_zero():
    y = np.array([0.0, 1.0, 52.0, 1021.0, 1021.5, 1e9, 1e300, np.inf])
    out = np.empty_like(y)
    _decays(y, out)
    np.testing.assert_array_equal(out, [1.0, 0.5, 2.0**-52, 2.0**-1021, 0.0, 0.0, 0.0, 0.0])
