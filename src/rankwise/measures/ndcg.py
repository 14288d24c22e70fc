"""DCG and its normalised forms: DCG, NDCG, and the LETOR evaluator's mean of NDCG over all cut-offs.

All three share a gain of labels, a discount of positions and their spelling, which follows ir-measures:
``dcg='exp-log2'`` names a gain and a discount together. Inside a block of tied scores the expected DCG gives every
document the mean discount of the block.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from rankwise._errors import MeasureError
from rankwise._kernels.jit import kernel
from rankwise.measures._base import Measure, Vector
from rankwise.measures.gains import LARGEST_GAIN, discounts, gains, settle_gains

# ir-measures' names for a gain and a discount together; the two with 'letor' are rankwise's own.
_DCG = {
    "log2": ("linear", "log2"),
    "exp-log2": ("exp2", "log2"),
    "letor": ("linear", "letor"),
    "exp-letor": ("exp2", "letor"),
}
_DEFAULT_DCG = "exp-log2"


@kernel
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


@kernel
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
            raise MeasureError(f"dcg is one of {', '.join(map(repr, _DCG))}: found {dcg!r}")
        gain, discount = _DCG[dcg]
        if "gains" in given:
            if gain != "linear":
                raise MeasureError(f"gains= replaces the gain, so dcg is 'log2' or 'letor' beside it: found {dcg!r}")
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
    kernel = dcg_formula


@dataclass(frozen=True, kw_only=True, repr=False)
class NDCG(_Discounted):
    """Normalised discounted cumulative gain: NDCG@k = DCG@k / max over orders of DCG@k.

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

    short: str = "allow"

    name = "nDCG"
    kernel = ndcg_formula

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.short not in ("allow", "zero"):
            raise MeasureError(f"short is 'allow' or 'zero': found {self.short!r}")

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
