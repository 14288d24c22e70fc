"""Gains of labels and discounts of positions: G(l) = 2^l - 1 and D(p) = 1 / log2(1 + p) unless told otherwise."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rankwise._errors import MeasureError, warn
from rankwise.measures._base import Vector

# A sum of gains of any list that fits into memory stays finite below this. (An infinite one is NaN in nDCG, which
# stands for a list without gains.)
LARGEST_GAIN = 1e300

# Graded scales end far below this: LightGBM's gains end at label 30, XGBoost's at 31.
LARGEST_USUAL_LABEL = 30.0

# 2^l - 1 of the grades that labels mostly are: looked up three times as fast as worked out.
_OF_GRADES = np.exp2(np.arange(64.0)) - 1.0

Table = tuple[tuple[float, float], ...]


def as_gain(gain: Any) -> "str | Table":
    """'exp2', 'linear', or a table label -> gain (mapping or sequence), checked to be nondecreasing and >= 0."""
    if isinstance(gain, str):
        if gain not in ("exp2", "linear"):
            raise MeasureError(f"gain is 'exp2', 'linear' or a table of gains by label: found {gain!r}")
        return gain
    try:
        if isinstance(gain, Mapping):
            pairs = gain.items()
        elif isinstance(gain, Sequence) and gain and not isinstance(gain[0], (tuple, list)):
            pairs = dict(enumerate(gain)).items()
        else:
            pairs = dict(gain).items()
        table = tuple(sorted((float(label), float(value)) for label, value in pairs))
    except (TypeError, ValueError, OverflowError) as error:
        raise MeasureError(f"gain is 'exp2', 'linear' or a table of gains by label: found {gain!r:.60}") from error
    values = [value for _, value in table]
    if not table or min(values) < 0 or not max(values) < LARGEST_GAIN or values != sorted(values):
        raise MeasureError(f"a table of gains is not negative and grows with the label: found {dict(table)}")
    return table


def exp2_less_1(labels: Vector) -> Vector:
    """2^l - 1 of every label, to the last digits even for labels close to 0, where 2^l is close to 1."""
    return np.where(labels < 1.0, np.expm1(np.minimum(labels, 1.0) * np.log(2.0)), np.exp2(labels) - 1.0)


def gains(labels: Vector, gain: "str | Table") -> Vector:
    """G of every label; labels beyond the gain's range are refused, with another gain offered."""
    if isinstance(gain, str):
        largest = labels.max(initial=0.0)
        if gain == "linear":
            if largest > LARGEST_GAIN:
                raise MeasureError(f"the linear gain takes labels up to {LARGEST_GAIN:g}: found {largest:g}")
            return labels
        if largest > np.log2(LARGEST_GAIN):
            raise MeasureError(
                f"the gain 2^label - 1 overflows at label {largest:g}: use the linear gain, nDCG(dcg='log2'), "
                "or a table of gains, NDCG(gain={label: gain, ...})"
            )
        if largest > LARGEST_USUAL_LABEL:
            warn(
                f"the gain 2^label - 1 is {2.0**largest:.2g} at label {largest:g}, so that the largest labels decide "
                "alone: labels that are no grades need the linear gain, nDCG(dcg='log2'), or a table of gains"
            )
        if largest < len(_OF_GRADES):
            grade = labels.astype(np.intp)
            if np.array_equal(grade, labels):
                return np.asarray(_OF_GRADES[grade])
        return exp2_less_1(labels)
    known = np.array([label for label, _ in gain])
    place = np.minimum(np.searchsorted(known, labels), len(known) - 1)
    if len(labels) and not np.array_equal(known[place], labels):
        stranger = labels[known[place] != labels][0]
        raise MeasureError(f"label {stranger:g} is not in the table of gains, which knows {known.tolist()}")
    return np.array([value for _, value in gain])[place]


def as_discount(discount: Any) -> "str | tuple[float, ...]":
    """'log2', 'letor' (the first two positions undiscounted), or the discounts of positions 1, 2, ..."""
    if isinstance(discount, str):
        if discount not in ("log2", "letor"):
            raise MeasureError(f"discount is 'log2', 'letor' or the values by position: found {discount!r}")
        return discount
    try:
        values = tuple(float(value) for value in discount)
    except (TypeError, ValueError, OverflowError) as error:
        raise MeasureError(f"discount is 'log2', 'letor' or the values by position: found {discount!r:.60}") from error
    finite = all(0 <= value <= LARGEST_GAIN for value in values)  # neither NaN nor infinite
    if not values or not finite or values[0] <= 0 or list(values) != sorted(values, reverse=True):
        raise MeasureError(f"discounts begin above 0, are finite, not negative and never grow: found {values}")
    return values


def discounts(longest: int, discount: "str | tuple[float, ...]") -> Vector:
    """D of positions 1 .. longest; 0 beyond the end of a list of values."""
    if isinstance(discount, str):
        position = np.arange(1, longest + 1, dtype=np.float64)
        return 1.0 / np.log2(position + 1 if discount == "log2" else np.maximum(position, 2))
    table = np.zeros(longest)
    given = np.array(discount[:longest])
    table[: len(given)] = given
    return table
