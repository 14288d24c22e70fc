"""SLAM: listwise large-margin losses that bound NDCG, NDCG@k or AP."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from rankwise._errors import RankwiseError
from rankwise._kernels import drive
from rankwise._kernels.jit import kernel
from rankwise.data.checks import is_number, is_whole, refuse_unless_level
from rankwise.losses._base import Loss, Rows, Vector
from rankwise.losses.slam_weights import KINDS, class_end, first_with, weigh_lists
from rankwise.measures import AP, NDCG
from rankwise.measures._base import Measure
from rankwise.measures.gains import as_discount, as_gain, discounts, gains

RULES = ("ndcg_tight_sym", "ndcg_tight", "ndcg_003", "ndcg_003_sym", "ndcg_000", "ap_sym", "ap_003", "ap_000")
_SMALLEST = np.nextafter(0.0, 1.0)


@kernel
def slam_formula(score, label, value, grad, table, params):
    """``label`` holds the way through the list from the lowest class up, ``value`` the weights v."""
    margin, size = params[0], len(score)
    least = -_SMALLEST if margin == 0.0 else 0.0  # what slack must exceed: without a margin, ties are active
    total, best, rival = 0.0, -np.inf, -1  # the highest score of lower classes, and the first document that has it
    p = 0
    while p < size:
        end = class_end(label, p)
        highest, active = -np.inf, 0.0
        if rival >= 0:
            for t in range(p, end):
                i = int(label[t])
                s, v = score[i], value[i]
                slack = margin + best - s
                v = v if slack > least else 0.0  # chosen, not branched on: nobody can predict it
                total += v * slack
                active += v
                grad[i] = 0.0 - v
                highest = max(highest, s)
            grad[rival] += active
        else:
            for t in range(p, end):
                highest = max(highest, score[int(label[t])])
        if highest >= best and end < size:
            document = first_with(highest, score, label, p, end)
            rival = document if highest > best else min(document, rival)
            best = highest
        p = end
    return total


@dataclass(frozen=True, kw_only=True, repr=False)
class SLAM(Loss):
    r"""phi = sum_i v_i [margin + max over label_j < label_i of s_j - s_i]_+, with weights v of the labels alone.

    Parameters
    ----------
    weights : "ndcg_tight_sym" (default), "ndcg_tight", "ndcg_003", "ndcg_003_sym", "ndcg_000" bound NDCG or NDCG@k;
        "ap_sym", "ap_003", "ap_000" bound AP; see :mod:`rankwise.losses.slam_weights`
    k : cut-off of NDCG@k; None for the whole list
    margin : 1 for the bound; 0 for the scale-free perceptron, whose active documents include those that tie
    gain, discount : those of the measure that is bounded
    rel : the smallest relevant label for AP; None: every label above 0

    Notes
    -----
    Convex, because the weights never look at scores. O(m) once the classes and weights of a list are known, which
    takes a sort of its labels. G1 <= 2 sum v <= 2. It bounds 1 - NDCG@k (or 1 - AP) under pessimistic ties for
    margin 1; margin d < 1 gives d times that.

    Examples
    --------
    >>> value, gradient = SLAM(weights="ndcg_003")([0.3, 0.1, 0.9, 0.3, -0.2], [2, 0, 1, 0, 3])
    >>> round(value, 6)
    1.908747
    """

    weights: str = "ndcg_tight_sym"
    k: int | None = None
    margin: float = 1.0
    gain: Any = "exp2"
    discount: Any = "log2"
    rel: float | None = None

    name = "SLAM"
    convex = True
    kernel = slam_formula

    def __post_init__(self) -> None:
        if self.weights not in RULES:
            raise RankwiseError(f"weights is one of {', '.join(map(repr, RULES))}: found {self.weights!r}")
        if self.k is not None and (not is_whole(self.k) or self.weights == "ndcg_000" or self.is_ap):
            raise RankwiseError(f"a cut-off of 1 or more goes with the ndcg_tight and ndcg_003 weights: found {self!r}")
        if not is_number(self.margin) or not 0 <= self.margin < np.inf:
            raise RankwiseError(f"the margin is 0 or more: found {self.margin!r}")
        refuse_unless_level(self.rel)
        object.__setattr__(self, "gain", as_gain(self.gain))
        object.__setattr__(self, "discount", as_discount(self.discount))

    @property
    def is_ap(self) -> bool:
        """Whether the weights are those of average precision."""
        return self.weights.startswith("ap_")

    def row_values(self, labels: Vector) -> Vector:
        if self.is_ap:
            return np.asarray(labels > 0 if self.rel is None else labels >= self.rel, dtype=np.float64)
        return gains(labels, self.gain)

    def prepare(self, labels: Vector, start: Rows, rows: Rows | None) -> tuple[Vector, Vector]:
        rule = self.weights.removesuffix("_sym")
        kind = KINDS[{"ap": "ap_000", "ndcg_000": "ndcg_tight"}.get(rule, rule)]
        values = self.row_values(labels)
        longest = int(np.diff(start).max(initial=0))
        discount = discounts(longest, self.discount)
        if self.k is not None:
            discount[self.k :] = 0.0
        way, v = np.empty(len(labels)), np.empty(len(labels))
        every = np.empty(0, np.int64) if rows is None else rows
        classes = values if self.is_ap else labels
        symmetric = self.weights.endswith("_sym")

        def weigh(first: int, last: int) -> None:
            own = start[first : last + 1]
            weigh_lists(own, every, classes, values, discount, kind, symmetric, way, v)

        drive.run(weigh, list(drive.query_chunks(start)))
        return way, v

    def params(self) -> tuple[float, ...]:
        return (self.margin,)

    def lipschitz_l1(self, m: int) -> float:
        return 2.0 if m > 1 else 0.0

    def range(self, b: float, m: int, labels: tuple[float, float] = (0.0, 4.0)) -> tuple[float, float]:
        return 0.0, self.margin + 2 * b

    @property
    def order_free(self) -> bool:
        """Only weights that are the same inside a label class, which ap_003's are too."""
        return self.weights.endswith("_sym") or self.weights == "ap_003"

    @property
    def upper_bounds(self) -> Measure | None:
        if self.margin < 1:
            return None
        if self.is_ap:
            return AP(rel=np.nextafter(0.0, 1.0) if self.rel is None else self.rel)
        return NDCG(gain=self.gain, discount=self.discount, cutoff=self.k)

    @classmethod
    def examples(cls) -> Sequence[Self]:
        whole = [cls(weights=rule) for rule in RULES]
        cut = [cls(weights=rule, k=k) for rule in ("ndcg_tight_sym", "ndcg_tight", "ndcg_003") for k in (1, 3)]
        return (*whole, *cut, cls(margin=0.5), cls(gain="linear", discount="letor"), cls(weights="ap_sym", rel=2))
