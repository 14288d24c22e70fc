"""SLAM in batch: the listwise large-margin loss of NDCG, NDCG@k or AP, regularised."""

from collections.abc import Sequence
from typing import Any, Self

from rankwise._errors import RankwiseError
from rankwise.data import checks
from rankwise.losses.slam import SLAM
from rankwise.rankers.linear.loss_ranker import RegularisedRanker
from rankwise.rankers.online.perceptron import slam_for
from rankwise.solvers.batch.feature_scale import Scale


class SLAMRanker(RegularisedRanker):
    r"""min over w of (lambda/2) norm(w - w0)^2 + mean over lists of sum_i v_i [margin + max_j s_j - s_i]_+.

    The maximum is over documents of a lower label, v are weights of the labels for NDCG, NDCG@k or AP; see
    :class:`~rankwise.losses.SLAM`.

    Parameters
    ----------
    measure : "nDCG", "nDCG@k" or "AP", which the loss bounds
    weights : the rule for v; None: "ndcg_tight_sym" or "ap_sym"
    margin : above 0; 1 for the bound
    alpha, ball, center, row_radius, norm, tolerance, max_calls, scale : as for :class:`RankSVM`, but
        around a ridge regression unless ``center`` is given
    folds, random_state, n_jobs, verbose, missing : as for :class:`RankSVM`

    Attributes
    ----------
    coef_, alpha_, ball_, objective_, gap_, history_, path_ : as for :class:`RankSVM`

    Notes
    -----
    On noisy lists **w = 0 makes the mean loss smallest**, and ranks nothing: along every direction, the best of many
    less relevant documents stands so far above the relevant ones, on average, that any step away from 0 costs more
    than it gains. It is so on OHSUMED and MQ2008, for NDCG, NDCG@10 and AP alike: a mean of subgradients that is 0
    proves it. Then no alpha and no ball helps, and neither does the margin, which only sets the unit of w. The
    convex problem around 0 is for lists that weights can nearly separate.

    The default w0 is therefore a ridge regression on the same lists, from which the loss leads away as far as the
    measure on the validation set (or by folds) goes along; a large alpha stays there. The problem is still convex
    and its gap still certain, but the bound of "theory" needs a w0 that these lists have not taught. With
    ``center=None`` a fit that ends at 0 says so by a ``NothingLearnedWarning``.

    G1 <= 2. For margin 1, ``objective_`` bounds the mean of 1 - measure over the training lists, equal scores in the
    worst order.

    References
    ----------
    Section 5 of the perceptron paper of 2014, with its alpha corrected.
    """

    name = "SLAMRanker"

    def __init__(
        self,
        measure: Any = "nDCG@10",
        *,
        weights: str | None = None,
        margin: float = 1.0,
        alpha: float | Sequence[float] | str | None = None,
        ball: float | Sequence[float] | None = None,
        center: Any = "ridge",
        row_radius: float | None = None,
        norm: float | None = None,
        tolerance: float = 1e-3,
        max_calls: int = 1000,
        scale: Scale = "auto",
        folds: int = 5,
        random_state: Any = 0,
        n_jobs: int | None = None,
        verbose: bool = False,
        missing: checks.Missing = "error",
    ) -> None:
        super().__init__(
            measure,
            alpha=alpha,
            ball=ball,
            center=center,
            row_radius=row_radius,
            norm=norm,
            tolerance=tolerance,
            max_calls=max_calls,
            scale=scale,
            folds=folds,
            random_state=random_state,
            n_jobs=n_jobs,
            verbose=verbose,
            missing=missing,
        )
        self.weights = weights
        self.margin = margin

    @classmethod
    def examples(cls) -> Sequence[Self]:
        return cls(alpha=0.1), cls("nDCG", weights="ndcg_003", ball=0.5)

    def _loss(self) -> SLAM:
        if not checks.is_number(self.margin) or not self.margin > 0:
            raise RankwiseError(
                f"the margin is above 0, without which weights of 0 have no loss: found {self.margin!r}"
            )
        return slam_for(self._measure(), self.weights, self.margin)
