"""The hinge of the worst pair in batch, regularised."""

from collections.abc import Sequence
from typing import Any, Self

from rankwise.data import checks
from rankwise.losses.max_pair import MaxPair
from rankwise.rankers.linear.loss_ranker import RegularisedRanker
from rankwise.solvers.batch.feature_scale import Scale


class MaxPairRanker(RegularisedRanker):
    r"""min over w of (lambda/2) norm(w - w0)^2 + mean over lists of [1 + max over label_i > label_j of (s_j - s_i)]_+.

    Parameters
    ----------
    measure : any; by which the alpha is chosen, and what ``score`` reports
    alpha, ball, center, row_radius, norm, tolerance, max_calls, scale : as for :class:`RankSVM`, but
        around a ridge regression unless ``center`` is given
    folds, random_state, n_jobs, verbose, missing : as for :class:`RankSVM`

    Attributes
    ----------
    coef_, alpha_, ball_, objective_, gap_, history_, path_ : as for :class:`RankSVM`

    Notes
    -----
    One pair a list, the worst, is all that this loss looks at, so w = 0 makes its mean smallest on all but nearly
    separable lists, on OHSUMED and MQ2008 too; see :class:`SLAMRanker` for what follows from that. G1 = 2, and
    ``objective_`` bounds the share of training lists that are not ranked perfectly, equal scores in the worst order.
    """

    name = "MaxPairRanker"

    def __init__(
        self,
        measure: Any = "nDCG@10",
        *,
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

    @classmethod
    def examples(cls) -> Sequence[Self]:
        return cls(alpha=0.1), cls("AP", alpha=(1.0, 0.01), folds=2)

    def _loss(self) -> MaxPair:
        return MaxPair()
