"""A decimal text becomes the same float64 that Python's ``float`` makes of it."""

import math
import struct
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rankwise._kernels.text.decimal import (
    FINITE,
    FIVES,
    HIGHEST,
    LOWEST,
    MALFORMED,
    NOT_FINITE,
    UNDECIDED,
    read_decimal,
)


def read(text: str, after: bytes = b"") -> tuple[float, int, int]:
    data = np.frombuffer(text.encode() + after, dtype=np.uint8)
    return read_decimal(data, 0, len(text.encode()))


def bits(value: float) -> bytes:
    return struct.pack("d", value)


def assert_as_python(text: str) -> None:
    """Same bits, or left to Python; what Python calls infinite is not finite."""
    value, end, kind = read(text)
    assert end == len(text)
    if kind == NOT_FINITE:
        assert math.isinf(float(text))
    elif kind != UNDECIDED:
        assert kind == FINITE
        assert bits(value) == bits(float(text))


finite = st.floats(allow_nan=False, allow_infinity=False)
digits = st.text("0123456789", max_size=40)
exponents = st.integers(-400, 400)


@given(finite)
def test_the_shortest_text_of_any_float_is_decided_and_gives_it_back(number):
    value, _, kind = read(repr(number))
    assert kind == FINITE
    assert bits(value) == bits(number)


@given(finite, st.integers(0, 40))
def test_any_number_of_digits(number, precision):
    assert_as_python(f"{number:.{precision}e}")


@given(st.floats(-1e9, 1e9), st.integers(0, 12))
def test_any_number_of_decimals(number, precision):
    assert_as_python(f"{number:.{precision}f}")


@given(st.sampled_from(["", "+", "-"]), digits, digits, exponents, st.sampled_from(["e", "E"]))
def test_digits_point_digits_exponent(sign, before, after, exponent, letter):
    text = f"{sign}{before}.{after}{letter}{exponent:+d}"
    if before + after:
        assert_as_python(text)
    else:
        assert read(text)[2] == MALFORMED


@given(st.floats(0, 1e308, exclude_max=True), st.integers(1, 9), st.sampled_from(["", "0", "1", "000000000000001"]))
@example(0.0, 1, "")
@example(2.0**53, 1, "")
def test_half_way_between_two_floats(number, cut, more):
    with localcontext() as context:
        context.prec = 1_100
        middle = (Decimal(number) + Decimal(math.nextafter(number, math.inf))) / 2
        text = f"{middle:f}"
    if "." in text:
        text += more
    assert_as_python(text)
    assert_as_python(text[:-cut] or "0")


@pytest.mark.parametrize(
    "text",
    [
        "0", "-0", "0.0", "-0.000", "1e400", "-1e400", "1e-400", "4.9e-324", "2.4703282292062327e-324",
        "2.4703282292062328e-324", "2.2250738585072011e-308", "2.2250738585072014e-308", "1.7976931348623157e308",
        "1.7976931348623158e308", "1.7976931348623159e308", "9007199254740992", "9007199254740993", "9007199254740994",
        "9007199254740993.0000000000000000", "1" + "0" * 400, "0." + "0" * 400 + "1", "1" * 400, "." + "9" * 400,
        "1" + "0" * 400 + "e-400", "0." + "0" * 400 + "1e400", "1e99999999999999999999999",
        "1e-99999999999999999999999", "0e99999999999999999999999",
        "18446744073709551615", "18446744073709551616", "9999999999999999999e-19",
    ],
)  # fmt: skip
def test_the_edges(text):
    assert_as_python(text)


def test_the_table_holds_the_leading_bits_of_powers_of_five():
    for q in range(LOWEST, HIGHEST + 1):
        leading = (int(FIVES[q - LOWEST, 0]) << 64) + int(FIVES[q - LOWEST, 1])
        assert leading.bit_length() == 128
        ratio = Fraction(5) ** q / leading
        power = Fraction(2) ** round(math.log2(ratio))
        assert abs(ratio / power - 1) < Fraction(1, 2**127)


@pytest.mark.parametrize("text", ["NULL", "null", "nan", "NaN", "-nan", "inf", "+inf", "-Infinity", "INFINITY"])
def test_what_is_not_finite_is_told_from_what_is_no_number(text):
    assert read(text)[1:] == (len(text), NOT_FINITE)
    assert read(text + "x")[2] == MALFORMED
    assert read(text[:-1])[2] == (NOT_FINITE if text[:-1].lower().lstrip("+-") == "inf" else MALFORMED)


@pytest.mark.parametrize(
    "text",
    ["", "+", "-", ".", "-.", "e5", ".e5", "1e", "1e+", "1e-", "--1", "1.2.3", "1_0", "0x10", "1,5", "a"],
)
def test_what_is_no_number(text):
    assert read(text)[1:] == (0, MALFORMED)


@pytest.mark.parametrize("letter", [" ", "\t", "\r", "\n", "#", "\v", "\f"])
def test_a_number_ends_at_a_break(letter):
    assert read(f"1.5{letter}7") == (1.5, 3, FINITE)


@given(finite, st.sampled_from([b"5", b".5", b"e5", b"\n", b"\xff", b"123456789012345678"]))
def test_nothing_is_read_from_the_end_on(number, after):
    assert read(repr(number), after) == (number, len(repr(number)), FINITE)
