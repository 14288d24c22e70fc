"""FRank: steps on single features that lower the fidelity loss of pairs, each as far as is best."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from rankwise._kernels import drive
from rankwise.rankers.boosting.candidates import Candidates, GradedLists
from rankwise.rankers.boosting.steps import TIE, Step, ThresholdRanker, first_largest, on_grain

Vector = NDArray[np.float64]


# ------------------------------------------------------------------------------------------------------ fidelity step
# How far a step goes, by the fidelity loss of the pairs that it tells apart.
#
# These are given as ``counts``, the weights of pairs by their margins d: counts[0] of those that the step orders
# rightly,
# counts[1] of those that it orders wrongly. The loss after the step is the sum of counts[0] phi(d + alpha) and
# counts[1]
# phi(d - alpha).


# Margins of pairs are counted on this grid. Between its points phi is taken as a straight line, which changes it by
# less than WIDTH^2 / 8 times the largest of its second derivatives, 0.1: 2e-7 a pair.
WIDTH = 1.0 / 256.0
# phi is flat to 1e-6 where a margin beyond this meets the largest alpha
FARTHEST = 40.0
NODES = 2 * round(FARTHEST / WIDTH) + 1
# No alpha is larger: a step that orders all its pairs rightly would go on for ever.
LARGEST = 10.0
_COARSE = 32  # nodes between the alphas that are tried first
_HALVINGS = 24  # of the quarter around the best of them: alpha is known to 1e-8


def fidelity(d: Vector) -> Vector:
    """phi(d) = 1 - sqrt(sigmoid(d)) = sigmoid(-d) / (1 + sqrt(sigmoid(d))), without cancellation."""
    up, down = _sigmoids(d)
    return np.asarray(down / (1 + np.sqrt(up)))


def slope(d: Vector) -> Vector:
    """-phi'(d) = 0.5 sqrt(sigmoid(d)) sigmoid(-d)."""
    up, down = _sigmoids(d)
    return np.asarray(0.5 * np.sqrt(up) * down)


def _sigmoids(d: Vector) -> tuple[Vector, Vector]:
    """(sigmoid(d), sigmoid(-d)) without overflow."""
    z = np.exp(-np.abs(d))
    near, far = 1 / (1 + z), z / (1 + z)
    return np.where(d >= 0, near, far), np.where(d >= 0, far, near)


_MARGIN: Vector = WIDTH * (np.arange(NODES) - NODES // 2).astype(np.float64)
_REACH = round(LARGEST / WIDTH)
_TABLE = fidelity(WIDTH * (np.arange(NODES + 2 * _REACH) - NODES // 2 - _REACH).astype(np.float64))


def loss_change(counts: Vector, alpha: float) -> float:
    """By how much a step of this length changes the loss."""
    right, wrong = _occupied(counts[0]), _occupied(counts[1])
    before = _sum(fidelity, right, 0.0) + _sum(fidelity, wrong, 0.0)
    return _sum(fidelity, right, alpha) + _sum(fidelity, wrong, -alpha) - before


def bound_alpha(counts: Vector) -> float:
    """0.5 ln(W+ / W-), W the sums of slopes over either kind of pairs; never beyond :data:`LARGEST`."""
    right, wrong = (_sum(slope, _occupied(side), 0.0) for side in counts)
    if not min(right, wrong) > 0:
        return math.copysign(LARGEST, right - wrong) if right != wrong else 0.0
    return min(max(0.5 * math.log(right / wrong), -LARGEST), LARGEST)


def exact_alpha(counts: Vector) -> float:
    """The alpha of the lowest loss.

    The loss is not convex in alpha, and may have several valleys: alphas from -10 to 10 are tried in steps of 1/8,
    and the valley around the best of them is gone down to its bottom by halving where the slope changes its sign.
    """
    right, wrong = _occupied(counts[0]), _occupied(counts[1])
    tried = range(-_REACH, _REACH + 1, _COARSE)
    values = [_at_node(right, shift) + _at_node(wrong, -shift) for shift in tried]
    best = int(np.argmin(values))
    low, high = (WIDTH * tried[min(max(best + way, 0), len(tried) - 1)] for way in (-1, 1))
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        falls = _sum(slope, right, middle) > _sum(slope, wrong, -middle)
        low, high = (middle, high) if falls else (low, middle)
    refined = 0.5 * (low + high)
    loss = _sum(fidelity, right, refined) + _sum(fidelity, wrong, -refined)
    return refined if loss < values[best] else WIDTH * tried[best]


Occupied = tuple[int, Vector]


def _occupied(count: Vector) -> Occupied:
    """(first node, counts from there on) without the empty ends."""
    found = np.flatnonzero(count)
    return (int(found[0]), count[found[0] : found[-1] + 1]) if len(found) else (0, count[:0])


def _sum(function: Callable[[Vector], Vector], side: Occupied, shift: float) -> float:
    first, count = side
    return float(np.dot(count, function(np.add(_MARGIN[first : first + len(count)], shift))))


def _at_node(side: Occupied, shift: int) -> float:
    """The sum of phi after a shift by whole nodes, from a table."""
    first, count = side
    at = first + _REACH + shift
    return float(np.dot(count, _TABLE[at : at + len(count)]))


# Sums of slopes below this are 0: what is left is rounding, and a root would make it large.
_FAINT = 1e-13


@dataclass(eq=False, repr=False, kw_only=True)
class FRank(ThresholdRanker):
    r"""s(x) = sum_t alpha_t 1[x_f > theta], grown to lower sum_q c_q mean over pairs of phi(s_i - s_j).

    phi(d) = 1 - sqrt(sigmoid(d)) is the fidelity loss of a pair of the same query whose label_i is above label_j: it
    lies between 0 and 1, so that a pair that cannot be won costs 1 at most, however far it is lost; c_q are the weights
    of the queries, divided by their sum.

    Parameters
    ----------
    measure : by which the round to keep is chosen on a validation set, and what ``score`` reports
    rounds : at most so many steps
    thresholds : at most so many candidates a feature, as for :class:`RankBoost`
    choice : which candidate a round takes, "gain" or "gradient"; see below
    step : "bound": the alpha of the lowest upper bound of the loss, as Tsai et al. have it; "exact": that of the lowest
        loss, which goes up to four times as far, and on small judged data learns less that lasts
    patience : stop after so many rounds without a better measure on the validation set
    n_jobs, verbose, missing : as for :class:`SLAMPerceptron`; the bits do not depend on ``n_jobs``

    Attributes
    ----------
    steps_ : feature, threshold and alpha of the steps that are kept
    rounds_ : how many these are: up to the best round on the validation set, the first of equals; all without one
    history_ : round, feature, threshold, alpha, gain (by which the candidate was chosen), loss, train and validation
        measure; it draws itself

    Notes
    -----
    With u = exp(s_j - s_i), phi = 1 - (1 + u)^-1/2 is concave in u. A step multiplies u by exp(-alpha) where it orders
    a pair rightly and by exp(alpha) where wrongly, so with w = 0.5 u (1 + u)^-3/2 and its sums W+ and W- over the two
    kinds of pairs the loss changes by at most W+ (exp(-alpha) - 1) + W- (exp(alpha) - 1). This bound is lowest at
    alpha = 0.5 ln(W+ / W-), where it is -(sqrt(W+) - sqrt(W-))^2. "gain" takes the candidate for which that is most, in
    O(pairs x features) a round; W+ and W- need every pair, for w is not a product of what belongs to either document.
    "gradient" takes the largest abs(W+ - W-), in O(pairs + documents x features). Memory beside the documents' is one
    number a pair of the longest list. Ties are broken as by :class:`RankBoost`.

    The loss is not convex in alpha (phi is concave where s_i - s_j < -ln 2), so the exact alpha is searched for along
    the whole of -10 to 10; no alpha goes further. For it the margins of pairs are counted to 1/256, which changes a
    loss by 2e-7 at most. Rounds end early when no step lowers the loss.

    References
    ----------
    Tsai, Liu, Qin, Chen, Ma: FRank, a ranking method with fidelity loss (2007).
    """

    name = "FRank"
    own_columns = ("gain", "loss")
    options: ClassVar = {"choice": ("gain", "gradient"), "step": ("bound", "exact")}
    drawn = ("train", "validation", "loss")

    choice: Literal["gain", "gradient"] = "gain"
    step: Literal["bound", "exact"] = "bound"

    @classmethod
    def examples(cls) -> Sequence[Self]:
        return cls(rounds=4), cls("AP", rounds=3, thresholds=3, choice="gradient", step="exact")

    def _begin(self, lists: GradedLists, candidates: Candidates) -> Callable[[Vector], Step | None]:
        pairs = _FidelityPairs(lists, candidates, self.n_jobs)
        judge = pairs.gains if self.choice == "gain" else pairs.gradients
        length = exact_alpha if self.step == "exact" else bound_alpha
        loss = 1.0 - np.sqrt(0.5)  # of every pair, while all scores are equal

        def next_step(score: Vector) -> Step | None:
            nonlocal loss
            own = score[: lists.n_paired]
            every = judge(own)
            candidate = first_largest(every)
            if every[candidate] <= TIE:
                return None
            counts = pairs.margins(own, candidates.above(candidate)[: lists.n_paired])
            alpha = on_grain(length(counts))
            change = loss_change(counts, alpha)
            if not change < 0:
                return None
            loss += change
            return Step(candidate, alpha, (float(every[candidate]), loss))

        return next_step


class _FidelityPairs:
    """Sums over the pairs of graded lists, in fixed parts whose results are added in order."""

    def __init__(self, lists: GradedLists, candidates: Candidates, n_jobs: int | None) -> None:
        self.lists, self.candidates, self.n_jobs = lists, candidates, n_jobs
        share = lists.weight / lists.weight.max(initial=0.0)  # first by the largest: no sum overflows
        self.weight = share / share.sum() / lists.pairs
        self.features = len(candidates.start) - 1
        self.pairs = int(lists.pairs.sum())
        self.potential = np.zeros(lists.n_paired)

    def gains(self, score: Vector) -> Vector:
        """(sqrt(W+) - sqrt(W-))^2 of every candidate."""
        from rankwise._kernels.fidelity import slopes_by_candidate

        lists, start, bins = self.lists, self.candidates.start, self.candidates.bins

        def part(first: int, last: int) -> Vector:
            rises = np.zeros(len(self.candidates) + self.features)
            slopes_by_candidate(
                first, last, score, lists.segment, lists.lists, self.weight, bins, start, self.potential, rises
            )
            return rises

        rises = reduce(add, drive.run(part, lists.chunks(self.pairs * self.features), self.n_jobs))
        place = np.arange(len(self.candidates)) + np.repeat(np.arange(self.features), np.diff(start))
        right = np.cumsum(rises)[place]  # a feature's rises add up to 0: what comes before does not count
        wrong = right - self._differences()
        up, down = (np.sqrt(np.where(slopes < _FAINT, 0.0, slopes)) for slopes in (right, wrong))
        return np.asarray((up - down) ** 2)

    def gradients(self, score: Vector) -> Vector:
        """abs(W+ - W-) of every candidate."""
        from rankwise._kernels.fidelity import potentials

        lists = self.lists

        def part(first: int, last: int) -> None:
            potentials(first, last, score, lists.segment, lists.lists, self.weight, self.potential)

        drive.run(part, lists.chunks(self.pairs), self.n_jobs)
        return np.abs(self._differences())

    def _differences(self) -> Vector:
        return self.candidates.sums_above(self.potential, self.n_jobs)

    def margins(self, score: Vector, above: NDArray[np.bool_]) -> Vector:
        """The weights of pairs that a step tells apart, rightly and wrongly, by their margins."""
        from rankwise._kernels.fidelity import count_margins

        lists = self.lists

        def part(first: int, last: int) -> Vector:
            counts = np.zeros((2, NODES))
            count_margins(first, last, score, above, lists.segment, lists.lists, self.weight, WIDTH, counts)
            return counts

        return reduce(add, drive.run(part, lists.chunks(self.pairs), self.n_jobs))
