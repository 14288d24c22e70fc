"""Texts that are numbers, amounts, dates."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankwise.features.texts import amount_of, date_form_of, day_of, decimal_of, number_of, units_of

FLOATS = st.floats(allow_nan=False, allow_infinity=False)


@given(FLOATS)
def test_a_number_is_read_as_python_reads_it_with_either_decimal_mark(value):
    text = repr(value)
    assert number_of(text, ".") == value
    assert number_of(text.replace(".", ","), ",") == value


@given(st.decimals(-(10**9), 10**9, places=2))
def test_marks_between_thousands_change_nothing(value):
    assert number_of(f"{value:,}", ".") == float(value)
    swapped = f"{value:,}".translate(str.maketrans(",.", ".,"))
    assert number_of(swapped, ",") == float(value)


@pytest.mark.parametrize("text", ["", "12x", "1_000", "1,23,4", "--1", "0x1f", "١٢", "1.2.3"])
def test_what_is_no_number_is_none(text):
    assert number_of(text, ".") is None


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["1", "2.5"], "."),
        (["1.234", "5.678"], "."),
        (["1,5", "2"], ","),
        (["1,234.5", "7"], "."),
        (["1.234,5", "7"], ","),
        (["1,234", "5,678"], "ambiguous"),
        (["1,234", "5,67"], ","),
        (["007", "012"], None),
        (["red", "1"], None),
    ],
)
def test_the_decimal_mark_of_a_column(texts, expected):
    assert decimal_of(texts, ".") == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("12,99 EUR", ("12,99", "eur")),
        ("$ 12.99", ("12.99", "$")),
        ("-$5", ("-5", "$")),
        ("€7", ("7", "€")),
        ("95%", ("95", "%")),
        ("2.5 kg", ("2.5", "kg")),
        ("12", ("12", "")),
        ("kg 3", None),
        ("iphone 12", None),
        ("w12", None),
        ("$ 12 EUR", None),
    ],
)
def test_an_amount_is_a_number_and_a_known_unit(text, expected):
    assert amount_of(text) == expected


def test_every_unit_has_its_own_decimal_mark():
    assert units_of(["12,99 EUR", "1.299,00 EUR", "$ 12.99", "$1,299.00"]) == {"$": ".", "eur": ","}
    assert units_of(["1,299 EUR"]) == {"eur": "ambiguous"}
    assert units_of(["12", "13.5"]) is None


@given(st.dates())
def test_every_form_of_a_date_gives_its_day(day):
    expected = float((day - type(day)(1970, 1, 1)).days)
    y, m, d = f"{day.year:04d}", f"{day.month:02d}", f"{day.day:02d}"
    assert day_of(f"{y}-{m}-{d}", "iso") == expected
    assert day_of(f"{y}/{m}/{d}", "y/m/d") == expected
    assert day_of(f"{d}.{m}.{y}", "d.m.y") == expected
    assert day_of(f"{d}/{m}/{y}", "d/m/y") == expected
    assert day_of(f"{m}/{d}/{y}", "m/d/y") == expected


def test_times_and_zones_count():
    assert day_of("1970-01-02T06:00:00", "iso") == 1.25
    assert day_of("1970-01-02 06:00", "iso") == 1.25
    assert day_of("1970-01-02T06:00:00+06:00", "iso") == 1.0
    assert day_of("1970-01-02T00:00:00Z", "iso") == 1.0
    assert day_of("1970-02-30", "iso") is None


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["2024-01-31"], "iso"),
        (["31/01/2024", "01/02/2024"], "d/m/y"),
        (["01/31/2024"], "m/d/y"),
        (["01/02/2024"], "ambiguous"),
        (["05/05/2024"], "d/m/y"),
        (["31/31/2024"], None),
        (["soon"], None),
    ],
)
def test_the_form_of_a_column_of_dates(texts, expected):
    assert date_form_of(texts) == expected


def test_infinity_is_missing():
    assert math.isnan(number_of("inf", "."))
    assert math.isnan(number_of("1e999", "."))
