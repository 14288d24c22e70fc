"""RankBoost: steps on single features, each the best for pairs weighted by how wrongly they stand."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from rankwise.rankers.boosting.candidates import Candidates, GradedLists
from rankwise.rankers.boosting.steps import TIE, Step, ThresholdRanker, first_largest, on_grain

Vector = NDArray[np.float64]

# From here on a weak ranker is as good as perfect; keeps alpha below 10.8.
PERFECT = 1.0 - 1e-9


@dataclass(eq=False, repr=False, kw_only=True)
class RankBoost(ThresholdRanker):
    r"""s(x) = sum_t alpha_t 1[x_f > theta], each step with the largest abs(r) = abs(sum_ij D(i,j) (h_i - h_j)).

    D(i,j) ~ c_q exp(s_j - s_i) over pairs of the same query whose label_i is above label_j, with any number of levels;
    alpha = 0.5 ln((1 + r) / (1 - r)). The exponential loss sum_ij D_1(i,j) exp(s_j - s_i), and with it the weighted
    fraction of pairs that are misordered or tied, is at most the product of sqrt(1 - r^2) over the rounds.

    Parameters
    ----------
    measure : by which the round to keep is chosen on a validation set, and what ``score`` reports
    rounds : at most so many steps
    thresholds : at most so many candidates a feature, midpoints between its distinct values taken so that the documents
        with pairs are shared out evenly; None: all midpoints. With 255 a document's place takes one byte
    pairs : "equal": every pair begins with the same weight, as Freund et al. have it; "query": the pairs of a query
        share one weight, however many they are. Either is multiplied by the weight of the query
    patience : stop after so many rounds without a better measure on the validation set
    n_jobs, verbose, missing : as for :class:`SLAMPerceptron`; the bits do not depend on ``n_jobs``

    Attributes
    ----------
    steps_ : feature, threshold and alpha of the steps that are kept
    rounds_ : how many these are: up to the best round on the validation set, the first of equals; all without one
    history_ : round, feature, threshold, alpha, r, bound (the product above), train and validation measure; it draws
        itself

    Notes
    -----
    A round is O(documents x features): D is factored, so that a document's weight of pairs takes one sum a grade, and
    r is the sum of those over the documents above a threshold. Among candidates whose abs(r) agree to 1e-12 the lowest
    feature number, then the lowest threshold is taken. Rounds end early when no candidate has an r other than 0, or
    after one that orders all pairs rightly (or all wrongly), whose abs(r) counts as 1 - 1e-9.

    References
    ----------
    Freund, Iyer, Schapire, Singer: An efficient boosting algorithm for combining preferences (2003): Theorem 1, and the
    alpha for weak rankings between 0 and 1.
    """

    name = "RankBoost"
    own_columns = ("r", "bound")
    options: ClassVar = {"pairs": ("equal", "query")}
    drawn = ("train", "validation", "bound")

    rounds: int = 300
    pairs: Literal["equal", "query"] = "equal"

    @classmethod
    def examples(cls) -> Sequence[Self]:
        return cls(rounds=8), cls("AP", rounds=5, thresholds=3, pairs="query")

    def _begin(self, lists: GradedLists, candidates: Candidates) -> Callable[[Vector], Step | None]:
        from rankwise._kernels.pairs import exponential_potentials

        log_weight = np.log(lists.weight if self.pairs == "equal" else lists.weight / lists.pairs)
        potential, bound = np.empty(lists.n_paired), 1.0

        def next_step(score: Vector) -> Step | None:
            nonlocal bound
            exponential_potentials(score[: len(potential)], lists.segment, lists.lists, log_weight, potential)
            every = candidates.sums_above(potential, self.n_jobs)
            candidate = first_largest(np.abs(every))
            r = min(max(float(every[candidate]), -PERFECT), PERFECT)
            if abs(r) <= TIE:
                return None
            bound *= math.sqrt((1.0 - r) * (1.0 + r))
            return Step(candidate, on_grain(math.atanh(r)), (r, bound), abs(r) == PERFECT)

        return next_step
