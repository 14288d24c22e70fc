"""JSON that other tools wrote: one value, or one per line, read strictly.

Python's reader takes NaN for a number and the last of two equal keys. Files from strangers are checked here: readers
see plain values and know where each came from.
"""

import json
import math
from collections.abc import Iterator
from itertools import chain
from typing import Any, NoReturn

from rankwise.errors import FileFormatError
from rankwise.io.sources import lines_of, name_of
from rankwise.queries.checks import is_number


class _RefusedError(ValueError):
    """JSON that Python's reader would accept, and this one does not."""


def read_json(source: Any) -> list[tuple[str, Any]]:
    """Read a file that holds one JSON value, or one on each line.

    Parameters
    ----------
    source : path, ``-`` or binary file object
        The text, plain or gzipped.

    Returns
    -------
    values : list of (str, object)
        Each value with the place that error messages call it by: the file, or the file and the line.

    Raises
    ------
    FileFormatError
        If the text is not JSON, repeats a key of an object, or holds NaN or infinity; the message names the line.
    """
    name = name_of(source)
    return [(f"{name}, line {number:,}" if number else name, value) for number, value in iter_json(source)]


def iter_json(source: Any) -> Iterator[tuple[int, Any]]:
    """Read the JSON values of a text one after the other; memory holds one line where each line is a value.

    Parameters
    ----------
    source : path, ``-`` or binary file object
        The text, plain or gzipped.

    Yields
    ------
    line : int
        The line of the value; 0 if the text is a single value.
    value : object
        The value.
    """
    name = name_of(source)
    lines = ((number, line.decode()) for number, line in enumerate(lines_of(source), 1) if line.strip())
    first, text = next(lines, (0, ""))
    if not first:
        raise FileFormatError(f"{name} is empty, expected JSON")
    following = next(lines, None)
    if following is None:
        yield 0, _value(text, name, first)
    elif (value := _value(text, name, first, or_more=True)) is _MORE:
        # one value on several lines; blank lines are put back, by which errors count
        held, last = [text], first
        for number, line in chain([following], lines):
            held += ["\n" * (number - last), line]
            last = number
        yield 0, _value("".join(held), name, first)
    else:
        yield first, value
        for number, line in chain([following], lines):
            yield number, _value(line, name, number)


_MORE = object()


def _value(text: str, name: str, line: int, or_more: bool = False) -> Any:
    """The value of a text that begins on a line; ``_MORE`` where it does not end in the text and that is allowed."""
    try:
        return json.loads(text, object_pairs_hook=_object, parse_constant=_constant)
    except json.JSONDecodeError as error:
        if or_more and error.msg != "Extra data":
            return _MORE
        problem, line = f"not JSON: {error.msg[:1].lower()}{error.msg[1:]}", line + error.lineno - 1
        raise FileFormatError(f"{name}, line {line:,}, column {error.colno:,}: {problem}") from error
    except _RefusedError as error:
        raise FileFormatError(f"{name}: {error}") from error
    except (ValueError, RecursionError) as error:  # a number of thousands of digits, a list in a list in a list ...
        raise FileFormatError(f"{name}: numbers are too long or objects nested too deep") from error


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object without repeated keys."""
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for place, key in enumerate(keys) if key in keys[:place])
        raise _RefusedError(f"the key {twice!r:.60} occurs twice in one object")
    return found


def _constant(word: str) -> NoReturn:
    """Raise an error for NaN and infinity, which JSON does not have."""
    raise _RefusedError(f"expected numbers, got {word}")


# ------------------------------------------------------------------------------------------- values of a kind


def member(value: Any, key: str, kind: type, where: str) -> Any:
    """The entry of an object, which has to be there and of a kind.

    Parameters
    ----------
    value : object
        What should be an object.
    key : str
        The name of the entry.
    kind : type
        dict, list or str.
    where : str
        The place of the value.

    Returns
    -------
    object
        The entry.
    """
    if not isinstance(value, dict) or not isinstance(value.get(key), kind):
        found = value[key] if isinstance(value, dict) and key in value else value
        raise FileFormatError(f"{where}: expected an object with {key!r}, {_KINDS[kind]}, got {describe_value(found)}")
    return value[key]


def text_of(value: Any, what: str, where: str) -> str:
    """An id: a text, or a whole number, which some tools write."""
    if isinstance(value, str) and value:
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    raise FileFormatError(f"{where}: {what} must be a text, got {describe_value(value)}")


def number_of(value: Any, what: str, where: str) -> float:
    """A finite number."""
    if is_number(value) and abs(value) <= _LARGEST:
        return float(value)
    raise FileFormatError(f"{where}: {what} must be a number, got {describe_value(value)}")


def items_of(value: Any, what: str, where: str) -> Iterator[tuple[str, Any]]:
    """The entries of what has to be an object."""
    if not isinstance(value, dict):
        raise FileFormatError(f"{where}: {what} must be an object, got {describe_value(value)}")
    return iter(value.items())


def describe_value(value: Any) -> str:
    """A value as an error message shows it."""
    return f"{value!r:.60}" if not isinstance(value, (dict, list)) else f"{_KINDS[type(value)]} of {len(value):,}"


_KINDS: dict[Any, str] = {dict: "an object", list: "a list", str: "a text"}
_LARGEST = math.nextafter(math.inf, 0)
