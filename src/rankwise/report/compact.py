"""Numbers as short JSON: few digits, no NaN, and safe inside a script element."""

import json
import math
from collections.abc import Iterable
from typing import Any


def rounded(value: float, digits: int = 5) -> float | int | None:
    """A number with so many significant digits; None for NaN and infinities, which JSON cannot express.

    Parameters
    ----------
    value : float
        The number.
    digits : int, default=5
        Significant digits.

    Returns
    -------
    float, int or None
        The rounded number.
    """
    number = float(value)
    if not math.isfinite(number):
        return None
    short = float(f"{number:.{digits}g}")
    return int(short) if short.is_integer() and abs(short) < 1e15 else short


def numbers(values: Iterable[Any], digits: int = 5) -> list[float | int | None]:
    """:func:`rounded` for each value.

    Parameters
    ----------
    values : iterable of float
        The numbers.
    digits : int, default=5
        Significant digits.

    Returns
    -------
    list
        The rounded numbers.
    """
    return [rounded(value, digits) for value in values]


def name_of(identity: Any) -> str | int | float:
    """A query id as JSON: whole numbers and texts as they are, anything else as its text.

    Parameters
    ----------
    identity : object
        The id.

    Returns
    -------
    str or int
        The id as JSON.
    """
    if isinstance(identity, (bool, float)) or not isinstance(identity, (int, str)):
        return str(identity)
    return identity


def script_json(value: Any) -> str:
    """JSON that is safe inside ``<script>``: it holds no character with a meaning to an HTML parser.

    Parameters
    ----------
    value : object
        Plain values.

    Returns
    -------
    str
        The JSON.
    """
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)  # ASCII only
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
