"""Decide the kind of a column from the training table, how it is read, and the reason in words."""

import math
import re
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from rankwise.errors import DataError
from rankwise.features.table import Column
from rankwise.features.texts import (
    AMBIGUOUS,
    TRUTHS,
    amount_of,
    date_form_of,
    day_of,
    decimal_of,
    number_of,
    read_each,
    units_of,
)
from rankwise.queries.checks import plural

Kind = Literal["number", "boolean", "date", "amount", "category", "text", "identifier", "constant", "other", "ignored"]
Asked = Literal["number", "boolean", "date", "category", "ignore"]
ASKED = get_args(Asked)
LEFT_OUT = ("text", "identifier", "constant", "other", "ignored")

# A distance of the 1% and 99% quantiles from the median of more than this many interquartile ranges is a heavy tail:
# the normal distribution has 1.7, the exponential 3.6, the lognormal 6.3.
HEAVY = 5.0
_FEWEST = 20  # different values from which on tails and identifiers are looked at
_UNIQUE = 0.9  # share of different values from which on a text is an identifier
_IDENTIFIER = re.compile(r"(^|[_\W])(id|ids|uid|uuid|guid|sku|asin|ean|gtin|upc|isbn|url|uri|key|hash)$", re.IGNORECASE)
_MOST_UNITS = 12


@dataclass(frozen=True)
class Decision:
    """The decision about one column.

    Attributes
    ----------
    name : str
        The column.
    kind : str
        One of "number", "boolean", "date", "amount" and "category"; or why the column is left out: "text",
        "identifier", "constant", "other", "ignored".
    reason : str
        Why, in words.
    reading : dict
        How texts are read: ``decimal`` (where it is not that of the whole file), ``units``, ``form`` of dates, and
        ``lenient`` where texts that cannot be read count as missing.
    heavy : bool
        Whether a number has a heavy tail.
    gaps : int
        The number of missing values in training.
    """

    name: str
    kind: Kind
    reason: str
    reading: dict[str, Any] = field(default_factory=dict)
    heavy: bool = False
    gaps: int = 0

    @property
    def left_out(self) -> bool:
        """Whether no feature is made of the column."""
        return self.kind in LEFT_OUT


def decide(column: Column, max_levels: int, owner: NDArray[np.int64] | None, asked: Asked | None = None) -> Decision:
    """Decide what is done with a column.

    Parameters
    ----------
    column : Column
        The column of the training table.
    max_levels : int
        The number of levels up to which texts are a category.
    owner : ndarray of int64, shape (n_rows,), or None
        The number of the query of each row.
    asked : {"number", "boolean", "date", "category", "ignore"}, default=None
        What the user says that it is.

    Returns
    -------
    decision : Decision
        Kind, reading and reason.
    """
    name = column.name
    if asked == "ignore":
        return Decision(name, "ignored", "as told")
    if column.stored == "other":
        return Decision(name, "other", f"values of type {column.type_name} are neither numbers, texts nor dates")
    missing = column.missing
    gaps = int(missing.sum())
    if gaps == len(missing):
        return Decision(name, "constant", "it has no value in any row")
    if asked is not None:
        return _as_asked(column, asked, gaps)
    if column.stored == "text":
        return _of_texts(column, [text for text in column.values.tolist() if text is not None], max_levels, owner, gaps)
    values = column.values[~missing]
    if len(np.unique(values)) == 1 and not gaps:
        return Decision(
            name, "constant", f"it is {values[0]:g} in every row" if column.stored != "date" else "one date"
        )
    if column.stored == "boolean":
        return Decision(name, "boolean", "true or false" + _with(gaps), gaps=gaps)
    if column.stored == "date":
        return Decision(name, "date", "dates" + _with(gaps), gaps=gaps)
    return _of_numbers(name, values, max_levels, gaps, {}, "numbers")


def _as_asked(column: Column, asked: Asked, gaps: int) -> Decision:
    """The kind that the user names."""
    name, told = column.name, "as told"
    if asked == "category":
        return Decision(name, "category", told + _with(gaps), gaps=gaps)
    if asked == "number" and column.stored == "date":
        return Decision(name, "date", "dates, whose number is their age", gaps=gaps)
    if column.stored != "text":
        kind: Kind = "date" if column.stored == "date" else asked  # type: ignore[assignment]
        if asked == "date" and column.stored != "date":
            return Decision(name, "other", "told to be dates, but it holds numbers: turn them into dates first")
        heavy = kind == "number" and is_heavy(column.values[~column.missing])
        return Decision(name, kind, told + _with(gaps), heavy=heavy, gaps=gaps)
    texts = sorted({text for text in column.values.tolist() if text is not None})
    if asked == "date":
        form = date_form_of(texts)
        if form in (None, AMBIGUOUS):
            return Decision(name, "other", f"told to be dates, but {_example(texts)} has no known form")
        return Decision(name, "date", told + _with(gaps), {"form": form}, gaps=gaps)
    if asked == "boolean":
        return Decision(name, "boolean", told + _with(gaps), {"lenient": True}, gaps=gaps)
    units = units_of(texts)
    if units is not None and AMBIGUOUS not in units.values():
        return Decision(name, "amount", told + _with(gaps), {"units": units}, gaps=gaps)
    decimal = max((column.decimal, ".", ","), key=lambda mark: sum(number_of(text, mark) is not None for text in texts))
    bad = sum(number_of(text, decimal) is None for text in texts)
    other = f"; {plural(bad, 'other text', 'other texts')} count as missing" if bad else ""
    values, _ = read_each(column.values.tolist(), lambda text: number_of(text, decimal))
    gaps = int(np.isnan(values).sum())
    if gaps == len(values):
        return Decision(name, "other", f"told to be numbers, but {_example(texts)} is none")
    heavy = is_heavy(values[~np.isnan(values)])
    return Decision(
        name, "number", told + _with(gaps) + other, {**_mark(decimal, column), "lenient": True}, heavy, gaps
    )


def _of_numbers(
    name: str, values: NDArray[np.float64], max_levels: int, gaps: int, reading: dict[str, Any], what: str
) -> Decision:
    """The kind of a column of numbers."""
    different = np.unique(values)
    if len(different) == 1 and not gaps:
        return Decision(name, "constant", f"it is {different[0]:g} in every row")
    if len(different) == 2 and (different == [0, 1]).all():
        return Decision(name, "boolean", "0 or 1" + _with(gaps), reading, gaps=gaps)
    whole = bool((different == np.floor(different)).all())
    if whole and len(different) > _FEWEST:
        numbered = len(different) == len(values) and different[-1] - different[0] + 1 == len(values)
        if numbered:
            return Decision(name, "identifier", "whole numbers that count the rows")
        if len(different) > max_levels and _IDENTIFIER.search(name):
            found = f"{len(different):,} different whole numbers under the name of an identifier"
            return Decision(name, "identifier", f"{found}; columns={{{name!r}: 'number'}} takes it as a number")
    heavy = is_heavy(values)
    return Decision(name, "number", what + (" with a heavy tail" if heavy else "") + _with(gaps), reading, heavy, gaps)


def _of_texts(
    column: Column, texts: list[str], max_levels: int, owner: NDArray[np.int64] | None, gaps: int
) -> Decision:
    """The kind of a column of texts."""
    name, levels = column.name, sorted(set(texts))
    decimal = decimal_of(levels, column.decimal)
    if decimal == AMBIGUOUS:
        why = f"{_example([text for text in levels if ',' in text or '.' in text])} is a number with a decimal mark or"
        return Decision(name, "other", f"{why} with a mark between thousands: turn the column into numbers first")
    if decimal is not None:
        values, _ = read_each(texts, lambda text: number_of(text, decimal))
        values = values[~np.isnan(values)]
        lost = len(texts) - len(values)  # infinities
        if not len(values):
            return Decision(name, "constant", "it has no finite value in any row")
        return _of_numbers(name, values, max_levels, gaps + lost, _mark(decimal, column), "numbers")
    if len(levels) == 1 and not gaps:
        return Decision(name, "constant", f"it is {levels[0]!r:.40} in every row")
    if {level.lower() for level in levels} <= TRUTHS.keys():
        return Decision(name, "boolean", "words for true and false" + _with(gaps), gaps=gaps)
    form = date_form_of(levels)
    if form == AMBIGUOUS:
        return Decision(name, "other", f"in dates such as {_example(levels)} day and month cannot be told apart")
    if form is not None:
        return Decision(name, "date", "texts that are dates" + _with(gaps), {"form": form}, gaps=gaps)
    units = units_of(levels)
    if units is not None and len(units) <= _MOST_UNITS:
        if AMBIGUOUS in units.values():
            return Decision(name, "other", f"the decimal mark of amounts such as {_example(levels)} is ambiguous")
        listed = ", ".join(unit or "no unit" for unit in units)
        return Decision(name, "amount", f"numbers with a unit ({listed})" + _with(gaps), {"units": units}, gaps=gaps)
    return _of_words(column, texts, levels, max_levels, owner, gaps)


def _of_words(
    column: Column, texts: list[str], levels: list[str], max_levels: int, owner: NDArray[np.int64] | None, gaps: int
) -> Decision:
    """The kind of texts that are nothing else: a category, an identifier or free text."""
    name, count = column.name, plural(len(levels), "different text")
    if owner is not None and not gaps and len(levels) > 1:
        # one text per query and no other query with it names the query
        pairs = len(set(zip(owner.tolist(), column.values.tolist(), strict=True)))
        queries = len(np.unique(owner))
        if pairs == queries == len(levels):
            return Decision(name, "identifier", "it has one text for each query, which says nothing of its documents")
    if len(levels) > max_levels:
        if len(levels) >= _UNIQUE * len(texts):
            return Decision(name, "identifier", f"{count} in {plural(len(texts), 'row')}")
        if _IDENTIFIER.search(name):
            return Decision(name, "identifier", f"{count} under the name of an identifier")
        numbers = sum(number_of(level, column.decimal) is not None for level in levels)
        hint = ""
        if numbers * 2 > len(levels):
            odd = _example([level for level in levels if number_of(level, column.decimal) is None])
            hint = (
                f"; {numbers:,} of them are numbers: columns={{{name!r}: 'number'}} takes others such as {odd} as gaps"
            )
        return Decision(name, "text", f"{count}, more than max_levels={max_levels}{hint}")
    return Decision(name, "category", plural(len(levels), "level") + _with(gaps), gaps=gaps)


def is_heavy(values: NDArray[np.float64]) -> bool:
    """Whether numbers have a heavy tail, see :data:`HEAVY`; where most are equal, the others are looked at."""
    if len(np.unique(values)) <= _FEWEST:
        return False
    for part in (values, values[values != np.median(values)]):
        low, first, middle, third, high = np.quantile(part, [0.01, 0.25, 0.5, 0.75, 0.99])
        if third > first:
            return bool(max(high - middle, middle - low) > HEAVY * (third - first))
    return True


def read_numbers(column: Column, kind: str, reading: dict[str, Any]) -> Any:
    """The numbers of a column as its decision reads them.

    Parameters
    ----------
    column : Column
        The column of any table.
    kind : {"number", "boolean", "date"}
        What it was in training.
    reading : dict
        The reading of its decision.

    Returns
    -------
    values : ndarray of float64
        The numbers, NaN for what is missing.

    Raises
    ------
    DataError
        If a value cannot be read.
    """
    as_date = kind == "date"
    if column.stored == "other" or (column.stored != "text" and (column.stored == "date") != as_date):
        holds = column.type_name or {"date": "dates"}.get(column.stored, "numbers")
        raise DataError(f"column {column.name!r} holds {holds}, and in training it was a {kind}")
    if column.stored != "text":
        return np.where(np.isfinite(column.values), column.values, np.nan)
    form, decimal = reading.get("form", "iso"), reading.get("decimal", column.decimal)

    def read(text: str) -> float | None:
        if as_date:
            return day_of(text, form)
        if kind == "boolean" and text.lower() in TRUTHS:
            return TRUTHS[text.lower()]
        return number_of(text, decimal)

    values, first = read_each(column.values.tolist(), read)
    if first >= 0 and not reading.get("lenient", False):
        raise DataError(
            f"column {column.name!r} holds {column.values[first]!r:.40} at row {column.first_row + first:,}, and in "
            f"training it was a {kind}"
        )
    return values


def read_amounts(column: Column, units: dict[str, str]) -> tuple[Any, Any]:
    """The numbers of a column of amounts, and their units as texts.

    Parameters
    ----------
    column : Column
        The column of any table.
    units : dict of str to str
        The decimal mark of each unit in training. The numbers of other units count as missing.

    Returns
    -------
    values : ndarray of float64
        The numbers.
    found : ndarray of object
        The units; empty texts where there is none.

    Raises
    ------
    DataError
        If a value is not an amount.
    """
    if column.stored != "text":
        if column.stored not in ("number", "boolean") or "" not in units:
            raise DataError(f"column {column.name!r} holds no units, and in training it held {', '.join(units)}")
        return np.where(np.isfinite(column.values), column.values, np.nan), np.full(len(column.values), "", object)
    texts = column.values.tolist()
    split = {text: amount_of(text) for text in set(texts) if text is not None}

    def read(text: str) -> float | None:
        amount = split[text]
        if amount is None:
            return None
        return number_of(amount[0], units[amount[1]]) if amount[1] in units else math.nan

    values, first = read_each(texts, read)
    if first >= 0:
        raise DataError(
            f"column {column.name!r} holds {texts[first]!r:.40} at row {column.first_row + first:,}, and in training "
            "it held amounts"
        )
    found = np.empty(len(texts), dtype=object)
    found[:] = [split[text][1] if text is not None else "" for text in texts]  # type: ignore[index]  # none is None
    return values, found


def read_values(column: Column, kind: str, reading: dict[str, Any]) -> tuple[Any, Any]:
    """The numbers of a column, and the units of amounts; None for other kinds."""
    if kind == "amount":
        return read_amounts(column, reading["units"])
    return read_numbers(column, kind, reading), None


def read_levels(column: Column) -> NDArray[np.object_]:
    """The levels of a category as texts; what is missing is the empty text."""
    found = np.empty(len(column.values), dtype=object)
    if column.stored == "text":
        found[:] = ["" if text is None else text for text in column.values.tolist()]
    else:
        found[:] = [_level(value) for value in column.values.tolist()]
    return found


def _level(value: float) -> str:
    """The text of a number: that of a whole number without a decimal mark."""
    if not math.isfinite(value):
        return ""
    return str(int(value)) if value == int(value) else repr(value)


def _mark(decimal: str, column: Column) -> dict[str, Any]:
    """The decimal mark, unless it is that of the whole source: later sources may have another one."""
    return {} if decimal == column.decimal else {"decimal": decimal}


def _with(gaps: int) -> str:
    return f", {gaps:,} missing" if gaps else ""


def _example(texts: list[str]) -> str:
    return f"{texts[0]!r:.40}" if texts else "none"
