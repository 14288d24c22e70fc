"""What labels and positions are worth: gains, relevance and discounts.

By default the gain of a label l is G(l) = 2^l - 1 and the discount of a position p is D(p) = 1 / log2(1 + p). Measures
and losses accept other gains and discounts; :func:`as_gain` and :func:`as_discount` validate them once, in a
constructor, and :func:`gains` and :func:`discounts` evaluate them.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rankwise._errors import MeasureError, warn
from rankwise.measures._base import Vector

# Below this a sum of gains over any query that fits into memory stays finite. An infinite sum would give NaN in nDCG,
# which stands for a query without gains.
LARGEST_GAIN = 1e300

# Graded scales end far below this: LightGBM's gains end at label 30, XGBoost's at 31.
LARGEST_USUAL_LABEL = 30.0

# The smallest number above 0: with it as ``rel`` every label above 0 is relevant.
ANY_RELEVANCE = float(np.nextafter(0.0, 1.0))

# 2^l - 1 of whole grades: a look-up is three times as fast as the power.
_OF_GRADES = np.exp2(np.arange(64.0)) - 1.0

Table = tuple[tuple[float, float], ...]


def as_gain(gain: Any) -> "str | Table":
    """Validate a gain.

    Parameters
    ----------
    gain : str, mapping or sequence
        "exp2", "linear", or the gain of each label as a mapping, a sequence indexed by label, or pairs.

    Returns
    -------
    str or tuple of (float, float)
        The name, or (label, gain) pairs by increasing label; gains are nondecreasing and 0 or more.

    Raises
    ------
    MeasureError
        If it is none of these.
    """
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
    """2^l - 1 of every label, accurate even for labels close to 0, where 2^l is close to 1."""
    return np.where(labels < 1.0, np.expm1(np.minimum(labels, 1.0) * np.log(2.0)), np.exp2(labels) - 1.0)


def settle_gains(owner: Any) -> None:
    """Validate the fields ``gain`` and ``discount`` of a frozen dataclass, and store their canonical form."""
    object.__setattr__(owner, "gain", as_gain(owner.gain))
    object.__setattr__(owner, "discount", as_discount(owner.discount))


def relevance(labels: Vector, rel: float | None) -> Vector:
    """1 for relevant documents, 0 for others; relevant is a label of at least ``rel``, or above 0 if that is None."""
    return np.asarray(labels > 0 if rel is None else labels >= rel, dtype=np.float64)


def gains(labels: Vector, gain: "str | Table") -> Vector:
    """Compute the gain of every label.

    Parameters
    ----------
    labels : ndarray, shape (n_documents,)
        Labels, 0 or more.
    gain : str or tuple of (float, float)
        What :func:`as_gain` returned.

    Returns
    -------
    ndarray, shape (n_documents,)
        Gains.

    Raises
    ------
    MeasureError
        If a label is beyond the range of the gain; the message offers another gain.

    Warns
    -----
    DataWarning
        If 2^label - 1 is used for labels that are too large to be grades.
    """
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
    """Validate a discount.

    Parameters
    ----------
    discount : str or sequence of float
        "log2"; "letor", which does not discount the first two positions; or the discounts of positions 1, 2, ...

    Returns
    -------
    str or tuple of float
        The name, or the values, which begin above 0 and never grow.

    Raises
    ------
    MeasureError
        If it is none of these.
    """
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
    """D of positions 1 to ``longest``, for what :func:`as_discount` returned; 0 beyond the end of given values."""
    if isinstance(discount, str):
        position = np.arange(1, longest + 1, dtype=np.float64)
        return 1.0 / np.log2(position + 1 if discount == "log2" else np.maximum(position, 2))
    table = np.zeros(longest)
    given = np.array(discount[:longest])
    table[: len(given)] = given
    return table
