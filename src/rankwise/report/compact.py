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


def packed(value: Any) -> str:
    """JSON, compressed, in base 64: no character of it has a meaning to an HTML parser."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)  # ASCII only
    return base64.b64encode(gzip.compress(text.encode("ascii"), 9, mtime=0)).decode("ascii")
