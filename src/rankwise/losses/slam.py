"""SLAM: listwise large-margin losses that bound NDCG, NDCG@k or AP, and their weights.

SLAM adds up, over documents, a weight v_i times the hinge against the best-scored document of a smaller label. The
weights depend on the labels alone; they state how much the measure loses if a less relevant document is ranked above
document i. Below, i counts documents by decreasing label, r of m documents are relevant, G are gains, D_k discounts cut
at k, and Z_k is the ideal DCG@k.

================== ======================================== ===========================================
rule               v_i                                      source
================== ======================================== ===========================================
ndcg_tight         (G_i - G_min) (D_k(i) - D_k(m)) / Z_k    tightest; equals ndcg_000 at k = m
ndcg_000           (G_i - G_min) (D(i) - D(m)) / Z          [1]_, equation (9); whole list only
ndcg_003           G_i D_k(i) / Z_k                         [2]_, equations (11) and (24)
ap_000             (1/r) (m - r) / (m - r + i), relevant    [1]_, equation (6)
ap_003             1/r, relevant                            [2]_, equation (10)
ap_sym             the sum of ap_000, shared equally        the same sum, no document preferred
ndcg_*_sym         averaged inside each label class
================== ======================================== ===========================================

A rule must not look at scores: weights that follow the scores inside a class would make the loss non-convex. With each
of these rules the pessimistic loss of the measure is at most the sum of v over the documents that a less relevant one
outscores, so SLAM is an upper bound.

Losses that compare a document with the best of the lower classes, SLAM and :class:`~rankwise.losses.MaxPair`, visit the
documents of a query from the lowest class up. This path depends on the labels alone and is computed once: one number
per document, its index in the query, plus one half where a class begins.

References
----------
.. [1] S. Chaudhuri, A. Tewari (2014). Perceptron-like algorithms and generalization bounds for learning to rank.
       arXiv:1405.0591.
.. [2] S. Chaudhuri, A. Tewari (2015). Perceptron-like algorithms for online learning to rank. arXiv:1508.00842.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self, get_args

import numpy as np

from rankwise._kernels import parallel
from rankwise._kernels.machine.jit import kernel
from rankwise._kernels.ragged import GRADES, number_classes
from rankwise._parameters import NonNegativeFloat, PositiveInt
from rankwise.errors import RankwiseError
from rankwise.losses._base import Loss, Rows, Vector
from rankwise.losses.compute import label_classes
from rankwise.measures import AP, NDCG
from rankwise.measures._base import Measure
from rankwise.measures.ndcg import ANY_RELEVANCE, discounts, gains, relevance, settle_gains

Rule = Literal["ndcg_tight_sym", "ndcg_tight", "ndcg_003", "ndcg_003_sym", "ndcg_000", "ap_sym", "ap_003", "ap_000"]
RULES: tuple[Rule, ...] = get_args(Rule)
# Codes of the rules in compiled code.
KINDS = {"ndcg_003": 0, "ndcg_tight": 1, "ap_003": 2, "ap_000": 3}
_SMALLEST = np.nextafter(0.0, 1.0)


@kernel(inline="always")
def class_layout(grade, n_grades, first, count):
    """Fill ``first``, the documents ranked before each class when labels decrease, and ``count``, their sizes."""
    for c in range(n_grades):
        count[c] = 0
    for i in range(len(grade)):
        count[grade[i]] += 1
    first[n_grades - 1] = 0
    for c in range(n_grades - 1, 0, -1):
        first[c - 1] = first[c] + count[c]


@kernel(inline="always")
def position_weights(kind, n_grades, first, count, gain, discount, v):
    """v by position, labels decreasing; ``gain`` by class, ``discount`` 0 from the cut-off on."""
    size = len(v)
    if kind >= 2:
        relevant = first[0]  # classes above the lowest, of which binary labels have one
        for p in range(relevant):
            v[p] = 1.0 / relevant if kind == 2 else (size - relevant) / (size - relevant + p + 1) / relevant
        return
    depth = size
    while depth > 0 and discount[depth - 1] == 0.0:  # nothing below the cut-off counts
        depth -= 1
    ideal = 0.0
    for c in range(n_grades - 1, -1, -1):
        for p in range(first[c], min(first[c] + count[c], depth)):
            ideal += gain[c] * discount[p]
    if ideal <= 0.0:
        return
    lost, last = (0.0, 0.0) if kind == 0 else (gain[0], discount[size - 1])
    for c in range(n_grades - 1, -1, -1):
        for p in range(first[c], min(first[c] + count[c], depth)):
            v[p] = (gain[c] - lost) * (discount[p] - last) / ideal


@kernel(inline="always")
def average_inside_classes(n_grades, first, count, v):
    """Give every document of a class the mean weight of its class: the symmetric form of a rule."""
    for c in range(n_grades):
        total = 0.0
        for p in range(first[c], first[c] + count[c]):
            total += v[p]
        for p in range(first[c], first[c] + count[c]):
            v[p] = total / count[c]


@kernel(inline="always")
def lay_out(grade, n_grades, first, count, seen, low, rows, way_of_row):
    """The path through one query from the lowest class up; inside a class documents keep their order.

    It is written to the rows of the query, which begin at ``low``.
    """
    for c in range(n_grades):
        seen[c] = 0
    for i in range(len(grade)):
        c = grade[i]
        p = low + len(grade) - first[c] - count[c] + seen[c]
        way_of_row[p if len(rows) == 0 else rows[p]] = i if seen[c] > 0 else i + 0.5
        seen[c] += 1


@kernel
def weigh_lists(start, rows, classes, value, discount, kind, symmetric, way_of_row, weight_of_row):
    """The path through every query, and the weight v of every row; weights are 0 where every order is perfect.

    ``classes`` are those of the labels, ``value`` holds gains for NDCG and relevance for AP; no ``rows``: rows are
    grouped by query.
    """
    longest = len(discount)
    own, grade_buffer = np.empty(longest, np.int64), np.empty(longest, np.int64)
    first, count, buffer = (
        np.empty(longest, np.int64),
        np.empty(longest, np.int64),
        np.empty(longest + GRADES, np.int64),
    )
    gain, weights = np.empty(longest), np.empty(longest)
    for q in range(len(start) - 1):
        low, size = start[q], start[q + 1] - start[q]
        if size == 0:
            continue
        for i in range(size):
            own[i] = classes[low + i if len(rows) == 0 else rows[low + i]]
        grade, v = grade_buffer[:size], weights[:size]
        n_grades = number_classes(own[:size], grade, buffer)
        class_layout(grade, n_grades, first, count)
        for i in range(size):
            gain[grade[i]] = value[low + i if len(rows) == 0 else rows[low + i]]
            v[i] = 0.0
        if n_grades > 1:
            position_weights(kind, n_grades, first, count, gain, discount[:size], v)
        if symmetric:
            average_inside_classes(n_grades, first, count, v)
        lay_out(grade, n_grades, first, count, buffer, low, rows, way_of_row)
        for i in range(size):
            weight_of_row[low + i if len(rows) == 0 else rows[low + i]] = v[first[grade[i]]]
            first[grade[i]] += 1  # documents of a class take its positions in their own order


@kernel
def lay_out_lists(start, rows, classes, longest, way_of_row):
    """The path through every query; no ``rows``: rows are grouped by query."""
    own, grade_buffer = np.empty(longest, np.int64), np.empty(longest, np.int64)
    first, count, buffer = (
        np.empty(longest, np.int64),
        np.empty(longest, np.int64),
        np.empty(longest + GRADES, np.int64),
    )
    for q in range(len(start) - 1):
        low, size = start[q], start[q + 1] - start[q]
        if size == 0:
            continue
        for i in range(size):
            own[i] = classes[low + i if len(rows) == 0 else rows[low + i]]
        grade = grade_buffer[:size]
        n_grades = number_classes(own[:size], grade, buffer)
        class_layout(grade, n_grades, first, count)
        lay_out(grade, n_grades, first, count, buffer, low, rows, way_of_row)


@kernel(inline="always")
def class_end(way, p):
    """Where the class that begins at ``p`` of the path ends."""
    p += 1
    while p < len(way) and way[p] == np.floor(way[p]):
        p += 1
    return p


@kernel(inline="always")
def first_with(wanted, score, way, p, end):
    """The first document of a class, ``way[p:end]``, that has the score ``wanted``."""
    while p < end - 1 and score[int(way[p])] != wanted:
        p += 1
    return int(way[p])


@kernel
def slam_formula(score, label, value, grad, table, params):
    """SLAM; ``label`` holds the path through the query from the lowest class up, ``value`` the weights v."""
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
                v = v if slack > least else 0.0  # a select, not a branch, which would be mispredicted
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
    weights : str, default="ndcg_tight_sym"
        The rule for v. "ndcg_tight_sym", "ndcg_tight", "ndcg_003", "ndcg_003_sym" and "ndcg_000" bound NDCG or NDCG@k;
        "ap_sym", "ap_003" and "ap_000" bound AP. See :mod:`rankwise.losses.slam`.
    k : int, default=None
        Cut-off of NDCG@k; None for the whole list.
    margin : float, default=1.0
        1 for the bound; 0 for the scale-free perceptron, whose active documents include those that tie.
    gain : str or mapping, default="exp2"
        The gain of the measure that is bounded, as in :class:`~rankwise.measures.NDCG`.
    discount : str or sequence of float, default="log2"
        The discount of the measure that is bounded, as in :class:`~rankwise.measures.NDCG`.
    rel : float, default=None
        The smallest relevant label for AP; None: every label above 0.

    Notes
    -----
    The loss is convex because the weights never look at scores. It takes O(m) once the classes and weights of a query
    are known, which takes a sort of its labels. G1 <= 2 sum v <= 2. With margin 1 the loss bounds 1 - NDCG@k (or
    1 - AP) under pessimistic ties; with a margin d < 1 it bounds d times that.

    References
    ----------
    S. Chaudhuri, A. Tewari (2014). Perceptron-like algorithms and generalization bounds for learning to rank.
    arXiv:1405.0591.

    S. Chaudhuri, A. Tewari (2015). Perceptron-like algorithms for online learning to rank. arXiv:1508.00842.

    Examples
    --------
    >>> value, gradient = SLAM(weights="ndcg_003")([0.3, 0.1, 0.9, 0.3, -0.2], [2, 0, 1, 0, 3])
    >>> round(value, 6)
    1.908747
    """

    weights: Rule = "ndcg_tight_sym"
    k: PositiveInt | None = None
    margin: NonNegativeFloat = 1.0
    gain: Any = "exp2"
    discount: Any = "log2"
    rel: float | None = None

    name = "SLAM"
    convex = True
    perceptron_bound = "weights"
    kernel = slam_formula

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.k is not None and (self.weights == "ndcg_000" or self.is_ap):
            raise RankwiseError(f"the weights ndcg_tight and ndcg_003, and only these, take a cut-off, got {self!r}")
        settle_gains(self)

    @property
    def is_ap(self) -> bool:
        """Whether the weights are those of average precision."""
        return self.weights.startswith("ap_")

    def row_values(self, labels: Vector) -> Vector:
        """Gains for NDCG, 0/1 relevance for AP."""
        if self.is_ap:
            return relevance(labels, self.rel)
        return gains(labels, self.gain)

    def prepare(self, labels: Vector, start: Rows, rows: Rows | None) -> tuple[Vector, Vector]:
        """The path through every query, and the weights v."""
        rule = self.weights.removesuffix("_sym")
        kind = KINDS[{"ap": "ap_000", "ndcg_000": "ndcg_tight"}.get(rule, rule)]
        values = self.row_values(labels)
        longest = int(np.diff(start).max(initial=0))
        discount = discounts(longest, self.discount)
        if self.k is not None:
            discount[self.k :] = 0.0
        way, v = np.empty(len(labels)), np.empty(len(labels))
        every = np.empty(0, np.int64) if rows is None else rows
        classes = label_classes(values if self.is_ap else labels, start, rows)
        symmetric = self.weights.endswith("_sym")

        def weigh(first: int, last: int) -> None:
            own = start[first : last + 1]
            weigh_lists(own, every, classes, values, discount, kind, symmetric, way, v)

        parallel.map_chunks(weigh, list(parallel.query_chunks(start)))
        return way, v

    def params(self) -> tuple[float, ...]:
        """The parameters as the kernel reads them."""
        return (self.margin,)

    def lipschitz_l1(self, m: int) -> float:
        """G1 of queries of at most ``m`` documents; see :meth:`Loss.lipschitz_l1` and Notes."""
        return 2.0 if m > 1 else 0.0

    def range(self, b: float, m: int, labels: tuple[float, float] = (0.0, 4.0)) -> tuple[float, float]:
        """Smallest and largest value for scores in [-b, b]; see :meth:`Loss.range`."""
        return 0.0, self.margin + 2 * b

    @property
    def order_free(self) -> bool:
        """True for weights that are the same inside a label class: the symmetric ones and ap_003."""
        return self.weights.endswith("_sym") or self.weights == "ap_003"

    @property
    def upper_bounds(self) -> Measure | None:
        """The measure whose loss this loss bounds; see :attr:`Loss.upper_bounds`."""
        if self.margin < 1:
            return None
        if self.is_ap:
            return AP(rel=ANY_RELEVANCE if self.rel is None else self.rel)
        return NDCG(gain=self.gain, discount=self.discount, cutoff=self.k)

    @classmethod
    def for_measure(cls, measure: Measure, weights: str | None = None, margin: float = 1.0) -> "SLAM":
        """The SLAM loss that upper-bounds 1 - measure at margin 1.

        Parameters
        ----------
        measure : Measure
            nDCG, nDCG@k or AP.
        weights : str, default=None
            The rule for v; None is "ndcg_tight_sym" or "ap_sym".
        margin : float, default=1.0
            The margin.

        Returns
        -------
        loss : SLAM
            The loss.

        Raises
        ------
        RankwiseError
            If there is none for this measure and these weights.
        """
        rule: Any = weights or ("ap_sym" if isinstance(measure, AP) else "ndcg_tight_sym")  # the loss checks it
        loss = None
        if isinstance(measure, NDCG):
            loss = cls(weights=rule, k=measure.cutoff, margin=margin, gain=measure.gain, discount=measure.discount)
        elif isinstance(measure, AP):
            loss = cls(weights=rule, margin=margin, rel=measure.rel)
        if loss is None or loss.at_margin(1.0).upper_bounds != measure:
            chosen = "" if weights is None else f" with the weights {weights!r}"
            raise RankwiseError(
                f"SLAM bounds nDCG, nDCG@k and AP, each with weights of its own, got {measure!r}{chosen}; "
                "MaxPairPerceptron takes any measure"
            )
        return loss

    @classmethod
    def bounding(cls, measure: Measure) -> "SLAM | None":
        """The loss of :meth:`for_measure`; None for other measures."""
        try:
            return cls.for_measure(measure)
        except RankwiseError:
            return None

    @classmethod
    def examples(cls) -> Sequence[Self]:
        """The variants that the common tests run on."""
        whole = [cls(weights=rule) for rule in RULES]
        cut = [cls(weights=rule, k=k) for rule in ("ndcg_tight_sym", "ndcg_tight", "ndcg_003") for k in (1, 3)]
        return (*whole, *cut, cls(margin=0.5), cls(gain="linear", discount="letor"), cls(weights="ap_sym", rel=2))
