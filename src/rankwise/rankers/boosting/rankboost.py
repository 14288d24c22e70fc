"""RankBoost: each step is the best one for pairs that are weighted by how wrongly they are ordered."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from rankwise._kernels.pairs import exponential_potentials
from rankwise.rankers.boosting.candidates import Candidates, GradedLists
from rankwise.rankers.boosting.steps import TIE, Step, ThresholdRanker, first_largest, on_grain

Vector = NDArray[np.float64]

# From here on a weak ranker counts as perfect; this keeps alpha below 10.8.
PERFECT = 1.0 - 1e-9


@dataclass(eq=False, repr=False, kw_only=True)
class RankBoost(ThresholdRanker):
    r"""s(x) = sum_t alpha_t 1[x_f > theta], each step with the largest abs(r) = abs(sum_ij D(i,j) (h_i - h_j)).

    D(i,j) is proportional to c_q exp(s_j - s_i), over pairs of the same query whose label_i is above label_j, with any
    number of levels; alpha = 0.5 ln((1 + r) / (1 - r)). The exponential loss sum_ij D_1(i,j) exp(s_j - s_i), and with
    it the weighted fraction of pairs that are misordered or tied, is at most the product of sqrt(1 - r^2) over the
    rounds.

    Parameters
    ----------
    measure : str or Measure, default="nDCG@10"
        The measure that selects the round to keep on a validation set; ``score`` reports it.
    rounds : int, default=300
        The largest number of steps.
    pairs : {"equal", "query"}, default="equal"
        "equal" gives every pair the same weight at the beginning, as Freund et al. do. "query" gives the pairs of a
        query the same total weight, however many they are. Both are multiplied by the weight of the query.
    thresholds : int, default=255
        The largest number of thresholds per feature: midpoints between its distinct values that divide the documents
        with pairs evenly. None takes all midpoints. With 255 a document takes one byte per feature.
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
        One row per round: round, feature, threshold, alpha, r, bound (the product above), and the measure on training
        and validation queries.

    Notes
    -----
    A round costs O(documents x features). D is a product of a factor of i and one of j, so that the weight of the pairs
    of a document takes one sum per grade, and r is the sum of those over the documents above a threshold. Among
    candidates whose abs(r) agree to 1e-12, the lowest feature number is taken, then the lowest threshold. The rounds
    end early if every r is 0, or after a step that orders all pairs rightly (or all wrongly); its abs(r) counts as
    1 - 1e-9. After Ctrl-C the ranker holds the rounds that were finished.

    References
    ----------
    Y. Freund, R. Iyer, R. E. Schapire, Y. Singer (2003). An efficient boosting algorithm for combining
    preferences. Journal of Machine Learning Research 4, 933-969. Theorem 1, and the alpha for weak rankings between
    0 and 1.
    """

    name = "RankBoost"
    own_columns = ("r", "bound")
    options: ClassVar = {"pairs": ("equal", "query")}
    drawn = ("train", "validation", "bound")

    rounds: int = 300
    pairs: Literal["equal", "query"] = "equal"

    @classmethod
    def examples(cls) -> Sequence[Self]:
        """Instances that the common tests of all rankers use."""
        return cls(rounds=8), cls("AP", rounds=5, thresholds=3, pairs="query")

    def _begin(self, lists: GradedLists, candidates: Candidates) -> Callable[[Vector], Step | None]:
        # logarithms, because exp(s_j - s_i) overflows when scores grow over many rounds
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
