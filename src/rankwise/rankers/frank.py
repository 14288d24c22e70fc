"""FRank: steps on single features that lower the fidelity loss of pairs, each as far as is best."""

from collections.abc import Callable, Sequence
from functools import reduce
from operator import add
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from rankwise._kernels import drive
from rankwise.data import checks
from rankwise.rankers._candidates import Candidates
from rankwise.rankers._fidelity_step import NODES, WIDTH, bound_alpha, exact_alpha, loss_change
from rankwise.rankers._graded import GradedLists
from rankwise.rankers._thresholds import TIE, Step, ThresholdRanker, first_largest, on_grain

Vector = NDArray[np.float64]

# Sums of slopes below this are 0: what is left is rounding, and a root would make it large.
_FAINT = 1e-13


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

    def __init__(
        self,
        measure: Any = "nDCG@10",
        *,
        rounds: int = 100,
        thresholds: int | None = 255,
        choice: Literal["gain", "gradient"] = "gain",
        step: Literal["bound", "exact"] = "bound",
        patience: int | None = None,
        n_jobs: int | None = None,
        verbose: bool = False,
        missing: checks.Missing = "error",
    ) -> None:
        self.measure = measure
        self.rounds = rounds
        self.thresholds = thresholds
        self.choice = choice
        self.step = step
        self.patience = patience
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.missing = missing

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
