"""What a fitted :class:`rankwise.FeatureBuilder` does, as short programs that SQL, Python, C, Vespa and ONNX can hold.

Every feature is made of one column by a chain of :class:`ColumnStep`. A text becomes a number by its levels; a number
is filled, bent and scaled. Each target writes the same few steps in its own words, and what no chain expresses (values
relative to the query, places among the training values, transformers of the user) is named by :func:`not_held`.
"""

import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from rankwise.errors import DataError
from rankwise.features.builder import FeatureBuilder
from rankwise.features.columns import read_levels, read_values
from rankwise.features.table import RawTable
from rankwise.features.treatments import Treatment
from rankwise.measures._base import Vector

_LISTED = 3  # columns that a message names
_SCALERS = ("StandardScaler", "MinMaxScaler", "RobustScaler")


@dataclass(frozen=True)
class ColumnStep:
    """One step from a column to a feature.

    Attributes
    ----------
    kind : str
        For the number v so far: "fill" is ``value`` where v is missing, "missing" is 1 where it is and 0 elsewhere,
        "before" is ``value - v``, "log" is sign(v) log(1 + abs(v)), "subtract", "divide", "multiply" and "add" are
        v with ``value``. For a text: "level" is its number in ``levels``, and ``value`` for all others.
    value : float
        The number of the step.
    levels : tuple of (str, float)
        The texts with a number of their own; the empty text is a missing one.
    """

    kind: Literal["fill", "missing", "before", "log", "subtract", "divide", "multiply", "add", "level"]
    value: float = 0.0
    levels: tuple[tuple[str, float], ...] = ()


Chain = tuple[int, tuple[ColumnStep, ...]]  # the column and the steps of one feature


@dataclass(frozen=True)
class ColumnFeatures:
    """Features as chains of steps on columns.

    Attributes
    ----------
    names : tuple of str
        The columns, as the engine calls them.
    is_text : tuple of bool
        Whether a column holds texts; the others hold numbers.
    chains : tuple of (int, tuple of Step)
        The column and the steps of every feature.
    notes : tuple of str
        How columns have to be given, where that is not obvious.
    """

    names: tuple[str, ...]
    is_text: tuple[bool, ...]
    chains: tuple[Chain, ...]
    notes: tuple[str, ...]

    @classmethod
    def of(cls, builder: FeatureBuilder, given: Sequence[str] | None) -> "ColumnFeatures":
        """The features of a fitted builder, every treatment of which can be held.

        Parameters
        ----------
        builder : FeatureBuilder
            The builder.
        given : sequence of str or None
            The names of the columns in the engine; None takes those of the table.

        Returns
        -------
        ColumnFeatures
            The columns and chains.
        """
        names: list[str] = []
        is_text: list[bool] = []
        chains: list[Chain] = []
        notes: list[str] = []
        for one in builder._treated:
            place = len(names)
            names.append(one.columns[0])
            is_text.append(one.kind == "category")
            notes += _notes(one)
            if one.kind == "category":
                chains += [(place, (step,)) for step in _encoder_steps(one.steps["encode"])]
                continue
            chains += [(place, steps) for steps in _numeric(one)]
            if "encode" in one.steps:  # the unit of an amount is a column of its own
                names.append(f"{one.columns[0]}_unit")
                is_text.append(True)
                chains += [(place + 1, (step,)) for step in _encoder_steps(one.steps["encode"])]
        called = tuple(names if given is None else map(str, given))
        if len(called) != len(names):
            raise DataError(
                f"feature_names must have one name per column ({', '.join(names)}), got {len(called)} names for "
                f"{len(names)} columns"
            )
        for name in called:
            if not name.strip() or not name.isprintable() or called.count(name) > 1:
                raise DataError(f"names of columns must be printable, not empty and different, got {name!r:.60}")
        return cls(called, tuple(is_text), tuple(chains), tuple(notes))

    @property
    def is_trivial(self) -> bool:
        """Whether every feature is its column as it is."""
        return not any(steps for _, steps in self.chains)

    def uses(self, kind: str) -> bool:
        """Whether some chain has a step of this kind."""
        return any(step.kind == kind for _, steps in self.chains for step in steps)


def rows_of_columns(builder: FeatureBuilder, table: RawTable) -> NDArray[np.object_]:
    """The columns of a table as an engine gets them.

    Parameters
    ----------
    builder : FeatureBuilder
        The builder, which knows how texts are read.
    table : RawTable
        The raw table.

    Returns
    -------
    rows : ndarray of object, shape (n_rows, n_columns)
        A float per number and a str per text; None for a missing number, the empty text for a missing text.
    """
    found: list[NDArray[Any]] = []
    for one in builder._treated:
        column = table.column(one.columns[0])
        if one.kind == "category":
            found.append(read_levels(column))
        else:
            values, units = read_values(column, one.kind, one.reading)
            found += [values, units] if "encode" in one.steps else [values]
    rows = np.empty((table.n_rows, len(found)), dtype=object)
    for place, values in enumerate(found):
        rows[:, place] = [None if value != value else value for value in values.tolist()]  # NaN is missing
    return rows


def compute_features(chains: Sequence[Chain], rows: NDArray[np.object_]) -> Vector:
    """The features that chains, read back from a file, make of rows, in float64 and with log(1 + abs(v)).

    Parameters
    ----------
    chains : sequence of (int, tuple of Step)
        The chains.
    rows : ndarray of object, shape (n_rows, n_columns)
        As :func:`rows_of_columns` returns them.

    Returns
    -------
    X : ndarray of float64, shape (n_rows, n_features)
        The features.
    """
    columns = [_apply_chain(rows[:, place], steps) for place, steps in chains]
    return np.column_stack(columns).reshape(len(rows), len(chains))


def _apply_chain(column: NDArray[np.object_], steps: Sequence[ColumnStep]) -> Vector:
    """One feature."""
    if steps and steps[0].kind == "level":
        known = dict(steps[0].levels)
        return np.array([known.get(text or "", steps[0].value) for text in column.tolist()], dtype=np.float64)
    v = column.astype(np.float64)  # None is NaN
    for step in steps:
        v = _COMPUTED[step.kind](v, step.value)
    return v


def step_patterns(templates: Mapping[str, str]) -> dict[str, re.Pattern[str]]:
    """What reads the steps that were written by templates with ``{v}`` and ``{value}``, as groups of these names."""
    found = {}
    for kind, template in templates.items():
        text = re.escape(template).replace(r"\{v\}", r"(?P<v>\S+)", 1).replace(r"\{v\}", "(?P=v)")
        found[kind] = re.compile(text.replace(r"\{value\}", r"(?P<value>[-+.\w]+)"))
    return found


def read_step(patterns: Mapping[str, re.Pattern[str]], text: str) -> tuple[str, ColumnStep] | None:
    """What a written step is applied to, "" where it is not named, and the step; None for another text."""
    for kind, pattern in patterns.items():
        if found := pattern.fullmatch(text):
            parts = found.groupdict()
            return parts.get("v", ""), ColumnStep(kind, float(parts.get("value", 0.0)))  # type: ignore[arg-type]
    return None


_COMPUTED: dict[str, Callable[[Vector, float], Vector]] = {
    "fill": lambda v, value: np.where(np.isfinite(v), v, value),
    "missing": lambda v, value: np.where(np.isfinite(v), 0.0, 1.0),
    "before": lambda v, value: value - v,
    "log": lambda v, value: np.where(v < 0.0, -np.log(1.0 + np.abs(v)), np.log(1.0 + np.abs(v))),
    "subtract": lambda v, value: v - value,
    "divide": lambda v, value: v / value,
    "multiply": lambda v, value: v * value,
    "add": lambda v, value: v + value,
}


def not_held(builder: FeatureBuilder, columns: bool) -> list[str]:
    """The columns whose features a file cannot hold, each with what is made of it.

    Parameters
    ----------
    builder : FeatureBuilder
        The fitted builder.
    columns : bool
        Whether the target holds chains of steps; otherwise it holds columns as they are.

    Returns
    -------
    list of str
        The columns, in words; empty where everything can be held.
    """
    lacking = [one for one in builder._treated if (not _can_be_held(one) if columns else not one.is_plain)]
    more = [f"{len(lacking) - _LISTED} more"] if len(lacking) > _LISTED else []
    return [f"{' and '.join(map(repr, one.columns))} ({one.words:.80})" for one in lacking[:_LISTED]] + more


def _can_be_held(one: Treatment) -> bool:
    """Whether the features of a treatment are chains of steps."""
    if one.needs_queries or "own" in one.steps or one.kind in ("numbers", "texts"):
        return False
    if "scale" in one.steps and type(one.steps["scale"]).__name__ not in _SCALERS:
        return False
    levels = one.steps["encode"].categories_[0].tolist() if "encode" in one.steps else []
    # control characters and undecoded bytes have no spelling that all parsers read alike
    return not any(unicodedata.category(sign) in ("Cc", "Cs") for level in levels for sign in level)


def _numeric(one: Treatment) -> list[tuple[ColumnStep, ...]]:
    """The chains of a number: its value, as often as the builder repeats it, and the indicator of gaps."""
    steps = [ColumnStep("before", one.reading["latest"])] if one.kind == "date" else []
    fill = one.steps.get("fill")
    if fill is not None:
        steps.append(ColumnStep("fill", float(fill.statistics_[0])))
    if one.log:
        steps.append(ColumnStep("log"))
    if "scale" in one.steps:
        steps += _scaler_steps(one.steps["scale"])
    made = [tuple(steps)] * max(1, len(one.within))
    if fill is not None and fill.indicator_ is not None and len(fill.indicator_.features_):
        made.append((ColumnStep("missing"),))
    return made


def _scaler_steps(scaler: Any) -> list[ColumnStep]:
    """The steps of a scaler, in its own order, for the same bits."""
    kind = type(scaler).__name__
    if kind == "MinMaxScaler":
        return [ColumnStep("multiply", float(scaler.scale_[0])), ColumnStep("add", float(scaler.min_[0]))]
    center = scaler.mean_ if kind == "StandardScaler" else scaler.center_
    return [ColumnStep("subtract", float(center[0])), ColumnStep("divide", float(scaler.scale_[0]))]


def _encoder_steps(encoder: Any) -> list[ColumnStep]:
    """One step per feature of an encoder: what it makes of every level, and of a text that it does not know."""
    levels = encoder.categories_[0]
    rows = np.empty((len(levels) + 1, 1), dtype=object)
    rows[:-1, 0], rows[-1, 0] = levels, "?" + "".join(levels.tolist())  # the last one is longer than any level
    table = np.asarray(encoder.transform(rows), dtype=np.float64)
    made = []
    for column in table.T.tolist():
        *values, other = column
        known = tuple((level, value) for level, value in zip(levels.tolist(), values, strict=True) if value != other)
        made.append(ColumnStep("level", other, known))
    return made


_NOTES = {
    "date": "is a date: give its days since 1970-01-01 as a number",
    "boolean": "is a number: 1 for true and yes, 0 for false and no",
    "amount": "is an amount: give its number without the unit",
    "category": "is a text: levels are compared letter by letter, and upper case counts",
}


def _notes(one: Treatment) -> list[str]:
    """How a column has to be given."""
    if one.kind not in _NOTES:
        return []
    note, own = f"column {one.columns[0]!r} {_NOTES[one.kind]}", f"{one.columns[0]}_unit"
    with_unit = one.kind == "amount" and "encode" in one.steps
    return [f"{note}, and the unit in lower case as a column of its own, {own!r}" if with_unit else note]
