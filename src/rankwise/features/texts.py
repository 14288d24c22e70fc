"""Values in the texts of a column: numbers, amounts with a unit, truth values or dates.

Each ``*_of`` function either reads one text or finds out how all texts of a column are written. What it finds is a
plain value, which is kept with the model: later tables are read in the same way.
"""

import math
import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from datetime import date, datetime

import numpy as np
from numpy.typing import NDArray

from rankwise.features.table import days_of

TRUTHS = {"true": 1.0, "yes": 1.0, "t": 1.0, "y": 1.0, "false": 0.0, "no": 0.0, "f": 0.0, "n": 0.0}
AMBIGUOUS = "ambiguous"
_INFINITE = ("inf", "-inf", "+inf", "infinity", "-infinity", "+infinity")
_PLAIN = {
    ".": re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?", re.ASCII),
    ",": re.compile(r"[+-]?(\d+(,\d*)?|,\d+)([eE][+-]?\d+)?", re.ASCII),
}
_GROUPED = {
    ".": re.compile(r"[+-]?\d{1,3}(,\d{3})+(\.\d+)?", re.ASCII),
    ",": re.compile(r"[+-]?\d{1,3}(\.\d{3})+(,\d+)?", re.ASCII),
}
_CODE = re.compile(r"0\d+", re.ASCII)  # an article number, not a number
_AMOUNT = re.compile(r"(?P<sign>[+-]?)\s*(?P<before>[^\d\s.,+-]*)\s*(?P<number>[+-]?[\d.,]*\d)\s*(?P<after>[^\d.,]*)")
# Marks that may stand beside a number, besides currency symbols; others would turn model names into amounts.
_CURRENCY = re.compile(
    "usd|eur|gbp|chf|jpy|cny|inr|pln|sek|nok|dkk|czk|huf|aud|cad|nzd|brl|mxn|zar|rub|try|krw|sgd|hkd", re.IGNORECASE
)
_UNIT = re.compile(
    "%|kg|g|mg|lbs?|oz|t|km|m|cm|mm|in|inch|ft|yd|l|ml|cl|[kmgt]b|k?w|kwh|v|mah|[kmg]?hz|h|hrs?|min|s|sec|ms|px|pcs?|"
    "stars?|d|days?",
    re.IGNORECASE,
)
_DATES = {
    "iso": re.compile(r"\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:\d{2}(\.\d{1,6})?)?\s*(Z|[+-]\d{2}:?\d{2})?)?", re.ASCII),
    "y/m/d": re.compile(r"(\d{4})/(\d{1,2})/(\d{1,2})", re.ASCII),
    "d.m.y": re.compile(r"(\d{1,2})\.(\d{1,2})\.(\d{4})", re.ASCII),
    "d/m/y": re.compile(r"(\d{1,2})/(\d{1,2})/(\d{4})", re.ASCII),
    "m/d/y": re.compile(r"(\d{1,2})/(\d{1,2})/(\d{4})", re.ASCII),
}
DATE_FORMATS = tuple(_DATES)


# ---------------------------------------------------------------------------------------------------------- numbers


def number_of(text: str, decimal: str) -> float | None:
    """The number that a text with this decimal mark writes, with or without marks between thousands.

    Parameters
    ----------
    text : str
        The text, without spaces around it.
    decimal : {".", ","}
        The decimal mark.

    Returns
    -------
    number : float or None
        NaN for infinity, which counts as missing; None where the text is not a number.
    """
    if _PLAIN[decimal].fullmatch(text) is None:
        if text.lower() in _INFINITE:
            return math.nan
        if _GROUPED[decimal].fullmatch(text) is None:
            return None
        text = text.replace("." if decimal == "," else ",", "")
    value = float(text.replace(",", "."))
    return value if math.isfinite(value) else math.nan


def decimal_of(texts: Iterable[str], preferred: str) -> str | None:
    """The decimal mark with which all texts are numbers.

    Parameters
    ----------
    texts : iterable of str
        The different texts of a column.
    preferred : {".", ","}
        The mark of the source, which is taken where all texts are numbers with it as they stand.

    Returns
    -------
    decimal : {".", ",", "ambiguous"} or None
        None where some text is not a number; "ambiguous" where ``1,234`` may be 1234 or 1.234.
    """
    every = list(texts)
    if any(_CODE.fullmatch(text) for text in every):
        return None
    if all(_PLAIN[preferred].fullmatch(text) or text.lower() in _INFINITE for text in every):
        return preferred
    fitting = [mark for mark in (".", ",") if all(number_of(text, mark) is not None for text in every)]
    return (fitting[0] if len(fitting) == 1 else AMBIGUOUS) if fitting else None


def amount_of(text: str) -> tuple[str, str] | None:
    """(number, unit) of a text such as ``12,99 EUR`` or ``$ 12.99``; the unit is in lower case, None without one."""
    found = _AMOUNT.fullmatch(text)
    if found is None:
        return None
    unit = found["before"] or found["after"].strip()
    if found["before"] and found["after"].strip():
        return None
    symbol = len(unit) == 1 and unicodedata.category(unit) == "Sc"
    if unit and not symbol and not _CURRENCY.fullmatch(unit) and (found["before"] or not _UNIT.fullmatch(unit)):
        return None
    return found["sign"] + found["number"], unit.lower()


def units_of(texts: Iterable[str]) -> dict[str, str] | None:
    """The notation of the amounts of a column.

    Parameters
    ----------
    texts : iterable of str
        The different texts of a column.

    Returns
    -------
    units : dict of str to str, or None
        The decimal mark of the numbers of each unit, or "ambiguous"; None where some text is not an amount, or none has
        a unit.
    """
    numbers: dict[str, list[str]] = {}
    for text in texts:
        amount = amount_of(text)
        if amount is None:
            return None
        numbers.setdefault(amount[1], []).append(amount[0])
    if not any(numbers):
        return None
    found = {unit: decimal_of(written, ".") for unit, written in sorted(numbers.items())}
    return {unit: mark for unit, mark in found.items() if mark is not None} if None not in found.values() else None


# ------------------------------------------------------------------------------------------------------------ dates


def day_of(text: str, form: str) -> float | None:
    """Days since 1970-01-01 of a text in one of the :data:`DATE_FORMATS`; None where it is not one."""
    found = _DATES[form].fullmatch(text)
    if found is None:
        return None
    try:
        if form == "iso":
            return days_of(datetime.fromisoformat(text.replace(" Z", "Z")))
        parts = dict(zip(form[::2], map(int, found.groups()), strict=True))
        return days_of(date(parts["y"], parts["m"], parts["d"]))
    except ValueError:  # no such day
        return None


def date_form_of(texts: Iterable[str]) -> str | None:
    """The format in which all texts are dates; None without one, "ambiguous" where day and month cannot be told."""
    every = list(texts)
    fitting = [form for form in DATE_FORMATS if all(day_of(text, form) is not None for text in every)]
    if len(fitting) < 2:
        return fitting[0] if fitting else None
    same = all(day_of(text, fitting[0]) == day_of(text, fitting[1]) for text in every)
    return fitting[0] if same else AMBIGUOUS


# ------------------------------------------------------------------------------------------------------ whole columns


def read_each(texts: Sequence[str | None], read: Callable[[str], float | None]) -> tuple[NDArray[np.float64], int]:
    """Read every text of a column; equal texts are read once.

    Parameters
    ----------
    texts : sequence of str or None
        The texts; None is missing.
    read : callable
        Gives a number, or None where the text cannot be read.

    Returns
    -------
    values : ndarray of float64
        The numbers; NaN where a text is missing or cannot be read.
    first : int
        The first row that cannot be read, -1 without one.
    """
    known: dict[str | None, float | None] = {None: math.nan}
    values, first = np.empty(len(texts)), -1
    for row, text in enumerate(texts):
        if text not in known:
            known[text] = read(text)  # type: ignore[arg-type]  # None is known
        value = known[text]
        if value is None and first < 0:
            first = row
        values[row] = math.nan if value is None else value
    return values, first
