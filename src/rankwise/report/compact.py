"""Numbers as short JSON: few digits, no NaN, and safe inside a script element."""

import json
import math
from collections.abc import Iterable
from typing import Any


def rounded(value: float, digits: int = 5) -> float | int | None:
    """Round to so many significant digits; NaN and infinities, which JSON cannot express, become None."""
    number = float(value)
    if not math.isfinite(number):
        return None
    short = float(f"{number:.{digits}g}")
    return int(short) if short.is_integer() and abs(short) < 1e15 else short


def numbers(values: Iterable[Any], digits: int = 5) -> list[float | int | None]:
    """:func:`rounded` for each value."""
    return [rounded(value, digits) for value in values]


def name_of(identity: Any) -> str | int | float:
    """A query id as JSON: whole numbers and texts as they are, anything else as its text."""
    if isinstance(identity, (bool, float)) or not isinstance(identity, (int, str)):
        return str(identity)
    return identity


def script_json(value: Any) -> str:
    """JSON that is safe inside ``<script>``: it holds no character with a meaning to an HTML parser."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)  # ASCII only
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
