"""Parameters are declared by their annotations, and checked from them.

:func:`check_parameters` reads the annotations of a dataclass, :func:`validated` those of a function. Both know
``bool``, ``int``, ``float``, ``str``, ``Literal``, ``X | None``, sequences of numbers, which must not be empty, and
``Annotated[X, constraint]``, where the constraint is a :class:`NumberRange` or a :class:`Check`. Every other
annotation accepts any value::

    alpha: NonNegativeFloat | Sequence[NonNegativeFloat] | None = None
    target: Literal["gains", "labels"] = "gains"

A bool must be a bool. A number is never NaN and never a bool, and an int has no fraction. NumPy's scalars count as
Python's.
"""

import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from functools import cache, wraps
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, ParamSpec, TypeVar, Union, get_args, get_origin

import numpy as np

from rankwise.errors import RankwiseError

P = ParamSpec("P")
R = TypeVar("R")
_INF = float("inf")


@dataclass(frozen=True)
class NumberRange:
    """The values of a number, from ``low`` to ``high``; ``closed`` names the ends that belong to it."""

    low: float = -_INF
    high: float = _INF
    closed: Literal["both", "left", "right", "neither"] = "left"

    def __contains__(self, value: Any) -> bool:
        above = value >= self.low if self.closed in ("both", "left") else value > self.low
        below = value <= self.high if self.closed in ("both", "right") else value < self.high
        return bool(above and below)

    def __str__(self) -> str:
        left, right = "[" if self.closed in ("both", "left") else "(", "]" if self.closed in ("both", "right") else ")"
        return f"{left}{self.low}, {self.high}{right}"


@dataclass(frozen=True)
class Check:
    """One kind of accepted value.

    Attributes
    ----------
    description : str
        What "must be ..." is followed by.
    accepts : callable
        Whether a value is accepted. It may raise a RankwiseError instead, which gives the reason.
    plural : str
        The description of several such values.
    """

    description: str
    accepts: Callable[[Any], bool]
    plural: str = ""


PositiveInt = Annotated[int, NumberRange(1)]
NonNegativeInt = Annotated[int, NumberRange(0)]
PositiveFloat = Annotated[float, NumberRange(0, closed="neither")]
NonNegativeFloat = Annotated[float, NumberRange(0)]
# of a whole; 0 is none of it
Fraction = Annotated[float, NumberRange(0, 1, closed="right")]
Int32 = Annotated[int, NumberRange(1, 2**31)]
OpenFraction = Annotated[float, NumberRange(0, 1, closed="neither")]
Jobs = Annotated[int, NumberRange(1)] | Literal[-1] | None


def _is_seed(value: Any) -> bool:
    if isinstance(value, (bool, np.bool_, str)):
        return False
    if _is_int(value):
        return bool(value >= 0)
    try:
        np.random.default_rng(value)
    except (TypeError, ValueError):
        return False
    return True


Seed = Annotated[Any, Check("None, a non-negative int or a numpy.random.Generator", _is_seed)]


def check_parameters(instance: Any, owner: str | None = None, error: type[RankwiseError] = RankwiseError) -> None:
    """Raise an error for the first parameter of an object that its annotation does not accept."""
    kind: Any = type(instance)
    owner = owner or kind.__name__
    for name, options in _constraints_of_class(kind).items():
        check_value(getattr(instance, name), name, owner, options, error)


def validated(function: Callable[P, R]) -> Callable[P, R]:
    """Check the arguments of a function by its annotations before it is called."""
    signature = inspect.signature(function)

    @wraps(function)
    def call(*arguments: P.args, **named: P.kwargs) -> R:
        given = signature.bind(*arguments, **named).arguments
        for name, options in _constraints_of_function(function).items():
            if name in given:
                check_value(given[name], name, function.__name__, options)
        return function(*arguments, **named)

    return call


def check_value(
    value: Any, name: str, owner: str, options: Sequence[Check], kind: type[RankwiseError] = RankwiseError
) -> None:
    """Raise an error unless one of the options accepts the value."""
    reason = ""
    for option in options:
        try:
            if option.accepts(value):
                return
        except RankwiseError as error:
            kind, reason = type(error), f" ({error})"
    *others, last = [option.description for option in options]
    expected = f"{', '.join(others)} or {last}" if others else last
    raise kind(describe(value, name, owner, expected, reason))


def describe(value: Any, name: str, owner: str, expected: str, reason: str = "") -> str:
    """The message about a parameter with a wrong value."""
    return f"The {name!r} parameter of {owner} must be {expected}. Got {value!r:.60} instead{reason}."


# ------------------------------------------------------------------------------------------------- annotations


@cache
def _constraints_of_class(owner: type) -> dict[str, tuple[Check, ...]]:
    """The constraints of a class by name: of its fields or, if it is no dataclass, of its constructor."""
    if not is_dataclass(owner):
        return _constraints_of_function(vars(owner)["__init__"])
    found = {}
    for field in fields(owner):
        home = next(kind for kind in inspect.getmro(owner) if field.name in inspect.get_annotations(kind))
        found[field.name] = _options(_resolve(field.type, sys.modules[home.__module__].__dict__))
    return {name: options for name, options in found.items() if options}


@cache
def _constraints_of_function(function: Callable[..., Any]) -> dict[str, tuple[Check, ...]]:
    annotations = inspect.get_annotations(function)
    annotations.pop("return", None)
    found = {name: _options(_resolve(kind, function.__globals__)) for name, kind in annotations.items()}
    return {name: options for name, options in found.items() if options}


def _resolve(annotation: Any, names: Mapping[str, Any]) -> Any:
    """The annotation itself, if it was written as a string; Any if it names something that only type checkers see."""
    if not isinstance(annotation, str):
        return annotation
    try:
        return eval(annotation, dict(names))
    except NameError:
        return Any


def _options(annotation: Any) -> tuple[Check, ...]:
    """The kinds of values that an annotation accepts; empty if it accepts everything."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        kind, constraint = arguments[:2]
        return (constraint,) if isinstance(constraint, Check) else (_number(kind, constraint),)
    if origin is Literal:
        return tuple(_literal(value) for value in arguments)
    if origin in (Union, UnionType):
        return _alternatives(arguments)
    if origin is Sequence and (items := _options(arguments[0])) and items[0].plural:
        return (_sequence(items[0], f"a sequence of {items[0].plural}"),)
    if annotation in (int, float):
        return (_number(annotation, NumberRange(closed="neither")),)
    if annotation is str:
        return (Check("a str", lambda value: isinstance(value, str)),)
    if annotation in (None, NoneType):
        return (Check("None", lambda value: value is None),)
    return (Check("a bool", lambda value: isinstance(value, (bool, np.bool_))),) if annotation is bool else ()


def _alternatives(arguments: Sequence[Any]) -> tuple[Check, ...]:
    """The kinds of values of a union; a sequence of what was already described is one of "such" values."""
    found: list[Check] = []
    for argument in arguments:
        options = _options(argument)
        if not options:
            return ()
        if get_origin(argument) is Sequence and (items := _options(get_args(argument)[0]))[0].plural in [
            option.plural for option in found
        ]:
            options = (_sequence(items[0], f"a sequence of such {items[0].plural.split()[0]}"),)
        found.extend(options)
    return tuple(found)


def _literal(expected: Any) -> Check:
    return Check(repr(expected), lambda value: isinstance(value, type(expected)) and value == expected)


def _number(kind: type, interval: NumberRange) -> Check:
    article = "an" if kind is int else "a"
    is_kind = _is_int if kind is int else _is_real
    return Check(
        f"{article} {kind.__name__} in {interval}",
        lambda value: is_kind(value) and value in interval,
        f"{kind.__name__}s in {interval}",
    )


def _sequence(item: Check, description: str) -> Check:
    """One value or more that the item accepts."""

    def accepts(values: Any) -> bool:
        if isinstance(values, (str, bytes)) or not isinstance(values, (Sequence, np.ndarray)):
            return False
        if isinstance(values, np.ndarray) and values.ndim != 1:
            return False
        if len(values) == 0:
            raise RankwiseError("it is empty")
        return all(item.accepts(value) for value in values)

    return Check(description, accepts)


def _is_int(value: Any) -> bool:
    """Whether a value is an integer, though no bool, that 64 bits can hold."""
    whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    return whole and -(2**63) <= value < 2**63


def _is_real(value: Any) -> bool:
    return isinstance(value, (float, np.floating)) or _is_int(value)


def as_random(random_state: Any) -> np.random.Generator:
    """The random generator of a seed, or the generator that was given."""
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError) as error:
        raise RankwiseError(
            f"random_state must be None, a whole number from 0 on, or a numpy.random.Generator, got "
            f"{random_state!r:.60}"
        ) from error
