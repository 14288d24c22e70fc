"""FRank: steps on single features that lower the fidelity loss of pairs.

:class:`FRank` is the ranker. In every round :class:`_FidelityPairs` sums slopes of the loss over all pairs, for every
candidate, and counts the margins of the pairs that the chosen step separates. The functions below it find the length
alpha of the step from these counts.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Literal, Self

import numpy as np

from rankwise._arrays import Mask, Vector
from rankwise._kernels import parallel
from rankwise._kernels.pairs import count_margins, fidelity_potentials, slopes_by_candidate
from rankwise.rankers.boosting.candidates import Candidates, GradedLists
from rankwise.rankers.boosting.steps import TIE, Step, ThresholdRanker, first_largest, on_grain

# Sums of slopes below this are 0: what is left is rounding, which a square root would enlarge.
_FAINT = 1e-13


@dataclass(eq=False, repr=False, kw_only=True)
class FRank(ThresholdRanker):
    r"""A weighted sum of thresholds of features, boosted for the fidelity loss.

    s(x) = sum_t alpha_t 1[x_f > theta], whose steps lower sum_q c_q mean over pairs of phi(s_i - s_j).

    phi(d) = 1 - sqrt(sigmoid(d)) is the fidelity loss of a pair of documents of the same query with label_i above
    label_j. It lies between 0 and 1, so a pair that cannot be ordered rightly costs 1 at most. c_q are the weights
    of the queries, divided by their sum.

    Parameters
    ----------
    measure : str or Measure, default="nDCG@10"
        The measure that selects the round to keep on a validation set; ``score`` reports it.
    rounds : int, default=100
        The largest number of steps.
    thresholds : int, default=255
        The largest number of thresholds per feature, as for :class:`RankBoost`; None takes all midpoints.
    choice : {"gain", "gradient"}, default="gain"
        How a round chooses its candidate; see the notes.
    step : {"bound", "exact"}, default="bound"
        "bound" takes the alpha that minimizes an upper bound of the loss, as Tsai et al. do. "exact" takes the alpha
        that minimizes the loss itself, which is up to four times as large and generalizes less well on small judged
        data.
    patience : int, default=None
        Stop after so many rounds without a better measure on the validation set.
    n_jobs : int, default=None
        Number of threads; None uses all cores. The result does not depend on it.
    verbose : bool, default=False
        Whether to show a progress bar on a terminal.
    missing : {"error", "zero", "min"}, default="error"
        What to do with NaN in arrays.

    Attributes
    ----------
    steps_ : Table
        Feature, threshold and alpha of the steps that are kept.
    rounds_ : int
        Number of steps that are kept: those up to the best round on the validation set, the first of equals; all of
        them without a validation set.
    history_ : History
        One row per round: round, feature, threshold, alpha, gain (by which the candidate was chosen), loss, and the
        measure on training and validation queries.

    Notes
    -----
    With u = exp(s_j - s_i), phi = 1 - (1 + u)^-1/2 is concave in u. A step multiplies u by exp(-alpha) if it orders a
    pair rightly and by exp(alpha) if wrongly. With w = 0.5 u (1 + u)^-3/2 and its sums W+ and W- over the two kinds of
    pairs, the loss therefore changes by at most W+ (exp(-alpha) - 1) + W- (exp(alpha) - 1). This bound is lowest at
    alpha = 0.5 ln(W+ / W-), where it is -(sqrt(W+) - sqrt(W-))^2.

    "gain" takes the candidate with the largest (sqrt(W+) - sqrt(W-))^2, in O(pairs x features) per round; W+ and W-
    need every pair, because w is not a product of a factor of i and one of j. "gradient" takes the largest
    abs(W+ - W-), in O(pairs + documents x features). The memory beside the documents' is one number per pair of the
    longest query. Ties are broken as by :class:`RankBoost`.

    The loss is not convex in alpha (phi is concave for s_i - s_j < -ln 2), so the exact alpha is searched in the
    whole range from -10 to 10; no alpha is larger. Its search counts the margins of pairs to 1/256, which changes a
    loss by 2e-7 at most. The rounds end early if no step lowers the loss. After Ctrl-C the ranker holds the rounds that
    were finished.

    References
    ----------
    M.-F. Tsai, T.-Y. Liu, T. Qin, H.-H. Chen, W.-Y. Ma (2007). FRank: a ranking method with fidelity loss.
    SIGIR. doi:10.1145/1277741.1277808
    """

    name = "FRank"
    own_columns = ("gain", "loss")
    drawn = ("train", "validation", "loss")

    choice: Literal["gain", "gradient"] = "gain"
    step: Literal["bound", "exact"] = "bound"

    @classmethod
    def examples(cls) -> Sequence[Self]:
        """Instances that the common tests of all rankers use."""
        return cls(rounds=4), cls("AP", rounds=3, thresholds=3, choice="gradient", step="exact")

    def _begin(self, lists: GradedLists, candidates: Candidates) -> Callable[[Vector], Step | None]:
        pairs = _FidelityPairs(lists, candidates, self.n_jobs)
        judge = pairs.gains if self.choice == "gain" else pairs.gradients
        length = exact_alpha if self.step == "exact" else bound_alpha
        loss = 1.0 - np.sqrt(0.5)  # of every pair, as long as all scores are equal

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
            # the bound promises a decrease, but margins are rounded to the grid and alpha to the grain
            if not change < 0:
                return None
            loss += change
            return Step(candidate, alpha, (float(every[candidate]), loss))

        return next_step


class _FidelityPairs:
    """Sums over the pairs of graded queries, in fixed parts whose results are added in order.

    Parameters
    ----------
    lists : GradedLists
        The queries.
    candidates : Candidates
        The thresholds.
    n_jobs : int or None
        Number of threads.
    """

    def __init__(self, lists: GradedLists, candidates: Candidates, n_jobs: int | None) -> None:
        self.lists, self.candidates, self.n_jobs = lists, candidates, n_jobs
        share = lists.weight / lists.weight.max(initial=0.0)  # first by the largest, so that no sum overflows
        self.layout = lists.segment, lists.lists, share / share.sum() / lists.pairs
        self.features = len(candidates.start) - 1
        self.pairs = int(lists.pairs.sum())
        self.potential = np.zeros(lists.n_paired)

    def gains(self, score: Vector) -> Vector:
        """(sqrt(W+) - sqrt(W-))^2 of every candidate."""
        start, bins = self.candidates.start, self.candidates.bins

        def part(first: int, last: int) -> Vector:
            rises = np.zeros(len(self.candidates) + self.features)
            slopes_by_candidate(first, last, score, *self.layout, bins, start, self.potential, rises)
            return rises

        rises = reduce(add, parallel.map_chunks(part, self.lists.chunks(self.pairs * self.features), self.n_jobs))
        place = np.arange(len(self.candidates)) + np.repeat(np.arange(self.features), np.diff(start))
        right = np.cumsum(rises)[place]  # the rises of a feature add up to 0, so those before it do not matter
        wrong = right - self._differences()
        up, down = (np.sqrt(np.where(slopes < _FAINT, 0.0, slopes)) for slopes in (right, wrong))
        return np.asarray((up - down) ** 2)

    def gradients(self, score: Vector) -> Vector:
        """abs(W+ - W-) of every candidate."""

        def part(first: int, last: int) -> None:
            fidelity_potentials(first, last, score, *self.layout, self.potential)

        parallel.map_chunks(part, self.lists.chunks(self.pairs), self.n_jobs)
        return np.abs(self._differences())

    def _differences(self) -> Vector:
        """W+ - W- of every candidate."""
        return self.candidates.sums_above(self.potential, self.n_jobs)

    def margins(self, score: Vector, above: Mask) -> Vector:
        """The weights of the pairs that a step orders rightly, and of those that it orders wrongly, by margin."""

        def part(first: int, last: int) -> Vector:
            counts = np.zeros((2, NODES))
            count_margins(first, last, score, above, *self.layout, WIDTH, counts)
            return counts

        return reduce(add, parallel.map_chunks(part, self.lists.chunks(self.pairs), self.n_jobs))


# ---------------------------------------------------------------------------------------------------- length of a step
# The pairs that a step separates are given as ``counts``, the weights of pairs by their margins d: counts[0] of those
# that the step orders rightly, counts[1] of those that it orders wrongly. The loss after the step is the sum of
# counts[0] phi(d + alpha) and counts[1] phi(d - alpha).

# Margins are counted on a grid of this width. Between its points phi is taken as a straight line, which changes it by
# less than WIDTH^2 / 8 times the largest of its second derivatives, 0.1: 2e-7 per pair.
WIDTH = 1.0 / 256.0
# phi is flat to 1e-6 where a margin beyond this meets the largest alpha.
FARTHEST = 40.0
NODES = 2 * round(FARTHEST / WIDTH) + 1
# No alpha is larger: a step that orders all its pairs rightly would otherwise have no minimum.
LARGEST = 10.0
_COARSE = 32  # nodes between the alphas that are tried first
_HALVINGS = 24  # of the quarter around the best of them: alpha is known to 1e-8
_REACH = round(LARGEST / WIDTH)
_MARGIN: Vector = WIDTH * (np.arange(NODES) - NODES // 2).astype(np.float64)

Occupied = tuple[int, Vector]  # (first node, counts from there on)


def bound_alpha(counts: Vector) -> float:
    """0.5 ln(W+ / W-), W the sums of slopes over either kind of pairs, within :data:`LARGEST` of 0."""
    right, wrong = (_sum(slope, _occupied_range(side), 0.0) for side in counts)
    if not min(right, wrong) > 0:
        return math.copysign(LARGEST, right - wrong) if right != wrong else 0.0
    return min(max(0.5 * math.log(right / wrong), -LARGEST), LARGEST)


def exact_alpha(counts: Vector) -> float:
    """The alpha of the lowest loss.

    The loss is not convex in alpha, and may have several minima. Alphas from -10 to 10 are tried in steps of 1/8; the
    minimum around the best of them is found by bisection on the sign of the slope.
    """
    right, wrong = _occupied_range(counts[0]), _occupied_range(counts[1])
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


def loss_change(counts: Vector, alpha: float) -> float:
    """How much a step of this length changes the loss."""
    right, wrong = _occupied_range(counts[0]), _occupied_range(counts[1])
    before = _sum(fidelity, right, 0.0) + _sum(fidelity, wrong, 0.0)
    return _sum(fidelity, right, alpha) + _sum(fidelity, wrong, -alpha) - before


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


def _occupied_range(count: Vector) -> Occupied:
    """The counts without the empty ends."""
    found = np.flatnonzero(count)
    return (int(found[0]), count[found[0] : found[-1] + 1]) if len(found) else (0, count[:0])


def _sum(function: Callable[[Vector], Vector], side: Occupied, shift: float) -> float:
    """The sum of a function of the margins after a shift."""
    first, count = side
    return float(np.dot(count, function(np.add(_MARGIN[first : first + len(count)], shift))))


# phi at every node, and as far beyond the grid as the largest alpha reaches
_TABLE = fidelity(WIDTH * (np.arange(NODES + 2 * _REACH) - NODES // 2 - _REACH).astype(np.float64))


def _at_node(side: Occupied, shift: int) -> float:
    """The sum of phi after a shift by an integer number of nodes, from the table."""
    first, count = side
    at = first + _REACH + shift
    return float(np.dot(count, _TABLE[at : at + len(count)]))
