"""DCG and its normalized forms: DCG, NDCG, and the LETOR evaluator's mean of NDCG over all cut-offs.

All three share a gain of labels, a discount of positions and their spelling, which follows ir-measures:
``dcg='exp-log2'`` names a gain and a discount together. Inside a block of tied scores the expected DCG gives every
document the mean discount of the block.

By default the gain of a label l is G(l) = 2^l - 1 and the discount of a position p is D(p) = 1 / log2(1 + p). Measures
and losses accept other gains and discounts; :func:`as_gain` and :func:`as_discount` validate them once, in a
constructor, and :func:`gains` and :func:`discounts` evaluate them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np

from rankwise._kernels.machine.jit import kernel
from rankwise.errors import MeasureError, warn
from rankwise.measures._base import Measure, Vector

# ------------------------------------------------------------------------------------------------ gains and discounts


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
            raise MeasureError(f"gain must be 'exp2', 'linear' or a table of gains by label, got {gain!r}")
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
        raise MeasureError(f"gain must be 'exp2', 'linear' or a table of gains by label, got {gain!r:.60}") from error
    values = [value for _, value in table]
    if not table or min(values) < 0 or not max(values) < LARGEST_GAIN or values != sorted(values):
        raise MeasureError(f"a table of gains must be nonnegative and grow with the label, got {dict(table)}")
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
                raise MeasureError(f"the linear gain takes labels up to {LARGEST_GAIN:g}, got {largest:g}")
            return labels
        if largest > np.log2(LARGEST_GAIN):
            raise MeasureError(
                f"the gain 2^label - 1 overflows at label {largest:g}: use the linear gain, nDCG(dcg='log2'), "
                "or a table of gains, NDCG(gain={label: gain, ...})"
            )
        if largest > LARGEST_USUAL_LABEL:
            warn(
                f"the gain 2^label - 1 is {2.0**largest:.2g} at label {largest:g}, so the largest labels decide "
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
            raise MeasureError(f"discount must be 'log2', 'letor' or the values by position, got {discount!r}")
        return discount
    try:
        values = tuple(float(value) for value in discount)
    except (TypeError, ValueError, OverflowError) as error:
        raise MeasureError(
            f"discount must be 'log2', 'letor' or the values by position, got {discount!r:.60}"
        ) from error
    finite = all(0 <= value <= LARGEST_GAIN for value in values)  # neither NaN nor infinite
    if not values or not finite or values[0] <= 0 or list(values) != sorted(values, reverse=True):
        raise MeasureError(f"discounts must begin above 0, be finite and nonnegative and never grow, got {values}")
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


# ir-measures' names for a gain and a discount together; the two with 'letor' are rankwise's own.
_DCG = {
    "log2": ("linear", "log2"),
    "exp-log2": ("exp2", "log2"),
    "letor": ("linear", "letor"),
    "exp-letor": ("exp2", "letor"),
}
_DEFAULT_DCG = "exp-log2"


@kernel(inline="always")
def discounted_gain(value, end, retrieved, cut, discount):
    """Sum of gain times discount over the first ``cut`` positions; a tie block takes its mean discount."""
    total = 0.0
    stop = min(retrieved, cut)
    t = 0
    while t < stop:
        e = end[t]
        if e - t == 1:
            total += value[t] * discount[t]
        else:
            gain = 0.0
            for p in range(t, e):
                gain += value[p]
            weight = 0.0
            for p in range(t, min(e, stop)):
                weight += discount[p]
            total += gain * (weight / (e - t))
        t = e
    return total


@kernel(inline="always")
def ideal_gain(best, discount):
    """The largest discounted gain that any order reaches."""
    total = 0.0
    for p in range(len(best)):
        total += best[p] * discount[p]
    return total


@kernel
def dcg_formula(value, end, retrieved, best, table, params):
    """DCG, or NaN without gains."""
    if ideal_gain(best, table) <= 0.0:
        return np.nan
    return discounted_gain(value, end, retrieved, len(best), table)


@kernel
def ndcg_formula(value, end, retrieved, best, table, params):
    """NDCG; ``params`` are the cut-off and whether shorter lists count 0."""
    ideal = ideal_gain(best, table)
    if ideal <= 0.0:
        return np.nan
    if params[1] != 0.0 and len(value) < params[0] < np.inf:
        return 0.0
    return discounted_gain(value, end, retrieved, len(best), table) / ideal


@kernel
def mean_ndcg_formula(value, end, retrieved, best, table, params):
    """The mean of NDCG@1 to NDCG@m."""
    if ideal_gain(best, table) <= 0.0:
        return np.nan
    total = 0.0
    lost = 0.0  # Kahan summation: thousands of nearly equal terms are all rounded the same way
    reached = 0.0
    ideal = 0.0
    t = 0
    for p in range(len(best)):
        if p < retrieved:
            if p == end[t]:
                t = p
            if p == t:
                gain = 0.0
                for i in range(t, end[t]):
                    gain += value[i]
                gain /= end[t] - t
            reached += gain * table[p]
        ideal += best[p] * table[p]
        term = reached / ideal - lost
        longer = total + term
        lost = (longer - total) - term
        total = longer
    return total / len(best)


@dataclass(frozen=True, kw_only=True, repr=False)
class _Discounted(Measure):
    """Base class of the measures of discounted gain: gain, discount, and their spelling."""

    gain: Any = "exp2"
    discount: Any = "log2"

    needs_ideal = True

    def __post_init__(self) -> None:
        super().__post_init__()
        settle_gains(self)

    def row_values(self, labels: Vector) -> Vector:
        """The gains of the labels."""
        values = gains(labels, self.gain)
        if not isinstance(self.discount, str) and values.max(initial=0.0) > LARGEST_GAIN / self.discount[0]:
            raise MeasureError(
                f"a gain of {values.max():g} times a discount of {self.discount[0]:g} is above {LARGEST_GAIN:g}, "
                "where sums overflow: give smaller discounts"
            )
        return values

    def table(self, longest: int) -> Vector:
        """The discounts of the first positions."""
        return discounts(longest, self.discount)

    def spelling(self) -> dict[str, Any]:
        """Parameters as they are printed: ``dcg``, then ``gains`` and ``discount`` where they are tables."""
        gain = self.gain if isinstance(self.gain, str) else "linear"
        discount = self.discount if isinstance(self.discount, str) else "log2"
        spelled: dict[str, Any] = {"dcg": next(name for name, pair in _DCG.items() if pair == (gain, discount))}
        if not isinstance(self.gain, str):
            spelled["gains"] = dict(self.gain)
        if not isinstance(self.discount, str):
            spelled["discount"] = self.discount
        others = {name: value for name, value in super().spelling().items() if name not in ("gain", "discount")}
        return {**spelled, **others}

    def _short_spelling(self) -> dict[str, Any]:
        spelled = self.spelling()
        return {name: value for name, value in spelled.items() if (name, value) != ("dcg", _DEFAULT_DCG)}

    @classmethod
    def from_spelling(cls, cutoff: int | None, parameters: Mapping[str, Any]) -> Self:
        """Make the measure that printed parameters stand for; see :meth:`Measure.from_spelling`."""
        given = dict(parameters)
        given.setdefault("dcg", "log2" if "gains" in given else _DEFAULT_DCG)
        dcg = given.pop("dcg")
        if dcg not in _DCG:
            raise MeasureError(f"dcg must be one of {', '.join(map(repr, _DCG))}, got {dcg!r}")
        gain, discount = _DCG[dcg]
        if "gains" in given:
            if gain != "linear":
                raise MeasureError(f"gains= replaces the gain, so dcg must be 'log2' or 'letor' beside it, got {dcg!r}")
            gain = given.pop("gains")
        return super().from_spelling(cutoff, {"gain": gain, "discount": discount, **given})


@dataclass(frozen=True, kw_only=True, repr=False)
class DCG(_Discounted):
    """Discounted cumulative gain: DCG@k = sum_{p <= k} G(label at p) D(p).

    Parameters
    ----------
    cutoff : int, default=None
        The cut-off k; None for the whole list.
    gain : str or mapping, default="exp2"
        "exp2" (2^l - 1), "linear" (l), or a table of gains by label, such as {0: 0, 1: 1, 2: 5}.
    discount : str or sequence of float, default="log2"
        "log2" (1/log2(1+p)), "letor" (1, 1, 1/log2 3, 1/log2 4, ...), or the values by position.

    Notes
    -----
    The measure is 0/0 if no document has a positive gain.

    References
    ----------
    K. Jarvelin, J. Kekalainen (2002). Cumulated gain-based evaluation of IR techniques. ACM Transactions on Information
    Systems 20(4), 422-446. doi:10.1145/582415.582418.
    """

    name = "DCG"
    at_most_one = False
    kernel = dcg_formula

    @property
    def linear_in_labels(self) -> bool:
        """Whether labels may be unbiased estimates of relevance; see :attr:`Measure.linear_in_labels`."""
        return bool(self.gain == "linear")


@dataclass(frozen=True, kw_only=True, repr=False)
class NDCG(_Discounted):
    """Normalized discounted cumulative gain: NDCG@k = DCG@k / max over orders of DCG@k.

    Parameters
    ----------
    cutoff : int, default=None
        The cut-off k; None for the whole list.
    gain : str or mapping, default="exp2"
        "exp2" (2^l - 1), "linear" (l), or a table of gains by label, such as {0: 0, 1: 1, 2: 5}.
    discount : str or sequence of float, default="log2"
        "log2" (1/log2(1+p)), "letor" (1, 1, 1/log2 3, 1/log2 4, ...), or the values by position.
    short : {"allow", "zero"}, default="allow"
        What a list shorter than the cut-off counts: its own NDCG, or 0 as in the LETOR evaluator.

    Notes
    -----
    The measure is 0/0 if no document has a positive gain. Under ``ties="expected"`` every document of a tie block is
    discounted by the block's mean discount.

    References
    ----------
    K. Jarvelin, J. Kekalainen (2002). Cumulated gain-based evaluation of IR techniques. ACM Transactions on Information
    Systems 20(4), 422-446. doi:10.1145/582415.582418.

    Examples
    --------
    >>> NDCG() @ 10
    nDCG(dcg='exp-log2')@10
    >>> NDCG(gain="linear").title
    "nDCG(dcg='log2')"
    """

    short: Literal["allow", "zero"] = "allow"

    name = "nDCG"
    kernel = ndcg_formula

    def params(self) -> tuple[float, ...]:
        """Whether a list shorter than the cut-off counts 0."""
        return (float(self.short == "zero"),)


@dataclass(frozen=True, kw_only=True, repr=False)
class MeanNDCG(_Discounted):
    """The mean of NDCG@1, ..., NDCG@m over the whole list, as the LETOR evaluator reports it.

    Parameters
    ----------
    cutoff : None
        Not allowed; the measure looks at the whole list.
    gain : str or mapping, default="exp2"
        "exp2" (2^l - 1), "linear" (l), or a table of gains by label, such as {0: 0, 1: 1, 2: 5}.
    discount : str or sequence of float, default="log2"
        "log2" (1/log2(1+p)), "letor" (1, 1, 1/log2 3, 1/log2 4, ...), or the values by position.
    """

    name = "MeanNDCG"
    takes_cutoff = False
    kernel = mean_ndcg_formula
