"""Numbers and names as JSON without NaN, and JSON as text that is small and safe inside an HTML page."""

import base64
import gzip
import json
import math
from collections.abc import Iterable
from typing import Any


def finite(value: Any) -> float | int | None:
    """A number with all of its digits; NaN and infinities, which JSON cannot express, become None."""
    number = float(value)
    if not math.isfinite(number):
        return None
    return int(number) if number.is_integer() and abs(number) < 1e15 else number


def numbers(values: Iterable[Any]) -> list[float | int | None]:
    """:func:`finite` for each value."""
    return [finite(value) for value in values]


def name_of(identity: Any) -> str | int | float:
    """A query id as JSON: whole numbers and texts as they are, anything else as its text."""
    if isinstance(identity, (bool, float)) or not isinstance(identity, (int, str)):
        return str(identity)
    return identity


def is_missing(value: Any) -> bool:
    """Whether a value stands for none: None, NaN, pandas' NA and NaT."""
    if value is None:
        return True
    try:
        return bool(value != value)
    except (TypeError, ValueError):  # NA, which is not even different from itself; and arrays, which are no value
        return not hasattr(value, "__len__")


def printable(text: str) -> str:
    """A text as an HTML page gives it back: browsers replace NUL, halves of characters and carriage returns."""
    known = text.encode("utf-8", errors="replace").decode("utf-8")
    return known.replace("\0", "\ufffd").replace("\r\n", "\n").replace("\r", "\n")


def pack(value: Any) -> str:
    """JSON, compressed, in base 64: no character of it has a meaning to an HTML parser."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)  # ASCII only
    return base64.b64encode(gzip.compress(text.encode("ascii"), 9, mtime=0)).decode("ascii")
